//! A checkpoint of the table as bytes, and the root, which holds its place and the place where the log of heads
//! continues.
//!
//! All numbers are little-endian. The root is the first frame: "LSSR" (3:0), a CRC-32 of the rest (7:4), bytes of a frame (11:8), the
//! frame in which the next pack begins (15:12) and that pack's number (23:16), the first frame of the checkpoint (27:24), a CRC-32 of
//! it (31:28) and its bytes (39:32). A frame of the checkpoint begins with the next one (4). The checkpoint has for each page its
//! number (8) and its pieces (1), of each piece its bytes (4) and its places (2), and of each place its frame, offset and bytes (4
//! each). A frame of zeros says that nothing was written since the format.

use super::area::{Area, Place};
use super::pack::{u32_at, u64_at};
use super::state::State;
use super::table::{Piece, Table};
use super::{MOST_PAGE_BYTES, MOST_PIECES};

const MAGIC: [u8; 4] = *b"LSSR";
/// Bytes of the root.
const ROOT_BYTES: usize = 40;
/// Bytes of a frame of a checkpoint that hold no data of it.
pub(super) const LINK: usize = 4;
/// The frame of the root, and the one in which the first pack begins.
pub(super) const ROOT: u32 = 0;
const FIRST: u32 = 1;

/// See the module.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Root {
    pub(super) next: u32,
    pub(super) sequence: u64,
    pub(super) first: u32,
    pub(super) sum: u32,
    pub(super) bytes: u64,
}

impl Root {
    /// The first one of a namespace.
    pub(super) const NEW: Root = Root { next: FIRST, sequence: 1, first: 0, sum: 0, bytes: 0 };

    pub(super) fn encode(&self, area: &Area) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(ROOT_BYTES);
        bytes.extend(MAGIC);
        bytes.extend([0; 4]);
        bytes.extend(area.frame_bytes().to_le_bytes());
        bytes.extend(self.next.to_le_bytes());
        bytes.extend(self.sequence.to_le_bytes());
        bytes.extend(self.first.to_le_bytes());
        bytes.extend(self.sum.to_le_bytes());
        bytes.extend(self.bytes.to_le_bytes());
        let sum = crc32fast::hash(&bytes[8..]);
        bytes[4..8].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Whether nothing was written since the format.
    pub(super) fn is_new(frame: &[u8]) -> bool {
        frame.iter().all(|byte| *byte == 0)
    }

    /// The root in the first frame; `None` if that is damaged.
    pub(super) fn decode(frame: &[u8], area: &Area) -> Option<Root> {
        let body = frame.get(8..ROOT_BYTES)?;
        let is_one = frame[..4] == MAGIC && u32_at(frame, 4)? == crc32fast::hash(body);
        let root = Root {
            next: u32_at(frame, 12)?,
            sequence: u64_at(frame, 16)?,
            first: u32_at(frame, 24)?,
            sum: u32_at(frame, 28)?,
            bytes: u64_at(frame, 32)?,
        };
        let is_frame = |frame: u32| frame > ROOT && frame < area.frames();
        let fits = root.bytes == 0
            || is_frame(root.first) && root.bytes / u64::from(area.frame_bytes()) < area.frames().into();
        (is_one && u32_at(frame, 8)? == area.frame_bytes() && is_frame(root.next) && fits).then_some(root)
    }
}

/// The table as bytes.
pub(super) fn encode(table: &Table) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (lpid, pieces) in table.pages() {
        bytes.extend(lpid.to_le_bytes());
        bytes.push(pieces.len() as u8);
        for piece in pieces {
            bytes.extend(piece.bytes.to_le_bytes());
            bytes.extend((piece.places.len() as u16).to_le_bytes());
            for Place { frame, offset, bytes: len } in &piece.places {
                [frame, offset, len].iter().for_each(|number| bytes.extend(number.to_le_bytes()));
            }
        }
    }
    bytes
}

/// Puts the table of a checkpoint into an empty state; `None` if it contradicts itself.
pub(super) fn decode(mut bytes: &[u8], state: &mut State) -> Option<()> {
    while !bytes.is_empty() {
        let (lpid, count) = (u64_at(bytes, 0)?, usize::from(*bytes.get(8)?));
        bytes = &bytes[9..];
        let mut pieces = Vec::new();
        for _ in 0..count {
            let len = u32_at(bytes, 0)?;
            let places = u16::from_le_bytes(*bytes.get(4..)?.first_chunk()?);
            bytes = &bytes[6..];
            pieces.push(Piece { bytes: len, places: take_places(&mut bytes, places, len, state)? });
        }
        let all: u64 = pieces.iter().map(|piece| u64::from(piece.bytes)).sum();
        let is_right = (1..=MOST_PIECES).contains(&count) && all <= MOST_PAGE_BYTES.into();
        if !is_right || !state.table.page(lpid).is_empty() {
            return None;
        }
        state.table.load(lpid, pieces, &mut state.frames);
    }
    Some(())
}

fn take_places(bytes: &mut &[u8], count: u16, len: u32, state: &State) -> Option<Vec<Place>> {
    let (mut places, mut sum) = (Vec::new(), 0u64);
    for _ in 0..count {
        let place = Place { frame: u32_at(bytes, 0)?, offset: u32_at(bytes, 4)?, bytes: u32_at(bytes, 8)? };
        *bytes = &bytes[12..];
        sum += u64::from(place.bytes);
        places.push(Some(place).filter(|place| state.frames.has(*place))?);
    }
    (sum == u64::from(len)).then_some(places)
}

#[cfg(test)]
mod tests {
    use nandscape_device_ftl_core::address::{Extent, UnitSize};

    use super::*;

    fn area() -> Area {
        Area::new([Extent { start: 0, sectors: 1_600 }], UnitSize::of_bytes(4_096))
    }

    #[test]
    fn a_root_is_read_as_it_was_written_and_any_changed_byte_is_noticed() {
        let root = Root { next: 7, sequence: 1 << 40, first: 3, sum: 0xdead_beef, bytes: 5_000 };
        let mut frame = root.encode(&area());
        frame.resize(4_096, 0);
        assert_eq!(Root::decode(&frame, &area()), Some(root));
        assert_eq!(Root::decode(&Root::NEW.encode(&area()), &area()), Some(Root::NEW));
        assert_eq!(Root::decode(&[0; 4_096], &area()), None);
        assert!(Root::is_new(&[0; 4_096]) && !Root::is_new(&frame));
        for at in 0..ROOT_BYTES {
            let mut torn = frame.clone();
            torn[at] ^= 0x40;
            assert_eq!(Root::decode(&torn, &area()), None, "byte {at}");
        }
        assert_eq!(Root::decode(&Root { next: 200, ..root }.encode(&area()), &area()), None, "beyond the namespace");
    }

    #[test]
    fn a_table_is_read_as_it_was_written_and_one_that_is_cut_off_is_refused() {
        let (area, place) = (area(), |frame, offset, bytes| Place { frame, offset, bytes });
        let mut state = State::new(&area);
        let both = Piece { bytes: 5_007, places: vec![place(9, 0, 5_000), place(70, 4_000, 7)] };
        state.table.load(3, vec![both, Piece { bytes: 2, places: vec![place(9, 5_00, 2)] }], &mut state.frames);
        state.table.load(1 << 50, vec![Piece { bytes: 1, places: vec![place(12, 0, 1)] }], &mut state.frames);
        let bytes = encode(&state.table);
        let mut again = State::new(&area);
        decode(&bytes, &mut again).unwrap();
        assert_eq!(again.table.pages().collect::<Vec<_>>(), state.table.pages().collect::<Vec<_>>());
        for at in 1..bytes.len() {
            let is_between = at == bytes.len() - 27;
            assert_eq!(decode(&bytes[..at], &mut State::new(&area)).is_some(), is_between, "cut at {at}");
        }
        assert_eq!(decode(&[&bytes[..], &bytes[..]].concat(), &mut State::new(&area)), None, "a page twice");
    }
}
