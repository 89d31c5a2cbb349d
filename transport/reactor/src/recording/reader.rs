//! Reads a recording.

use std::io::{self, BufReader, Read};
use std::path::Path;

use super::record::{Context, HEADER, Record, parse};
use super::{MAGIC, MAX_BODY, RecordingError, VERSION};
use crate::chunks::{ChunkError, ChunkReader};

/// Reads a recording.
pub struct Reader {
    path: String,
    chunks: ChunkReader<Box<dyn Read + Send>>,
    header: String,
    number: u64,
    context: Context,
}

impl Reader {
    /// Opens a recording.
    ///
    /// # Errors
    /// When it cannot be read or is not one.
    pub fn open(path: &Path) -> Result<Reader, RecordingError> {
        let name = path.display().to_string();
        let file =
            nandscape_files::input::open(path).map_err(|error| RecordingError::File { path: name.clone(), error })?;
        Reader::of(name, Box::new(BufReader::new(file)))
    }

    /// Reads a recording from bytes; messages call it by this name.
    ///
    /// # Errors
    /// As [`Reader::open`].
    pub fn of(name: String, mut file: Box<dyn Read + Send>) -> Result<Reader, RecordingError> {
        let mut magic = [0; MAGIC.len()];
        match file.read_exact(&mut magic) {
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => {
                return Err(RecordingError::File { path: name, error });
            }
            Ok(()) if magic == MAGIC => {}
            Ok(()) if [&magic[..VERSION], &magic[VERSION + 1..]] == [&MAGIC[..VERSION], &MAGIC[VERSION + 1..]] => {
                return Err(RecordingError::OtherFormat { path: name, found: magic[VERSION].into() });
            }
            _ => return Err(RecordingError::NotOne { path: name }),
        }
        let chunks = ChunkReader::new(file, MAGIC.len() as u64);
        let chunks = chunks.map_err(|error| RecordingError::File { path: name.clone(), error })?;
        let (header, context) = (String::new(), Context::default());
        let mut reader = Reader { path: name, chunks, header, number: 0, context };
        match reader.next_body()? {
            Some((HEADER, body)) => {
                reader.header = String::from_utf8(body).map_err(|_| reader.damaged("the header is not text"))?;
                Ok(reader)
            }
            _ => Err(reader.damaged("the header is missing")),
        }
    }

    /// Bytes of the file before the chunk of the last record.
    pub fn position(&self) -> u64 {
        self.chunks.offset()
    }

    /// The header.
    pub fn header(&self) -> &str {
        &self.header
    }

    /// The next record; `None` at the end of the file.
    ///
    /// # Errors
    /// When the record is damaged or torn.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator could not say that the file was torn and then go on"
    )]
    pub fn next(&mut self) -> Result<Option<Record>, RecordingError> {
        let Some((kind, body)) = self.next_body()? else { return Ok(None) };
        let record = parse(kind, body, &mut self.context).ok_or_else(|| self.damaged("its body is malformed"))?;
        Ok(Some(record))
    }

    fn next_body(&mut self) -> Result<Option<(u8, Vec<u8>)>, RecordingError> {
        if self.chunks.is_at_end().map_err(|error| self.failed(error))? {
            return Ok(None);
        }
        let kind = self.byte()?;
        let mut len = 0;
        for shift in (0..).step_by(7) {
            let byte = self.byte()?;
            len |= usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 || len > MAX_BODY {
                break;
            }
            if shift > 21 {
                return Err(self.damaged("its length is beyond any record's"));
            }
        }
        if len > MAX_BODY {
            return Err(self.damaged("its length is beyond any record's"));
        }
        let mut body = vec![0; len];
        self.fill(&mut body)?;
        self.number += 1;
        Ok(Some((kind, body)))
    }

    fn byte(&mut self) -> Result<u8, RecordingError> {
        let mut byte = [0];
        self.fill(&mut byte)?;
        Ok(byte[0])
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), RecordingError> {
        self.chunks.fill(bytes).map_err(|error| self.failed(error))
    }

    fn failed(&self, error: ChunkError) -> RecordingError {
        let (path, number, offset) = (self.path.clone(), self.number, self.chunks.offset());
        match error {
            ChunkError::Torn => RecordingError::Torn { path, number, offset },
            ChunkError::Damaged(problem) => {
                RecordingError::Damaged { path, number, offset, problem: problem.to_owned() }
            }
            ChunkError::File(error) => RecordingError::File { path, error },
        }
    }

    /// An error about the next record.
    pub(crate) fn damaged(&self, problem: &str) -> RecordingError {
        let (path, number, offset) = (self.path.clone(), self.number, self.chunks.offset());
        RecordingError::Damaged { path, number, offset, problem: problem.to_owned() }
    }

    /// An error about the next record: it is whole, and other drives recorded it.
    pub(crate) fn unfit(&self, problem: String) -> RecordingError {
        RecordingError::Unfit { path: self.path.clone(), number: self.number, problem }
    }
}
