//! `nandscape paper engine`: readers and writers on the storage engine over several drives, in simulated time.

mod loads;

use std::path::{Path, PathBuf};

use clap::Args;
use nandscape_apps_memcached_engine::policy::{ANY_DRIVE, Need, POLICIES, policy};
use nandscape_apps_memcached_engine::{MOST_SMALL, OpenError, PARITY_DRIVES, Placement};
use nandscape_apps_memcached_run::{Left, Load, Machine, Outcome, RunError, Spec, Tenant};
use nandscape_device_ssd::{BUILTIN, Resolved};
use nandscape_drive::percentile;
use nandscape_host_block::Config as BlockConfig;
use nandscape_host_block::scheduler::SchedulerKind;
use nandscape_lab_report::format::{bytes, count, us, us_or_dash};
use nandscape_lab_report::{EnginePage, EngineRun};
use nandscape_lab_run::MemberLayers;
use nandscape_lab_run::chain::{BlockOver, Named, check_over, is_over_chunks};
use nandscape_sim::Histogram;
use nandscape_sim::units::Bytes;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::files::Files;
use crate::numbers::whole;
use crate::over::OverWords;
use crate::progress::Runs;
use crate::sim::{FaultWord, can_write, resolve, resolve_with, write};
use crate::store_drive::conventional;
use crate::store_figures::{lines, ratio};
use crate::table::table;
use crate::{members, output};

/// Measure the tail of reads on the storage engine over several drives, under each policy.
///
/// Readers ask for small items, which the engine does not keep in memory, while writers put large ones as fast as the drives take them. All policies have the
/// same engine, load and drives, and all but raid0 the same layout (RAID-1+0, or --placement parity). mixed and raid0 read and write at all drives at any time;
/// epochs writes to even and odd drives in turn and reads from the others; rails does the same, and the turns are of a fixed time;
/// gc_control also orders when the drives collect garbage, and waits until they are ready for reads. predictable_latency, fdp and zoned take
/// turns as epochs does: drives that are read are in the deterministic window of Predictable Latency Mode, or the log has a reclaim unit handle
/// for itself (Flexible Data Placement), or its segments lie in zones (ZNS). First the log of each drive is written once.
///
/// With --over, each drive of the engine is a chain of layers over as many drives as they need, called drive-0, drive-1 and so on. A
/// drive that fails is done without, and its twin has the items.
#[derive(Args)]
#[command(after_help = "\
Examples:
  nandscape paper engine
        all policies on four drives
  nandscape paper engine --policy raid0,gc_control --threads 2 --uplink 1500MB
        a host of four cores with two threads each, whose drives share an uplink
  nandscape paper engine --policy mixed,gc_control --readers 32 --reads 1000000
  nandscape paper engine \\
      --policy gc_control,predictable_latency,fdp,zoned --passes 4
        orders of a vendor, and what drives on sale offer in their place
  nandscape paper engine --policy mixed,gc_control --tenants 4:1,64:12 \\
      --scheduler none,noop,cfq
        four readers of one tenant next to 64 of another, without a block
        layer and with two of its schedulers
  nandscape paper engine --policy epochs,gc_control --placement copies,parity
        mirrored pairs, and data on three of four drives with parity
  nandscape paper engine --policy epochs,gc_control --drives 1 \\
      --drive halves.toml
        one drive with two FTLs on channels of their own: each in turn
  nandscape paper engine --policy mixed,gc_control \\
      --cache-trace cluster052.zst --requests 1000000
        hit ratio, latency and drive writes a day under a trace of a cache
  nandscape paper engine --policy mixed,gc_control --ycsb b --readers 64 \\
      --read-size 1000 --reads 20000
        YCSB behind memcached's protocol
  nandscape paper engine --over raid1:2 --policy mixed,epochs --reads 20000
        each drive of the engine is a mirror of two
  nandscape paper engine --over block,scheduler=cfq --tenants 4:1,64:12
        a block layer over each drive
  nandscape paper engine --policy epochs \\
      --fault 'drive-1=dead channel=0-3 from=2s'
        a drive vanishes: its twin serves
  nandscape paper engine --in-place --policy raid0,mixed,epochs,gc_control
        blocks at fixed places, as the thesis has them
  nandscape paper engine --policy gc_control --drives 2 --json
  nandscape paper engine --policy mixed,epochs,gc_control --page turns.html
        a page with the tails, and the turns of the drives
  nandscape paper engine --policy gc_control --reads 5000 \\
      --chrome-trace turns.json
        a timeline of the turns of the drives

Exit status: 0 when done, 1 when a run has failed, 2 for bad usage or input.")]
pub(crate) struct EngineArgs {
    /// Policies. predictable_latency, fdp and zoned are for drives that have the feature of NVMe; built-in drives are given it
    /// [default: mixed,epochs,gc_control,raid0,rails, without those whose orders the layers do not pass]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = known)]
    policy: Vec<String>,
    /// How drives hold the items, each with all policies: copies on pairs of drives, or parity: data on all drives but one, and their parity on
    /// that one, another for each segment
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_value = COPIES, value_parser = placement)]
    placement: Vec<Placement>,
    /// Drives, in pairs of an even and an odd one; with parity, 3 to 16. Each part of a drive with several FTLs counts as a drive; of
    /// several such drives, two have the copies of each other. With --over, each is what lies at the top of the layers
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=64))]
    drives: u64,
    /// Each of the drives
    #[arg(long, value_name = "P", default_value = "default")]
    drive: String,
    /// Change a key of the drive's profile; may be repeated. Unless they are set, built-in drives have capacity 128MiB, 4 channels of a die
    /// of two planes, 64 pages a block, lba_size 4KiB, buffer.mode capacitor and buffer.size 2MiB
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Readers, each with one get at a time
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=4_096))]
    readers: u64,
    /// Readers of several tenants, in place of --readers: how many, and the class of their reads: 0 is none, 1 to 4 real time, 5 to 12
    /// best effort, 15 idle. Reads at drives carry the class and the tenant's number, counted from 1
    #[arg(long, value_name = "READERS:CLASS,...", value_delimiter = ',', value_parser = tenant, conflicts_with = "readers")]
    tenants: Vec<Tenant>,
    /// Schedulers of a block layer over each drive, each with all policies: none is no block layer. cfq is --over
    /// block,predictor=none,depth=8,slice=1ms,scheduler=cfq; --set block.depth and block.slice change the depth and the length of a turn
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_value = NO_LAYER, value_parser = scheduler, conflicts_with = "over")]
    scheduler: Vec<String>,
    #[command(flatten)]
    over: OverWords,
    /// Bytes of the values that are read
    #[arg(long, value_name = "BYTES", default_value = "4KiB")]
    read_size: Bytes,
    /// Writers, each with one put at a time
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(0..=4_096))]
    writers: u64,
    /// Bytes of the values that are put; half a segment at most, which is a 256th of a drive
    #[arg(long, value_name = "BYTES", default_value = "256KiB")]
    write_size: Bytes,
    /// Reads that are measured
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    reads: u64,
    /// How full the items of the readers make the log, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=70))]
    fill: u64,
    /// Items of at most this many bytes of key and value share blocks of 4 KiB; 0 is off. The output then has the index's bytes of an item,
    /// and the bytes that drives write for each that is put
    #[arg(long, value_name = "BYTES", value_parser = small_items)]
    small_items: Option<Bytes>,
    /// Reads of keys that have no item, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=90))]
    absent: u64,
    /// Bytes of changes that may wait for their drives
    #[arg(long, value_name = "BYTES", default_value = "8MiB")]
    dirty: Bytes,
    /// Cores of the host
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=64))]
    cores: u64,
    /// Hardware threads of each core, 1 or 2
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=2))]
    threads: u64,
    /// Bytes a second of the uplink that all drives share, in each direction; left out, there is no limit
    #[arg(long, value_name = "BYTES")]
    uplink: Option<Bytes>,
    /// How often the log of each drive is written before the measurement
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=20))]
    passes: u64,
    /// Seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole, allow_negative_numbers = true)]
    seed: u64,
    #[command(flatten)]
    loads: loads::LoadWords,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Write the tokens and reads of each drive, and the activity of its dies and channels, to this file, for chrome://tracing or
    /// ui.perfetto.dev; with one policy
    #[arg(long, value_name = "FILE")]
    chrome_trace: Option<PathBuf>,
    /// Write a page to this file, which opens in any browser: the tails of all runs, and for each the tokens, reads and flash of its drives
    /// over time
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
}

/// What built-in drives have unless it is set: as much garbage collection as a run of seconds can show.
const DEFAULTS: [(&str, &str); 8] = [
    ("capacity", "128MiB"),
    ("geometry.channels", "4"),
    ("geometry.dies_per_channel", "1"),
    ("geometry.planes_per_die", "2"),
    ("geometry.pages_per_block", "64"),
    ("lba_size", "4KiB"),
    ("buffer.mode", "capacitor"),
    ("buffer.size", "2MiB"),
];

/// A policy's name.
pub(crate) fn known(name: &str) -> Result<String, String> {
    match POLICIES.contains(&name) {
        true => Ok(name.to_owned()),
        false => Err(format!("{} are valid", POLICIES.join(", "))),
    }
}

/// The placement unless another is chosen.
const COPIES: &str = "copies";

/// A placement by its name.
pub(crate) fn placement(name: &str) -> Result<Placement, String> {
    let found = Placement::ALL.into_iter().find(|(known, _)| *known == name);
    found
        .map(|(_, placement)| placement)
        .ok_or_else(|| format!("{} are valid", Placement::ALL.map(|(name, _)| name).join(" and ")))
}

/// Checks that a number of drives can have a placement under a policy.
pub(crate) fn check_drives(drives: u64, placement: Placement, name: &str) -> Result<(), Failure> {
    let replicas = policy(name).map_or(1, |policy| policy.replicas());
    let wrong = |text: String| Err(Failure::Input(anyhow::anyhow!("{text}")));
    match placement {
        Placement::Copies if !drives.is_multiple_of(2) => {
            wrong("--drives: the engine has pairs of an even and an odd drive; 2, 4, 6 and so on are valid".to_owned())
        }
        Placement::Parity if replicas == 1 => wrong(format!(
            "--policy {name}: it has no second drive to read; with --placement parity any other policy is valid"
        )),
        Placement::Parity if policy(name).is_some_and(|policy| policy.needs() == Need::Zones) => wrong(format!(
            "--placement parity: a zone takes each block once, so a row that a crash leaves unfinished could not be written again; with --policy {name} copies are valid"
        )),
        Placement::Parity if !placement.fits(drives as usize, replicas) => {
            let [least, most] = PARITY_DRIVES;
            wrong(format!("--drives {drives}: with --placement parity {least} to {most} are valid"))
        }
        _ => Ok(()),
    }
}

/// Checks that the loss of a drive with several FTLs loses no item, unless there is only one drive.
fn check_parts(spec: &Spec) -> Result<(), Failure> {
    let (drives, parts) = (spec.drives, spec.drive.parts().len());
    let is_mirrored = policy(spec.policy).is_some_and(|policy| policy.replicas() > 1);
    let wrong = |text: String| Err(Failure::Input(anyhow::anyhow!("{text}")));
    match spec.placement {
        _ if parts < 2 || drives == 1 => Ok(()),
        Placement::Parity => wrong(format!(
            "--placement parity: each drive has {parts} FTLs, and parity repairs the loss of one; --drives 1, or copies, is valid"
        )),
        Placement::Copies if is_mirrored && !drives.is_multiple_of(2) => wrong(format!(
            "--drives {drives}: each drive has {parts} FTLs, whose copies belong on another drive; an even number, or 1, is valid"
        )),
        Placement::Copies => Ok(()),
    }
}

/// The name of a run without a block layer.
const NO_LAYER: &str = "none";
/// Commands at a drive at a time, and a turn, of a block layer unless they are set.
const LAYER: [&str; 3] = ["block.predictor=none", "block.depth=8", "block.slice=1ms"];

/// The name of a scheduler.
fn scheduler(name: &str) -> Result<String, String> {
    let names: Vec<&str> = SchedulerKind::ALL.iter().map(|(name, _)| *name).collect();
    match name == NO_LAYER || names.contains(&name) {
        true => Ok(name.to_owned()),
        false => Err(format!("{NO_LAYER}, {} are valid", names.join(", "))),
    }
}

/// Readers of a tenant, and their class.
fn tenant(text: &str) -> Result<Tenant, String> {
    let parsed = text.split_once(':').and_then(|(readers, class)| {
        let (readers, class) = (readers.parse().ok()?, class.parse().ok()?);
        ((1..=4_096).contains(&readers) && class <= 15).then_some(Tenant { readers, class })
    });
    parsed.ok_or_else(|| "READERS:CLASS, with 1 to 4096 readers and a class from 0 to 15, is valid".to_owned())
}

/// The policy that has windows.
const WINDOWS: &str = "predictable_latency";

/// What a policy needs of its drives, as keys of a profile.
fn needed(policy: &str) -> &'static [(&'static str, &'static str)] {
    match policy {
        WINDOWS => &[("controller.predictable_latency", "true")],
        "fdp" => &[("ftl.fdp.handles", "2")],
        "zoned" => &[
            ("ftl.kind", "zone"),
            ("ftl.zone.mapping", "dies"),
            ("ftl.zone.width", "4"),
            ("controller.max_transfer", "1MiB"),
        ],
        _ => &[],
    }
}

/// The limit of small items.
pub(crate) fn small_items(text: &str) -> Result<Bytes, String> {
    let bytes: Bytes = text.parse().map_err(|error| format!("{error}"))?;
    let most = MOST_SMALL as u64;
    if bytes.0 > most { Err(format!("{bytes} is too much; 0 to {most} are valid")) } else { Ok(bytes) }
}

/// The profile of the drives of an engine, below layers: defaults of built-in ones, what the policy needs, and changes.
pub(crate) fn drive_of(
    name: &str,
    set: &[String],
    (defaults, policy): (&[(&str, &str)], &str),
    (layers, faults): (&[Named], &[FaultWord]),
) -> Result<Resolved, Failure> {
    // A profile file has its own values, a drive that has zones its own zones, and chunks below the FTL of a host none of these keys.
    let is_built_in = BUILTIN.iter().any(|builtin| builtin.name == name) && !is_over_chunks(layers);
    let has_zones = is_built_in && resolve(name, &[])?.zone().is_some();
    let needed = if has_zones { &[] } else { needed(policy) };
    let is_set = |key: &str| set.iter().any(|change| change.split('=').next().unwrap_or_default().trim() == key);
    // Of a key that both give, the defaults count.
    let defaults = needed.iter().chain(defaults).filter(|(key, _)| is_built_in && !is_set(key));
    let defaults = defaults.map(|(key, value)| format!("{key}={value}"));
    let changes: Vec<String> = defaults.chain(set.iter().cloned()).collect();
    let drive = resolve_with(name, &changes, faults)?;
    let wants_zones = self::policy(policy).is_some_and(|policy| policy.needs() == Need::Zones);
    let wrong = |problem: String| Err(Failure::Input(anyhow::anyhow!("drive {}: {problem}", drive.name)));
    match (drive.zone().is_some(), wants_zones) {
        (true, true) => Ok(drive),
        (false, false) if layers.is_empty() => conventional(drive),
        (false, false) => match check_over(layers, &drive) {
            Ok(()) => Ok(drive),
            Err(problem) => Err(Failure::Input(anyhow::anyhow!("--over: {problem}"))),
        },
        (true, false) => wrong(format!(
            "ftl.kind = \"zone\" has zones, and --policy {policy} writes blocks in any order; --policy zoned, or a drive without zones, is valid"
        )),
        (false, true) => wrong(format!(
            "ftl.kind = \"{}\" has no zones, and --policy {policy} needs them; --set ftl.kind=zone is valid",
            drive.kind()
        )),
    }
}

/// Checks that what a policy needs of drives passes the layers over them.
fn check_needs(name: &str, over: &MemberLayers) -> Result<(), Failure> {
    let needs = policy(name).map_or(Need::Nothing, |policy| policy.needs());
    let passes = match needs {
        Need::Nothing => Ok(()),
        Need::Zones => over.check_zones(),
        Need::Orders | Need::Windows | Need::Placement(_) => over.check_orders(),
    };
    let is_free = |name: &&str| policy(name).is_some_and(|policy| policy.needs() == Need::Nothing);
    passes.map_err(|problem| {
        let others: Vec<&str> = POLICIES.into_iter().filter(is_free).collect();
        Failure::Input(anyhow::anyhow!("--policy {name}: {problem}, and so are the policies {}", others.join(", ")))
    })
}

impl EngineArgs {
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
    fn check_layer(&self) -> Result<(), Failure> {
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
            load: Load {
                readers: self.readers,
                read_bytes: self.read_size.0,
                writers: self.writers,
                write_bytes: self.write_size.0,
                reads: self.reads,
                fill: self.fill,
                small: self.small_items.map_or(0, |bytes| bytes.0),
                absent: self.absent,
            },
            tenants: self.tenants.clone(),
            over,
            seed: self.seed,
            trace: self.chrome_trace.is_some(),
            turns: self.page.is_some(),
        })
    }

    /// The run of a case, whose drives are as many as its policy needs.
    fn checked(&self, case: &Case<'_>) -> Result<Spec, Failure> {
        let spec = self.spec(case)?;
        check_drives(spec.members(), case.placement, case.policy)?;
        check_parts(&spec)?;
        let sizes: Vec<u64> = spec.drive.parts().iter().map(|part| part.drive.capacity()).collect();
        match sizes.iter().find(|size| **size != sizes[0]) {
            Some(size) => Err(Failure::Input(anyhow::anyhow!(
                "drive {}: its FTLs have {} and {}; parts of the same capacity are valid",
                spec.drive.name,
                Bytes(sizes[0]),
                Bytes(*size)
            ))),
            None => Ok(spec),
        }
    }

    fn check(&self) -> Result<(), Failure> {
        let wrong = |text: &str| Err(Failure::Input(anyhow::anyhow!("{text}")));
        if self.read_size.0 == 0 || self.write_size.0 == 0 {
            return wrong("--read-size, --write-size: 1 byte or more is valid");
        }
        if self.read_size.0.max(self.write_size.0) > 1 << 30 {
            return wrong("--read-size, --write-size: 1GiB or less is valid");
        }
        if let Some(file) = &self.chrome_trace {
            if self.cases()?.len() > 1 {
                return wrong(
                    "--chrome-trace: the file has one run; one --policy is valid, with one --placement and one --scheduler",
                );
            }
            Files::default().writes("--chrome-trace", file).check()?;
            can_write(file).map_err(|error| Failure::Input(error.context("--chrome-trace")))?;
        }
        if let Some(file) = &self.page {
            let mut files = Files::default().reads("--drive", Path::new(&self.drive)).writes("--page", file);
            if let Some(trace) = &self.chrome_trace {
                files = files.writes("--chrome-trace", trace);
            }
            files.check()?;
            output::check_page_of(file, "another file with --page")?;
            can_write(file).map_err(|error| Failure::Input(error.context("--page")))?;
        }
        if self.uplink.is_some_and(|uplink| uplink.0 < 1_000_000) {
            return wrong("--uplink: 1MB or more is valid");
        }
        if self.dirty.0 < 1 << 16 || self.dirty.0 > 1 << 32 {
            return wrong("--dirty: 64KiB to 4GiB are valid");
        }
        if self.tenants.iter().map(|tenant| tenant.readers).sum::<u64>() > 4_096 {
            return wrong("--tenants: 4096 readers at most, of all tenants together, are valid");
        }
        self.check_layer()
    }
}

fn failure(error: RunError, policy: &str) -> Failure {
    match error {
        RunError::TooLarge { read, most } => {
            let flag = if read { "--read-size" } else { "--write-size" };
            Failure::Input(anyhow::anyhow!("{flag}: on drives of this size {most} bytes or less are valid"))
        }
        RunError::Open(error @ OpenError::Block { .. }) => Failure::Input(anyhow::anyhow!("--write-size: {error}")),
        RunError::Open(error @ OpenError::Dirty { .. }) => Failure::Input(anyhow::anyhow!("--dirty: {error}")),
        RunError::Open(error @ OpenError::InPlace(_)) => Failure::Input(anyhow::anyhow!("--in-place: {error}")),
        RunError::Spec(text) => Failure::Input(anyhow::anyhow!("{text}")),
        RunError::Open(OpenError::Engine(error)) => Failure::Input(anyhow::anyhow!("--policy {policy}: {error}")),
        RunError::Open(error) => Failure::Input(anyhow::anyhow!("the engine: {error}")),
        RunError::Layers(problem) => Failure::Input(anyhow::anyhow!("--over: {problem}")),
        RunError::Queue(_) => Failure::input(error),
        RunError::Stopped(_) | RunError::Lost { .. } => Failure::Run(anyhow::anyhow!("--policy {policy}: {error}")),
        other => Failure::run(other),
    }
}

/// The values that differ between runs.
struct Case<'a> {
    policy: &'a str,
    placement: Placement,
    scheduler: &'a str,
}

impl EngineArgs {
    /// The policies that are given, or those that the layers leave, and the others.
    fn policies(&self) -> Result<(Vec<&str>, Vec<&str>), Failure> {
        if !self.policy.is_empty() {
            return Ok((self.policy.iter().map(String::as_str).collect(), Vec::new()));
        }
        let over = MemberLayers { layers: self.over.resolve(&self.set)?.0, ..MemberLayers::default() };
        Ok(POLICIES[..ANY_DRIVE].iter().partition(|name| check_needs(name, &over).is_ok()))
    }

    fn cases(&self) -> Result<Vec<Case<'_>>, Failure> {
        let mut cases = Vec::new();
        for policy in self.policies()?.0 {
            for placement in self.placement.iter().copied() {
                cases.extend(self.scheduler.iter().map(|scheduler| Case { policy, placement, scheduler }));
            }
        }
        Ok(cases)
    }

    /// Prints the engine's events of a run as notes.
    fn note_events(case: &Case<'_>, left: &Left) {
        left.events.iter().for_each(|event| output::note(&format!("{}: {event}", case.policy)));
    }

    /// What layers and drives have done in runs, as text.
    fn below<'a>(&self, names: &Names, runs: impl Iterator<Item = (&'a Case<'a>, &'a Left)>) -> String {
        let named = runs.map(|(case, left)| (names.row(case).join(", "), &left.below));
        members::text(named, !self.over.is_empty())
    }

    /// Adds the same to a run.
    fn add_below(&self, run: &mut Value, left: &Left) {
        members::add_json(run, &left.below, !self.over.is_empty());
        if !left.events.is_empty() {
            run["events"] = left.events.iter().map(ToString::to_string).collect();
        }
    }
}

pub(crate) fn run(args: &EngineArgs) -> Result<(), Failure> {
    args.check()?;
    let without = args.policies()?.1;
    if !without.is_empty() {
        output::note(&format!("the layers do not pass what a policy needs, which is left out: {}", without.join(", ")));
    }
    if let Some(ran) = loads::run(args) {
        return ran;
    }
    let cases = args.cases()?;
    let mut runs = Vec::new();
    let specs = cases.iter().map(|case| args.checked(case)).collect::<Result<Vec<_>, _>>()?;
    let progress = Runs::of(cases.len() as u64);
    for (number, (case, spec)) in cases.into_iter().zip(specs).enumerate() {
        progress.next(case.policy, number);
        let outcome = nandscape_apps_memcached_run::run(&spec).map_err(|error| failure(error, case.policy))?;
        EngineArgs::note_events(&case, &outcome.left);
        if args.writers > 0 && outcome.put_bytes == 0 {
            let policy = case.policy;
            output::note(&format!("{policy}: no put ended during the reads: a larger --reads lets drives collect"));
        }
        runs.push((case, outcome));
    }
    drop(progress);
    if let (Some(file), [(_, Outcome { trace: Some(trace), .. })]) = (&args.chrome_trace, &runs[..]) {
        write(file, trace).map_err(Failure::Run)?;
    }
    if let Some(file) = &args.page {
        write(file, &page(&runs, args)).map_err(Failure::Run)?;
    }
    match args.json {
        true => output::result(&serde_json::to_string_pretty(&as_json(&runs, args)).expect("plain data")),
        false => output::result(&text(&runs, args)),
    }
}

/// The page of the runs.
fn page(runs: &[(Case<'_>, Outcome)], args: &EngineArgs) -> String {
    let names = Names::of(runs.iter().map(|(case, _)| case));
    let header = [names.header("read latency, us"), latency_names()].concat();
    let row = |(case, outcome): &(Case<'_>, Outcome)| [names.row(case), latencies(&outcome.reads)].concat();
    let of = |(case, outcome): &(Case<'_>, Outcome)| {
        let turns = outcome.turns.clone().unwrap_or_default();
        EngineRun {
            label: names.row(case).join(", "),
            reads: outcome.reads.clone(),
            lines: turns.lines,
            interval_s: turns.interval_s,
            took_s: turns.took_s,
            parts_per_million: turns.parts_per_million,
            tokens_s: turns.tokens_s,
        }
    };
    let held = match args.loads.in_place {
        true => "of blocks in place".to_owned(),
        false => format!("the items {}% of the log", args.fill),
    };
    let load = format!(
        "{} readers of {} and {} writers of {} on {} drives, {held}, seed {}.",
        args.readers, args.read_size, args.writers, args.write_size, args.drives, args.seed
    );
    let table = (header.into_iter().map(str::to_owned).collect(), runs.iter().map(row).collect());
    EnginePage { load, table, runs: runs.iter().map(of).collect() }.to_html(&output::command())
}

/// The percentiles that are printed.
const QUANTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("p99.99", 0.9999), ("p99.999", 0.99999)];

/// The columns that name a run: its policy, and what was chosen in addition.
struct Names {
    has_placement: bool,
    has_scheduler: bool,
}

impl Names {
    fn of<'a>(cases: impl Iterator<Item = &'a Case<'a>> + Clone) -> Names {
        let has = |is: fn(&Case<'_>) -> bool| cases.clone().any(|case| is(case));
        Names {
            has_placement: has(|case| case.placement != Placement::Copies),
            has_scheduler: has(|case| case.scheduler != NO_LAYER),
        }
    }

    fn header<'a>(&self, first: &'a str) -> Vec<&'a str> {
        let more = [self.has_placement.then_some("placement"), self.has_scheduler.then_some("scheduler")];
        std::iter::once(first).chain(more.into_iter().flatten()).collect()
    }

    fn row(&self, case: &Case<'_>) -> Vec<String> {
        let placement = self.has_placement.then(|| case.placement.name());
        let more = [placement, self.has_scheduler.then_some(case.scheduler)];
        std::iter::once(case.policy).chain(more.into_iter().flatten()).map(str::to_owned).collect()
    }
}

/// Processor time of the engine for each read, writes and collections included, in microseconds.
fn cpu_us(outcome: &Outcome) -> f64 {
    outcome.cpu.as_us() / outcome.reads.count().max(1) as f64
}

/// The columns of latencies.
fn latency_names() -> Vec<&'static str> {
    [&["reads", "mean"], &QUANTILES.map(|(name, _)| name)[..], &["max"]].concat()
}

/// Latencies of reads.
fn latencies(latency: &Histogram) -> Vec<String> {
    let mut row = vec![count(latency.count()), us(latency.mean_ns() / 1e3)];
    row.extend(QUANTILES.map(|(_, quantile)| us_or_dash(percentile(latency, latency.count(), quantile))));
    row.push(us(latency.max().as_us()));
    row
}

/// Bytes of the index for each item at the end.
fn index_bytes(outcome: &Outcome) -> f64 {
    outcome.after.index_bytes as f64 / outcome.after.items.max(1) as f64
}

/// Bytes that were written to the drives. Puts of one item that wait for the drives together are one write of each.
fn written_bytes(outcome: &Outcome) -> u64 {
    outcome.after.written_bytes - outcome.before.written_bytes
}

/// Bytes that drives have written for each that was put, if any was.
fn written_a_byte(outcome: &Outcome) -> Option<f64> {
    (outcome.put_bytes > 0).then(|| written_bytes(outcome) as f64 / outcome.put_bytes as f64)
}

fn text(runs: &[(Case<'_>, Outcome)], args: &EngineArgs) -> String {
    let tenants = &args.tenants[..];
    let names = Names::of(runs.iter().map(|(case, _)| case));
    let of_latency = latency_names();
    let mut reads = table(&[&names.header("read latency, us")[..], &of_latency].concat());
    let mut of_tenants =
        table(&[&names.header("of a tenant, us")[..], &["tenant", "class", "reads/s"], &of_latency].concat());
    let has_windows = runs.iter().any(|(case, _)| case.policy == WINDOWS);
    let mut figures = names.header("policy");
    figures.extend(["reads/s", "put/s", "to drives/s", "epochs", "collected", "WAF", "moved items", "reads at tokens"]);
    figures.extend(has_windows.then_some("windows lapsed"));
    figures.extend(if names.has_placement { &["room", "reconstructed", "CPU, us/read"][..] } else { &[] });
    figures.extend(if args.small_items.is_some() { &["index bytes/item", "written/put"][..] } else { &[] });
    let mut figures = table(&figures);
    let mut misses = table(&[&names.header("without an item, us")[..], &of_latency].concat());
    for (case, outcome) in runs {
        reads.add_row([names.row(case), latencies(&outcome.reads)].concat());
        misses.add_row([names.row(case), latencies(&outcome.misses)].concat());
        let took = outcome.took.as_s();
        let rate = |reads: &Histogram| count((reads.count() as f64 / took) as u64);
        for (number, (tenant, latency)) in tenants.iter().zip(&outcome.tenants).enumerate() {
            let tenant = vec![count(number as u64 + 1), count(tenant.class.into()), rate(latency)];
            of_tenants.add_row([names.row(case), tenant, latencies(latency)].concat());
        }
        let mut row = names.row(case);
        row.extend([
            rate(&outcome.reads),
            bytes(outcome.put_bytes as f64 / took),
            bytes(written_bytes(outcome) as f64 / took),
            count(outcome.after.epochs - outcome.before.epochs),
            count(outcome.collected),
            ratio(outcome.waf),
            count(outcome.after.moved - outcome.before.moved),
            count(outcome.after.reads_at_tokens),
        ]);
        let lapses = outcome.after.window_lapses - outcome.before.window_lapses;
        row.extend(has_windows.then(|| if case.policy == WINDOWS { count(lapses) } else { "-".to_owned() }));
        if names.has_placement {
            let rebuilt = outcome.after.reconstructed - outcome.before.reconstructed;
            row.extend([bytes(outcome.after.log_bytes as f64), count(rebuilt), us(cpu_us(outcome))]);
        }
        if args.small_items.is_some() {
            row.extend([format!("{:.1}", index_bytes(outcome)), ratio(written_a_byte(outcome))]);
        }
        figures.add_row(row);
    }
    let shown = [(true, &reads), (args.absent > 0, &misses), (!tenants.is_empty(), &of_tenants), (true, &figures)];
    let figures = lines(shown.into_iter().filter(|(is_shown, _)| *is_shown).map(|(_, table)| table));
    figures + &args.below(&names, runs.iter().map(|(case, outcome)| (case, &outcome.left)))
}

fn latency_json(latency: &Histogram) -> Value {
    let at = |quantile| latency.quantile(quantile).as_us();
    json!({
        "count": latency.count(), "mean": latency.mean_ns() / 1e3, "p50": at(0.5), "p99": at(0.99),
        "p99_9": at(0.999), "p99_99": at(0.9999), "p99_999": at(0.99999), "max": latency.max().as_us(),
    })
}

fn as_json(runs: &[(Case<'_>, Outcome)], args: &EngineArgs) -> Value {
    let tenants = &args.tenants;
    let run = |(case, outcome): &(Case<'_>, Outcome)| {
        let took = outcome.took.as_s();
        let of_tenants = tenants.iter().zip(&outcome.tenants).map(|(tenant, latency)| {
            json!({
                "readers": tenant.readers,
                "class": tenant.class,
                "reads_per_s": latency.count() as f64 / took,
                "read_latency_us": latency_json(latency),
            })
        });
        let mut run = json!({
            "policy": case.policy,
            "placement": if args.loads.in_place { "in_place" } else { case.placement.name() },
            "scheduler": case.scheduler,
            "index_bytes_an_item": index_bytes(outcome),
            "drive_bytes_written_a_byte": written_a_byte(outcome),
            "miss_latency_us": latency_json(&outcome.misses),
            "tenants": of_tenants.collect::<Vec<_>>(),
            "read_latency_us": latency_json(&outcome.reads),
            "reads_per_s": outcome.reads.count() as f64 / took,
            "put_bytes_per_s": outcome.put_bytes as f64 / took,
            "drive_bytes_written_per_s": written_bytes(outcome) as f64 / took,
            "items": outcome.items,
            "epochs": outcome.after.epochs - outcome.before.epochs,
            "collected": outcome.collected,
            "waf": outcome.waf,
            "moved_items": outcome.after.moved - outcome.before.moved,
            "evictions": outcome.after.evictions,
            "room_bytes": outcome.after.log_bytes,
            "reconstructed": outcome.after.reconstructed - outcome.before.reconstructed,
            "cpu_us_per_read": cpu_us(outcome),
            "reads_at_tokens": outcome.after.reads_at_tokens,
            "window_lapses": outcome.after.window_lapses - outcome.before.window_lapses,
            "measured_s": took,
        });
        args.add_below(&mut run, &outcome.left);
        run
    };
    json!({"schema": 1, "runs": runs.iter().map(run).collect::<Vec<_>>()})
}
