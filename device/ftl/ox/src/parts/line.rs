//! A line (OX 6.1.3): blocks of several planes that a stream writes in turn, page by page.
//!
//! Planes take turns. In [`ChannelsFirst`](LineOrder::ChannelsFirst), the next page is on the next channel, so that all channels
//! work at the same time. When a block of a line is full, another block is opened, on the plane whose turn it is, if one is free.

use nandscape_device_ftl_core::component::{BlockMetadata, Provisioning, Stream};
use nandscape_device_ftl_core::parts::PlaneLists;
use nandscape_device_media::{Geometry, PageId, PlaneId};

/// The order in which planes take turns.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum LineOrder {
    /// A plane of each channel, then the next plane of each.
    ChannelsFirst,
    /// All planes of a channel, then those of the next.
    PlanesFirst,
    /// As `ChannelsFirst`, but each channel has a separate line with a block of each of its planes, which is renewed as
    /// a whole when all of them are full: the two levels of OX 6.1.3. Streams whose lines are narrower than the drive
    /// have one line over all channels instead.
    ChannelLines,
}

/// The line of a stream.
pub struct Line {
    stream: Stream,
    order: Vec<PlaneId>,
    width: usize,
    /// The place in `order` of the plane whose turn it is.
    next: usize,
    /// Planes of each channel.
    per_channel: u32,
    /// With a line for each channel: by plane, the state of its block of the channel's line.
    members: Option<Vec<Member>>,
}

/// A plane's block of the line of its channel.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Member {
    /// It is yet to be opened.
    Unopened,
    /// It was opened. It may be full.
    Opened,
    /// The plane does not answer: the lines of its channel are without it.
    Dead,
}

impl Line {
    /// A line of up to `width` blocks.
    pub fn new(geometry: &Geometry, order: LineOrder, stream: Stream, width: usize) -> Line {
        let per_channel = geometry.planes() / geometry.channels();
        let plane = |number| match order {
            LineOrder::ChannelsFirst | LineOrder::ChannelLines => {
                PlaneId((number % geometry.channels()) * per_channel + number / geometry.channels())
            }
            LineOrder::PlanesFirst => PlaneId(number),
        };
        let is_by_channel = order == LineOrder::ChannelLines && width >= geometry.planes() as usize;
        Line {
            stream,
            order: (0..geometry.planes()).map(plane).collect(),
            width: width.max(1),
            next: 0,
            per_channel,
            members: is_by_channel.then(|| vec![Member::Opened; geometry.planes() as usize]),
        }
    }

    /// The planes of a plane's channel.
    fn channel_of(&self, plane: PlaneId) -> std::ops::Range<u32> {
        let first = plane.0 / self.per_channel * self.per_channel;
        first..first + self.per_channel
    }

    /// Whether a channel's line has nothing left, so that a new one begins.
    fn is_used_up(&self, lists: &PlaneLists, members: &[Member], plane: PlaneId) -> bool {
        !self.channel_of(plane).any(|number| {
            let plane = PlaneId(number);
            match members[number as usize] {
                Member::Dead => false,
                Member::Opened => lists.open(plane, self.stream).is_some(),
                Member::Unopened => lists.has_room(plane, self.stream),
            }
        })
    }

    /// A block is opened on a plane, of a new line of its channel if the line before it is used up.
    fn open_block(&mut self, lists: &PlaneLists, plane: PlaneId) {
        let channel = self.channel_of(plane);
        let Some(mut members) = self.members.take() else { return };
        if self.is_used_up(lists, &members, plane) {
            let alive = members[channel.start as usize..channel.end as usize].iter_mut();
            alive.filter(|member| **member != Member::Dead).for_each(|member| *member = Member::Unopened);
        }
        members[plane.0 as usize] = Member::Opened;
        self.members = Some(members);
    }

    /// A plane does not answer any more, and has no open block: it gets no more requests for pages.
    pub fn plane_died(&mut self, plane: PlaneId) {
        if let Some(members) = &mut self.members {
            members[plane.0 as usize] = Member::Dead;
        }
    }

    /// GET: the next page, on a plane that is `usable`; `None` if there is none.
    pub fn get(
        &mut self,
        blocks: &mut (impl BlockMetadata + ?Sized),
        lists: &mut PlaneLists,
        usable: impl Fn(PlaneId) -> bool,
    ) -> Option<PageId> {
        let planes = self.order.len();
        let chosen = (self.next..planes).chain(0..self.next).find(|turn| {
            let plane = self.order[*turn];
            usable(plane) && self.may_write(lists, plane)
        })?;
        self.next = (chosen + 1) % planes;
        if self.members.is_some() && lists.open(self.order[chosen], self.stream).is_none() {
            self.open_block(lists, self.order[chosen]);
        }
        lists.get(blocks, self.order[chosen], self.stream)
    }

    /// Whether some `usable` plane has a page.
    pub fn has_room(&self, lists: &PlaneLists, usable: impl Fn(PlaneId) -> bool) -> bool {
        self.order.iter().any(|plane| usable(*plane) && self.may_write(lists, *plane))
    }

    /// The place of the plane whose turn it is, to continue there after a restart.
    pub fn turn(&self) -> u32 {
        self.next as u32
    }

    /// Continues where an earlier line has stopped.
    pub fn set_turn(&mut self, turn: u32) {
        self.next = turn as usize % self.order.len();
    }

    /// Bytes of memory.
    pub fn memory(&self) -> usize {
        let members = self.members.as_ref().map_or(0, Vec::len) * size_of::<Member>();
        size_of::<Line>() + self.order.len() * size_of::<PlaneId>() + members
    }

    fn may_write(&self, lists: &PlaneLists, plane: PlaneId) -> bool {
        let open = |plane: &PlaneId| lists.open(*plane, self.stream).is_some();
        let is_full =
            || self.width < self.order.len() && self.order.iter().filter(|plane| open(plane)).count() >= self.width;
        let is_of_line = |members: &Vec<Member>| match members[plane.0 as usize] {
            Member::Unopened => true,
            Member::Opened => self.is_used_up(lists, members, plane),
            Member::Dead => false,
        };
        open(&plane)
            || (lists.has_room(plane, self.stream) && !is_full() && self.members.as_ref().is_none_or(is_of_line))
    }
}

#[cfg(test)]
mod tests {
    use nandscape_device_ftl_core::component::{NextBlock, StreamRule};
    use nandscape_device_ftl_core::parts::{BadBlockTable, BlockTable, FreeOrder};
    use nandscape_device_media::BlockId;
    use nandscape_device_rig::TestFlash;

    use super::*;

    /// Two channels of three planes: pages go to the channels in turn, and blocks are opened when all of a channel's are full.
    #[test]
    fn the_line_of_a_channel_is_renewed_as_a_whole() {
        const PAGES: u32 = 4;
        let flash = TestFlash { channels: 2, planes: 3, blocks: 5, pages: PAGES, ..TestFlash::default() };
        let geometry = flash.geometry();
        let mut blocks = BlockTable::new(&geometry, &BadBlockTable::new(geometry.blocks(), &|_| false));
        let rules = [StreamRule { leaves: 1, next: NextBlock::InOrder }];
        let mut lists = PlaneLists::new(&geometry, FreeOrder::Fifo, &rules, &blocks);
        let planes = geometry.planes();
        let mut line = Line::new(&geometry, LineOrder::ChannelLines, Stream(0), planes as usize);
        // One plane fills its block before the others do.
        let first = |plane: PlaneId| plane == PlaneId(0);
        for _ in 0..PAGES {
            assert_eq!(line.get(&mut blocks, &mut lists, first).map(|page| geometry.block_of(page)), Some(BlockId(0)));
        }
        assert!(!line.has_room(&lists, first), "its line is not used up");
        let mut by_channel = [PAGES, 0];
        for number in 0..(planes - 1) * PAGES {
            let page = line.get(&mut blocks, &mut lists, |_| true).expect("there is room");
            let block = geometry.block_of(page);
            assert_eq!(block.0 % geometry.blocks_per_plane(), 0, "a block of the second line, at page {number}");
            by_channel[geometry.channel_of(geometry.plane_of(block)) as usize] += 1;
            if by_channel.iter().any(|pages| *pages == geometry.planes() / 2 * PAGES) {
                break;
            }
        }
        // All other blocks of the flash but one of each plane are handed out in the end.
        let mut left = 0;
        while line.get(&mut blocks, &mut lists, |_| true).is_some() {
            left += 1;
        }
        let all = planes * (geometry.blocks_per_plane() - 1) * PAGES;
        assert_eq!(by_channel[0] + by_channel[1] + left, all);
        assert!(!line.has_room(&lists, |_| true));
    }

    /// A plane that does not answer keeps its free blocks. The other planes of its channel continue with new lines
    /// without it.
    #[test]
    fn the_line_of_a_channel_goes_on_without_a_plane_that_has_died() {
        const PAGES: u32 = 4;
        let flash = TestFlash { channels: 1, planes: 3, blocks: 5, pages: PAGES, ..TestFlash::default() };
        let geometry = flash.geometry();
        for pages_before in [0, 1, 2 * PAGES] {
            let mut blocks = BlockTable::new(&geometry, &BadBlockTable::new(geometry.blocks(), &|_| false));
            let rules = [StreamRule { leaves: 0, next: NextBlock::InOrder }];
            let mut lists = PlaneLists::new(&geometry, FreeOrder::Fifo, &rules, &blocks);
            let mut line = Line::new(&geometry, LineOrder::ChannelLines, Stream(0), geometry.planes() as usize);
            let dead = PlaneId(0);
            let on_dead = |page| u32::from(geometry.plane_of(geometry.block_of(page)) == dead);
            let before: u32 =
                (0..pages_before).map(|_| on_dead(line.get(&mut blocks, &mut lists, |_| true).unwrap())).sum();
            lists.close_plane(dead);
            line.plane_died(dead);
            let mut after = 0;
            while line.get(&mut blocks, &mut lists, |plane| plane != dead).is_some() {
                after += 1;
            }
            let all = (geometry.planes() - 1) * geometry.blocks_per_plane() * PAGES;
            assert_eq!(pages_before - before + after, all, "after {pages_before} pages");
        }
    }
}
