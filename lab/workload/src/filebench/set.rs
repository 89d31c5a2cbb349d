//! A set of files: names with or without a file, and their assignment to threads.
//!
//! As in filebench, files are taken in rotation, with one rotor for existing files and one for free names. Several
//! threads may read a file; a thread that writes, creates or deletes a file has exclusive use. A thread that finds no
//! file waits.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use nandscape_sim::Rng;
use nandscape_sim::signal::Signal;

use super::tables::SizeTable;
use crate::client::Client;
use crate::filesystem::{FileId, FileSystem};
use crate::gamma::gamma;

/// The parameters of a set of files.
#[derive(Copy, Clone)]
pub(crate) struct SetSpec {
    pub(crate) files: u64,
    pub(crate) sizes: FileSizes,
    /// Names in a directory.
    pub(crate) dir_width: u64,
    /// The share of the files that exist at the beginning.
    pub(crate) existing: f64,
}

/// The default shape of the gamma distribution from which filebench draws sizes.
const SIZE_SHAPE: f64 = 1.5;

/// The distribution of the file sizes of a set.
#[derive(Copy, Clone)]
pub(crate) enum FileSizes {
    /// Of the given mean, by filebench's distribution.
    Gamma(u64),
    /// From a table, times a factor.
    Table(&'static SizeTable, f64),
}

impl FileSizes {
    fn next(self, rng: &mut Rng) -> u64 {
        let size = match self {
            FileSizes::Gamma(mean) => gamma(rng, SIZE_SHAPE, mean as f64),
            FileSizes::Table(table, factor) => table.next(rng) as f64 * factor,
        };
        (libm::round(size) as u64).max(1)
    }
}

struct Entry {
    file: FileId,
    /// Bytes it has when it is written whole.
    size: u64,
    users: Users,
}

#[derive(Copy, Clone, PartialEq, Eq)]
enum Users {
    Readers(u32),
    Owner,
}

/// A set of files in use.
pub(crate) struct FileSet {
    inner: RefCell<Inner>,
    freed: Signal,
}

struct Inner {
    entries: Vec<Entry>,
    existing: BTreeSet<u32>,
    missing: BTreeSet<u32>,
    /// The rotors for existing files and for free names.
    rotors: [u32; 2],
}

/// A file of a set, in use. Given back with [`FileSet::release`].
#[derive(Copy, Clone, Debug)]
pub(crate) struct Held {
    number: u32,
    pub(crate) file: FileId,
    pub(crate) size: u64,
}

impl FileSet {
    /// Lays a set out on a file system, the files that exist in random order; `None` when there is no room.
    pub(crate) fn lay_out(client: &Client, fs: &FileSystem, spec: &SetSpec, rng: &mut Rng) -> Option<Rc<FileSet>> {
        let mut entries = Vec::new();
        let mut directory = 0;
        for number in 0..spec.files {
            let within = number % spec.dir_width;
            if within == 0 {
                directory = fs.lay_out_directory(spec.dir_width.min(spec.files - number))?;
            }
            let file = fs.add_file(directory + within / crate::filesystem::PER_DIRECTORY_BLOCK);
            entries.push(Entry { file, size: spec.sizes.next(rng), users: Users::Readers(0) });
        }
        let mut order: Vec<u32> = (0..entries.len() as u32).collect();
        rng.shuffle(&mut order);
        let count = libm::round(spec.files as f64 * spec.existing) as usize;
        let (existing, missing) = order.split_at(count);
        for number in existing {
            let entry = &entries[*number as usize];
            fs.lay_out(entry.file, entry.size)?;
        }
        let inner = Inner {
            entries,
            existing: existing.iter().copied().collect(),
            missing: missing.iter().copied().collect(),
            rotors: [0, 0],
        };
        Some(Rc::new(FileSet { inner: RefCell::new(inner), freed: Signal::new(client.sim()) }))
    }

    /// Takes the next file that exists, to read it.
    pub(crate) async fn to_read(&self) -> Held {
        self.wait_for(|inner| {
            let number = inner.next_existing(|users| users != Users::Owner)?;
            let entry = &mut inner.entries[number as usize];
            if let Users::Readers(readers) = &mut entry.users {
                *readers += 1;
            }
            Some(number)
        })
        .await
    }

    /// Takes the next existing file that is not in use, to write or delete it.
    pub(crate) async fn to_change(&self) -> Held {
        self.wait_for(|inner| {
            let number = inner.next_existing(|users| users == Users::Readers(0))?;
            inner.entries[number as usize].users = Users::Owner;
            Some(number)
        })
        .await
    }

    /// Takes the next name without a file, to create it.
    pub(crate) async fn to_make(&self) -> Held {
        self.wait_for(|inner| {
            let rotor = inner.rotors[1];
            let number = *inner.missing.range(rotor..).chain(inner.missing.range(..rotor)).next()?;
            inner.rotors[1] = number + 1;
            inner.missing.remove(&number);
            inner.entries[number as usize].users = Users::Owner;
            Some(number)
        })
        .await
    }

    /// Takes the existing file at a number, or the next one that may be read.
    pub(crate) async fn to_read_from(&self, number: u32) -> Held {
        self.inner.borrow_mut().rotors[0] = number;
        self.to_read().await
    }

    /// Takes the existing file at a number, or the next one that is not in use.
    pub(crate) async fn to_change_from(&self, number: u32) -> Held {
        self.inner.borrow_mut().rotors[0] = number;
        self.to_change().await
    }

    /// Takes the name at a number, or the next one, without a file.
    pub(crate) async fn to_make_from(&self, number: u32) -> Held {
        self.inner.borrow_mut().rotors[1] = number;
        self.to_make().await
    }

    /// The file has been created: it exists, still in exclusive use.
    pub(crate) fn made(&self, held: Held) {
        self.inner.borrow_mut().existing.insert(held.number);
    }

    /// The file has been removed, and its name is free.
    pub(crate) fn removed(&self, held: Held) {
        let mut inner = self.inner.borrow_mut();
        inner.existing.remove(&held.number);
        inner.missing.insert(held.number);
        inner.entries[held.number as usize].users = Users::Readers(0);
        drop(inner);
        self.freed.notify();
    }

    /// The file is no longer used.
    pub(crate) fn release(&self, held: Held) {
        let mut inner = self.inner.borrow_mut();
        let users = &mut inner.entries[held.number as usize].users;
        *users = match *users {
            Users::Readers(readers) => Users::Readers(readers - 1),
            Users::Owner => Users::Readers(0),
        };
        drop(inner);
        self.freed.notify();
    }

    async fn wait_for(&self, mut find: impl FnMut(&mut Inner) -> Option<u32>) -> Held {
        loop {
            let found = {
                let mut inner = self.inner.borrow_mut();
                find(&mut inner).map(|number| {
                    let entry = &inner.entries[number as usize];
                    Held { number, file: entry.file, size: entry.size }
                })
            };
            match found {
                Some(held) => return held,
                None => self.freed.changed().await,
            }
        }
    }
}

impl Inner {
    /// The next existing file whose users allow this use.
    fn next_existing(&mut self, fits: impl Fn(Users) -> bool) -> Option<u32> {
        let rotor = self.rotors[0];
        let mut in_turn = self.existing.range(rotor..).chain(self.existing.range(..rotor));
        let number = *in_turn.find(|number| fits(self.entries[**number as usize].users))?;
        self.rotors[0] = number + 1;
        Some(number)
    }
}
