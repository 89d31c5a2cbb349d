//! The thread of each command polls from the submission on (Linux: `RWF_HIPRI` with `io_poll_delay` of -1).

use nandscape_sim::Span;

use super::{CompletionPolicy, Notice, Submitted};

/// See the file.
#[derive(Copy, Clone, Default, Debug)]
pub struct Poll;

impl CompletionPolicy for Poll {
    fn notice(&self, _: &Submitted) -> Notice {
        Notice::Poll(Span::ZERO)
    }
}
