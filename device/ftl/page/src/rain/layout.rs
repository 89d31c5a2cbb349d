//! The logical units of a stripe, and the planes of its members (Li 3.3.2, Fig. 3.3).
//!
//! Planes at the same position of `width` neighbouring channels form a group; more channels than that give several
//! groups next to each other. A stripe is `width - 1` consecutive units and their parity, and lies in one group, a
//! member in each column. Stripes rotate over the groups. The parity moves by a column from stripe to stripe, and the
//! data follows it, around the columns.
//!
//! A stripe keeps its static place unless wear levelling has moved it. Then a bit marks it, and a table holds its place
//! (Li 6.3.1).
//!
//! The parity of a stripe has an entry in the map as units of the host have: those of all stripes follow the host's units.

use std::collections::BTreeMap;
use std::ops::Range;

use nandscape_device_ftl_core::address::Lpn;
use nandscape_device_media::{Geometry, PlaneId};

/// Where a stripe is.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Place {
    /// The plane group.
    pub(crate) group: u32,
    /// The column that has the parity.
    pub(crate) parity: u32,
}

/// See the module.
pub(crate) struct Layout {
    /// Members of a stripe.
    width: u32,
    logical_units: u32,
    stripes: u32,
    groups: u32,
    /// Groups that lie next to each other in the same position.
    sides: u32,
    dies: u32,
    planes_per_die: u32,
    moved: Moved,
}

/// Stripes outside their static place.
#[derive(Default)]
struct Moved {
    /// A bit a stripe; empty until one is moved.
    bits: Vec<u64>,
    places: BTreeMap<u32, Place>,
}

/// Stripes of `width` members that hold `logical_units` units.
pub const fn stripes_of(logical_units: u32, width: u32) -> u32 {
    logical_units.div_ceil(width - 1)
}

impl Layout {
    /// The static layout. `width` divides the channels.
    pub(crate) fn new(geometry: &Geometry, width: u32, logical_units: u32) -> Layout {
        let counts = geometry.counts();
        let sides = counts.channels / width;
        Layout {
            width,
            logical_units,
            stripes: stripes_of(logical_units, width),
            groups: sides * counts.dies_per_channel * counts.planes_per_die,
            sides,
            dies: counts.dies_per_channel,
            planes_per_die: counts.planes_per_die,
            moved: Moved::default(),
        }
    }

    /// Members of a stripe, the parity included.
    pub(crate) fn width(&self) -> u32 {
        self.width
    }

    /// The member that is the parity.
    pub(crate) fn parity(&self) -> u32 {
        self.width - 1
    }

    pub(crate) fn stripes(&self) -> u32 {
        self.stripes
    }

    pub(crate) fn groups(&self) -> u32 {
        self.groups
    }

    /// The stripe of a unit, or of a parity, and its number among the members.
    #[inline]
    pub(crate) fn stripe_of(&self, lpn: Lpn) -> (u32, u32) {
        match lpn.0.checked_sub(self.logical_units) {
            Some(stripe) => (stripe, self.width - 1),
            None => (lpn.0 / (self.width - 1), lpn.0 % (self.width - 1)),
        }
    }

    /// The unit that is a member of a stripe; `None` where the last stripe has fewer.
    #[inline]
    pub(crate) fn unit(&self, stripe: u32, member: u32) -> Option<Lpn> {
        if member == self.width - 1 {
            return Some(Lpn(self.logical_units + stripe));
        }
        let lpn = stripe * (self.width - 1) + member;
        (lpn < self.logical_units).then_some(Lpn(lpn))
    }

    /// The units of the host that a stripe holds.
    pub(crate) fn units(&self, stripe: u32) -> Range<u32> {
        let first = stripe * (self.width - 1);
        first..self.logical_units.min(first + self.width - 1)
    }

    /// The members of a stripe that are data, a bit each.
    pub(crate) fn data(&self, stripe: u32) -> u32 {
        let units = self.units(stripe);
        (1 << (units.end - units.start)) - 1
    }

    /// Where a stripe is.
    #[inline]
    pub(crate) fn place(&self, stripe: u32) -> Place {
        if let Some(word) = self.moved.bits.get(stripe as usize / 64)
            && word & 1 << (stripe % 64) != 0
        {
            return self.moved.places[&stripe];
        }
        self.default_place(stripe)
    }

    fn default_place(&self, stripe: u32) -> Place {
        let (round, group) = (stripe / self.groups, stripe % self.groups);
        Place { group, parity: self.width - 1 - (round + group % self.width) % self.width }
    }

    /// Moves a stripe to another place.
    pub(crate) fn set_place(&mut self, stripe: u32, place: Place) {
        let is_default = place == self.default_place(stripe);
        let Moved { bits, places } = &mut self.moved;
        bits.resize(self.stripes.div_ceil(64) as usize, 0);
        let (word, bit) = (&mut bits[stripe as usize / 64], 1 << (stripe % 64));
        if is_default {
            places.remove(&stripe);
            *word &= !bit;
        } else {
            places.insert(stripe, place);
            *word |= bit;
        }
    }

    /// Stripes whose mapping is modified.
    pub(crate) fn moved(&self) -> u32 {
        self.moved.places.len() as u32
    }

    /// The column of a member of a stripe.
    pub(crate) fn column(&self, place: Place, member: u32) -> u32 {
        (place.parity + 1 + member) % self.width
    }

    /// The plane of a member of a stripe that is at a place.
    #[inline]
    pub(crate) fn plane_at(&self, place: Place, member: u32) -> PlaneId {
        self.plane(place.group, self.column(place, member))
    }

    /// The plane in a column of a group.
    pub(crate) fn plane(&self, group: u32, column: u32) -> PlaneId {
        let (side, position) = (group % self.sides, group / self.sides);
        let (die, plane) = (position % self.dies, position / self.dies);
        let channel = side * self.width + column;
        PlaneId((channel * self.dies + die) * self.planes_per_die + plane)
    }

    /// The plane of a unit, or of a parity.
    #[inline]
    pub(crate) fn plane_of(&self, lpn: Lpn) -> PlaneId {
        let (stripe, member) = self.stripe_of(lpn);
        self.plane_at(self.place(stripe), member)
    }

    /// The group of a plane, and its column there.
    pub(crate) fn group_of(&self, plane: PlaneId) -> (u32, u32) {
        let per_channel = self.dies * self.planes_per_die;
        let (channel, inside) = (plane.0 / per_channel, plane.0 % per_channel);
        let (die, of_die) = (inside / self.planes_per_die, inside % self.planes_per_die);
        let position = of_die * self.dies + die;
        (position * self.sides + channel / self.width, channel % self.width)
    }

    /// The planes of a group, by column.
    pub(crate) fn planes(&self, group: u32) -> impl Iterator<Item = PlaneId> {
        (0..self.width).map(move |column| self.plane(group, column))
    }
}

#[cfg(test)]
mod tests {
    use nandscape_device_media::geometry::Counts;
    use proptest::prelude::*;

    use super::*;

    fn geometry(channels: u32, dies_per_channel: u32, planes_per_die: u32) -> Geometry {
        let size = 4_096;
        Geometry::new(Counts {
            channels,
            dies_per_channel,
            planes_per_die,
            blocks_per_plane: 4,
            pages_per_block: 4,
            page_size: size,
            unit_size: size,
        })
        .unwrap()
    }

    /// Fig. 3.3: four channels, S0 = {0 1 2 P} in G0, the next parity a channel before.
    #[test]
    fn the_layout_of_the_figure() {
        let layout = Layout::new(&geometry(4, 2, 1), 4, 24);
        let columns = |stripe| (0..4).map(|member| layout.column(layout.place(stripe), member)).collect::<Vec<_>>();
        assert_eq!((layout.place(0).group, columns(0)), (0, vec![0, 1, 2, 3]));
        assert_eq!((layout.place(1).group, columns(1)), (1, vec![3, 0, 1, 2]));
        assert_eq!((layout.stripe_of(Lpn(5)), layout.stripe_of(Lpn(24 + 1))), ((1, 2), (1, 3)));
        assert_eq!((layout.unit(1, 2), layout.unit(1, 3)), (Some(Lpn(5)), Some(Lpn(25))));
    }

    #[test]
    fn a_shifted_stripe_has_its_members_in_other_columns() {
        let mut layout = Layout::new(&geometry(4, 2, 1), 4, 24);
        let place = Place { group: 0, parity: 2 };
        layout.set_place(0, place);
        // {1 2 P 0}, as in Li 6.3.1.
        assert_eq!([0, 1, 2, 3].map(|member| layout.column(layout.place(0), member)), [3, 0, 1, 2]);
        assert_eq!((layout.moved(), layout.place(2)), (1, layout.default_place(2)));
        layout.set_place(0, Place { group: 0, parity: 3 });
        assert_eq!((layout.moved(), layout.place(0).parity), (0, 3));
    }

    proptest! {
        #[test]
        fn no_two_members_share_a_channel_and_each_plane_has_its_share(
            width in 2u32..9, sides in 1u32..4, dies in 1u32..4, planes in 1u32..3, units in 1u32..2_000,
        ) {
            let geometry = geometry(width * sides, dies, planes);
            let layout = Layout::new(&geometry, width, units);
            let mut parities = vec![0u32; geometry.planes() as usize];
            let mut members = parities.clone();
            for stripe in 0..layout.stripes() {
                let place = layout.place(stripe);
                let mut channels: Vec<u32> =
                    (0..width).map(|member| geometry.channel_of(layout.plane_at(place, member))).collect();
                let positions: Vec<_> = (0..width)
                    .map(|member| { let (_, die, plane) = geometry.place(layout.plane_at(place, member)); (die, plane) })
                    .collect();
                prop_assert!(positions.windows(2).all(|pair| pair[0] == pair[1]));
                channels.sort_unstable();
                prop_assert!(channels.windows(2).all(|pair| pair[0] + 1 == pair[1]));
                parities[layout.plane_at(place, layout.parity()).0 as usize] += 1;
                (0..width).for_each(|member| members[layout.plane_at(place, member).0 as usize] += 1);
                for member in 0..width {
                    if let Some(lpn) = layout.unit(stripe, member) {
                        prop_assert_eq!(layout.stripe_of(lpn), (stripe, member));
                    }
                }
            }
            for group in 0..layout.groups() {
                let of = |counts: &[u32]| layout.planes(group).map(|plane| counts[plane.0 as usize]).collect::<Vec<_>>();
                let (parities, members) = (of(&parities), of(&members));
                prop_assert!(parities.iter().max().unwrap() - parities.iter().min().unwrap() <= 1);
                prop_assert!(members.iter().all(|count| *count == members[0]));
                for (plane, column) in layout.planes(group).zip(0..) {
                    prop_assert_eq!(layout.group_of(plane), (group, column));
                }
            }
            prop_assert_eq!(members.iter().max().unwrap() - members.iter().min().unwrap() <= 1, true);
        }
    }
}
