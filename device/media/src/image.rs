//! What is programmed into pages: for each unit its out-of-band area, and its data where there is any to keep.
//!
//! A unit's out-of-band area is a tag, which is its logical address, and bytes that the FTL defines, such as a sequence
//! number. Host data is for the store. The data of a metadata image is kept whatever the store, so that an FTL can read
//! its tables and logs back from flash that keeps no host data.

use smallvec::SmallVec;

use crate::store::UnitData;

/// Bytes of a unit's out-of-band area that the FTL defines.
pub type OobBytes = [u8; 12];

/// The out-of-band area of a programmed unit.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Oob {
    /// The unit's logical address, by which faults find it.
    pub tag: u32,
    /// What the FTL defines; zero where it gave nothing.
    pub bytes: OobBytes,
}

impl Oob {
    /// Bytes of the area on the channel.
    pub const SIZE: u32 = 16;
}

/// What is programmed into a page, or into pages that are programmed together, one after the other.
#[derive(Clone, Default, Debug)]
pub struct PageImage {
    pub(crate) units: SmallVec<[(u32, Option<UnitData>); 4]>,
    /// What only some images have.
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
        self.units.push((tag, data));
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
            self.push(tag, None);
        }
    }

    /// Number of units so far.
    pub fn len(&self) -> usize {
        self.units.len()
    }

    /// Whether there is no unit yet.
    pub fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    pub(crate) fn is_metadata(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.is_metadata)
    }

    /// The FTL's bytes of the units from `first` on, as far as it gave any.
    pub(crate) fn oob_bytes(&self, first: usize) -> &[OobBytes] {
        self.rare.as_ref().and_then(|rare| rare.bytes.get(first..)).unwrap_or_default()
    }
}
