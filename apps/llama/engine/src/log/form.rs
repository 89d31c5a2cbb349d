//! The on-drive format. All numbers are little-endian, and everything has a CRC-32.
//!
//! | what | where | bytes |
//! |---|---|---|
//! | superblock | at the beginning | "LLAMALOG" (8), version 1 (4), block (4), segment (4), segments (4), checkpoint (8), page (4), CRC (4), identity (8) |
//! | two checkpoints | from [`ALIGN`] on | "LLAMACKP" (8), identity (8), number (8), epoch (8), next frame (8), next piece (8), open segment (4), its bytes (4), pages (8), bytes (8), CRC (4), zero (4); for each page its number (8), pieces (4) and for each piece segment, offset, bytes (4 each) and number (8) |
//! | segments | behind them | frames, each from a multiple of [`ALIGN`] on |
//! | frame | | "LLAMAFRM" (8), identity (8), epoch (8), number (8), entries (4), bytes (4), CRC (4), zero (4); for each entry page (8), number of the piece (8), offset in the frame (4), bytes (4), kind (1: base, delta, moved), zero (7); the pieces |

use nandscape_apps_store::bytes::{Put, Reader, is_sealed, seal};

use super::MOST_PIECES;
use super::state::{Item, Place, Says, State};

const STORE: u64 = u64::from_le_bytes(*b"LLAMALOG");
const CHECKPOINT: u64 = u64::from_le_bytes(*b"LLAMACKP");
const FRAME_MAGIC: u64 = u64::from_le_bytes(*b"LLAMAFRM");
const VERSION: u32 = 1;
/// The alignment of all structures.
pub(super) const ALIGN: u64 = 4_096;
/// Bytes of a frame without entries and pieces, and of an entry.
pub(super) const FRAME: usize = 48;
pub(super) const ENTRY: usize = 32;
/// Bytes of a checkpoint without its pages.
pub(super) const CHECKPOINT_HEAD: usize = 80;
/// The most bytes of a page in a checkpoint.
const MOST_PAGE: u64 = 12 + 20 * MOST_PIECES as u64;

/// The most bytes that a checkpoint of `pages` pages takes.
pub(super) fn checkpoint_bytes(pages: u64) -> u64 {
    CHECKPOINT_HEAD as u64 + pages * MOST_PAGE
}

/// The layout of the log.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Layout {
    pub(super) lba_bytes: u32,
    pub(super) segment_bytes: u32,
    pub(super) segments: u32,
    pub(super) checkpoint_bytes: u64,
    pub(super) page_bytes: u32,
    pub(super) id: u64,
}

impl Layout {
    /// The beginning of a place for checkpoints.
    pub(super) fn checkpoint_start(&self, which: u64) -> u64 {
        ALIGN + which * self.checkpoint_bytes
    }

    /// The beginning of a segment.
    pub(super) fn segment_start(&self, segment: u32) -> u64 {
        self.checkpoint_start(2) + u64::from(segment) * u64::from(self.segment_bytes)
    }

    /// Pages that a checkpoint has room for.
    pub(super) fn pages(&self) -> u64 {
        (self.checkpoint_bytes - CHECKPOINT_HEAD as u64) / MOST_PAGE
    }

    /// Bytes that current pieces may take.
    pub(super) fn live_limit(&self) -> u64 {
        let segments = u64::from(self.segments).saturating_sub(super::LOW as u64 + 2);
        segments * u64::from(self.segment_bytes) * super::LIVE_PERCENT / 100
    }

    pub(super) fn to_block(self) -> Vec<u8> {
        let mut block = Vec::new();
        block.u64(STORE);
        [VERSION, self.lba_bytes, self.segment_bytes, self.segments].iter().for_each(|field| block.u32(*field));
        block.u64(self.checkpoint_bytes);
        block.u32(self.page_bytes);
        block.u32(0);
        block.u64(self.id);
        seal(&mut block, 36);
        block.resize(ALIGN as usize, 0);
        block
    }

    /// The log that begins with this block, if one does.
    pub(super) fn of(block: &[u8]) -> Option<Layout> {
        let fields = block.get(..48).filter(|fields| is_sealed(fields, 36))?;
        let mut reader = Reader(fields);
        let is_one = reader.u64()? == STORE && reader.u32()? == VERSION;
        let (lba_bytes, segment_bytes, segments) = (reader.u32()?, reader.u32()?, reader.u32()?);
        let (checkpoint_bytes, page_bytes, _, id) = (reader.u64()?, reader.u32()?, reader.u32()?, reader.u64()?);
        is_one.then_some(Layout { lba_bytes, segment_bytes, segments, checkpoint_bytes, page_bytes, id })
    }
}

/// Which frame of which log.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct FrameId {
    pub(super) id: u64,
    pub(super) epoch: u64,
    pub(super) number: u64,
}

/// Bytes of a frame, without the padding of its last block.
pub(super) fn frame_bytes(items: &[Item]) -> usize {
    FRAME + items.iter().map(|item| ENTRY + item.bytes.len()).sum::<usize>()
}

/// A frame, and where each piece begins in it.
pub(super) fn frame(frame: FrameId, items: &[Item]) -> (Vec<u8>, Vec<u32>) {
    let total = frame_bytes(items);
    let mut bytes = Vec::with_capacity(total.next_multiple_of(ALIGN as usize));
    [FRAME_MAGIC, frame.id, frame.epoch, frame.number].iter().for_each(|field| bytes.u64(*field));
    bytes.u32(items.len() as u32);
    bytes.u32(total as u32);
    bytes.u64(0);
    let (mut offset, mut offsets) = (FRAME + items.len() * ENTRY, Vec::with_capacity(items.len()));
    for item in items {
        bytes.u64(item.lpid);
        bytes.u64(item.serial);
        bytes.u32(offset as u32);
        bytes.u32(item.bytes.len() as u32);
        bytes.u64(match item.says {
            Says::Base => 0,
            Says::Delta => 1,
            Says::Moved => 2,
        });
        offsets.push(offset as u32);
        offset += item.bytes.len();
    }
    items.iter().for_each(|item| bytes.extend_from_slice(&item.bytes));
    seal(&mut bytes, 40);
    bytes.resize(total.next_multiple_of(ALIGN as usize), 0);
    (bytes, offsets)
}

/// The frame that these bytes would begin, unchecked, and its bytes.
pub(super) fn frame_head(bytes: &[u8]) -> Option<(FrameId, usize)> {
    let mut reader = Reader(bytes);
    let is_one = reader.u64()? == FRAME_MAGIC;
    let (id, epoch, number) = (reader.u64()?, reader.u64()?, reader.u64()?);
    let (_, total) = (reader.u32()?, reader.u32()? as usize);
    is_one.then_some((FrameId { id, epoch, number }, total))
}

/// A page's number, its piece, and the beginning of the piece in the frame.
pub(super) type Entry = (u64, Says, Place);

/// The entries of the frame at this place of a segment, if it is whole.
pub(super) fn entries(bytes: &[u8], segment: u32, at: u32) -> Option<Vec<Entry>> {
    let (_, total) = frame_head(bytes)?;
    let bytes = bytes.get(..total).filter(|bytes| total >= FRAME && is_sealed(bytes, 40))?;
    let mut reader = Reader(&bytes[32..]);
    let count = reader.u32()?;
    reader.take(12)?;
    let mut entries = Vec::new();
    for _ in 0..count {
        let (lpid, serial, offset, len) = (reader.u64()?, reader.u64()?, reader.u32()?, reader.u32()?);
        let says = match reader.u64()? {
            0 => Says::Base,
            1 => Says::Delta,
            2 => Says::Moved,
            _ => return None,
        };
        let is_inside = offset as usize >= FRAME && offset.checked_add(len)? as usize <= total;
        let place = Place { segment, offset: at.checked_add(offset)?, bytes: len, serial };
        entries.push(is_inside.then_some((lpid, says, place))?);
    }
    Some(entries)
}

/// A checkpoint of the state.
pub(super) fn checkpoint(id: u64, state: &State) -> Vec<u8> {
    let (segment, used) = state.head.unwrap_or((u32::MAX, 0));
    let mut bytes = Vec::new();
    [CHECKPOINT, id, state.next_checkpoint, state.epoch, state.next_frame, state.next_serial]
        .iter()
        .for_each(|field| bytes.u64(*field));
    bytes.u32(segment);
    bytes.u32(used);
    bytes.extend_from_slice(&[0; 24]);
    let mut pages = 0;
    for (lpid, chain) in state.chains() {
        bytes.u64(lpid);
        bytes.u32(chain.len() as u32);
        for Place { segment, offset, bytes: len, serial } in chain {
            [*segment, *offset, *len].iter().for_each(|field| bytes.u32(*field));
            bytes.u64(*serial);
        }
        pages += 1;
    }
    let total = bytes.len() as u64;
    bytes[56..64].copy_from_slice(&u64::to_le_bytes(pages));
    bytes[64..72].copy_from_slice(&total.to_le_bytes());
    seal(&mut bytes, 72);
    bytes.resize(bytes.len().next_multiple_of(ALIGN as usize), 0);
    bytes
}

/// The number and the bytes of the checkpoint that these bytes would begin, unchecked.
pub(super) fn checkpoint_head(bytes: &[u8], id: u64) -> Option<(u64, u64)> {
    let mut reader = Reader(bytes);
    let is_one = reader.u64()? == CHECKPOINT && reader.u64()? == id;
    let number = reader.u64()?;
    reader.take(40)?;
    let total = reader.u64()?;
    is_one.then_some((number, total))
}

/// The state that a checkpoint has, if it is whole; `segments` is their number.
pub(super) fn restore(bytes: &[u8], segments: u32) -> Option<State> {
    let total = checkpoint_head(bytes, u64::from_le_bytes(*bytes.get(8..16)?.first_chunk()?))?.1 as usize;
    let bytes = bytes.get(..total).filter(|bytes| total >= CHECKPOINT_HEAD && is_sealed(bytes, 72))?;
    let mut reader = Reader(&bytes[16..]);
    let mut state = State::new(segments);
    state.next_checkpoint = reader.u64()? + 1;
    (state.epoch, state.next_frame) = (reader.u64()?, reader.u64()?);
    let next_serial = reader.u64()?;
    state.head = Some((reader.u32()?, reader.u32()?)).filter(|(segment, _)| *segment < segments);
    let pages = reader.u64()?;
    reader.take(16)?;
    for _ in 0..pages {
        let (lpid, pieces) = (reader.u64()?, reader.u32()?);
        for number in 0..pieces {
            let (segment, offset, len) = (reader.u32()?, reader.u32()?, reader.u32()?);
            let place = Place { segment, offset, bytes: len, serial: reader.u64()? };
            let says = if number == 0 { Says::Base } else { Says::Delta };
            state.add(lpid, says, (segment < segments).then_some(place)?);
        }
    }
    state.next_serial = next_serial;
    Some(state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_forms_are_read_again_and_any_changed_byte_is_noticed() {
        let layout = Layout {
            lba_bytes: 512,
            segment_bytes: 1 << 20,
            segments: 9,
            checkpoint_bytes: 1 << 16,
            page_bytes: 4_096,
            id: 5,
        };
        let block = layout.to_block();
        assert_eq!(Layout::of(&block), Some(layout));
        for at in 0..48 {
            let mut torn = block.clone();
            torn[at] ^= 1;
            assert_eq!(Layout::of(&torn), None, "byte {at}");
        }
        let items = [
            Item { lpid: 7, says: Says::Base, serial: 3, bytes: vec![1; 50] },
            Item { lpid: 9, says: Says::Moved, serial: 2, bytes: vec![2; 5_000] },
        ];
        let id = FrameId { id: 5, epoch: 2, number: 40 };
        let (bytes, offsets) = frame(id, &items);
        assert_eq!((bytes.len(), frame_head(&bytes)), (8_192, Some((id, 48 + 64 + 5_050))));
        let found = entries(&bytes, 3, 4_096).unwrap();
        let place = |at: usize| Place {
            segment: 3,
            offset: 4_096 + offsets[at],
            bytes: items[at].bytes.len() as u32,
            serial: items[at].serial,
        };
        assert_eq!(found, [(7, Says::Base, place(0)), (9, Says::Moved, place(1))]);
        for at in (0..48 + 64 + 5_050).step_by(3) {
            let mut torn = bytes.clone();
            torn[at] ^= 1;
            assert_eq!(entries(&torn, 3, 0), None, "byte {at}");
        }
        let mut state = State::new(9);
        state.add(7, Says::Base, place(0));
        state.add(7, Says::Delta, Place { serial: 4, ..place(1) });
        (state.head, state.next_frame, state.epoch, state.next_checkpoint) = (Some((3, 8_192)), 41, 2, 6);
        let bytes = checkpoint(5, &state);
        assert_eq!((checkpoint_head(&bytes, 5), checkpoint_head(&bytes, 6)), (Some((6, 132)), None));
        let found = restore(&bytes, 9).unwrap();
        assert_eq!((found.chain(7), found.head, found.next_checkpoint), (state.chain(7), state.head, 7));
        assert_eq!((found.next_frame, found.epoch, found.live_bytes()), (41, 2, 5_050));
        for at in 0..132 {
            let mut torn = bytes.clone();
            torn[at] ^= 1;
            assert!(restore(&torn, 9).is_none(), "byte {at}");
        }
    }
}
