//! A recording's bytes in the file: in chunks, compressed, each with checksums.
//!
//! A chunk is a header of four numbers (u32, little-endian) and its contents. The numbers are the length of the
//! contents; the length of the unpacked contents, with a highest bit that is set if they are packed; the CRC-32 of the
//! contents; and the CRC-32 of the first three numbers and of the chunk's number in the file. A wrong length is
//! therefore detected, and a truncated file can be distinguished from a damaged one.
//!
//! The packed contents of all chunks, one after another, are one Zstandard frame without an end, flushed after each
//! chunk. Bytes of an earlier chunk, within the last [`WINDOW`], are therefore not stored again. Chunks that are not
//! packed do not belong to that frame.

use std::io::{self, Read, Write};

use zstd::stream::raw::{CParameter, DParameter, Decoder, Encoder, InBuffer, Operation, OutBuffer};
use zstd::zstd_safe::compress_bound;

/// Bytes of a chunk at most, unpacked.
const LARGEST: usize = 1 << 20;
/// Bytes of a chunk's header.
const HEADER: usize = 16;
/// Quick. Data that repeats is found by long-distance matching, whatever the level.
const LEVEL: i32 = 1;
/// The logarithm of the bytes among which data that repeats is found: 128 MiB, the most that every Zstandard unpacks. Writer and
/// reader keep so many in memory.
const WINDOW: u32 = 27;
/// The bit of the length that marks a chunk as packed.
const PACKED: u32 = 1 << 31;
/// Bytes by which packed contents can be longer than their unpacked form, beyond the compressor's bound: the frame's
/// header.
const OVERHEAD: usize = 64;

/// Writes chunks.
pub(crate) struct ChunkWriter<W> {
    file: W,
    number: u32,
    packer: Encoder<'static>,
    packed: Vec<u8>,
    /// The next contents to write.
    out: Vec<u8>,
}

impl<W: Write> ChunkWriter<W> {
    /// Writes to `file` from its first chunk on, which `before` precedes.
    ///
    /// # Errors
    /// When there is no memory to compress with.
    pub(crate) fn new(file: W, before: &[u8]) -> io::Result<ChunkWriter<W>> {
        let mut packer = Encoder::new(LEVEL)?;
        packer.set_parameter(CParameter::WindowLog(WINDOW))?;
        packer.set_parameter(CParameter::EnableLongDistanceMatching(true))?;
        let packed = Vec::with_capacity(compress_bound(LARGEST) + OVERHEAD);
        Ok(ChunkWriter { file, number: 0, packer, packed, out: before.to_vec() })
    }

    /// Writes bytes, in as many chunks as needed; uncompressed if the writer is behind.
    ///
    /// # Errors
    /// Those of the file.
    pub(crate) fn write(&mut self, bytes: &[u8], in_haste: bool) -> io::Result<()> {
        for part in bytes.chunks(LARGEST) {
            if !in_haste {
                self.pack(part)?;
            }
            let (contents, flag) = if in_haste { (part, 0) } else { (&self.packed[..], PACKED) };
            self.out.extend_from_slice(&header(contents, part.len() as u32 | flag, self.number));
            self.out.extend_from_slice(contents);
            self.file.write_all(&self.out)?;
            self.out.clear();
            self.number = self.number.wrapping_add(1);
        }
        Ok(())
    }

    /// Packs a part such that the reader can unpack all of it from this chunk and earlier ones.
    fn pack(&mut self, part: &[u8]) -> io::Result<()> {
        let (mut from, mut to) = (InBuffer::around(part), OutBuffer::around(&mut self.packed));
        while from.pos < part.len() {
            self.packer.run(&mut from, &mut to)?;
        }
        match self.packer.flush(&mut to)? {
            0 => Ok(()),
            _ => Err(io::Error::other("packed bytes are longer than the compressor said")),
        }
    }
}

fn header(contents: &[u8], unpacked: u32, number: u32) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    let numbers = [contents.len() as u32, unpacked, crc32fast::hash(contents)];
    numbers.iter().zip(header.chunks_mut(4)).for_each(|(number, bytes)| bytes.copy_from_slice(&number.to_le_bytes()));
    let check = header_check(&header, number).to_le_bytes();
    header[HEADER - 4..].copy_from_slice(&check);
    header
}

fn header_check(header: &[u8; HEADER], number: u32) -> u32 {
    let mut check = crc32fast::Hasher::new();
    check.update(&header[..HEADER - 4]);
    check.update(&number.to_le_bytes());
    check.finalize()
}

/// Why there are no more bytes.
#[derive(Debug)]
pub(crate) enum ChunkError {
    /// The file ends inside a chunk, or between two although more should follow.
    Torn,
    /// The problem with the chunk.
    Damaged(&'static str),
    /// The file cannot be read.
    File(io::Error),
}

/// Reads them.
pub(crate) struct ChunkReader<R> {
    file: R,
    /// Chunks read.
    number: u32,
    /// The beginning of the current chunk, in bytes after the file's head, which precedes the chunks.
    offset: u64,
    /// The beginning of the next chunk.
    next: u64,
    bytes: Vec<u8>,
    /// Bytes of it that were returned.
    given: usize,
    unpacker: Decoder<'static>,
}

impl<R: Read> ChunkReader<R> {
    /// Reads from `file`, of which `offset` bytes were read.
    ///
    /// # Errors
    /// When there is no memory to unpack with.
    pub(crate) fn new(file: R, offset: u64) -> io::Result<ChunkReader<R>> {
        let mut unpacker = Decoder::new()?;
        unpacker.set_parameter(DParameter::WindowLogMax(WINDOW))?;
        Ok(ChunkReader { file, number: 0, offset, next: offset, bytes: Vec::new(), given: 0, unpacker })
    }

    /// The beginning of the chunk of the last byte, or of the chunk that could not be read.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Whether all bytes were returned and the file ends here.
    pub(crate) fn is_at_end(&mut self) -> Result<bool, ChunkError> {
        Ok(self.given == self.bytes.len() && !self.next_chunk()?)
    }

    /// Fills `bytes` with the next ones.
    pub(crate) fn fill(&mut self, mut bytes: &mut [u8]) -> Result<(), ChunkError> {
        while !bytes.is_empty() {
            if self.given == self.bytes.len() && !self.next_chunk()? {
                return Err(ChunkError::Torn);
            }
            let now = bytes.len().min(self.bytes.len() - self.given);
            bytes[..now].copy_from_slice(&self.bytes[self.given..self.given + now]);
            self.given += now;
            bytes = &mut bytes[now..];
        }
        Ok(())
    }

    /// Reads a chunk, unless the file ends here.
    fn next_chunk(&mut self) -> Result<bool, ChunkError> {
        self.offset = self.next;
        let mut header = [0; HEADER];
        match read_up_to(&mut self.file, &mut header)? {
            0 => return Ok(false),
            HEADER => {}
            _ => return Err(ChunkError::Torn),
        }
        let number = |index: usize| u32::from_le_bytes(*header[4 * index..].first_chunk().expect("four numbers"));
        if number(3) != header_check(&header, self.number) {
            return Err(ChunkError::Damaged("the checksum of its header is wrong"));
        }
        let (len, unpacked, is_packed) = (number(0) as usize, (number(1) & !PACKED) as usize, number(1) & PACKED != 0);
        let fits = if is_packed { len <= compress_bound(unpacked) + OVERHEAD } else { len == unpacked };
        if unpacked == 0 || unpacked > LARGEST || len == 0 || !fits {
            return Err(ChunkError::Damaged("its length is not that of a chunk"));
        }
        let mut contents = vec![0; len];
        if read_up_to(&mut self.file, &mut contents)? < len {
            return Err(ChunkError::Torn);
        }
        if number(2) != crc32fast::hash(&contents) {
            return Err(ChunkError::Damaged("its checksum is wrong"));
        }
        self.bytes = match is_packed {
            false => contents,
            true => self.unpack(&contents, unpacked).ok_or(ChunkError::Damaged("it cannot be unpacked"))?,
        };
        self.given = 0;
        self.number = self.number.wrapping_add(1);
        self.next += (HEADER + len) as u64;
        Ok(true)
    }

    /// Unpacks contents; `None` if the result does not have this many bytes.
    fn unpack(&mut self, contents: &[u8], unpacked: usize) -> Option<Vec<u8>> {
        let mut bytes = Vec::with_capacity(unpacked);
        let (mut from, mut to) = (InBuffer::around(contents), OutBuffer::around(&mut bytes));
        loop {
            let before = (from.pos, to.pos());
            self.unpacker.run(&mut from, &mut to).ok()?;
            if before == (from.pos, to.pos()) {
                break;
            }
        }
        let is_whole = from.pos == contents.len() && to.pos() == unpacked;
        is_whole.then_some(bytes)
    }
}

/// Bytes read: fewer than `bytes` has only at the end of the file.
fn read_up_to(file: &mut impl Read, bytes: &mut [u8]) -> Result<usize, ChunkError> {
    let mut done = 0;
    while done < bytes.len() {
        match file.read(&mut bytes[done..]) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(ChunkError::File(error)),
        }
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that repeat, and bytes that do not.
    fn sample() -> Vec<u8> {
        let noise = (0u32..40_000).flat_map(|number| crc32fast::hash(&number.to_le_bytes()).to_le_bytes());
        b"again and again ".repeat(100_000).into_iter().chain(noise).collect()
    }

    fn written(in_haste: bool) -> Vec<u8> {
        let mut file = Vec::new();
        let mut writer = ChunkWriter::new(&mut file, &[]).unwrap();
        sample().chunks(300_000).for_each(|part| writer.write(part, in_haste).unwrap());
        file
    }

    fn read(file: &[u8]) -> (Vec<u8>, Option<ChunkError>) {
        let mut reader = ChunkReader::new(file, 0).unwrap();
        let (mut bytes, mut part) = (Vec::new(), [0; 1_000]);
        loop {
            match reader.is_at_end().and_then(|end| if end { Ok(true) } else { reader.fill(&mut part).map(|()| false) })
            {
                Ok(true) => return (bytes, None),
                Ok(false) => bytes.extend_from_slice(&part),
                Err(error) => return (bytes, Some(error)),
            }
        }
    }

    #[test]
    fn what_is_written_is_read_and_what_repeats_takes_little_room() {
        for in_haste in [false, true] {
            let file = written(in_haste);
            let (bytes, error) = read(&file);
            assert!(error.is_none() && bytes == sample());
            assert_eq!(file.len() < 200_000, !in_haste);
        }
    }

    /// Random data repeated many chunks later, also with unpacked chunks in between.
    #[test]
    fn data_that_comes_again_much_later_takes_no_room() {
        let noise = |from: u32, words: u32| -> Vec<u8> {
            (from..from + words).flat_map(|number| crc32fast::hash(&number.to_le_bytes()).to_le_bytes()).collect()
        };
        let (repeated, between) = (noise(0, 1 << 18), noise(1 << 20, 1 << 20));
        let parts = [(&repeated, false), (&between, false), (&between, true), (&repeated, false)];
        let mut file = Vec::new();
        let mut writer = ChunkWriter::new(&mut file, &[]).unwrap();
        parts.iter().for_each(|(part, in_haste)| writer.write(part, *in_haste).unwrap());
        assert!(file.len() < repeated.len() + 2 * between.len() + 100_000, "{} bytes", file.len());
        let expected = parts.iter().flat_map(|(part, _)| part.iter().copied());
        let mut reader = ChunkReader::new(&file[..], 0).unwrap();
        let mut bytes = vec![0; parts.iter().map(|(part, _)| part.len()).sum()];
        reader.fill(&mut bytes).unwrap();
        assert!(bytes.iter().copied().eq(expected) && reader.is_at_end().unwrap());
    }

    #[test]
    fn a_file_cut_short_is_torn_and_a_changed_byte_is_damage() {
        let file = written(false);
        let whole = sample();
        for len in (0..file.len()).step_by(997).chain(1..40) {
            let (bytes, error) = read(&file[..len]);
            assert!(whole.starts_with(&bytes) && matches!(error, None | Some(ChunkError::Torn)), "{len}: {error:?}");
            let mut damaged = file.clone();
            damaged[len] ^= 0x10;
            let (bytes, error) = read(&damaged);
            assert!(whole.starts_with(&bytes) && matches!(error, Some(ChunkError::Damaged(_))), "{len}: {error:?}");
        }
    }
}
