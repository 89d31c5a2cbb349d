//! How a thread learns of a completion. A policy decides for each command, and sees how it ended. It knows no clock: the same policies
//! decide for threads of a simulated machine and for threads of this one.

mod adaptive;
mod hybrid;
mod interrupt;
mod means;
mod poll;
mod precompletion;

use nandscape_sim::{Span, Time};
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};

pub use adaptive::Adaptive;
pub use hybrid::Hybrid;
pub use interrupt::Interrupt;
pub use poll::Poll;
pub use precompletion::Precompletion;

use crate::config::Config;
use crate::path;

/// A command that a thread submits.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Submitted {
    /// When.
    pub at: Time,
    /// The opcode.
    pub opcode: u8,
    /// Bytes of data.
    pub bytes: u64,
    /// Mapping units of the drive that the data touches.
    pub units: u32,
    /// The processor.
    pub cpu: usize,
    /// Other I/Os of the processor that have not ended, and threads that wait for it.
    pub others: usize,
}

impl Submitted {
    /// A command within one mapping unit, on a processor that nothing else wants.
    pub fn of(at: Time, opcode: u8, bytes: u64) -> Submitted {
        Submitted { at, opcode, bytes, units: 1, cpu: 0, others: 0 }
    }

    /// A command to a namespace with logical blocks, of a drive with mapping units, of these bytes.
    pub fn by(at: Time, command: &SubmissionEntry, (lba_bytes, unit_bytes): (u32, u32)) -> Submitted {
        let units = path::units_of(command, lba_bytes, unit_bytes);
        Submitted { units, ..Submitted::of(at, command.opcode, path::bytes_of(command, lba_bytes)) }
    }

    /// Whether it can ask for a notice and for the free space of the write buffer.
    pub fn can_ask(&self) -> bool {
        matches!(IoOpcode(self.opcode), IoOpcode::READ | IoOpcode::WRITE)
    }
}

/// How the thread learns of one completion.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Notice {
    /// It gives its processor away, and an interrupt wakes it.
    Interrupt,
    /// It sleeps for a time, which may be zero, and then keeps its processor busy until it sees the completion.
    Poll(Span),
    /// It keeps its processor busy for a time, and then gives it away until an interrupt wakes it.
    PollFor(Span),
    /// It gives its processor away; the drive's notice wakes it, and it keeps its processor busy until this time after the predicted end,
    /// then gives it away again. Without a notice, an interrupt wakes it.
    Announced(Span),
}

/// How a thread has learnt of a completion.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Way {
    /// By an interrupt.
    Interrupt,
    /// By polling.
    Poll,
    /// By polling, which a notice had it begin in time.
    Ready,
    /// A notice woke it, and the completion was there already.
    Late,
    /// By an interrupt, after it had polled for nothing.
    GaveUp,
}

/// How a command has ended.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Ended {
    /// The drive's time.
    pub took: Span,
    /// How the thread learnt of it.
    pub way: Way,
    /// From then on until the thread had its processor.
    pub delay: Span,
    /// From the drive's notice until the thread had its processor, if a notice came.
    pub noticed: Option<Span>,
    /// The free space of the write buffer, in mapping units, if the drive was asked.
    pub buffer_free: Option<u32>,
}

impl Ended {
    /// At once, after a time in the drive.
    pub fn by(way: Way, took: Span) -> Ended {
        Ended { took, way, delay: Span::ZERO, noticed: None, buffer_free: None }
    }

    /// Seen by polling, after a time in the drive.
    pub fn polled(took: Span) -> Ended {
        Ended::by(Way::Poll, took)
    }
}

/// See the file.
pub trait CompletionPolicy {
    /// How the thread of a command is to learn of its completion. The command is submitted then.
    fn notice(&self, command: &Submitted) -> Notice;

    /// Whether reads and writes ask the drive for notices and for the free space of its write buffer.
    fn asks(&self) -> bool {
        false
    }

    /// A command has ended, and its thread has learnt of that.
    fn completed(&self, _command: &Submitted, _ended: &Ended) {}

    /// The thread of a command no longer waits for it.
    fn dropped(&self, _command: &Submitted) {}

    /// A window that the drive's notices are to have from now on; `None` if it stays.
    fn new_window(&self) -> Option<Span> {
        None
    }
}

/// The policies by name.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum PolicyKind {
    /// [`Interrupt`].
    Interrupt,
    /// [`Poll`].
    Poll,
    /// [`Hybrid`].
    Hybrid,
    /// [`Adaptive`].
    Adaptive,
    /// [`Precompletion`].
    Precompletion,
}

impl PolicyKind {
    /// All, by the names that users give them.
    pub const ALL: [(&str, PolicyKind); 5] = [
        ("interrupt", PolicyKind::Interrupt),
        ("poll", PolicyKind::Poll),
        ("hybrid", PolicyKind::Hybrid),
        ("adaptive", PolicyKind::Adaptive),
        ("precompletion", PolicyKind::Precompletion),
    ];

    /// The name.
    pub fn name(self) -> &'static str {
        PolicyKind::ALL[self as usize].0
    }

    /// The policy with the settings of a host.
    pub fn make(self, config: &Config) -> Box<dyn CompletionPolicy> {
        match self {
            PolicyKind::Interrupt => Box::new(Interrupt),
            PolicyKind::Poll => Box::new(Poll),
            PolicyKind::Hybrid => Box::new(Hybrid::new(config.poll_sleep)),
            PolicyKind::Adaptive => Box::new(Adaptive::new(config.poll_gain)),
            PolicyKind::Precompletion => Box::new(Precompletion::new(config.window, config.patience)),
        }
    }
}
