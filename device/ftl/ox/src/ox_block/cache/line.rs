//! The slots that wait to be programmed, in order: a doubly linked list, from which any slot can be removed in constant time.

use nandscape_device_ftl_core::address::SlotId;

const NIL: u32 = u32::MAX;

/// See the module.
pub(super) struct Line {
    head: u32,
    tail: u32,
    len: u32,
    /// Of each slot, the previous and the next one.
    links: Box<[[u32; 2]]>,
}

impl Line {
    /// An empty line of a cache that has `slots` slots.
    pub(super) fn new(slots: u32) -> Line {
        Line { head: NIL, tail: NIL, len: 0, links: vec![[NIL; 2]; slots as usize].into() }
    }

    /// The number of slots.
    pub(super) fn len(&self) -> u32 {
        self.len
    }

    /// The slots, the first one first.
    pub(super) fn iter(&self) -> impl Iterator<Item = SlotId> {
        let some = |slot: u32| (slot != NIL).then_some(SlotId(slot));
        std::iter::successors(some(self.head), move |slot| some(self.links[slot.0 as usize][1]))
    }

    pub(super) fn push_back(&mut self, slot: SlotId) {
        let before = std::mem::replace(&mut self.tail, slot.0);
        self.links[slot.0 as usize] = [before, NIL];
        match before {
            NIL => self.head = slot.0,
            before => self.links[before as usize][1] = slot.0,
        }
        self.len += 1;
    }

    pub(super) fn push_front(&mut self, slot: SlotId) {
        let behind = std::mem::replace(&mut self.head, slot.0);
        self.links[slot.0 as usize] = [NIL, behind];
        match behind {
            NIL => self.tail = slot.0,
            behind => self.links[behind as usize][0] = slot.0,
        }
        self.len += 1;
    }

    /// Removes a slot, which must be in the line.
    pub(super) fn remove(&mut self, slot: SlotId) {
        let [before, behind] = self.links[slot.0 as usize];
        match before {
            NIL => self.head = behind,
            before => self.links[before as usize][1] = behind,
        }
        match behind {
            NIL => self.tail = before,
            behind => self.links[behind as usize][0] = before,
        }
        self.len -= 1;
    }

    /// Replaces the line by these slots, in order.
    pub(super) fn refill(&mut self, slots: &[SlotId]) {
        (self.head, self.tail, self.len) = (NIL, NIL, 0);
        slots.iter().for_each(|slot| self.push_back(*slot));
    }

    /// Bytes of memory for each slot.
    pub(super) const BYTES: usize = size_of::<[u32; 2]>();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_leave_from_anywhere_and_come_back_in_front() {
        let mut line = Line::new(5);
        let is = |line: &Line, slots: &[u32]| {
            assert_eq!(line.iter().map(|slot| slot.0).collect::<Vec<_>>(), slots);
            assert_eq!(line.len() as usize, slots.len());
        };
        (0..4).for_each(|slot| line.push_back(SlotId(slot)));
        is(&line, &[0, 1, 2, 3]);
        line.remove(SlotId(2));
        line.remove(SlotId(0));
        is(&line, &[1, 3]);
        line.push_front(SlotId(0));
        line.push_back(SlotId(4));
        is(&line, &[0, 1, 3, 4]);
        line.remove(SlotId(4));
        line.push_back(SlotId(2));
        is(&line, &[0, 1, 3, 2]);
        line.refill(&[SlotId(3), SlotId(1)]);
        is(&line, &[3, 1]);
        line.remove(SlotId(3));
        line.remove(SlotId(1));
        is(&line, &[]);
        line.push_front(SlotId(4));
        is(&line, &[4]);
    }
}
