//! Where the bytes of a trace come from: a file or standard input, compressed or not. Compression is known by the first
//! bytes, whatever the name. An archive is refused with the way to take a file out of it.

use std::fs::File;
use std::io::{self, Chain, Cursor, Read};
use std::path::{Path, PathBuf};

use crate::error::TraceError;

/// A trace's place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Origin {
    path: PathBuf,
    /// What messages call it.
    pub(crate) name: String,
}

/// The bytes of a trace, decompressed.
pub(crate) type Bytes = Box<dyn Read + Send>;

impl Origin {
    /// A file, or `-` for standard input.
    pub(crate) fn new(path: &Path) -> Origin {
        let name = if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() };
        Origin { path: path.to_owned(), name }
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

    /// Its bytes, from the first on.
    pub(crate) fn open(&self) -> Result<Bytes, TraceError> {
        let failed = |error| TraceError::Open { path: self.path.clone(), error };
        let raw: Bytes = match self.path == Path::new("-") {
            true => Box::new(io::stdin()),
            false if self.path.is_dir() => return Err(failed(io::ErrorKind::IsADirectory.into())),
            false => Box::new(File::open(&self.path).map_err(failed)?),
        };
        let read = |error| TraceError::Read { origin: self.name.clone(), line: 0, error };
        let (head, raw) = peek(raw).map_err(read)?;
        let (head, plain) = peek(decompressed(&head, raw).map_err(read)?).map_err(read)?;
        match archive(&head) {
            Some(problem) => Err(TraceError::unusable(&self.name, problem)),
            None => Ok(Box::new(plain)),
        }
    }
}

/// So many bytes tell what it is: an archive's mark lies at byte 257.
const HEAD: usize = 512;

/// Bytes of which the first were looked at.
type Peeked = Chain<Cursor<Vec<u8>>, Bytes>;

/// The first bytes, and all of them.
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

/// What is said of an archive, if this is one.
fn archive(head: &[u8]) -> Option<&'static str> {
    match head {
        _ if head.get(257..262) == Some(b"ustar") => {
            Some("is a tar archive; give one file of it: tar -xOf ARCHIVE FILE | nandscape trace info -")
        }
        [b'P', b'K', 3, 4, ..] => {
            Some("is a zip archive; give one file of it: unzip -p ARCHIVE FILE | nandscape trace info -")
        }
        [b'7', b'z', 0xbc, 0xaf, ..] => Some("is a 7z archive; give one file of it"),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Some("is UTF-16 text; make it UTF-8, for example with iconv"),
        _ => None,
    }
}
