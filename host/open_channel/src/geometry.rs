//! The shape of a drive, and its addresses. Version 1.2 of the interface reports planes and pages, on which the
//! layouts of experiments such as uFLIP-OC depend. Version 2.0 does not: a host that needs them must know the flash
//! ([`Geometry::with_planes`]).

use nandscape_wire_nvme::open_channel::{self as oc, AddressBits};

/// See the file.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Geometry {
    /// Groups.
    pub groups: u32,
    /// Parallel units of a group.
    pub pus: u32,
    /// Chunks of a parallel unit.
    pub chunks: u32,
    /// Logical blocks of a chunk.
    pub sectors: u32,
    /// Logical blocks that are written together, at least.
    pub ws_min: u32,
    /// Logical blocks that are best written together.
    pub ws_opt: u32,
    /// Logical blocks that must follow one before it can be read.
    pub mw_cunits: u32,
    /// Media and Controller Capabilities.
    pub capabilities: u32,
    bits: AddressBits,
    /// Planes of a parallel unit, and logical blocks of a page.
    planes: (u32, u32),
}

/// A place in the flash.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Place {
    /// Group: a channel.
    pub group: u32,
    /// Parallel unit in the group.
    pub pu: u32,
    /// Chunk in the parallel unit.
    pub chunk: u32,
    /// Logical block in the chunk.
    pub sector: u32,
}

/// A place in the flash by version 1.2.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct PageAddress {
    /// Channel.
    pub channel: u32,
    /// LUN on the channel.
    pub lun: u32,
    /// Plane of the LUN.
    pub plane: u32,
    /// Block in the plane.
    pub block: u32,
    /// Page of the block.
    pub page: u32,
    /// Sector of the page.
    pub sector: u32,
}

impl Geometry {
    /// From a drive's report; `None` if the report is invalid, so the drive is not an open-channel drive of version
    /// 2.
    pub fn of(data: &oc::Geometry) -> Option<Geometry> {
        let geometry = Geometry {
            groups: data.num_grp.get().into(),
            pus: data.num_pu.get().into(),
            chunks: data.num_chk.get(),
            sectors: data.clba.get(),
            ws_min: data.ws_min.get(),
            ws_opt: data.ws_opt.get(),
            mw_cunits: data.mw_cunits.get(),
            capabilities: data.mccap.get(),
            bits: data.lbaf,
            planes: (1, 1),
        };
        let AddressBits { group, pu, chunk, sector, .. } = data.lbaf;
        let counts =
            [(geometry.groups, group), (geometry.pus, pu), (geometry.chunks, chunk), (geometry.sectors, sector)];
        let fits = |(count, bits): (u32, u8)| count > 0 && (bits >= 32 || count - 1 < 1 << bits);
        let bits = [group, pu, chunk, sector].iter().map(|bits| u32::from(*bits)).sum::<u32>();
        let writes = geometry.ws_min > 0 && geometry.sectors.is_multiple_of(geometry.ws_min);
        (data.mjr == 2 && bits < 64 && writes && counts.into_iter().all(fits)).then_some(geometry)
    }

    /// Adds the values of version 1.2: planes of a parallel unit that are programmed together, and logical blocks of
    /// a page. One program writes the minimum write size: consecutive pages on each plane.
    ///
    /// # Panics
    /// When the minimum write size is not a whole number of such pages on each plane.
    pub fn with_planes(self, planes: u32, page_sectors: u32) -> Geometry {
        let page = planes.checked_mul(page_sectors).filter(|page| *page > 0).expect("a page has sectors");
        assert!(
            self.ws_min.is_multiple_of(page),
            "a program writes pages of {page} blocks, and {} blocks",
            self.ws_min
        );
        Geometry { planes: (planes, page_sectors), ..self }
    }

    /// The address of a place.
    pub fn address(&self, place: Place) -> u64 {
        self.bits.address([place.group, place.pu, place.chunk, place.sector].map(u64::from))
    }

    /// The place of an address; `None` for an invalid address.
    pub fn place(&self, address: u64) -> Option<Place> {
        let [group, pu, chunk, sector] = self.bits.place(address);
        let is_there = group < self.groups.into()
            && pu < self.pus.into()
            && chunk < self.chunks.into()
            && sector < self.sectors.into();
        is_there.then_some(Place { group: group as u32, pu: pu as u32, chunk: chunk as u32, sector: sector as u32 })
    }

    /// All chunks, in the order of the log page, by their first places.
    pub fn chunk_places(&self) -> impl Iterator<Item = Place> + use<> {
        let (pus, chunks) = (self.pus, self.chunks);
        (0..self.groups).flat_map(move |group| {
            (0..pus).flat_map(move |pu| (0..chunks).map(move |chunk| Place { group, pu, chunk, sector: 0 }))
        })
    }

    /// The number of a place's chunk in that order.
    pub fn chunk_number(&self, place: Place) -> u32 {
        (place.group * self.pus + place.pu) * self.chunks + place.chunk
    }

    /// Pages of one plane that one program writes.
    fn line_pages(&self) -> u32 {
        self.ws_min / (self.planes.0 * self.planes.1)
    }

    /// The place that version 1.2 names otherwise.
    pub fn place_of_page(&self, at: PageAddress) -> Place {
        let (planes, page_sectors) = self.planes;
        let (program, of_line) = (at.page / self.line_pages(), at.page % self.line_pages());
        let within = (at.plane * self.line_pages() + of_line) * page_sectors + at.sector;
        debug_assert!(at.plane < planes && at.sector < page_sectors, "{at:?}");
        Place { group: at.channel, pu: at.lun, chunk: at.block, sector: program * self.ws_min + within }
    }

    /// The name of a place by version 1.2.
    pub fn page_of_place(&self, place: Place) -> PageAddress {
        let (program, within) = (place.sector / self.ws_min, place.sector % self.ws_min);
        let (page, sector) = (within / self.planes.1, within % self.planes.1);
        let (plane, of_line) = (page / self.line_pages(), page % self.line_pages());
        PageAddress {
            channel: place.group,
            lun: place.pu,
            plane,
            block: place.chunk,
            page: program * self.line_pages() + of_line,
            sector,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data() -> oc::Geometry {
        let mut data = oc::Geometry::zeroed();
        data.mjr = 2;
        data.lbaf = AddressBits { group: 1, pu: 2, chunk: 3, sector: 5, reserved: [0; 4] };
        (data.num_grp, data.num_pu, data.num_chk, data.clba) = (2.into(), 3.into(), 5.into(), 24.into());
        (data.ws_min, data.ws_opt) = (12.into(), 12.into());
        data
    }

    #[test]
    fn each_place_has_one_address_and_one_page() {
        let geometry = Geometry::of(&data()).expect("it makes sense").with_planes(2, 2);
        let mut seen = std::collections::BTreeSet::new();
        for chunk in geometry.chunk_places() {
            for sector in 0..geometry.sectors {
                let place = Place { sector, ..chunk };
                assert_eq!(geometry.place(geometry.address(place)), Some(place));
                let page = geometry.page_of_place(place);
                assert_eq!(geometry.place_of_page(page), place);
                assert!(page.plane < 2 && page.page < 6 && page.sector < 2, "{page:?}");
                assert!(seen.insert((page.channel, page.lun, page.plane, page.block, page.page, page.sector)));
            }
        }
        let numbers = geometry.chunk_places().map(|place| geometry.chunk_number(place));
        assert!(numbers.eq(0..30));
        // Three pages of the first plane, then three of the second.
        let page = |sector| geometry.page_of_place(Place { group: 0, pu: 0, chunk: 0, sector });
        assert_eq!([page(2).page, page(6).plane, page(12).page], [1, 1, 3]);
        assert_eq!(geometry.place(1 << 40), None);
    }

    #[test]
    fn what_makes_no_sense_is_no_geometry() {
        let changes: [fn(&mut oc::Geometry); 5] = [
            |data| data.mjr = 1,
            |data| data.ws_min = 0.into(),
            |data| data.ws_min = 7.into(),
            |data| data.lbaf.chunk = 2,
            |data| data.lbaf.group = 60,
        ];
        for change in changes {
            let mut data = data();
            change(&mut data);
            assert_eq!(Geometry::of(&data), None);
        }
    }
}
