//! Values of a key-value store that identify their key and their put, so that every read can be checked: it must find a value
//! that was current at some time between its beginning and its end.
//!
//! A value begins with its version: 36 bits count the events of a run, 12 bits the runs on a store, and 16 bits follow from key
//! and version, as do all bytes after it, 8 at a time. Puts and reads are events when they begin, and puts when they end. A put
//! that ended before another put began is out of date when the later put ends. Of concurrent puts either may be the last.
//!
//! Left out: deletes; whether two consecutive reads find two concurrent puts in their order; versions of values of less than 8
//! bytes, whose length alone is checked.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use nandscape_sim::rng::mix;

/// Bits of a version that count events, and runs.
const EVENTS: u32 = 36;
const RUNS: u32 = 12;
const LAST_RUN: u64 = (1 << RUNS) - 1;
/// What has not happened.
const NEVER: u64 = u64::MAX;

/// A read value differs from the put value.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{reads} reads are wrong; the first: {first}")]
pub struct Wrong {
    /// Reads that found something wrong.
    pub reads: u64,
    /// What the first of them found.
    pub first: String,
}

/// A put of a key, as events.
struct Put {
    /// The run that has put it, and its version in that run: the event of its beginning.
    version: (u64, u64),
    begun: u64,
    ended: u64,
    /// The end of the first put that began after this one had ended.
    outdated: u64,
}

/// See the file. Keys are numbers.
pub struct Values {
    key_bytes: usize,
    value_bytes: usize,
    /// The number of this run, once one before it is known; the first has number 0.
    run: Cell<Option<u64>>,
    events: Cell<u64>,
    /// By key, the puts that a read may find: not those that were out of date before every read in progress began.
    puts: RefCell<BTreeMap<u64, Vec<Put>>>,
    /// When the reads in progress began.
    reading: RefCell<BTreeSet<u64>>,
    wrong: RefCell<Option<Wrong>>,
}

/// 8 bytes of a value.
fn word(key: u64, version: u64, place: u64) -> [u8; 8] {
    let number = mix(key ^ version.rotate_left(16) ^ place);
    match place {
        0 => (number << (EVENTS + RUNS) | version).to_le_bytes(),
        _ => number.to_le_bytes(),
    }
}

/// The version of a value, if it has one: run and event.
fn version_of(value: &[u8]) -> Option<(u64, u64)> {
    let first = u64::from_le_bytes(*value.first_chunk()?);
    Some((first >> EVENTS & LAST_RUN, first & ((1 << EVENTS) - 1)))
}

/// Whether all bytes of a value follow from its key and version.
fn is_of(key: u64, value: &[u8]) -> bool {
    let Some((run, event)) = version_of(value) else { return true };
    value.chunks(8).zip(0..).all(|(chunk, place)| word(key, run << EVENTS | event, place).starts_with(chunk))
}

impl Values {
    /// No key has a value. `before` is what the key that is put first has of a run before: later values differ from those of that run.
    pub fn new(key_bytes: usize, value_bytes: usize, before: Option<&[u8]>) -> Values {
        let values = Values {
            key_bytes,
            value_bytes,
            run: Cell::default(),
            events: Cell::new(0),
            puts: RefCell::default(),
            reading: RefCell::default(),
            wrong: RefCell::default(),
        };
        values.comes_after(before.unwrap_or_default());
        values
    }

    fn run(&self) -> u64 {
        self.run.get().unwrap_or_default()
    }

    /// Has this run a number after that of the run of a value. Numbers wrap: the later of two is less than half of all ahead of the other one.
    fn comes_after(&self, value: &[u8]) {
        let Some((before, _)) = version_of(value) else { return };
        let next = (before + 1) & LAST_RUN;
        if self.run.get().is_none_or(|run| next.wrapping_sub(run) & LAST_RUN <= LAST_RUN / 2) {
            self.run.set(Some(next));
        }
    }

    /// The bytes of a key: the number, 8 of them, and as many '0' as it takes.
    pub fn key(&self, number: u64) -> Vec<u8> {
        let mut key = number.to_be_bytes().to_vec();
        key.resize(self.key_bytes.max(8), b'0');
        key
    }

    /// The value of a version of a key.
    pub fn value(&self, key: u64, version: u64) -> Vec<u8> {
        let mut value = vec![0; self.value_bytes];
        for (chunk, place) in value.chunks_mut(8).zip(0..) {
            chunk.copy_from_slice(&word(key, self.run() << EVENTS | version, place)[..chunk.len()]);
        }
        value
    }

    fn event(&self) -> u64 {
        self.events.set(self.events.get() + 1);
        self.events.get()
    }

    /// A put of a key begins; its version.
    pub fn begin_put(&self, key: u64) -> u64 {
        let begun = self.event();
        self.puts.borrow_mut().entry(key).or_default().push(Put {
            version: (self.run(), begun),
            begun,
            ended: NEVER,
            outdated: NEVER,
        });
        begun
    }

    /// A put has ended: reads from now on find it, or a version as new.
    pub fn end_put(&self, key: u64, version: u64) {
        let (now, first_read) = (self.event(), self.reading.borrow().first().copied());
        let mut puts = self.puts.borrow_mut();
        let puts = puts.entry(key).or_default();
        for put in puts.iter_mut() {
            if put.begun == version {
                put.ended = now;
            } else if put.ended < version {
                put.outdated = put.outdated.min(now);
            }
        }
        puts.retain(|put| put.outdated == NEVER || first_read.is_some_and(|begun| begun < put.outdated));
    }

    /// A key has this value of a run before, which later reads are to find. The bytes of the key are those of [`Values::key`]. All values are
    /// adopted before the first put, which thus differs from all of them.
    ///
    /// # Errors
    /// What the value or the key is not.
    pub fn adopt(&self, key: &[u8], value: &[u8]) -> Result<(), String> {
        let known = number(key).filter(|number| self.key(*number) == key);
        let Some(key) = known else { return Err(format!("{key:02x?} is no key of {} bytes", self.key_bytes.max(8))) };
        if value.len() != self.value_bytes {
            let wanted = self.value_bytes;
            return Err(format!("key {key:016x} has a value of {} bytes, and values of {wanted} are put", value.len()));
        }
        if !is_of(key, value) {
            return Err(not_of(key));
        }
        self.comes_after(value);
        let (begun, ended) = (self.event(), self.event());
        let version = version_of(value).unwrap_or((self.run(), begun));
        self.puts.borrow_mut().insert(key, vec![Put { version, begun, ended, outdated: NEVER }]);
        Ok(())
    }

    /// Whether a put of a key has begun, or its value was adopted.
    pub fn has(&self, key: u64) -> bool {
        self.puts.borrow().contains_key(&key)
    }

    /// A read begins.
    pub fn begin_read(&self) -> Reading<'_> {
        let begun = self.event();
        self.reading.borrow_mut().insert(begun);
        Reading { values: self, begun }
    }

    /// What reads have found so far.
    ///
    /// # Errors
    /// When a read was wrong.
    pub fn check(&self) -> Result<(), Wrong> {
        self.wrong.borrow().clone().map_or(Ok(()), Err)
    }

    fn note(&self, read: Result<(), String>) {
        if let Err(what) = read {
            self.wrong.borrow_mut().get_or_insert(Wrong { reads: 0, first: what }).reads += 1;
        }
    }
}

/// A read in progress.
pub struct Reading<'a> {
    values: &'a Values,
    begun: u64,
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.values.reading.borrow_mut().remove(&self.begun);
    }
}

impl Reading<'_> {
    /// Checks the result of a get.
    pub fn get(&self, key: u64, found: Option<&[u8]>) {
        let puts = self.values.puts.borrow();
        let puts = puts.get(&key).map_or(&[][..], |puts| puts);
        self.values.note(match found {
            Some(value) => self.value(key, puts, value),
            None if self.is_there(puts) => Err(format!("key {key:016x} was put and is not there")),
            None => Ok(()),
        });
    }

    /// Checks what a scan of at most `most` keys from one on has found. Keys and values of runs before may be there, too.
    pub fn scan(&self, from: &[u8], most: usize, found: &[(Vec<u8>, Vec<u8>)]) {
        self.values.note(self.scanned(from, most, found));
    }

    fn scanned(&self, from: &[u8], most: usize, found: &[(Vec<u8>, Vec<u8>)]) -> Result<(), String> {
        if found.len() > most {
            return Err(format!("a scan of {most} keys found {}", found.len()));
        }
        if found.first().is_some_and(|(first, _)| &first[..] < from) || !found.is_sorted_by(|(a, _), (b, _)| a < b) {
            return Err(format!("a scan from {from:02x?} on is not in the order of keys"));
        }
        let puts = self.values.puts.borrow();
        for (bytes, value) in found {
            let key = number(bytes).ok_or_else(|| format!("a scan found {bytes:02x?}, which was never put"))?;
            match puts.get(&key).filter(|_| *bytes == self.values.key(key)) {
                Some(puts) => self.value(key, puts, value)?,
                None if is_of(key, value) => {}
                None => return Err(not_of(key)),
            }
        }
        let last = found.last().filter(|_| found.len() == most).map(|(last, _)| last);
        let first =
            from.iter().copied().chain(std::iter::repeat(0)).take(8).fold(0, |all, byte| all << 8 | u64::from(byte));
        for (key, puts) in puts.range(first..) {
            let bytes = self.values.key(*key);
            if last.is_some_and(|last| bytes > *last) {
                break;
            }
            let is_found = || found.binary_search_by(|(found, _)| found.cmp(&bytes)).is_ok();
            if &bytes[..] >= from && self.is_there(puts) && !is_found() {
                return Err(format!("a scan has not found key {key:016x}, which was put"));
            }
        }
        Ok(())
    }

    /// Whether a put had ended when the read began.
    fn is_there(&self, puts: &[Put]) -> bool {
        puts.iter().any(|put| put.ended < self.begun)
    }

    fn value(&self, key: u64, puts: &[Put], value: &[u8]) -> Result<(), String> {
        let right = self.values.value_bytes;
        let is_before = version_of(value).is_none_or(|(run, _)| run != self.values.run());
        if is_before && !self.is_there(puts) && is_of(key, value) {
            // A run before has put it, of whatever length.
            return Ok(());
        }
        if value.len() != right {
            return Err(format!("key {key:016x} has {} bytes, and {right} were put", value.len()));
        }
        if !is_of(key, value) {
            return Err(not_of(key));
        }
        let Some(version) = version_of(value) else { return Ok(()) };
        let (run, event) = version;
        match puts.iter().any(|put| put.version == version && put.outdated > self.begun) {
            true => Ok(()),
            false if run != self.values.run() => Err(format!("key {key:016x} has a value of a run before")),
            false => Err(format!("key {key:016x} has version {event}, which was out of date when the read began")),
        }
    }
}

fn not_of(key: u64) -> String {
    format!("key {key:016x} has a value that was not put for it")
}

/// The number of a key.
fn number(key: &[u8]) -> Option<u64> {
    key.first_chunk().map(|bytes| u64::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Pair = (Vec<u8>, Vec<u8>);

    const KEY: u64 = 3;
    const NEXT: u64 = 4;

    fn put(values: &Values, key: u64) -> Vec<u8> {
        let version = values.begin_put(key);
        values.end_put(key, version);
        values.value(key, version)
    }

    /// Reads that are wrong of those that find something for a key.
    fn wrong(values: &Values, key: u64, found: Option<&[u8]>) -> bool {
        let before = values.wrong.take();
        values.begin_read().get(key, found);
        let is_wrong = values.check().is_err();
        values.wrong.replace(before);
        is_wrong
    }

    #[test]
    fn any_changed_byte_of_a_value_and_that_of_another_key_are_noticed() {
        for bytes in [8, 15, 16, 1_000] {
            let values = Values::new(8, bytes, None);
            let (right, other) = (put(&values, KEY), put(&values, NEXT));
            assert!(!wrong(&values, KEY, Some(&right)));
            for at in 0..bytes {
                let mut changed = right.clone();
                changed[at] ^= 4;
                assert!(wrong(&values, KEY, Some(&changed)), "byte {at} of {bytes}");
            }
            assert!(wrong(&values, KEY, Some(&other)) && wrong(&values, KEY, Some(&right[1..])));
            assert!(wrong(&values, KEY, None) && !wrong(&values, 5, None));
        }
    }

    #[test]
    fn a_value_that_was_out_of_date_when_the_read_began_is_stale_and_puts_at_once_may_both_be_there() {
        let values = Values::new(20, 100, None);
        let old = put(&values, KEY);
        let early = values.begin_read();
        let (one, two) = (values.begin_put(KEY), values.begin_put(KEY));
        let [first, second] = [one, two].map(|version| values.value(KEY, version));
        for may in [&old, &first, &second] {
            assert!(!wrong(&values, KEY, Some(may)), "puts go on");
        }
        values.end_put(KEY, two);
        assert!(wrong(&values, KEY, Some(&old)), "the second put has ended");
        values.end_put(KEY, one);
        assert!(!wrong(&values, KEY, Some(&first)) && !wrong(&values, KEY, Some(&second)));
        let new = put(&values, KEY);
        for stale in [&old, &first, &second] {
            assert!(wrong(&values, KEY, Some(stale)));
            early.get(KEY, Some(stale));
        }
        assert!(!wrong(&values, KEY, Some(&new)));
        early.get(KEY, Some(&new));
        assert_eq!(values.check(), Ok(()), "a read that began before may find any of them");
        let kept = |values: &Values| values.puts.borrow()[&KEY].len();
        assert_eq!(kept(&values), 4);
        drop(early);
        put(&values, KEY);
        assert_eq!(kept(&values), 1, "no read may find the others");
    }

    #[test]
    fn values_of_a_run_before_are_stale() {
        let before = Values::new(8, 100, None);
        let old = put(&before, KEY);
        let values = Values::new(8, 100, Some(&old));
        let new = put(&values, KEY);
        assert!(wrong(&values, KEY, Some(&old)) && !wrong(&values, KEY, Some(&new)));
        // Where no put has ended they may be there.
        let key = |key| values.key(key);
        let unknown = put(&before, NEXT);
        let found = [(key(KEY), new), (key(NEXT), unknown)];
        values.begin_read().scan(&key(KEY), 5, &found);
        values.begin_put(NEXT);
        values.begin_read().scan(&key(KEY), 5, &found);
        assert!(!wrong(&values, NEXT, Some(&found[1].1)) && !wrong(&values, NEXT, None));
        assert_eq!(values.check(), Ok(()));
    }

    #[test]
    fn an_adopted_value_is_current_until_it_is_put_again() {
        for bytes in [4, 100] {
            let before = Values::new(20, bytes, None);
            let old = [KEY, NEXT].map(|key| put(&before, key));
            let values = Values::new(20, bytes, Some(&old[0]));
            for (key, value) in [KEY, NEXT].into_iter().zip(&old) {
                assert_eq!(values.adopt(&values.key(key), value), Ok(()));
            }
            assert!(values.has(KEY) && !values.has(5));
            assert!(!wrong(&values, KEY, Some(&old[0])) && wrong(&values, KEY, None));
            let new = put(&values, KEY);
            assert!(!wrong(&values, KEY, Some(&new)) && !wrong(&values, NEXT, Some(&old[1])));
            // Values without a version are only as long as they should be.
            assert_eq!(wrong(&values, KEY, Some(&old[0])), bytes > 8);
            let refused = |key: &[u8], value: &[u8]| values.adopt(key, value).unwrap_err();
            assert!(refused(&values.key(KEY)[1..], &old[0]).contains("is no key of 20 bytes"));
            assert!(refused(&values.key(KEY), &old[0][1..]).contains("has a value of"));
            if bytes > 8 {
                assert!(refused(&values.key(5), &old[0]).contains("was not put for it"));
            }
        }
    }

    /// The second run put one key only, as the third does: the version of its put would be the same by its number of events alone.
    #[test]
    fn a_put_differs_from_all_adopted_values() {
        let first = Values::new(8, 100, None);
        let mut state = [KEY, NEXT].map(|key| put(&first, key));
        for _ in 0..3 {
            let values = Values::new(8, 100, Some(&state[1]));
            for (key, value) in [KEY, NEXT].into_iter().zip(&state) {
                assert_eq!(values.adopt(&values.key(key), value), Ok(()));
            }
            let new = put(&values, KEY);
            assert!(wrong(&values, KEY, Some(&state[0])), "the put is lost");
            assert!(!wrong(&values, KEY, Some(&new)) && !wrong(&values, NEXT, Some(&state[1])));
            state[0] = new;
        }
    }

    #[test]
    fn numbers_of_runs_wrap() {
        let of_run = |run| {
            let before = Values::new(8, 100, None);
            before.run.set(Some(run));
            put(&before, KEY)
        };
        for (adopted, run) in
            [(&[][..], 0), (&[7], 8), (&[3_000, 2_999], 3_001), (&[4_095, 4_094], 0), (&[4_094, 0], 1)]
        {
            let values = Values::new(8, 100, None);
            adopted.iter().for_each(|run| assert_eq!(values.adopt(&values.key(KEY), &of_run(*run)), Ok(())));
            assert_eq!(values.run(), run, "{adopted:?}");
        }
    }

    #[test]
    fn a_scan_has_all_keys_that_were_put_in_order_with_their_values() {
        let values = Values::new(20, 100, None);
        let key = |key| values.key(key);
        let [stale, _] = [put(&values, KEY), put(&values, 5)];
        let [one, two, three] = [KEY, NEXT, 5].map(|key| (values.key(key), put(&values, key)));
        let coming = values.begin_put(9);
        let scan = |most, found: &[&Pair]| {
            let found: Vec<_> = found.iter().copied().cloned().collect();
            values.begin_read().scanned(&key(KEY), most, &found)
        };
        assert_eq!(scan(3, &[&one, &two, &three]), Ok(()));
        assert_eq!(scan(2, &[&one, &two]), Ok(()), "there is no room for more");
        assert_eq!(scan(9, &[&one, &two, &three]), Ok(()), "the last one is being put");
        assert_eq!(scan(9, &[&one, &two, &three, &(key(9), values.value(9, coming))]), Ok(()));
        let wrong: [(usize, &[&Pair]); 7] = [
            (3, &[]),
            (3, &[&two, &three]),
            (3, &[&one, &three]),
            (4, &[&one, &two]),
            (3, &[&two, &one, &three]),
            (3, &[&(key(KEY), stale), &two, &three]),
            (3, &[&one, &(key(NEXT), three.1.clone()), &three]),
        ];
        for (most, found) in wrong {
            assert!(scan(most, found).is_err(), "{found:?}");
        }
        assert!(scan(2, &[&one, &two, &three]).is_err(), "more than was asked for");
        assert!(scan(3, &[&(vec![9; 3], vec![0; 100])]).is_err(), "no key at all");
    }
}
