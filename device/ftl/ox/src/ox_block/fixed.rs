//! The fixed places: blocks that are found before any table is known.
//!
//! Each channel has one, in its first good block and a copy on another plane, with the channel's identifier and its table of
//! bad blocks (OX 6.1.1). The drive has one for checkpoints, on channel 0, with a copy on another channel if the drive has
//! several. Good here means not marked by the maker, which can be read from the flash; a copy that goes bad later is
//! abandoned.

use nandscape_device_ftl_core::component::Stopped;
use nandscape_device_ftl_core::ftl::ReadOnly;
use nandscape_device_media::{BlockId, Media, MediaError, Misuse, PlaneId};
use nandscape_drive::Breakdown;
use nandscape_drive::breakdown::cause;

use super::core::Core;
use super::mistakes::{self, Mistake};
use super::pages::{self, Kind};
use crate::parts::{FixedPage, FixedRecord, Reassembly};

/// Pages of a copy that may fail before the copy is abandoned.
const TRIES: u32 = 4;

/// A copy of a fixed place.
#[derive(Clone, Debug)]
pub(super) struct Copy {
    block: BlockId,
    /// The first page that is not used.
    next: u32,
    /// The last whole version in it; 0 is none.
    version: u64,
    /// Whether it is abandoned.
    given_up: bool,
}

/// A fixed place.
#[derive(Clone, Debug)]
pub(super) struct Place {
    kind: u32,
    copies: Vec<Copy>,
    /// The version that was last written or read.
    version: u64,
}

/// The fixed places of a drive.
#[derive(Clone, Debug)]
pub(super) struct FixedPlaces {
    /// One a channel, and the last for checkpoints.
    places: Vec<Place>,
}

/// The kind of record that checkpoints are; channels have theirs from 2 on.
pub(super) const CHECKPOINT: u32 = 1;

impl FixedPlaces {
    pub(super) fn new(media: &Media) -> FixedPlaces {
        let geometry = media.geometry();
        let per_channel = geometry.planes() / geometry.channels();
        let mut taken = Vec::new();
        let mut take = |plane: u32| {
            let plane = PlaneId(plane % geometry.planes());
            let is_free = |block: &BlockId| !media.is_bad_at_start(*block) && !taken.contains(block);
            let block = geometry.blocks_of(plane).find(is_free);
            taken.extend(block);
            block.map(|block| Copy { block, next: 0, version: 0, given_up: false })
        };
        let mut place = |kind, planes: [u32; 2]| Place {
            kind,
            copies: planes.into_iter().filter_map(&mut take).collect(),
            version: 0,
        };
        let channel = |channel: u32| {
            let first = channel * per_channel;
            (CHECKPOINT + 1 + channel, [first, first + 1.min(per_channel - 1)])
        };
        let mut places: Vec<Place> =
            (0..geometry.channels()).map(channel).map(|(kind, planes)| place(kind, planes)).collect();
        let other = if geometry.channels() > 1 { per_channel } else { per_channel - 1 };
        places.push(place(CHECKPOINT, [0, other]));
        FixedPlaces { places }
    }

    /// The number of the place for checkpoints.
    pub(super) fn checkpoint(&self) -> usize {
        self.places.len() - 1
    }

    /// The version of the checkpoint, and the blocks that it and its copies are in.
    pub(super) fn checkpoint_version(&self) -> (u64, Vec<BlockId>) {
        let place = &self.places[self.checkpoint()];
        (place.version, place.copies.iter().map(|copy| copy.block).collect())
    }

    /// Writes the first version of a place, in no time.
    pub(super) fn plant(&self, media: &Media, number: usize, bytes: Vec<u8>) {
        let (place, geometry) = (&self.places[number], media.geometry());
        let record = FixedRecord { kind: place.kind, version: 1, bytes }.pages(geometry.page_size() as usize);
        for copy in &place.copies {
            for (page, bytes) in (0..).zip(&record) {
                media.plant_image(geometry.page_at(copy.block, page), &pages::image(geometry, Kind::Fixed, 0, bytes));
            }
        }
    }

    /// The blocks of all places.
    pub(super) fn all(&self) -> impl Iterator<Item = BlockId> {
        self.places.iter().flat_map(|place| place.copies.iter().map(|copy| copy.block))
    }

    /// Whether every place has a copy that takes versions.
    pub(super) fn are_writable(&self) -> bool {
        self.places.iter().all(|place| place.copies.iter().any(|copy| !copy.given_up))
    }
}

impl Core {
    /// Reads the latest version of a place.
    pub(super) async fn read_fixed(&self, number: usize) -> Result<Option<FixedRecord>, Stopped> {
        let mut place = self.state.borrow().places.places[number].clone();
        let mut best: Option<FixedRecord> = None;
        for copy in &mut place.copies {
            let mut reassembly = Reassembly::new(place.kind);
            copy.next = 0;
            while copy.next < self.media.geometry().pages_per_block() {
                let page = self.media.geometry().page_at(copy.block, copy.next);
                match self.read_page(page).await? {
                    Err(MediaError::Misuse(Misuse::NotProgrammed)) => break,
                    Err(MediaError::NoAnswer) => {
                        copy.given_up = true;
                        break;
                    }
                    Err(_) => reassembly.push(None),
                    Ok(()) => {
                        let bytes = pages::contents(&self.media, page).map(|(_, _, bytes)| bytes);
                        reassembly.push(bytes.as_deref().and_then(FixedPage::decode));
                    }
                }
                copy.next += 1;
            }
            let found = reassembly.best();
            copy.version = found.as_ref().map_or(0, |found| found.version);
            if found.as_ref().map(|found| found.version) > best.as_ref().map(|best| best.version) {
                best = found;
            }
        }
        place.version = best.as_ref().map_or(0, |best| best.version);
        self.state.borrow_mut().places.places[number] = place;
        Ok(best)
    }

    /// Writes a new version of a place, copy by copy. The copy with the oldest version comes first: it may be erased, but the
    /// only whole version must not be.
    pub(super) async fn write_fixed(&self, number: usize, bytes: Vec<u8>) -> Result<(), Stopped> {
        let (kind, version, order) = {
            let mut state = self.state.borrow_mut();
            let place = &mut state.places.places[number];
            place.version += 1;
            let mut order: Vec<usize> = (0..place.copies.len()).collect();
            order.sort_by_key(|index| place.copies[*index].version);
            (place.kind, place.version, order)
        };
        // Everything that the version refers to must be durable before it.
        self.sync();
        let record = FixedRecord { kind, version, bytes }.pages(self.media.geometry().page_size() as usize);
        if mistakes::is_made(Mistake::CopiesTogether) {
            let all = self.state.borrow().places.places[number].copies.clone();
            for (index, copy) in all.iter().enumerate() {
                let who = self.config.priority.who(cause::METADATA);
                let erased = self.media.erase(copy.block, who, &mut Breakdown::new()).await;
                self.still_running()?;
                let next = if erased.is_ok() { 0 } else { copy.next };
                self.state.borrow_mut().places.places[number].copies[index].next = next;
            }
        }
        for index in order {
            let mut copy = self.state.borrow().places.places[number].copies[index].clone();
            if !copy.given_up && self.write_copy(&mut copy, &record).await? {
                copy.version = version;
            }
            if self.media.store_has_failed() {
                self.give_up_writing(ReadOnly::Store);
                return Ok(());
            }
            self.state.borrow_mut().places.places[number].copies[index] = copy;
        }
        if !self.state.borrow().places.are_writable() {
            self.give_up_writing(ReadOnly::FixedPlace);
        }
        Ok(())
    }

    /// Whether a version is whole in a copy.
    async fn write_copy(&self, copy: &mut Copy, record: &[Vec<u8>]) -> Result<bool, Stopped> {
        for _ in 0..TRIES {
            if copy.next + record.len() as u32 > self.media.geometry().pages_per_block() {
                let who = self.config.priority.who(cause::METADATA);
                let erased = self.media.erase(copy.block, who, &mut Breakdown::new()).await;
                self.still_running()?;
                if erased.is_err() {
                    // It has no replacement block, so one failure does not abandon it.
                    continue;
                }
                copy.next = 0;
            }
            if self.write_version(copy, record).await? {
                return Ok(true);
            }
            if self.media.store_has_failed() {
                return Ok(false);
            }
        }
        copy.given_up = true;
        Ok(false)
    }

    /// Whether all pages of a version were programmed.
    async fn write_version(&self, copy: &mut Copy, record: &[Vec<u8>]) -> Result<bool, Stopped> {
        let geometry = self.media.geometry();
        for bytes in record {
            let page = geometry.page_at(copy.block, copy.next);
            copy.next += 1;
            let image = pages::image(geometry, Kind::Fixed, 0, bytes);
            let who = self.config.priority.who(cause::METADATA);
            let programmed = self.media.program(page, image, who, &mut Breakdown::new()).await;
            self.still_running()?;
            if programmed.is_err() {
                return Ok(false);
            }
            self.state.borrow_mut().counters.upkeep.pages.fixed += 1;
        }
        Ok(true)
    }
}
