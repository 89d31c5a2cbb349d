//! Opening: an empty store on empty drives, or the index of what the drives have.
//!
//! The segments of a pair are read from the newest to the oldest, and each from its end to its beginning: the first record of a key that is
//! found counts. A segment counts as far as its chunks are whole on the drive that has more of it; the other drive gets a copy before
//! anything is served. Damaged blocks are what the drive does not have. What is older than the tail that a newer chunk names was given up and does not count.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use nandscape_host_store::Host;
use nandscape_host_store::bytes::{Put as _, Reader, is_sealed, seal};
use nandscape_sim::signal::Signal;

use crate::config::Config;
use crate::drives::{Given, Member};
use crate::engine::Engine;
use crate::error::OpenError;
use crate::log::{Log, REPLICAS, Segment, Spot};
use crate::policy::Policy;
use crate::record::{CHUNK_HEADER, Header, Kind, chunks, records};
use crate::state::{Entry, State};

/// The first bytes of a drive of a store.
const MAGIC: &[u8; 8] = b"NDENGIN1";
/// Bytes of the structure that begins with them.
const SUPER: usize = 48;
/// Where its checksum is.
const SUPER_CRC: usize = 8;
/// The fewest slots of a drive.
const LEAST_SLOTS: u64 = 16;
/// Slots whose first blocks are read at once.
const AT_ONCE: usize = 64;
/// More versions than changes can wait for their drives.
const VERSIONS_UNSEEN: u64 = 1 << 32;
/// The least alignment of chunks, in bytes.
const LEAST_BLOCK: usize = 4_096;

/// The store as each drive records it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct Super {
    id: u64,
    segment: u64,
    slots: u64,
    drives: u32,
    number: u32,
}

impl Super {
    fn to_bytes(self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.u32(0);
        [self.drives, self.number, 0].into_iter().for_each(|number| bytes.u32(number));
        [self.id, self.segment, self.slots].into_iter().for_each(|number| bytes.u64(number));
        seal(&mut bytes[..SUPER], SUPER_CRC);
        bytes
    }

    fn of(bytes: &[u8]) -> Option<Super> {
        let mut reader = Reader(bytes);
        if reader.take(8)? != MAGIC || !is_sealed(bytes.get(..SUPER)?, SUPER_CRC) {
            return None;
        }
        reader.u32()?;
        let (drives, number) = (reader.u32()?, reader.u32()?);
        reader.u32()?;
        Some(Super { drives, number, id: reader.u64()?, segment: reader.u64()?, slots: reader.u64()? })
    }
}

/// A segment as a drive has it, by what its first block says.
#[derive(Copy, Clone, Debug)]
struct Seen {
    slot: u32,
    replica: usize,
}

impl Engine {
    /// Opens the store of these drives, or makes one on empty ones, and begins to serve.
    ///
    /// # Errors
    /// When the drives are not those of one store and not empty, or fail.
    pub async fn open(
        host: &Host,
        drives: Vec<Given>,
        policy: Box<dyn Policy>,
        config: Config,
    ) -> Result<Rc<Engine>, OpenError> {
        let count = drives.len();
        if count == 0 || !count.is_multiple_of(REPLICAS) {
            return Err(OpenError::Count(count));
        }
        let mut members = Vec::new();
        for (number, given) in drives.into_iter().enumerate() {
            members.push(Rc::new(Member::new(host, number, given, policy.needs_control()).await?));
        }
        let shape = shape(&members, &config).await?;
        let unit = |member: &Rc<Member>| member.disk().info.unit_bytes.max(member.disk().info.lba_bytes) as usize;
        let block = members.iter().map(unit).max().unwrap_or(0).max(LEAST_BLOCK);
        let logs = (0..count / REPLICAS).map(|_| Log::new(shape.slots as u32)).collect();
        let config = Config { dirty: config.dirty.min(config.memory / 2), ..config };
        let engine = Rc::new(Engine {
            host: host.clone(),
            config,
            policy,
            members,
            state: RefCell::new(State::new(logs, config.memory)),
            segment: shape.segment,
            id: shape.id,
            block,
            changed: Signal::new(host.sim()),
            waiters: Cell::new(0),
            failed: RefCell::new(None),
            is_closing: Cell::new(false),
            is_closed: Cell::new(false),
            turn: Cell::new(0),
        });
        for pair in 0..count / REPLICAS {
            engine.recover(pair).await?;
        }
        {
            let mut state = engine.state.borrow_mut();
            // Versions that clients have seen and no drive has are not given again.
            let is_new = state.logs.iter().all(|log| log.segments.is_empty());
            state.version += if is_new { 0 } else { VERSIONS_UNSEEN };
        }
        host.sim().spawn(engine.clone().run());
        Ok(engine)
    }

    /// The segments of a pair by number, as the first blocks of the slots of both drives say.
    async fn segments(&self, pair: usize) -> Result<BTreeMap<u64, Vec<Seen>>, OpenError> {
        let slots = self.state.borrow().logs[pair].slots;
        let mut seen: BTreeMap<u64, Vec<Seen>> = BTreeMap::new();
        for replica in 0..REPLICAS {
            let member = &self.members[REPLICAS * pair + replica];
            for first in (0..slots).step_by(AT_ONCE) {
                let some: Vec<u32> = (first..slots.min(first + AT_ONCE as u32)).collect();
                let starts: Vec<u64> = some.iter().map(|slot| self.start_of(*slot)).collect();
                let heads = member.read_all(&starts, CHUNK_HEADER).await?;
                for (slot, bytes) in some.into_iter().zip(heads) {
                    if let Some(header) = Header::peek(&bytes).filter(|header| header.id == self.id) {
                        seen.entry(header.segment).or_default().push(Seen { slot, replica });
                    }
                }
                self.host.tick().await;
            }
        }
        Ok(seen)
    }

    /// Reads the index of a pair, and makes its drives equal.
    async fn recover(&self, pair: usize) -> Result<(), OpenError> {
        let seen = self.segments(pair).await?;
        let mut replay = Replay::default();
        let mut taken = BTreeSet::new();
        // A number may be in several slots: of all but one of them no chunk is whole.
        let split = |(number, places): (u64, Vec<Seen>)| {
            let slots: BTreeSet<u32> = places.iter().map(|seen| seen.slot).collect();
            slots.into_iter().map(move |slot| (number, slot, places.clone())).collect::<Vec<_>>()
        };
        for (number, slot, places) in seen.into_iter().rev().flat_map(split) {
            if number < replay.tail {
                break;
            }
            if taken.contains(&slot) {
                continue;
            }
            let mut images = Vec::new();
            for replica in 0..REPLICAS {
                let has = places.iter().any(|seen| seen.replica == replica && seen.slot == slot);
                let member = &self.members[REPLICAS * pair + replica];
                let image = match has {
                    true => member.read_what_is_left(self.start_of(slot), self.segment as usize).await?,
                    false => Vec::new(),
                };
                let whole = chunks(&image, self.id, self.block);
                images.push((image, whole.into_iter().filter(|header| header.segment == number).collect::<Vec<_>>()));
            }
            let best = if images[1].1.len() > images[0].1.len() { 1 } else { 0 };
            let (image, whole) = &images[best];
            let Some(last) = whole.last().copied() else { continue };
            if number < last.tail {
                continue;
            }
            taken.insert(slot);
            let used = (last.offset as usize + last.len as usize).next_multiple_of(self.block);
            if images[1 - best].1.len() < whole.len() {
                self.members[REPLICAS * pair + 1 - best].write(self.start_of(slot), &image[..used]).await?;
            }
            self.host.bytes(image.len()).await;
            let segment = Segment { slot, used: used as u32, chunks: whole.len() as u32, live: 0, pending: 0 };
            self.replay(pair, number, segment, (image, whole), &mut replay);
            self.host.tick().await;
        }
        self.finish_recovery(pair, &replay, &taken);
        Ok(())
    }

    /// What the records of a segment say, from its end to its beginning.
    fn replay(
        &self,
        pair: usize,
        number: u64,
        segment: Segment,
        (image, whole): (&[u8], &[Header]),
        replay: &mut Replay,
    ) {
        let (now_s, slot) = (self.now_s(), segment.slot);
        let mut state = self.state.borrow_mut();
        state.logs[pair].segments.insert(number, segment);
        for header in whole.iter().rev() {
            replay.tail = replay.tail.max(header.tail);
            state.version = state.version.max(header.version);
            for (offset, record) in records(image, *header).into_iter().rev() {
                if replay.is_cleared {
                    break;
                }
                let key: Rc<[u8]> = record.key.into();
                match record.kind {
                    Kind::Clear => replay.is_cleared = true,
                    Kind::Touch => drop(replay.touched.entry(key).or_insert((record.version, record.expiry))),
                    Kind::Delete => drop(replay.decided.insert(key)),
                    Kind::Put if replay.decided.insert(key.clone()) => {
                        let touched = replay.touched.get(&key).filter(|(version, _)| *version == record.version);
                        let expiry = touched.map_or(record.expiry, |(_, expiry)| *expiry);
                        let spot = Spot { segment: number, slot, offset, len: record.len() as u32 };
                        let is_expired = expiry != 0 && expiry <= now_s;
                        if !is_expired {
                            let entry = found(record.version, (record.flags, expiry), record.value.len(), spot, now_s);
                            state.enter(key, entry);
                        }
                    }
                    Kind::Put => {}
                }
            }
        }
    }

    /// The log continues behind its newest segment.
    fn finish_recovery(&self, pair: usize, replay: &Replay, taken: &BTreeSet<u32>) {
        let mut state = self.state.borrow_mut();
        let log = &mut state.logs[pair];
        let newest = log.segments.last_key_value().map(|(number, segment)| (*number, segment.slot));
        let first = newest.map_or(0, |(_, slot)| slot + 1);
        log.next = newest.map_or(0, |(number, _)| number + 1);
        let slots = log.slots;
        log.free = (0..slots).map(|step| (first + step) % slots).filter(|slot| !taken.contains(slot)).collect();
        log.durable_tail = replay.tail;
    }
}

/// What was found so far, from the newest record on.
#[derive(Default)]
struct Replay {
    /// Keys whose newest record was found.
    decided: BTreeSet<Rc<[u8]>>,
    touched: BTreeMap<Rc<[u8]>, (u64, u64)>,
    is_cleared: bool,
    /// The oldest segment that counts.
    tail: u64,
}

fn found(version: u64, (flags, expiry): (u32, u64), len: usize, spot: Spot, now_s: u64) -> Entry {
    Entry {
        version,
        flags,
        expiry,
        len: len as u32,
        value: None,
        spot: Some(spot),
        is_unpacked: false,
        pins: 0,
        accessed: now_s,
        is_fetched: false,
        is_recent: false,
        is_hot: false,
    }
}

/// Checks that the drives are those of a store, or makes one on empty ones.
async fn shape(members: &[Rc<Member>], config: &Config) -> Result<Super, OpenError> {
    let bytes = |member: &Rc<Member>| member.disk().info.bytes();
    let smallest = members.iter().map(bytes).min().unwrap_or(0);
    let segment = config.segment_for(smallest);
    let slots = (smallest / segment).saturating_sub(1);
    for (drive, member) in members.iter().enumerate() {
        if !member.disk().info.keeps_data {
            return Err(OpenError::KeepsNothing(drive));
        }
        if slots < LEAST_SLOTS {
            let least = segment * (LEAST_SLOTS + 1);
            return Err(OpenError::Small { drive, bytes: bytes(member), least });
        }
    }
    let mut found = Vec::new();
    for (drive, member) in members.iter().enumerate() {
        let lba = member.disk().info.lba_bytes as usize;
        let block = member.read_background(0, SUPER.next_multiple_of(lba)).await?;
        let there = Super::of(&block);
        if there.is_none() && block.iter().any(|byte| *byte != 0) {
            return Err(OpenError::Foreign(drive));
        }
        found.push(there);
    }
    let drives = members.len() as u32;
    match found[0] {
        Some(first) => check_shape(first, &found, smallest).map(|()| first),
        None => {
            let shape = Super { id: config.id, segment, slots, drives, number: 0 };
            make(members, &found, shape).await.map(|()| shape)
        }
    }
}

fn check_shape(first: Super, found: &[Option<Super>], smallest: u64) -> Result<(), OpenError> {
    let other = |drive: usize, what: String| Err(OpenError::Other { drive, what });
    if first.drives as usize != found.len() {
        return other(0, format!("{} drives; as many are valid", first.drives));
    }
    for (drive, there) in found.iter().enumerate() {
        let Some(there) = there else { return Err(OpenError::Foreign(drive)) };
        let wanted = Super { number: drive as u32, ..first };
        if *there != wanted {
            return other(
                drive,
                format!("another drive here: it is number {} of store {:016x}", there.number, there.id),
            );
        }
    }
    if first.segment * (first.slots + 1) > smallest {
        return other(0, format!("drives of {} bytes or more", first.segment * (first.slots + 1)));
    }
    Ok(())
}

/// Makes a store. The first drive is the last to know of it: until then there is none.
async fn make(members: &[Rc<Member>], found: &[Option<Super>], shape: Super) -> Result<(), OpenError> {
    for (drive, member) in members.iter().enumerate() {
        // A drive of a store whose first drive has been replaced has chunks.
        let bytes = member.read_background(shape.segment, CHUNK_HEADER).await?;
        if bytes.iter().any(|byte| *byte != 0) || found[drive].is_some_and(|there| there.number != drive as u32) {
            return Err(OpenError::Foreign(drive));
        }
    }
    for (drive, member) in members.iter().enumerate().rev() {
        let lba = member.disk().info.lba_bytes as usize;
        let mut bytes = Super { number: drive as u32, ..shape }.to_bytes();
        bytes.resize(bytes.len().next_multiple_of(lba.max(LEAST_BLOCK)), 0);
        member.write(0, &bytes).await?;
    }
    Ok(())
}
