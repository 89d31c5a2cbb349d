//! Which store drives are of, and what each of them is for it; a new store on empty drives.

use std::rc::Rc;

use crate::config::Config;
use crate::drives::Member;
use crate::error::OpenError;
use crate::lives::Lives;
use crate::open::LEAST_BLOCK;
use crate::placement::Layout;
use crate::record::CHUNK_HEADER;
use crate::room::{LEAST_SLOTS, Room};
use crate::shape::{Format, Known, MOST_DRIVES, SUPER, Super, is_left, latest};

/// What a drive is for the store that is opened.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    /// It has all items of its group.
    Whole,
    /// It is to get them from the others of its group.
    Rebuilt,
    Missing,
}

/// The drives that are not whole, a bit each.
pub(crate) fn lost(parts: &[Part]) -> u64 {
    (0..parts.len()).filter(|drive| parts[*drive] != Part::Whole).fold(0, |lost, drive| lost | 1 << drive)
}

/// The store of the drives, what each is for it, and whether all have the same record; or a new one on empty drives.
pub(crate) async fn shape(
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
    for member in members {
        let there = if member.disk().is_some() { found_on(member).await? } else { None };
        there.iter().for_each(|there| member.recorded.is_found(there.generation));
        found.push(there);
    }
    let first = found.iter().rev().flatten().max_by_key(|one| one.generation).copied();
    match first {
        Some(first) if first.drives as usize != members.len() => {
            let what = format!("{} drives and {}", first.drives, replicas_of(first.replicas));
            return Err(OpenError::Other { drive: first.number as usize, what });
        }
        Some(first) if first.replicas != replicas => return Err(other_copies(first.replicas, replicas)),
        _ => {}
    }
    match first {
        Some(first) if is_used(members, &found, room.slots(first.segment).start(0)).await? => {
            let parts = check_parts((first, layout), members, &found, room)?;
            let all: Vec<Super> = found.into_iter().flatten().collect();
            // A crash may have come between what one drive recorded and what the others did.
            let (shape, is_even) = latest(&all, |drive| parts[drive as usize] == Part::Whole).unwrap_or((first, false));
            Ok((shape, parts, is_even))
        }
        _ => {
            let drives = members.len() as u32;
            let (id, number, generation, lost, known) = (config.id, 0, 0, 0, [Known::default(); MOST_DRIVES]);
            let lives = Lives::default();
            let shape = Super { id, segment, slots, drives, number, replicas, generation, lost, known, lives };
            make(members, &found, (shape, room.slots(segment).start(0)))
                .await
                .map(|()| (shape, vec![Part::Whole; members.len()], true))
        }
    }
}

/// The record on a drive, if it is of a store.
///
/// # Errors
/// When the drive does not answer, or has something else.
pub(crate) async fn found_on(member: &Member) -> Result<Option<Super>, OpenError> {
    let lba = member.disk().map_or(0, |disk| disk.info.lba_bytes as usize).max(1);
    let block = member.read_record(SUPER.next_multiple_of(lba)).await?;
    if let Some(format) = Format::of(&block).filter(|format| *format != Format::OWN) {
        return Err(OpenError::Format { drive: member.number(), format });
    }
    let there = Super::of(&block);
    if there.is_none() && block.iter().any(|byte| *byte != 0) {
        return Err(OpenError::Foreign(member.number()));
    }
    Ok(there)
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

/// Why a store does not open with other replicas than it has.
fn other_copies(has: u32, asked: u32) -> OpenError {
    let (has, valid) = match (has, asked) {
        (PARITY, _) => ("parity", "--placement parity with any --policy but raid0"),
        (1, PARITY) => ("one replica of each item", "--placement copies with --policy raid0"),
        (1, _) => ("one replica of each item", "--policy raid0"),
        (_, PARITY) => ("copies on pairs", "--placement copies"),
        _ => ("mirrors", "any --policy but raid0"),
    };
    OpenError::Copies { has, valid }
}

/// Whether a store has been opened, or its log has begun on any drive, or none of its drives is missing or empty: a store in the making is made
/// again. A rebuilt drive lacks the first chunk if its segment was free, so a later round shows as well that the store is used.
async fn is_used(members: &[Rc<Member>], found: &[Option<Super>], start: u64) -> Result<bool, OpenError> {
    if found.iter().flatten().any(|there| there.generation > 0 || there.lost > 0) {
        return Ok(true);
    }
    for member in members {
        let Some(disk) = member.disk() else { return Ok(true) };
        let lba = disk.info.lba_bytes as usize;
        let chunk = member.read_what_is_left(start, CHUNK_HEADER.next_multiple_of(lba), LEAST_BLOCK).await?;
        if member.has_written_zones() || chunk.iter().any(|byte| *byte != 0) {
            return Ok(true);
        }
    }
    Ok(found.iter().all(Option::is_some))
}

impl Super {
    /// Checks that this is the record of a drive of a store.
    pub(crate) fn check_is(&self, drive: usize, store: &Super) -> Result<(), OpenError> {
        let Super { generation, lost, known, lives, .. } = *self;
        if *self == (Super { number: drive as u32, generation, lost, known, lives, ..*store }) {
            return Ok(());
        }
        let what = format!("another drive here: it is d{} of store {:016x}", self.number, self.id);
        Err(OpenError::Other { drive, what })
    }
}

/// Checks that it is known of each drive until when it was one of the store.
pub(crate) fn check_lives(all: &[Super]) -> Result<(), OpenError> {
    let forgotten = all.iter().find(|one| all.iter().any(|other| other.has_forgotten(one)));
    forgotten.map_or(Ok(()), |one| Err(OpenError::Forgotten(one.number as usize)))
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
        there.check_is(drive, &first)?;
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
    let all: Vec<Super> = found.iter().flatten().copied().collect();
    check_lives(&all)?;
    let mut parts = Vec::new();
    for (drive, there) in found.iter().enumerate() {
        parts.push(match (there, members[drive].disk()) {
            (None, None) => Part::Missing,
            (None, Some(_)) => Part::Rebuilt,
            (Some(_), _) => match is_left(drive as u32, &all) {
                Err(other) => return Err(OpenError::Split { drive, other }),
                Ok(true) => Part::Rebuilt,
                Ok(false) => Part::Whole,
            },
        });
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
