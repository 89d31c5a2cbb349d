//! The queue of notices ahead of completions: all queue pairs of a function share it, and each takes its own.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;

use nandscape_sim::Span;

use super::queue_pair::QueuePair;

/// See the file.
pub(super) struct Announced(RefCell<State>);

struct State {
    queue: QueuePair,
    /// Notices that their queue pairs have not taken, by the number of the pair less one: Command Identifier and remaining time.
    taken: Vec<VecDeque<(u16, Span)>>,
}

impl Announced {
    /// Those of `pairs` queue pairs, whose numbers begin at 1.
    pub(super) fn new(queue: QueuePair, pairs: usize) -> Announced {
        Announced(RefCell::new(State { queue, taken: vec![VecDeque::new(); pairs] }))
    }

    /// The number of its completion queue.
    pub(super) fn id(&self) -> u16 {
        self.0.borrow().queue.id()
    }

    /// The notices of a queue pair that have come.
    pub(super) fn take(&self, pair: u16) -> io::Result<VecDeque<(u16, Span)>> {
        let State { queue, taken } = &mut *self.0.borrow_mut();
        // A server that writes without end does not keep this loop going.
        let depth = usize::from(queue.depth());
        for _ in 0..depth {
            let Some(entry) = queue.reap()? else { break };
            let of = usize::from(entry.sq_id.get()).checked_sub(1).and_then(|index| taken.get_mut(index));
            // A notice for no queue pair has no user, and a pair that is not polled keeps a queue's length of them.
            let Some(of) = of.filter(|of| of.len() < depth) else { continue };
            of.push_back((entry.cid.get(), Span::from_ns(entry.dw0.get().into())));
        }
        queue.tell_head()?;
        let own = usize::from(pair).checked_sub(1).and_then(|index| taken.get_mut(index));
        Ok(own.map(std::mem::take).unwrap_or_default())
    }
}
