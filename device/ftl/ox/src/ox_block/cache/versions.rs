//! The slots of each unit, as chains of a hash table that is as long as the cache has slots.

use nandscape_device_ftl_core::address::SlotId;

const NIL: u32 = u32::MAX;
/// Spreads numbers over the upper bits: 2^32 divided by the golden ratio.
const SPREAD: u32 = 0x9e37_79b9;

/// See the module.
pub(super) struct Versions {
    /// The newest slot of each chain.
    heads: Box<[u32]>,
    /// Of each slot, its unit, and the next older slot of its chain.
    links: Box<[(u32, u32)]>,
    /// Bits of a spread number that are not part of the chain's.
    shift: u32,
}

impl Versions {
    /// No versions, in a cache that has `slots` slots.
    pub(super) fn new(slots: u32) -> Versions {
        let chains = slots.next_power_of_two().max(2);
        Versions {
            heads: vec![NIL; chains as usize].into(),
            links: vec![(0, NIL); slots as usize].into(),
            shift: u32::BITS - chains.trailing_zeros(),
        }
    }

    fn chain(&self, unit: u32) -> usize {
        (unit.wrapping_mul(SPREAD) >> self.shift) as usize
    }

    /// The slots of a chain from one on, which may be none.
    #[inline]
    fn from(&self, first: u32) -> impl Iterator<Item = (u32, SlotId)> {
        let mut next = first;
        std::iter::from_fn(move || {
            let slot = (next != NIL).then_some(SlotId(next))?;
            let unit;
            (unit, next) = self.links[slot.0 as usize];
            Some((unit, slot))
        })
    }

    /// The slots of a unit, the newest first.
    #[inline]
    pub(super) fn of(&self, unit: u32) -> impl Iterator<Item = SlotId> {
        self.from(self.heads[self.chain(unit)]).filter(move |(other, _)| *other == unit).map(|(_, slot)| slot)
    }

    /// The newest slot of a unit.
    #[inline]
    pub(super) fn newest(&self, unit: u32) -> Option<SlotId> {
        self.of(unit).next()
    }

    /// Whether a slot is the oldest of its unit.
    #[inline]
    pub(super) fn is_oldest(&self, slot: SlotId) -> bool {
        let (unit, older) = self.links[slot.0 as usize];
        self.from(older).all(|(other, _)| other != unit)
    }

    /// A slot is the newest version of a unit.
    pub(super) fn push(&mut self, unit: u32, slot: SlotId) {
        let chain = self.chain(unit);
        let older = std::mem::replace(&mut self.heads[chain], slot.0);
        self.links[slot.0 as usize] = (unit, older);
    }

    /// A slot is no version any more.
    pub(super) fn remove(&mut self, slot: SlotId) {
        let (unit, older) = self.links[slot.0 as usize];
        let chain = self.chain(unit);
        let mut newer = self.heads[chain];
        if newer == slot.0 {
            self.heads[chain] = older;
            return;
        }
        while self.links[newer as usize].1 != slot.0 {
            newer = self.links[newer as usize].1;
        }
        self.links[newer as usize].1 = older;
    }

    /// How many slots are versions.
    pub(super) fn count(&self) -> usize {
        self.heads.iter().map(|head| self.from(*head).count()).sum()
    }

    /// Bytes of memory.
    pub(super) fn memory(&self) -> usize {
        size_of_val(&*self.heads) + size_of_val(&*self.links)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use nandscape_sim::Seed;

    use super::*;

    /// The same as lists by unit, in a long random sequence of slots that come and go.
    #[test]
    fn units_have_the_slots_that_were_given_to_them() {
        let mut rng = Seed::new(1).rng();
        for slots in [1, 2, 7, 64] {
            let (mut versions, mut lists) = (Versions::new(slots), BTreeMap::<u32, Vec<SlotId>>::new());
            let mut unit_of = vec![None; slots as usize];
            for _ in 0..5_000 {
                let slot = rng.below(slots.into()) as u32;
                match unit_of[slot as usize].take() {
                    None => {
                        let unit = rng.below(20) as u32;
                        unit_of[slot as usize] = Some(unit);
                        versions.push(unit, SlotId(slot));
                        lists.entry(unit).or_default().insert(0, SlotId(slot));
                    }
                    Some(unit) => {
                        versions.remove(SlotId(slot));
                        lists.entry(unit).or_default().retain(|other| *other != SlotId(slot));
                    }
                }
                for unit in 0..20 {
                    let list = lists.get(&unit).cloned().unwrap_or_default();
                    assert_eq!(versions.of(unit).collect::<Vec<_>>(), list);
                    assert_eq!(versions.newest(unit), list.first().copied());
                    list.iter().for_each(|slot| {
                        assert_eq!(versions.is_oldest(*slot), list.last() == Some(slot), "{slot:?}");
                    });
                }
                assert_eq!(versions.count(), unit_of.iter().flatten().count());
            }
        }
    }
}
