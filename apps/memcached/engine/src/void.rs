//! What the removal of all items has taken out of memory, until it is freed. Clients would wait if millions of entries were freed at once, so
//! that is done in steps.
//!
//! glibc puts small pieces aside when they are freed, and merges and sorts all of them at the next request for a large piece: 20 to 30 ms
//! after a million items. Each step therefore ends with such a request, and sorts only what the step has freed.

use std::collections::VecDeque;

/// Entries that are freed in a step, which takes a fraction of a millisecond.
pub(crate) const STEP: usize = 1_024;
/// Bytes that are freed in a step, unless its first entry has more.
pub(crate) const STEP_BYTES: u64 = 1 << 20;

/// See the file.
#[derive(Default)]
pub(crate) struct Void {
    parts: VecDeque<Part>,
    /// Of all parts.
    bytes: u64,
}

/// What one removal has taken out.
struct Part {
    entries: Entries,
    left: usize,
    bytes: u64,
}

/// Entries, each of which is freed as it is passed.
pub(crate) type Entries = Box<dyn Iterator<Item = ()>>;

/// The entries of a collection, and their number.
pub(crate) fn entries<C>(collection: C) -> (Entries, usize)
where
    C: IntoIterator<Item: 'static, IntoIter: ExactSizeIterator + 'static>,
{
    let entries = collection.into_iter();
    let count = entries.len();
    (Box::new(entries.map(drop)), count)
}

impl Void {
    /// Adds the parts of a removal, `bytes` bytes together.
    pub(crate) fn add(&mut self, taken: Vec<(Entries, usize)>, bytes: u64) {
        let left = taken.iter().map(|(_, count)| count).sum();
        let entries = Box::new(taken.into_iter().flat_map(|(entries, _)| entries));
        self.parts.push_back(Part { entries, left, bytes });
        self.bytes += bytes;
    }

    /// Bytes of memory that are not free yet.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Frees the entries of a step. Whether there are more.
    pub(crate) fn free_some(&mut self) -> bool {
        self.free(STEP);
        sort_freed();
        !self.parts.is_empty()
    }

    /// Frees up to `most` entries of the oldest removal, of about [`STEP_BYTES`].
    pub(crate) fn free(&mut self, most: usize) {
        let Some(part) = self.parts.front_mut() else { return };
        let of_bytes = STEP_BYTES.saturating_mul(part.left as u64) / part.bytes.max(1);
        let count = part.entries.by_ref().take(most.min(of_bytes.max(1) as usize)).count();
        let freed = (u128::from(part.bytes) * count as u128 / part.left.max(1) as u128) as u64;
        (part.left, part.bytes) = (part.left - count, part.bytes - freed);
        self.bytes -= freed;
        if part.left == 0 {
            self.parts.pop_front();
        }
    }
}

/// Bytes of a request that makes glibc sort what was freed: more than its 1,024 of a small piece, and less than the 64 KiB from which it
/// returns freed memory to the system, and the 128 KiB that it takes from the system separately.
const LARGE: usize = 32 << 10;

/// Makes the allocator merge and sort freed pieces now.
fn sort_freed() {
    drop(std::hint::black_box(Vec::<u8>::with_capacity(LARGE)));
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;

    #[test]
    fn entries_are_freed_in_steps_of_all_removals() {
        let (mut void, value) = (Void::default(), Rc::new(()));
        let some = |count: usize| entries(vec![value.clone(); count]);
        void.add(vec![some(STEP), some(0), some(STEP / 2)], 3_000);
        void.add(vec![some(1)], 7);
        void.add(Vec::new(), 0);
        let seen = |void: &Void| (void.bytes(), Rc::strong_count(&value) - 1);
        assert_eq!(seen(&void), (3_007, STEP * 3 / 2 + 1));
        assert!(void.free_some());
        assert_eq!(seen(&void), (1_007, STEP / 2 + 1));
        assert!(void.free_some());
        assert_eq!(seen(&void), (7, 1));
        assert!(void.free_some());
        assert_eq!(seen(&void), (0, 0));
        assert!(!void.free_some() && !void.free_some());
    }

    /// An entry may have more than a step's bytes, or so few that only their number counts.
    #[test]
    fn a_step_has_few_entries_if_they_are_large() {
        for (bytes, freed) in [(STEP_BYTES * 3, 1), (STEP_BYTES, 1), (STEP_BYTES / 4, 4), (1, STEP)] {
            let mut void = Void::default();
            void.add(vec![entries(vec![(); 2 * STEP])], 2 * STEP as u64 * bytes);
            assert!(void.free_some());
            assert_eq!(void.bytes(), (2 * STEP - freed) as u64 * bytes);
        }
    }
}
