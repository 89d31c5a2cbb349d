//! Pages that are handed out to be written, and blocks that are closed to writing.

use nandscape_device_ftl_core::component::{
    BlockMetadata, BlockState, ChainedLog, Channels, LineProvisioning, Log, Record, StoredBlocks, Stream,
};
use nandscape_device_media::{BlockId, Geometry, PageId, PlaneId};

use super::{PROGRAMS_PER_PLANE, State};
use crate::ox_block::streams::{HOT, LOG};
use crate::parts::ChannelTable;

impl State {
    /// The next page for the host's data, if a plane that is not busy has one.
    pub(in crate::ox_block) fn host_page(&mut self) -> Option<PageId> {
        if self.ready_planes == 0 || self.programs >= self.host_programs {
            return None;
        }
        let State { provisioning, chunks, channels, in_flight, dead, geometry, .. } = self;
        let ready = |plane: PlaneId| is_ready(plane, (in_flight, dead, channels), geometry);
        let page = provisioning.get(chunks, HOT, &ready)?;
        let block = geometry.block_of(page);
        chunks.handed_out(block, HOT);
        let plane = geometry.plane_of(block);
        in_flight[plane.0 as usize] += 1;
        self.programs += 1;
        self.ready_planes -= u32::from(in_flight[plane.0 as usize] == PROGRAMS_PER_PLANE);
        channels.begin(geometry.channel_of(plane));
        self.renewed |= geometry.page_in_block(page) == 0;
        Some(page)
    }

    /// Whether no plane takes another program of the host's data before one that is under way has ended.
    pub(in crate::ox_block) fn are_planes_busy(&self) -> bool {
        self.programs > 0 && (self.ready_planes == 0 || self.programs >= self.host_programs)
    }

    /// Whether some plane has room for the host's data, busy or not.
    pub(in crate::ox_block) fn has_room_for_host(&self) -> bool {
        let usable =
            |plane: PlaneId| !self.dead[plane.0 as usize] && self.channels.is_enabled(self.geometry.channel_of(plane));
        self.provisioning.has_room(HOT, &usable)
    }

    /// Whether programs of the host's data are under way.
    pub(in crate::ox_block) fn has_programs(&self) -> bool {
        self.programs > 0
    }

    /// A program of the host's data has ended.
    pub(in crate::ox_block) fn host_program_ended(&mut self, page: PageId) {
        let plane = self.geometry.plane_of(self.geometry.block_of(page));
        let was_ready = self.is_ready(plane);
        self.in_flight[plane.0 as usize] -= 1;
        self.programs -= 1;
        self.ready_planes += u32::from(!was_ready && self.is_ready(plane));
        self.channels.end(self.geometry.channel_of(plane));
    }

    /// Opens a channel to the host's data, or closes it (SWITCH).
    pub(in crate::ox_block) fn switch_channel(&mut self, channel: u32, is_open: bool) {
        self.channels.switch(channel, is_open);
        self.count_ready();
    }

    /// A plane does not answer: its blocks are lost.
    pub(in crate::ox_block) fn plane_died(&mut self, plane: PlaneId) {
        if std::mem::replace(&mut self.dead[plane.0 as usize], true) {
            return;
        }
        self.lost_blocks += self.geometry.blocks_of(plane).filter(|block| !self.bad.is_bad(*block)).count() as u64;
        self.count_ready();
        self.provisioning.plane_died(plane);
    }

    /// Whether a plane takes another program of the host's data.
    fn is_ready(&self, plane: PlaneId) -> bool {
        is_ready(plane, (&self.in_flight, &self.dead, &self.channels), &self.geometry)
    }

    /// The number of ready planes.
    fn ready(&self) -> u32 {
        (0..self.geometry.planes()).filter(|plane| self.is_ready(PlaneId(*plane))).count() as u32
    }

    /// Checks the count of ready planes.
    pub(in crate::ox_block) fn check_ready(&self) -> Result<(), String> {
        let (ready, programs) = (self.ready(), self.in_flight.iter().sum::<u32>());
        match (self.ready_planes, self.programs) == (ready, programs) {
            true => Ok(()),
            false => Err(format!(
                "{ready} planes are ready and {programs} programs under way; {} and {} are recorded",
                self.ready_planes, self.programs
            )),
        }
    }

    fn count_ready(&mut self) {
        self.ready_planes = self.ready();
    }

    /// The next page of another stream, on `channel` if it has room.
    pub(in crate::ox_block) fn page_for(&mut self, stream: Stream, channel: Option<u32>) -> Option<PageId> {
        let State { provisioning, chunks, dead, geometry, .. } = self;
        let alive = |plane: PlaneId| !dead[plane.0 as usize];
        let near = |plane: PlaneId| alive(plane) && channel.is_none_or(|channel| geometry.channel_of(plane) == channel);
        let page = provisioning.get(chunks, stream, &near).or_else(|| provisioning.get(chunks, stream, &alive))?;
        chunks.handed_out(geometry.block_of(page), stream);
        Some(page)
    }

    /// A page was programmed, or its program has failed.
    pub(in crate::ox_block) fn page_ended(&mut self, page: PageId) {
        self.provisioning.programmed(&mut self.chunks, page);
    }

    /// A program on a page has failed: its block is closed, and will be retired (Amendment).
    pub(in crate::ox_block) fn close(&mut self, page: PageId) {
        let block = self.geometry.block_of(page);
        let BlockState::Open(_) = self.chunks.get(block).state else { return };
        self.log.append(Record::Amendment(page));
        self.close_block(block);
    }

    /// Takes a block out of use for writing. Its content is moved out.
    pub(in crate::ox_block) fn close_block(&mut self, block: BlockId) {
        let stream = self.chunks.stream(block);
        self.provisioning.close(block);
        self.chunks.set_state(block, BlockState::Retiring);
        if stream == LOG {
            let geometry = self.geometry;
            self.log.withdraw(&|page| geometry.block_of(page) == block);
            // It is erased when the checkpoint after its last page has ended, if it has one.
            self.log_blocks.entry(block).or_insert(self.log.number());
        }
    }
}

/// Whether a plane takes another program of the host's data, with the programs under way on each plane, the planes that do not
/// answer, and the channels.
fn is_ready(plane: PlaneId, (programs, dead, channels): (&[u32], &[bool], &ChannelTable), geometry: &Geometry) -> bool {
    let number = plane.0 as usize;
    !dead[number] && programs[number] < PROGRAMS_PER_PLANE && channels.is_enabled(geometry.channel_of(plane))
}
