//! Makes a drive's configuration from keys: derives missing values and rejects impossible ones.
//!
//! | file | what |
//! |---|---|
//! | `bounds` | checks that a value is given and within bounds |
//! | `flash`, `ftl`, `controller` | the sections of a profile |
//! | `aging` | the aging of the flash |
//! | `ox_block` | OX-Block |
//! | `zone` | zones |
//! | `open_channel` | open-channel drives |
//! | `parts`, `shares` | several FTLs in one drive, and which dies each owns |
//! | `rain` | stripes with parity |
//! | `identity` | the names of the drive |
//! | `features` | options of the flash, and checks that they fit together |
//! | `smaller` | notes on what another capacity changes |
//! | `fill_in` | writes derived values and defaults into the keys |

mod aging;
mod bounds;
mod controller;
mod features;
mod fill_in;
mod flash;
mod ftl;
mod identity;
pub(crate) mod lsm;
mod open_channel;
pub(crate) mod ox_block;
mod parts;
mod rain;
mod shares;
mod smaller;
mod windows;
pub(crate) mod zone;

use nandscape_device_controller::ControllerConfig;
use nandscape_device_ftl_core::windows::WindowRules;
use nandscape_device_ftl_core::{FirmwareTimes, Interface};
use nandscape_device_ftl_ox::OxBlockConfig;
use nandscape_device_ftl_ox::ox_block::Layout;
use nandscape_device_ftl_page::{PageFtlConfig, Policies};
use nandscape_device_ftl_zoned::zone::ZoneConfig;
use nandscape_device_ftl_zoned::{LsmConfig, OpenChannelConfig};
use nandscape_device_media::fault::Strike;
use nandscape_device_media::geometry::Counts;
use nandscape_device_media::{Aging, Geometry, MediaConfig, Priority, Rule, StoreKind, Timing};
use nandscape_drive::{Assignments, Names};
use nandscape_sim::units::Rate;
use nandscape_sim::{Seed, Span};

use crate::keys::{LinkKeys, ProcessorKeys, ProfileKeys, TimingKeys};
use crate::policies::{self, DEFAULT_READ, OwnPolicies};
use crate::profile::{Profile, ProfileError};
use crate::sizing::Sizing;
use crate::values::{FtlKind, PartStore, PerPageType, ReadRule, Tables, Text};

/// A profile with every value resolved.
#[derive(Clone, PartialEq, Debug)]
pub struct Resolved {
    /// The profile's name.
    pub name: String,
    /// All keys, including derived ones.
    pub keys: ProfileKeys,
    /// The amount of flash.
    pub sizing: Sizing,
    /// Deviations from the profile, with reasons.
    pub notes: Vec<String>,
    is_reshaped: bool,
    timing: Timing,
    aging: Option<Aging>,
    pub(crate) geometry: Counts,
    ftl: PageFtlConfig,
    ox_block: Option<OxBlockConfig>,
    zone: Option<ZoneConfig>,
    lsm: Option<LsmConfig>,
    open_channel: Option<OpenChannelConfig>,
    controller: ControllerConfig,
    parts: Vec<ResolvedPart>,
    own: OwnPolicies,
}

/// One of several FTLs of a drive, with its channels.
#[derive(Clone, PartialEq, Debug)]
pub struct ResolvedPart {
    /// Its name.
    pub name: String,
    /// Its channels, as the drive counts them, in ascending order.
    pub channels: Vec<u32>,
    /// Its dies of each of these channels, in ascending order; `None` is all.
    pub dies: Option<Vec<u32>>,
    /// Where its flash is.
    pub store: PartStore,
    /// The part as a separate drive.
    pub drive: Resolved,
}

type Result<T> = std::result::Result<T, ProfileError>;

impl Profile {
    /// Resolves every value.
    ///
    /// # Errors
    /// The invalid key, and what would be valid.
    pub fn resolve(&self) -> Result<Resolved> {
        let mut resolved = match self.keys.ftl.parts.as_deref() {
            None | Some([]) => self.resolve_one(false),
            Some(parts) => parts::resolve(self, parts),
        }?;
        resolved.check_buffer_mode()?;
        let can_notice = resolved.parts.is_empty() && resolved.kind() == "page";
        if resolved.controller.notices.is_some() && !can_notice {
            let problem = "is for drives with one FTL of the kind \"page\"; leave it out for others";
            return bounds::wrong("controller.precompletion.window", problem);
        }
        if !resolved.parts.is_empty() {
            // Windows require one FTL.
            resolved.controller.windows = None;
            if resolved.controller.predictable_latency {
                let problem = "is for drives with one FTL of the kind \"page\"; false is valid for others";
                return bounds::wrong("controller.predictable_latency", problem);
            }
        }
        smaller::note_over_provisioning(self, &mut resolved);
        Ok(resolved)
    }

    /// Resolves every value of a drive with one FTL, or of one of several FTLs, whose channels have identifiers.
    fn resolve_one(&self, has_identifiers: bool) -> Result<Resolved> {
        let keys = &self.keys;
        let timing = flash::timing(&keys.timing)?;
        let given = flash::counts(keys)?;
        let (sizing, logical_units) = flash::sizing(self, &given, &timing, has_identifiers)?;
        let Sizing { channels, dies_per_channel, pages_per_block, blocks_per_plane, .. } = sizing;
        let geometry = Counts { channels, dies_per_channel, pages_per_block, blocks_per_plane, ..given };
        let counted = Geometry::new(geometry).map_err(|error| ProfileError::new("geometry", error.to_string()))?;
        let kind = keys.ftl.kind.map_or(FtlKind::Page, |text| text.0.0);
        ftl::check_ranges_own(&keys.ftl, &geometry)?;
        let page_ftl = ftl::ftl(keys, &geometry, logical_units)?;
        if has_identifiers && page_ftl.placement.handles > 0 {
            let key = match page_ftl.placement.interface {
                Interface::Handles => "ftl.fdp.handles",
                Interface::Streams => "ftl.streams.count",
                Interface::Ranges => "ftl.windows.ranges",
            };
            return bounds::wrong(key, "does not go with ftl.parts; 0 is valid there");
        }
        if has_identifiers && page_ftl.rain.is_some() {
            return bounds::wrong("ftl.rain.width", "does not go with ftl.parts; 0 is valid there");
        }
        let mut controller = controller::controller(keys)?;
        controller.windows = windows::rules(keys, &geometry, &timing, (&page_ftl, &controller))?;
        let notes = smaller::notes(&given, &geometry);
        let mut resolved = Resolved {
            name: self.name.clone(),
            keys: keys.clone(),
            sizing,
            is_reshaped: !notes.is_empty(),
            notes,
            ox_block: ox_block::ox_block(keys, &geometry, &timing, &page_ftl)?,
            zone: zone::zone(keys, &counted, &timing, (&sizing, &page_ftl), controller.max_transfer)?,
            lsm: lsm::lsm(keys, &counted, &timing, (&sizing, &page_ftl), controller.max_transfer)?,
            aging: aging::aging(&keys.wear, &timing, &geometry, controller.rated_erases, logical_units, kind)?,
            open_channel: open_channel::open_channel(keys, (&counted, &timing), &page_ftl, &controller)?,
            timing,
            geometry,
            ftl: page_ftl,
            controller,
            parts: Vec::new(),
            own: OwnPolicies::default(),
        };
        identity::check(&keys.identity)?;
        features::check(&resolved.timing, &resolved.geometry, &resolved.ftl, &resolved.keys.ftl.gc)?;
        rain::check(keys, &resolved.timing, &resolved.geometry, &resolved.ftl)?;
        resolved.notes.extend(zone::notes(&resolved, &given));
        resolved.notes.extend(rain::notes(&resolved.ftl));
        resolved.notes.extend(aging::notes(resolved.aging.as_ref(), resolved.timing.cell));
        resolved.check_faults()?;
        resolved.fill_in();
        resolved.check_changes()?;
        Ok(resolved)
    }
}

impl Resolved {
    /// Capacity in bytes.
    pub fn capacity(&self) -> u64 {
        u64::from(self.ftl.logical_units) * u64::from(self.geometry.unit_size)
    }

    /// Bytes of each namespace of a new drive, by number.
    pub fn namespaces(&self) -> Vec<u64> {
        match &*self.parts {
            [] => {
                vec![self.zoned_bytes().or(self.bytes_of_runs()).or(self.addressed_bytes()).unwrap_or(self.capacity())]
            }
            parts => parts.iter().map(|part| part.drive.capacity()).collect(),
        }
    }

    /// Bytes of a logical block.
    pub fn lba_bytes(&self) -> u32 {
        self.controller.lba_bytes
    }

    /// Maximum of bytes that a command moves.
    pub fn max_transfer(&self) -> u64 {
        self.controller.max_transfer.into()
    }

    /// The order in which chips and channels serve.
    pub fn priority(&self) -> Priority {
        self.ftl.priority
    }

    /// How long before the end of a read its notice is due; `None` for a drive without notices.
    pub fn precompletion_window(&self) -> Option<Span> {
        self.controller.notices
    }

    /// The fault rules.
    pub fn faults(&self) -> impl Iterator<Item = &Rule> {
        self.keys.faults.iter().flat_map(|faults| &faults.0).map(|rule| &rule.0)
    }

    /// Checks that a fault can happen on this drive.
    ///
    /// # Errors
    /// Why not, and what would be valid.
    pub fn check_fault(&self, rule: &Rule) -> std::result::Result<(), String> {
        let lbas = self.capacity() / u64::from(self.lba_bytes());
        let checked = rule.check(&self.geometry(), lbas).and_then(|()| self.check_torn(rule));
        checked.map_err(|problem| format!("\"{rule}\": {problem}"))
    }

    /// Only an FTL with checksums detects a readable page with wrong data.
    fn check_torn(&self, rule: &Rule) -> std::result::Result<(), String> {
        let has_checksums = self.ox_block.is_some_and(|config| config.layout == Layout::Log);
        match rule.strike {
            Strike::PowerCut { torn, .. } if torn.misleads() && !has_checksums => Err(format!(
                "torn={} is for ftl.kind = \"ox_block\"; unreadable, untouched or whole is valid with others",
                torn.name()
            )),
            _ => Ok(()),
        }
    }

    fn check_faults(&self) -> Result<()> {
        let problem = self.faults().find_map(|rule| self.check_fault(rule).err());
        problem.map_or(Ok(()), |problem| Err(ProfileError::new("faults", problem)))
    }

    /// Blocks of the drive in the reserve of garbage collection: none if the host collects, as with zones and chunks.
    pub fn reserve_blocks(&self) -> u64 {
        match &*self.parts {
            [] if self.zone.is_some() || self.lsm.is_some() || self.open_channel.is_some() => 0,
            [] => u64::from(self.sizing.reserve_per_plane) * self.planes(),
            parts => parts.iter().map(|part| part.drive.reserve_blocks()).sum(),
        }
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

    /// Maximum of entries of a queue.
    pub fn max_queue_entries(&self) -> u32 {
        self.controller.max_queue_entries
    }

    /// The I/O queue pairs that a host can create.
    pub fn max_queue_pairs(&self) -> u16 {
        self.controller.max_queue_pairs
    }

    /// Sets flash, link and firmware times to zero, also in the keys, which then describe the run.
    pub fn without_delay(mut self) -> Resolved {
        let (zero, unlimited) = (Text(Span::ZERO), Some(Text(Rate::UNLIMITED)));
        let TimingKeys { read, program, erase, bus, .. } = &mut self.keys.timing;
        (*read, *program) = (Some(PerPageType::One(zero)), Some(PerPageType::One(zero)));
        (*erase, *bus) = (Some(zero), unlimited);
        features::without_delay(&mut self.keys.timing);
        self.keys.link = LinkKeys { bandwidth: unlimited, latency: Some(zero), ..self.keys.link };
        self.keys.controller.firmware_time = Some(zero);
        self.keys.controller.processors = ProcessorKeys::default();
        self.timing = flash::timing(&self.keys.timing).expect("no time is a time");
        (self.keys.ftl.deallocate_time, self.keys.ftl.restart_time) = (Some(zero), Some(zero));
        self.ftl.firmware = FirmwareTimes::default();
        if let Some(ox_block) = &mut self.ox_block {
            ox_block.firmware = FirmwareTimes::default();
        }
        if let Some(config) = &mut self.zone {
            (config.reset, config.check_block) = ((Span::ZERO, Span::ZERO), Span::ZERO);
            (config.write, config.append) = (Span::ZERO, Span::ZERO);
            zone::fill_in(&mut self.keys, config, self.geometry.unit_size.into());
        }
        if let Some(config) = &mut self.lsm {
            let zones = &mut config.zones;
            (zones.reset, zones.check_block) = ((Span::ZERO, Span::ZERO), Span::ZERO);
            (zones.write, zones.append) = (Span::ZERO, Span::ZERO);
            lsm::fill_in(&mut self.keys, config, self.geometry.unit_size.into());
        }
        if let Some(config) = &mut self.open_channel {
            config.check_block = Span::ZERO;
        }
        self.controller = controller::controller(&self.keys).expect("no time is a time");
        let decided = (&self.ftl, &self.controller);
        let windows = windows::rules(&self.keys, &self.geometry, &self.timing, decided);
        self.controller.windows = windows.expect("they were valid before").filter(|_| self.parts.is_empty());
        self.parts = self.parts.into_iter().map(ResolvedPart::without_delay).collect();
        parts::fill_in(&mut self.keys, &self.parts);
        self
    }

    /// The keys as TOML, including derived ones.
    pub fn to_toml(&self) -> String {
        Profile::of_keys(&self.name, self.keys.clone()).to_toml()
    }

    pub(crate) fn media(&self, store: StoreKind, seed: Seed) -> MediaConfig {
        MediaConfig {
            geometry: self.geometry(),
            timing: self.timing.clone(),
            store,
            factory_bad: self.sizing.bad_per_plane,
            lba_bytes: self.lba_bytes(),
            faults: self.faults().cloned().collect(),
            aging: self.aging.clone(),
            seed,
            group: None,
        }
    }

    /// Its FTLs, by their lowest channel, if it has several.
    pub fn parts(&self) -> &[ResolvedPart] {
        &self.parts
    }

    /// The fate of the mapping in a power cut.
    pub(crate) fn tables(&self) -> Tables {
        self.keys.ftl.tables.map_or(Tables::Saved, |text| text.0.0)
    }

    /// Whether the flash ages.
    pub fn ages(&self) -> bool {
        self.aging.is_some() || self.parts.iter().any(|part| part.drive.ages())
    }

    pub(crate) fn timing(&self) -> &Timing {
        &self.timing
    }

    pub(crate) fn ftl(&self) -> PageFtlConfig {
        self.ftl
    }

    /// The configuration of an OX-Block, if the drive has one.
    pub fn ox_block(&self) -> Option<OxBlockConfig> {
        self.ox_block
    }

    /// Whether it has fewer dies or smaller blocks than its profile, because of a small capacity.
    pub fn is_reshaped(&self) -> bool {
        self.is_reshaped
    }

    /// Whether the drive, or a part of it, has an OX-Block.
    pub fn has_ox_block(&self) -> bool {
        self.ox_block.is_some() || self.parts.iter().any(|part| part.drive.has_ox_block())
    }

    pub(crate) fn policies(&self, seed: Seed) -> Policies {
        policies::of_ftl(&self.keys.ftl, &self.geometry(), seed, &self.own)
    }

    /// The drive with a program's own policies. A note names them.
    ///
    /// # Errors
    /// If its FTL takes no policies.
    pub fn with_policies(mut self, own: OwnPolicies) -> Result<Resolved> {
        let names = own.names();
        if names.is_empty() {
            return Ok(self);
        }
        if self.kind() != "page" || !self.parts.is_empty() {
            let problem = "a policy of one's own is for a drive with one FTL of the kind \"page\"";
            return Err(ProfileError::new("ftl.kind", problem.to_owned()));
        }
        self.notes.push(format!("policies that no key names decide on: {}", names.join(", ")));
        self.own = own;
        Ok(self)
    }

    pub(crate) fn controller(&self) -> ControllerConfig {
        self.controller.clone()
    }

    /// Class and tenant of commands that state none.
    pub fn assignments(&self) -> &Assignments {
        &self.controller.assign
    }

    /// The drive's own figures for the length of windows for background work, if it has windows.
    pub fn windows(&self) -> Option<WindowRules> {
        self.controller.windows
    }

    /// Ranges of the capacity with separate windows; 0 is none.
    pub fn window_ranges(&self) -> u32 {
        self.keys.ftl.windows.ranges.unwrap_or(0)
    }

    /// Commands in work at a time.
    pub fn command_slots(&self) -> u32 {
        self.keys.controller.command_slots.unwrap_or(1)
    }

    /// Whether fail-fast reads fail instead of waiting for background work.
    pub fn fails_reads(&self) -> bool {
        let is_page = self.keys.ftl.kind.is_none_or(|kind| kind.0.0 == FtlKind::Page);
        is_page && self.keys.ftl.read.policy.map_or(DEFAULT_READ, |policy| policy.0.0) == ReadRule::FailFast
    }

    /// Whether only reads with the preempt flag interrupt collections.
    pub fn lets_urgent_reads_in(&self) -> bool {
        self.keys.ftl.gc.preempt_on_request.unwrap_or(false)
    }

    /// The names of a drive that is built with `seed`.
    pub(crate) fn names(&self, seed: Seed) -> Names {
        identity::names(&self.name, &self.keys.identity, seed)
    }

    /// The geometry of its flash.
    pub fn geometry(&self) -> Geometry {
        Geometry::new(self.geometry).expect("checked when it was resolved")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::BUILTIN;
    use nandscape_device_controller::LinkConfig;
    use nandscape_device_media::Features;
    use nandscape_sim::units::{Bytes, Ratio};

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
                let wanted = bounds::or(&profile.keys.ftl.over_provisioning, Ratio(0.12)).0;
                assert!(resolved.sizing.over_provisioning >= wanted - 1e-9, "{} {capacity}", builtin.name);
            }
            Profile::load(builtin.name).unwrap().resolve().unwrap();
        }
    }

    #[test]
    fn a_drive_has_handles_or_streams() {
        let mut profile = Profile::load("default").unwrap();
        profile.set_all(["ftl.streams.count=4", "ftl.streams.isolation=persistent"]).unwrap();
        let ftl = profile.resolve().unwrap().keys.ftl;
        assert_eq!((ftl.streams.count, ftl.fdp.handles), (Some(4), Some(0)));
        assert!(error(&["ftl.streams.count=4", "ftl.fdp.handles=2"]).contains("does not go with ftl.fdp.handles"));
        assert!(error(&["ftl.streams.count=64"]).contains("64 is out of range; from 0 to 63 is valid"));
        assert!(error(&["ftl.fdp.handles=65"]).contains("65 is out of range; from 0 to 64 is valid"));
        for (isolation, count) in
            [("ftl.fdp.isolation", "ftl.fdp.handles"), ("ftl.streams.isolation", "ftl.streams.count")]
        {
            let alone = error(&[&format!("{isolation}=persistent")]);
            let told = format!("{isolation}: has no effect without {count}; set that, from 1 to ");
            assert!(alone.starts_with(&told), "{alone}");
            let mut off = Profile::load("default").unwrap();
            off.set_all([format!("{isolation}=persistent"), format!("{count}=0")]).unwrap();
            off.resolve().expect("a count of zero turns it off");
        }
        assert!(error(&["ftl.streams.count=1", "ftl.kind=spdk"]).contains("goes with ftl.kind = \"page\" only"));
    }

    #[test]
    fn keys_of_zones_and_chunks_tell_what_is_valid() {
        let zone = ["ftl.kind=zone", "lba_size=4KiB", "buffer.size=64MiB", "capacity=1GiB"];
        let chunks = ["ftl.kind=open_channel", "lba_size=4KiB", "buffer.mode=through", "capacity=1GiB"];
        for (kind, changes, told) in [
            (
                zone,
                &["ftl.zone.max_active=2", "ftl.zone.max_open=3"][..],
                "ftl.zone.max_open: 3 is out of range; from 1 to 2, as ftl.zone.max_active is, or 0 for as many, is valid",
            ),
            (
                zone,
                &["ftl.zone.max_active=0", "buffer.size=2MiB"],
                "buffer.size: 2MiB is too small for ftl.zone.max_active = ",
            ),
            (
                chunks,
                &["ftl.open_channel.wear_threshold=256"],
                "ftl.open_channel.wear_threshold: 256 is out of range; from 0 to 255 is valid",
            ),
        ] {
            let text = error(&[&kind[..], changes].concat());
            assert!(text.starts_with(told), "{changes:?}: {text}");
        }
        for no_limit in ["ftl.zone.max_active=4294967295", "ftl.zone.max_active=0"] {
            let mut most = Profile::load("default").unwrap();
            most.set_all(zone).unwrap();
            most.set_all([no_limit, "ftl.zone.max_open=0", "capacity=4GiB"]).unwrap();
            let resolved = most.resolve().expect("more than there are is all");
            let (zones, keys) = (resolved.zone().unwrap().zones, &resolved.keys.ftl.zone);
            assert!(zones > 14 && keys.max_active == Some(zones) && keys.max_open == keys.max_active, "{keys:?}");
        }
    }

    #[test]
    fn what_becomes_of_the_zones_of_a_smaller_drive_is_a_note() {
        let notes = |capacity: &str| {
            let mut profile = Profile::load("wd-zn540").unwrap();
            profile.set(&format!("capacity={capacity}")).unwrap();
            profile.resolve().unwrap().notes
        };
        let small = notes("1GiB").join("\n");
        for told in ["a zone holds 68928KiB instead of 1077MiB", "has 15 of them; ftl.zone.size is 2GiB"] {
            assert!(small.contains(told), "{told}: {small}");
        }
        assert_eq!(notes("20GiB"), [""; 0]);
    }

    #[test]
    fn another_capacity_with_other_over_provisioning_is_a_note() {
        let notes = |text: &str, changes: &[&str]| {
            let mut profile = match text {
                "" => Profile::load("default").unwrap(),
                text => Profile::parse("own", text).unwrap(),
            };
            profile.set_all(changes).unwrap();
            let notes = profile.resolve().unwrap().notes;
            notes.join("\n")
        };
        let small = "small drive: 8 dies instead of 64, 31.2% spare flash instead of 14.8%: less bandwidth, lower write amplification";
        for (text, changes) in [
            ("", &["capacity=4GiB"][..]),
            ("", &["ftl.gc.victim=greedy", "capacity=4GiB"]),
            ("version = 1\nbase = \"default\"\ncapacity = \"4GiB\"\n", &[]),
        ] {
            let note = notes(text, changes);
            assert!(note.starts_with(small), "{text} {changes:?}: {note}");
        }
        // A second change is still compared with the profile.
        let mut profile = Profile::load("default").unwrap();
        profile.set("capacity=8GiB").unwrap();
        profile.set("capacity=4GiB").unwrap();
        assert!(profile.resolve().unwrap().notes[0].starts_with(small));
        let larger = notes("", &["capacity=4TiB"]);
        assert!(larger.starts_with("large drive: ") && larger.contains("higher write amplification"), "{larger}");
        assert_eq!(notes("", &["capacity=250GiB"]), "");
        // Without a profile below, the share that it asks for counts.
        let default = BUILTIN.iter().find(|builtin| builtin.name == "default").unwrap().text;
        let alone = default.replace("\"256GiB\"", "\"4GiB\"").replace("\"12%\"", "\"7%\"");
        let note = notes(&alone, &[]);
        assert!(note.contains("% (7.0% asked), and ") && !note.contains("the profile"), "{note}");
        for builtin in BUILTIN {
            let notes = Profile::load(builtin.name).unwrap().resolve().unwrap().notes;
            assert!(!notes.iter().any(|note| note.contains("over-provisioning is")), "{}: {notes:?}", builtin.name);
        }
    }

    #[test]
    fn the_least_number_of_blocks_that_is_told_is_the_least() {
        for name in ["default", "ox-block"] {
            let resolved = |blocks: u32| {
                let mut profile = Profile::load(name).unwrap();
                profile.keys.capacity = None;
                profile.set(&format!("geometry.blocks_per_plane={blocks}")).unwrap();
                profile.resolve().map(drop).map_err(|error| error.to_string())
            };
            let problem = resolved(2).unwrap_err();
            let told = problem.strip_suffix(" or more are valid").unwrap_or_else(|| panic!("{problem}"));
            let least: u32 = told.rsplit(' ').next().unwrap().parse().unwrap();
            assert!(resolved(least - 1).is_err(), "{name}: {problem}");
            resolved(least).unwrap_or_else(|error| panic!("{name}: {problem}, but {error}"));
        }
    }

    #[test]
    fn impossible_values_are_refused_by_key_with_what_is_valid() {
        let cases: [(&[&str], &str); 43] = [
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
            (&["controller.max_transfer=4KiB"], "controller.max_transfer: 4KiB"),
            (
                &["ftl.over_provisioning=20000%"],
                "ftl.over_provisioning: 20000% is out of range; from 0 to 1, or from \"0%\" to \"10000%\"",
            ),
            (&["buffer.size=4KiB"], "buffer.size: 4KiB is out of range"),
            (&["lba_size=520"], "lba_size: 520 is not valid"),
            (&["faults=[\"fail channel=8\"]"], "faults: \"fail channel=8\": channel 8 is not there; from 0 to 7"),
            (
                &["capacity=1GiB", "faults=[\"uncorrectable lba=2097152\"]"],
                "faults: \"uncorrectable lba=2097152\": lba 2097152",
            ),
            (&["identity.serial=123456789012345678901"], "identity.serial: \"123456789012345678901\" has 21 bytes"),
            (&["identity.model=''"], "identity.model: \"\" has 0 bytes; from 1 to 40 printable ASCII"),
            (&["identity.nqn=drive"], "identity.nqn: \"drive\" is no NVMe Qualified Name"),
            (&["timing.read=11s"], "timing.read: 11s is out of range; from 0ns to 10s"),
            (&["link.latency=1000000s"], "link.latency: 1000000s is out of range"),
            (&["timing.bus=1B/s"], "timing.bus: 1B/s is out of range; 1KB/s or more"),
            (&["link.bandwidth=1B/1000s"], "link.bandwidth: 1B/1000s is out of range"),
            (&["ftl.gc.free_blocks=1"], "ftl.gc.free_blocks: 1 is out of range; from 2"),
            (
                &["ftl.windows.free_blocks=4294967295"],
                "ftl.windows.free_blocks: 4294967295 is out of range; from 0 to 65536",
            ),
            (&["ftl.windows.free_blocks_long=65537"], "ftl.windows.free_blocks_long: 65537 is out of range"),
            (&["ftl.deallocate_time=11s"], "ftl.deallocate_time: 11s is out of range"),
            (&["ftl.restart_time=11s"], "ftl.restart_time: 11s is out of range"),
            (&["link.packet=100"], "link.packet: 100B is not a power of two from 128B"),
            (&["timing.command=11s"], "timing.command: 11s is out of range"),
            (&["timing.ecc.time=11s"], "timing.ecc.time: 11s is out of range"),
            (&["timing.ecc.codeword=100"], "timing.ecc.codeword: 100B is not a power of two"),
            (&["timing.ecc.engines=257"], "timing.ecc.engines: 257 is out of range"),
            (&["timing.read_retry.probability=[0.5, 0.6]"], "timing.read_retry.probability: 1.1 in all is more than"),
            (&["timing.read_retry.time=11s"], "timing.read_retry.time: 11s is out of range"),
            (&["timing.suspend.erase=11s"], "timing.suspend.erase: 11s is out of range"),
            (
                &["timing.suspend.erase=1us", "controller.priority=fifo"],
                "timing.suspend.erase: needs controller.priority",
            ),
            (&["ftl.gc.preempt=true", "controller.priority=fifo"], "ftl.gc.preempt: needs controller.priority"),
            (&["ftl.gc.preempt=true", "ftl.gc.scheme=channel"], "ftl.gc.preempt: needs ftl.gc.scheme = \"plane\""),
            (
                &["timing.program_unit=word_line", "timing.cell=mlc", "timing.read=1us"],
                "timing.program_unit: \"word_line\" is for",
            ),
            (
                &["timing.program_unit=word_line", "geometry.pages_per_block=256"],
                "geometry.pages_per_block: 256 is no multiple",
            ),
            (&["timing.program_unit=word_line", "ftl.gc.copyback=true"], "ftl.gc.copyback: does not go with"),
            (
                &["timing.program_unit=word_line", "timing.planes=multi_plane", "buffer.size=128KiB"],
                "buffer.size: 128KiB is too small: 6 pages are programmed at once",
            ),
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
            for capacity in [None, Some("capacity=64MiB"), Some("capacity=3GiB")] {
                let mut profile = Profile::load(builtin.name).unwrap();
                profile.set_all(capacity).unwrap();
                let resolved = profile.resolve().unwrap();
                let again = Profile::parse(builtin.name, &resolved.to_toml()).unwrap().resolve().unwrap();
                let (notes, is_reshaped) = (resolved.notes.clone(), resolved.is_reshaped);
                assert_eq!(Resolved { notes, is_reshaped, ..again }, resolved, "{}", builtin.name);
            }
        }
    }

    /// With every feature of the flash on, as written and without delay.
    #[test]
    fn features_are_written_and_read_back() {
        let mut profile = Profile::load("default").unwrap();
        profile
            .set_all([
                "timing.command=200ns",
                "timing.planes=multi_plane",
                "timing.program_unit=word_line",
                "timing.cache_read=false",
                "timing.ecc.time=2us",
                "timing.ecc.engines=4",
                "timing.read_retry.probability=[\"2%\", 0.001]",
                "timing.read_retry.time=10us",
                "timing.suspend.erase=20us",
                "timing.suspend.limit=7",
                "ftl.gc.preempt=true",
                "link.duplex=half",
                "link.packet=4KiB",
                "controller.processors.count=3",
                "controller.processors.kib_time=1us",
                "buffer.mode=register",
            ])
            .unwrap();
        let resolved = profile.resolve().unwrap();
        let Features { read_retry, suspend, ecc, .. } = &resolved.timing.features;
        assert_eq!((&read_retry.probability[..], ecc.engines, ecc.codeword), (&[0.02, 0.001][..], 4, 4_096));
        assert_eq!((suspend.program, suspend.erase, suspend.limit), (None, Some(Span::from_us(20)), Some(7)));
        for resolved in [resolved.clone(), resolved.without_delay()] {
            let again = Profile::parse("default", &resolved.to_toml()).unwrap().resolve().unwrap();
            assert_eq!(again, resolved);
        }
    }

    #[test]
    fn without_delay_nothing_takes_time_and_the_keys_say_so() {
        for builtin in BUILTIN {
            let delayed = Profile::load(builtin.name).unwrap().resolve().unwrap();
            let resolved = delayed.clone().without_delay();
            let Timing { read, program, erase, bus, .. } = &resolved.timing;
            let LinkConfig { bandwidth, latency, .. } = resolved.controller.link;
            let times = read.iter().chain(program).chain([erase, &latency, &resolved.controller.firmware_time]);
            assert!(times.eq(&vec![Span::ZERO; 2 * read.len() + 3]), "{}", builtin.name);
            assert!(bus.is_unlimited() && bandwidth.is_unlimited(), "{}", builtin.name);
            assert_eq!(read.len(), delayed.timing.read.len());
            let again = Profile::parse(builtin.name, &resolved.to_toml()).unwrap().resolve().unwrap();
            assert_eq!(again, resolved, "{}", builtin.name);
        }
    }
}
