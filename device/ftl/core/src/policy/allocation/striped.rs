//! Planes in turn, one at a time, so that a run of pages is spread over the whole drive.

use nandscape_device_media::{Geometry, PlaneId};

use super::{AllocationPolicy, Stripe};

/// The order in which stripes run over the dimensions of a drive; the first named varies fastest.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum StripeOrder {
    /// Channel, die, plane.
    ChannelDiePlane,
    /// Channel, plane, die.
    ChannelPlaneDie,
    /// Die, channel, plane.
    DieChannelPlane,
    /// Die, plane, channel.
    DiePlaneChannel,
    /// Plane, channel, die.
    PlaneChannelDie,
    /// Plane, die, channel.
    PlaneDieChannel,
}

impl StripeOrder {
    /// All orders, by their names in profiles.
    pub const ALL: [(&str, StripeOrder); 6] = [
        ("channel_die_plane", StripeOrder::ChannelDiePlane),
        ("channel_plane_die", StripeOrder::ChannelPlaneDie),
        ("die_channel_plane", StripeOrder::DieChannelPlane),
        ("die_plane_channel", StripeOrder::DiePlaneChannel),
        ("plane_channel_die", StripeOrder::PlaneChannelDie),
        ("plane_die_channel", StripeOrder::PlaneDieChannel),
    ];

    /// A plane's key: planes sorted by it are in stripe order.
    fn key(self, (channel, die, plane): (u32, u32, u32)) -> (u32, u32, u32) {
        match self {
            StripeOrder::ChannelDiePlane => (plane, die, channel),
            StripeOrder::ChannelPlaneDie => (die, plane, channel),
            StripeOrder::DieChannelPlane => (plane, channel, die),
            StripeOrder::DiePlaneChannel => (channel, plane, die),
            StripeOrder::PlaneChannelDie => (die, channel, plane),
            StripeOrder::PlaneDieChannel => (channel, die, plane),
        }
    }
}

/// Pages go to the planes in turn, so that a run of them is spread over the whole drive; a plane that is not ready is
/// passed over.
pub struct Striped {
    /// Planes in stripe order, and the position of each plane in it.
    order: Vec<PlaneId>,
    position: Vec<u32>,
    /// One bit a position: whether the plane there is ready.
    ready: Vec<u64>,
    cursor: u32,
}

impl Striped {
    /// Striping over all planes of a drive, none of them ready.
    pub fn new(geometry: &Geometry, order: StripeOrder) -> Striped {
        let mut planes: Vec<PlaneId> = (0..geometry.planes()).map(PlaneId).collect();
        planes.sort_by_key(|plane| order.key(geometry.place(*plane)));
        let mut position = vec![0; planes.len()];
        planes.iter().zip(0..).for_each(|(plane, at)| position[plane.0 as usize] = at);
        Striped { ready: vec![0; planes.len().div_ceil(64)], order: planes, position, cursor: 0 }
    }

    /// The first ready position from `from` on, going round.
    fn next_from(&self, from: u32) -> Option<u32> {
        let words = self.ready.len();
        let (start, bit) = (from as usize / 64, from % 64);
        // The first word is checked twice: from the bit on, and at the end from its beginning.
        (0..=words).find_map(|step| {
            let index = (start + step) % words;
            let word = self.ready[index] & if step == 0 { u64::MAX << bit } else { u64::MAX };
            (word != 0).then(|| index as u32 * 64 + word.trailing_zeros())
        })
    }
}

impl AllocationPolicy for Striped {
    fn set_ready(&mut self, plane: PlaneId, ready: bool) {
        let position = self.position[plane.0 as usize];
        let (word, bit) = (&mut self.ready[position as usize / 64], 1 << (position % 64));
        if ready {
            *word |= bit;
        } else {
            *word &= !bit;
        }
    }

    fn is_any_ready(&self) -> bool {
        self.ready.iter().any(|word| *word != 0)
    }

    fn width(&self) -> u32 {
        1
    }

    fn next(&mut self) -> Stripe {
        let Some(position) = self.next_from(self.cursor) else { return Stripe::new() };
        self.cursor = (position + 1) % self.order.len() as u32;
        Stripe::from_elem(self.order[position as usize], 1)
    }

    fn place(&self) -> u32 {
        self.cursor
    }

    fn go_on_at(&mut self, place: u32) {
        self.cursor = place % self.order.len() as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_device_media::geometry::Counts;

    fn geometry() -> Geometry {
        Geometry::new(Counts {
            channels: 2,
            dies_per_channel: 3,
            planes_per_die: 2,
            blocks_per_plane: 4,
            pages_per_block: 4,
            page_size: 4_096,
            unit_size: 4_096,
        })
        .unwrap()
    }

    fn places(order: StripeOrder, count: usize) -> Vec<(u32, u32, u32)> {
        let geometry = geometry();
        let mut striped = Striped::new(&geometry, order);
        (0..geometry.planes()).for_each(|plane| striped.set_ready(PlaneId(plane), true));
        (0..count).map(|_| geometry.place(striped.next()[0])).collect()
    }

    #[test]
    fn the_first_named_dimension_varies_fastest() {
        let order = places(StripeOrder::ChannelDiePlane, 7);
        assert_eq!(order, [(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0), (0, 2, 0), (1, 2, 0), (0, 0, 1)]);
        let order = places(StripeOrder::PlaneDieChannel, 4);
        assert_eq!(order, [(0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1)]);
        for (_, order) in StripeOrder::ALL {
            let mut round = places(order, 12);
            round.sort_unstable();
            round.dedup();
            assert_eq!(round.len(), 12);
        }
    }

    #[test]
    fn planes_that_are_not_ready_are_passed_over() {
        let geometry = geometry();
        let mut striped = Striped::new(&geometry, StripeOrder::PlaneDieChannel);
        assert!(striped.next().is_empty());
        striped.set_ready(PlaneId(3), true);
        striped.set_ready(PlaneId(9), true);
        let turns: Vec<_> = (0..4).map(|_| striped.next()[0].0).collect();
        assert_eq!(turns, [3, 9, 3, 9]);
        striped.set_ready(PlaneId(9), false);
        assert_eq!((striped.next()[0], striped.next()[0]), (PlaneId(3), PlaneId(3)));
    }
}
