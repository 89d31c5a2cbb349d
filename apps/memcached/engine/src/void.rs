//! What the removal of all items has taken out of memory, until it is freed. Clients would wait if millions of entries were freed at once, so
//! that is done in steps.

use std::collections::VecDeque;

/// Entries that are freed in a step, which takes a fraction of a millisecond.
pub(crate) const STEP: usize = 1_024;

/// See the file.
#[derive(Default)]
pub(crate) struct Void(VecDeque<Part>);

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
    /// Adds what a removal has taken out, which has so many bytes together.
    pub(crate) fn add(&mut self, taken: Vec<(Entries, usize)>, bytes: u64) {
        let left = taken.iter().map(|(_, count)| count).sum();
        let entries = Box::new(taken.into_iter().flat_map(|(entries, _)| entries));
        self.0.push_back(Part { entries, left, bytes });
    }

    /// Bytes of memory that are not free yet.
    pub(crate) fn bytes(&self) -> u64 {
        self.0.iter().map(|part| part.bytes).sum()
    }

    /// Frees the next [`STEP`] entries. Whether there are more.
    pub(crate) fn free_some(&mut self) -> bool {
        if let Some(part) = self.0.front_mut() {
            let count = part.entries.by_ref().take(STEP).count();
            let freed = u128::from(part.bytes) * count as u128 / part.left.max(1) as u128;
            (part.left, part.bytes) = (part.left - count, part.bytes - freed as u64);
            if part.left == 0 {
                self.0.pop_front();
            }
        }
        !self.0.is_empty()
    }
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
}
