//! The possible versions of items, such as the blocks of an array or the keys of a cache.
//!
//! A change makes its version possible when it begins; its acknowledgement makes all other versions impossible. A power cut
//! leaves any possible version; a read that finds a version makes it the only one. Version 0 is the state before any change.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

/// See the file.
#[derive(Debug)]
pub struct Possible<K> {
    of: RefCell<BTreeMap<K, BTreeSet<u64>>>,
}

impl<K> Default for Possible<K> {
    fn default() -> Possible<K> {
        Possible { of: RefCell::default() }
    }
}

impl<K: Ord + Clone + Debug> Possible<K> {
    /// A change of items to this version has begun.
    pub fn begin(&self, items: impl IntoIterator<Item = K>, version: u64) {
        let mut of = self.of.borrow_mut();
        for item in items {
            of.entry(item).or_insert_with(|| BTreeSet::from([0])).insert(version);
        }
    }

    /// It was acknowledged: the items have this version, as no other writer changed them.
    pub fn acknowledge(&self, items: impl IntoIterator<Item = K>, version: u64) {
        let mut of = self.of.borrow_mut();
        items.into_iter().for_each(|item| drop(of.insert(item, BTreeSet::from([version]))));
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
        let (all, none) = (self.of.borrow(), BTreeSet::from([0]));
        let of = all.get(item).unwrap_or(&none);
        if of.contains(&version) {
            Ok(())
        } else {
            Err(format!("{item:?} has version {version}, which is none of {of:?}"))
        }
    }

    /// All items that a change was begun of.
    pub fn items(&self) -> Vec<K> {
        self.of.borrow().keys().cloned().collect()
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
        assert_eq!(possible.found(&"a", 0), Err("\"a\" has version 0, which is none of {1, 2}".to_owned()));
        assert!(possible.allows(&"a", 1).is_ok() && possible.allows(&"a", 2).is_ok(), "copies may differ");
        assert!(possible.found(&"b", 0).is_ok() && possible.found(&"a", 2).is_ok());
        assert!(possible.found(&"b", 1).is_err(), "what was not present does not appear");
        assert!(possible.found(&"a", 1).is_err(), "an old version does not come back");
        assert_eq!(possible.items(), ["a", "b"]);
    }
}
