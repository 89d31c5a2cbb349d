//! Reads the state of a drive, or of drives under layers, from a file. All processors read sections, a chunk at a time, directly
//! into their destination.
//!
//! The file is read rather than mapped: a file truncated meanwhile is an error instead of the end of the process, and tables lie
//! on huge pages, as in other runs.

use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use nandscape_device_ftl_core::SavedFtl;
use nandscape_device_media::SavedMedia;
use nandscape_device_media::geometry::Counts;
use nandscape_device_ssd::{Profile, Resolved, SavedDrive, SavedPart};
use nandscape_files::input;
use nandscape_sim::table::Table;
use xxhash_rust::xxh3::xxh3_64;

use super::StateError;
use super::directory::{CHUNK, Directory, DriveEntry, HEAD, Head, MAGIC, PartEntry, Section};
use super::history::History;
use crate::chain::{self, Chain, Named};

/// Bytes of an entry of a table.
const ENTRY: u64 = 4;
/// The most threads that read.
const THREADS: usize = 8;

/// A file with the state of a drive, or of drives under layers.
pub struct StateFile {
    path: PathBuf,
    directory: Directory,
    /// The checksum of the directory, which has that of each chunk.
    digest: u64,
}

/// A chunk to be read.
struct Chunk<'a> {
    section: &'static str,
    offset: u64,
    checksum: u64,
    to: &'a mut [u8],
}

impl std::fmt::Debug for StateFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("StateFile").field(&self.path).finish()
    }
}

impl StateFile {
    /// Whether a file begins as states do. A pipe would be waited for.
    pub fn begins(path: &Path) -> bool {
        let mut first = [0; 8];
        input::open(path).and_then(|mut file| file.read_exact(&mut first)).is_ok() && first == *MAGIC
    }

    /// Opens a file and reads its head and directory.
    ///
    /// # Errors
    /// When it cannot be read, is no state, or is damaged.
    pub fn open(path: &Path) -> Result<StateFile, StateError> {
        let unusable = |problem: String| StateError::Unusable { path: path.to_owned(), problem };
        let read = |error| StateError::Read { path: path.to_owned(), error };
        let mut file = input::open(path).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidInput => unusable(error.to_string()),
            _ => read(error),
        })?;
        let len = file.metadata().map_err(read)?.len();
        let mut head = Vec::with_capacity(HEAD);
        file.by_ref().take(HEAD as u64).read_to_end(&mut head).map_err(read)?;
        let head = Head::decode(&head, len).map_err(unusable)?;
        let (at, size) = head.directory;
        let mut bytes = vec![0; size as usize];
        file.seek(SeekFrom::Start(at)).and_then(|_| file.read_exact(&mut bytes)).map_err(read)?;
        if xxh3_64(&bytes) != head.checksum {
            return Err(unusable(format!(
                "it is damaged: the directory, {size} bytes from byte {at} on, has another checksum"
            )));
        }
        let directory: Directory = serde_json::from_slice(&bytes).map_err(|error| {
            unusable(format!("its directory does not say what this version of the program expects: {error}"))
        })?;
        let opened = StateFile { path: path.to_owned(), directory, digest: head.checksum };
        opened.check_sections(len).map_err(unusable)?;
        Ok(opened)
    }

    fn check_sections(&self, len: u64) -> Result<(), String> {
        for part in self.drives().flat_map(|drive| &drive.parts) {
            let tables = std::iter::once(&part.tags).chain(part.page.iter().map(|(map, _)| map));
            let others = [&part.cells, &part.data].into_iter().chain(part.page.iter().map(|(_, tables)| tables));
            let are_whole = tables.clone().all(|table| table.bytes.is_multiple_of(ENTRY));
            let are_there = tables.chain(others).all(|section| section.end().is_some_and(|end| end <= len));
            if !are_there || !are_whole {
                return Err(format!("its directory has sections that are not in its {len} bytes"));
            }
        }
        match self.held().iter().all(|section| section.end().is_some_and(|end| end <= len)) {
            true => Ok(()),
            false => Err(format!("its directory has sections of layers that are not in its {len} bytes")),
        }
    }

    fn drives(&self) -> impl Iterator<Item = &DriveEntry> {
        std::iter::once(&self.directory.drive).chain(&self.directory.others)
    }

    /// What each layer held.
    fn held(&self) -> &[Section] {
        self.directory.layers.as_ref().map_or(&[], |layers| &layers.held)
    }

    /// The layers over its drives; `None` of a drive without any.
    pub fn chain(&self) -> Option<&Chain> {
        self.directory.layers.as_ref().map(|layers| &layers.chain)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A digest of the whole content.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// How the state came about.
    pub fn history(&self) -> &History {
        &self.directory.history
    }

    /// Whether the host's data is in it.
    pub fn keeps_data(&self) -> bool {
        self.drives().any(|drive| drive.keeps_data)
    }

    /// Notes on choices in which the drive, or the first one, differs from its written profile.
    pub fn notes(&self) -> &[String] {
        &self.directory.drive.notes
    }

    /// The resolved profile of the drive, or of the first one.
    ///
    /// # Errors
    /// When it is not valid in this version of the program.
    pub fn profile(&self) -> Result<Profile, StateError> {
        self.profile_of(&self.directory.drive)
    }

    /// The same of each drive.
    ///
    /// # Errors
    /// As [`StateFile::profile`].
    pub fn profiles(&self) -> Result<Vec<Profile>, StateError> {
        self.drives().map(|drive| self.profile_of(drive)).collect()
    }

    fn profile_of(&self, drive: &DriveEntry) -> Result<Profile, StateError> {
        let name = &drive.profile_name;
        let parsed = Profile::parse(name, &drive.profile);
        let keys = parsed.map_err(|error| self.unusable(format!("its profile is not valid any more: {error}")))?.keys;
        Ok(Profile::of_keys(name, keys))
    }

    /// Whether the state is one of a drive of this profile, without layers.
    ///
    /// # Errors
    /// The first key that differs and must not, or the layers.
    pub fn check_fits(&self, profile: &Resolved) -> Result<(), StateError> {
        self.check_fits_layers(&[], &[profile])
    }

    /// Whether the state is one of drives of these profiles under these layers. Block layers and caches may differ: data lies where
    /// arrays place it.
    ///
    /// # Errors
    /// The first key that differs and must not, or the layers of both.
    pub fn check_fits_layers(&self, layers: &[Named], profiles: &[&Resolved]) -> Result<(), StateError> {
        let own = self.layers()?;
        let placed = |layers: &[Named]| chain::structure(layers, |one| one.layer.layout());
        if chain::layout(&own) == chain::layout(layers) && placed(&own) != placed(layers) {
            return Err(
                self.unusable("it is of a tree whose arrays lie over other drives; over= names the drives".to_owned())
            );
        }
        if chain::layout(&own) != chain::layout(layers) {
            let words = |layers: &[Named]| match chain::layout(layers) {
                arrays if arrays.is_empty() => "no array or ftl".to_owned(),
                arrays => arrays.join(", then "),
            };
            return Err(self.unusable(format!(
                "it is of drives under other layers: it has {}, and the run has {}; a state fits layers with the same arrays, and ftl \
                 below them or not",
                words(&own),
                words(layers)
            )));
        }
        let (has, wanted) = (self.drives().count(), profiles.len());
        if has != wanted {
            return Err(self.unusable(format!("it is of {has} drives, and the run has {wanted}")));
        }
        for (drive, profile) in self.drives().zip(profiles) {
            let fits = profile.check_saved(&self.profile_of(drive)?.keys);
            fits.map_err(|problem| self.unusable(format!("it is of another drive: {problem}")))?;
        }
        Ok(())
    }

    fn layers(&self) -> Result<Vec<Named>, StateError> {
        let resolved = self.chain().map_or(Ok(Vec::new()), Chain::resolve);
        resolved.map_err(|problem| self.unusable(format!("its layers are not valid any more: {problem}")))
    }

    /// What the layers of a run hold, in the order in which layers are opened: nothing, unless the state has layers of the same
    /// kinds in the same order over the same drives. FTLs of the host over the drives continue in any case: their drives hold their data.
    ///
    /// # Errors
    /// When the file cannot be read, or is damaged.
    pub fn load_held(&self, layers: &[Named]) -> Result<Vec<Vec<u8>>, StateError> {
        let own = self.layers()?;
        let kinds = |layers: &[Named]| chain::structure(layers, |one| Some(one.layer.kind().to_owned()));
        let count = match (kinds(&own) == kinds(layers), chain::is_over_chunks(&own) && chain::is_over_chunks(layers)) {
            (true, _) => self.held().len(),
            (false, true) => self.drives().count().min(self.held().len()),
            (false, false) => 0,
        };
        let sections = &self.held()[..count];
        let mut held: Vec<Vec<u8>> = sections.iter().map(|section| vec![0; section.bytes as usize]).collect();
        let mut chunks = Vec::new();
        for (held, section) in held.iter_mut().zip(sections) {
            add_chunks(&mut chunks, "what a layer holds", section, held);
        }
        self.fill(chunks)?;
        Ok(held)
    }

    /// Reads the state of the drive, or of the first one.
    ///
    /// # Errors
    /// When the file cannot be read, or is damaged.
    pub fn load(&self) -> Result<SavedDrive, StateError> {
        self.load_drive(&self.directory.drive)
    }

    /// Reads the states of all drives.
    ///
    /// # Errors
    /// As [`StateFile::load`].
    pub fn load_all(&self) -> Result<Vec<SavedDrive>, StateError> {
        self.drives().map(|drive| self.load_drive(drive)).collect()
    }

    fn load_drive(&self, drive: &DriveEntry) -> Result<SavedDrive, StateError> {
        let blank = drive.parts.iter().map(|part| self.blank(part));
        let mut parts = blank.collect::<Result<Vec<SavedPart>, StateError>>()?;
        let mut chunks = Vec::new();
        for (part, entry) in parts.iter_mut().zip(&drive.parts) {
            if let (Some(page), Some((map, tables))) = (&mut part.ftl, &entry.page) {
                add_chunks(&mut chunks, "the map", map, page.map.bytes_mut());
                add_chunks(&mut chunks, "tables", tables, &mut page.tables);
            }
            let SavedMedia { tags, cells, data, .. } = &mut part.media;
            add_chunks(&mut chunks, "out-of-band tags", &entry.tags, tags.bytes_mut());
            add_chunks(&mut chunks, "cells", &entry.cells, cells);
            add_chunks(&mut chunks, "data", &entry.data, data);
        }
        self.fill(chunks)?;
        Ok(SavedDrive { parts, is_filled: drive.is_filled })
    }

    /// Memory for a part.
    fn blank(&self, entry: &PartEntry) -> Result<SavedPart, StateError> {
        let table = |section: &Section| {
            let table = Table::new((section.bytes / ENTRY) as usize);
            table.map_err(|error| StateError::Read { path: self.path.clone(), error })
        };
        let bytes = |section: &Section| vec![0; section.bytes as usize];
        let page = entry.page.as_ref().map(|(map, tables)| Ok(SavedFtl { map: table(map)?, tables: bytes(tables) }));
        let [channels, dies_per_channel, planes_per_die, blocks_per_plane, pages_per_block, page_size, unit_size] =
            entry.geometry;
        Ok(SavedPart {
            media: SavedMedia {
                geometry: Counts {
                    channels,
                    dies_per_channel,
                    planes_per_die,
                    blocks_per_plane,
                    pages_per_block,
                    page_size,
                    unit_size,
                },
                tags: table(&entry.tags)?,
                cells: bytes(&entry.cells),
                data: bytes(&entry.data),
            },
            ftl: page.transpose()?,
        })
    }

    /// Reads chunks with several threads.
    fn fill(&self, chunks: Vec<Chunk<'_>>) -> Result<(), StateError> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from).clamp(1, THREADS);
        let threads = threads.min(chunks.len().div_ceil(8)).max(1);
        let queue = Mutex::new(chunks.into_iter());
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(|| self.fill_from(&queue))).collect();
            workers.into_iter().try_for_each(|worker| worker.join().expect("a reader does not panic"))
        })
    }

    fn fill_from<'a>(&self, queue: &Mutex<impl Iterator<Item = Chunk<'a>>>) -> Result<(), StateError> {
        // Each thread has its own position in the file.
        let read = |error| StateError::Read { path: self.path.clone(), error };
        let mut file = input::open(&self.path).map_err(read)?;
        loop {
            let next = queue.lock().expect("a reader does not panic").next();
            let Some(Chunk { section, offset, checksum, to }) = next else { return Ok(()) };
            file.seek(SeekFrom::Start(offset)).and_then(|_| file.read_exact(to)).map_err(read)?;
            if xxh3_64(to) != checksum {
                let end = offset + to.len() as u64;
                return Err(
                    self.unusable(format!("it is damaged: {section}, bytes {offset} to {end}, has another checksum"))
                );
            }
        }
    }

    fn unusable(&self, problem: String) -> StateError {
        StateError::Unusable { path: self.path.clone(), problem }
    }
}

/// Adds the chunks of a section that are not zero.
fn add_chunks<'a>(chunks: &mut Vec<Chunk<'a>>, name: &'static str, section: &Section, to: &'a mut [u8]) {
    let places = (section.offset..).step_by(CHUNK);
    for ((to, checksum), offset) in to.chunks_mut(CHUNK).zip(&section.checksums).zip(places) {
        if let Some(checksum) = *checksum {
            chunks.push(Chunk { section: name, offset, checksum, to });
        }
    }
}
