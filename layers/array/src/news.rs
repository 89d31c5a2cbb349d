//! Events of the members of an array, for listeners that are notified as they happen.
//!
//! Left out: single commands and chunks, which the counters have.

use crate::array::{Array, Core};
use crate::rebuild::ScrubReport;

/// See the file. Drives have their numbers among those the array was made of.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum News {
    /// A member is out of service: the array continues without it.
    Failed {
        /// The member.
        member: usize,
        /// The drive that it was.
        drive: usize,
    },
    /// More members are missing than the level tolerates.
    Lost,
    /// A member is being rebuilt.
    Rebuilding {
        /// The member.
        member: usize,
        /// The drive that it is from now on.
        drive: usize,
    },
    /// A member has been rebuilt as a whole.
    Rebuilt {
        /// The member.
        member: usize,
        /// The drive that it is.
        drive: usize,
    },
    /// A scrub that [`Array::start_scrub`] has begun has ended.
    Scrubbed(ScrubReport),
}

/// Called with each event.
pub(crate) type Listener = Box<dyn Fn(News)>;

impl Array {
    /// From now on `listener` is called with events of the members, after earlier listeners. It must not use the array.
    pub fn listen(&self, listener: impl Fn(News) + 'static) {
        self.core().listeners.borrow_mut().push(Box::new(listener));
    }
}

impl Core {
    pub(crate) fn tell(&self, news: News) {
        self.listeners.borrow().iter().for_each(|listener| listener(news));
    }
}
