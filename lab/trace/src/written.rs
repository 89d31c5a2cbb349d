//! A trace written to a file in another format, compressed when the file's name requires it. The file appears only when
//! it is complete, and replaces only a regular file.

use std::ffi::OsStr;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use nandscape_files::output::Unfinished;

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
    if trace.is_of(path) {
        return Err(no_place(path, "it is the trace that is read; name another file".to_owned()));
    }
    let file = Unfinished::create(path).map_err(|error| no_place(path, error.to_string()))?;
    let (notes, buffer) = packed(trace, to, path, BufWriter::new(Out(file)))?;
    let file = buffer.into_inner().map_err(io::Error::from).map_err(|error| cannot(path, error))?;
    file.0.finish().map_err(|error| cannot(path, error))?;
    Ok(notes)
}

/// The file, as the compressors write to it.
struct Out(Unfinished);

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.file().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.file().flush()
    }
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
