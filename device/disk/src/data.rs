//! The contents of a disk: written data, in pieces of 4 KiB. Everything else is zeros.

use std::collections::BTreeMap;

use nandscape_drive::HostMem;
use nandscape_drive::command::Extent;

use crate::spec::SECTOR;

/// Bytes of a piece.
const PIECE: u64 = 4_096;

/// See the file.
#[derive(Default)]
pub(crate) struct Data(BTreeMap<u64, Box<[u8]>>);

/// A part of an extent that lies in one piece.
struct Part {
    piece: u64,
    /// In the piece.
    from: usize,
    /// In the memory of the command.
    at: usize,
    bytes: usize,
}

fn parts(extent: Extent) -> impl Iterator<Item = Part> {
    let begin = extent.slba * u64::from(SECTOR);
    let end = begin + u64::from(extent.blocks) * u64::from(SECTOR);
    let mut next = begin;
    std::iter::from_fn(move || {
        (next < end).then(|| {
            let (piece, from) = (next / PIECE, next % PIECE);
            let bytes = (PIECE - from).min(end - next);
            let part = Part { piece, from: from as usize, at: (next - begin) as usize, bytes: bytes as usize };
            next += bytes;
            part
        })
    })
}

impl Data {
    /// Writes the content of a command's memory; zeros without any.
    pub(crate) fn write(&mut self, extent: Extent, mem: &HostMem) {
        for Part { piece, from, at, bytes } in parts(extent) {
            if mem.is_none() && !self.0.contains_key(&piece) {
                continue;
            }
            let piece = self.0.entry(piece).or_insert_with(|| vec![0; PIECE as usize].into());
            match mem.is_none() {
                true => piece[from..from + bytes].fill(0),
                false => mem.read(at, &mut piece[from..from + bytes]),
            }
        }
    }

    /// Reads to a command's memory.
    pub(crate) fn read(&self, extent: Extent, mem: &HostMem) {
        for Part { piece, from, at, bytes } in parts(extent) {
            match self.0.get(&piece) {
                Some(piece) => mem.write(at, &piece[from..from + bytes]),
                None => mem.clear(at, bytes),
            }
        }
    }

    /// Whether a command's memory holds the same data.
    pub(crate) fn is_same(&self, extent: Extent, mem: &HostMem) -> bool {
        let mut other = [0; PIECE as usize];
        parts(extent).all(|Part { piece, from, at, bytes }| {
            let other = &mut other[..bytes];
            mem.read(at, other);
            match self.0.get(&piece) {
                Some(piece) => piece[from..from + bytes] == *other,
                None => other.iter().all(|byte| *byte == 0),
            }
        })
    }
}
