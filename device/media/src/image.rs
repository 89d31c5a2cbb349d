//! The image of pages to program: for each unit its out-of-band area, and its data if kept.
//!
//! A unit's out-of-band area is a tag, which is its logical address, and bytes that the FTL defines, such as a sequence
//! number. Host data is for the store. The data of a metadata image is kept whatever the store. An FTL can therefore
//! read its tables and logs from flash that keeps no host data.

use smallvec::SmallVec;

use crate::store::UnitData;

/// Bytes of a unit's out-of-band area that the FTL defines.
pub type OobBytes = [u8; 12];

/// The out-of-band area of a programmed unit.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Oob {
    /// The unit's logical address, by which faults find it.
    pub tag: u32,
    /// The FTL's bytes; zero where it gave none.
    pub bytes: OobBytes,
}

impl Oob {
    /// Bytes of the area on the channel.
    pub const SIZE: u32 = 16;
}

/// A part of a page's image that a power cut leaves.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    All,
    /// This many bytes of the data, and the areas of the units that are whole.
    First(usize),
    /// The out-of-band areas.
    Areas,
    /// The data.
    Data,
}

/// A byte of cells that are not programmed.
const ERASED: u8 = 0xff;

/// The image of a page, or of pages that are programmed together, one after the other.
#[derive(Clone, Default, Debug)]
pub struct PageImage {
    /// The tag of each unit.
    pub(crate) tags: SmallVec<[u32; 4]>,
    /// The data of the first units. The others have none: most drives keep no data, and pages of tags alone cost less.
    data: SmallVec<[Option<UnitData>; 4]>,
    /// Parts that only some images have.
    rare: Option<Box<Rare>>,
}

#[derive(Clone, Default, Debug)]
struct Rare {
    is_metadata: bool,
    /// The FTL's bytes of each unit, from the first on.
    bytes: Vec<OobBytes>,
}

impl PageImage {
    /// An image without units, whose data is kept whatever the store.
    pub fn metadata() -> PageImage {
        PageImage { rare: Some(Box::new(Rare { is_metadata: true, ..Rare::default() })), ..PageImage::default() }
    }

    /// Adds the next unit.
    #[inline]
    pub fn push(&mut self, tag: u32, data: Option<UnitData>) {
        if data.is_some() {
            self.data.resize(self.tags.len(), None);
            self.data.push(data);
        }
        self.tags.push(tag);
    }

    /// Adds the next units, which have no data.
    pub(crate) fn push_all(&mut self, tags: impl Iterator<Item = u32>) {
        self.tags.extend(tags);
    }

    /// Adds the next unit with all of its out-of-band area.
    pub fn push_with_oob(&mut self, oob: Oob, data: Option<UnitData>) {
        let before = self.len();
        self.push(oob.tag, data);
        let bytes = &mut self.rare.get_or_insert_default().bytes;
        bytes.resize(before, OobBytes::default());
        bytes.push(oob.bytes);
    }

    /// Adds units without data until there are `units`.
    pub fn pad(&mut self, units: usize, tag: u32) {
        for _ in self.len()..units {
            self.tags.push(tag);
        }
    }

    /// Number of units so far.
    pub fn len(&self) -> usize {
        self.tags.len()
    }

    /// Whether there is no unit yet.
    pub fn is_empty(&self) -> bool {
        self.tags.is_empty()
    }

    /// The `units` units from `from` on, each of `size` bytes, as far as they belong to a part. The rest reads as erased.
    pub(crate) fn part(&self, from: usize, units: usize, size: usize, part: Part) -> PageImage {
        let mut left = if self.is_metadata() { PageImage::metadata() } else { PageImage::default() };
        let areas = self.oob_bytes(from);
        let all = self.data_from(from);
        for (number, tag) in self.tags[from..from + units].iter().enumerate() {
            let data = all.get(number).and_then(Option::as_ref);
            let (bytes, has_area) = match part {
                Part::All => (usize::MAX, true),
                Part::First(bytes) => (bytes.saturating_sub(number * size), bytes >= (number + 1) * size),
                Part::Areas => (0, true),
                Part::Data => (usize::MAX, false),
            };
            let oob = match has_area {
                true => Oob { tag: *tag, bytes: areas.get(number).copied().unwrap_or_default() },
                false => Oob { tag: u32::MAX, bytes: [ERASED; 12] },
            };
            let cell = |(at, byte): (usize, &u8)| if at < bytes { *byte } else { ERASED };
            left.push_with_oob(oob, data.map(|data| data.iter().enumerate().map(cell).collect()));
        }
        left
    }

    /// The data of the units from `first` on. Units beyond its end have none.
    #[inline]
    pub(crate) fn data_from(&self, first: usize) -> &[Option<UnitData>] {
        self.data.get(first..).unwrap_or_default()
    }

    pub(crate) fn is_metadata(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.is_metadata)
    }

    /// The FTL's bytes of the units from `first` on, if it gave any.
    pub(crate) fn oob_bytes(&self, first: usize) -> &[OobBytes] {
        self.rare.as_ref().and_then(|rare| rare.bytes.get(first..)).unwrap_or_default()
    }
}
