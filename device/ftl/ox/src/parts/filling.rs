//! When the data in a write cache is programmed.

use std::ops::ControlFlow;

use nandscape_device_ftl_core::address::SlotId;
use nandscape_device_ftl_core::component::{CacheFill, CachedWrites, Room, Submission, WriteCaching};
use smallvec::SmallVec;

/// As soon as there is a page of it.
pub struct Eager;

impl WriteCaching for Eager {
    fn submit(&self, cache: &dyn CachedWrites) -> Submission {
        submit_in_order(cache, |_| true)
    }
}

/// When half of the cache is in use: more units are overwritten in the cache, and programmed only once.
pub struct HalfFull;

impl WriteCaching for HalfFull {
    fn submit(&self, cache: &dyn CachedWrites) -> Submission {
        submit_in_order(cache, |fill| 2 * fill.used >= fill.slots)
    }
}

/// A page of the oldest data in line, when it `is_due` or room is wanted. It is less than a page where a command waits
/// for some of it, or nothing else frees room. Slots that lack sectors are filled on the way.
pub fn submit_in_order(cache: &dyn CachedWrites, is_due: impl FnOnce(&CacheFill) -> bool) -> Submission {
    let fill = cache.fill();
    let is_page_due = || fill.queued >= fill.page && (fill.room != Room::Enough || is_due(&fill));
    if !(fill.room == Room::Never || fill.is_awaited || is_page_due()) {
        return Submission::Wait;
    }
    let (mut whole, mut part, mut is_awaited) = (SmallVec::<[SlotId; 8]>::new(), None, false);
    cache.visit(&mut |next| {
        if next.is_whole {
            whole.push(next.slot);
            is_awaited |= next.is_awaited;
        } else if fill.may_fill {
            part = Some(next.slot);
        }
        match part.is_some() || whole.len() == fill.page as usize {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    let is_page = whole.len() == fill.page as usize;
    match part {
        Some(slot) => Submission::Fill(slot),
        None if is_page || !whole.is_empty() && (fill.room == Room::Never || is_awaited) => Submission::Program(whole),
        None => Submission::Wait,
    }
}

#[cfg(test)]
mod tests {
    use nandscape_device_ftl_core::component::InLine;

    use super::*;

    /// Slots in line: whole ones, those that a command waits for, and parts.
    struct Line(CacheFill, &'static str);

    impl CachedWrites for Line {
        fn fill(&self) -> CacheFill {
            self.0
        }

        fn visit(&self, each: &mut dyn FnMut(InLine) -> ControlFlow<()>) {
            let slots = (0..).map(SlotId).zip(self.1.chars());
            let slots = slots.map(|(slot, kind)| InLine { slot, is_whole: kind != 'p', is_awaited: kind == 'a' });
            let _ = slots.into_iter().try_for_each(each);
        }
    }

    fn fill(used: u32) -> CacheFill {
        let (slots, page, is_awaited) = (8, 2, false);
        CacheFill { queued: used, used, slots, page, is_awaited, room: Room::Enough, may_fill: true }
    }

    fn program(slots: &[u32]) -> Submission {
        Submission::Program(slots.iter().copied().map(SlotId).collect())
    }

    #[test]
    fn data_waits_until_half_of_the_cache_is_in_use() {
        assert_eq!(Eager.submit(&Line(fill(2), "ww")), program(&[0, 1]));
        assert_eq!(HalfFull.submit(&Line(fill(3), "www")), Submission::Wait);
        assert_eq!(HalfFull.submit(&Line(fill(4), "wwww")), program(&[0, 1]));
        let wanted = CacheFill { room: Room::Soon, ..fill(3) };
        assert_eq!(HalfFull.submit(&Line(wanted, "www")), program(&[0, 1]));
    }

    #[test]
    fn less_than_a_page_is_programmed_where_a_command_waits_for_it_or_nothing_else_makes_room() {
        assert_eq!(Eager.submit(&Line(fill(1), "w")), Submission::Wait);
        assert_eq!(Eager.submit(&Line(CacheFill { room: Room::Soon, ..fill(1) }, "w")), Submission::Wait);
        assert_eq!(Eager.submit(&Line(CacheFill { room: Room::Never, ..fill(1) }, "w")), program(&[0]));
        let awaited = CacheFill { is_awaited: true, ..fill(1) };
        assert_eq!(Eager.submit(&Line(awaited, "a")), program(&[0]));
        assert_eq!(Eager.submit(&Line(awaited, "w")), Submission::Wait);
    }

    #[test]
    fn slots_that_lack_sectors_are_filled_unless_too_many_are() {
        assert_eq!(Eager.submit(&Line(fill(3), "wpw")), Submission::Fill(SlotId(1)));
        let full = CacheFill { may_fill: false, ..fill(3) };
        assert_eq!(Eager.submit(&Line(full, "wpw")), program(&[0, 2]));
    }
}
