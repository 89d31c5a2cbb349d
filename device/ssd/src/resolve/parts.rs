//! `[[ftl.parts]]`: several FTLs in one drive. Each part is resolved as a separate drive with the part's channels and dies:
//! the keys of the drive apply, and the part's own keys override them. All parts have the same pages and mapping unit. Flash
//! is sized for each part, so blocks per plane may differ between parts.
//!
//! Parts are ordered by their lowest channel and die, whatever the order in the profile.

use nandscape_device_media::geometry::Counts;
use nandscape_device_media::identifier::LONGEST_PART_NAME;
use nandscape_device_media::{Cell, Registers};
use nandscape_sim::Span;
use nandscape_sim::units::{Bytes, Rate, Ratio};

use super::bounds::wrong;
use super::shares::{self, Share};
use super::{Resolved, ResolvedPart, Result};
use crate::keys::{AgingKeys, FtlKeys, PartKeys, ProfileKeys, TimingKeys};
use crate::profile::{Kept, Profile, ProfileError, Yardstick};
use crate::values::{Channels, Choice, FtlKind, MediaKind, PartStore, PerPageType, Text};

/// Derived capacities are multiples of this.
const STEP: u64 = 1 << 20;

pub(super) fn resolve(profile: &Profile, given: &[PartKeys]) -> Result<Resolved> {
    check_kinds(&profile.keys, given)?;
    let (parts, dies) = shares::in_order(given, &profile.keys)?;
    let capacities = capacities(&profile.keys, &parts, dies)?;
    // The shape of the drive: a small drive has fewer dies, unless parts name them, and smaller blocks, but always all
    // channels.
    let mut whole = profile.clone();
    whole.keys.ftl.parts = None;
    // Each change names a part.
    let changes = whole.keys.changes.take();
    whole.kept.channels = true;
    whole.kept.dies_per_channel |= dies.is_some();
    if let Some(capacities) = &capacities {
        whole.keys.capacity = Some(Text(Bytes(capacities.iter().copied().fold(0, u64::saturating_add))));
    }
    let mut drive = whole.resolve_one(false)?;
    for (index, share) in parts.iter().enumerate() {
        let own = own_profile(&whole, &drive, share, capacities.as_ref().map(|each| each[index]))?;
        let resolved = own.resolve_one(true).map_err(|mut error| {
            error.origin = format!("ftl.parts, the one with {}: {}", share.named(), error.origin);
            error
        })?;
        let name = name(share, &resolved)?;
        let store = share.keys.store.map_or(PartStore::Drive, |text| text.0.0);
        let (channels, dies) = (share.channels.clone(), share.dies.clone());
        drive.parts.push(ResolvedPart { name, channels, dies, store, drive: resolved });
    }
    if drive.parts.iter().all(|part| part.store == PartStore::Ram) {
        return wrong("ftl.parts.store", "is \"ram\" for all parts; at least one has \"drive\"");
    }
    check_names(&drive.parts)?;
    shares::check_rates(&drive.parts)?;
    combine(&mut drive, &parts);
    drive.check_faults()?;
    drive.keys.changes = changes;
    drive.check_changes()?;
    Ok(drive)
}

/// Checks that each part can be a namespace of the NVM command set. Checked first: any other kind needs keys that the drive
/// would lack.
fn check_kinds(keys: &ProfileKeys, given: &[PartKeys]) -> Result<()> {
    let own = given.iter().filter_map(|part| part.ftl.as_ref()?.kind).map(|kind| ("ftl.parts.ftl.kind", kind));
    let mut kinds = keys.ftl.kind.map(|kind| ("ftl.kind", kind)).into_iter().chain(own);
    match kinds.find(|(_, kind)| matches!(kind.0.0, FtlKind::Zone | FtlKind::Lsm | FtlKind::OpenChannel)) {
        None => Ok(()),
        Some((key, kind)) => {
            let problem =
                format!("\"{}\" is for a drive with one FTL, without ftl.parts; the other kinds are valid", kind.0);
            wrong(key, problem)
        }
    }
}

/// The capacity of each part; `None` if it follows from the blocks per plane.
fn capacities(keys: &ProfileKeys, parts: &[Share], dies: Option<u32>) -> Result<Option<Vec<u64>>> {
    let own = |keys: &PartKeys| keys.capacity.map(|text| text.0.0);
    let given = parts.iter().filter_map(|share| own(&share.keys)).fold(0, u64::saturating_add);
    let sharing = parts.iter().filter(|share| own(&share.keys).is_none());
    let channels: u64 = sharing.map(|share| share.weight(dies)).sum();
    let Some(Text(Bytes(capacity))) = keys.capacity else {
        return match channels {
            0 => Ok(Some(parts.iter().filter_map(|share| own(&share.keys)).collect())),
            _ => Ok(None),
        };
    };
    let Some(rest) = capacity.checked_sub(given).filter(|rest| (*rest == 0) == (channels == 0)) else {
        let (given, capacity) = (Bytes(given), Bytes(capacity));
        return wrong("ftl.parts.capacity", format!("parts that give it have {given}, and capacity is {capacity}"));
    };
    // The last part gets the rest.
    let (mut bytes_left, mut channels_left) = (rest, channels);
    let mut share = |own_channels: u64| {
        let share = match own_channels == channels_left {
            true => bytes_left,
            false => rest / channels * own_channels / STEP * STEP,
        };
        (bytes_left, channels_left) = (bytes_left - share, channels_left - own_channels);
        share
    };
    Ok(Some(parts.iter().map(|part| own(&part.keys).unwrap_or_else(|| share(part.weight(dies)))).collect()))
}

/// A part as a separate drive.
fn own_profile(whole: &Profile, drive: &Resolved, share: &Share, capacity: Option<u64>) -> Result<Profile> {
    let Share { keys: part, channels, dies } = share;
    let mut keys = whole.keys.clone();
    let own = part.ftl.as_deref().cloned().unwrap_or_default();
    if own.parts.is_some() {
        return wrong("ftl.parts.ftl.parts", "parts have no parts");
    }
    keys.ftl.overlay(own);
    if keys.ftl.mapping_unit.is_some_and(|unit| unit.0.0 != u64::from(drive.geometry.unit_size)) {
        return wrong("ftl.parts.ftl.mapping_unit", "is another one than that of the drive; all parts have the same");
    }
    if part.media.is_some_and(|media| media.0.0 == MediaKind::Ram) {
        keys.timing = ram();
        keys.wear = AgingKeys::default();
        keys.geometry.factory_bad_blocks = Some(Text(Ratio(0.0)));
    }
    keys.timing.overlay(part.timing.as_deref().cloned().unwrap_or_default());
    let Counts { channels: all_channels, dies_per_channel: all_dies, pages_per_block, .. } = drive.geometry;
    let own_dies = dies.as_ref().map_or(all_dies, |dies| dies.len() as u32);
    keys.geometry.channels = Some(channels.len() as u32);
    keys.geometry.dies_per_channel = Some(own_dies);
    keys.geometry.pages_per_block = Some(pages_per_block);
    if let Some(capacity) = capacity {
        keys.capacity = Some(Text(Bytes(capacity)));
        keys.geometry.blocks_per_plane = None;
    }
    if let Some(Text(Bytes(size))) = keys.buffer.size {
        let unit = u64::from(drive.geometry.unit_size);
        let (own, all) = (channels.len() as u64 * u64::from(own_dies), u64::from(all_channels) * u64::from(all_dies));
        let share = size * own / all / unit * unit;
        keys.buffer.size = Some(Text(Bytes(share)));
    }
    keys.faults = None;
    Ok(Profile { name: whole.name.clone(), keys, kept: Kept::ALL, yardstick: Yardstick::Nothing })
}

/// The times of memory: those of a bank and a channel of DDR3-1600. Memory needs no erases, error correction or suspension.
fn ram() -> TimingKeys {
    let access = Some(PerPageType::One(Text(Span::from_ns(50))));
    TimingKeys {
        cell: Some(Text(Choice(Cell::Slc))),
        rated_erases: Some(0),
        read: access.clone(),
        program: access,
        erase: Some(Text(Span::ZERO)),
        bus: Some(Text(Rate::new(12_800_000_000, Span::from_s(1)))),
        registers: Some(Text(Choice(Registers::Double))),
        ..TimingKeys::default()
    }
}

fn name(share: &Share, drive: &Resolved) -> Result<String> {
    let first = || match &share.dies {
        None => format!("{}-{}", drive.kind(), share.channels[0]),
        Some(dies) => format!("{}-{}-{}", drive.kind(), share.channels[0], dies[0]),
    };
    let name = share.keys.name.clone().unwrap_or_else(first);
    match (1..=LONGEST_PART_NAME).contains(&name.len()) && !name.chars().any(char::is_control) {
        true => Ok(name),
        false => wrong("ftl.parts.name", format!("{name:?} is not valid; from 1 to {LONGEST_PART_NAME} bytes are")),
    }
}

fn check_names(parts: &[ResolvedPart]) -> Result<()> {
    let twice =
        parts.iter().enumerate().find(|(index, part)| parts[..*index].iter().any(|other| other.name == part.name));
    twice.map_or(Ok(()), |(_, part)| wrong("ftl.parts.name", format!("{:?} is the name of two parts", part.name)))
}

/// Combines the figures of the parts into those of the drive.
fn combine(drive: &mut Resolved, given: &[Share]) {
    let parts = std::mem::take(&mut drive.parts);
    let sum = |of: &dyn Fn(&Resolved) -> f64| parts.iter().map(|part| of(&part.drive)).sum::<f64>();
    let units = |part: &Resolved| f64::from(part.ftl.logical_units);
    drive.sizing.over_provisioning = sum(&|part| part.sizing.over_provisioning * units(part)) / sum(&units);
    drive.sizing.with_reserve = sum(&|part| part.sizing.with_reserve * units(part)) / sum(&units);
    drive.ftl.logical_units = parts.iter().map(|part| part.drive.ftl.logical_units).sum();
    let most = |of: fn(&Resolved) -> u32| parts.iter().map(|part| of(&part.drive)).max().unwrap_or(0);
    drive.geometry.blocks_per_plane = most(|part| part.geometry.blocks_per_plane);
    drive.sizing.blocks_per_plane = drive.geometry.blocks_per_plane;
    drive.sizing.bad_per_plane = most(|part| part.sizing.bad_per_plane);
    drive.sizing.reserve_per_plane = most(|part| part.sizing.reserve_per_plane);
    drive.keys.capacity = Some(Text(Bytes(drive.capacity())));
    drive.keys.geometry.blocks_per_plane = None;
    drive.keys.ftl.parts = Some(given.iter().map(|share| share.keys.clone()).collect());
    fill_in(&mut drive.keys, &parts);
    drive.parts = parts;
}

/// Writes the decided values into the keys of the parts, which are in the order of `parts`.
pub(super) fn fill_in(keys: &mut ProfileKeys, parts: &[ResolvedPart]) {
    for (keys, part) in keys.ftl.parts.iter_mut().flatten().zip(parts) {
        let ResolvedPart { name, channels, dies, store, drive } = part;
        keys.name = Some(name.clone());
        keys.channels = Some(Text(Channels(channels.clone())));
        keys.dies = dies.clone().map(|dies| Text(Channels(dies)));
        keys.media.get_or_insert(Text(Choice(MediaKind::Nand)));
        keys.store = Some(Text(Choice(*store)));
        keys.capacity = drive.keys.capacity;
        keys.ftl = Some(Box::new(FtlKeys { parts: None, ..drive.keys.ftl.clone() }));
        keys.timing = Some(Box::new(drive.keys.timing.clone()));
    }
}

impl Resolved {
    /// The same drive with a changed setting of one part, whose FTL is an OX-Block.
    pub(crate) fn with_part_changed(&self, index: usize, setting: &str) -> Result<Resolved> {
        let mut changed = self.clone();
        let Resolved { name, keys, geometry, timing, ftl, ox_block, .. } = &mut changed.parts[index].drive;
        let mut profile = Profile::of_keys(name.as_str(), keys.clone());
        profile.set(setting).map_err(|error| ProfileError::new(setting, error.problem))?;
        *ox_block = super::ox_block::ox_block(&profile.keys, geometry, timing, ftl)?;
        *keys = profile.keys;
        Ok(changed)
    }
}

impl ResolvedPart {
    /// Without times of flash, link and firmware.
    pub(super) fn without_delay(self) -> ResolvedPart {
        ResolvedPart { drive: self.drive.without_delay(), ..self }
    }
}
