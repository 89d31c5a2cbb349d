//! The possible versions of items, such as the blocks of an array or the keys of a cache.
//!
//! A change makes its version possible when it begins; its acknowledgement makes all other versions impossible. A power cut
//! leaves any possible version; a read that finds a version makes it the only one. Version 0 is the state before any change.
//!
//! Systems that acknowledge changes before they are durable promise that with a flush: what was made before the flush began is
//! certain after it ([`Possible::made`], [`Possible::mark`], [`Possible::flushed`]).

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Debug;

/// See the file.
#[derive(Debug)]
pub struct Possible<K> {
    of: RefCell<BTreeMap<K, Versions>>,
}

/// The possible versions of an item, in the order of their changes.
#[derive(Debug)]
struct Versions {
    all: Vec<u64>,
    /// Versions before the first of `all`, which are impossible.
    before: u64,
    /// The number of the last one that was made, `before` included.
    made: u64,
}

impl Default for Versions {
    fn default() -> Versions {
        Versions { all: vec![0], before: 0, made: 0 }
    }
}

impl Versions {
    /// No version before the one of a number is possible.
    fn drop_before(&mut self, number: u64) {
        let count = number.saturating_sub(self.before).min(self.all.len() as u64 - 1);
        self.all.drain(..count as usize);
        self.before += count;
    }

    fn last(&self) -> u64 {
        self.before + self.all.len() as u64 - 1
    }

    fn only(&mut self, version: u64) {
        self.drop_before(self.last());
        (self.all[0], self.made) = (version, self.before);
    }
}

/// The versions that all items had in memory at a time.
#[derive(Debug)]
pub struct Mark<K>(Vec<(K, u64)>);

impl<K> Default for Possible<K> {
    fn default() -> Possible<K> {
        Possible { of: RefCell::default() }
    }
}

impl<K: Ord + Clone + Debug> Possible<K> {
    /// A change of items to this version has begun.
    pub fn begin(&self, items: impl IntoIterator<Item = K>, version: u64) {
        let mut of = self.of.borrow_mut();
        items.into_iter().for_each(|item| of.entry(item).or_default().all.push(version));
    }

    /// The last change of an item that was begun is made, and not yet durable.
    pub fn made(&self, item: &K) {
        if let Some(versions) = self.of.borrow_mut().get_mut(item) {
            versions.made = versions.last();
        }
    }

    /// It was acknowledged: the items have this version, as no other writer changed them.
    pub fn acknowledge(&self, items: impl IntoIterator<Item = K>, version: u64) {
        let mut of = self.of.borrow_mut();
        items.into_iter().for_each(|item| of.entry(item).or_default().only(version));
    }

    /// What is made now, for [`Possible::flushed`].
    pub fn mark(&self) -> Mark<K> {
        Mark(self.of.borrow().iter().map(|(item, versions)| (item.clone(), versions.made)).collect())
    }

    /// What was made at a mark is durable.
    pub fn flushed(&self, mark: Mark<K>) {
        let mut of = self.of.borrow_mut();
        for (item, made) in mark.0 {
            of.entry(item).or_default().drop_before(made);
        }
    }

    /// The number of the last version of an item that was made, for [`Possible::allows_since`].
    pub fn number_of(&self, item: &K) -> u64 {
        self.of.borrow().get(item).map_or(0, |versions| versions.made)
    }

    /// A system in service returns this version of an item, or returned it at some time since the version of a number was made.
    ///
    /// # Errors
    /// If the version is an older one or was never begun.
    pub fn allows_since(&self, item: &K, version: u64, number: u64) -> Result<(), String> {
        let (all, none) = (self.of.borrow(), Versions::default());
        let of = all.get(item).unwrap_or(&none);
        let first = number.saturating_sub(of.before).min(of.all.len() as u64 - 1) as usize;
        is_one_of(item, version, &of.all[first..])
    }

    /// An item has this version; from now on, it has no other.
    ///
    /// # Errors
    /// If it cannot have it: an acknowledged version was lost, or an old one is present again.
    pub fn found(&self, item: &K, version: u64) -> Result<(), String> {
        self.allows(item, version)?;
        self.acknowledge([item.clone()], version);
        Ok(())
    }

    /// An item has this version now, and may have another later: copies of a change that was not acknowledged may differ.
    ///
    /// # Errors
    /// If it cannot have it: an acknowledged version was lost, or an old one is present again.
    pub fn allows(&self, item: &K, version: u64) -> Result<(), String> {
        let (all, none) = (self.of.borrow(), Versions::default());
        is_one_of(item, version, &all.get(item).unwrap_or(&none).all)
    }

    /// All items that a change was begun of.
    pub fn items(&self) -> Vec<K> {
        self.of.borrow().keys().cloned().collect()
    }
}

fn is_one_of<K: Debug>(item: &K, version: u64, possible: &[u64]) -> Result<(), String> {
    if possible.contains(&version) {
        Ok(())
    } else {
        Err(format!("{item:?} has version {version}, which is none of {possible:?}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_have_what_was_acknowledged_or_is_under_way() {
        let possible = Possible::default();
        assert!(possible.found(&"a", 0).is_ok() && possible.found(&"a", 1).is_err());
        possible.begin(["a", "b"], 1);
        possible.acknowledge(["a"], 1);
        possible.begin(["a"], 2);
        assert_eq!(possible.found(&"a", 0), Err("\"a\" has version 0, which is none of [1, 2]".to_owned()));
        assert!(possible.allows(&"a", 1).is_ok() && possible.allows(&"a", 2).is_ok(), "copies may differ");
        assert!(possible.found(&"b", 0).is_ok() && possible.found(&"a", 2).is_ok());
        assert!(possible.found(&"b", 1).is_err(), "what was not present does not appear");
        assert!(possible.found(&"a", 1).is_err(), "an old version does not come back");
        assert_eq!(possible.items(), ["a", "b"]);
    }

    #[test]
    fn a_flush_makes_certain_what_was_made_before_it_began() {
        let possible = Possible::default();
        let may = |version| possible.allows(&"a", version).is_ok();
        for version in 1..=2 {
            possible.begin(["a"], version);
            possible.made(&"a");
        }
        possible.begin(["a"], 3);
        let mark = possible.mark();
        possible.made(&"a");
        possible.begin(["a"], 0);
        assert!((0..=3).all(may), "nothing is certain before the flush has ended");
        possible.flushed(mark);
        assert!(!may(1) && may(2) && may(3) && may(0));
        let late = possible.mark();
        possible.acknowledge(["a"], 4);
        possible.flushed(late);
        assert!(may(4) && !may(0), "a mark of before an acknowledgement changes nothing");
    }

    #[test]
    fn a_read_in_service_returns_what_was_made_since_it_began() {
        let possible = Possible::default();
        for version in 1..=2 {
            possible.begin(["a"], version);
            possible.made(&"a");
        }
        possible.begin(["a"], 3);
        let number = possible.number_of(&"a");
        let may = |version| possible.allows_since(&"a", version, number).is_ok();
        assert!(!may(1) && may(2) && may(3) && !may(4));
        possible.acknowledge(["a"], 3);
        assert!(may(3) && !may(2), "a version that is certain now");
        assert!(possible.allows_since(&"b", 0, 0).is_ok());
    }
}
