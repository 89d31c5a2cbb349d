//! `stats detail`: what clients ask for, by the prefixes of their keys, which end before a colon.

use std::collections::BTreeMap;

/// The most prefixes that are counted, and the most bytes that they have together: a client may invent any number, and asks for all at once.
const MOST: usize = 1_024;
const MOST_BYTES: usize = 32 << 10;

/// The counts of a prefix.
#[derive(Copy, Clone, Default)]
struct Counts {
    gets: u64,
    hits: u64,
    sets: u64,
    deletes: u64,
}

/// See the file.
#[derive(Default)]
pub(crate) struct Prefixes {
    is_on: bool,
    counts: BTreeMap<Vec<u8>, Counts>,
    /// Bytes of the prefixes.
    bytes: usize,
}

impl Prefixes {
    /// Begins to count, or ends: what was counted stays.
    pub(crate) fn switch(&mut self, is_on: bool) {
        self.is_on = is_on;
    }

    /// Forgets what was counted.
    pub(crate) fn reset(&mut self) {
        self.counts.clear();
        self.bytes = 0;
    }

    pub(crate) fn get(&mut self, key: &[u8], is_hit: bool) {
        self.count(key, |counts| (counts.gets, counts.hits) = (counts.gets + 1, counts.hits + u64::from(is_hit)));
    }

    pub(crate) fn set(&mut self, key: &[u8]) {
        self.count(key, |counts| counts.sets += 1);
    }

    pub(crate) fn delete(&mut self, key: &[u8]) {
        self.count(key, |counts| counts.deletes += 1);
    }

    fn count(&mut self, key: &[u8], change: impl FnOnce(&mut Counts)) {
        let Some(end) = key.iter().position(|byte| *byte == b':').filter(|_| self.is_on) else { return };
        let prefix = &key[..end];
        if let Some(counts) = self.counts.get_mut(prefix) {
            change(counts);
        } else if self.counts.len() < MOST && self.bytes + end <= MOST_BYTES {
            self.bytes += end;
            change(self.counts.entry(prefix.to_vec()).or_default());
        }
    }

    /// `stats detail dump`.
    pub(crate) fn dump(&self) -> Vec<u8> {
        let line = |(prefix, Counts { gets, hits, sets, deletes }): (&Vec<u8>, &Counts)| {
            let counts = format!(" get {gets} hit {hits} set {sets} del {deletes}\r\n");
            [b"PREFIX ", &prefix[..], counts.as_bytes()].concat()
        };
        self.counts.iter().flat_map(line).chain(*b"END\r\n").collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_counted_while_that_is_on_and_up_to_a_bound() {
        let mut prefixes = Prefixes::default();
        prefixes.get(b"a:1", true);
        prefixes.switch(true);
        prefixes.get(b"a:1", true);
        prefixes.get(b"a:2:3", false);
        prefixes.get(b"none", true);
        prefixes.set(b":x");
        prefixes.delete(b"a:1");
        let counted = b"PREFIX  get 0 hit 0 set 1 del 0\r\nPREFIX a get 2 hit 1 set 0 del 1\r\nEND\r\n";
        assert_eq!(prefixes.dump(), counted);
        prefixes.switch(false);
        prefixes.get(b"a:1", true);
        assert_eq!(prefixes.dump(), counted);
        prefixes.switch(true);
        (0..2_000).for_each(|number| prefixes.set(format!("{number}:").as_bytes()));
        let lines = |prefixes: &Prefixes| prefixes.dump().split(|byte| *byte == b'\n').count() - 1;
        assert_eq!(lines(&prefixes), MOST + 1);
        prefixes.reset();
        assert_eq!(prefixes.dump(), b"END\r\n");
        (0..2_000).for_each(|number| prefixes.set(format!("{number:0249}:").as_bytes()));
        assert_eq!(lines(&prefixes), MOST_BYTES / 249 + 1);
    }
}
