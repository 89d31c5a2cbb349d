//! Notes: bytes that are replaced as a whole. There are two copies, which are written in turn.

use std::cell::Cell;
use std::io;
use std::rc::Rc;

use super::disk::Disk;
use super::layout::Region;
use super::superblock::{Reader, Writer};
use crate::fault::MediaError;

/// Bytes of a copy of the controller's notes.
pub(crate) const BYTES: u64 = 1 << 20;
/// Bytes of a copy of an FTL's counters.
pub(crate) const COUNTERS: u64 = 4_096;
const HEAD: usize = 16;

/// See the file.
pub(crate) struct Notes {
    disk: Rc<Disk>,
    copies: [Region; 2],
    generation: Cell<u64>,
}

impl Notes {
    pub(crate) fn open(disk: &Rc<Disk>, copies: [Region; 2]) -> io::Result<Notes> {
        let notes = Notes { disk: disk.clone(), copies, generation: Cell::new(0) };
        let latest = notes.latest()?;
        notes.generation.set(latest.map_or(0, |(generation, _)| generation));
        Ok(notes)
    }

    /// Replaces them.
    pub(crate) fn write(&self, bytes: &[u8]) -> Result<(), MediaError> {
        let generation = self.generation.get() + 1;
        let region = self.copies[(generation % 2) as usize];
        assert!((bytes.len() + HEAD) as u64 <= region.len, "{} bytes are too many for notes", bytes.len());
        let mut out = Writer(Vec::with_capacity(HEAD + bytes.len()));
        [0, bytes.len() as u32].into_iter().for_each(|field| out.u32(field));
        out.u64(generation);
        out.0.extend(bytes);
        let sum = crc32fast::hash(&out.0[4..]);
        out.0[..4].copy_from_slice(&sum.to_le_bytes());
        self.disk.write(region.at, &out.0)?;
        self.generation.set(generation);
        Ok(())
    }

    /// What was written last.
    pub(crate) fn read(&self) -> io::Result<Option<Vec<u8>>> {
        Ok(self.latest()?.map(|(_, bytes)| bytes))
    }

    fn latest(&self) -> io::Result<Option<(u64, Vec<u8>)>> {
        let copies = [self.copy(self.copies[0])?, self.copy(self.copies[1])?];
        Ok(copies.into_iter().flatten().max_by_key(|(generation, _)| *generation))
    }

    fn copy(&self, region: Region) -> io::Result<Option<(u64, Vec<u8>)>> {
        let mut head = [0; HEAD];
        self.disk.read(region.at, &mut head)?;
        let mut from = Reader(&head);
        let (sum, len, generation) = (from.u32(), from.u32(), from.u64());
        if u64::from(len) + HEAD as u64 > region.len || generation == 0 {
            return Ok(None);
        }
        let mut bytes = vec![0; len as usize];
        self.disk.read(region.at + HEAD as u64, &mut bytes)?;
        let mut found = crc32fast::Hasher::new();
        found.update(&head[4..]);
        found.update(&bytes);
        Ok((found.finalize() == sum).then_some((generation, bytes)))
    }
}
