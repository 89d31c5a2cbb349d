//! Notes: bytes that are replaced as a whole. There are two copies, written one after the other, so that one of them is always
//! whole, and damage to one of them loses nothing.

use std::cell::{Cell, RefCell};
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
/// Bytes of a copy before its content.
pub(crate) const HEAD: usize = 16;

/// See the file.
pub(crate) struct Notes {
    disk: Rc<Disk>,
    copies: [Region; 2],
    generation: Cell<u64>,
    /// The copy that lacks the content of the other, and that content.
    missing: RefCell<Option<(usize, Vec<u8>)>>,
}

/// The content of a copy.
#[derive(PartialEq, Eq)]
enum Copy {
    /// It was never written.
    Empty,
    /// A generation and its bytes.
    Whole(u64, Vec<u8>),
    /// Something else: a kill while it was written, or damage.
    Broken,
}

impl Notes {
    /// The notes in a pair of regions, called `name`. If a copy may have been in progress, one of the two `may_be_torn`.
    pub(crate) fn open(disk: &Rc<Disk>, copies: [Region; 2], name: &str, may_be_torn: bool) -> io::Result<Notes> {
        let notes = Notes { disk: disk.clone(), copies, generation: Cell::new(0), missing: RefCell::default() };
        let found = [copy(disk, copies[0])?, copy(disk, copies[1])?];
        let Some((generation, bytes)) = newest(&found) else {
            // Only the very first write finds no other copy.
            let is_torn = may_be_torn && found == [Copy::Broken, Copy::Empty];
            if found.contains(&Copy::Broken) && !is_torn {
                let what = format!("both copies of {name} are damaged, at bytes {} and {}", copies[0].at, copies[1].at);
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            }
            return Ok(notes);
        };
        notes.generation.set(generation);
        for (number, copy) in found.iter().enumerate() {
            let is_whole = matches!(copy, Copy::Whole(other, _) if *other == generation);
            if !is_whole && !may_be_torn {
                disk.note_damage(format!("{name} at byte {}: the other copy is whole", copies[number].at));
            }
            if !is_whole {
                *notes.missing.borrow_mut() = Some((number, encode(generation, &bytes)));
            }
        }
        Ok(notes)
    }

    /// Makes both copies equal.
    ///
    /// # Errors
    /// [`MediaError::Store`].
    pub(crate) fn mend(&self) -> Result<(), MediaError> {
        let missing = self.missing.take();
        missing.map_or(Ok(()), |(copy, bytes)| self.disk.write(self.copies[copy].at, &bytes))
    }

    /// Replaces them.
    pub(crate) fn write(&self, bytes: &[u8]) -> Result<(), MediaError> {
        let generation = self.generation.get() + 1;
        assert!((bytes.len() + HEAD) as u64 <= self.copies[0].len, "{} bytes are too many for notes", bytes.len());
        self.disk.write_twice(self.copies, 0, &encode(generation, bytes))?;
        self.generation.set(generation);
        Ok(())
    }

    /// The last content written.
    pub(crate) fn read(&self) -> io::Result<Option<Vec<u8>>> {
        let found = [copy(&self.disk, self.copies[0])?, copy(&self.disk, self.copies[1])?];
        Ok(newest(&found).map(|(_, bytes)| bytes))
    }

    /// Whether a pair of regions has a whole copy.
    pub(crate) fn are_in(disk: &Disk, copies: [Region; 2]) -> io::Result<bool> {
        let found = [copy(disk, copies[0])?, copy(disk, copies[1])?];
        Ok(newest(&found).is_some())
    }
}

fn copy(disk: &Disk, region: Region) -> io::Result<Copy> {
    let mut head = [0; HEAD];
    disk.read(region.at, &mut head)?;
    if head == [0; HEAD] {
        return Ok(Copy::Empty);
    }
    let mut from = Reader(&head);
    let (sum, len, generation) = (from.u32(), from.u32(), from.u64());
    if u64::from(len) + HEAD as u64 > region.len || generation == 0 {
        return Ok(Copy::Broken);
    }
    let mut bytes = vec![0; len as usize];
    disk.read(region.at + HEAD as u64, &mut bytes)?;
    let mut found = crc32fast::Hasher::new();
    found.update(&head[4..]);
    found.update(&bytes);
    Ok(if found.finalize() == sum { Copy::Whole(generation, bytes) } else { Copy::Broken })
}

fn newest(copies: &[Copy; 2]) -> Option<(u64, Vec<u8>)> {
    let whole = copies.iter().filter_map(|copy| match copy {
        Copy::Whole(generation, bytes) => Some((*generation, bytes)),
        Copy::Empty | Copy::Broken => None,
    });
    whole.max_by_key(|(generation, _)| *generation).map(|(generation, bytes)| (generation, bytes.clone()))
}

fn encode(generation: u64, bytes: &[u8]) -> Vec<u8> {
    let mut out = Writer(Vec::with_capacity(HEAD + bytes.len()));
    [0, bytes.len() as u32].into_iter().for_each(|field| out.u32(field));
    out.u64(generation);
    out.0.extend(bytes);
    let sum = crc32fast::hash(&out.0[4..]);
    out.0[..4].copy_from_slice(&sum.to_le_bytes());
    out.0
}
