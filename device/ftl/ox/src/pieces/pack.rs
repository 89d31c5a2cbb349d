//! A pack: the pieces of one transaction, one after the other, with a head that lists them. The heads are the log from
//! which the table is recovered.
//!
//! All numbers are little-endian. A head is "LSSP" (3:0), a CRC-32 of the rest of it (7:4), the number of the pack (15:8), the frame in
//! which the next pack will begin (19:16), its runs of frames (23:20) and its entries (27:24), and zero (31:28). Then each run: first
//! frame (4) and frames (4); and each entry: the page (8), kind (1) and bytes (3), and of a part that was moved the number of the
//! piece (1) and where in it the part begins (3). The pieces follow at once, in the order of the entries.

use super::area::{Area, Place, Stream};

const MAGIC: [u8; 4] = *b"LSSP";
/// Bytes of a head without runs and entries.
const HEAD: usize = 32;
/// Bytes of a run.
const RUN: usize = 8;
/// Bytes of an entry.
pub const ENTRY_BYTES: u32 = 16;
/// The most frames of a pack: the head with all runs fits into the smallest frame.
pub(super) const MOST_FRAMES: u32 = 500;
/// The most entries of a pack.
const MOST_ENTRIES: usize = 1 << 16;

/// The change that a pack makes to a page.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// A new base takes the place of all pieces.
    Base,
    /// A delta is put before them.
    Delta,
    /// Bytes of a piece have moved, which begin at `at` in it.
    Moved { ordinal: u8, at: u32 },
}

/// A piece in a pack.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    pub(super) lpid: u64,
    pub(super) kind: Kind,
    pub(super) bytes: u32,
}

/// A pack without the bytes of its pieces.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Pack {
    pub(super) sequence: u64,
    pub(super) next: u32,
    pub(super) stream: Stream,
    pub(super) entries: Vec<Entry>,
}

/// Bytes of a head.
fn head_bytes(runs: usize, entries: usize) -> usize {
    HEAD + runs * RUN + entries * ENTRY_BYTES as usize
}

/// Frames that a pack takes, if each of them is a separate run.
pub(super) fn frames_for(entries: usize, data: u64, size: u32) -> u32 {
    let fixed = head_bytes(0, entries) as u64 + data;
    // Each frame needs room for its run in the head.
    fixed.div_ceil(u64::from(size) - RUN as u64) as u32
}

impl Pack {
    /// Bytes of its head.
    pub(super) fn head_bytes(&self) -> u32 {
        head_bytes(self.stream.runs.len(), self.entries.len()) as u32
    }

    /// Where its head lies.
    pub(super) fn head_places(&self, size: u32) -> Vec<Place> {
        self.stream.places(0, self.head_bytes(), size)
    }

    /// Its entries, each with where its bytes lie.
    pub(super) fn places(&self, size: u32) -> impl Iterator<Item = (&Entry, Vec<Place>)> {
        let mut at = self.head_bytes();
        self.entries.iter().map(move |entry| {
            let places = self.stream.places(at, entry.bytes, size);
            at += entry.bytes;
            (entry, places)
        })
    }

    /// Its head as bytes.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.head_bytes() as usize);
        bytes.extend(MAGIC);
        bytes.extend([0; 4]);
        bytes.extend(self.sequence.to_le_bytes());
        bytes.extend(self.next.to_le_bytes());
        bytes.extend((self.stream.runs.len() as u32).to_le_bytes());
        bytes.extend((self.entries.len() as u32).to_le_bytes());
        bytes.extend([0; 4]);
        for (first, count) in &self.stream.runs {
            bytes.extend(first.to_le_bytes());
            bytes.extend(count.to_le_bytes());
        }
        for entry in &self.entries {
            bytes.extend(entry.lpid.to_le_bytes());
            let (kind, of) = match entry.kind {
                Kind::Base => (0, 0),
                Kind::Delta => (1, 0),
                Kind::Moved { ordinal, at } => (2, u32::from(ordinal) << 24 | at),
            };
            bytes.extend((kind << 24 | entry.bytes).to_le_bytes());
            bytes.extend(of.to_le_bytes());
        }
        let sum = crc32fast::hash(&bytes[8..]);
        bytes[4..8].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// The runs of the pack whose first frame this is, and the bytes of its head; `None` if it is not the pack of this number.
    pub(super) fn begin(first: &[u8], sequence: u64, frame: u32, area: &Area) -> Option<(Stream, usize)> {
        let is_it = first.len() >= HEAD && first[..4] == MAGIC && u64_at(first, 8)? == sequence;
        let (runs, entries) = (u32_at(first, 20)? as usize, u32_at(first, 24)? as usize);
        if !is_it || runs == 0 || runs > MOST_FRAMES as usize || entries > MOST_ENTRIES {
            return None;
        }
        let mut stream = Stream::default();
        for run in 0..runs {
            let (start, count) = (u32_at(first, HEAD + run * RUN)?, u32_at(first, HEAD + run * RUN + 4)?);
            let end = start.checked_add(count).filter(|end| count > 0 && *end <= area.frames())?;
            if (start + 1..end).any(|frame| !area.is_joined(frame)) {
                return None;
            }
            stream.runs.push((start, count));
        }
        let (len, frames) = (head_bytes(runs, entries), stream.frames().count());
        let is_right =
            stream.runs[0].0 == frame && frames <= MOST_FRAMES as usize && len <= frames * area.frame_bytes() as usize;
        is_right.then_some((stream, len))
    }

    /// The whole pack with this head; `None` if it is damaged.
    pub(super) fn decode(head: &[u8], stream: Stream, size: u32) -> Option<Pack> {
        if crc32fast::hash(head.get(8..)?) != u32_at(head, 4)? {
            return None;
        }
        let mut entries = Vec::new();
        for number in 0..u32_at(head, 24)? as usize {
            let at = head_bytes(stream.runs.len(), number);
            let (both, of) = (u32_at(head, at + 8)?, u32_at(head, at + 12)?);
            let kind = match both >> 24 {
                0 => Kind::Base,
                1 => Kind::Delta,
                2 => Kind::Moved { ordinal: (of >> 24) as u8, at: of & 0xff_ffff },
                _ => return None,
            };
            entries.push(Entry { lpid: u64_at(head, at)?, kind, bytes: both & 0xff_ffff });
        }
        let all = head.len() as u64 + entries.iter().map(|entry| u64::from(entry.bytes)).sum::<u64>();
        let fits = all <= stream.frames().count() as u64 * u64::from(size);
        fits.then_some(Pack { sequence: u64_at(head, 8)?, next: u32_at(head, 16)?, stream, entries })
    }
}

/// The number at a place, if it exists.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|chunk| u32::from_le_bytes(*chunk))
}

/// The same of 8 bytes.
pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|chunk| u64::from_le_bytes(*chunk))
}

#[cfg(test)]
mod tests {
    use nandscape_device_ftl_core::address::{Extent, UnitSize};

    use super::*;

    #[test]
    fn a_head_is_read_as_it_was_written_and_any_changed_byte_is_noticed() {
        let area = Area::new([Extent { start: 0, sectors: 800 }], UnitSize::of_bytes(4_096));
        let entries = vec![
            Entry { lpid: 5, kind: Kind::Base, bytes: 3_000 },
            Entry { lpid: 6, kind: Kind::Delta, bytes: 1 },
            Entry { lpid: u64::MAX, kind: Kind::Moved { ordinal: 31, at: 65_535 }, bytes: 700 },
        ];
        let stream = Stream::of(&[7, 3, 4], &area);
        let pack = Pack { sequence: 9, next: 50, stream, entries };
        let head = pack.encode();
        assert_eq!(head.len() as u32, pack.head_bytes());
        let read = |bytes: &[u8], sequence, frame| {
            let (stream, len) = Pack::begin(bytes, sequence, frame, &area)?;
            Pack::decode(bytes.get(..len)?, stream, 4_096)
        };
        assert_eq!(read(&head, 9, 7), Some(pack.clone()));
        assert_eq!((read(&head, 8, 7), read(&head, 9, 3)), (None, None));
        for at in 0..head.len() {
            let mut torn = head.clone();
            torn[at] ^= 0x11;
            assert_ne!(read(&torn, 9, 7), Some(pack.clone()), "byte {at}");
            assert_eq!(read(&torn[..at], 9, 7), None, "cut at {at}");
        }
        let places: Vec<_> = pack.places(4_096).map(|(_, places)| places).collect();
        assert_eq!(places[0], [Place { frame: 7, offset: 96, bytes: 3_000 }]);
        assert_eq!(places[2], [Place { frame: 7, offset: 3_097, bytes: 700 }]);
    }

    #[test]
    fn a_pack_of_frames_that_all_lie_apart_has_room_for_what_it_was_planned_for() {
        for data in (0..1_000_000).step_by(977) {
            for entries in [1, 40, 900] {
                let frames = frames_for(entries, data, 4_096);
                let all = head_bytes(frames as usize, entries) as u64 + data;
                assert!(all <= u64::from(frames) * 4_096, "{data} {entries}");
            }
        }
        assert!(head_bytes(MOST_FRAMES as usize, 0) <= 4_096);
    }
}
