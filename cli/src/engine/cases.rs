//! The runs of a command: each policy with each placement and scheduler.

use nandscape_apps_memcached_engine::Placement;
use nandscape_apps_memcached_engine::policy::{ANY_DRIVE, POLICIES};
use nandscape_apps_memcached_run::{Load, Machine, Spec};
use nandscape_host_block::Config as BlockConfig;
use nandscape_lab_run::MemberLayers;
use nandscape_lab_run::chain::{BlockOver, Named, is_over_chunks};

use super::args::EngineArgs;
use super::drives::{DEFAULTS, check_drives, check_needs, check_parts, drive_of};
use super::words::NO_LAYER;
use crate::failure::Failure;
use crate::sim::FaultWord;

/// Commands at a drive at a time, and a turn, of a block layer unless they are set.
const LAYER: [&str; 3] = ["block.predictor=none", "block.depth=8", "block.slice=1ms"];

/// The values that differ between runs.
pub(super) struct Case<'a> {
    pub(super) policy: &'a str,
    pub(super) placement: Placement,
    pub(super) scheduler: &'a str,
}

impl EngineArgs {
    /// The policies that are given, or those that the layers leave, and the others.
    pub(super) fn policies(&self) -> Result<(Vec<&str>, Vec<&str>), Failure> {
        if !self.policy.is_empty() {
            return Ok((self.policy.iter().map(String::as_str).collect(), Vec::new()));
        }
        let over = MemberLayers { layers: self.over.resolve(&self.set)?.0, ..MemberLayers::default() };
        Ok(POLICIES[..ANY_DRIVE].iter().partition(|name| check_needs(name, &over).is_ok()))
    }

    /// The load, on either clock.
    pub(super) fn load(&self) -> Load {
        Load {
            readers: self.readers,
            read_bytes: self.read_size.0,
            writers: self.writers,
            write_bytes: self.write_size.0,
            reads: self.reads,
            fill: self.fill,
            small: self.small_items.map_or(0, |bytes| bytes.0),
            absent: self.absent,
        }
    }

    pub(super) fn cases(&self) -> Result<Vec<Case<'_>>, Failure> {
        let mut cases = Vec::new();
        for policy in self.policies()?.0 {
            for placement in self.placement.iter().copied() {
                cases.extend(self.scheduler.iter().map(|scheduler| Case { policy, placement, scheduler }));
            }
        }
        Ok(cases)
    }

    /// The layers below each drive of the engine, those that are given or a block layer with a scheduler, and the changes of the drives.
    fn layers(&self, scheduler: &str) -> Result<(Vec<Named>, Vec<String>), Failure> {
        if !self.over.is_empty() {
            return self.over.resolve(&self.set);
        }
        let set = self.set.iter().filter(|change| !BlockConfig::is_key(change)).cloned().collect();
        if scheduler == NO_LAYER {
            return Ok((Vec::new(), set));
        }
        let mut config = BlockConfig::default();
        let own = self.set.iter().filter(|change| BlockConfig::is_key(change)).map(String::as_str);
        let name = format!("block.scheduler={scheduler}");
        for change in LAYER.into_iter().chain([name.as_str()]).chain(own) {
            config.set(change).map_err(Failure::input)?;
        }
        config.check().map_err(Failure::input)?;
        Ok((vec![BlockOver { config, is_chosen: true }.into()], set))
    }

    /// Checks the keys of the block layer of a scheduler; layers check their own.
    pub(super) fn check_layer(&self) -> Result<(), Failure> {
        if !self.over.is_empty() {
            return self.over.resolve(&self.set).map(drop);
        }
        let own = || self.set.iter().filter(|change| BlockConfig::is_key(change));
        if let Some(change) = own().next().filter(|_| self.scheduler == [NO_LAYER]) {
            let problem = format!(
                "--set {change}: no run has a block layer; --scheduler noop, ssd or cfq gives one, and so does --over block"
            );
            return Err(Failure::Input(anyhow::anyhow!(problem)));
        }
        let is_valid = |change: &&String| {
            ["block.depth", "block.slice"].contains(&change.split('=').next().unwrap_or_default().trim())
        };
        if let Some(change) = own().find(|change| !is_valid(change)) {
            let problem = format!("--set {change}: of the block layer, block.depth and block.slice are valid here");
            return Err(Failure::Input(anyhow::anyhow!(problem)));
        }
        self.scheduler.iter().try_for_each(|name| self.layers(name).map(drop))
    }

    fn spec(&self, Case { policy, placement, scheduler }: &Case<'_>) -> Result<Spec, Failure> {
        let (layers, set) = self.layers(scheduler)?;
        let policy = POLICIES.into_iter().find(|known| known == policy).unwrap_or(POLICIES[0]);
        // A block layer of a scheduler passes whatever the drive has.
        let given = if self.over.is_empty() { &[] } else { &layers[..] };
        let load = |faults: &[FaultWord]| drive_of(&self.drive, &set, (&DEFAULTS, policy), (given, faults));
        let (drive, over) = self.over.members(layers.clone(), self.drives as usize, load)?;
        check_needs(policy, &over)?;
        if self.uplink.is_some() && is_over_chunks(given) {
            let problem = "--uplink: the layer ftl lies directly over its drive, with no uplink between; leave one of the two out";
            return Err(Failure::Input(anyhow::anyhow!(problem)));
        }
        Ok(Spec {
            drive,
            drives: self.drives as usize,
            policy,
            placement: *placement,
            in_place: self.loads.in_place,
            dirty: self.dirty.0,
            machine: Machine {
                has_two_threads: self.threads == 2,
                uplink: self.uplink.map(|bytes| bytes.0),
                ..Machine::new(self.cores as usize)
            },
            passes: self.passes,
            load: self.load(),
            tenants: self.tenants.clone(),
            over,
            seed: self.seed,
            trace: self.chrome_trace.is_some(),
            turns: self.page.is_some(),
        })
    }

    /// The run of a case, whose drives are as many as its policy needs.
    pub(super) fn checked(&self, case: &Case<'_>) -> Result<Spec, Failure> {
        let spec = self.spec(case)?;
        check_drives(spec.members(), case.placement, case.policy)?;
        check_parts((&spec.drive, spec.drives), (case.policy, case.placement))?;
        Ok(spec)
    }
}
