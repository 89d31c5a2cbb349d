//! The record of a store on each of its drives: the store, the drive's number, and which drives are lost.
//!
//! A *round* is the writing of one record, in turn, on all drives that are not lost. Nothing is served before all of them have it, so a round that
//! a crash interrupts changes nothing for clients. Each record has the last generation that each other drive is known to have taken (a version
//! vector): after a crash it shows which record was written with the knowledge of another one. A drive whose own generation is lower than the
//! others know was restored to an earlier state, and lacks items.
//!
//! A drive that is rebuilt records first that it is lost itself, and at the end that it is not, before the other drives do. So it is never used
//! alone while it lacks items, and may be once it has all. With that first record it begins another *life* under its number, which the vector
//! names as well. So the drive that had the number before is known when it returns: it lacks items, and if it was used alone since, the store is split.
//! A number may have had several drives: [`Lives`] has when the life of each ended.

use std::fmt::{self, Display, Formatter};

use nandscape_apps_store::bytes::{Put as _, Reader, is_sealed, seal};

use crate::drives::Member;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::lives::{LIVES, Lives};

/// The first bytes of a drive of a store; the digit of its format follows.
const MAGIC: &[u8; 7] = b"NDENGIN";
/// Bytes of the structure that begins with them. A drive writes a block as a whole, and has blocks of 512 bytes at least.
pub(crate) const SUPER: usize = 64 + 2 * KNOWN * MOST_DRIVES + LIVES;
/// Bytes of each number that is known of a drive, and the greatest: later rounds are not distinguished.
pub(crate) const KNOWN: usize = 3;
const MOST_KNOWN: u32 = (1 << (8 * KNOWN)) - 1;
/// Where its checksum is.
const SUPER_CRC: usize = 8;
/// The most drives: each has a bit in what is lost.
pub(crate) const MOST_DRIVES: usize = 64;

/// The format of a store.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Format(u8);

impl Format {
    /// The one that this program reads and writes.
    pub const OWN: Format = Format(b'5');

    /// That of a drive, by its first bytes; `None` if it has no store.
    pub(crate) fn of(bytes: &[u8]) -> Option<Format> {
        let digit = *bytes.strip_prefix(MAGIC)?.first()?;
        digit.is_ascii_digit().then_some(Format(digit))
    }
}

impl Display for Format {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", char::from(self.0))
    }
}

/// What is known of the records of a drive. That of a later life is greater.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(crate) struct Known {
    /// Distinguishes the drives that have had the number: the first generation that the one before is not known to have taken.
    life: u32,
    /// The last generation that it has taken.
    taken: u32,
}

/// The store as each drive records it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Super {
    pub(crate) id: u64,
    pub(crate) segment: u64,
    pub(crate) slots: u64,
    pub(crate) drives: u32,
    pub(crate) number: u32,
    pub(crate) replicas: u32,
    /// The number of the round.
    pub(crate) generation: u64,
    /// Drives that are lost, a bit each.
    pub(crate) lost: u64,
    /// What is known of each drive.
    pub(crate) known: [Known; 64],
    /// The lives before the last one of each.
    pub(crate) lives: Lives,
}

impl Super {
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        let mut bytes = [&MAGIC[..], &[Format::OWN.0]].concat();
        bytes.u32(0);
        [self.drives, self.number, self.replicas].into_iter().for_each(|number| bytes.u32(number));
        let numbers = [self.id, self.segment, self.slots, self.generation, self.lost];
        numbers.into_iter().for_each(|number| bytes.u64(number));
        let known = self.known.into_iter().flat_map(|Known { life, taken }| [life, taken]);
        known.for_each(|number| bytes.extend(&number.to_le_bytes()[..KNOWN]));
        self.lives.put(&mut bytes);
        seal(&mut bytes[..SUPER], SUPER_CRC);
        bytes
    }

    pub(crate) fn of(bytes: &[u8]) -> Option<Super> {
        let mut reader = Reader(bytes.get(SUPER_CRC..)?);
        if Format::of(bytes) != Some(Format::OWN) || !is_sealed(bytes.get(..SUPER)?, SUPER_CRC) {
            return None;
        }
        reader.u32()?;
        let (drives, number, replicas) = (reader.u32()?, reader.u32()?, reader.u32()?);
        let (id, segment, slots) = (reader.u64()?, reader.u64()?, reader.u64()?);
        let (generation, lost) = (reader.u64()?, reader.u64()?);
        let mut known = [Known::default(); MOST_DRIVES];
        for one in &mut known {
            let mut number = || reader.take(KNOWN).map(|bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], 0]));
            *one = Known { life: number()?, taken: number()? };
        }
        let lives = Lives::read(&mut reader)?;
        let is_drive = (number as usize) < MOST_DRIVES && drives as usize <= MOST_DRIVES;
        is_drive.then_some(Super { drives, number, replicas, id, segment, slots, generation, lost, known, lives })
    }

    /// The same of another drive, which takes it now.
    pub(crate) fn taken_by(self, drive: usize) -> Super {
        let mut own = Super { number: drive as u32, ..self };
        own.knows_of(drive, self.generation);
        own
    }

    /// A drive has taken a generation.
    fn knows_of(&mut self, drive: usize, generation: u64) {
        let taken = u32::try_from(generation).unwrap_or(MOST_KNOWN).min(MOST_KNOWN);
        self.known[drive].taken = self.known[drive].taken.max(taken);
    }

    /// More may be known of a drive.
    fn learns(&mut self, drive: usize, known: Known) {
        let before = self.known[drive];
        if known.life > before.life {
            self.lives.add(drive, before.life);
        }
        self.known[drive] = known.max(before);
    }

    /// A drive begins another life: it gets all that it lacks. `found` is what it has recorded of itself.
    fn begins_life(&mut self, drive: usize, found: Known) {
        // One that began a life which the others have not recorded has ended the life before.
        self.learns(drive, found);
        let before = self.known[drive];
        self.lives.add(drive, before.life);
        let life = before.life.max(before.taken) + 1;
        self.known[drive] = Known { life: life.min(MOST_KNOWN), taken: 0 };
    }

    /// What this drive has recorded of itself.
    pub(crate) fn own(&self) -> Known {
        self.known[self.number as usize]
    }

    /// Records it on a drive.
    pub(crate) async fn write(self, member: &Member) -> Result<(), EngineError> {
        member.recorded.begins(self.generation);
        member.write_record(&self.taken_by(member.number()).to_bytes()).await?;
        member.recorded.has(self.generation);
        Ok(())
    }

    /// Whether a drive was lost when this was recorded.
    pub(crate) fn lacks(&self, drive: u32) -> bool {
        self.lost >> drive & 1 == 1
    }

    /// Whether another drive's record was known when this was recorded.
    fn knows(&self, other: &Super) -> bool {
        let (known, own) = (self.known[other.number as usize], other.own());
        // Of a drive that another one replaced, what it had taken until then.
        let end = self.lives.end(other.number as usize, own.life, known.life);
        let is_before = known.life > own.life && end > own.taken;
        self.number == other.number || is_before || known.life == own.life && known.taken >= own.taken
    }

    /// Whether another drive has taken a later record than it has now, or was replaced.
    fn supersedes(&self, other: &Super) -> bool {
        self.number != other.number && self.known[other.number as usize] > other.own()
    }

    /// Whether it is not known any more when another drive was replaced.
    pub(crate) fn has_forgotten(&self, other: &Super) -> bool {
        let number = other.number as usize;
        let has_later = self.number != other.number && self.known[number].life > other.own().life;
        has_later && self.lives.has_forgotten(number, other.own().life)
    }

    /// Whether this drive has taken another one's record, or that of a later round.
    fn has(&self, other: &Super) -> bool {
        self.knows(other) || self.generation == other.generation && other.knows(self)
    }

    /// Whether a drive lacks what was written since this was recorded, by the records of all drives that are there.
    fn leaves(&self, drive: u32, all: &[Super]) -> bool {
        if all.iter().any(|one| one.number == drive && self.supersedes(one)) {
            return true;
        }
        if !self.lacks(drive) || drive == self.number {
            // Only the drive itself ends that it is lost.
            return self.lacks(drive);
        }
        // It has been rebuilt since.
        let is_outdated =
            all.iter().any(|other| other.number != self.number && other.knows(self) && !other.lacks(drive));
        // A drive without which nothing was served has not taken it. What one from before lacks shows nothing.
        let is_current = |other: &Super| !all.iter().any(|one| one.supersedes(other));
        let is_unfinished = all.iter().any(|other| !self.lacks(other.number) && !other.has(self) && is_current(other));
        !is_outdated && !is_unfinished
    }
}

/// Whether a drive lacks what others have.
///
/// # Errors
/// Another drive, if each of the two lacks what the other has.
pub(crate) fn is_left(drive: u32, all: &[Super]) -> Result<bool, usize> {
    let own = all.iter().find(|one| one.number == drive);
    let split = |other: &&Super| {
        let own = own.filter(|own| own.number != other.number);
        other.leaves(drive, all) && own.is_some_and(|own| own.leaves(other.number, all))
    };
    match all.iter().find(split) {
        Some(other) => Err(other.number as usize),
        None => Ok(all.iter().any(|one| one.leaves(drive, all))),
    }
}

/// The record that a store continues from, and whether all of its drives have this one. `whole` is a drive that has all items.
pub(crate) fn latest(all: &[Super], is_whole: impl Fn(u32) -> bool) -> Option<(Super, bool)> {
    let mut latest = *all.iter().rev().max_by_key(|one| one.generation)?;
    let is_even = all.len() == latest.drives as usize && all.iter().all(|one| one.generation == latest.generation);
    for one in all.iter().filter(|one| is_whole(one.number)) {
        latest.lives.add_all(&one.lives);
        (0..MOST_DRIVES).for_each(|drive| latest.learns(drive, one.known[drive]));
    }
    all.iter().for_each(|one| latest.learns(one.number as usize, one.own()));
    Some((latest, is_even))
}

impl Engine {
    /// Begins a round: `lost` are lost, a bit each.
    pub(crate) fn begin_round(&self, lost: u64) {
        let before = self.shape.get();
        self.shape.set(Super { generation: before.generation + 1, lost, ..before });
    }

    /// A drive gets all that it lacks from its next record on. `found` is what it has recorded of itself.
    pub(crate) fn begin_life(&self, drive: usize, found: Known) {
        let mut shape = self.shape.get();
        shape.begins_life(drive, found);
        self.shape.set(shape);
    }

    /// Has a drive take the record of this round.
    pub(crate) async fn record(&self, member: &Member) -> Result<(), EngineError> {
        let _alone = self.recording.lock().await;
        let shape = self.shape.get();
        shape.write(member).await?;
        let mut now = self.shape.get();
        now.knows_of(member.number(), shape.generation);
        self.shape.set(now);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Drives that take records, some of which may be away.
    struct Drives(Vec<Super>);

    impl Drives {
        fn new(count: u32) -> Drives {
            let (id, segment, slots, replicas, generation, lost) = (7, 1, 16, 2, 0, 0);
            let record = |number| Super {
                id,
                segment,
                slots,
                drives: count,
                number,
                replicas,
                generation,
                lost,
                known: [Known::default(); MOST_DRIVES],
                lives: Lives::default(),
            };
            Drives((0..count).map(record).collect())
        }

        fn there(&self, drives: &[u32]) -> Vec<Super> {
            drives.iter().map(|drive| self.0[*drive as usize]).collect()
        }

        /// The drives of these that lack something.
        fn left(&self, drives: &[u32]) -> Result<Vec<u32>, (u32, usize)> {
            let all = self.there(drives);
            let mut left = Vec::new();
            for drive in drives {
                if is_left(*drive, &all).map_err(|other| (*drive, other))? {
                    left.push(*drive);
                }
            }
            Ok(left)
        }

        /// Opens the store of some drives; those lost are recorded as such, on as many drives as given, first on those that are rebuilt.
        fn open(&mut self, drives: &[u32], most: usize) -> Super {
            let (all, left) = (self.there(drives), self.left(drives).expect("no split"));
            let (before, _) = latest(&all, |drive| !left.contains(&drive)).expect("a record");
            let is_whole = |drive: &u32| drives.contains(drive) && !left.contains(drive);
            let lost =
                (0..self.0.len() as u32).filter(|drive| !is_whole(drive)).fold(0, |lost, drive| lost | 1 << drive);
            let mut shape = Super { generation: before.generation + 1, lost, ..before };
            left.iter().for_each(|drive| shape.begins_life(*drive as usize, Known::default()));
            let whole: Vec<u32> = drives.iter().copied().filter(is_whole).collect();
            self.take(&mut shape, &[left, whole].concat(), most);
            shape
        }

        fn take(&mut self, shape: &mut Super, drives: &[u32], most: usize) {
            for drive in drives.iter().take(most) {
                self.0[*drive as usize] = shape.taken_by(*drive as usize);
                shape.knows_of(*drive as usize, shape.generation);
            }
        }

        /// A drive has been rebuilt; as many as given record it, that drive first.
        fn join(&mut self, mut shape: Super, drive: u32, others: &[u32], most: usize) {
            shape = Super { generation: shape.generation + 1, lost: shape.lost & !(1 << drive), ..shape };
            self.take(&mut shape, &[&[drive], others].concat(), most);
        }
    }

    const ALL: usize = usize::MAX;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let mut record = Drives::new(4).0[3];
        (record.generation, record.lost) = (1 << 40, 5);
        (record.known[2].life, record.known[63].taken) = (9, MOST_KNOWN);
        record.lives.add(63, 7);
        let bytes = record.to_bytes();
        assert!(bytes.len() == SUPER && SUPER <= 512);
        assert_eq!(Super::of(&bytes), Some(record));
        for place in 0..SUPER {
            let mut torn = bytes.clone();
            torn[place] ^= 0x10;
            assert_eq!(Super::of(&torn), None, "byte {place}");
        }
    }

    /// A crash between the record of the rebuilt drive and that of its twin: each of them may be lost next.
    #[test]
    fn a_rebuilt_drive_may_be_alone_once_it_has_recorded_that() {
        for lost in [0, 1] {
            let mut drives = Drives::new(2);
            drives.open(&[0], ALL);
            let shape = drives.open(&[0, 1], ALL);
            assert_eq!(drives.left(&[0, 1]), Ok(vec![1]));
            assert_eq!(drives.left(&[1]), Ok(vec![1]), "it lacks items, and its twin is away");
            drives.join(shape, 1, &[0], 1);
            assert_eq!(drives.left(&[0, 1]), Ok(vec![]));
            let alone = 1 - lost;
            assert_eq!(drives.left(&[alone]), Ok(vec![]));
            drives.open(&[alone], ALL);
            assert_eq!(drives.left(&[0, 1]), Ok(vec![lost]));
            drives.open(&[0, 1], ALL);
            assert_eq!(drives.left(&[0, 1]), Ok(vec![lost]));
        }
    }

    #[test]
    fn drives_that_were_each_alone_differ() {
        let mut drives = Drives::new(2);
        drives.open(&[0], ALL);
        for _ in 0..3 {
            drives.open(&[1], ALL);
        }
        assert_eq!(drives.left(&[0, 1]), Err((0, 1)));
        // Also after a rebuild whose end one of them has not recorded.
        let mut drives = Drives::new(2);
        drives.open(&[0], ALL);
        let shape = drives.open(&[0, 1], ALL);
        drives.join(shape, 1, &[0], 1);
        drives.open(&[0], ALL);
        assert_eq!(drives.left(&[0, 1]), Ok(vec![1]));
        drives.open(&[1], ALL);
        assert_eq!(drives.left(&[0, 1]), Err((0, 1)));
    }

    /// A drive returns whose place another one has taken, or that was restored to an earlier state.
    #[test]
    fn a_drive_from_before_lacks_items() {
        for rounds in [0, 1, 2, 6] {
            let mut drives = Drives::new(4);
            let old = drives.0[1];
            drives.open(&[0, 2, 3], ALL);
            let shape = drives.open(&[0, 1, 2, 3], ALL);
            drives.join(shape, 1, &[0, 2, 3], ALL);
            assert_eq!(drives.left(&[0, 1, 2, 3]), Ok(vec![]));
            drives.0[1] = old;
            (0..rounds).for_each(|_| _ = drives.open(&[1], ALL));
            for there in [&[0, 1, 2, 3][..], &[0, 1], &[1, 2, 3], &[1, 3]] {
                let left = drives.left(there);
                match rounds {
                    0 => assert_eq!(left, Ok(vec![1]), "{there:?}"),
                    _ => assert!(left.is_err(), "{there:?}: {left:?}"),
                }
            }
        }
        let mut drives = Drives::new(4);
        let old = drives.0[1];
        drives.open(&[0, 1, 2], ALL);
        drives.0[1] = old;
        assert_eq!(drives.left(&[0, 1, 2, 3]), Ok(vec![1, 3]));
    }

    /// Any of the drives that have had a number may return, however often it was replaced, and whether or not it was used alone since.
    #[test]
    fn a_drive_is_known_that_was_replaced_several_times() {
        for (rounds, replaced) in [(1, 2), (3, 2), (2, 5)] {
            let mut drives = Drives::new(4);
            let mut before = vec![drives.0[1]];
            for _ in 0..replaced {
                (0..rounds).for_each(|_| _ = drives.open(&[0, 2, 3], ALL));
                let shape = drives.open(&[0, 1, 2, 3], ALL);
                drives.join(shape, 1, &[0, 2, 3], ALL);
                before.push(drives.0[1]);
            }
            before.pop();
            for (life, old) in before.into_iter().enumerate() {
                let mut drives = Drives(drives.0.clone());
                drives.0[1] = old;
                for alone in 0..30 {
                    for there in [&[0, 1, 2, 3][..], &[0, 1], &[1, 2, 3], &[1, 3]] {
                        let left = drives.left(there);
                        let is_right = if alone == 0 { left == Ok(vec![1]) } else { left.is_err() };
                        assert!(is_right, "{rounds} {replaced}, life {life}, alone {alone} times, {there:?}: {left:?}");
                    }
                    drives.open(&[1], ALL);
                }
            }
        }
    }

    /// A crash after the record of the new drive and before those of the others, which learn of that life from the drive itself.
    #[test]
    fn a_drive_whose_replacement_was_interrupted_is_known() {
        for (rounds, alone) in [(1, 0), (1, 1), (1, 4), (3, 0), (3, 1), (3, 4)] {
            let mut drives = Drives::new(2);
            let old = drives.0[1];
            let mut found = Known::default();
            for records in [1, ALL] {
                let mut shape = drives.open(&[0], ALL);
                (1..rounds).for_each(|_| shape = drives.open(&[0], ALL));
                shape.generation += 1;
                shape.begins_life(1, found);
                drives.take(&mut shape, &[1, 0], records);
                found = drives.0[1].own();
                if records == ALL {
                    drives.join(shape, 1, &[0], ALL);
                }
            }
            assert_eq!(drives.left(&[0, 1]), Ok(vec![]));
            drives.0[1] = old;
            (0..alone).for_each(|_| _ = drives.open(&[1], ALL));
            let left = drives.left(&[0, 1]);
            let is_right = if alone == 0 { left == Ok(vec![1]) } else { left.is_err() };
            assert!(is_right, "{rounds} rounds, alone {alone} times: {left:?}");
        }
    }

    /// With parity, or with other pairs: nothing was served by a round that a drive in use has not taken.
    #[test]
    fn a_loss_that_not_all_have_recorded_does_not_count() {
        let mut drives = Drives::new(3);
        drives.open(&[0, 2], 1);
        assert!(drives.0[0].lacks(1) && !drives.0[2].lacks(1));
        assert_eq!(drives.left(&[0, 1, 2]), Ok(vec![]));
        assert_eq!(drives.left(&[1, 2]), Ok(vec![]));
        drives.open(&[1, 2], ALL);
        assert_eq!(drives.left(&[0, 1, 2]), Ok(vec![0]));
        // A round that all have taken counts, whoever of them is there.
        let mut drives = Drives::new(3);
        drives.open(&[0, 2], ALL);
        assert_eq!(drives.left(&[0, 1]), Ok(vec![1]));
        assert_eq!(drives.left(&[1, 2]), Ok(vec![1]));
    }

    /// The drives of all histories of three drives with parity, with a crash after any record: what was served last is known.
    #[test]
    fn no_history_of_a_group_loses_what_was_served_last() {
        // By the last round that was served, the drives that have it.
        fn go_on(drives: &Drives, served: u64, steps: u32) {
            if steps == 0 {
                return;
            }
            for away in [None, Some(0), Some(1), Some(2)] {
                let there: Vec<u32> = (0..3).filter(|drive| Some(*drive) != away).collect();
                // What is not known without the third drive is refused.
                let Ok(left) = drives.left(&there) else {
                    assert!(away.is_some(), "all drives of a group know what was served last");
                    continue;
                };
                let whole: Vec<u32> = there.iter().copied().filter(|drive| !left.contains(drive)).collect();
                let lacking = whole.iter().find(|drive| served >> **drive & 1 == 0);
                assert_eq!(lacking, None, "{:?} of {there:?} are whole; {served:b} have all", whole);
                if whole.len() < 2 {
                    continue;
                }
                for most in [1, 2, ALL] {
                    let mut next = Drives(drives.0.clone());
                    let shape = next.open(&there, most);
                    let all = whole.iter().fold(0, |all, drive| all | 1 << drive);
                    go_on(&next, if most < there.len() { served } else { all }, steps - 1);
                    for drive in left.iter().filter(|_| most == ALL) {
                        for most in [1, 2, ALL] {
                            let mut joined = Drives(next.0.clone());
                            joined.join(shape, *drive, &whole, most);
                            go_on(&joined, all | 1 << drive, steps - 1);
                        }
                    }
                }
            }
        }
        go_on(&Drives::new(3), 7, 3);
    }
}
