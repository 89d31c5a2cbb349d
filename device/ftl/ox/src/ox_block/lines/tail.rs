//! The list at the end of a block: tag and stamp of each of its units. It is written when all pages of data have been, so that it
//! lists nothing that cannot be read.

use nandscape_device_ftl_core::component::{BlockMetadata, BlockState, Stopped};
use nandscape_device_media::{BlockId, Oob, PageId};
use nandscape_drive::breakdown::cause;

use super::{Layout, Stamp, tail_pages};
use crate::ox_block::chores::Chore;
use crate::ox_block::core::Core;
use crate::ox_block::pages::{self, Kind};

impl Core {
    /// Starts the list of a block all of whose data is programmed.
    pub(in crate::ox_block) fn end_block(&self, block: BlockId) {
        if self.config.layout == Layout::Log {
            return;
        }
        let geometry = self.media.geometry();
        let data_pages = self.config.layout.data_pages(geometry);
        let is_due = {
            let mut state = self.state.borrow_mut();
            let info = *state.chunks.get(block);
            let is_written = (info.allocated, info.programmed) == (data_pages, data_pages);
            let is_due = is_written && matches!(info.state, BlockState::Open(_));
            if is_due {
                state.chunks.get_mut(block).allocated = geometry.pages_per_block();
            }
            is_due
        };
        if is_due {
            self.chores.start(Chore::Tail(block));
        }
    }

    /// Writes the list of a block.
    pub(in crate::ox_block) async fn write_tail(&self, block: BlockId) -> Result<(), Stopped> {
        let geometry = *self.media.geometry();
        let data_pages = self.config.layout.data_pages(&geometry);
        let list: Vec<u8> = (0..data_pages)
            .map(|page| geometry.page_at(block, page))
            .flat_map(|page| self.areas(page))
            .flat_map(|area| Stamp::entry(area.as_ref()))
            .collect();
        let mut parts = list.chunks(geometry.page_size() as usize);
        for number in 0..tail_pages(&geometry) {
            let page = geometry.page_at(block, data_pages + number);
            let image = pages::image(&geometry, Kind::Tail, number, parts.next().unwrap_or_default());
            let (ended, _) = self.start_program(page, image, cause::METADATA).wait().await;
            self.still_running()?;
            if ended.is_err() {
                // The block is closed: the collector moves its data.
                break;
            }
            self.state.borrow_mut().counters.upkeep.pages.blocks += 1;
        }
        self.pump();
        Ok(())
    }

    /// The areas of a page's units, known from writing them; none for a page that was unreadable at the start.
    fn areas(&self, page: PageId) -> Vec<Option<Oob>> {
        let geometry = self.media.geometry();
        let is_readable = !self.state.borrow().unreadable.contains(&page);
        (0..geometry.units_per_page())
            .map(|unit| is_readable.then(|| self.media.oob(geometry.unit_at(page, unit))))
            .collect()
    }

    /// The areas that the list of a block describes, one a unit; `None` if the block has no list. The last page alone
    /// shows whether a list exists.
    pub(super) async fn read_tail(&self, block: BlockId) -> Result<Option<Vec<Oob>>, Stopped> {
        let geometry = *self.media.geometry();
        let data_pages = self.config.layout.data_pages(&geometry);
        let mut areas = Vec::new();
        for number in (0..tail_pages(&geometry)).rev() {
            let page = geometry.page_at(block, data_pages + number);
            if self.read_page(page).await?.is_err() {
                return Ok(None);
            }
            let contents = pages::contents(&self.media, page);
            let Some((Kind::Tail, index, bytes)) = contents else { return Ok(None) };
            if index != number {
                return Ok(None);
            }
            areas.push(bytes);
        }
        let list = areas.into_iter().rev().flatten().collect::<Vec<u8>>();
        let units = (data_pages * geometry.units_per_page()) as usize;
        Ok(Some(list.chunks_exact(Stamp::ENTRY).take(units).map(Stamp::area_of).collect()))
    }
}
