//! Which of several waiting operations a plane or a channel serves first.

use nandscape_drive::breakdown::cause;
use nandscape_sim::{Cause, Class, Who};

/// A rule for the order of service.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Priority {
    /// In the order of asking, whoever asks.
    Fifo,
    /// Reads of the host before everything else.
    ReadsFirst,
}

impl Priority {
    /// All rules, by their names in profiles.
    pub const ALL: [(&str, Priority); 2] = [("fifo", Priority::Fifo), ("reads_first", Priority::ReadsFirst)];

    /// How an operation on behalf of `cause` asks.
    pub fn who(self, cause: Cause) -> Who {
        let urgent = self == Priority::ReadsFirst && cause == cause::HOST_READ;
        Who::new(cause, Class::new(if urgent { 0 } else { 1 }))
    }
}
