//! Whole states by number, for stores that change several keys as one.
//!
//! Each change also sets the key `batch` to its number. The store after a restart therefore names the change whose state it must
//! have: at least the last acknowledged change, and no half change.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use crate::subject::ensure;

/// A store, as keys and values.
pub type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// The key that has the number of the last change.
pub(crate) const BATCH: &[u8] = b"batch";

/// The new value of a key, or none: it is deleted.
pub type Change = (Vec<u8>, Option<Vec<u8>>);

/// What was changed since the last check, by number.
#[derive(Default)]
pub struct History {
    last: Cell<u64>,
    acknowledged: Cell<u64>,
    /// The state before the first of `since`.
    base: RefCell<Map>,
    since: RefCell<Vec<Vec<Change>>>,
}

fn apply(map: &mut Map, changes: &[Change]) {
    for (key, value) in changes {
        match value {
            Some(value) => drop(map.insert(key.clone(), value.clone())),
            None => drop(map.remove(key)),
        }
    }
}

impl History {
    /// The number of the last change that began.
    pub fn last(&self) -> u64 {
        self.last.get()
    }

    /// The number of the last change that was acknowledged, with all before it.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged.get()
    }

    /// The next change begins: the keys that the store is to change as one, `batch` included. Changes are made in the order of
    /// their numbers.
    pub fn begin(&self, mut changes: Vec<Change>) -> Vec<Change> {
        self.last.set(self.last.get() + 1);
        changes.push((BATCH.to_vec(), Some(self.last.get().to_le_bytes().to_vec())));
        self.since.borrow_mut().push(changes.clone());
        changes
    }

    /// All changes up to this number are acknowledged.
    pub fn acknowledge(&self, number: u64) {
        self.acknowledged.set(self.acknowledged.get().max(number));
    }

    /// Whether a key may have had this value at some time since the change `from` was made.
    pub fn may_be(&self, key: &[u8], value: Option<&Vec<u8>>, from: u64) -> bool {
        let since = self.since.borrow();
        let first = self.last.get() - since.len() as u64;
        let of_key =
            |changes: &[Change]| changes.iter().rev().find(|(of, _)| of == key).map(|(_, new)| new.as_ref() == value);
        for (index, changes) in since.iter().enumerate().rev() {
            match of_key(changes) {
                Some(true) => return true,
                Some(false) if first + (index as u64) < from => return false,
                _ => {}
            }
        }
        self.base.borrow().get(key) == value
    }

    /// Compares the store that a restart found, and continues from its state.
    ///
    /// # Errors
    /// What was lost, is half there, or was never made.
    pub fn check(&self, found: Map) -> Result<(), String> {
        let batch = match found.get(BATCH) {
            None => 0,
            Some(number) => {
                let number = number[..].try_into().map_err(|_| "the number of the last change is torn".to_owned())?;
                u64::from_le_bytes(number)
            }
        };
        let acknowledged = self.acknowledged.get();
        ensure(batch >= acknowledged, || {
            format!("change {acknowledged} was acknowledged, and the store is that of change {batch}")
        })?;
        ensure(batch <= self.last.get(), || format!("change {batch} was never made"))?;
        let since = self.since.take();
        let first = self.last.get() - since.len() as u64;
        let mut right = self.base.take();
        since.iter().take((batch - first) as usize).for_each(|changes| apply(&mut right, changes));
        let wrong = right.iter().find(|(key, value)| found.get(*key) != Some(value)).map(|(key, _)| key);
        let wrong = wrong.or_else(|| found.keys().find(|key| !right.contains_key(*key)));
        if let Some(key) = wrong {
            let key = String::from_utf8_lossy(key);
            return Err(format!("the store is not that of change {batch}: key {key} is wrong"));
        }
        self.base.replace(found);
        self.last.set(batch);
        self.acknowledged.set(batch);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(key: &str, value: u8) -> Change {
        (key.as_bytes().to_vec(), Some(vec![value]))
    }

    #[test]
    fn the_store_is_that_of_one_change_which_is_not_before_the_acknowledged_one() {
        let of = |count: usize| {
            let (history, mut map) = (History::default(), Map::new());
            for number in 1..=3 {
                let changes = history.begin(vec![put("a", number), put("b", number)]);
                if usize::from(number) <= count {
                    apply(&mut map, &changes);
                }
            }
            history.acknowledge(2);
            (history, map)
        };
        assert!([2, 3].iter().all(|count| of(*count).0.check(of(*count).1).is_ok()));
        let (history, map) = of(1);
        let lost = history.check(map);
        assert_eq!(lost, Err("change 2 was acknowledged, and the store is that of change 1".to_owned()));
        let (history, mut map) = of(3);
        map.insert(b"b".to_vec(), vec![2]);
        assert_eq!(history.check(map), Err("the store is not that of change 3: key b is wrong".to_owned()));
        let (history, mut map) = of(2);
        map.insert(b"c".to_vec(), vec![2]);
        assert_eq!(history.check(map), Err("the store is not that of change 2: key c is wrong".to_owned()));
    }

    #[test]
    fn a_read_may_find_what_a_key_had_since_it_began() {
        let history = History::default();
        (1..=3).for_each(|number| drop(history.begin(vec![put("a", number)])));
        let may = |value: Option<u8>, from| history.may_be(b"a", value.map(|value| vec![value]).as_ref(), from);
        assert!(may(Some(3), 3) && !may(Some(2), 3) && may(Some(2), 2) && !may(Some(1), 2));
        assert!(may(None, 0) && !may(None, 1) && may(Some(1), 0));
    }
}
