//! For tests that count allocations: a drive that does nothing, behind a controller, and a reactor that is counted.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nandscape_device_controller::{Forward, NvmSubsystem, NvmeController};
use nandscape_drive::testing::INFO;
use nandscape_drive::{Completion, Drive, DriveInfo, Io, Names, Offers, Subsystem};
use nandscape_sim::Sim;
use nandscape_transport_reactor::handle::Figures;
use nandscape_transport_reactor::{Connect, Export, QueueExport, Reactor};
use nandscape_wire_nvme::Status;

/// A drive that completes each command at once.
struct Null;

impl Drive for Null {
    fn info(&self) -> DriveInfo {
        INFO
    }

    fn submit(&self, io: Io) {
        io.token.complete(Completion::of(Status::SUCCESS));
    }
}

/// It behind a controller.
pub(crate) struct NullExport {
    info: DriveInfo,
    controller: Rc<NvmeController>,
    queues: QueueExport,
}

impl Connect for NullExport {
    fn info(&self) -> DriveInfo {
        self.info
    }

    fn connect(&self) -> Result<Rc<dyn Drive>, Status> {
        self.queues.connect()
    }

    fn subsystem(&self) -> Option<Rc<dyn Subsystem>> {
        Some(self.controller.subsystem().clone())
    }
}

impl Export for NullExport {}

impl NullExport {
    /// Another drive that completes commands by itself.
    pub(crate) fn of(sim: &Sim, drive: Rc<dyn Drive>) -> Rc<NullExport> {
        let info = drive.info();
        let (text, config) = (|text: &str| text.to_owned(), Forward::config(&info).unwrap());
        let nqn = text("nqn.2026-11.org.nandscape:null");
        let names = Names { nqn, serial: text("N"), model: text("N"), firmware: text("1") };
        let set = Forward::new(sim, drive, Offers::default());
        let controller = NvmSubsystem::new(sim, set.into(), config, names).in_process();
        let queues = QueueExport::new(sim, controller.clone(), 8, 64);
        Rc::new(NullExport { info, controller, queues })
    }
}

/// See [`NullExport`].
pub(crate) fn null(sim: &Sim) -> Rc<NullExport> {
    NullExport::of(sim, Rc::new(Null))
}

/// The allocations of a reactor's thread.
#[derive(Clone, Default)]
pub(crate) struct Allocations(Arc<AtomicU64>);

impl Allocations {
    /// Runs the reactor to its end, and counts.
    pub(crate) fn of(&self, reactor: Reactor) -> Figures {
        let mut figures = None;
        let info = allocation_counter::measure(|| figures = Some(reactor.run().unwrap().1));
        self.0.store(info.count_total, Ordering::SeqCst);
        figures.expect("it has run")
    }

    /// The counts.
    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// Asserts that a run with `more` additional commands has less than one additional allocation for a hundred of them:
/// figures and tables grow now and then. A transport also allocates a command's buffers when a new number of commands
/// is first under way at once, up to 200 allocations for a depth of 32. Either run may make them, since the threads'
/// turns decide how many commands overlap: with such depths `more` is above 20,000. `allocations` runs that many
/// commands and counts.
pub(crate) fn allocates_nothing(name: &str, (commands, more): (u64, u64), allocations: impl Fn(u64) -> u64) {
    let (short, long) = (allocations(commands), allocations(commands + more));
    let grown = long.saturating_sub(short);
    assert!(grown < more / 100, "{name}: {more} commands more make {grown} allocations more ({short}, then {long})");
}
