//! Writes the state of a drive to a file: under a temporary name in the same folder, then renamed. So the file is either complete
//! or unchanged.
//!
//! Left out: waiting for the disk. A loss of power may damage a file that was just written; its checksums detect this.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;

use nandscape_device_ssd::{Resolved, SavedDrive, SavedPart};
use nandscape_files::output::{self, Unfinished};
use xxhash_rust::xxh3::xxh3_64;

use super::directory::{
    ALIGNMENT, CHUNK, Directory, DriveEntry, HEAD, Head, LayersEntry, OF_DRIVE, OF_LAYERS, PartEntry, Section,
};
use super::history::History;
use super::{HeldLayers, StateError};

/// Checks that the file of a state can be written. An existing file stays unchanged.
///
/// # Errors
/// When it cannot.
pub fn check(path: &Path) -> Result<(), StateError> {
    output::check_can_write(path).map_err(|error| StateError::Write { path: path.to_owned(), error })
}

/// What is to be written.
pub(super) struct Contents<'a> {
    pub(super) history: &'a History,
    /// The drives, at least one.
    pub(super) drives: Vec<(&'a Resolved, &'a SavedDrive)>,
    /// The layers over the drives, and the contents of each.
    pub(super) layers: Option<HeldLayers<'a>>,
}

/// Writes a state.
pub(super) fn write(path: &Path, contents: &Contents<'_>) -> Result<(), StateError> {
    let failed = |error: io::Error| StateError::Write { path: path.to_owned(), error };
    let mut file = Unfinished::create(path).map_err(failed)?;
    let written = write_to(file.file(), contents);
    written.and_then(|()| file.finish()).map_err(failed)
}

fn write_to(file: &mut File, contents: &Contents<'_>) -> io::Result<()> {
    let mut at = HEAD as u64;
    let mut drives = Vec::new();
    for (profile, saved) in &contents.drives {
        drives.push(write_drive(file, &mut at, profile, saved)?);
    }
    let layers = match &contents.layers {
        None => None,
        Some((chain, held)) => {
            let held = held.iter().map(|held| write_section(file, &mut at, held)).collect::<io::Result<_>>()?;
            Some(LayersEntry { chain: (*chain).clone(), held })
        }
    };
    let version = if layers.is_some() { OF_LAYERS } else { OF_DRIVE };
    let mut drives = drives.into_iter();
    let drive = drives.next().ok_or_else(|| io::Error::other("a state has a drive"))?;
    let directory = Directory { history: contents.history.clone(), drive, others: drives.collect(), layers };
    let directory = serde_json::to_vec(&directory).map_err(io::Error::other)?;
    file.seek(SeekFrom::Start(at))?;
    file.write_all(&directory)?;
    let head = Head { version, directory: (at, directory.len() as u64), checksum: xxh3_64(&directory) };
    file.seek(SeekFrom::Start(0))?;
    file.write_all(&head.encode())
}

fn write_drive(file: &mut File, at: &mut u64, profile: &Resolved, saved: &SavedDrive) -> io::Result<DriveEntry> {
    let parts = saved.parts.iter().map(|part| write_part(file, at, part)).collect::<io::Result<_>>()?;
    Ok(DriveEntry {
        profile_name: profile.name.clone(),
        profile: profile.to_toml(),
        notes: profile.notes.clone(),
        keeps_data: saved.parts.iter().any(|part| !part.media.data.is_empty()),
        is_filled: saved.is_filled,
        parts,
    })
}

fn write_part(file: &mut File, at: &mut u64, part: &SavedPart) -> io::Result<PartEntry> {
    let counts = part.media.geometry;
    let page = part.ftl.as_ref().map(|page| {
        Ok::<_, io::Error>((write_section(file, at, page.map.bytes())?, write_section(file, at, &page.tables)?))
    });
    Ok(PartEntry {
        geometry: [
            counts.channels,
            counts.dies_per_channel,
            counts.planes_per_die,
            counts.blocks_per_plane,
            counts.pages_per_block,
            counts.page_size,
            counts.unit_size,
        ],
        page: page.transpose()?,
        tags: write_section(file, at, part.media.tags.bytes())?,
        cells: write_section(file, at, &part.media.cells)?,
        data: write_section(file, at, &part.media.data)?,
    })
}

/// Writes a section behind `at`, which then is its end.
fn write_section(file: &mut File, at: &mut u64, bytes: &[u8]) -> io::Result<Section> {
    let offset = at.next_multiple_of(ALIGNMENT);
    let mut checksums = Vec::with_capacity(bytes.len().div_ceil(CHUNK));
    for (chunk, place) in bytes.chunks(CHUNK).zip((offset..).step_by(CHUNK)) {
        let is_zero = chunk.iter().all(|byte| *byte == 0);
        checksums.push((!is_zero).then(|| xxh3_64(chunk)));
        if !is_zero {
            file.seek(SeekFrom::Start(place))?;
            file.write_all(chunk)?;
        }
    }
    *at = offset + bytes.len() as u64;
    Ok(Section { offset, bytes: bytes.len() as u64, checksums })
}
