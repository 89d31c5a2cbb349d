//! A trace written to a file in another format, compressed when the file's name says so. The file appears only when it is complete;
//! a device or a pipe is written directly.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::Path;

use crate::convert::{ConvertError, convert};
use crate::format::Format;
use crate::trace::Trace;

/// Why a trace was not written to a file.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// It could not be converted.
    #[error(transparent)]
    Convert(ConvertError),
    /// There can be no such file.
    #[error("cannot write {path}: {problem}")]
    NoPlace {
        /// The file.
        path: String,
        /// Why.
        problem: String,
    },
    /// It could not be written.
    #[error("cannot write {path}: {error}")]
    Write {
        /// The file.
        path: String,
        /// Why.
        error: io::Error,
    },
}

/// Writes a trace to a file in a format: compressed if the name ends in `.gz`, `.zst` or `.bz2`. Returns notes on the changes.
///
/// # Errors
/// See [`WriteError`].
pub fn convert_to_file(trace: &Trace, to: Format, path: &Path) -> Result<Vec<String>, WriteError> {
    // Keep a link, and replace its target.
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    match target.metadata() {
        Ok(found) if !found.is_file() => {
            let device = File::options().write(true).open(&target);
            let device = device.map_err(|error| no_place(path, error.to_string()))?;
            let (notes, mut buffer) = packed(trace, to, path, BufWriter::new(device))?;
            buffer.flush().map_err(|error| cannot(path, error))?;
            Ok(notes)
        }
        _ => to_regular_file(trace, to, &target),
    }
}

/// Writes to a temporary file in the same folder first, so that no partial file is left.
fn to_regular_file(trace: &Trace, to: Format, path: &Path) -> Result<Vec<String>, WriteError> {
    let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    let file = tempfile::Builder::new().prefix(".nandscape").tempfile_in(folder);
    let file = file.map_err(|error| no_place(path, without_name(folder, &error)))?;
    let (notes, buffer) = packed(trace, to, path, BufWriter::new(file))?;
    let cannot = |error| cannot(path, error);
    let file = buffer.into_inner().map_err(io::Error::from).map_err(cannot)?;
    open_to_others(file.as_file()).map_err(cannot)?;
    file.persist(path).map_err(|error| cannot(error.error))?;
    Ok(notes)
}

/// Writes to a file that has a path, and gives it back.
fn packed<F: Write>(trace: &Trace, to: Format, path: &Path, file: F) -> Result<(Vec<String>, F), WriteError> {
    let mut packed = Packed::new(path, file).map_err(|error| cannot(path, error))?;
    let notes = convert(trace, to, packed.writer()).map_err(|error| match error {
        ConvertError::Write(error) => cannot(path, error),
        error => WriteError::Convert(error),
    })?;
    Ok((notes, packed.finish().map_err(|error| cannot(path, error))?))
}

fn cannot(path: &Path, error: io::Error) -> WriteError {
    WriteError::Write { path: path.display().to_string(), error }
}

fn no_place(path: &Path, problem: String) -> WriteError {
    WriteError::NoPlace { path: path.display().to_string(), problem }
}

/// Why there is no temporary file in a folder, without its name.
fn without_name(folder: &Path, error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => format!("there is no folder {}", folder.display()),
        kind => io::Error::from(kind).to_string(),
    }
}

/// Temporary files are private to their owner; give the result the usual permissions.
#[cfg(unix)]
fn open_to_others(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    file.set_permissions(std::fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn open_to_others(_: &File) -> io::Result<()> {
    Ok(())
}

/// A file, compressed according to its name.
enum Packed<F: Write> {
    Plain(F),
    Gzip(flate2::write::GzEncoder<F>),
    Zstd(zstd::stream::write::Encoder<'static, F>),
    Bzip2(bzip2::write::BzEncoder<F>),
}

impl<F: Write> Packed<F> {
    fn new(path: &Path, file: F) -> io::Result<Packed<F>> {
        Ok(match path.extension().and_then(OsStr::to_str) {
            Some("gz") => Packed::Gzip(flate2::write::GzEncoder::new(file, flate2::Compression::default())),
            Some("zst") => {
                let mut packer = zstd::stream::write::Encoder::new(file, 0)?;
                packer.include_checksum(true)?;
                Packed::Zstd(packer)
            }
            Some("bz2") => Packed::Bzip2(bzip2::write::BzEncoder::new(file, bzip2::Compression::default())),
            _ => Packed::Plain(file),
        })
    }

    fn writer(&mut self) -> &mut dyn Write {
        match self {
            Packed::Plain(file) => file,
            Packed::Gzip(file) => file,
            Packed::Zstd(file) => file,
            Packed::Bzip2(file) => file,
        }
    }

    fn finish(self) -> io::Result<F> {
        match self {
            Packed::Plain(file) => Ok(file),
            Packed::Gzip(file) => file.finish(),
            Packed::Zstd(file) => file.finish(),
            Packed::Bzip2(file) => file.finish(),
        }
    }
}
