//! The bytes of a trace: from a file or standard input, compressed or not. Compression is recognised by the first
//! bytes, not by name. An archive is refused with the command that extracts a file.

use std::io::{self, Chain, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use nandscape_files::input;

use crate::error::TraceError;
use crate::recorded;

/// The source of a trace.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    path: PathBuf,
    /// Its name in messages.
    pub(crate) name: String,
    /// Bytes read so far, in all passes.
    read: Arc<AtomicU64>,
    /// It is a recording without its end.
    breaks_off: Arc<AtomicBool>,
}

/// Counts the bytes read.
struct Counted {
    input: Bytes,
    read: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        self.read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// The bytes of a trace, decompressed.
pub(crate) type Bytes = Box<dyn Read + Send>;

impl Origin {
    /// A file, or `-` for standard input.
    pub(crate) fn new(path: &Path) -> Origin {
        let name = if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() };
        Origin { path: path.to_owned(), name, read: Arc::default(), breaks_off: Arc::default() }
    }

    /// The name of the file without its folder.
    pub(crate) fn file_name(&self) -> String {
        match self.path.file_name() {
            Some(name) if name != "-" => name.to_string_lossy().into_owned(),
            _ => self.name.clone(),
        }
    }

    /// Whether it can be read more than once.
    pub(crate) fn is_file(&self) -> bool {
        self.path.is_file()
    }

    /// Whether it is the file at a path.
    pub(crate) fn is_of(&self, path: &Path) -> bool {
        nandscape_files::identity::is_same(&self.path, path)
    }

    /// The share of it that has been read, if its length is known.
    pub(crate) fn share_read(&self) -> Option<f64> {
        let length = std::fs::metadata(&self.path).ok().filter(|file| file.is_file())?.len();
        Some((self.read.load(Ordering::Relaxed) as f64 / length.max(1) as f64).min(1.0))
    }

    /// Whether it is a recording whose end is missing; known once it was read.
    pub(crate) fn breaks_off(&self) -> bool {
        self.breaks_off.load(Ordering::Relaxed)
    }

    /// Its text, from the first byte on.
    pub(crate) fn open(&self) -> Result<Bytes, TraceError> {
        let failed = |error| TraceError::Open { path: self.path.clone(), error };
        let raw: Bytes = match self.path == Path::new("-") {
            true => Box::new(io::stdin()),
            false => Box::new(input::open_stream(&self.path, "trace").map_err(failed)?),
        };
        let read = |error| TraceError::Read { origin: self.name.clone(), line: 0, error };
        self.read.store(0, Ordering::Relaxed);
        let raw = Box::new(Counted { input: raw, read: self.read.clone() });
        let (head, raw) = peek(raw).map_err(read)?;
        let (head, plain) = peek(decompressed(&head, raw).map_err(read)?).map_err(read)?;
        match archive(&head) {
            Some(problem) => Err(TraceError::unusable(&self.name, problem)),
            None if recorded::is_one(&head) => {
                let text = recorded::Text::of(&self.name, Box::new(plain), self.breaks_off.clone());
                Ok(Box::new(text.map_err(|error| TraceError::Recording { error })?))
            }
            None => Ok(Box::new(plain)),
        }
    }
}

/// The bytes examined to recognise a file: the signature of tar is at byte 257.
const HEAD: usize = 512;

/// A stream whose first bytes have been examined.
type Peeked = Chain<Cursor<Vec<u8>>, Bytes>;

/// The first bytes, and the whole stream.
fn peek(mut input: Bytes) -> io::Result<(Vec<u8>, Peeked)> {
    let mut head = Vec::with_capacity(HEAD);
    input.by_ref().take(HEAD as u64).read_to_end(&mut head)?;
    Ok((head.clone(), Cursor::new(head).chain(input)))
}

fn decompressed(head: &[u8], input: Peeked) -> io::Result<Bytes> {
    Ok(match head {
        [0x1f, 0x8b, ..] => Box::new(flate2::read::MultiGzDecoder::new(input)),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Box::new(zstd::stream::read::Decoder::new(input)?),
        [b'B', b'Z', b'h', b'1'..=b'9', ..] => Box::new(bzip2::read::MultiBzDecoder::new(input)),
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Box::new(lzma_rust2::XzReader::new(input, true)),
        _ => Box::new(input),
    })
}

/// The problem, if this is an archive or not UTF-8.
fn archive(head: &[u8]) -> Option<&'static str> {
    match head {
        _ if head.get(257..262) == Some(b"ustar") => {
            Some("is a tar archive; give one file of it: tar -xOf ARCHIVE FILE | nandscape trace info -")
        }
        [b'P', b'K', 3, 4, ..] => {
            Some("is a zip archive; give one file of it: unzip -p ARCHIVE FILE | nandscape trace info -")
        }
        [b'7', b'z', 0xbc, 0xaf, ..] => Some("is a 7z archive; give one file of it"),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Some("is UTF-16 text; convert it to UTF-8, for example with iconv"),
        _ => None,
    }
}
