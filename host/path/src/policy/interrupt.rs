//! The thread of each command gives its processor away until an interrupt wakes it.

use super::{CompletionPolicy, Notice, Submitted};

/// See the file.
#[derive(Copy, Clone, Default, Debug)]
pub struct Interrupt;

impl CompletionPolicy for Interrupt {
    fn notice(&self, _: &Submitted) -> Notice {
        Notice::Interrupt
    }
}
