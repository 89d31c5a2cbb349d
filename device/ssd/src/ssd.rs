//! Assembles a drive from media, FTL and controller.

use std::io;
use std::rc::Rc;

use nandscape_device_controller::{Nvm, NvmSubsystem, NvmeController};
use nandscape_device_ftl::{Ftl, PageFtl, Plant, PlantReport, Stats};
use nandscape_device_media::{Media, OpCounts, StoreKind};
use nandscape_drive::{Controller, Subsystem};
use nandscape_sim::account::Totals;
use nandscape_sim::{Seed, Sim};

use crate::policies;
use crate::resolve::Resolved;

/// An emulated SSD.
pub struct Ssd {
    media: Rc<Media>,
    ftl: Rc<PageFtl>,
    controller: Rc<NvmeController<Nvm<PageFtl>>>,
}

impl Ssd {
    /// A new drive, erased.
    ///
    /// # Errors
    /// When the system does not give the memory for its tables.
    pub fn new(sim: &Sim, profile: &Resolved, store: StoreKind, seed: Seed) -> io::Result<Ssd> {
        let media = Rc::new(Media::new(sim, profile.media(store, seed.child("media")))?);
        let ftl = PageFtl::new(sim, media.clone(), profile.ftl(), profile.policies())?;
        let config = profile.controller();
        let set = Nvm::new(sim, media.clone(), ftl.clone(), &config);
        let names = profile.names(seed.child("identity"));
        let controller = NvmSubsystem::new(sim, set, config, names, policies::arbiter).in_process();
        Ok(Ssd { media, ftl, controller })
    }

    /// The drive as queue pairs, for hosts in this process.
    pub fn controller(&self) -> Rc<dyn Controller> {
        self.controller.clone()
    }

    /// The drive as a subsystem, which gives every other host a controller of its own.
    pub fn subsystem(&self) -> Rc<dyn Subsystem> {
        self.controller.subsystem().clone()
    }

    /// Gives an unused drive the state of a used one, in no time; see [`PageFtl::plant`].
    pub fn plant(&self, plant: Plant, seed: Seed, progress: &mut dyn FnMut(f64)) -> PlantReport {
        self.ftl.plant(plant, seed, progress)
    }

    /// Checks the drive's tables against each other and the flash.
    ///
    /// # Errors
    /// The problem, in one sentence.
    pub fn check(&self) -> Result<(), String> {
        self.ftl.check()
    }

    /// Counters of the FTL.
    pub fn ftl_stats(&self) -> Stats {
        self.ftl.stats()
    }

    /// Counts of flash operations.
    pub fn op_counts(&self) -> OpCounts {
        self.media.counts()
    }

    /// Whether the drive has too few good blocks to take writes.
    pub fn is_read_only(&self) -> bool {
        self.ftl.is_read_only()
    }

    /// The flash.
    pub fn media(&self) -> &Media {
        &self.media
    }

    /// Busy time so far of each plane, each channel, and the link to and from the host.
    pub fn usage(&self) -> Usage {
        Usage {
            planes: self.media.array_usage(),
            channels: self.media.channel_usage(),
            link: self.controller.subsystem().link_usage(),
        }
    }
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
