//! A queue of turns. The turns before a machine are the difference of two sums: of all turns that have joined before
//! it, and of all that have left.

use std::collections::VecDeque;

use nandscape_sim::Span;

/// See the file.
pub(super) struct Turns {
    queue: VecDeque<usize>,
    /// Of each machine that waits: the sum of turns that had joined before it, and its own.
    waiting: Vec<Option<(Span, Span)>>,
    joined: Span,
    left: Span,
}

impl Turns {
    pub(super) fn new(machines: usize) -> Turns {
        Turns { queue: VecDeque::new(), waiting: vec![None; machines], joined: Span::ZERO, left: Span::ZERO }
    }

    pub(super) fn push(&mut self, vm: usize, turn: Span) {
        self.queue.push_back(vm);
        self.waiting[vm] = Some((self.joined, turn));
        self.joined += turn;
    }

    pub(super) fn pop(&mut self) -> Option<(usize, Span)> {
        let vm = self.queue.pop_front()?;
        let (_, turn) = self.waiting[vm].take()?;
        self.left += turn;
        Some((vm, turn))
    }

    /// The turns before a machine that waits here.
    pub(super) fn before(&self, vm: usize) -> Option<Span> {
        self.waiting[vm].map(|(joined, _)| joined.saturating_sub(self.left))
    }

    /// A machine's own turn, if it waits here.
    pub(super) fn own(&self, vm: usize) -> Span {
        self.waiting[vm].map_or(Span::ZERO, |(_, turn)| turn)
    }

    /// All turns.
    pub(super) fn all(&self) -> Span {
        self.joined.saturating_sub(self.left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_the_queue() {
        let ms = Span::from_ms;
        let mut turns = Turns::new(3);
        turns.push(2, ms(30));
        turns.push(0, ms(5));
        turns.push(1, ms(30));
        assert_eq!((turns.before(2), turns.before(0), turns.before(1)), (Some(ms(0)), Some(ms(30)), Some(ms(35))));
        assert_eq!((turns.all(), turns.own(0)), (ms(65), ms(5)));
        assert_eq!(turns.pop(), Some((2, ms(30))));
        assert_eq!((turns.before(2), turns.before(1), turns.all()), (None, Some(ms(5)), ms(35)));
        turns.push(2, ms(1));
        assert_eq!((turns.before(2), turns.own(2)), (Some(ms(35)), ms(1)));
    }
}
