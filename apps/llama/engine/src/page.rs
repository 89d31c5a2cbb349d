//! A page in memory: its base, sorted, and a chain of deltas before it (OX 7.2).
//!
//! Leaves and inner pages have the same form. The value of a key of an inner page is the number of the page with the keys from that
//! one on.

use std::rc::Rc;

/// A key or a value.
pub(crate) type Bytes = Rc<[u8]>;

/// A change of a page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Delta {
    Put(Bytes, Bytes),
    Delete(Bytes),
    /// Keys from this one on have moved to another page.
    Split(Bytes, u64),
}

/// See the file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Page {
    /// 0 of a leaf.
    pub(crate) level: u8,
    base: Vec<(Bytes, Bytes)>,
    deltas: Vec<Delta>,
    /// The end of its keys; none of the last page of a level.
    pub(crate) high: Option<Bytes>,
    /// The page with the keys from `high` on.
    pub(crate) right: u64,
    /// Bytes of the entries when consolidated.
    pub(crate) bytes: usize,
    /// Present bytes of base and deltas.
    held: usize,
    /// Deltas, the last ones, that are not in the store.
    fresh: usize,
    /// Whether the base is not in the store.
    is_new: bool,
    /// Pieces in the store, and their bytes.
    pieces: u32,
    stored: usize,
}

/// Bytes of an entry in addition to those of key and value.
pub(crate) const ENTRY: usize = 6;

fn entry_bytes(key: &[u8], value: &[u8]) -> usize {
    ENTRY + key.len() + value.len()
}

/// The part of a page that is written to the store.
pub(crate) enum Part<'a> {
    Whole(&'a [(Bytes, Bytes)]),
    Deltas(&'a [Delta]),
}

impl Page {
    /// A page that is not in the store.
    pub(crate) fn new(level: u8, base: Vec<(Bytes, Bytes)>, high: Option<Bytes>, right: u64) -> Page {
        let bytes = base.iter().map(|(key, value)| entry_bytes(key, value)).sum();
        Page { level, base, high, right, bytes, held: bytes, is_new: true, ..Page::default() }
    }

    /// The page whose base and `deltas` were read from `pieces` pieces, `bytes` bytes together.
    pub(crate) fn stored(mut self, deltas: Vec<Delta>, pieces: u32, bytes: usize) -> Page {
        for delta in deltas {
            self.change(delta);
        }
        (self.fresh, self.is_new, self.pieces, self.stored) = (0, false, pieces, bytes);
        self
    }

    /// Bytes of memory.
    pub(crate) fn memory(&self) -> usize {
        size_of::<Page>() + self.held + 32 * (self.base.len() + self.deltas.len())
    }

    /// Pieces in the store.
    pub(crate) fn pieces(&self) -> u32 {
        self.pieces
    }

    /// Deltas before the base.
    pub(crate) fn chain(&self) -> usize {
        self.deltas.len()
    }

    /// Whether replaced values take more memory than current ones.
    pub(crate) fn is_bloated(&self) -> bool {
        self.held > 2 * self.bytes + 1_024
    }

    /// The value of a key that belongs to the page.
    pub(crate) fn get(&self, key: &[u8]) -> Option<&Bytes> {
        for delta in self.deltas.iter().rev() {
            match delta {
                Delta::Put(there, value) if **there == *key => return Some(value),
                Delta::Delete(there) if **there == *key => return None,
                _ => {}
            }
        }
        let found = self.base.binary_search_by(|(there, _)| (**there).cmp(key)).ok()?;
        Some(&self.base[found].1)
    }

    /// The page below with a key that belongs to this inner page. Nothing is deleted from inner pages.
    pub(crate) fn child(&self, key: &[u8]) -> u64 {
        let at = self.base.partition_point(|(there, _)| **there <= *key);
        let mut best = at.checked_sub(1).map(|at| (&self.base[at].0, &self.base[at].1));
        for delta in &self.deltas {
            if let Delta::Put(there, value) = delta
                && **there <= *key
                && best.is_none_or(|(best, _)| best <= there)
            {
                best = Some((there, value));
            }
        }
        best.map_or(0, |(_, value)| number(value))
    }

    /// Its entries in order, the deltas applied.
    pub(crate) fn entries(&self) -> Vec<(Bytes, Bytes)> {
        let mut entries = self.base.clone();
        for delta in &self.deltas {
            match delta {
                Delta::Put(key, value) => match entries.binary_search_by(|(there, _)| there.cmp(key)) {
                    Ok(at) => entries[at].1 = value.clone(),
                    Err(at) => entries.insert(at, (key.clone(), value.clone())),
                },
                Delta::Delete(key) => {
                    if let Ok(at) = entries.binary_search_by(|(there, _)| there.cmp(key)) {
                        entries.remove(at);
                    }
                }
                Delta::Split(from, _) => entries.truncate(entries.partition_point(|(there, _)| there < from)),
            }
        }
        entries
    }

    /// Puts a change before the page; returns whether its key existed.
    pub(crate) fn change(&mut self, delta: Delta) -> bool {
        let was_there = match &delta {
            Delta::Put(key, value) => {
                let old = self.get(key).map(|old| entry_bytes(key, old));
                self.bytes = self.bytes + entry_bytes(key, value) - old.unwrap_or(0);
                self.held += entry_bytes(key, value);
                old.is_some()
            }
            Delta::Delete(key) => {
                let old = self.get(key).map(|old| entry_bytes(key, old));
                self.bytes -= old.unwrap_or(0);
                self.held += entry_bytes(key, &[]);
                old.is_some()
            }
            Delta::Split(from, right) => {
                let gone = self.entries().into_iter().filter(|(key, _)| key >= from);
                self.bytes -= gone.map(|(key, value)| entry_bytes(&key, &value)).sum::<usize>();
                self.held += entry_bytes(from, &[]);
                (self.high, self.right) = (Some(from.clone()), *right);
                false
            }
        };
        self.deltas.push(delta);
        self.fresh += 1;
        was_there
    }

    /// Makes base and deltas one new base.
    pub(crate) fn consolidate(&mut self) {
        if self.deltas.is_empty() {
            return;
        }
        self.base = self.entries();
        self.deltas.clear();
        self.held = self.bytes;
        self.is_new |= self.fresh > 0;
        self.fresh = 0;
    }

    /// The upper part of its entries, as a page with the page to its right. Both parts have at most `most` bytes,
    /// under two conditions. No entry exceeds half of `most`, and all entries together have at most one and a half
    /// times `most`.
    pub(crate) fn upper_part(&self, most: usize) -> Page {
        let entries = self.entries();
        let (mut lower, mut count) = (0, 0);
        for (key, value) in &entries[..entries.len() - 1] {
            let with = lower + entry_bytes(key, value);
            let is_balanced = lower * 2 >= self.bytes && self.bytes - lower <= most;
            if count > 0 && (with > most || is_balanced) {
                break;
            }
            (lower, count) = (with, count + 1);
        }
        Page::new(self.level, entries[count..].to_vec(), self.high.clone(), self.right)
    }

    /// The first key of a consolidated page.
    pub(crate) fn first(&self) -> Option<&Bytes> {
        self.base.first().map(|(key, _)| key)
    }

    /// The same page under another number, which is not in the store.
    pub(crate) fn moved(mut self) -> Page {
        self.consolidate();
        (self.is_new, self.pieces, self.stored) = (true, 0, 0);
        self
    }

    /// The part of it that is written to a store whose chains have at most `most_pieces` pieces. A chain has at most
    /// the bytes of one and a half pages.
    pub(crate) fn part(&mut self, most_pieces: u32, page_bytes: usize) -> Part<'_> {
        let deltas = &self.deltas[self.deltas.len() - self.fresh..];
        let bytes: usize = deltas.iter().map(Delta::bytes).sum();
        let fits = self.pieces > 0 && self.pieces < most_pieces && self.stored + bytes <= page_bytes * 3 / 2;
        if !self.is_new && fits && bytes < self.bytes && bytes < page_bytes / 2 {
            return Part::Deltas(&self.deltas[self.deltas.len() - self.fresh..]);
        }
        self.consolidate();
        Part::Whole(&self.base)
    }

    /// It is being written to the store, where it takes `bytes` bytes.
    pub(crate) fn saved(&mut self, is_whole: bool, bytes: usize) {
        (self.fresh, self.is_new) = (0, false);
        (self.pieces, self.stored) = if is_whole { (1, bytes) } else { (self.pieces + 1, self.stored + bytes) };
    }
}

impl Delta {
    /// Its bytes in a piece, and those of the piece's head if it is the only one.
    fn bytes(&self) -> usize {
        64 + match self {
            Delta::Put(key, value) => key.len() + value.len(),
            Delta::Delete(key) | Delta::Split(key, _) => key.len(),
        }
    }
}

/// The number that a value is.
pub(crate) fn number(value: &[u8]) -> u64 {
    value.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}
