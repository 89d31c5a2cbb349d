//! How a thread learns of a completion. A policy decides for each command, and sees how long the drive took.

mod hybrid;
mod interrupt;
mod poll;

use nandscape_sim::{Span, Time};

pub use hybrid::Hybrid;
pub use interrupt::Interrupt;
pub use poll::Poll;

use crate::config::Config;

/// A command that a thread submits.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Submitted {
    /// When.
    pub at: Time,
    /// The opcode.
    pub opcode: u8,
    /// Bytes of data.
    pub bytes: u64,
}

/// How the thread learns of one completion.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Notice {
    /// It gives its processor away, and an interrupt wakes it.
    Interrupt,
    /// It sleeps for a time, which may be zero, and then keeps its processor busy until it sees the completion.
    Poll(Span),
}

/// See the file.
pub trait CompletionPolicy {
    /// How the thread of a command is to learn of its completion.
    fn notice(&self, command: &Submitted) -> Notice;

    /// The drive has completed a command after a time.
    fn completed(&self, _command: &Submitted, _took: Span) {}
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
}

impl PolicyKind {
    /// All, by the names that users give them.
    pub const ALL: [(&str, PolicyKind); 3] =
        [("interrupt", PolicyKind::Interrupt), ("poll", PolicyKind::Poll), ("hybrid", PolicyKind::Hybrid)];

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
        }
    }
}
