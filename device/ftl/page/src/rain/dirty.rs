//! The stripes that have data in the write buffer, and which of them is written to flash next.
//!
//! Each plane group has two lists, of stripes that are in the buffer as a whole and of others, in the order in which their first
//! unit arrived. The policy sees the head of the first list and a few of the second. A stripe that is being written is
//! in neither: data that arrives for it meanwhile waits until it has been written.

use std::collections::{BTreeMap, BTreeSet};

use nandscape_device_ftl_core::policy::{FlushCandidate, FlushPolicy};

use super::layout::Layout;

/// Partial stripes of a group that the policy is shown.
const SHOWN: usize = 4;

/// A stripe with data in the buffer.
struct Entry {
    /// Its members that have any, a bit each.
    members: u32,
    arrival: u64,
    /// The group in whose lists it is; `None` while it is being written.
    group: Option<u32>,
}

/// The stripes of a group, by arrival.
#[derive(Default)]
struct Group {
    full: BTreeSet<(u64, u32)>,
    /// With the members that have data, which the policy is shown.
    partial: BTreeMap<(u64, u32), u32>,
    /// Stripes that are being written.
    under_way: u32,
}

/// See the module.
pub(crate) struct Dirty {
    stripes: BTreeMap<u32, Entry>,
    groups: Vec<Group>,
    arrivals: u64,
    /// Units in the lists and outside them.
    units: u32,
}

impl Dirty {
    pub(crate) fn new(groups: u32) -> Dirty {
        let groups = (0..groups).map(|_| Group::default()).collect();
        Dirty { stripes: BTreeMap::new(), groups, arrivals: 0, units: 0 }
    }

    /// Units that wait to be written.
    pub(crate) fn units(&self) -> u32 {
        self.units
    }

    /// A member of a stripe has data in the buffer. `is_free` means that the stripe is not being written.
    pub(crate) fn add(&mut self, layout: &Layout, stripe: u32, member: u32, is_free: bool) {
        let arrival = self.arrivals;
        let entry = self.stripes.entry(stripe).or_insert(Entry { members: 0, arrival, group: None });
        let bit = 1 << member;
        self.units += u32::from(entry.members & bit == 0);
        let (before, full) = (entry.members, layout.data(stripe));
        entry.members |= bit;
        let key = (entry.arrival, stripe);
        match entry.group {
            Some(group) if entry.members == full && before != full => {
                let group = &mut self.groups[group as usize];
                group.partial.remove(&key);
                group.full.insert(key);
            }
            Some(group) if entry.members != before => {
                self.groups[group as usize].partial.insert(key, entry.members);
            }
            Some(_) => {}
            None if is_free => self.list(layout, stripe),
            None => {}
        }
        self.arrivals += 1;
    }

    /// Puts a stripe into the lists of its group.
    fn list(&mut self, layout: &Layout, stripe: u32) {
        let Some(entry) = self.stripes.get_mut(&stripe) else { return };
        let group = layout.place(stripe).group;
        entry.group = Some(group);
        let lists = &mut self.groups[group as usize];
        let key = (entry.arrival, stripe);
        if entry.members == layout.data(stripe) {
            lists.full.insert(key);
        } else {
            lists.partial.insert(key, entry.members);
        }
    }

    /// A stripe begins to be written: its members with data, which are not waiting any more.
    pub(crate) fn begin(&mut self, layout: &Layout, stripe: u32) -> u32 {
        let members = self.remove(stripe);
        self.groups[layout.place(stripe).group as usize].under_way += 1;
        members
    }

    /// A stripe has been written in `group`, which it may have left.
    pub(crate) fn end(&mut self, layout: &Layout, stripe: u32, group: u32) {
        self.groups[group as usize].under_way -= 1;
        self.list(layout, stripe);
    }

    /// A stripe has no data left in the buffer. Returns its members that had data.
    pub(crate) fn remove(&mut self, stripe: u32) -> u32 {
        let Some(Entry { members, arrival, group }) = self.stripes.remove(&stripe) else { return 0 };
        if let Some(group) = group {
            let group = &mut self.groups[group as usize];
            group.full.remove(&(arrival, stripe));
            group.partial.remove(&(arrival, stripe));
        }
        self.units -= members.count_ones();
        members
    }

    /// The next stripe. At most `most` stripes of each group are written at a time; `collecting` counts the planes that
    /// collect among those of a stripe's members.
    pub(crate) fn next(
        &self,
        policy: &dyn FlushPolicy,
        layout: &Layout,
        most: impl Fn(u32) -> u32,
        collecting: impl Fn(u32, u32) -> u32,
    ) -> Option<u32> {
        let mut best: Option<(u32, u64, u32)> = None;
        for (number, group) in (0..).zip(&self.groups) {
            let is_empty = group.full.is_empty() && group.partial.is_empty();
            if is_empty || group.under_way >= most(number) {
                continue;
            }
            let full = group.full.first().map(|&(arrival, stripe)| (arrival, stripe, layout.data(stripe)));
            let partial = group.partial.iter().map(|(&(arrival, stripe), &members)| (arrival, stripe, members));
            for (arrival, stripe, members) in full.into_iter().chain(partial.take(SHOWN)) {
                let is_full = members == layout.data(stripe);
                let rank = policy.rank(&FlushCandidate { is_full, collecting: collecting(stripe, members) });
                if best.is_none_or(|(least, oldest, _)| (rank, arrival) < (least, oldest)) {
                    best = Some((rank, arrival, stripe));
                }
            }
        }
        best.map(|(_, _, stripe)| stripe)
    }

    /// Checks that members are listed as given: by stripe, those that wait.
    pub(crate) fn check(&self, waiting: &BTreeMap<u32, u32>) -> Result<(), String> {
        let listed: BTreeMap<u32, u32> = self.stripes.iter().map(|(stripe, entry)| (*stripe, entry.members)).collect();
        let wrong = listed.iter().find(|(stripe, members)| waiting.get(stripe) != Some(members));
        let shown = self.groups.iter().flat_map(|group| &group.partial);
        if let Some(((_, stripe), members)) =
            shown.into_iter().find(|((_, stripe), members)| listed.get(stripe) != Some(members))
        {
            return Err(format!("stripe {stripe} is shown with members {members:b}, which are not those that it has"));
        }
        match wrong {
            Some((stripe, members)) => {
                let found = waiting.get(stripe).copied().unwrap_or_default();
                Err(format!("stripe {stripe} is listed with members {members:b}, and has {found:b} in the buffer"))
            }
            None if listed.len() != waiting.len() => Err("a stripe with data in the buffer is not listed".to_owned()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use nandscape_device_ftl_core::policy::{GcTolerant, InOrder};
    use nandscape_device_rig::TestFlash;

    use super::*;

    fn layout() -> Layout {
        let geometry = TestFlash { channels: 4, dies: 2, planes: 1, ..TestFlash::default() }.geometry();
        Layout::new(&geometry, 4, 60)
    }

    #[test]
    fn a_full_stripe_goes_before_older_partial_ones_and_only_where_the_policy_says_so() {
        let (layout, mut dirty) = (layout(), Dirty::new(2));
        let add = |dirty: &mut Dirty, stripe, member| dirty.add(&layout, stripe, member, true);
        add(&mut dirty, 0, 1);
        (0..3).for_each(|member| add(&mut dirty, 3, member));
        add(&mut dirty, 2, 2);
        let next = |dirty: &Dirty, policy: &dyn FlushPolicy| dirty.next(policy, &layout, |_| 9, |_, _| 0);
        assert_eq!((next(&dirty, &GcTolerant), next(&dirty, &InOrder)), (Some(3), Some(0)));
        assert_eq!((dirty.begin(&layout, 3), dirty.units()), (0b111, 2));
        assert_eq!(dirty.next(&InOrder, &layout, |group| group, |_, _| 0), None);
        // A group with a collection comes last, unless its planes are others.
        let collecting = |stripe, _| u32::from(stripe == 0);
        assert_eq!(dirty.next(&GcTolerant, &layout, |_| 9, collecting), Some(2));
    }

    #[test]
    fn what_comes_for_a_stripe_that_is_being_written_waits() {
        let (layout, mut dirty) = (layout(), Dirty::new(2));
        dirty.add(&layout, 1, 0, true);
        assert_eq!(dirty.begin(&layout, 1), 1);
        dirty.add(&layout, 1, 2, false);
        assert_eq!(dirty.next(&InOrder, &layout, |_| 9, |_, _| 0), None);
        assert_eq!(dirty.units(), 1);
        dirty.end(&layout, 1, 1);
        assert_eq!(dirty.next(&InOrder, &layout, |_| 9, |_, _| 0), Some(1));
        assert!(dirty.check(&BTreeMap::from([(1, 0b100)])).is_ok() && dirty.check(&BTreeMap::new()).is_err());
        assert_eq!((dirty.remove(1), dirty.units()), (0b100, 0));
    }
}
