//! The NVM subsystem, shared by the controllers of one drive: the command set with its media, the host link, the command
//! slots of the firmware, and power.
//!
//! | file | what |
//! |---|---|
//! | `controllers` | the controllers that exist, by identifier |
//! | `namespaces` | creating, attaching, deleting and formatting namespaces |
//! | `sanitize` | dropping all data |
//! | `self_test` | Device Self-test: reading data in the background |
//! | `slots` | command slots, and turns when they are too few |
//! | `latency` | Predictable Latency Mode |
//! | `notes` | the state of a file-backed drive that outlasts the process |
//! | `power` | power cuts and the restart after them |

mod controllers;
pub(crate) mod latency;
mod namespaces;
mod notes;
mod power;
mod sanitize;
mod self_test;
mod slots;

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use nandscape_drive::subsystem::IN_PROCESS_CONTROLLER;
use nandscape_drive::{Assignments, BlockSizes, Controller, DriveInfo, HostIdentity, Names, Subsystem, TransportModel};
use nandscape_sim::account::Totals;
use nandscape_sim::trace::Track;
use nandscape_sim::workers::Workers;
use nandscape_sim::{Processors, Sim, Time};
use nandscape_wire_nvme::Status;
use nandscape_wire_nvme::vendor::{DriveLog, Windows};

use crate::admin::{Event, Saved, Telemetry};
use crate::command_set::SetInfo;
use crate::command_set::any::AnySet;
use crate::command_set::nvm::by_cause;
use crate::config::ControllerConfig;
use crate::engine::{Chore, CommandJob, FusedJob, NvmeController};
use crate::link::Link;
use crate::namespace::{Common, Format, Namespace, Namespaces, Registrant};
use crate::work::Work;
use controllers::Controllers;
pub(crate) use controllers::MAX_CONTROLLERS;
use latency::Latency;
pub use latency::LatencyFigures;
use namespaces::Changes;
use notes::Notebook;
use power::Power;
use sanitize::Sanitizing;
use self_test::SelfTests;
use slots::CommandSlots;

/// The subsystem of a drive over a command set.
pub struct NvmSubsystem {
    pub(crate) sim: Sim,
    pub(crate) config: ControllerConfig,
    pub(crate) names: Names,
    pub(crate) set: AnySet,
    pub(crate) namespaces: Namespaces,
    pub(crate) changes: Changes,
    pub(crate) sanitizing: Sanitizing,
    pub(crate) self_tests: SelfTests,
    pub(crate) link: Rc<Link>,
    pub(crate) work: Work,
    pub(crate) slots: CommandSlots,
    pub(crate) power: Power,
    /// Commands whose data could not be read or written (SMART: Media and Data Integrity Errors).
    pub(crate) media_errors: Cell<u64>,
    /// Values of features that hosts have saved.
    pub(crate) saved: Saved,
    pub(crate) telemetry: Telemetry,
    pub(crate) notebook: Notebook,
    pub(crate) latency: Latency,
    /// Windows by schedule, as they were set.
    pub(crate) windows: Cell<Option<Windows>>,
    /// Whether the controllers of all hosts report several controllers.
    pub(crate) several: Cell<bool>,
    /// Class and tenant of commands that state none.
    pub(crate) assigned: RefCell<Assignments>,
    /// Serve commands of all controllers.
    pub(crate) jobs: Workers<CommandJob>,
    pub(crate) fused: Workers<FusedJob>,
    pub(crate) chores: Workers<Chore>,
    pub(crate) track: Track,
    controllers: Controllers,
    me: Weak<NvmSubsystem>,
}

impl NvmSubsystem {
    /// A subsystem over a command set, without a controller. Each controller gets its own arbiter.
    pub fn new(sim: &Sim, set: AnySet, config: ControllerConfig, names: Names) -> Rc<NvmSubsystem> {
        let SetInfo { keeps_data, keeps_metadata, unit_bytes, .. } = set.info();
        let work = Work::new(sim, config.processors, unit_bytes);
        let (max_transfer, nqn) = (config.max_transfer, names.nqn.clone());
        let common = Common { sets: set.nvm_sets(), keeps_data, keeps_metadata, max_transfer, nqn };
        let subsystem = Rc::new_cyclic(|me: &Weak<NvmSubsystem>| NvmSubsystem {
            sim: sim.clone(),
            names,
            namespaces: Namespaces::new(common, Format::plain(config.lba_bytes)),
            changes: Changes::new(sim),
            sanitizing: Sanitizing::default(),
            self_tests: SelfTests::default(),
            set,
            link: Rc::new(Link::new(sim, config.link, work.on_data())),
            work,
            slots: CommandSlots::new(sim, config.command_slots),
            power: Power::new(sim),
            media_errors: Cell::new(0),
            saved: Saved::default(),
            telemetry: Telemetry::default(),
            notebook: Notebook::default(),
            latency: Latency::default(),
            windows: Cell::new(None),
            several: Cell::new(config.multipath),
            assigned: RefCell::new(config.assign.clone()),
            jobs: Workers::new(sim, CommandJob::serve),
            fused: Workers::new(sim, FusedJob::serve),
            chores: Workers::new(sim, Chore::run),
            track: sim.trace().track("commands".to_owned()),
            controllers: Controllers::new(),
            me: me.clone(),
            config,
        });
        let weak = Rc::downgrade(&subsystem);
        subsystem.set.storage().on_power_cut(Box::new(move || {
            if let Some(subsystem) = weak.upgrade() {
                subsystem.power_cut();
            }
        }));
        if let Some(set) = subsystem.set.zones() {
            let weak = Rc::downgrade(&subsystem);
            set.on_zone_change(Box::new(move |zslba| {
                if let Some(subsystem) = weak.upgrade() {
                    subsystem.controllers.all().iter().for_each(|controller| controller.zone_changed(zslba));
                }
            }));
        }
        if let Some(set) = subsystem.set.open_channel() {
            let weak = Rc::downgrade(&subsystem);
            set.on_notice(Box::new(move |lid| {
                if let Some(subsystem) = weak.upgrade() {
                    subsystem.controllers.all().iter().for_each(|controller| controller.raise(Event::own_log(lid)));
                }
            }));
        }
        subsystem
    }

    /// The controller of hosts in this process, which creates queue pairs at once.
    ///
    /// # Panics
    /// When it exists.
    pub fn in_process(&self) -> Rc<NvmeController> {
        let controller = self.controller(IN_PROCESS_CONTROLLER, HostIdentity::default(), TransportModel::InProcess);
        self.attach_in_use(&controller);
        self.controllers.add(&controller);
        controller
    }

    fn controller(&self, id: u16, host: HostIdentity, model: TransportModel) -> Rc<NvmeController> {
        NvmeController::new(self.handle(), (id, self.controllers.next_number()), host, model)
    }

    /// A handle for work on behalf of the subsystem.
    fn handle(&self) -> Rc<NvmSubsystem> {
        self.me.upgrade().expect("the caller holds one")
    }

    /// The command set.
    pub fn command_set(&self) -> &AnySet {
        &self.set
    }

    /// The controller's processors, if it has any.
    pub fn processors(&self) -> Option<&Rc<Processors>> {
        self.work.processors()
    }

    /// Busy time of the host link, to the host and from it.
    pub fn link_usage(&self) -> [Totals; 2] {
        self.link.usage()
    }

    /// The controllers that have a namespace attached.
    pub(crate) fn controllers_with(&self, nsid: u32) -> Vec<u16> {
        let all = self.controllers.all().into_iter();
        all.filter(|controller| controller.namespaces.get(nsid).is_some()).map(|controller| controller.id()).collect()
    }

    /// The drive information for a host of one namespace. Without a namespace, it has no blocks.
    pub(crate) fn info_of(&self, namespace: Option<&Namespace>) -> DriveInfo {
        let set = self.set.info();
        DriveInfo {
            nsid: namespace.map_or(1, |namespace| namespace.nsid),
            blocks: namespace.map_or(0, |namespace| namespace.blocks),
            lba_bytes: namespace.map_or(self.config.lba_bytes, |namespace| namespace.lba_bytes),
            metadata_bytes: namespace.map_or(0, |namespace| namespace.format.lba().metadata),
            max_blocks: namespace.map_or(1, |namespace| namespace.max_blocks),
            unit_bytes: set.unit_bytes,
            volatile_cache: set.volatile_cache,
            keeps_data: set.keeps_data,
        }
    }

    /// The drive log without the queues of a controller.
    pub(crate) fn drive_log(&self) -> DriveLog {
        let mut log = DriveLog::new();
        log.now = self.sim.now().ns().into();
        self.set.storage().drive_log(&mut log);
        log.link_busy = by_cause(&self.link.usage());
        log.commands = [self.slots.in_work().into(), self.config.command_slots.into()];
        log
    }

    /// Forgets a dropped controller.
    pub(crate) fn forget(&self, id: u16) {
        self.saved.forget(Registrant::Controller(id));
        self.end_streams(id);
        for namespace in self.namespaces.all() {
            namespace.reservations.forget(Registrant::Controller(id));
            namespace.update_guard();
        }
        self.controllers.remove(id);
        self.slots.set_shared(self.controllers.count() > 1);
    }
}

impl Subsystem for NvmSubsystem {
    fn names(&self) -> &Names {
        &self.names
    }

    fn info(&self) -> DriveInfo {
        self.info_of(self.namespaces.all().first().map(|first| &**first))
    }

    fn block_sizes(&self) -> Rc<BlockSizes> {
        self.namespaces.block_sizes().clone()
    }

    fn new_controller(&self, host: HostIdentity, model: TransportModel) -> Result<Rc<dyn Controller>, Status> {
        let id = self.controllers.free_id().ok_or(Status::CONNECT_CONTROLLER_BUSY)?;
        let controller = self.controller(id, host, model);
        self.attach_in_use(&controller);
        self.controllers.add(&controller);
        self.slots.set_shared(self.controllers.count() > 1);
        Ok(controller)
    }

    fn report_several(&self) {
        self.several.set(true);
    }

    fn assign(&self, rules: &Assignments) {
        self.assigned.replace(rules.clone());
        self.controllers.all().iter().for_each(|controller| controller.update_assigned());
    }

    fn controllers(&self) -> Vec<u16> {
        self.controllers.ids()
    }

    fn outages(&self) -> Vec<(Time, Time)> {
        self.power.outages(self.sim.now())
    }
}
