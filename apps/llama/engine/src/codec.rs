//! Pages and deltas as bytes. All numbers are little-endian.
//!
//! A piece begins with "LLPG" (3:0), the version 1 (4), its kind (5: 0 of a base, 1 of deltas), the level (6), zero (7), the page's
//! number (15:8), the number of its parts (19:16), its bytes (23:20) and a CRC-32 of all of them (27:24), and zero (31:28).
//!
//! A base continues with the page to the right (8), the end of its keys (2 for the length, all ones for none) and the
//! entries, each the length of the key (2) and of the value (4), and both. A delta is its kind (1: put, delete, split),
//! the length of the key (2) and the key; then the value (4 for the length), or the page to the right (8).

use std::rc::Rc;

use nandscape_apps_store::StoreError;
use nandscape_apps_store::bytes::{Put, Reader, is_sealed, seal};

use crate::page::{Bytes, Delta, Page, Part};
use crate::pages::{Kind, Piece};

const MAGIC: u32 = u32::from_le_bytes(*b"LLPG");
const VERSION: u8 = 1;
/// The place of the checksum.
const CRC: usize = 24;
/// Bytes of a base without its entries and the end of its keys.
pub(crate) const HEAD: usize = 32 + 8 + 2;
const NO_KEY: u16 = u16::MAX;
const PUT: u8 = 0;
const DELETE: u8 = 1;
const SPLIT: u8 = 2;

/// A page's next piece, which the page takes for stored.
pub(crate) fn encode(lpid: u64, page: &mut Page, most_pieces: u32, page_bytes: usize) -> Piece {
    let (level, right, high) = (page.level, page.right, page.high.clone());
    let (kind, count, body) = match page.part(most_pieces, page_bytes) {
        Part::Whole(entries) => (Kind::Base, entries.len(), base(right, high.as_ref(), entries)),
        Part::Deltas(deltas) => (Kind::Delta, deltas.len(), chain(deltas)),
    };
    let mut bytes = Vec::with_capacity(32 + body.len());
    bytes.u32(MAGIC);
    bytes.extend_from_slice(&[VERSION, u8::from(kind == Kind::Delta), level, 0]);
    bytes.u64(lpid);
    bytes.u32(count as u32);
    bytes.u32((32 + body.len()) as u32);
    bytes.u64(0);
    bytes.extend_from_slice(&body);
    seal(&mut bytes, CRC);
    let before = if kind == Kind::Base { 0 } else { page.pieces() };
    page.saved(kind == Kind::Base, bytes.len());
    Piece { lpid, kind, before, bytes }
}

fn base(right: u64, high: Option<&Bytes>, entries: &[(Bytes, Bytes)]) -> Vec<u8> {
    let mut body = Vec::new();
    body.u64(right);
    body.u16(high.map_or(NO_KEY, |key| key.len() as u16));
    body.extend_from_slice(high.map_or(&[], |key| &**key));
    for (key, value) in entries {
        body.u16(key.len() as u16);
        body.u32(value.len() as u32);
        body.extend_from_slice(key);
        body.extend_from_slice(value);
    }
    body
}

fn chain(deltas: &[Delta]) -> Vec<u8> {
    let mut body = Vec::new();
    for delta in deltas {
        let (kind, key) = match delta {
            Delta::Put(key, _) => (PUT, key),
            Delta::Delete(key) => (DELETE, key),
            Delta::Split(key, _) => (SPLIT, key),
        };
        body.push(kind);
        body.u16(key.len() as u16);
        body.extend_from_slice(key);
        match delta {
            Delta::Put(_, value) => {
                body.u32(value.len() as u32);
                body.extend_from_slice(value);
            }
            Delta::Split(_, right) => body.u64(*right),
            Delta::Delete(_) => {}
        }
    }
    body
}

/// The page in these pieces, the base first. Bytes beyond the end of a piece are of no account.
pub(crate) fn decode(lpid: u64, pieces: &[Vec<u8>]) -> Result<Page, StoreError> {
    let corrupt = |number: usize| StoreError::Corrupt(format!("piece {number} of page {lpid} is not what was written"));
    let (first, rest) = pieces.split_first().ok_or_else(|| StoreError::Corrupt(format!("page {lpid} is not there")))?;
    let page = Head::of(lpid, first).and_then(|(head, body)| decode_base(&head, body)).ok_or_else(|| corrupt(0))?;
    let (mut deltas, mut bytes) = (Vec::new(), first.len());
    for (number, piece) in rest.iter().enumerate() {
        let decoded = Head::of(lpid, piece).and_then(|(head, body)| decode_deltas(&head, body));
        deltas.extend(decoded.ok_or_else(|| corrupt(number + 1))?);
        bytes += piece.len();
    }
    Ok(page.stored(deltas, pieces.len() as u32, bytes))
}

struct Head {
    is_delta: bool,
    level: u8,
    count: u32,
}

impl Head {
    /// The head and the body of a piece of this page.
    fn of(lpid: u64, bytes: &[u8]) -> Option<(Head, Reader<'_>)> {
        let mut reader = Reader(bytes);
        let is_magic = reader.u32()? == MAGIC && reader.u8()? == VERSION;
        let (kind, level, _, there) = (reader.u8()?, reader.u8()?, reader.u8()?, reader.u64()?);
        let (count, len) = (reader.u32()?, reader.u32()? as usize);
        let bytes = bytes.get(..len).filter(|bytes| bytes.len() >= 32)?;
        let is_right = is_magic && there == lpid && is_sealed(bytes, CRC);
        is_right.then(|| (Head { is_delta: kind == 1, level, count }, Reader(&bytes[32..])))
    }
}

fn decode_base(head: &Head, mut body: Reader<'_>) -> Option<Page> {
    let right = body.u64().filter(|_| !head.is_delta)?;
    let high = match body.u16()? {
        NO_KEY => None,
        len => Some(Rc::from(body.take(len.into())?)),
    };
    let mut entries = Vec::new();
    for _ in 0..head.count {
        let (key, value) = (body.u16()?, body.u32()?);
        entries.push((Rc::from(body.take(key.into())?), Rc::from(body.take(value as usize)?)));
    }
    Some(Page::new(head.level, entries, high, right))
}

fn decode_deltas(head: &Head, mut body: Reader<'_>) -> Option<Vec<Delta>> {
    let mut deltas = Vec::new();
    for _ in 0..head.count {
        let (kind, len) = (body.u8()?, body.u16()?);
        let key: Bytes = Rc::from(body.take(len.into())?);
        deltas.push(match kind {
            PUT => {
                let len = body.u32()?;
                Delta::Put(key, Rc::from(body.take(len as usize)?))
            }
            DELETE => Delta::Delete(key),
            SPLIT => Delta::Split(key, body.u64()?),
            _ => return None,
        });
    }
    head.is_delta.then_some(deltas)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Bytes {
        Rc::from(text.as_bytes())
    }

    fn page() -> Page {
        let entries = (b'a'..=b'e').map(|letter| (Rc::from([letter]), Rc::from([letter; 90]))).collect();
        Page::new(0, entries, Some(key("x")), 9)
    }

    #[test]
    fn a_page_and_its_deltas_are_read_again_and_any_changed_byte_is_noticed() {
        let mut page = page();
        let mut pieces = vec![encode(7, &mut page, 4, 4_096)];
        page.change(Delta::Put(key("c"), key("new")));
        assert!(page.change(Delta::Delete(key("a"))) && !page.change(Delta::Delete(key("aa"))));
        pieces.push(encode(7, &mut page, 4, 4_096));
        page.change(Delta::Split(key("e"), 12));
        pieces.push(encode(7, &mut page, 4, 4_096));
        let kinds: Vec<Kind> = pieces.iter().map(|piece| piece.kind).collect();
        assert_eq!(kinds, [Kind::Base, Kind::Delta, Kind::Delta]);
        let pieces: Vec<Vec<u8>> = pieces.into_iter().map(|piece| piece.bytes).collect();
        let found = decode(7, &pieces).unwrap();
        assert_eq!((found.entries(), found.high, found.right), (page.entries(), Some(key("e")), 12));
        assert_eq!((found.bytes, found.level), (page.bytes, 0));
        assert!(decode(8, &pieces).is_err() && decode(7, &[]).is_err() && decode(7, &pieces[1..]).is_err());
        for number in 0..3 {
            for at in 0..pieces[number].len() {
                let mut torn = pieces.clone();
                torn[number][at] ^= 0x20;
                assert!(decode(7, &torn).is_err(), "byte {at} of piece {number}");
                torn[number].truncate(at);
                assert!(decode(7, &torn).is_err(), "piece {number} cut at {at}");
            }
        }
    }

    #[test]
    fn a_chain_that_is_long_or_changed_as_a_whole_is_stored_whole() {
        let mut page = page();
        assert_eq!(encode(7, &mut page, 2, 4_096).kind, Kind::Base);
        page.change(Delta::Put(key("c"), key("1")));
        assert_eq!(encode(7, &mut page, 2, 4_096).kind, Kind::Delta);
        page.change(Delta::Put(key("c"), key("2")));
        assert_eq!(encode(7, &mut page, 2, 4_096).kind, Kind::Base, "a chain has two pieces");
        page.change(Delta::Put(key("c"), key("3")));
        page.consolidate();
        assert_eq!(encode(7, &mut page, 9, 4_096).kind, Kind::Base, "its base is another");
        page.consolidate();
        page.change(Delta::Put(key("d"), key("4")));
        assert_eq!(encode(7, &mut page, 1, 4_096).kind, Kind::Base, "a store without deltas");
    }
}
