//! The drives under a served array: each with its layers, as it would be served alone.

use std::collections::BTreeMap;
use std::rc::Rc;

use nandscape_device_media::durable::StoreFile;
use nandscape_drive::{Drive, DriveInfo, Progress};
use nandscape_host_driver::nvme_tcp::NvmeTcp;
use nandscape_layers_array::Member;
use nandscape_sim::{Executor, Sim};
use nandscape_transport_reactor::{FaultCount, Order, Source};
use nandscape_wire_nvme::identify::{DLFEAT_ZEROS, ONCS_DSM};
use nandscape_wire_nvme::vendor::FAST_FAIL;

use super::absent::Absent;
use super::figures;
use crate::alone::User;
use crate::chain::{self, Chain};
use crate::live::{BuildError, SsdExport};
use crate::live_drive::{Building, LiveSpec, Place, Tree};
use crate::remote::Far;
use crate::tap::{Tail, Tap};

/// Such a drive at work.
pub(super) struct Under {
    spec: LiveSpec,
    /// It, or what one that cannot be used is taken to be, and why.
    at: Result<Tree, (DriveInfo, String)>,
    tail: Rc<Tail>,
}

/// Builds a member. It belongs to the array alone.
pub(super) fn build(
    spec: &LiveSpec,
    executor: &mut Executor,
    (seed, file): (u64, Option<StoreFile>),
    progress: &dyn Progress,
) -> Result<Under, BuildError> {
    let files = vec![file].into_iter();
    let tree = spec.tree(&mut Building { executor, seed, files, progress, user: Some(&User::ARRAY) });
    Ok(Under { spec: spec.clone(), at: Ok(tree?), tail: Rc::default() })
}

impl Under {
    /// In the place of a drive that cannot be used for this reason, and is taken to be like this.
    pub(super) fn absent(spec: &LiveSpec, info: DriveInfo, why: String) -> Under {
        Under { spec: spec.clone(), at: Err((info, why)), tail: Rc::default() }
    }

    fn tree(&self) -> Option<&Tree> {
        self.at.as_ref().ok()
    }

    /// The layers between it and the array, but for the FTL of a host.
    pub(super) fn chain(&self) -> Chain {
        let mut chain = self.spec.chain.clone();
        let _ = chain.take_ftl();
        chain
    }

    /// What the drive is.
    pub(super) fn info(&self) -> DriveInfo {
        self.at.as_ref().map_or_else(|(info, _)| *info, Tree::info)
    }

    /// Why it could not be used when the array was opened; `None` of one that is used.
    pub(super) fn problem(&self) -> Option<&str> {
        self.at.as_ref().err().map(|(_, why)| &**why)
    }

    /// Whether it holds data; known of models only.
    pub(super) fn holds_data(&self) -> bool {
        let tables = self.model().map(|export| export.ssd().tables());
        tables.is_some_and(|tables| tables.on_flash + tables.in_buffer > 0)
    }

    /// Whether it supports fail-fast reads.
    pub(super) fn fails_reads(&self) -> bool {
        let of_ftl = self.tree().and_then(Tree::ftl).map(|(_, ftl)| ftl.profile().fails_reads());
        let of_model = || self.model().map(|model| model.profile().fails_reads());
        let of_far = || self.far().map(|far| far.connection().identity().attributes & FAST_FAIL != 0);
        // The member of one that is out of reach is missing.
        of_ftl.or_else(of_model).or_else(of_far).unwrap_or(true)
    }

    pub(super) fn name(&self) -> &str {
        &self.spec.name
    }

    pub(super) fn model(&self) -> Option<&Rc<SsdExport>> {
        self.tree()?.model()
    }

    /// The remote drive.
    pub(super) fn far(&self) -> Option<&Rc<Far>> {
        match &self.tree()?.only()?.at {
            Place::Remote(far) => Some(far),
            Place::Model(_) | Place::Flash(..) | Place::Array(_) => None,
        }
    }

    /// The connection to it, or to its flash.
    pub(super) fn connection(&self) -> Option<Rc<NvmeTcp>> {
        self.tree()?.only()?.far().map(|far| far.connection().clone())
    }

    pub(super) fn sources(&self) -> Vec<Rc<dyn Source>> {
        self.tree().map_or_else(Vec::new, Tree::sources)
    }

    /// Its queues, through its layers, as the array uses them.
    pub(super) fn member(&self, sim: &Sim) -> Result<Member, String> {
        let tree = match &self.at {
            Ok(tree) => tree,
            Err((info, _)) => return Ok(Member { io: Rc::new(Absent(*info)), reads: None, admin: None }),
        };
        let member = Member::on(&*tree.top, true).map_err(|problem| format!("drive {}: {problem}", self.name()))?;
        let tap = |drive: Rc<dyn Drive>| -> Rc<dyn Drive> { Tap::over(sim, drive, self.tail.clone()) };
        Ok(Member { io: tap(member.io), reads: member.reads.map(tap), admin: member.admin })
    }

    /// Whether all of it reads as zeros once it is deallocated. The models' do.
    pub(super) fn can_be_zeroed(&self) -> bool {
        let Some(identity) = self.far().map(|far| far.connection().identity().clone()) else { return true };
        identity.optional_commands & ONCS_DSM != 0 && identity.deallocated & 0b111 == DLFEAT_ZEROS
    }

    /// Its own counters and those of its layers, and the latencies of the array's reads.
    pub(super) fn counters(&self) -> BTreeMap<&'static str, f64> {
        let absent = || BTreeMap::from([("remote_connected", 0.0)]);
        let mut counters = self.tree().map_or_else(absent, Tree::counters);
        counters.extend(figures::of_reads(&self.tail));
        counters
    }

    /// The counters of each of its layers, if it has several. It is drive `number` of `all`: instances have the names of a simulation.
    pub(super) fn parts(&self, number: usize, all: usize) -> Vec<(String, BTreeMap<&'static str, f64>)> {
        let layers = self.tree().filter(|tree| tree.layers.len() > 1).into_iter().flat_map(Tree::parts_of_layers);
        layers.map(|(layer, counters)| (chain::instance(&layer, number, all), counters)).collect()
    }

    pub(super) fn order(&self, order: &Order) -> Result<(), String> {
        let tree = self.tree().ok_or_else(|| format!("drive {} is out of reach", self.name()))?;
        tree.order(order).map_err(|problem| match self.connection() {
            Some(_) => format!("drive {}: {problem}", self.name()),
            None => problem,
        })
    }

    pub(super) fn faults(&self) -> Vec<FaultCount> {
        let faults = self.tree().map_or_else(Vec::new, Tree::faults);
        figures::named(self.name(), faults).collect()
    }
}
