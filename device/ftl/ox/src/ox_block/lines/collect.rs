//! Garbage collection by line: a line is collected as a whole, one at a time.

use nandscape_device_ftl_core::component::{BlockMetadata, BlockState, LineProvisioning, Stopped};
use nandscape_device_ftl_core::policy::Candidate;
use nandscape_device_media::{BlockId, PlaneId};

use super::LineLayout;
use super::limit::ALL;
use crate::ox_block::chores::Chore;
use crate::ox_block::core::Core;
use crate::ox_block::state::{PROGRAMS_PER_PLANE, State};
use crate::ox_block::streams::{COLD, HOT};

impl State {
    /// The blocks of a line, one on each plane.
    fn line(&self, line: u32) -> impl Iterator<Item = BlockId> + use<> {
        let (planes, per_plane) = (self.geometry.planes(), self.geometry.blocks_per_plane());
        (0..planes).map(move |plane| BlockId(plane * per_plane + line))
    }

    /// Lines beyond those that the host's data needs.
    pub(super) fn spare_lines(&self) -> u32 {
        let data = self.data_pages * self.geometry.units_per_page() * self.geometry.planes();
        self.geometry.blocks_per_plane().saturating_sub(self.map_units().div_ceil(data))
    }

    /// TARGET: the line that P8 takes among lines with garbage. A line with a block to be retired comes first.
    fn target_line(&self) -> Option<u32> {
        let per_plane = self.geometry.blocks_per_plane();
        let planes = || (0..self.geometry.planes()).map(PlaneId);
        let is_listed = |line| {
            let listed = |stream| {
                planes()
                    .any(|plane| self.provisioning.open(plane, stream).is_some_and(|block| block.0 % per_plane == line))
            };
            listed(HOT) || listed(COLD)
        };
        let open: Vec<bool> = (0..per_plane).map(is_listed).collect();
        let candidates = (0..per_plane)
            .filter(|line| !open[*line as usize])
            .filter_map(|line| Some((line, self.line_candidate(line)?)));
        let all: Vec<(u32, (bool, Candidate))> = candidates.collect();
        let retiring = all.iter().find(|(_, (is_retiring, _))| *is_retiring);
        retiring.map(|(line, _)| *line).or_else(|| {
            let mut candidates = all.iter().map(|(line, (_, candidate))| (BlockId(*line), *candidate));
            self.gc.target(&mut candidates).map(|block| block.0)
        })
    }

    /// A line that can be collected, and whether a block of it is to be retired; `None` without a gain.
    fn line_candidate(&self, line: u32) -> Option<(bool, Candidate)> {
        let mut sum = Candidate { valid: 0, units: 0, age: 0, erases: 0 };
        let mut is_retiring = false;
        for block in self.line(line) {
            let info = self.chunks.get(block);
            match info.state {
                BlockState::Full | BlockState::Retiring if self.is_settled(block) => {
                    let is_stuck = info.valid > 0 && self.stuck.contains(&block);
                    is_retiring |= info.state == BlockState::Retiring && !is_stuck;
                    sum.valid += info.valid;
                    sum.units += if is_stuck { info.valid } else { self.data_pages * self.geometry.units_per_page() };
                    sum.age = sum.age.max(self.provisioning.sequence().saturating_sub(info.sealed_at));
                    sum.erases = sum.erases.max(info.erases);
                }
                BlockState::Bad | BlockState::Free => {}
                BlockState::Open(stream) if stream != HOT && stream != COLD => {}
                _ => return None,
            }
        }
        (sum.valid < sum.units || is_retiring).then_some((is_retiring, sum))
    }
}

impl Core {
    /// Starts the collection of a line if one is due, and sets what the host may write meanwhile.
    pub(in crate::ox_block) fn look_for_lines(&self, layout: LineLayout) {
        let mut state = self.state.borrow_mut();
        let (free, spare) = (state.provisioning.free_lines(), state.spare_lines());
        let is_collecting = self.flags.collecting.get() > 0;
        if !is_collecting {
            let is_asked = std::mem::take(&mut state.renewed) || !state.has_room_for_host();
            let target = if is_asked && layout.limit.collects(free, spare) { state.target_line() } else { None };
            if let Some(line) = target {
                self.flags.collecting.set(1);
                self.chores.start(Chore::CollectLine(line));
            }
        }
        let share = if self.flags.collecting.get() > 0 { layout.limit.share(free, spare) } else { ALL };
        let programs = u64::from(PROGRAMS_PER_PLANE * state.geometry.planes()) * u64::from(share);
        state.host_programs = programs.div_ceil(ALL.into()) as u32;
    }

    /// Collects a line.
    pub(in crate::ox_block) async fn collect_line(&self, line: u32) -> Result<(), Stopped> {
        let blocks: Vec<BlockId> = {
            let state = self.state.borrow();
            let is_written =
                |block: &BlockId| matches!(state.chunks.get(*block).state, BlockState::Full | BlockState::Retiring);
            state.line(line).filter(is_written).collect()
        };
        for block in blocks {
            let is_stuck = {
                let state = self.state.borrow();
                state.stuck.contains(&block) && state.chunks.get(block).valid > 0
            };
            if !is_stuck {
                let channel = self.state.borrow().channel_of(block);
                self.collect_block(block, channel).await?;
            }
        }
        self.state.borrow_mut().renewed = true;
        self.flags.collecting.set(0);
        self.pump();
        Ok(())
    }
}
