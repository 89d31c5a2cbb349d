//! The bytes of a bucket: its items, oldest first.
//!
//! An item is a byte with the length of its key, a byte of marks, then its value's length, flags, expiry and version in groups of seven bits, the
//! lowest first, each but the last with its highest bit set (LEB128); then key and value. The record around them has the checksum.

use nandscape_apps_store::bytes::Reader;

use crate::item::Marks;
use crate::record::RECORD_HEADER;

/// The most bytes of a bucket's record: those of a block of a drive's mapping.
pub(crate) const BUCKET: usize = 4_096;
/// Bytes of the number of a bucket, which is the key of its record.
const NUMBER: usize = 4;
/// The most bytes of items in a bucket.
pub(crate) const ROOM: usize = BUCKET - RECORD_HEADER - NUMBER;
/// The bits of the marks.
const STALE: u8 = 1;
const WON: u8 = 2;
const FETCHED: u8 = 4;

/// An item in a bucket.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Packed<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
    pub(crate) flags: u32,
    /// Seconds since 1970; 0 is never.
    pub(crate) expiry: u64,
    pub(crate) version: u64,
    pub(crate) marks: Marks,
    pub(crate) is_fetched: bool,
}

fn put_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn number(reader: &mut Reader<'_>) -> Option<u64> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let byte = reader.u8()?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

fn number_bytes(number: u64) -> usize {
    (u64::BITS - (number | 1).leading_zeros()).div_ceil(7) as usize
}

impl<'a> Packed<'a> {
    /// Appends it.
    fn put(&self, bytes: &mut Vec<u8>) {
        let Marks { is_stale, is_won } = self.marks;
        let bit = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
        bytes.push(self.key.len() as u8);
        bytes.push(bit(is_stale, STALE) | bit(is_won, WON) | bit(self.is_fetched, FETCHED));
        self.numbers().into_iter().for_each(|number| put_number(bytes, number));
        bytes.extend_from_slice(self.key);
        bytes.extend_from_slice(self.value);
    }

    fn numbers(&self) -> [u64; 4] {
        [self.value.len() as u64, self.flags.into(), self.expiry, self.version]
    }

    /// Bytes that it takes.
    pub(crate) fn len(&self) -> usize {
        let numbers: usize = self.numbers().into_iter().map(number_bytes).sum();
        2 + numbers + self.key.len() + self.value.len()
    }

    fn get(reader: &mut Reader<'a>) -> Option<Packed<'a>> {
        let (key, bits) = (usize::from(reader.u8()?), reader.u8()?);
        let (value, flags) = (number(reader)? as usize, number(reader)? as u32);
        let (expiry, version) = (number(reader)?, number(reader)?);
        let (key, value) = (reader.take(key)?, reader.take(value)?);
        let marks = Marks { is_stale: bits & STALE != 0, is_won: bits & WON != 0 };
        Some(Packed { key, value, flags, expiry, version, marks, is_fetched: bits & FETCHED != 0 })
    }
}

/// The items of a bucket, oldest first.
pub(crate) fn items(bytes: &[u8]) -> impl Iterator<Item = Packed<'_>> {
    let mut reader = Reader(bytes);
    std::iter::from_fn(move || Packed::get(&mut reader))
}

/// The bytes of a bucket with these items.
pub(crate) fn bytes(items: &[Packed<'_>]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(items.iter().map(Packed::len).sum());
    items.iter().for_each(|item| item.put(&mut bytes));
    bytes
}

/// How long an item stays in a full bucket.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Stay {
    /// It was not asked for since the bucket was written.
    Shortest,
    /// It was, or it is newer than that.
    Longer,
    /// An older version would be found.
    Longest,
}

impl Stay {
    pub(crate) fn of(is_asked: bool) -> Stay {
        if is_asked { Stay::Longer } else { Stay::Shortest }
    }
}

/// Takes out items, given oldest first, until the others fit: those that stay shortest, then the next, each oldest first. Those that leave.
pub(crate) fn make_fit<'a>(items: &mut Vec<(Packed<'a>, Stay)>) -> Vec<Packed<'a>> {
    let mut bytes: usize = items.iter().map(|(item, _)| item.len()).sum();
    let mut gone = Vec::new();
    for leaves in [Stay::Shortest, Stay::Longer, Stay::Longest] {
        items.retain(|(item, stay)| {
            let stays = bytes <= ROOM || *stay > leaves;
            if !stays {
                bytes -= item.len();
                gone.push(*item);
            }
            stays
        });
    }
    gone
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(key: &'static [u8], value: &'static [u8], version: u64) -> Packed<'static> {
        let marks = Marks { is_stale: version % 2 == 1, is_won: version % 3 == 1 };
        let is_fetched = version % 5 == 1;
        Packed { key, value, flags: u32::MAX - version as u32, expiry: version << 20, version, marks, is_fetched }
    }

    #[test]
    fn items_are_read_as_they_were_written() {
        let all: Vec<Packed<'_>> =
            (0..64).map(|bits| item(&[7; 200][..bits], &[9; 300][..4 * bits], (1 << bits) - 1)).collect();
        let written = bytes(&all);
        assert_eq!(written.len(), all.iter().map(Packed::len).sum::<usize>());
        assert_eq!(items(&written).collect::<Vec<_>>(), all);
        // What is cut off has the items before.
        assert_eq!(items(&written[..written.len() - 1]).count(), all.len() - 1);
    }

    #[test]
    fn the_oldest_leave_that_were_not_asked_for() {
        let asked = |version: u64| Stay::of(version == 0 || version == 2);
        let all = |count: u64| (0..count).map(|version| (item(b"key", &[1; 900], version), asked(version)));
        let mut items: Vec<_> = all(4).collect();
        assert!(make_fit(&mut items).is_empty());
        let mut items: Vec<_> = all(6).collect();
        let gone: Vec<u64> = make_fit(&mut items).iter().map(|item| item.version).collect();
        assert_eq!(gone, [1, 3]);
        assert_eq!(items.iter().map(|(item, _)| item.version).collect::<Vec<_>>(), [0, 2, 4, 5]);
        let mut items: Vec<_> = all(6).map(|(item, _)| (item, Stay::Longer)).collect();
        items[0].1 = Stay::Longest;
        let gone: Vec<u64> = make_fit(&mut items).iter().map(|item| item.version).collect();
        assert_eq!(gone, [1, 2]);
    }
}
