//! Evicts the least recently used page: a list of frames in order of use.

use super::Replacement;

/// No frame.
const NONE: u32 = u32::MAX;

/// See the file.
pub struct Lru {
    /// The neighbours of each frame in the list: the one used before it, and the one used after it.
    links: Vec<[u32; 2]>,
    /// The frames used last and first.
    ends: [u32; 2],
}

impl Default for Lru {
    fn default() -> Lru {
        Lru { links: Vec::new(), ends: [NONE; 2] }
    }
}

impl Lru {
    /// Sets a neighbour of a frame; of none, an end of the list.
    fn set(&mut self, frame: u32, side: usize, to: u32) {
        match frame {
            NONE => self.ends[side] = to,
            frame => self.links[frame as usize][side] = to,
        }
    }
}

impl Replacement for Lru {
    fn inserted(&mut self, frame: usize) {
        if self.links.len() <= frame {
            self.links.resize(frame + 1, [NONE; 2]);
        }
        let last = self.ends[0];
        self.links[frame] = [last, NONE];
        self.set(last, 1, frame as u32);
        self.ends[0] = frame as u32;
    }

    fn used(&mut self, frame: usize) {
        self.removed(frame);
        self.inserted(frame);
    }

    fn removed(&mut self, frame: usize) {
        let [before, after] = self.links[frame];
        self.set(before, 1, after);
        self.set(after, 0, before);
    }

    fn victim(&mut self) -> Option<usize> {
        (self.ends[1] != NONE).then_some(self.ends[1] as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_that_of_the_last_use() {
        let mut lru = Lru::default();
        (0..4).for_each(|frame| lru.inserted(frame));
        lru.used(0);
        lru.used(2);
        lru.removed(3);
        let mut order = Vec::new();
        while let Some(frame) = lru.victim() {
            order.push(frame);
            lru.removed(frame);
        }
        assert_eq!(order, [1, 0, 2]);
    }
}
