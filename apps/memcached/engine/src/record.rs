//! Records and chunks, as bytes on drives.
//!
//! A chunk is what one write of the log appends: a header with a checksum of all of it, then records. It is whole or it is not there. A
//! record has its own checksum, so that one item can be read without the rest of its chunk.

use nandscape_apps_store::bytes::{Put as _, Reader, is_sealed, seal};

use crate::item::Marks;

/// Bytes before the key of a record.
pub(crate) const RECORD_HEADER: usize = 36;
/// Bytes before the first record of a chunk.
pub(crate) const CHUNK_HEADER: usize = 56;
/// The first bytes of a chunk, and of the parity of chunks.
const MAGIC: u32 = 0x4b43_4e45;
const PARITY_MAGIC: u32 = 0x5043_4e45;
/// Where the checksums are.
const RECORD_CRC: usize = 0;
const CHUNK_CRC: usize = 4;
/// The bits of the marks of an item.
const STALE: u16 = 1;
const WON: u16 = 2;

/// What a record says of its key.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// An item.
    Put,
    /// Items of this key and of older versions than the record's are gone.
    Delete,
    /// The item of this key and version expires at another time.
    Touch,
    /// All items before this record are gone.
    Clear,
    /// A bucket of small items. Its key is the bucket's number.
    Bucket,
}

/// A record.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Record<'a> {
    pub(crate) kind: Kind,
    pub(crate) flags: u32,
    /// Seconds since 1970; 0 is never.
    pub(crate) expiry: u64,
    pub(crate) version: u64,
    /// Of an item.
    pub(crate) marks: Marks,
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
}

/// Bytes of a record with such a key and value.
pub(crate) fn record_bytes(key: usize, value: usize) -> usize {
    RECORD_HEADER + key + value
}

impl<'a> Record<'a> {
    /// Appends it.
    pub(crate) fn put(&self, bytes: &mut Vec<u8>) {
        let start = bytes.len();
        bytes.u32(0);
        bytes.push(self.kind as u8);
        bytes.push(self.key.len() as u8);
        let Marks { is_stale, is_won } = self.marks;
        bytes.u16((u16::from(is_stale) * STALE) | (u16::from(is_won) * WON));
        bytes.u32(self.value.len() as u32);
        bytes.u32(self.flags);
        bytes.u64(self.expiry);
        bytes.u64(self.version);
        bytes.u32(0);
        bytes.extend_from_slice(self.key);
        bytes.extend_from_slice(self.value);
        seal(&mut bytes[start..], RECORD_CRC);
    }

    /// The record at the beginning of some bytes; `None` if there is none, or its checksum is wrong.
    pub(crate) fn get(bytes: &'a [u8]) -> Option<Record<'a>> {
        let mut reader = Reader(bytes);
        reader.u32()?;
        let kind = match reader.u8()? {
            0 => Kind::Put,
            1 => Kind::Delete,
            2 => Kind::Touch,
            3 => Kind::Clear,
            4 => Kind::Bucket,
            _ => return None,
        };
        let key = usize::from(reader.u8()?);
        let marks = reader.u16()?;
        let marks = Marks { is_stale: marks & STALE != 0, is_won: marks & WON != 0 };
        let value = reader.u32()? as usize;
        let (flags, expiry, version) = (reader.u32()?, reader.u64()?, reader.u64()?);
        reader.u32()?;
        let (key, value) = (reader.take(key)?, reader.take(value)?);
        let len = record_bytes(key.len(), value.len());
        is_sealed(&bytes[..len], RECORD_CRC).then_some(Record { kind, flags, expiry, version, marks, key, value })
    }

    /// Bytes that it takes.
    pub(crate) fn len(&self) -> usize {
        record_bytes(self.key.len(), self.value.len())
    }
}

/// The header of a chunk.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Header {
    /// The store.
    pub(crate) id: u64,
    /// The segment that it is in.
    pub(crate) segment: u64,
    /// The oldest segment that counts.
    pub(crate) tail: u64,
    /// Above all versions in it.
    pub(crate) version: u64,
    /// Its number in its segment.
    pub(crate) number: u32,
    /// Bytes, with the header and without what fills its last block.
    pub(crate) len: u32,
    /// Bytes of the segment before it: where it is.
    pub(crate) offset: u32,
    /// Chunks of the segment before its segment; 0 if there was none.
    pub(crate) before: u32,
    /// Whether it is the parity of chunks of other drives.
    pub(crate) is_parity: bool,
}

impl Header {
    /// Writes it over the first bytes of a chunk that is otherwise complete.
    pub(crate) fn seal(&self, chunk: &mut [u8]) {
        let mut bytes = Vec::with_capacity(CHUNK_HEADER);
        bytes.u32(if self.is_parity { PARITY_MAGIC } else { MAGIC });
        bytes.u32(0);
        [self.id, self.segment, self.tail, self.version].into_iter().for_each(|number| bytes.u64(number));
        [self.number, self.len, self.offset, self.before].into_iter().for_each(|number| bytes.u32(number));
        chunk[..CHUNK_HEADER].copy_from_slice(&bytes);
        seal(&mut chunk[..self.len as usize], CHUNK_CRC);
    }

    /// The header at the beginning of some bytes, of which the checksum is not looked at.
    pub(crate) fn peek(bytes: &[u8]) -> Option<Header> {
        let mut reader = Reader(bytes);
        let is_parity = match reader.u32()? {
            MAGIC => false,
            PARITY_MAGIC => true,
            _ => return None,
        };
        reader.u32()?;
        let (id, segment, tail, version) = (reader.u64()?, reader.u64()?, reader.u64()?, reader.u64()?);
        let (number, len, offset, before) = (reader.u32()?, reader.u32()?, reader.u32()?, reader.u32()?);
        let header = Header { id, segment, tail, version, number, len, offset, before, is_parity };
        ((len as usize) >= CHUNK_HEADER).then_some(header)
    }

    /// The same of a whole chunk; `None` if it is torn.
    pub(crate) fn get(bytes: &[u8]) -> Option<Header> {
        let header = Header::peek(bytes)?;
        bytes.get(..header.len as usize).filter(|chunk| is_sealed(chunk, CHUNK_CRC)).map(|_| header)
    }
}

/// All chunks of a store that are whole in the slot of a segment, whatever lies between them: their headers, in order of place.
pub(crate) fn pieces(image: &[u8], id: u64, block: usize) -> Vec<Header> {
    let (mut found, mut at) = (Vec::new(), 0);
    while at < image.len() {
        let header = Header::get(&image[at..]).filter(|header| header.id == id && header.offset as usize == at);
        at += header.map_or(block, |header| (header.len as usize).next_multiple_of(block));
        found.extend(header);
    }
    found
}

/// The records of a chunk that is whole, each with its place in its segment.
pub(crate) fn records(image: &[u8], header: Header) -> Vec<(u32, Record<'_>)> {
    let (start, end) = (header.offset as usize, (header.offset + header.len) as usize);
    let (mut found, mut at) = (Vec::new(), start + CHUNK_HEADER);
    while let Some(record) = image.get(at..end).and_then(Record::get) {
        found.push((at as u32, record));
        at += record.len();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(number: u32, offset: u32, records: &[Record<'_>]) -> Vec<u8> {
        let mut bytes = vec![0; CHUNK_HEADER];
        records.iter().for_each(|record| record.put(&mut bytes));
        let len = bytes.len() as u32;
        Header { id: 7, segment: 3, tail: 1, version: 9, number, len, offset, before: 4, is_parity: false }
            .seal(&mut bytes);
        bytes.resize(bytes.len().next_multiple_of(512), 0);
        bytes
    }

    #[test]
    fn a_segment_has_its_whole_chunks() {
        let marks = Marks { is_stale: true, is_won: false };
        let put = Record { kind: Kind::Put, flags: 5, expiry: 6, version: 8, marks, key: b"key", value: &[9; 700] };
        let delete = Record { kind: Kind::Delete, marks: Marks { is_stale: false, is_won: true }, value: b"", ..put };
        let mut image = chunk(0, 0, &[put, delete]);
        let at = image.len();
        image.extend(chunk(1, at as u32, &[delete]));
        image.resize(8_192, 0);
        let found = pieces(&image, 7, 512);
        assert_eq!(found.len(), 2);
        let (places, read): (Vec<u32>, Vec<_>) = records(&image, found[0]).into_iter().unzip();
        assert_eq!(read, [put, delete]);
        assert_eq!(Record::get(&image[places[0] as usize..]), Some(put));
        assert_eq!(pieces(&image, 8, 512), [], "another store's");
        for place in 0..at + CHUNK_HEADER + delete.len() {
            let mut torn = image.clone();
            torn[place] ^= 0x10;
            let is_padding = (found[0].len as usize..at).contains(&place);
            assert_eq!(pieces(&torn, 7, 512).len(), if is_padding { 2 } else { 1 }, "byte {place}");
        }
    }
}
