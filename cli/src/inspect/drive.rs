//! A drive that was started for inspection: on the unchanged file of a drive, with all changes kept in memory, or in the state of a
//! file of states.

use std::path::Path;

use anyhow::{Context as _, anyhow};
use nandscape_device_ftl_ox::ox_block::content;
use nandscape_device_media::durable::{StoreFile, StoreUse};
use nandscape_device_media::{BlockId, Geometry, Media, StoreKind};
use nandscape_device_ssd::{Part, PartStore, Profile, Resolved, SavedDrive, Ssd, StoredDrive};
use nandscape_sim::{Executor, Seed};

/// A drive that was started for inspection.
pub(crate) struct Inspected {
    pub(crate) ssd: Ssd,
    /// The flash of each of its FTLs before the start, if the start changes it.
    found: Option<Vec<Media>>,
    pub(crate) profile: Resolved,
    pub(crate) origin: Origin,
}

/// Where it comes from.
pub(crate) enum Origin {
    /// The file of a drive.
    File(Box<OfFile>),
    /// A state, by the number of the drive in it.
    State(usize),
}

/// What the file of a drive holds besides its flash.
pub(crate) struct OfFile {
    pub(crate) drive: StoredDrive,
    /// How the file was used so far.
    pub(crate) used: StoreUse,
    /// Whether another process uses it now.
    pub(crate) in_use: bool,
}

impl Inspected {
    /// Starts the drive of a file.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Inspected> {
        let shown = path.display().to_string();
        let (file, in_use) = StoreFile::open_to_read(path).map_err(|error| anyhow!("{shown}: {error}"))?;
        let used = file.before();
        let drive = StoredDrive::of(file.spec()).map_err(|error| anyhow!("{shown}: {error}"))?;
        let profile = Profile::of_keys(&drive.profile_name, drive.keys.clone()).resolve();
        let profile = profile.with_context(|| format!("{shown}: its profile"))?;
        let mut executor = Executor::new();
        let ssd = Ssd::open(&executor.sim(), &profile, file).with_context(|| shown.clone())?;
        let (again, _) = StoreFile::open_to_read(path).map_err(|error| anyhow!("{shown}: {error}"))?;
        let found = Ssd::open_flash(&executor.sim(), &profile, again).with_context(|| shown.clone())?;
        start(&mut executor, &ssd).with_context(|| shown.clone())?;
        let origin = Origin::File(Box::new(OfFile { drive, used, in_use }));
        Ok(Inspected { ssd, found: Some(found), profile, origin })
    }

    /// Starts a drive of a state, by its number. `again` is the same state for a look at its flash before the start.
    pub(crate) fn of_state(
        number: usize,
        (profile, seed): (Resolved, u64),
        saved: SavedDrive,
        again: Option<SavedDrive>,
    ) -> anyhow::Result<Inspected> {
        let (mut executor, seed) = (Executor::new(), Seed::new(seed));
        let sim = executor.sim();
        // Data is not shown.
        let ssd = Ssd::restore(&sim, &profile, StoreKind::None, seed, saved)?;
        let found = again.map(|saved| Ssd::restore_flash(&sim, &profile, StoreKind::None, seed, saved)).transpose()?;
        start(&mut executor, &ssd)?;
        Ok(Inspected { ssd, found, profile, origin: Origin::State(number) })
    }

    /// What its file holds, if it has one.
    pub(crate) fn of_file(&self) -> Option<&OfFile> {
        if let Origin::File(file) = &self.origin { Some(file) } else { None }
    }

    /// Each of its FTLs with its flash.
    pub(super) fn views(&self) -> impl Iterator<Item = View<'_>> {
        // A state has the flash of all parts.
        let is_ram = |store: PartStore| store == PartStore::Ram && self.of_file().is_some();
        let in_memory = self.profile.parts().iter().map(move |part| is_ram(part.store));
        let in_memory = in_memory.chain(std::iter::repeat(false));
        let parts = self.ssd.parts().iter().enumerate().zip(in_memory);
        parts.map(|((number, part), in_memory)| {
            let found = self.found.as_ref().map_or_else(|| part.media(), |found| &found[number]);
            View { inspected: self, part, found, in_memory }
        })
    }

    /// Which channels are in memory, so that the file has nothing of them.
    pub(crate) fn channels_in_memory(&self) -> Option<String> {
        let channels = |view: View<'_>| view.in_memory.then(|| view.channels());
        let all: Vec<String> = self.views().filter_map(channels).collect();
        (!all.is_empty()).then(|| all.join(","))
    }
}

/// Tables that are in the flash are read first. It ends, for nothing else is asked of the drive.
fn start(executor: &mut Executor, ssd: &Ssd) -> anyhow::Result<()> {
    let started = executor.block_on(ssd.in_service());
    started.map_err(|stalled| anyhow!("the drive does not come into service: {stalled}"))
}

/// One FTL of a drive.
pub(super) struct View<'a> {
    pub(super) inspected: &'a Inspected,
    pub(super) part: &'a Part,
    /// Its flash before the start.
    pub(super) found: &'a Media,
    /// Whether the file has nothing of it: it is new at each start.
    pub(super) in_memory: bool,
}

impl View<'_> {
    pub(super) fn geometry(&self) -> &Geometry {
        self.part.media().geometry()
    }

    /// Its channels, as the drive counts them, and its dies of them, if it has not all.
    pub(super) fn channels(&self) -> String {
        let listed = |numbers: &[u32]| numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let media = self.part.media();
        match self.part.has_some_dies() {
            true => format!("{}, dies {}", listed(media.channels_of_drive()), listed(media.dies_of_drive())),
            false => listed(media.channels_of_drive()),
        }
    }

    /// Whether the drive has others.
    pub(super) fn is_one_of_several(&self) -> bool {
        self.inspected.ssd.parts().len() > 1
    }

    pub(super) fn blocks(&self) -> impl Iterator<Item = BlockId> + use<> {
        (0..self.geometry().blocks()).map(BlockId)
    }

    /// What a block holds, where the FTL keeps that apart: a name.
    pub(super) fn content_of(&self, block: BlockId) -> Option<&'static str> {
        if self.part.media().holds_identifier(block) {
            return Some("identifier");
        }
        // The start may have given the block up, or taken it for something else.
        match (content(self.found, block)?, self.part.ox_block()?.content_of(block)) {
            ("data", Some("moved data")) => Some("moved data"),
            (found, _) => Some(found),
        }
    }
}
