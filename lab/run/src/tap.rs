//! A connection to a drive that records the commands passing through it: the drive's own latencies, below the layers of the
//! host. A model alone needs none, as its host sees the same. Behind a tap a remote drive accounts for its time, as one stage.
//!
//! | listener | where |
//! |---|---|
//! | [`Tally`] | a run on several drives: latencies of the measured phase, and the drive's page |
//! | [`Tail`] | members of a served array, and remote drives: latencies since the server began |

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use nandscape_drive::io::Sink;
use nandscape_drive::{Breakdown, CommandRef, Completion, Drive, DriveInfo, Io, Stage, Token};
use nandscape_lab_workload::{Direction, Outcome, Served};
use nandscape_sim::slots::{Key, Slots};
use nandscape_sim::{Histogram, Sim, Span, Time};
use nandscape_wire_nvme::blocks::BlockWork;
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};

use crate::rig::Placed;

/// Hears of the commands that have passed.
pub(crate) trait Listener {
    /// A read, write, deallocation or flush has ended.
    fn passed(&self, served: &Served<'_>);
}

/// Latencies of a drive since it began.
#[derive(Default)]
pub(crate) struct Tail(RefCell<Outcome>);

impl Tail {
    /// The latencies of one direction.
    pub(crate) fn with<T>(&self, direction: Direction, look: impl FnOnce(&Histogram) -> T) -> T {
        look(&self.0.borrow().tally(direction).latency)
    }
}

impl Listener for Tail {
    fn passed(&self, served: &Served<'_>) {
        record(&mut self.0.borrow_mut(), served);
    }
}

/// Hears nothing.
struct Unheard;

impl Listener for Unheard {
    fn passed(&self, _: &Served<'_>) {}
}

fn record(outcome: &mut Outcome, served: &Served<'_>) {
    let Served { direction, bytes, submitted, completed, completion, .. } = *served;
    outcome.record(direction, bytes, submitted, completed, completion);
}

/// What all connections to one drive of a run record.
pub(crate) struct Tally {
    drives: Rc<[Placed]>,
    number: usize,
    /// When the measured phase began.
    begun: Cell<Option<Time>>,
    outcome: RefCell<Outcome>,
}

impl Tally {
    pub(crate) fn of(drives: &Rc<[Placed]>, number: usize) -> Rc<Tally> {
        Rc::new(Tally { drives: drives.clone(), number, begun: Cell::new(None), outcome: RefCell::default() })
    }

    /// The measured phase begins: commands submitted from now on count.
    pub(crate) fn begin(&self, now: Time) {
        self.begun.set(Some(now));
    }

    /// What was recorded, in the measured phase of the host.
    pub(crate) fn outcome(&self, host: &Outcome) -> Outcome {
        let Outcome { started, ended, interrupted, .. } = *host;
        Outcome { started, ended, interrupted, ..self.outcome.take() }
    }
}

impl Listener for Tally {
    fn passed(&self, served: &Served<'_>) {
        if self.begun.get().is_none_or(|begun| served.submitted < begun) {
            return;
        }
        record(&mut self.outcome.borrow_mut(), served);
        self.drives[self.number].served(served);
    }
}

/// See the module.
pub(crate) struct Tap {
    sim: Sim,
    lba_bytes: u64,
    below: Rc<dyn Drive>,
    listener: Rc<dyn Listener>,
    charge: Charge,
    passing: RefCell<Slots<Passing>>,
    me: Weak<Tap>,
}

/// A remote drive, with its network, as a layer in breakdowns.
pub(crate) const REMOTE: &str = "remote";

/// Whose the time of a command is.
#[derive(Copy, Clone)]
enum Charge {
    /// As the drive below has it.
    AsBelow,
    /// All time that is not accounted for is of this layer.
    Rest(&'static str),
    /// The drive below is the FTL of a host: all is of this layer but the time in the open-channel drive.
    Ftl(&'static str),
}

impl Charge {
    fn charge(self, completion: &mut Completion, latency: Span) {
        match self {
            Charge::AsBelow => {}
            Charge::Rest(layer) => completion.breakdown.charge_rest(layer, latency),
            Charge::Ftl(layer) => completion.breakdown = of_ftl(layer, &completion.breakdown),
        }
    }
}

/// The times of a command in the FTL of a host. To the FTL its flash is an array, in which a command is as long as in the drive.
pub(crate) fn of_ftl(layer: &'static str, times: &Breakdown) -> Breakdown {
    let mut charged = Breakdown::new();
    for stage in Stage::ALL {
        match (stage, times.stage(stage)) {
            (Stage::Array, span) => charged.spend(Stage::Array, span),
            (stage, span) => charged.charge(layer, stage.name(), span),
        }
    }
    charged.meet_all(times.met());
    charged
}

/// A command on its way.
struct Passing {
    token: Token,
    /// `None` of commands that no figure counts.
    direction: Option<Direction>,
    bytes: u64,
    offset: u64,
    submitted: Time,
}

impl Tap {
    /// Over a drive of this process.
    pub(crate) fn over(sim: &Sim, below: Rc<dyn Drive>, listener: Rc<dyn Listener>) -> Rc<Tap> {
        Tap::with(sim, below, listener, Charge::AsBelow)
    }

    /// Over an FTL of a host, which is a layer of this name in breakdowns.
    pub(crate) fn over_ftl(sim: &Sim, below: Rc<dyn Drive>, layer: &'static str) -> Rc<Tap> {
        Tap::with(sim, below, Rc::new(Unheard), Charge::Ftl(layer))
    }

    /// Over a remote drive: all time in it is that of a layer.
    pub(crate) fn over_remote(sim: &Sim, below: Rc<dyn Drive>, listener: Rc<dyn Listener>) -> Rc<Tap> {
        Tap::with(sim, below, listener, Charge::Rest(REMOTE))
    }

    fn with(sim: &Sim, below: Rc<dyn Drive>, listener: Rc<dyn Listener>, charge: Charge) -> Rc<Tap> {
        let (sim, lba_bytes, passing) = (sim.clone(), u64::from(below.info().lba_bytes), RefCell::default());
        Rc::new_cyclic(|me| Tap { sim, lba_bytes, below, listener, charge, passing, me: me.clone() })
    }
}

/// The direction of a command, which is a write with Force Unit Access or is not; `None` of those that neither read, write,
/// deallocate nor flush.
pub(crate) fn direction(opcode: u8, is_forced: bool) -> Option<Direction> {
    match IoOpcode(opcode).block_work() {
        Some(BlockWork::Read) => Some(Direction::Read),
        Some(BlockWork::Write) if is_forced => Some(Direction::Fua),
        Some(BlockWork::Write) => Some(Direction::Write),
        Some(BlockWork::Deallocate) => Some(Direction::Trim),
        None => (IoOpcode(opcode) == IoOpcode::FLUSH).then_some(Direction::Flush),
    }
}

/// Bytes that a command reads or writes. Ranges to deallocate are in its data and are not counted.
fn bytes(command: &SubmissionEntry, lba_bytes: u64) -> u64 {
    u64::from(command.blocks_named()) * lba_bytes
}

/// Where a command reads or writes, in bytes; 0 of one that is in several places.
fn offset(command: &SubmissionEntry, lba_bytes: u64) -> u64 {
    match command.blocks_in_a_row() {
        0 => 0,
        _ => command.slba().saturating_mul(lba_bytes),
    }
}

impl Drive for Tap {
    fn info(&self) -> DriveInfo {
        self.below.info()
    }

    fn submit(&self, io: Io) {
        let Io { command, mem, token } = io;
        let (direction, bytes) =
            (direction(command.opcode, command.is_forced_write()), bytes(&command, self.lba_bytes));
        let offset = offset(&command, self.lba_bytes);
        let passing = Passing { token, direction, bytes, offset, submitted: self.sim.now() };
        let tag = self.passing.borrow_mut().insert(passing).to_bits();
        let me = self.me.upgrade().expect("a connection in use is alive");
        self.below.submit(Io { command, mem, token: Token::new(me, tag) });
    }

    fn cancel(&self, command: CommandRef) -> bool {
        let found = self.passing.borrow().find(|passing| passing.token.is_of(command));
        let me: Rc<dyn Sink> = self.me.upgrade().expect("a connection in use is alive");
        found.is_some_and(|key| self.below.cancel(CommandRef::new(&me, key.to_bits())))
    }
}

impl Sink for Tap {
    fn complete(&self, tag: u64, mut completion: Completion) {
        let passed = self.passing.borrow_mut().remove(Key::from_bits(tag)).expect("a command completes once");
        self.charge.charge(&mut completion, self.sim.now() - passed.submitted);
        if let Some(direction) = passed.direction {
            let Passing { bytes, offset, submitted, .. } = passed;
            let completed = self.sim.now();
            self.listener.passed(&Served { direction, bytes, offset, submitted, completed, completion: &completion });
        }
        passed.token.complete(completion);
    }

    fn announced(&self, tag: u64, remaining: Span) {
        let announcer = self.passing.borrow().get(Key::from_bits(tag)).map(|passing| passing.token.announcer());
        if let Some(announce) = announcer {
            announce(remaining);
        }
    }

    fn is_stopped(&self) -> bool {
        self.sim.is_stopped()
    }
}
