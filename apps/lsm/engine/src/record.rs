//! Keys and values as bytes. All numbers are little-endian.
//!
//! A record is the length of the key (2) and of the value (4, all ones for a deletion), and both. A block of a run begins with a
//! CRC-32 of all of it (3:0) and the number of its records (7:4); the records follow, and the rest is zeros.

use std::rc::Rc;

use nandscape_apps_store::bytes::{Put, Reader, is_sealed, seal};

use crate::storage::BLOCK;

/// Bytes of a key or a value.
pub(crate) type Bytes = Rc<[u8]>;
/// A key and its value; `None` for a deletion.
pub(crate) type Record = (Bytes, Option<Bytes>);

/// Bytes of a block before its records.
pub(crate) const HEAD: usize = 8;
/// Bytes of a record in addition to key and value.
pub(crate) const RECORD: usize = 6;
/// Bytes of the longest key.
pub const MAX_KEY: usize = 1_024;
/// Bytes of a key and its value together: a record is within a block.
pub const MAX_RECORD: usize = BLOCK - HEAD - RECORD;

const NO_VALUE: u32 = u32::MAX;

/// Bytes of a record.
pub(crate) fn length(key: &[u8], value: Option<&[u8]>) -> usize {
    RECORD + key.len() + value.map_or(0, <[u8]>::len)
}

/// Appends a record.
pub(crate) fn put(to: &mut Vec<u8>, key: &[u8], value: Option<&[u8]>) {
    to.u16(key.len() as u16);
    to.u32(value.map_or(NO_VALUE, |value| value.len() as u32));
    to.extend_from_slice(key);
    to.extend_from_slice(value.unwrap_or_default());
}

/// The next record.
pub(crate) fn take(from: &mut Reader<'_>) -> Option<Record> {
    let (key, value) = (from.u16()?, from.u32()?);
    let key = Rc::from(from.take(key.into())?);
    let value = match value {
        NO_VALUE => None,
        len => Some(Rc::from(from.take(len as usize)?)),
    };
    Some((key, value))
}

/// Completes a block, which has room for its head.
pub(crate) fn close(block: &mut Vec<u8>, records: u32) {
    block.resize(BLOCK, 0);
    block[4..HEAD].copy_from_slice(&records.to_le_bytes());
    seal(block, 0);
}

/// The records of a block; `None` if its content differs from the written one.
pub(crate) fn open(block: &[u8]) -> Option<Vec<Record>> {
    if block.len() != BLOCK || !is_sealed(block, 0) {
        return None;
    }
    let mut reader = Reader(&block[4..]);
    let count = reader.u32()?;
    (0..count).map(|_| take(&mut reader)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_read_again_and_any_changed_byte_is_noticed() {
        let mut block = vec![0; HEAD];
        put(&mut block, b"a", Some(b"1"));
        put(&mut block, b"b", None);
        put(&mut block, b"cc", Some(b""));
        close(&mut block, 3);
        let right: Vec<Record> = vec![
            (Rc::from(*b"a"), Some(Rc::from(*b"1"))),
            (Rc::from(*b"b"), None),
            (Rc::from(*b"cc"), Some(Rc::from(*b""))),
        ];
        assert_eq!(open(&block), Some(right));
        for at in 0..BLOCK {
            block[at] ^= 4;
            assert_eq!(open(&block), None, "byte {at}");
            block[at] ^= 4;
        }
        assert_eq!(open(&block[1..]), None);
        assert_eq!(open(&[0; BLOCK]), None, "a block that was never written");
    }
}
