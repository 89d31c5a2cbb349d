//! Assembles a drive from media, FTL and controller.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;

use nandscape_device_controller::{Nvm, NvmSubsystem, NvmeController};
use nandscape_device_ftl::component::BlockInfo;
use nandscape_device_ftl::{Ftl, OxBlock, PageFtl, Plant, PlantReport, Stats, TableSummary};
use nandscape_device_media::durable::StoreFile;
use nandscape_device_media::{BlockId, Media, MediaError, OpCounts, StoreKind, UnitId};
use nandscape_drive::{Controller, Names, Subsystem};
use nandscape_sim::account::Totals;
use nandscape_sim::{Seed, Sim};

use crate::policies;
use crate::profile::ProfileError;
use crate::resolve::Resolved;
use crate::settings::Settings;
use crate::store::StoredDrive;
use crate::values::Tables;

/// An emulated SSD.
pub struct Ssd {
    media: Rc<Media>,
    drive: Box<dyn Assembled>,
    settings: Rc<Settings>,
}

/// An FTL under its controller. Commands do not pass here: their way is made for each kind of FTL by the compiler.
trait Assembled {
    fn controller(&self) -> Rc<dyn Controller>;
    fn subsystem(&self) -> Rc<dyn Subsystem>;
    fn link_usage(&self) -> [Totals; 2];
    fn check(&self) -> Result<(), String>;
    fn stats(&self) -> Stats;
    fn memory(&self) -> Vec<(&'static str, u64)>;
    fn is_read_only(&self) -> bool;
    fn page_ftl(&self) -> Option<&PageFtl>;
    fn ox_block(&self) -> Option<&Rc<OxBlock>>;
    fn block(&self, block: BlockId) -> BlockInfo;
    fn is_current(&self, unit: UnitId) -> bool;
    fn tables(&self) -> TableSummary;
    /// Tells the controller that the FTL was planted.
    fn was_planted(&self);
    /// Has the controller write its notes.
    fn note(&self);
    fn shut_down(&self) -> Pin<Box<dyn Future<Output = ()> + '_>>;
}

/// The parts of a drive with an FTL of type `F`.
struct Parts<F: Ftl> {
    ftl: Rc<F>,
    page: Option<Rc<PageFtl>>,
    ox_block: Option<Rc<OxBlock>>,
    controller: Rc<NvmeController<Nvm<F>>>,
}

impl<F: Ftl> Assembled for Parts<F> {
    fn controller(&self) -> Rc<dyn Controller> {
        self.controller.clone()
    }

    fn subsystem(&self) -> Rc<dyn Subsystem> {
        self.controller.subsystem().clone()
    }

    fn link_usage(&self) -> [Totals; 2] {
        self.controller.subsystem().link_usage()
    }

    fn check(&self) -> Result<(), String> {
        self.ftl.check()
    }

    fn stats(&self) -> Stats {
        self.ftl.stats()
    }

    fn memory(&self) -> Vec<(&'static str, u64)> {
        self.ftl.memory()
    }

    fn is_read_only(&self) -> bool {
        self.ftl.is_read_only()
    }

    fn page_ftl(&self) -> Option<&PageFtl> {
        self.page.as_deref()
    }

    fn ox_block(&self) -> Option<&Rc<OxBlock>> {
        self.ox_block.as_ref()
    }

    fn block(&self, block: BlockId) -> BlockInfo {
        self.ftl.block(block)
    }

    fn is_current(&self, unit: UnitId) -> bool {
        self.ftl.is_current(unit)
    }

    fn tables(&self) -> TableSummary {
        self.ftl.tables()
    }

    fn was_planted(&self) {
        self.controller.subsystem().was_filled();
    }

    fn note(&self) {
        self.controller.subsystem().note();
    }

    fn shut_down(&self) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        Box::pin(self.ftl.shut_down())
    }
}

impl Ssd {
    /// A new drive, erased.
    ///
    /// # Errors
    /// When the system does not give the memory for its tables.
    pub fn new(sim: &Sim, profile: &Resolved, store: StoreKind, seed: Seed) -> io::Result<Ssd> {
        if profile.tables() == Tables::Rebuilt && profile.ox_block().is_none() {
            let spec = profile.store_spec(store == StoreKind::Ram, seed);
            return Ssd::open(sim, profile, StoreFile::in_memory(spec).map_err(io::Error::other)?);
        }
        let media = Media::new(sim, profile.media(store, seed.child("media")))?;
        Ssd::over(sim, profile, media, profile.names(seed.child("identity")))
    }

    /// The drive that a file holds, which fits `profile` ([`Resolved::check_store`]): as it was left, if it was closed;
    /// otherwise as after a loss of power.
    ///
    /// # Errors
    /// When the file cannot be read or written, or is damaged.
    pub fn open(sim: &Sim, profile: &Resolved, file: StoreFile) -> io::Result<Ssd> {
        let spec = file.spec().clone();
        let fits = profile.check_store(&spec).and_then(|()| StoredDrive::of(&spec));
        let names = fits.map_err(io::Error::other)?.names;
        // The seed of the drive that was made, so that what was left to chance stays.
        let config = profile.media(StoreKind::None, Seed::new(spec.seed).child("media"));
        Ssd::over(sim, profile, Media::open(sim, config, file)?, names)
    }

    fn over(sim: &Sim, profile: &Resolved, media: Media, names: Names) -> io::Result<Ssd> {
        let media = Rc::new(media);
        let drive: Box<dyn Assembled> = match profile.ox_block() {
            Some(config) => {
                let ftl = OxBlock::open(sim, media.clone(), config)?;
                let controller = controller(sim, &media, &ftl, profile, names)?;
                Box::new(Parts { page: None, ox_block: Some(ftl.clone()), ftl, controller })
            }
            None => {
                let ftl = PageFtl::new(sim, media.clone(), profile.ftl(), profile.policies())?;
                let controller = controller(sim, &media, &ftl, profile, names)?;
                Box::new(Parts { page: Some(ftl.clone()), ox_block: None, ftl, controller })
            }
        };
        let settings = Settings::new(sim, profile, drive.ox_block());
        Ok(Ssd { media, drive, settings })
    }

    /// The drive as queue pairs, for hosts in this process.
    pub fn controller(&self) -> Rc<dyn Controller> {
        self.drive.controller()
    }

    /// The drive as a subsystem, which gives every other host a controller of its own.
    pub fn subsystem(&self) -> Rc<dyn Subsystem> {
        self.drive.subsystem()
    }

    /// Whether [`Ssd::plant`] may be called: drives whose tables are found again in their data have to be written.
    pub fn can_be_planted(&self) -> bool {
        self.drive.ox_block().is_none_or(|ftl| ftl.can_be_planted())
    }

    /// Gives an unused drive that has not started the state of a used one, in no time; see [`PageFtl::plant`] and
    /// [`OxBlock::plant`].
    pub fn plant(&self, plant: Plant, seed: Seed, progress: &mut dyn FnMut(f64)) -> PlantReport {
        let report = match (self.drive.page_ftl(), self.drive.ox_block()) {
            (Some(ftl), _) => ftl.plant(plant, seed, progress),
            (None, Some(ftl)) => ftl.plant(plant, seed, progress),
            (None, None) => unreachable!("a drive has one of the two"),
        };
        self.drive.was_planted();
        report
    }

    /// The FTL, if it is an OX-Block.
    pub fn ox_block(&self) -> Option<&Rc<OxBlock>> {
        self.drive.ox_block()
    }

    /// Changes a setting while the drive runs, as `ftl.ox_block.gc_slots=4`.
    ///
    /// # Errors
    /// Why it cannot be changed, and what would be valid.
    pub fn change(&self, setting: &str) -> Result<(), ProfileError> {
        self.settings.change(setting)
    }

    /// The settings that can be changed while the drive runs, as they are now, by key.
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        self.settings.now()
    }

    /// Waits until the drive is in service, or will never be: one whose tables are in its flash reads them first.
    pub async fn in_service(&self) {
        if let Some(ftl) = self.drive.ox_block() {
            ftl.in_service().await;
        }
    }

    /// Writes what the next start would have to find out, before [`Ssd::close`].
    pub async fn shut_down(&self) {
        self.drive.shut_down().await;
    }

    /// Turns the drive off, in order: where its flash is in a file, it starts again at once. The drive must not be used
    /// afterwards.
    ///
    /// # Errors
    /// Why the file could not be written.
    pub fn close(&self) -> io::Result<()> {
        self.drive.note();
        let closed = self.save().and_then(|()| self.media.close());
        closed.map_err(|_| io::Error::other(self.store_failure().unwrap_or_default()))
    }

    fn save(&self) -> Result<(), MediaError> {
        match (self.drive.page_ftl(), self.drive.ox_block()) {
            (Some(ftl), _) => ftl.save(),
            (_, Some(ftl)) => ftl.save(),
            (None, None) => Ok(()),
        }
    }

    /// Why nothing can be written to the file any more that the flash is in, if that is so.
    pub fn store_failure(&self) -> Option<String> {
        self.media.durable()?.failure()
    }

    /// Checks the drive's tables against each other and the flash.
    ///
    /// # Errors
    /// The problem, in one sentence.
    pub fn check(&self) -> Result<(), String> {
        self.drive.check()
    }

    /// What the FTL knows of a block.
    pub fn block(&self, block: BlockId) -> BlockInfo {
        self.drive.block(block)
    }

    /// Whether a unit of the flash holds current data.
    pub fn is_current(&self, unit: UnitId) -> bool {
        self.drive.is_current(unit)
    }

    /// What the FTL's tables hold, counted.
    pub fn tables(&self) -> TableSummary {
        self.drive.tables()
    }

    /// Counters of the FTL.
    pub fn ftl_stats(&self) -> Stats {
        self.drive.stats()
    }

    /// Bytes of memory of the FTL by component.
    pub fn ftl_memory(&self) -> Vec<(&'static str, u64)> {
        self.drive.memory()
    }

    /// Counts of flash operations.
    pub fn op_counts(&self) -> OpCounts {
        self.media.counts()
    }

    /// Whether the drive has too few good blocks to take writes.
    pub fn is_read_only(&self) -> bool {
        self.drive.is_read_only()
    }

    /// The flash.
    pub fn media(&self) -> &Media {
        &self.media
    }

    /// Busy time so far of each plane, each channel, and the link to and from the host.
    pub fn usage(&self) -> Usage {
        Usage { planes: self.media.array_usage(), channels: self.media.channel_usage(), link: self.drive.link_usage() }
    }
}

/// The controller over an FTL.
fn controller<F: Ftl>(
    sim: &Sim,
    media: &Rc<Media>,
    ftl: &Rc<F>,
    profile: &Resolved,
    names: Names,
) -> io::Result<Rc<NvmeController<Nvm<F>>>> {
    let config = profile.controller();
    let set = Nvm::new(sim, media.clone(), ftl.clone(), &config);
    let subsystem = NvmSubsystem::new(sim, set, config, names, policies::arbiter);
    if let Some(memory) = media.durable() {
        subsystem.take_up_notes(memory.clone())?;
    }
    Ok(subsystem.in_process())
}

/// Busy time by cause.
#[derive(Clone, Debug)]
pub struct Usage {
    /// Of each array: of a plane, or of a die whose planes do not work independently.
    pub planes: Vec<Totals>,
    /// Of each channel.
    pub channels: Vec<Totals>,
    /// Of the link, to the host and from it.
    pub link: [Totals; 2],
}
