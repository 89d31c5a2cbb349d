//! Index and filter of a run as bytes.
//!
//! After the blocks of records follow the first key of each block and the last key of all, each with its length (2),
//! and the filter with its length (4), padded to a block. The last block is "LSMR" (3:0), a CRC-32 of the block
//! (7:4), the number of blocks of records (11:8), the bytes before the padding (15:12), a CRC-32 of these bytes
//! (19:16), and zeros.

use std::rc::Rc;

use nandscape_apps_store::bytes::{Put, Reader, is_sealed, seal};

use crate::bloom::Bloom;
use crate::record::Bytes;
use crate::storage::BLOCK;

const MAGIC: u32 = u32::from_le_bytes(*b"LSMR");
const CRC: usize = 4;

/// The last block.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Footer {
    pub(super) data_blocks: u32,
    bytes: u32,
    crc: u32,
}

impl Footer {
    pub(super) fn of(block: &[u8]) -> Option<Footer> {
        let mut reader = Reader(block);
        let is_right = reader.u32()? == MAGIC && is_sealed(block, CRC);
        let (_, data_blocks, bytes, crc) = (reader.u32()?, reader.u32()?, reader.u32()?, reader.u32()?);
        (is_right && data_blocks > 0).then_some(Footer { data_blocks, bytes, crc })
    }
}

/// A checksum of whole bytes, in the same way as [`seal`].
fn checksum(bytes: &[u8]) -> u32 {
    let mut sealed = vec![0; 4];
    sealed.extend_from_slice(bytes);
    seal(&mut sealed, 0);
    u32::from_le_bytes([sealed[0], sealed[1], sealed[2], sealed[3]])
}

/// Blocks of index and filter, and the last block.
pub(super) fn encode(first: &[Bytes], last: &[u8], filter: &Bloom) -> Vec<u8> {
    let mut bytes = Vec::new();
    for key in first.iter().map(|key| &**key).chain([last]) {
        bytes.u16(key.len() as u16);
        bytes.extend_from_slice(key);
    }
    bytes.u32(filter.bytes().len() as u32);
    bytes.extend_from_slice(filter.bytes());
    let (len, crc) = (bytes.len() as u32, checksum(&bytes));
    bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
    let at = bytes.len();
    bytes.u32(MAGIC);
    bytes.u32(0);
    bytes.u32(first.len() as u32);
    bytes.u32(len);
    bytes.u32(crc);
    bytes.resize(at + BLOCK, 0);
    seal(&mut bytes[at..], CRC);
    bytes
}

/// Index, last key and filter; `None` if their content differs from the written one.
pub(super) fn decode(footer: &Footer, bytes: &[u8]) -> Option<(Vec<Bytes>, Bytes, Bloom)> {
    let bytes = bytes.get(..footer.bytes as usize).filter(|bytes| checksum(bytes) == footer.crc)?;
    let mut reader = Reader(bytes);
    let mut key = || -> Option<Bytes> {
        let len = reader.u16()?;
        reader.take(len.into()).map(Rc::from)
    };
    let first: Vec<Bytes> = (0..footer.data_blocks).map(|_| key()).collect::<Option<_>>()?;
    let last = key()?;
    let filter = reader.u32()?;
    Some((first, last, Bloom::read(reader.take(filter as usize)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_and_filter_are_read_again_and_changes_are_noticed() {
        let first: Vec<Bytes> = (0..900u32).map(|number| Rc::from(number.to_be_bytes())).collect();
        let filter = Bloom::of(&[1, 2, 3], 10);
        let bytes = encode(&first, b"zz", &filter);
        let (index, last) = bytes.split_at(bytes.len() - BLOCK);
        let footer = Footer::of(last).unwrap();
        assert_eq!(footer.data_blocks, 900);
        assert_eq!(decode(&footer, index), Some((first, Rc::from(*b"zz"), filter)));
        for at in (0..footer.bytes as usize).step_by(61) {
            let mut torn = index.to_vec();
            torn[at] ^= 1;
            assert_eq!(decode(&footer, &torn), None, "byte {at}");
        }
        for at in 0..BLOCK {
            let mut torn = last.to_vec();
            torn[at] ^= 1;
            assert_eq!(Footer::of(&torn), None, "byte {at}");
        }
    }
}
