//! A block that P8 recycles: reads and programs in it, with their invariants.

use std::rc::Rc;

use nandscape_device_ftl_core::address::Lpn;
use nandscape_device_ftl_core::component::{BlockMetadata, Process, RecycledUnit, Recycling, Stopped};
use nandscape_device_media::{BlockId, PageId, PageImage, UnitId};
use nandscape_drive::Breakdown;
use nandscape_drive::breakdown::cause;

use super::chores::{Chore, Move};
use super::core::{Core, Latch};
use super::lines::{Layout, LineLayout, Stamp};
use super::streams::{COLD, HOT};

/// The most pages of a block that are moved at the same time.
const MOVES: usize = 8;

/// See the file.
pub(super) struct Recycled<'a> {
    pub(super) core: &'a Core,
    pub(super) block: BlockId,
    pub(super) channel: u32,
    /// Counts the programs under way.
    pub(super) moves: Rc<Latch>,
}

impl Recycling for Recycled<'_> {
    fn pages(&self) -> u32 {
        self.core.media.geometry().pages_per_block()
    }

    fn units_per_page(&self) -> usize {
        self.core.media.geometry().units_per_page() as usize
    }

    fn read(&self, page: u32) -> Process<'_, Vec<RecycledUnit>> {
        Box::pin(async move {
            let media = &self.core.media;
            let page = media.geometry().page_at(self.block, page);
            let Some(units) = self.core.read_current(page).await? else { return Ok(Vec::new()) };
            let is_sound = media.check_sound(page).is_ok();
            let units = units.into_iter().filter(|_| is_sound);
            Ok(units.map(|unit| (Lpn(media.tag(unit)), unit)).collect())
        })
    }

    fn program(&self, units: Vec<RecycledUnit>) -> Process<'_> {
        Box::pin(async move {
            if units.is_empty() {
                return Ok(());
            }
            assert!(units.len() <= self.units_per_page(), "{} units are more than a page has", units.len());
            let mut image = PageImage::default();
            for (lpn, unit) in &units {
                let block = self.core.media.geometry().block_of(self.core.media.geometry().page_of(*unit));
                assert!(block == self.block, "{unit:?} with {lpn:?} is in {block:?}, not in {:?}", self.block);
                self.core.copy_to(&mut image, *unit);
            }
            self.moves.below(MOVES).await;
            let units = Move { units, image, channel: self.channel };
            self.core.chores.start(Chore::Move { units, _held: self.moves.begin() });
            Ok(())
        })
    }
}

impl Core {
    /// Adds a copy of a unit to an image. A stamp keeps its number, and names the line of the copy.
    fn copy_to(&self, image: &mut PageImage, unit: UnitId) {
        let Layout::Lines(LineLayout { shared, .. }) = self.config.layout else {
            return self.media.copy_to(image, unit);
        };
        let area = self.media.oob(unit);
        let stream = if shared { HOT } else { COLD };
        let area = Stamp::of(&area).map_or(area, |stamp| Stamp { stream, ..stamp }.area(area.tag));
        image.push_with_oob(area, self.media.data(unit));
    }

    /// Reads the current units of a page; `None` if none is current, or the page cannot be read.
    pub(super) async fn read_current(&self, page: PageId) -> Result<Option<Vec<UnitId>>, Stopped> {
        let current = || {
            let (state, geometry) = (self.state.borrow(), self.media.geometry());
            let units = (0..geometry.units_per_page()).map(|unit| geometry.unit_at(page, unit));
            units.filter(|unit| state.chunks.is_valid(*unit)).collect::<Vec<UnitId>>()
        };
        let units = current();
        if units.is_empty() {
            return Ok(None);
        }
        let bytes = units.len() as u32 * self.media.geometry().unit_size();
        let who = self.config.priority.who(cause::GC);
        let read = self.media.read(page, bytes, who, &mut Breakdown::new()).await;
        self.still_running()?;
        Ok(read.is_ok().then(current))
    }
}
