//! A hand moves round the frames. It evicts the first page that was not used since it passed: Corbató, "A paging
//! experiment with the Multics system" (1968). A use sets one bit, where LRU would have to change a list.

use super::Replacement;

/// The state of a frame.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Frame {
    Empty,
    Unused,
    Used,
}

/// See the file.
#[derive(Default)]
pub struct Clock {
    frames: Vec<Frame>,
    hand: usize,
    pages: usize,
}

impl Replacement for Clock {
    fn inserted(&mut self, frame: usize) {
        if self.frames.len() <= frame {
            self.frames.resize(frame + 1, Frame::Empty);
        }
        self.frames[frame] = Frame::Unused;
        self.pages += 1;
    }

    fn used(&mut self, frame: usize) {
        self.frames[frame] = Frame::Used;
    }

    fn removed(&mut self, frame: usize) {
        self.frames[frame] = Frame::Empty;
        self.pages -= 1;
    }

    fn victim(&mut self) -> Option<usize> {
        if self.pages == 0 {
            return None;
        }
        loop {
            let at = self.hand % self.frames.len();
            match self.frames[at] {
                Frame::Unused => return Some(at),
                Frame::Used => self.frames[at] = Frame::Unused,
                Frame::Empty => {}
            }
            self.hand = at + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_used_page_gets_a_second_chance() {
        let mut clock = Clock::default();
        (0..4).for_each(|frame| clock.inserted(frame));
        clock.used(0);
        assert_eq!(clock.victim(), Some(1));
        clock.removed(1);
        clock.inserted(1);
        assert_eq!(clock.victim(), Some(1), "the hand is still there");
        clock.used(1);
        assert_eq!(clock.victim(), Some(2));
        clock.removed(2);
        clock.removed(3);
        assert_eq!(clock.victim(), Some(0), "its chance is over");
    }
}
