//! From keys to a drive's configuration: what is missing is derived, what cannot be is refused.

use nandscape_device_controller::{ControllerConfig, Identity, LinkConfig};
use nandscape_device_ftl::address::{MAX_SLOTS, SECTOR};
use nandscape_device_ftl::policy::{CostBenefit, Greedy, StripeOrder, VictimPolicy};
use nandscape_device_ftl::{GcConfig, PageFtlConfig, WearConfig};
use nandscape_device_media::geometry::Counts;
use nandscape_device_media::{Geometry, MediaConfig, Priority, Reach, StoreKind, Timing};
use nandscape_sim::units::{Bytes, Rate, Ratio};
use nandscape_sim::{Seed, Span};

use crate::keys::{GcKeys, ProfileKeys, TimingKeys};
use crate::profile::{Profile, ProfileError};
use crate::sizing::{Demand, Sizing};
use crate::values::{Choice, FtlKind, PerPageType, Text, Victim};

/// A profile with everything decided.
#[derive(Clone, PartialEq, Debug)]
pub struct Resolved {
    /// The profile's name.
    pub name: String,
    /// All keys, with what was derived filled in.
    pub keys: ProfileKeys,
    /// How much flash there is.
    pub sizing: Sizing,
    /// What was decided otherwise than written, and why.
    pub notes: Vec<String>,
    timing: Timing,
    geometry: Counts,
    logical_units: u64,
    controller: ControllerConfig,
    cache_units: u32,
}

type Result<T> = std::result::Result<T, ProfileError>;

/// `ftl.over_provisioning` of a profile that does not give it.
const DEFAULT_OVER_PROVISIONING: Ratio = Ratio(0.12);
/// `geometry.factory_bad_blocks` of a profile that does not give it.
const DEFAULT_FACTORY_BAD: Ratio = Ratio(0.0);

fn wrong<T>(key: &str, problem: impl Into<String>) -> Result<T> {
    Err(ProfileError::new(key, problem))
}

/// The value of a key that has no default.
fn need<T: Clone>(key: &str, value: &Option<T>) -> Result<T> {
    match value {
        Some(value) => Ok(value.clone()),
        None => wrong(key, "is missing; a profile gives it, or starts from one that does (base = \"default\")"),
    }
}

fn within(key: &str, value: u64, least: u64, most: u64) -> Result<u64> {
    match (least..=most).contains(&value) {
        true => Ok(value),
        false => wrong(key, format!("{value} is out of range; from {least} to {most} is valid")),
    }
}

/// A size that is a power of two within bounds.
fn power_of_two(key: &str, size: Bytes, least: u64, most: u64) -> Result<u32> {
    let valid = size.0.is_power_of_two() && (least..=most).contains(&size.0);
    match valid {
        true => Ok(size.0 as u32),
        false => wrong(key, format!("{size} is not a power of two from {} to {}", Bytes(least), Bytes(most))),
    }
}

impl Profile {
    /// Decides everything.
    ///
    /// # Errors
    /// The key that cannot be as it is, and what would be valid.
    pub fn resolve(&self) -> Result<Resolved> {
        let keys = &self.keys;
        let mut notes = Vec::new();
        let timing = timing(&keys.timing)?;
        let page_size = power_of_two(
            "geometry.page_size",
            need("geometry.page_size", &keys.geometry.page_size)?.0,
            4 << 10,
            256 << 10,
        )?;
        let unit_size =
            power_of_two("ftl.mapping_unit", or(&keys.ftl.mapping_unit, Bytes(4 << 10)), 4 << 10, 32 << 10)?;
        if unit_size > page_size {
            return wrong(
                "ftl.mapping_unit",
                format!("{} is larger than geometry.page_size, {}", Bytes(unit_size.into()), Bytes(page_size.into())),
            );
        }
        let counts = counts(keys, page_size, unit_size)?;
        let (sizing, logical_units) = sizing(keys, &counts)?;
        if sizing.pages_per_block != counts.pages_per_block {
            notes.push(format!(
                "geometry.pages_per_block is {} instead of {}, so that each plane has {} blocks or more",
                sizing.pages_per_block, counts.pages_per_block, 16
            ));
        }
        let geometry =
            Counts { pages_per_block: sizing.pages_per_block, blocks_per_plane: sizing.blocks_per_plane, ..counts };
        Geometry::new(geometry).map_err(|error| ProfileError::new("geometry", error.to_string()))?;
        let controller = controller(&self.name, keys)?;
        let cache_units = cache_units(keys, page_size, unit_size)?;
        let mut resolved = Resolved {
            name: self.name.clone(),
            keys: keys.clone(),
            sizing,
            notes,
            timing,
            geometry,
            logical_units,
            controller,
            cache_units,
        };
        resolved.fill_in();
        Ok(resolved)
    }
}

/// The longest time that any one step may take: sums over a long run stay far below what the clock can count.
const LONGEST: Span = Span::from_s(10);
/// The slowest rate, in bytes a second, for the same reason.
const SLOWEST: f64 = 1e3;

fn not_too_long(key: &str, time: Span) -> Result<Span> {
    match time <= LONGEST {
        true => Ok(time),
        false => wrong(key, format!("{time} is out of range; from 0ns to {LONGEST} is valid")),
    }
}

fn not_too_slow(key: &str, rate: Rate) -> Result<Rate> {
    match rate.is_unlimited() || rate.bytes_per_s() >= SLOWEST {
        true => Ok(rate),
        false => wrong(key, format!("{rate} is out of range; 1KB/s or more, or \"unlimited\", is valid")),
    }
}

fn or<T: Copy>(value: &Option<Text<T>>, default: T) -> T {
    value.map_or(default, |text| text.0)
}

fn timing(keys: &TimingKeys) -> Result<Timing> {
    let cell = need("timing.cell", &keys.cell)?.0.0;
    let times = |key: &str, value: &Option<PerPageType<Text<Span>>>| -> Result<Vec<Span>> {
        let types = cell.page_types();
        match need(key, value)? {
            PerPageType::One(time) => Ok(vec![not_too_long(key, time.0)?; types]),
            PerPageType::Each(times) if times.len() == types => {
                times.iter().map(|time| not_too_long(key, time.0)).collect()
            }
            PerPageType::Each(times) => wrong(
                key,
                format!(
                    "has {} times, but {} has {types} page types; give one time, or {types}",
                    times.len(),
                    cell.name()
                ),
            ),
        }
    };
    Ok(Timing {
        cell,
        read: times("timing.read", &keys.read)?,
        program: times("timing.program", &keys.program)?,
        erase: not_too_long("timing.erase", need("timing.erase", &keys.erase)?.0)?,
        bus: not_too_slow("timing.bus", need("timing.bus", &keys.bus)?.0)?,
        registers: need("timing.registers", &keys.registers)?.0.0,
        partial_transfer: keys.partial_transfer.unwrap_or(true),
    })
}

/// The counts as the profile has them; blocks a plane are not known yet.
fn counts(keys: &ProfileKeys, page_size: u32, unit_size: u32) -> Result<Counts> {
    let geometry = &keys.geometry;
    let count = |key: &str, value: &Option<u32>, most: u64, least: u64| -> Result<u32> {
        Ok(within(key, u64::from(need(key, value)?), least, most)? as u32)
    };
    Ok(Counts {
        channels: count("geometry.channels", &geometry.channels, 256, 1)?,
        dies_per_channel: count("geometry.dies_per_channel", &geometry.dies_per_channel, 256, 1)?,
        planes_per_die: count("geometry.planes_per_die", &geometry.planes_per_die, 64, 1)?,
        blocks_per_plane: 0,
        pages_per_block: count("geometry.pages_per_block", &geometry.pages_per_block, 1 << 16, 4)?,
        page_size,
        unit_size,
    })
}

/// Capacity from blocks, or blocks from capacity; given both, that they agree.
fn sizing(keys: &ProfileKeys, counts: &Counts) -> Result<(Sizing, u64)> {
    let over_provisioning = or(&keys.ftl.over_provisioning, DEFAULT_OVER_PROVISIONING).0;
    if over_provisioning > 100.0 {
        return wrong(
            "ftl.over_provisioning",
            format!("{over_provisioning} is more than a hundredfold; 0.12 and \"12%\" are both valid"),
        );
    }
    let factory_bad = or(&keys.geometry.factory_bad_blocks, DEFAULT_FACTORY_BAD).0;
    if factory_bad >= 0.5 {
        return wrong("geometry.factory_bad_blocks", format!("{factory_bad} is not below a half; \"0.5%\" is usual"));
    }
    let mut demand = Demand {
        logical_units: 0,
        over_provisioning,
        planes: u64::from(counts.channels) * u64::from(counts.dies_per_channel) * u64::from(counts.planes_per_die),
        pages_per_block: u64::from(counts.pages_per_block),
        units_per_page: u64::from(counts.page_size / counts.unit_size),
        gc_free_blocks: within("ftl.gc.free_blocks", u64::from(keys.ftl.gc.free_blocks.unwrap_or(2)), 2, 1 << 16)?,
        factory_bad,
    };
    let too_large =
        || ProfileError::new("capacity", "is more than addresses reach: 16 TiB of flash at a mapping unit of 4 KiB");
    match (keys.capacity, keys.geometry.blocks_per_plane) {
        (Some(Text(capacity)), given) => {
            demand.logical_units = logical_units(capacity, counts.unit_size)?;
            let sizing = demand.size().ok_or_else(too_large)?;
            match given {
                Some(blocks) if blocks != sizing.blocks_per_plane => wrong(
                    "geometry.blocks_per_plane",
                    format!(
                        "{blocks} does not agree with capacity = {capacity}, which needs {}; give only one of the two",
                        sizing.blocks_per_plane
                    ),
                ),
                _ => Ok((sizing, demand.logical_units)),
            }
        }
        (None, Some(blocks)) => {
            // Whole megabytes, as the makers' sizes are.
            let step = (1 << 20) / u64::from(counts.unit_size);
            demand.logical_units = demand.largest(blocks, step).ok_or_else(|| {
                ProfileError::new(
                    "geometry.blocks_per_plane",
                    format!("{blocks} leave no room for data; 32 or more are usual"),
                )
            })?;
            Ok((demand.size().ok_or_else(too_large)?, demand.logical_units))
        }
        (None, None) => wrong("capacity", "is missing; give it, or geometry.blocks_per_plane"),
    }
}

fn logical_units(capacity: Bytes, unit_size: u32) -> Result<u64> {
    let least = 1 << 20;
    if capacity.0 < least || !capacity.0.is_multiple_of(u64::from(unit_size)) {
        let unit = Bytes(unit_size.into());
        return wrong(
            "capacity",
            format!("{capacity} is not a multiple of the mapping unit, {unit}, from {} on", Bytes(least)),
        );
    }
    let units = capacity.0 / u64::from(unit_size);
    match u32::try_from(units) {
        Ok(_) => Ok(units),
        Err(_) => wrong("capacity", "is more than addresses reach: 16 TiB of flash at a mapping unit of 4 KiB"),
    }
}

fn controller(name: &str, keys: &ProfileKeys) -> Result<ControllerConfig> {
    let given = &keys.controller;
    let max_transfer = or(&given.max_transfer, Bytes(2 << 20));
    let lba_bytes = match or(&keys.lba_size, Bytes(512)).0 {
        size @ (512 | 4_096) => size as u32,
        other => return wrong("lba_size", format!("{other} is not valid; 512 and 4096 are")),
    };
    Ok(ControllerConfig {
        firmware_time: not_too_long("controller.firmware_time", or(&given.firmware_time, Span::ZERO))?,
        command_slots: within("controller.command_slots", given.command_slots.unwrap_or(1_024).into(), 1, 1 << 16)?
            as u32,
        max_queue_pairs: within("controller.queue_pairs", given.queue_pairs.unwrap_or(64).into(), 1, 65_534)? as u16,
        max_queue_entries: within("controller.queue_entries", given.queue_entries.unwrap_or(4_096).into(), 2, 1 << 16)?
            as u32,
        // MDTS counts in powers of two of 4 KiB, and its 0 is no limit.
        max_transfer: power_of_two("controller.max_transfer", max_transfer, 8 << 10, 32 << 20)?,
        lba_bytes,
        buffer: need("buffer.mode", &keys.buffer.mode)?.0.0,
        link: LinkConfig {
            bandwidth: not_too_slow("link.bandwidth", or(&keys.link.bandwidth, Rate::UNLIMITED))?,
            latency: not_too_long("link.latency", or(&keys.link.latency, Span::ZERO))?,
        },
        priority: given.priority.map_or(Priority::Fifo, |text| text.0.0),
        identity: Identity { serial: format!("NS-{name}"), model: format!("Nandscape {name}") },
    })
}

fn cache_units(keys: &ProfileKeys, page_size: u32, unit_size: u32) -> Result<u32> {
    let size = need("buffer.size", &keys.buffer.size)?.0;
    let (least, most) = (2 * u64::from(page_size), u64::from(MAX_SLOTS) * u64::from(unit_size));
    if size.0 < least || size.0 > most {
        return wrong(
            "buffer.size",
            format!("{size} is out of range; from two pages, {}, to {}", Bytes(least), Bytes(most)),
        );
    }
    Ok((size.0 / u64::from(unit_size)) as u32)
}

impl Resolved {
    /// Capacity in bytes.
    pub fn capacity(&self) -> u64 {
        self.logical_units * u64::from(self.geometry.unit_size)
    }

    /// Bytes of a logical block.
    pub fn lba_bytes(&self) -> u32 {
        self.controller.lba_bytes
    }

    /// Blocks that garbage collection needs to turn, over the whole drive.
    pub fn reserve_blocks(&self) -> u64 {
        u64::from(self.sizing.reserve_per_plane) * self.planes()
    }

    /// Planes of the drive.
    pub fn planes(&self) -> u64 {
        let Counts { channels, dies_per_channel, planes_per_die, .. } = self.geometry;
        u64::from(channels) * u64::from(dies_per_channel) * u64::from(planes_per_die)
    }

    /// Mapping units of a block.
    pub fn units_per_block(&self) -> u64 {
        let Counts { pages_per_block, page_size, unit_size, .. } = self.geometry;
        u64::from(pages_per_block) * u64::from(page_size / unit_size)
    }

    /// The most entries of a queue.
    pub fn max_queue_entries(&self) -> u32 {
        self.controller.max_queue_entries
    }

    /// The I/O queue pairs that a host can create.
    pub fn max_queue_pairs(&self) -> u16 {
        self.controller.max_queue_pairs
    }

    /// Zeroes flash, link and firmware time.
    pub fn without_delay(mut self) -> Resolved {
        self.timing = self.timing.without_delay();
        self.controller.firmware_time = Span::ZERO;
        self.controller.link = LinkConfig { bandwidth: Rate::UNLIMITED, latency: Span::ZERO };
        self
    }

    /// The keys as TOML, with what was derived.
    pub fn to_toml(&self) -> String {
        Profile { name: self.name.clone(), keys: self.keys.clone() }.to_toml()
    }

    /// Writes what was decided into the keys: what was derived, and the defaults of what was left out.
    fn fill_in(&mut self) {
        let keys = &mut self.keys;
        keys.base = None;
        keys.capacity = Some(Text(Bytes(self.logical_units * u64::from(self.geometry.unit_size))));
        keys.lba_size = Some(Text(Bytes(self.controller.lba_bytes.into())));
        keys.geometry.pages_per_block = Some(self.sizing.pages_per_block);
        keys.geometry.blocks_per_plane = Some(self.sizing.blocks_per_plane);
        keys.geometry.factory_bad_blocks.get_or_insert(Text(DEFAULT_FACTORY_BAD));
        keys.timing.partial_transfer = Some(self.timing.partial_transfer);
        keys.link.bandwidth = Some(Text(self.controller.link.bandwidth));
        keys.link.latency = Some(Text(self.controller.link.latency));
        keys.ftl.kind.get_or_insert(Text(Choice(FtlKind::Page)));
        keys.ftl.over_provisioning.get_or_insert(Text(DEFAULT_OVER_PROVISIONING));
        keys.ftl.mapping_unit = Some(Text(Bytes(self.geometry.unit_size.into())));
        self.fill_in_controller();
        self.fill_in_ftl();
    }

    fn fill_in_controller(&mut self) {
        let (keys, decided) = (&mut self.keys.controller, &self.controller);
        keys.firmware_time = Some(Text(decided.firmware_time));
        keys.command_slots = Some(decided.command_slots);
        keys.queue_pairs = Some(decided.max_queue_pairs.into());
        keys.queue_entries = Some(decided.max_queue_entries);
        keys.max_transfer = Some(Text(Bytes(decided.max_transfer.into())));
        keys.priority = Some(Text(Choice(decided.priority)));
    }

    fn fill_in_ftl(&mut self) {
        let PageFtlConfig { allocation, gc, wear, .. } = self.ftl();
        let keys = &mut self.keys.ftl;
        keys.allocation = Some(Text(Choice(allocation)));
        keys.gc.scheme = Some(Text(Choice(gc.reach)));
        keys.gc.victim.get_or_insert(Text(Choice(Victim::Greedy)));
        keys.gc.copyback = Some(gc.copyback);
        keys.gc.batch = Some(gc.batch.unwrap_or(0));
        keys.gc.free_blocks = Some(gc.start);
        keys.wear.dynamic = Some(wear.dynamic);
        keys.wear.static_threshold = Some(wear.static_threshold);
    }

    pub(crate) fn media(&self, store: StoreKind, seed: Seed) -> MediaConfig {
        MediaConfig {
            geometry: Geometry::new(self.geometry).expect("checked when it was resolved"),
            timing: self.timing.clone(),
            store,
            factory_bad: self.sizing.bad_per_plane,
            seed,
        }
    }

    pub(crate) fn ftl(&self) -> PageFtlConfig {
        let (ftl, wear) = (&self.keys.ftl, &self.keys.ftl.wear);
        PageFtlConfig {
            logical_units: self.logical_units as u32,
            cache_units: self.cache_units,
            allocation: ftl.allocation.map_or(StripeOrder::ChannelDiePlane, |text| text.0.0),
            priority: self.controller.priority,
            gc: gc(&ftl.gc),
            wear: WearConfig {
                dynamic: wear.dynamic.unwrap_or(true),
                static_threshold: wear.static_threshold.unwrap_or(0),
            },
        }
    }

    pub(crate) fn controller(&self) -> ControllerConfig {
        self.controller.clone()
    }
}

fn gc(keys: &GcKeys) -> GcConfig {
    let victim: Box<dyn VictimPolicy> = match keys.victim.map_or(Victim::Greedy, |text| text.0.0) {
        Victim::Greedy => Box::new(Greedy),
        Victim::CostBenefit => Box::new(CostBenefit),
    };
    GcConfig {
        reach: keys.scheme.map_or(Reach::Plane, |text| text.0.0),
        copyback: keys.copyback.unwrap_or(false),
        batch: keys.batch.filter(|batch| *batch > 0),
        start: keys.free_blocks.unwrap_or(2),
        victim,
    }
}

/// Sectors are the finest piece that anything names.
const _: () = assert!(SECTOR == 512);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::BUILTIN;

    fn error(changes: &[&str]) -> String {
        let mut profile = Profile::load("default").unwrap();
        profile.set_all(changes).unwrap();
        profile.resolve().unwrap_err().to_string()
    }

    #[test]
    fn every_builtin_works_at_any_capacity_from_64_mib_up() {
        for builtin in BUILTIN {
            for capacity in ["64MiB", "100MiB", "1GiB", "77GiB", "1TiB", "4TiB"] {
                let mut profile = Profile::load(builtin.name).unwrap();
                profile.set(&format!("capacity={capacity}")).unwrap();
                let resolved = profile.resolve().unwrap_or_else(|error| panic!("{}: {error}", builtin.name));
                assert_eq!(Bytes(resolved.capacity()), capacity.parse().unwrap());
                let wanted = or(&profile.keys.ftl.over_provisioning, Ratio(0.12)).0;
                assert!(resolved.sizing.over_provisioning >= wanted - 1e-9, "{} {capacity}", builtin.name);
            }
            Profile::load(builtin.name).unwrap().resolve().unwrap();
        }
    }

    #[test]
    fn impossible_values_are_refused_by_key_with_what_is_valid() {
        let cases: [(&[&str], &str); 18] = [
            (&["geometry.channels=0"], "geometry.channels: 0 is out of range; from 1 to 256"),
            (&["geometry.page_size=5000"], "geometry.page_size: 5000B is not a power of two from 4KiB"),
            (&["ftl.mapping_unit=32KiB"], "ftl.mapping_unit: 32KiB is larger than geometry.page_size"),
            (&["timing.read=[\"1us\"]"], "timing.read: has 1 times, but tlc has 3 page types"),
            (&["timing.cell=qlc"], "timing.read: has 3 times, but qlc has 4"),
            (&["capacity=10000"], "capacity: 10000B is not a multiple of the mapping unit"),
            (&["capacity=100TiB"], "capacity: is more than addresses reach"),
            (&["capacity=15TiB", "ftl.over_provisioning=1"], "geometry: "),
            (&["geometry.blocks_per_plane=7"], "geometry.blocks_per_plane: 7 leave no room"),
            (&["capacity=1GiB", "geometry.blocks_per_plane=7"], "geometry.blocks_per_plane: 7 does not agree with"),
            (&["ftl.over_provisioning=1000"], "ftl.over_provisioning: 1000 is more than a hundredfold"),
            (&["buffer.size=4KiB"], "buffer.size: 4KiB is out of range"),
            (&["lba_size=520"], "lba_size: 520 is not valid"),
            (&["timing.read=11s"], "timing.read: 11s is out of range; from 0ns to 10s"),
            (&["link.latency=1000000s"], "link.latency: 1000000s is out of range"),
            (&["timing.bus=1B/s"], "timing.bus: 1B/s is out of range; 1KB/s or more"),
            (&["link.bandwidth=1B/1000s"], "link.bandwidth: 1B/1000s is out of range"),
            (&["ftl.gc.free_blocks=1"], "ftl.gc.free_blocks: 1 is out of range; from 2"),
        ];
        for (changes, expected) in cases {
            let text = error(changes);
            assert!(text.starts_with(expected), "{changes:?}: {text}");
        }
    }

    #[test]
    fn capacity_and_blocks_in_one_profile_must_agree() {
        let text = |blocks: u32| {
            format!("version = 1\nbase = \"default\"\ncapacity = \"1GiB\"\n[geometry]\nblocks_per_plane = {blocks}\n")
        };
        let error = Profile::parse("both", &text(7)).unwrap().resolve().unwrap_err().to_string();
        assert!(error.contains("does not agree with capacity = 1GiB, which needs"), "{error}");
        let needed: u32 = error.split("needs ").nth(1).unwrap().split(';').next().unwrap().parse().unwrap();
        assert!(Profile::parse("both", &text(needed)).unwrap().resolve().is_ok());
        // As changes, in either order.
        for (blocks, agrees) in [(needed, true), (needed + 1, false), (999, false)] {
            let mut changes = ["capacity=1GiB".to_owned(), format!("geometry.blocks_per_plane={blocks}")];
            for _ in 0..2 {
                let mut profile = Profile::load("default").unwrap();
                profile.set_all(&changes).unwrap();
                assert_eq!(profile.resolve().is_ok(), agrees, "{changes:?}");
                changes.reverse();
            }
        }
    }

    #[test]
    fn what_was_resolved_resolves_to_itself() {
        for builtin in BUILTIN {
            let resolved = Profile::load(builtin.name).unwrap().resolve().unwrap();
            let again = Profile::parse(builtin.name, &resolved.to_toml()).unwrap().resolve().unwrap();
            assert_eq!((again.sizing, again.capacity()), (resolved.sizing, resolved.capacity()), "{}", builtin.name);
        }
    }
}
