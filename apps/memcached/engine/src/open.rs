//! Opening: an empty store on empty drives, or the store that the drives have.
//!
//! Each drive records the store, its own number, and which drives were lost when it was last recorded. A drive that is missing is done
//! without if its twin is there, or with parity all others; one that is empty, or was lost and has returned, is rebuilt from them while the
//! store is served.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_apps_store::Host;
use nandscape_apps_store::bytes::{Put as _, Reader, is_sealed, seal};
use nandscape_sim::Span;
use nandscape_sim::signal::Signal;

use crate::config::{Config, SEGMENT};
use crate::drives::{Given, Member};
use crate::engine::Engine;
use crate::error::{EngineError, Event, OpenError};
use crate::log::Log;
use crate::placement::{Layout, Placement};
use crate::policy::{Need, Policy};
use crate::record::CHUNK_HEADER;
use crate::slots::Slots;
use crate::small::{Small, buckets};
use crate::state::State;
use crate::zones::{LEAST_ACTIVE, OWN};

/// The first bytes of a drive of a store.
const MAGIC: &[u8; 8] = b"NDENGIN2";
/// Bytes of the structure that begins with them.
pub(crate) const SUPER: usize = 64;
/// Where its checksum is.
const SUPER_CRC: usize = 8;
/// The fewest slots of a drive.
const LEAST_SLOTS: u64 = 16;
/// The most drives: each has a bit in what is lost.
const MOST_DRIVES: usize = 64;
/// More versions than changes can wait for their drives.
const VERSIONS_UNSEEN: u64 = 1 << 32;
/// The least alignment of chunks, in bytes.
const LEAST_BLOCK: usize = 4_096;

/// The store as each drive records it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Super {
    pub(crate) id: u64,
    pub(crate) segment: u64,
    pub(crate) slots: u64,
    pub(crate) drives: u32,
    pub(crate) number: u32,
    pub(crate) replicas: u32,
    /// How often the lost drives have changed.
    pub(crate) generation: u64,
    /// Drives that are lost, a bit each.
    pub(crate) lost: u64,
}

impl Super {
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.u32(0);
        [self.drives, self.number, self.replicas].into_iter().for_each(|number| bytes.u32(number));
        let numbers = [self.id, self.segment, self.slots, self.generation, self.lost];
        numbers.into_iter().for_each(|number| bytes.u64(number));
        seal(&mut bytes[..SUPER], SUPER_CRC);
        bytes
    }

    pub(crate) fn of(bytes: &[u8]) -> Option<Super> {
        let mut reader = Reader(bytes);
        if reader.take(8)? != MAGIC || !is_sealed(bytes.get(..SUPER)?, SUPER_CRC) {
            return None;
        }
        reader.u32()?;
        let (drives, number, replicas) = (reader.u32()?, reader.u32()?, reader.u32()?);
        let (id, segment, slots) = (reader.u64()?, reader.u64()?, reader.u64()?);
        Some(Super { drives, number, replicas, id, segment, slots, generation: reader.u64()?, lost: reader.u64()? })
    }

    /// Records it on a drive.
    pub(crate) async fn write(self, member: &Member) -> Result<(), EngineError> {
        member.recorded.begins(self.generation);
        member.write_record(&Super { number: member.number() as u32, ..self }.to_bytes()).await?;
        member.recorded.has(self.generation);
        Ok(())
    }

    /// Whether another drive was lost when this was recorded.
    fn lacks(&self, other: u32) -> bool {
        self.lost >> other & 1 == 1
    }
}

/// What a drive is for the store that is opened.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    /// It has all items of its group.
    Whole,
    /// It is to get them from the others of its group.
    Rebuilt,
    Missing,
}

impl Engine {
    /// Opens the store of these drives, or makes one on empty ones, and begins to serve. `None` is a drive that is missing.
    ///
    /// # Errors
    /// When the drives are not those of one store and not empty, none of a pair has its items, or a drive fails.
    pub async fn open(
        host: &Host,
        drives: Vec<Option<Given>>,
        policy: Box<dyn Policy>,
        config: Config,
    ) -> Result<Rc<Engine>, OpenError> {
        let (count, placement) = (drives.len(), config.placement);
        if count > MOST_DRIVES || !placement.fits(count, policy.replicas()) {
            return Err(if placement == Placement::Parity {
                OpenError::Parity(count)
            } else {
                OpenError::Count(count)
            });
        }
        if placement == Placement::Parity && policy.needs() == Need::Zones {
            return Err(OpenError::ZonedParity);
        }
        let layout = Layout::new(placement, count, policy.replicas());
        let replicas = layout.width;
        let mut members = Vec::new();
        for (number, given) in drives.into_iter().enumerate() {
            let wanted = (policy.needs(), Span::from_ms(config.patience_ms));
            members.push(Rc::new(Member::new(host, number, given, wanted).await?));
        }
        let unit = |member: &Rc<Member>| {
            member.disk().map_or(0, |disk| disk.info.unit_bytes.max(disk.info.lba_bytes) as usize)
        };
        let block = members.iter().map(unit).max().unwrap_or(0).max(LEAST_BLOCK);
        let room = Room::of(&members)?;
        let (shape, parts, is_even) = shape(&members, (&room, block), &config, layout).await?;
        let slots = room.slots(shape.segment);
        let log = |_| Log::new(shape.slots as u32, layout).with_together(slots.together);
        let logs = (0..count / replicas).map(log).collect();
        let config = Config { dirty: config.dirty.min(config.memory / 2), ..config };
        let mut state = State::new(logs, config.memory, config.caches);
        state.small = Small::new(buckets_of(&shape, layout, count / replicas), config.small as usize);
        let engine = Rc::new(Engine {
            host: host.clone(),
            config,
            policy,
            layout,
            members,
            state: RefCell::new(state),
            segment: shape.segment,
            slots,
            id: shape.id,
            shape: Cell::new(shape),
            events: RefCell::default(),
            block,
            changed: Signal::new(host.sim()),
            waiters: Cell::new(0),
            failed: RefCell::new(None),
            is_closing: Cell::new(false),
            is_closed: Cell::new(false),
            turn: Cell::new(0),
        });
        for pair in 0..count / replicas {
            engine.recover(pair, &parts[pair * replicas..][..replicas]).await?;
        }
        engine.check_table()?;
        engine.settle(&parts, is_even && !config.records_opening).await?;
        engine.begin_rebuilds(&parts);
        {
            let mut state = engine.state.borrow_mut();
            // Versions that clients have seen and no drive has are not given again.
            let is_new = state.logs.iter().all(|log| log.next == 0) && state.version == 1;
            state.version += if is_new { 0 } else { VERSIONS_UNSEEN };
        }
        host.sim().spawn(engine.clone().run());
        Ok(engine)
    }

    /// The table of buckets may take half of the index's memory.
    fn check_table(&self) -> Result<(), OpenError> {
        let (table, Config { memory, dirty, .. }) = (self.state.borrow().small.table_bytes(), self.config);
        match table > (memory - dirty) / 2 {
            true => {
                // Valid whether `dirty` stays or grows with the memory.
                let least = (2 * u128::from(table) * u128::from(memory)).div_ceil(u128::from(memory - dirty).max(1));
                Err(OpenError::SmallMemory { table, memory, least: least as u64 })
            }
            false => Ok(()),
        }
    }

    /// Records which drives are missing or lack segments, before anything is served. `is_even` is that all others record the same, and
    /// this opening needs no record.
    async fn settle(&self, parts: &[Part], is_even: bool) -> Result<(), OpenError> {
        let of = |part: Part| (0..parts.len()).filter(move |drive| parts[*drive] == part);
        let twin = |drive: usize| self.twin(drive);
        for drive in of(Part::Missing) {
            self.state.borrow_mut().lose(drive / self.replicas(), drive % self.replicas());
            self.event(Event::Missing { drive, twin: twin(drive) });
        }
        let lost = of(Part::Missing).chain(of(Part::Rebuilt)).fold(0, |lost, drive| lost | 1 << drive);
        let before = self.shape.get();
        if before.lost == lost && is_even {
            return Ok(());
        }
        let shape = Super { generation: before.generation + 1, lost, ..before };
        self.shape.set(shape);
        for drive in of(Part::Whole) {
            shape.write(&self.members[drive]).await?;
        }
        Ok(())
    }
}

/// The buckets of a store, as many in each log. They depend on the store alone: keys keep theirs.
fn buckets_of(shape: &Super, layout: Layout, logs: usize) -> u32 {
    let of_log = buckets(shape.slots * shape.segment * layout.columns() as u64);
    u32::try_from(of_log.saturating_mul(logs as u64)).unwrap_or(u32::MAX / logs as u32 * logs as u32)
}

/// The room that the smallest drive has for a log.
struct Room {
    /// That drive, and its bytes.
    smallest: (usize, u64),
    /// Of drives with zones: the bytes from one to the next, how many each takes, and how many zones are for segments.
    zones: Option<(u64, u64, u64)>,
}

impl Room {
    fn of(members: &[Rc<Member>]) -> Result<Room, OpenError> {
        let bytes = |member: &Rc<Member>| Some((member.number(), member.disk()?.info.bytes()));
        let smallest = members.iter().filter_map(bytes).min_by_key(|(_, bytes)| *bytes).unwrap_or_default();
        let mut all = members.iter().filter_map(|member| Some((member.number(), member.zoned()?)));
        let Some((first, like)) = all.next() else { return Ok(Room { smallest, zones: None }) };
        let mut fewest = (first, like.count());
        for (drive, zoned) in std::iter::once((first, like)).chain(all) {
            if (zoned.size(), zoned.capacity) != (like.size(), like.capacity) {
                let [own, other] = [zoned, like].map(|zoned| (zoned.size(), zoned.capacity));
                let what = format!(
                    "zones every {} bytes that take {}, and drive {first} has zones every {} bytes that take {}; equal zones are valid",
                    own.0, own.1, other.0, other.1
                );
                return Err(OpenError::Zones { drive, what });
            }
            if let Some(most) = zoned.most_active().filter(|most| *most < LEAST_ACTIVE) {
                let what = format!("{most} zones may be active at a time; {LEAST_ACTIVE} or more are valid");
                return Err(OpenError::Zones { drive, what });
            }
            fewest = if zoned.count() < fewest.1 { (drive, zoned.count()) } else { fewest };
        }
        let least = OWN + LEAST_SLOTS as usize;
        if fewest.1 < least {
            let what = format!("{} zones; {least} or more are valid", fewest.1);
            return Err(OpenError::Zones { drive: fewest.0, what });
        }
        Ok(Room { smallest, zones: Some((like.size(), like.capacity, (fewest.1 - OWN) as u64)) })
    }

    /// Bytes of a segment of a new store. Where a zone takes more than the longest one it has several.
    fn segment(&self, config: &Config, block: usize) -> Result<u64, OpenError> {
        let Some((_, capacity, _)) = self.zones else { return Ok(config.segment_for(self.smallest.1)) };
        let block = block as u64;
        let [least, most] = SEGMENT;
        let several = (capacity / capacity.div_ceil(most).max(1)) / block * block;
        let segment = config.segment.unwrap_or(several).next_multiple_of(block);
        if segment < least || segment > capacity {
            let least = segment.max(least);
            let what = format!("zones that take {capacity} bytes; zones that take {least} bytes or more are valid");
            return Err(OpenError::Zones { drive: self.smallest.0, what });
        }
        Ok(segment)
    }

    /// Slots for segments of `segment` bytes.
    fn count(&self, segment: u64) -> u64 {
        match self.zones {
            Some((_, capacity, zones)) => zones * (capacity / segment),
            None => (self.smallest.1 / segment).saturating_sub(1),
        }
    }

    /// Where they are.
    fn slots(&self, segment: u64) -> Slots {
        match self.zones {
            Some((size, capacity, _)) => Slots::in_zones(segment, size, capacity),
            None => Slots::plain(segment),
        }
    }
}

/// The store of the drives and what each is for it, or a new one on empty drives.
async fn shape(
    members: &[Rc<Member>],
    (room, block): (&Room, usize),
    config: &Config,
    layout: Layout,
) -> Result<(Super, Vec<Part>, bool), OpenError> {
    let replicas = recorded(layout);
    let disks = || members.iter().filter_map(|member| Some((member.number(), member.disk()?)));
    let segment = room.segment(config, block)?;
    let slots = room.count(segment);
    for (drive, disk) in disks() {
        if !disk.info.keeps_data {
            return Err(OpenError::KeepsNothing(drive));
        }
        if slots < LEAST_SLOTS {
            let least = segment * (LEAST_SLOTS + 1);
            return Err(OpenError::Small { drive, bytes: disk.info.bytes(), least });
        }
    }
    let mut found = Vec::new();
    for (drive, member) in members.iter().enumerate() {
        let Some(disk) = member.disk() else {
            found.push(None);
            continue;
        };
        let block = member.read_record(SUPER.next_multiple_of(disk.info.lba_bytes as usize)).await?;
        let there = Super::of(&block);
        if there.is_none() && block.iter().any(|byte| *byte != 0) {
            return Err(OpenError::Foreign(drive));
        }
        there.iter().for_each(|there| member.recorded.is_found(there.generation));
        found.push(there);
    }
    let first = found.iter().rev().flatten().max_by_key(|one| one.generation).copied();
    if let Some(first) = first.filter(|first| first.drives as usize != members.len() || first.replicas != replicas) {
        let what = format!("{} drives and {}", first.drives, replicas_of(first.replicas));
        return Err(OpenError::Other { drive: first.number as usize, what });
    }
    match first {
        Some(first) if is_used(members, room.slots(first.segment).start(0)).await? => {
            let parts = check_parts((first, layout), members, &found, room)?;
            // A crash may have come between what one drive recorded and what the others did.
            let whole = found.iter().zip(&parts).filter(|(_, part)| **part == Part::Whole).filter_map(|(one, _)| *one);
            let is_even = whole.map(|one| one.generation).all(|generation| generation == first.generation);
            Ok((first, parts, is_even))
        }
        _ => {
            let drives = members.len() as u32;
            let shape = Super { id: config.id, segment, slots, drives, number: 0, replicas, generation: 0, lost: 0 };
            make(members, &found, (shape, room.slots(segment).start(0)))
                .await
                .map(|()| (shape, vec![Part::Whole; members.len()], true))
        }
    }
}

/// The replicas that are recorded of a store with parity.
const PARITY: u32 = 0;

/// The replicas of a layout as drives record them.
fn recorded(layout: Layout) -> u32 {
    if layout.has_parity() { PARITY } else { layout.width as u32 }
}

fn replicas_of(recorded: u32) -> &'static str {
    match recorded {
        PARITY => "parity",
        1 => "one replica of each item",
        _ => "two replicas of each item",
    }
}

/// Whether the log of a store has begun on any drive, or none of its drives is missing or empty: a store in the making is made again.
async fn is_used(members: &[Rc<Member>], start: u64) -> Result<bool, OpenError> {
    let mut are_all = true;
    for member in members {
        let Some(disk) = member.disk() else { return Ok(true) };
        let lba = disk.info.lba_bytes as usize;
        let head = member.read_record(SUPER.next_multiple_of(lba)).await?;
        are_all &= Super::of(&head).is_some();
        let chunk = member.read_what_is_left(start, CHUNK_HEADER.next_multiple_of(lba), LEAST_BLOCK).await?;
        if member.has_written_zones() || chunk.iter().any(|byte| *byte != 0) {
            return Ok(true);
        }
    }
    Ok(are_all)
}

/// What each drive is for a store.
fn check_parts(
    (first, layout): (Super, Layout),
    members: &[Rc<Member>],
    found: &[Option<Super>],
    room: &Room,
) -> Result<Vec<Part>, OpenError> {
    for (drive, there) in found.iter().enumerate() {
        let Some(there) = there else { continue };
        let Super { generation, lost, .. } = *there;
        if *there != (Super { number: drive as u32, generation, lost, ..first }) {
            let what = format!("another drive here: it is number {} of store {:016x}", there.number, there.id);
            return Err(OpenError::Other { drive, what });
        }
    }
    if first.segment == 0 || room.count(first.segment) < first.slots {
        let what = match room.zones {
            None => format!("drives of {} bytes or more", first.segment * (first.slots + 1)),
            Some((_, capacity, _)) => {
                format!("{} segments of {} bytes, and zones take {capacity}", first.slots, first.segment)
            }
        };
        return Err(OpenError::Other { drive: first.number as usize, what });
    }
    let all = || found.iter().flatten();
    let mut parts = Vec::new();
    for (drive, there) in found.iter().enumerate() {
        let Some(there) = there else {
            parts.push(if members[drive].disk().is_some() { Part::Rebuilt } else { Part::Missing });
            continue;
        };
        if let Some(other) = all().find(|other| other.lacks(there.number) && there.lacks(other.number)) {
            return Err(OpenError::Split { drive, other: other.number as usize });
        }
        let is_left = all().any(|other| other.lacks(there.number) && other.generation > there.generation);
        parts.push(if is_left { Part::Rebuilt } else { Part::Whole });
    }
    let replicas = layout.width;
    let lacks = |group: &[Part]| group.iter().filter(|part| **part != Part::Whole).count() > layout.spares();
    let mut groups = parts.chunks(replicas).enumerate();
    if let Some((pair, group)) = groups.find(|(_, group)| lacks(group)) {
        let bad = |part: &Part| *part != Part::Whole;
        let replica = group.iter().position(|part| *part == Part::Rebuilt).or(group.iter().position(bad)).unwrap_or(0);
        let drive = pair * replicas + replica;
        let what = match (group[replica], found[drive]) {
            (Part::Missing, _) => "is missing",
            (_, None) => "is empty",
            (_, Some(_)) => "lacks what was written while it was lost",
        };
        return Err(match replicas {
            1 => OpenError::Alone { drive, what },
            _ if layout.has_parity() => {
                let other = parts.iter().enumerate().position(|(other, part)| other != drive && bad(part));
                OpenError::TooFew { drive, what, other: other.unwrap_or(drive) }
            }
            _ => OpenError::Gone { drive, what, twin: drive ^ 1 },
        });
    }
    Ok(parts)
}

/// Makes a store. The first drive is the last to know of it: until then there is none.
async fn make(members: &[Rc<Member>], found: &[Option<Super>], (shape, start): (Super, u64)) -> Result<(), OpenError> {
    for (drive, member) in members.iter().enumerate() {
        let Some(disk) = member.disk() else { return Err(OpenError::Incomplete(drive)) };
        // A drive of another store has chunks.
        let len = CHUNK_HEADER.next_multiple_of(disk.info.lba_bytes as usize);
        let bytes = member.read_background(start, len).await?;
        if member.has_written_zones()
            || bytes.iter().any(|byte| *byte != 0)
            || found[drive].is_some_and(|there| there.number != drive as u32)
        {
            return Err(OpenError::Foreign(drive));
        }
    }
    for member in members.iter().rev() {
        shape.write(member).await?;
    }
    Ok(())
}
