//! An emulated SSD, assembled from media, FTLs and a controller.

use std::io;
use std::rc::Rc;

use nandscape_device_controller::{Front, Precompletion};
use nandscape_device_ftl_core::{Collections, Occupancy, Plant, PlantReport, Stats, TableSummary};
use nandscape_device_ftl_ox::OxBlock;
use nandscape_device_media::durable::{Owner, StoreFile};
use nandscape_device_media::{AgingCounts, FlashWork, Media, OpCounts, RemoteArray, StoreKind};
use nandscape_drive::{Controller, Subsystem};
use nandscape_sim::account::Totals;
use nandscape_sim::{Seed, Sim, Time};

use crate::assemble::{self, Assembled, Stores};
use crate::orders::{self, Orders};
use crate::part::Part;
use crate::profile::ProfileError;
use crate::resolve::Resolved;
use crate::saved::{SavedDrive, SavedPart};
use crate::settings::Settings;
use crate::store::StoredDrive;

/// An emulated SSD.
pub struct Ssd {
    /// Its FTLs with their flash, by their lowest channel: one, unless its profile has parts.
    parts: Vec<Part>,
    front: Box<dyn Front>,
    settings: Rc<Settings>,
    orders: Orders,
}

impl Ssd {
    /// A new drive, erased.
    ///
    /// # Errors
    /// If the system does not provide memory for its tables.
    pub fn new(sim: &Sim, profile: &Resolved, store: StoreKind, seed: Seed) -> io::Result<Ssd> {
        let names = profile.names(seed.child("identity"));
        if !profile.parts().is_empty() {
            let assembled = assemble::several(sim, profile, Stores::New(store, seed), names)?;
            return Ok(Ssd::of(sim, profile, assembled));
        }
        if profile.rebuilds_in_memory() {
            let spec = profile.store_spec(store == StoreKind::Ram, seed);
            return Ssd::open(sim, profile, StoreFile::in_memory(spec).map_err(io::Error::other)?);
        }
        let media = Media::new(sim, profile.media(store, seed.child("media")))?;
        Ok(Ssd::of(sim, profile, assemble::one(sim, profile, media, names)?))
    }

    /// A new drive over remote flash: that of an open-channel drive, whose host runs the FTL. The profile has one
    /// page-mapping FTL with tables in memory, and the geometry of that flash. It continues from `saved`, the state of another
    /// such drive over the same flash, if that is given.
    ///
    /// # Errors
    /// If the profile has another FTL, the state is not of such a drive, or the system does not provide memory for its tables.
    pub fn over_remote(
        sim: &Sim,
        profile: &Resolved,
        array: Rc<dyn RemoteArray>,
        seed: Seed,
        saved: Option<SavedDrive>,
    ) -> io::Result<Ssd> {
        let maps_pages = profile.kind() == "page" && profile.parts().is_empty() && !profile.rebuilds_in_memory();
        if !maps_pages || profile.ages() {
            let problem = "over flash elsewhere only one FTL of ftl.kind = \"page\" with ftl.tables = \"saved\", without [wear], is valid";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        }
        let names = profile.names(seed.child("identity"));
        let invalid = |problem: String| io::Error::new(io::ErrorKind::InvalidData, problem);
        let mut media = Media::over_remote(sim, profile.media(StoreKind::Ram, seed.child("media")), array)?;
        let Some(saved) = saved else { return Ok(Ssd::of(sim, profile, assemble::one(sim, profile, media, names)?)) };
        let [SavedPart { media: flash, ftl }] = <[SavedPart; 1]>::try_from(saved.parts)
            .map_err(|parts| invalid(format!("the state is of {} FTLs, and the drive has one", parts.len())))?;
        media.put_saved(flash).map_err(invalid)?;
        let ssd = Ssd::of(sim, profile, assemble::one(sim, profile, media, names)?);
        ssd.parts[0].put_tables(ftl).map_err(invalid)?;
        if saved.is_filled {
            ssd.was_filled();
        }
        Ok(ssd)
    }

    /// Opens a drive in a file, which fits `profile` ([`Resolved::check_store`]): in its last state if it was closed,
    /// otherwise as after a loss of power.
    ///
    /// # Errors
    /// When the file cannot be read or written, or is damaged.
    pub fn open(sim: &Sim, profile: &Resolved, file: StoreFile) -> io::Result<Ssd> {
        let is_new = file.before().starts == 0;
        let begins = || if is_new { profile.check_first_start(file.spec()) } else { Ok(()) };
        let fits = profile.check_store(file.spec()).and_then(|()| begins()).and_then(|()| StoredDrive::of(file.spec()));
        let names = fits.map_err(io::Error::other)?.names;
        if !profile.parts().is_empty() {
            let assembled = assemble::several(sim, profile, Stores::Files(all_stores(file)), names)?;
            return Ok(Ssd::of(sim, profile, assembled));
        }
        Ok(Ssd::of(sim, profile, assemble::one(sim, profile, open_media(sim, profile, file)?, names)?))
    }

    /// The flash of each part of a drive in a file, in its last state: no FTL is started on it. The profile fits.
    ///
    /// # Errors
    /// When the file cannot be read or written, or is damaged.
    pub fn open_flash(sim: &Sim, profile: &Resolved, file: StoreFile) -> io::Result<Vec<Media>> {
        match profile.parts().is_empty() {
            true => Ok(vec![open_media(sim, profile, file)?]),
            false => Ok(assemble::media_of(sim, profile, Stores::Files(all_stores(file)))?.0),
        }
    }

    pub(crate) fn of(sim: &Sim, profile: &Resolved, (parts, front): Assembled) -> Ssd {
        let ox_blocks = parts.iter().map(|part| part.ox_block().cloned()).collect();
        let settings = Settings::new(sim, profile, ox_blocks);
        if let (Some(processors), Some(config)) = (front.processors(), profile.controller().processors) {
            let work = || FlashWork { processors: processors.clone(), operation: config.flash, kib: config.flash_kib };
            parts.iter().for_each(|part| _ = part.media.set_work(work()));
        }
        let orders = Orders::new(parts.len());
        Ssd { parts, front, settings, orders }
    }

    /// Its FTLs with their flash, by their lowest channel: one, unless its profile has parts. Several parts are NVM Sets in
    /// this order, counted from one.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The first part: all of the drive, unless its profile has parts.
    fn first(&self) -> &Part {
        &self.parts[0]
    }

    /// The drive as queue pairs, for hosts in this process.
    pub fn controller(&self) -> Rc<dyn Controller> {
        self.front.controller()
    }

    /// The drive as a subsystem, which gives every other host its own controller.
    pub fn subsystem(&self) -> Rc<dyn Subsystem> {
        self.front.subsystem()
    }

    /// Whether hosts may send fail-fast reads. They may, unless this is called; without such reads the drive does not estimate how
    /// long its background work delays them.
    pub fn expect_fail_fast(&self, expected: bool) {
        self.parts.iter().for_each(|part| part.expect_fail_fast(expected));
    }

    /// Whether [`Ssd::plant`] may be called: drives that rebuild their tables from their data must be written instead.
    pub fn can_be_planted(&self) -> bool {
        self.parts.iter().all(Part::can_be_planted)
    }

    /// Gives an unused, unstarted drive the state of a used one, in no simulated time; see
    /// [`PageFtl::plant`](nandscape_device_ftl_page::PageFtl::plant) and [`OxBlock::plant`]. Each part gets that state
    /// separately; the reported write amplification covers all of them.
    pub fn plant(&self, plant: Plant, seed: Seed, progress: &mut dyn FnMut(f64)) -> PlantReport {
        let count = self.parts.len();
        let each = self.parts.iter().enumerate().map(|(number, part)| {
            let seed = if count == 1 { seed } else { seed.nth(number as u64) };
            part.plant(plant, seed, &mut |share| progress((number as f64 + share) / count as f64))
        });
        let reports: Vec<PlantReport> = each.collect();
        self.front.was_filled();
        let overwritten = reports.iter().map(|report| report.overwritten).sum();
        let weights: f64 = reports.iter().map(|report| report.overwritten as f64).sum();
        let weighted: f64 = reports.iter().map(|report| report.waf * report.overwritten as f64).sum();
        let waf = if count == 1 || weights == 0.0 { reports[0].waf } else { weighted / weights };
        PlantReport { overwritten, waf }
    }

    /// Gives an unused open-channel drive written chunks, in no simulated time: `written` returns the written units of each
    /// chunk by number. They hold the data that the host's FTL was planted with.
    ///
    /// # Panics
    /// If the drive is no open-channel drive, or a count is no multiple of its write size.
    pub fn plant_chunks(&self, written: &dyn Fn(u32) -> u32) {
        let chunks = self.first().open_channel().expect("an open-channel drive");
        chunks.plant_chunks(written, &mut |_| ());
        self.front.was_filled();
    }

    /// The drive got data other than by commands.
    pub(crate) fn was_filled(&self) {
        self.front.was_filled();
    }

    /// The FTL, if the drive has one and it is an OX-Block.
    pub fn ox_block(&self) -> Option<&Rc<OxBlock>> {
        if let [part] = &*self.parts { part.ox_block() } else { None }
    }

    /// Changes a setting while the drive runs, as `ftl.ox_block.gc_slots=4`, or with several parts
    /// `archive:ftl.ox_block.gc_slots=4`. Or gives an order for garbage collection, as `gc.run=100ms`, or to one of several
    /// parts `even:gc.run=100ms`.
    ///
    /// # Errors
    /// Why it cannot be changed, and what would be valid.
    pub fn change(&self, setting: &str) -> Result<(), ProfileError> {
        match setting.split_once('=').and_then(|(key, value)| Some((orders::split(key)?, value.trim()))) {
            Some((order, value)) => self.orders.give(&self.parts, order, value),
            None => self.settings.change(setting),
        }
    }

    /// Garbage collection at the host's command; `None` where the drive has several FTLs, or takes no such orders.
    pub fn collections(&self) -> Option<&dyn Collections> {
        if let [part] = &*self.parts { part.collections() } else { None }
    }

    /// The accuracy of notices ahead of completions; `None` for a drive without notices.
    pub fn precompletion(&self) -> Option<Precompletion> {
        self.front.precompletion()
    }

    /// Restarts the counts of notices.
    pub fn count_notices_anew(&self) {
        self.front.count_notices_anew();
    }

    /// Room in the write buffers.
    pub fn occupancy(&self) -> Occupancy {
        self.parts.iter().map(Part::occupancy).reduce(Occupancy::plus).unwrap_or_default()
    }

    /// The current values of settings that can be changed while the drive runs, by key.
    pub fn settings(&self) -> Vec<(String, String)> {
        self.settings.now().into_iter().chain(self.orders.settings(&self.parts)).collect()
    }

    /// Waits until the drive is in service, or never will be: a drive with tables in flash reads them first.
    pub async fn in_service(&self) {
        for part in &self.parts {
            part.in_service().await;
        }
    }

    /// Flushes every FTL, and writes the tables that the next start would have to reconstruct. Call it before [`Ssd::close`].
    pub async fn shut_down(&self) {
        for part in &self.parts {
            part.shut_down().await;
        }
    }

    /// Turns the drive off in an orderly way, so that a file-backed drive starts quickly. The drive must not be used
    /// afterwards.
    ///
    /// # Errors
    /// Why the file could not be written.
    pub fn close(&self) -> io::Result<()> {
        self.front.note();
        let close = |part: &Part| part.save().and_then(|()| part.media.close());
        let closed = self.parts.iter().try_for_each(close);
        closed.map_err(|_| io::Error::other(self.store_failure().unwrap_or_default()))
    }

    /// Marks the begin or the end of filling the drive with a state. A file in which filling did not end is rejected.
    ///
    /// # Errors
    /// Why the file could not be written.
    pub fn set_filling(&self, is_filling: bool) -> io::Result<()> {
        let tell = |part: &Part| {
            if !is_filling {
                // Planted data has the age from the life before the run.
                part.media.keep_ages()?;
            }
            part.media.durable().map_or(Ok(()), |memory| memory.set_filling(is_filling))
        };
        let told = self.parts.iter().try_for_each(tell);
        told.map_err(|_| io::Error::other(self.store_failure().unwrap_or_default()))
    }

    /// Marks the file, if there is one, as that of a member: it is not served alone unless that is asked for.
    ///
    /// # Errors
    /// Why the file could not be written.
    pub fn join(&self, owner: Owner) -> io::Result<()> {
        // The first store of a file has what is of all.
        let memory = self.parts.iter().find_map(|part| part.media.durable());
        let marked = memory.map_or(Ok(()), |memory| memory.join(owner));
        marked.map_err(|_| io::Error::other(self.store_failure().unwrap_or_default()))
    }

    /// Why the file of the flash can no longer be written, if so.
    pub fn store_failure(&self) -> Option<String> {
        self.parts.iter().find_map(|part| part.media.durable()?.failure())
    }

    /// Checks the drive's tables against each other and the flash.
    ///
    /// # Errors
    /// The problem, in one sentence.
    pub fn check(&self) -> Result<(), String> {
        let named =
            |part: &Part, problem| if self.parts.len() == 1 { problem } else { format!("{}: {problem}", part.name) };
        self.parts.iter().try_for_each(|part| part.check().map_err(|problem| named(part, problem)))
    }

    /// A summary of the tables.
    pub fn tables(&self) -> TableSummary {
        self.parts.iter().map(Part::tables).reduce(|one, other| one.plus(&other)).unwrap_or_default()
    }

    /// Counters of the FTLs together.
    pub fn ftl_stats(&self) -> Stats {
        self.parts.iter().map(Part::stats).reduce(|one, other| one.plus(&other)).unwrap_or_default()
    }

    /// Bytes of memory of the FTLs by component.
    pub fn ftl_memory(&self) -> Vec<(&'static str, u64)> {
        let mut all: Vec<(&'static str, u64)> = Vec::new();
        for (name, bytes) in self.parts.iter().flat_map(Part::memory) {
            match all.iter_mut().find(|(known, _)| *known == name) {
                Some((_, sum)) => *sum += bytes,
                None => all.push((name, bytes)),
            }
        }
        all
    }

    /// Counts of flash operations.
    pub fn op_counts(&self) -> OpCounts {
        self.parts.iter().map(Part::op_counts).reduce(|one, other| one.plus(&other)).unwrap_or_default()
    }

    /// The effects of aging so far, if the flash ages.
    pub fn aging_counts(&self) -> Option<AgingCounts> {
        let counts = self.parts.iter().filter_map(|part| part.media.aging_counts());
        counts.reduce(|one, other| one.plus(&other))
    }

    /// Whether some part of the drive takes no writes.
    pub fn is_read_only(&self) -> bool {
        self.parts.iter().any(|part| part.read_only().is_some())
    }

    /// Why some part of the drive is read-only, in words, with the names of the parts if there are several.
    pub fn read_only(&self) -> Option<String> {
        let why = self.parts.iter().filter_map(|part| Some((part, part.read_only()?)));
        let told: Vec<String> = why
            .map(|(part, why)| if self.parts.len() == 1 { why.to_string() } else { format!("{}: {why}", part.name) })
            .collect();
        (!told.is_empty()).then(|| told.join("; "))
    }

    /// The flash of the first part. Power and faults are those of the whole drive.
    pub fn media(&self) -> &Media {
        &self.first().media
    }

    /// Outages after power cuts, like [`Subsystem::outages`].
    pub fn outages(&self) -> Vec<(Time, Time)> {
        self.front.subsystem().outages()
    }

    /// The time of its clock.
    pub fn now(&self) -> Time {
        self.media().now()
    }

    /// Busy time so far of each plane, each channel, the link to and from the host, and the processors.
    pub fn usage(&self) -> Usage {
        Usage {
            planes: self.parts.iter().flat_map(|part| part.media.array_usage()).collect(),
            registers: self.parts.iter().flat_map(|part| part.media.register_usage()).collect(),
            channels: self.parts.iter().flat_map(|part| part.media.channel_usage()).collect(),
            link: self.front.link_usage(),
            processors: self.front.processors().map(|processors| (processors.count() as u32, processors.usage())),
        }
    }
}

/// The stores of a drive with several FTLs.
fn all_stores(mut file: StoreFile) -> Vec<StoreFile> {
    let following = file.take_following();
    std::iter::once(file).chain(following).collect()
}

/// The flash of a drive with one FTL.
fn open_media(sim: &Sim, profile: &Resolved, file: StoreFile) -> io::Result<Media> {
    // The seed from the creation of the drive, so that random choices stay the same.
    let config = profile.media(StoreKind::None, Seed::new(file.spec().seed).child("media"));
    Media::open(sim, config, file)
}

/// Busy time by cause.
#[derive(Clone, Debug)]
pub struct Usage {
    /// By array: a plane, or a die whose planes do not work independently.
    pub planes: Vec<Totals>,
    /// By the registers of each: at least one was in use.
    pub registers: Vec<Totals>,
    /// Of each channel.
    pub channels: Vec<Totals>,
    /// Of the link, to the host and from it.
    pub link: [Totals; 2],
    /// The number of the controller's processors, if any, and their total busy time.
    pub processors: Option<(u32, Totals)>,
}
