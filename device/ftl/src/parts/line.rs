//! A line (OX 6.1.3): blocks of several planes that a stream writes in turn, page by page.
//!
//! Planes take turns, in [`ChannelsFirst`](LineOrder::ChannelsFirst) with the channel the fastest, so that as many channels as
//! there are work at the same time. A line is as wide as it may be and as free blocks allow: when one of its blocks is full, another is opened, on the plane whose turn it
//! is.

use nandscape_device_media::{Geometry, PageId, PlaneId};

use super::PlaneLists;
use crate::component::{BlockMetadata, Provisioning, Stream};

/// The order in which planes take turns.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum LineOrder {
    /// A plane of each channel, then the next plane of each.
    ChannelsFirst,
    /// All planes of a channel, then those of the next.
    PlanesFirst,
}

/// The line of a stream.
pub struct Line {
    stream: Stream,
    order: Vec<PlaneId>,
    width: usize,
    /// Whose turn it is.
    next: usize,
}

impl Line {
    /// A line of up to `width` blocks.
    pub fn new(geometry: &Geometry, order: LineOrder, stream: Stream, width: usize) -> Line {
        let per_channel = geometry.planes() / geometry.channels();
        let plane = |number| match order {
            LineOrder::ChannelsFirst => {
                PlaneId((number % geometry.channels()) * per_channel + number / geometry.channels())
            }
            LineOrder::PlanesFirst => PlaneId(number),
        };
        Line { stream, order: (0..geometry.planes()).map(plane).collect(), width: width.max(1), next: 0 }
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
        lists.get(blocks, self.order[chosen], self.stream)
    }

    /// Whether there is a page on some plane that is `usable`.
    pub fn has_room(&self, lists: &PlaneLists, usable: impl Fn(PlaneId) -> bool) -> bool {
        self.order.iter().any(|plane| usable(*plane) && self.may_write(lists, *plane))
    }

    /// Whose turn it is, to go on there after a restart.
    pub fn turn(&self) -> u32 {
        self.next as u32
    }

    /// Goes on where an earlier line has stopped.
    pub fn set_turn(&mut self, turn: u32) {
        self.next = turn as usize % self.order.len();
    }

    /// Bytes of memory.
    pub fn memory(&self) -> usize {
        size_of::<Line>() + self.order.len() * size_of::<PlaneId>()
    }

    fn may_write(&self, lists: &PlaneLists, plane: PlaneId) -> bool {
        let open = |plane: &PlaneId| lists.open(*plane, self.stream).is_some();
        let is_full =
            || self.width < self.order.len() && self.order.iter().filter(|plane| open(plane)).count() >= self.width;
        open(&plane) || (lists.has_room(plane, self.stream) && !is_full())
    }
}
