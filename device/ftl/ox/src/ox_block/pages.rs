//! Pages of tables and logs: their bytes, and the content of their out-of-band areas.
//!
//! | bytes of the area | what |
//! |---|---|
//! | 0 | kind; 0 is data of the host, whose tag is its logical unit |
//! | 1..5 | number of the fragment |
//! | 5..9 | checksum of the page |

use nandscape_device_media::{Geometry, Media, Oob, OobBytes, PageId, PageImage};

/// The tag of a unit that holds no data of the host.
pub(super) const NO_LPN: u32 = u32::MAX;

/// The kind of a page.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// A fragment of the map (map_L).
    MapLarge,
    /// A fragment of the table of fragments of the map (map_S).
    MapSmall,
    /// A fragment of the table of blocks (chunk_L).
    Chunks,
    /// A page of the log.
    Log,
    /// A page of a record at a fixed place.
    Fixed,
    /// A page of the list at the end of a block.
    Tail,
}

const KINDS: [Kind; 6] = [Kind::MapLarge, Kind::MapSmall, Kind::Chunks, Kind::Log, Kind::Fixed, Kind::Tail];

/// The image of a page of bytes.
pub(super) fn image(geometry: &Geometry, kind: Kind, index: u32, bytes: &[u8]) -> PageImage {
    let mut whole = bytes.to_vec();
    whole.resize(geometry.page_size() as usize, 0);
    let mut area = OobBytes::default();
    area[0] = KINDS.iter().position(|each| *each == kind).expect("it is one of them") as u8 + 1;
    area[1..5].copy_from_slice(&index.to_le_bytes());
    area[5..9].copy_from_slice(&crc32fast::hash(&whole).to_le_bytes());
    let mut image = PageImage::metadata();
    for unit in whole.chunks_exact(geometry.unit_size() as usize) {
        image.push_with_oob(Oob { tag: NO_LPN, bytes: area }, Some(unit.into()));
    }
    image
}

/// The kind of a page; `None` where it holds data of the host.
pub(super) fn kind(media: &Media, page: PageId) -> Option<Kind> {
    let [kind, ..] = media.oob(media.geometry().unit_at(page, 0)).bytes;
    KINDS.get(usize::from(kind).checked_sub(1)?).copied()
}

/// Kind, number and bytes of a page that was read; `None` if it is none, or was changed.
pub(super) fn contents(media: &Media, page: PageId) -> Option<(Kind, u32, Vec<u8>)> {
    let geometry = media.geometry();
    let area = media.oob(geometry.unit_at(page, 0)).bytes;
    let number = |at: usize| u32::from_le_bytes(area[at..at + 4].try_into().expect("4 bytes"));
    let kind = self::kind(media, page)?;
    let mut bytes = Vec::with_capacity(geometry.page_size() as usize);
    for unit in 0..geometry.units_per_page() {
        let Some(data) = media.data(geometry.unit_at(page, unit)) else {
            // The failure is handled here, and must not be reported for the next host read.
            media.take_read_failure();
            return None;
        };
        bytes.extend_from_slice(&data);
    }
    (number(5) == crc32fast::hash(&bytes)).then_some((kind, number(1), bytes))
}
