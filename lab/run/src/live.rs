//! The model behind a live drive: its construction, its connections, its counters, and the operator's commands.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::rc::Rc;

use nandscape_device_controller::MAX_NAMESPACES;
use nandscape_device_ftl_core::Collections;
use nandscape_device_media::durable::{StoreFile, StoreSpec};
use nandscape_device_media::fault::RuleError;
use nandscape_device_media::{OpCounts, Rule, StoreKind};
use nandscape_device_ssd::{Part, Profile, ProfileError, Resolved, SavedDrive, Ssd};
use nandscape_drive::{Assignments, Drive, DriveInfo, Offers, Precondition, Progress, QueueId, Subsystem};
use nandscape_sim::units::Bytes;
use nandscape_sim::{Executor, Seed, Sim};
use nandscape_transport_reactor::inside::{Inside, Layout};
use nandscape_transport_reactor::{Connect, Export, FaultCount, Order, Pairs, QueueExport};
use nandscape_wire_nvme::Status;
use nandscape_wire_nvme::identify::{DLFEAT_WRITE_ZEROES, DLFEAT_ZEROS};
use serde::{Deserialize, Serialize};

use crate::build::{DriveError, build_drive, prepare, restore_drive};
use crate::chain::{Chain, drives_below};
use crate::damage::Fault;
use crate::inside;
use crate::live_drive::{LiveDrive, LiveSpec, LowestSpec};
use crate::saved::{self, FromState, History, StateError};

/// The forwarded commands that a model takes. Deallocated blocks read as zeros.
pub fn offers_of_model(info: &DriveInfo) -> Offers {
    Offers {
        compare: info.keeps_data,
        deallocate: true,
        write_zeroes: true,
        verify: true,
        write_uncorrectable: true,
        copy: true,
        dlfeat: DLFEAT_ZEROS | DLFEAT_WRITE_ZEROES,
        ..Offers::default()
    }
}

/// Entries of each client's queue pair, unless the controller's limit is lower.
const ENTRIES: u32 = 1_024;

/// A live drive, in a form that can be stored and rebuilt.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DriveSpec {
    /// The name that clients use.
    pub name: String,
    /// Its number among all drives of the run, on any thread: part of its seed.
    pub number: u64,
    /// The name of its profile.
    pub profile_name: String,
    /// The resolved profile, as TOML.
    pub profile: String,
    /// Whether it keeps data.
    pub keeps_data: bool,
    /// Its state at the start.
    pub precondition: Precondition,
    /// The file that this state is taken from; `None` if the drive is brought into it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_state: Option<FromState>,
    /// Whether several controllers reach it, one of them a PCI function ([`Subsystem::report_several`]).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_shared: bool,
    /// The seed of everything random in it, where that does not follow from the run's seed and its number: a recorded simulation has
    /// other seeds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_seed: Option<u64>,
}

impl DriveSpec {
    /// The profile.
    ///
    /// # Errors
    /// When it does not fit this program.
    pub fn resolve(&self) -> Result<Resolved, ProfileError> {
        let keys = Profile::parse(&self.profile_name, &self.profile)?.keys;
        Profile::of_keys(&self.profile_name, keys).resolve()
    }

    /// Builds the drive of a run with this seed.
    ///
    /// # Errors
    /// As [`LiveDrives::build`].
    pub fn build(&self, sim: &Sim, seed: u64, progress: &dyn Progress) -> Result<SsdExport, BuildError> {
        self.build_in(sim, seed, None, progress)
    }

    /// The same, in a file if one is given.
    ///
    /// # Errors
    /// As [`LiveDrives::build`], or when the file cannot be used.
    pub fn build_in(
        &self,
        sim: &Sim,
        seed: u64,
        file: Option<StoreFile>,
        progress: &dyn Progress,
    ) -> Result<SsdExport, BuildError> {
        let (profile, own_seed, precondition) = (self.resolve()?, self.seed_in(seed), self.precondition);
        let ssd = match file {
            None => build_drive(sim, &profile, self.store(), precondition, own_seed, progress)?,
            Some(file) => {
                let is_new = file.before().starts == 0;
                let failed = |error| BuildError::Store { name: self.name.clone(), error };
                let ssd = Ssd::open(sim, &profile, file).map_err(failed)?;
                // A used drive continues in its state.
                if is_new && precondition != Precondition::None {
                    ssd.set_filling(true).map_err(failed)?;
                    prepare(&ssd, &profile, precondition, own_seed, progress)?;
                    ssd.set_filling(false).map_err(failed)?;
                }
                ssd
            }
        };
        Ok(self.export(sim, ssd, profile, None))
    }

    fn store(&self) -> StoreKind {
        if self.keeps_data { StoreKind::Ram } else { StoreKind::None }
    }

    /// The drive in the state of such a drive.
    pub(crate) fn restored(
        &self,
        sim: &Sim,
        seed: u64,
        (state, history): (SavedDrive, History),
    ) -> Result<SsdExport, BuildError> {
        let profile = self.resolve()?;
        let ssd = restore_drive(sim, &profile, self.store(), self.seed_in(seed), state)?;
        Ok(self.export(sim, ssd, profile, Some(history)))
    }

    fn export(&self, sim: &Sim, ssd: Ssd, profile: Resolved, history: Option<History>) -> SsdExport {
        let export = SsdExport::new(sim, Rc::new(ssd), profile, history);
        export.subsystem().iter().filter(|_| self.is_shared).for_each(|subsystem| subsystem.report_several());
        export
    }

    /// Checks before the drive is served that its state can be saved to a file at the end.
    ///
    /// # Errors
    /// When it cannot.
    pub fn check_can_be_saved(&self, path: &Path) -> Result<(), StateError> {
        let resolved = self.resolve().map_err(|error| StateError::Drive(error.to_string()))?;
        resolved.check_can_be_saved().map_err(StateError::Drive)?;
        saved::check_can_write(path)
    }

    /// How the state of this drive came about after a run with this seed, in which hosts used `top`.
    pub(crate) fn history_after(&self, export: &SsdExport, top: &SsdExport, seed: u64) -> History {
        let unit_bytes = u64::from(export.ssd.controller().info().unit_bytes);
        let planted = || History::planted(self.precondition, unit_bytes, seed);
        let written = Bytes(top.ssd.ftl_stats().host_bytes);
        let history = export.history.clone().unwrap_or_else(planted);
        history.after(seed, &format!("served to hosts, which wrote {written}"))
    }

    /// The contents of a new file for the drive of a run with this seed: a store for each of its FTLs.
    ///
    /// # Errors
    /// When its profile does not fit this program.
    pub fn store_specs(&self, seed: u64) -> Result<Vec<StoreSpec>, ProfileError> {
        Ok(self.resolve()?.store_specs(self.keeps_data, self.seed_in(seed).child("drive")))
    }

    fn seed_in(&self, seed: u64) -> Seed {
        self.own_seed.map_or_else(|| Seed::new(seed).child("live").nth(self.number), Seed::new)
    }
}

/// The definition of all drives of one live run; the header of its recording.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LiveDrives {
    /// The version of the program that wrote it.
    pub version: String,
    /// Seed of all random choices.
    pub seed: u64,
    /// The drives, in the order in which connections name them.
    pub drives: Vec<DriveSpec>,
    /// Layers of a host over each of them, or over all of them where layers take several. The lowest may be the FTL of a host, if the drives are open-channel drives.
    #[serde(default, skip_serializing_if = "Chain::is_empty")]
    pub layers: Chain,
    /// Whether the commands are those of an engine, which has used the layers without controllers in front.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_engine: bool,
    /// The rules of each drive that clients connect to, for class and tenant of their commands; drives beyond the last have none. The
    /// clients' names are among the arrivals, so that a replay gives the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assign: Vec<Rules>,
}

/// Rules for class and tenant, stored as text.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Rules(pub Assignments);

impl TryFrom<String> for Rules {
    type Error = String;

    fn try_from(text: String) -> Result<Rules, String> {
        text.parse().map(Rules)
    }
}

impl From<Rules> for String {
    fn from(rules: Rules) -> String {
        rules.0.to_string()
    }
}

impl Rules {
    /// Gives a drive the rules. Without any, it keeps those of its profile.
    pub fn assign_to(&self, export: &dyn Export) {
        let subsystem = export.subsystem().filter(|_| !self.0.is_empty());
        subsystem.iter().for_each(|subsystem| subsystem.assign(&self.0));
    }
}

impl LiveDrives {
    /// What clients connect to: each drive under its layers, or all of them as one if the layers take several.
    pub fn specs(&self) -> Vec<LiveSpec> {
        let (chain, is_engine) = (self.layers.clone(), self.is_engine);
        let takes = chain.resolve().map_or(1, |layers| drives_below(&layers));
        let models = self.drives.iter().cloned().map(LowestSpec::Model);
        match takes > 1 || chain.has_array() {
            true => vec![LiveSpec { name: "array".to_owned(), drives: models.collect(), chain, is_engine }],
            false => models.map(|model| LiveSpec { chain: chain.clone(), is_engine, ..model.into() }).collect(),
        }
    }

    /// A timeline for each of them, as a server has: they share nothing.
    pub fn timelines(&self) -> Vec<Executor> {
        Executor::apart(self.specs().len().max(1))
    }

    /// The rules for the clients of a drive: those that it is given, or those of its profile if no layer is between.
    pub(crate) fn rules_of(&self, number: usize) -> Assignments {
        let given = self.assign.get(number).filter(|rules| !rules.0.is_empty());
        let is_plain = given.is_none() && self.layers.is_empty();
        let profile = self.drives.get(number).filter(|_| is_plain).and_then(|spec| spec.resolve().ok());
        let of_profile = || profile.map_or_else(Assignments::default, |profile| profile.assignments().clone());
        given.map_or_else(of_profile, |rules| rules.0.clone())
    }

    /// Builds what clients connect to: each on its timeline, or all on the only one.
    ///
    /// # Errors
    /// When a profile is not valid in this version, or memory for the tables cannot be allocated.
    pub fn build(&self, timelines: &mut [Executor], progress: &dyn Progress) -> Result<Vec<Rc<LiveDrive>>, BuildError> {
        let last = timelines.len() - 1;
        let mut build = |(number, spec): (usize, LiveSpec)| {
            spec.build(&mut timelines[number.min(last)], self.seed, Vec::new(), progress).map(Rc::new)
        };
        let drives = self.specs().into_iter().enumerate().map(&mut build).collect::<Result<Vec<_>, BuildError>>()?;
        drives.iter().zip(&self.assign).for_each(|(drive, rules)| rules.assign_to(&**drive));
        Ok(drives)
    }
}

/// Why a live drive cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// Its profile does not fit this program.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// It does not fit this machine, or its state.
    #[error(transparent)]
    Drive(#[from] DriveError),
    /// The layers do not fit it.
    #[error("{0}")]
    Layers(String),
    /// What lies below the layers cannot be reached or read.
    #[error("{0}")]
    Lowest(String),
    /// The file of its state cannot be used.
    #[error("--from-state {0}")]
    State(#[from] StateError),
    /// Its file cannot be used.
    #[error("the file of drive {name} cannot be used: {error}")]
    Store {
        /// The drive.
        name: String,
        /// Why.
        error: std::io::Error,
    },
}

/// An emulated SSD. Each client gets a queue pair, and each host with its own queues a controller.
pub struct SsdExport {
    ssd: Rc<Ssd>,
    profile: Resolved,
    queues: QueueExport,
    /// Operations before the service began.
    begun: OpCounts,
    /// How its state came about, if it was taken from a file.
    history: Option<History>,
    /// The namespaces that it was made with.
    made: Vec<Format>,
}

/// Number, blocks, bytes of a block and of its metadata.
type Format = (u32, u64, u32, u32);

fn formats(namespaces: &[DriveInfo]) -> Vec<Format> {
    namespaces.iter().map(|one| (one.nsid, one.blocks, one.lba_bytes, one.metadata_bytes)).collect()
}

fn namespaces(ssd: &Ssd) -> Vec<DriveInfo> {
    let controller = ssd.controller();
    (1..=MAX_NAMESPACES).filter_map(|nsid| controller.info_of(nsid)).collect()
}

impl SsdExport {
    pub(crate) fn new(sim: &Sim, ssd: Rc<Ssd>, profile: Resolved, history: Option<History>) -> SsdExport {
        let entries = ENTRIES.min(profile.max_queue_entries());
        let queues = QueueExport::new(sim, ssd.controller(), profile.max_queue_pairs(), entries);
        let begun = ssd.op_counts();
        let made = formats(&namespaces(&ssd));
        SsdExport { ssd, profile, queues, begun, history, made }
    }

    /// The drive.
    pub fn ssd(&self) -> &Rc<Ssd> {
        &self.ssd
    }

    /// A connection to a namespace; a drive has one for each of its FTLs.
    ///
    /// # Errors
    /// That there is no queue pair left, or no such namespace.
    pub fn connect_to(&self, nsid: u32) -> Result<Rc<dyn Drive>, Status> {
        self.queues.connect_to(nsid)
    }

    /// Makes one of its queue pairs a queue of notices ahead of completions, for the connections from now on. The caller sets the
    /// feature.
    ///
    /// # Errors
    /// That there is no queue pair left.
    #[cfg(target_os = "linux")]
    pub(crate) fn announce(&self) -> Result<QueueId, Status> {
        self.queues.announce()
    }

    /// Its profile.
    pub fn profile(&self) -> &Resolved {
        &self.profile
    }

    /// Turns the drive off, in order. It must not be used afterwards.
    ///
    /// # Errors
    /// Why its file could not be written.
    pub fn turn_off(&self, executor: &mut Executor) -> io::Result<()> {
        // A stalled drive cannot write more than it has.
        let _ = executor.block_on(self.ssd.shut_down());
        self.ssd.close()
    }

    /// A drive from a state begins with its profile's namespaces, so namespaces that hosts have made or formatted would be lost.
    pub(crate) fn check_namespaces(&self) -> Result<(), StateError> {
        match formats(&self.namespaces()) == self.made {
            true => Ok(()),
            false => Err(StateError::Drive(
                "the state after the run cannot be saved: hosts have made, deleted or formatted namespaces, which a state does not have"
                    .to_owned(),
            )),
        }
    }
}

impl Connect for SsdExport {
    fn info(&self) -> DriveInfo {
        self.queues.info()
    }

    fn namespaces(&self) -> Vec<DriveInfo> {
        namespaces(&self.ssd)
    }

    fn connect(&self) -> Result<Rc<dyn Drive>, Status> {
        self.queues.connect()
    }

    fn pairs(&self) -> Option<Pairs> {
        self.queues.pairs()
    }

    fn subsystem(&self) -> Option<Rc<dyn Subsystem>> {
        Some(self.ssd.subsystem())
    }
}

/// The space of an FTL that takes orders for collections, and its state.
fn collection_counters(collections: Option<&dyn Collections>) -> impl Iterator<Item = (&'static str, f64)> {
    let status = collections.map(Collections::status);
    let counters = status.map(|status| {
        [
            ("user_bytes", status.user_bytes as f64),
            ("flash_bytes", status.device_bytes as f64),
            ("erase_block_bytes", status.block_bytes as f64),
            ("gc_running", f64::from(u8::from(status.is_collecting))),
            ("ready_for_read", f64::from(u8::from(status.is_held))),
        ]
    });
    counters.into_iter().flatten()
}

impl Export for SsdExport {
    fn counters(&self) -> BTreeMap<&'static str, f64> {
        let (ftl, ops) = (self.ssd.ftl_stats(), self.ssd.op_counts().since(&self.begun));
        let (unit, room) = (f64::from(self.info().unit_bytes), self.ssd.occupancy());
        let mut counters = BTreeMap::from([
            ("host_written_bytes_total", ftl.host_bytes as f64),
            ("flash_programmed_bytes_total", ftl.programmed_units() as f64 * unit),
            ("gc_moved_bytes_total", ftl.gc_units as f64 * unit),
            ("gc_blocks_total", ftl.gc_blocks as f64),
            ("reads_failed_fast_total", ftl.failed_fast as f64),
            ("window_turns_total", ftl.window_turns as f64),
            ("forced_steps_total", ftl.forced_steps as f64),
            ("forced_programs_total", ftl.forced_programs as f64),
            ("metadata_programmed_bytes_total", ftl.metadata_units as f64 * unit),
            ("log_records_total", ftl.upkeep.records as f64),
            ("checkpoints_total", ftl.upkeep.checkpoints as f64),
            ("recoveries_total", ftl.upkeep.recovered.count as f64),
            ("flash_page_reads_total", ops.reads as f64),
            ("flash_page_programs_total", ops.programs as f64),
            ("flash_block_erases_total", ops.erases as f64),
            ("free_blocks", ftl.free_blocks as f64),
            ("buffer_slots", f64::from(room.slots)),
            ("buffer_free_slots", f64::from(room.free)),
            ("retired_blocks_total", ftl.retired_blocks as f64),
            ("planes_out_of_use", ftl.planes_out_of_use as f64),
            ("spare_blocks", ftl.spare_blocks.0 as f64),
            ("lost_units_total", ftl.lost_units as f64),
            ("dropped_units_total", ftl.dropped_units as f64),
            ("unwritten_read_bytes_total", ftl.unwritten_units as f64 * unit),
            ("power_cuts_total", f64::from(self.ssd.media().power_cuts())),
            ("read_only", f64::from(u8::from(self.ssd.is_read_only()))),
            ("store_failed", f64::from(u8::from(self.ssd.store_failure().is_some()))),
        ]);
        counters.extend(collection_counters(self.ssd.collections()));
        counters
    }

    fn parts(&self) -> Vec<(String, BTreeMap<&'static str, f64>)> {
        let unit = f64::from(self.info().unit_bytes);
        let several = self.ssd.parts().iter().filter(|_| self.ssd.parts().len() > 1);
        let counters = |part: &Part| {
            let (stats, ops) = (part.stats(), part.op_counts());
            let mut counters = BTreeMap::from([
                ("host_written_bytes_total", stats.host_bytes as f64),
                ("flash_programmed_bytes_total", stats.programmed_units() as f64 * unit),
                ("gc_blocks_total", stats.gc_blocks as f64),
                ("flash_page_reads_total", ops.reads as f64),
                ("flash_block_erases_total", ops.erases as f64),
                ("free_blocks", stats.free_blocks as f64),
                ("spare_blocks", stats.spare_blocks.0 as f64),
                ("read_only", f64::from(u8::from(part.read_only().is_some()))),
            ]);
            counters.extend(collection_counters(part.collections()));
            counters
        };
        several.map(|part| (part.name().to_owned(), counters(part))).collect()
    }

    fn layout(&self) -> Option<Layout> {
        Some(inside::layout(&self.ssd))
    }

    fn inside(&self, with_wear: bool) -> Option<Inside> {
        Some(inside::now(&self.ssd, with_wear))
    }

    fn order(&self, order: &Order) -> Result<(), String> {
        let plan = self.ssd.media().faults();
        match order {
            Order::AddFault(text) => {
                let rule: Rule = text.parse().map_err(|error: RuleError| error.to_string())?;
                self.profile.check_fault(&rule).map_err(|problem| format!("fault {problem}"))?;
                plan.add(rule);
            }
            Order::ClearFaults => plan.clear(),
            Order::Set(setting) => self.ssd.change(setting).map_err(|problem| problem.to_string())?,
        }
        Ok(())
    }

    fn read_only(&self) -> Option<String> {
        self.ssd.read_only()
    }

    fn faults(&self) -> Vec<FaultCount> {
        let all = Fault::all_of(&self.ssd).into_iter();
        all.map(|Fault { rule, matched, struck, .. }| FaultCount { rule, matched, struck }).collect()
    }

    fn settings(&self) -> Vec<(String, String)> {
        self.ssd.settings()
    }
}
