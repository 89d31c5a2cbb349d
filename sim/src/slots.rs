//! Storage addressed by generation-tagged keys: a stale key is recognised, for good.

/// Names an entry of one [`Slots`].
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Key {
    index: u32,
    generation: u32,
}

impl Key {
    /// The key as a number, for tags that are numbers.
    pub const fn to_bits(self) -> u64 {
        (self.generation as u64) << 32 | self.index as u64
    }

    /// The key that [`Key::to_bits`] gave.
    pub const fn from_bits(bits: u64) -> Key {
        Key { index: bits as u32, generation: (bits >> 32) as u32 }
    }
}

/// Entries that are added and removed; their room is reused, their keys are not.
#[derive(Debug)]
pub struct Slots<T> {
    entries: Vec<(u32, Option<T>)>,
    free: Vec<u32>,
}

impl<T> Slots<T> {
    /// Storage with no entry.
    pub const fn new() -> Slots<T> {
        Slots { entries: Vec::new(), free: Vec::new() }
    }

    /// Number of entries.
    #[inline]
    pub fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// Whether there is no entry.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds an entry.
    #[inline]
    pub fn insert(&mut self, value: T) -> Key {
        match self.free.pop() {
            Some(index) => {
                let (generation, slot) = &mut self.entries[index as usize];
                *slot = Some(value);
                Key { index, generation: *generation }
            }
            None => {
                let index = u32::try_from(self.entries.len()).expect("more than 2^32 entries");
                self.entries.push((0, Some(value)));
                Key { index, generation: 0 }
            }
        }
    }

    /// The entry, unless the key is stale.
    #[inline]
    pub fn get(&self, key: Key) -> Option<&T> {
        match self.entries.get(key.index as usize) {
            Some((generation, slot)) if *generation == key.generation => slot.as_ref(),
            _ => None,
        }
    }

    /// The entry, unless the key is stale.
    #[inline]
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        match self.entries.get_mut(key.index as usize) {
            Some((generation, slot)) if *generation == key.generation => slot.as_mut(),
            _ => None,
        }
    }

    /// All entries, in the order of their places.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.entries.iter_mut().filter_map(|(_, slot)| slot.as_mut())
    }

    /// The first entry that `is_it` accepts, by its room.
    pub fn find(&self, mut is_it: impl FnMut(&T) -> bool) -> Option<Key> {
        let accepted =
            |(generation, slot): &(u32, Option<T>)| slot.as_ref().is_some_and(&mut is_it).then_some(*generation);
        self.entries.iter().map(accepted).zip(0..).find_map(|(found, index)| Some(Key { index, generation: found? }))
    }

    /// Removes the entry if `ended` returns something of it, unless the key is stale.
    #[inline]
    pub fn remove_if<R>(&mut self, key: Key, ended: impl FnOnce(&mut T) -> Option<R>) -> Option<R> {
        let (generation, slot) = self.entries.get_mut(key.index as usize)?;
        if *generation != key.generation {
            return None;
        }
        let left = ended(slot.as_mut()?)?;
        *slot = None;
        *generation = generation.wrapping_add(1);
        self.free.push(key.index);
        Some(left)
    }

    /// Removes the entry, unless the key is stale.
    #[inline]
    pub fn remove(&mut self, key: Key) -> Option<T> {
        let (generation, slot) = self.entries.get_mut(key.index as usize)?;
        if *generation != key.generation {
            return None;
        }
        let value = slot.take()?;
        *generation = generation.wrapping_add(1);
        self.free.push(key.index);
        Some(value)
    }
}

impl<T> Default for Slots<T> {
    fn default() -> Slots<T> {
        Slots::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_key_finds_nothing_even_when_its_room_is_reused() {
        let mut slots = Slots::new();
        let old = slots.insert('a');
        assert_eq!((slots.find(|letter| *letter == 'a'), slots.find(|letter| *letter == 'b')), (Some(old), None));
        assert_eq!(slots.remove_if(old, |_| None::<()>), None);
        assert_eq!(slots.remove_if(old, |letter| Some(*letter)), Some('a'));
        assert_eq!(slots.remove_if(old, |letter| Some(*letter)), None);
        let new = slots.insert('b');
        assert_eq!(slots.get(old), None);
        assert_eq!(slots.remove(old), None);
        assert_eq!((slots.get(new), slots.len()), (Some(&'b'), 1));
        assert_eq!((slots.remove(new), slots.remove(new)), (Some('b'), None));
    }
}
