//! Planes that belong to ranges of the logical blocks (Li 2020, 6.2). Each range is written to its own planes, so that
//! a collection of one range keeps no read of another from its chip. Within its planes a range follows its own policy.
//!
//! The planes of a range are neighbours by channel, then die: as many as possible have separate channels.
//!
//! Left out: planes of another range for one whose planes fail: the drive is read-only before a range lacks blocks,
//! although others have more room.

use nandscape_device_media::{Geometry, PlaneId};

use super::{AllocationPolicy, Stripe, StripeOrder, Striped};

/// See the file.
pub struct ByRange {
    /// By range.
    policies: Vec<Striped>,
    /// By plane, its range.
    owners: Vec<u8>,
    /// The range that is served first if none is named.
    turn: u8,
}

impl ByRange {
    /// Striping over the planes of each of `ranges` ranges, at most as many as planes.
    pub fn new(geometry: &Geometry, order: StripeOrder, ranges: u8) -> ByRange {
        let mut planes: Vec<PlaneId> = (0..geometry.planes()).map(PlaneId).collect();
        planes.sort_by_key(|plane| geometry.place(*plane));
        let mut owners = vec![0; planes.len()];
        for (at, plane) in planes.iter().enumerate() {
            owners[plane.0 as usize] = (at * usize::from(ranges) / planes.len()) as u8;
        }
        ByRange { policies: (0..ranges).map(|_| Striped::new(geometry, order)).collect(), owners, turn: 0 }
    }
}

impl AllocationPolicy for ByRange {
    fn set_ready(&mut self, plane: PlaneId, ready: bool) {
        self.policies[usize::from(self.owners[plane.0 as usize])].set_ready(plane, ready);
    }

    fn is_any_ready(&self) -> bool {
        self.policies.iter().any(Striped::is_any_ready)
    }

    fn is_ready_for(&self, handle: u8) -> bool {
        self.policies[usize::from(handle)].is_any_ready()
    }

    fn ranges(&self) -> u8 {
        self.policies.len() as u8
    }

    fn range_of(&self, plane: PlaneId) -> Option<u8> {
        Some(self.owners[plane.0 as usize])
    }

    fn width(&self) -> u32 {
        1
    }

    fn next(&mut self) -> Stripe {
        let ranges = self.policies.len() as u8;
        let ready = (0..ranges).map(|step| (self.turn + step) % ranges).find(|range| self.is_ready_for(*range));
        let Some(range) = ready else { return Stripe::new() };
        self.turn = (range + 1) % ranges;
        self.policies[usize::from(range)].next()
    }

    fn next_for(&mut self, handle: u8) -> Stripe {
        self.policies[usize::from(handle)].next()
    }

    fn place(&self) -> u32 {
        self.policies[0].place()
    }

    fn go_on_at(&mut self, place: u32) {
        self.policies.iter_mut().for_each(|policy| policy.go_on_at(place));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_device_media::geometry::Counts;

    fn geometry() -> Geometry {
        Geometry::new(Counts {
            channels: 4,
            dies_per_channel: 2,
            planes_per_die: 1,
            blocks_per_plane: 4,
            pages_per_block: 4,
            page_size: 4_096,
            unit_size: 4_096,
        })
        .unwrap()
    }

    #[test]
    fn each_range_is_written_to_channels_of_its_own() {
        let geometry = geometry();
        let mut planes = ByRange::new(&geometry, StripeOrder::ChannelDiePlane, 2);
        (0..8).for_each(|plane| planes.set_ready(PlaneId(plane), true));
        for range in 0..2 {
            let mut places: Vec<_> = (0..4).map(|_| geometry.place(planes.next_for(range)[0])).collect();
            places.sort_unstable();
            let first = u32::from(range) * 2;
            assert_eq!(places, [(first, 0, 0), (first, 1, 0), (first + 1, 0, 0), (first + 1, 1, 0)]);
        }
    }

    #[test]
    fn a_range_without_room_is_not_given_the_planes_of_another() {
        let geometry = geometry();
        let mut planes = ByRange::new(&geometry, StripeOrder::ChannelDiePlane, 4);
        let of_first: Vec<PlaneId> = (0..8).map(PlaneId).filter(|plane| geometry.channel_of(*plane) == 0).collect();
        planes.set_ready(of_first[1], true);
        assert!(planes.is_any_ready() && planes.is_ready_for(0) && !planes.is_ready_for(1));
        assert!(planes.next_for(1).is_empty());
        assert_eq!((planes.next_for(0)[0], planes.next()[0]), (of_first[1], of_first[1]));
        planes.set_ready(of_first[1], false);
        assert!(!planes.is_any_ready() && planes.next().is_empty());
    }
}
