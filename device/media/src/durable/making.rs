//! The file in which a store is created. Its name is that of the store with `.new` appended until the store is
//! complete, so a kill never leaves half a store under the requested name.
//!
//! A file that a killed server left under that name is reused if its content shows that a store is being created in it, or a
//! store that was never used. Any other file is rejected, because it may belong to another program.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nandscape_files::output;

use super::backing::Backing as _;
use super::store_file::{StoreError, StoreFile, lock};

/// The beginning of the file before it has a superblock.
const MAKING: [u8; 8] = *b"NANDMAKE";

/// An empty file for a store that will be at `path`, and its name until then.
///
/// # Errors
/// When it cannot be created, or another file has its name.
pub(super) fn begin(path: &Path) -> Result<(Arc<File>, PathBuf), StoreError> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let new = PathBuf::from(new);
    let mut options = OpenOptions::new();
    let opened = output::check(path).and_then(|()| output::open_with(options.read(true).write(true), &new));
    let file = opened.map_err(|error| match (error.kind(), output::check(&new)) {
        (io::ErrorKind::InvalidInput, Err(_)) => StoreError::NameTaken(new.clone()),
        _ => StoreError::Io(error),
    })?;
    lock(&file)?;
    if !is_left_over(&file)? {
        return Err(StoreError::NameTaken(new));
    }
    file.set_len(0)?;
    file.write_at(0, &MAKING)?;
    Ok((Arc::new(file), new))
}

fn is_left_over(file: &File) -> Result<bool, StoreError> {
    let mut magic = [0; MAKING.len()];
    Ok(match file.len()? {
        0 => true,
        len if len < magic.len() as u64 => false,
        _ => {
            file.read_at(0, &mut magic)?;
            magic == MAKING || StoreFile::is_unused(file)?
        }
    })
}
