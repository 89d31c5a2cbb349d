//! The on-drive format: the first block of a store, the first block of a segment, and records.
//!
//! All numbers are little-endian, and every structure ends in a CRC-32. Records begin at logical blocks, so that each
//! value can be read separately.

/// "NKVSTORE".
const STORE_MAGIC: u64 = u64::from_le_bytes(*b"NKVSTORE");
/// "NKVSEGMT".
const SEGMENT_MAGIC: u64 = u64::from_le_bytes(*b"NKVSEGMT");
/// "NKVR".
const RECORD_MAGIC: u32 = u32::from_le_bytes(*b"NKVR");
/// The version of the format.
const VERSION: u32 = 1;
/// Bytes of a record before its key: magic (3:0), version (7:4), CRC (11:8), bytes of the key (15:12) and of the value (19:16),
/// zero (23:20), sequence number of the segment (31:24), version of the put (39:32).
pub(super) const RECORD_HEADER: usize = 40;

/// The first block of a store.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Superblock {
    /// Bytes of a logical block.
    pub(super) lba_bytes: u32,
    /// Logical blocks of a segment.
    pub(super) segment_blocks: u32,
    /// Segments.
    pub(super) segments: u32,
    /// Distinguishes this store from earlier ones at the same place.
    pub(super) id: u64,
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// A block that begins with `fields` and their CRC.
fn sealed(mut fields: Vec<u8>, block: usize) -> Vec<u8> {
    fields.extend_from_slice(&crc32fast::hash(&fields).to_le_bytes());
    fields.resize(block, 0);
    fields
}

/// Whether the first `len` bytes are followed by their CRC.
fn is_sealed(block: &[u8], len: usize) -> bool {
    block.get(..len).is_some_and(|fields| crc32fast::hash(fields) == u32_at(block, len))
}

impl Superblock {
    pub(super) fn to_block(self) -> Vec<u8> {
        let mut fields = STORE_MAGIC.to_le_bytes().to_vec();
        [VERSION, self.lba_bytes, self.segment_blocks, self.segments]
            .iter()
            .for_each(|field| fields.extend_from_slice(&field.to_le_bytes()));
        fields.extend_from_slice(&self.id.to_le_bytes());
        sealed(fields, self.lba_bytes as usize)
    }

    /// The store that begins with this block, if one does.
    pub(super) fn of(block: &[u8]) -> Option<Superblock> {
        let is_one = u64_at(block, 0) == STORE_MAGIC && u32_at(block, 8) == VERSION && is_sealed(block, 32);
        is_one.then(|| Superblock {
            lba_bytes: u32_at(block, 12),
            segment_blocks: u32_at(block, 16),
            segments: u32_at(block, 20),
            id: u64_at(block, 24),
        })
    }
}

/// The first block of a segment of a store.
pub(super) fn segment_block(store: u64, sequence: u64, lba_bytes: u32) -> Vec<u8> {
    let mut fields = SEGMENT_MAGIC.to_le_bytes().to_vec();
    fields.extend_from_slice(&store.to_le_bytes());
    fields.extend_from_slice(&sequence.to_le_bytes());
    sealed(fields, lba_bytes as usize)
}

/// The sequence number of the segment of a store that begins with this block, if one does.
pub(super) fn segment_of(block: &[u8], store: u64) -> Option<u64> {
    let is_one = u64_at(block, 0) == SEGMENT_MAGIC && u64_at(block, 8) == store && is_sealed(block, 24);
    is_one.then(|| u64_at(block, 16))
}

/// The sequence number of the segment that a record claims to be of, if these bytes may begin one.
pub(super) fn record_segment(bytes: &[u8]) -> Option<u64> {
    (u32_at(bytes, 0) == RECORD_MAGIC).then(|| u64_at(bytes, 24))
}

/// Bytes of a record, without the padding of its last block.
pub(super) fn record_bytes(key: usize, value: usize) -> usize {
    RECORD_HEADER + key + value
}

/// A record in bytes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Record<'a> {
    /// The version of the put.
    pub(super) version: u64,
    pub(super) key: &'a [u8],
    pub(super) value: &'a [u8],
}

impl<'a> Record<'a> {
    /// Appends it, as a record of the segment with this number, and fills its last block.
    pub(super) fn append(&self, segment: u64, lba_bytes: u32, to: &mut Vec<u8>) {
        let start = to.len();
        to.extend_from_slice(&RECORD_MAGIC.to_le_bytes());
        [VERSION, 0, self.key.len() as u32, self.value.len() as u32, 0]
            .iter()
            .for_each(|field| to.extend_from_slice(&field.to_le_bytes()));
        to.extend_from_slice(&segment.to_le_bytes());
        to.extend_from_slice(&self.version.to_le_bytes());
        to.extend_from_slice(self.key);
        to.extend_from_slice(self.value);
        let crc = crc32fast::hash(&to[start..]);
        to[start + 8..start + 12].copy_from_slice(&crc.to_le_bytes());
        to.resize(start + (to.len() - start).next_multiple_of(lba_bytes as usize), 0);
    }

    /// The record of segment `segment` at the start of these bytes. `None` for a torn record, or one left from an
    /// earlier use of the place.
    pub(super) fn parse(bytes: &'a [u8], segment: u64) -> Option<Record<'a>> {
        let header = bytes.get(..RECORD_HEADER)?;
        if u32_at(header, 0) != RECORD_MAGIC || u32_at(header, 4) != VERSION || u64_at(header, 24) != segment {
            return None;
        }
        let (key, value) = (u32_at(header, 12) as usize, u32_at(header, 16) as usize);
        let end = RECORD_HEADER.checked_add(key)?.checked_add(value)?;
        let body = bytes.get(RECORD_HEADER..end)?;
        let mut crc = crc32fast::Hasher::new();
        crc.update(&header[..8]);
        crc.update(&[0; 4]);
        crc.update(&header[12..]);
        crc.update(body);
        if crc.finalize() != u32_at(header, 8) {
            return None;
        }
        let (key, value) = body.split_at(key);
        Some(Record { version: u64_at(header, 32), key, value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_read_again_and_any_changed_byte_is_noticed() {
        let store = Superblock { lba_bytes: 512, segment_blocks: 2_048, segments: 9, id: 77 };
        let block = store.to_block();
        assert_eq!((block.len(), Superblock::of(&block)), (512, Some(store)));
        let segment = segment_block(77, 5, 512);
        assert_eq!((segment_of(&segment, 77), segment_of(&segment, 78)), (Some(5), None));
        let record = Record { version: 3, key: b"key", value: &[9; 600] };
        let mut bytes = Vec::new();
        record.append(5, 512, &mut bytes);
        assert_eq!((bytes.len(), Record::parse(&bytes, 5), Record::parse(&bytes, 4)), (1_024, Some(record), None));
        for place in 0..record_bytes(3, 600) {
            let mut torn = bytes.clone();
            torn[place] ^= 0x40;
            assert_eq!(Record::parse(&torn, 5), None, "byte {place}");
            assert_eq!(Record::parse(&bytes[..place], 5), None, "cut at {place}");
        }
        for place in 0..36 {
            let mut torn = block.clone();
            torn[place] ^= 1;
            assert_eq!(Superblock::of(&torn), None, "byte {place}");
        }
    }
}
