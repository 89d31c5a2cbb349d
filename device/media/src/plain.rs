//! Numbers as bytes, the lowest byte first: the form in which a drive's small tables are saved.
//!
//! Left out: the meaning of the numbers, which the reader and the writer of a table share.

use std::fmt;

/// Writes numbers one after the other.
#[derive(Default, Debug)]
pub struct Writer(Vec<u8>);

impl Writer {
    /// A byte.
    pub fn byte(&mut self, value: u8) {
        self.0.push(value);
    }

    /// A number of four bytes.
    pub fn word(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// A number of eight bytes.
    pub fn long(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// A count, to be followed by as many items.
    pub fn count(&mut self, count: usize) {
        self.long(count as u64);
    }

    /// Bytes with their count.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.0.extend_from_slice(bytes);
    }

    /// Numbers of four bytes with their count.
    pub fn words(&mut self, values: &[u32]) {
        self.count(values.len());
        values.iter().for_each(|value| self.word(*value));
    }

    /// Numbers of eight bytes with their count.
    pub fn longs(&mut self, values: &[u64]) {
        self.count(values.len());
        values.iter().for_each(|value| self.long(*value));
    }

    /// The written values.
    pub fn finish(self) -> Vec<u8> {
        self.0
    }
}

/// Reads them again, in the same order.
#[derive(Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// Bytes that differ from the written ones.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Malformed {
    /// Where, in bytes from the beginning.
    pub at: usize,
    /// The problem.
    pub problem: String,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.problem, self.at)
    }
}

impl<'a> Reader<'a> {
    /// Reads from the beginning.
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes, at: 0 }
    }

    /// An error at this place.
    pub fn malformed(&self, problem: impl Into<String>) -> Malformed {
        Malformed { at: self.at, problem: problem.into() }
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let end = self.at.checked_add(count).filter(|end| *end <= self.bytes.len());
        let Some(end) = end else { return Err(self.malformed(format!("it ends before {count} more bytes"))) };
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    /// A byte.
    ///
    /// # Errors
    /// At the end.
    pub fn byte(&mut self) -> Result<u8, Malformed> {
        Ok(self.take(1)?[0])
    }

    /// A number of four bytes.
    ///
    /// # Errors
    /// At the end.
    pub fn word(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_le_bytes(self.take(4)?.try_into().expect("four bytes")))
    }

    /// A number of eight bytes.
    ///
    /// # Errors
    /// At the end.
    pub fn long(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_le_bytes(self.take(8)?.try_into().expect("eight bytes")))
    }

    /// A count of items that take `size` bytes each at least.
    ///
    /// # Errors
    /// When there are not as many.
    pub fn count(&mut self, size: usize) -> Result<usize, Malformed> {
        let count = self.long()?;
        let left = (self.bytes.len() - self.at) as u64;
        match count.checked_mul(size as u64) {
            Some(bytes) if bytes <= left => Ok(count as usize),
            _ => Err(self.malformed(format!("{count} items of {size} bytes are announced, and {left} bytes are left"))),
        }
    }

    /// Bytes with their count.
    ///
    /// # Errors
    /// When there are not as many.
    pub fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let count = self.count(1)?;
        self.take(count)
    }

    /// Numbers of four bytes, of which there must be `count`.
    ///
    /// # Errors
    /// When there are more or fewer.
    pub fn words(&mut self, count: usize) -> Result<Vec<u32>, Malformed> {
        self.expect(count, 4)?;
        let words = self.take(count * 4)?.chunks_exact(4);
        Ok(words.map(|word| u32::from_le_bytes(word.try_into().expect("four bytes"))).collect())
    }

    /// Numbers of eight bytes, of which there must be `count`, as bytes.
    ///
    /// # Errors
    /// When there are more or fewer.
    pub fn longs(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        self.expect(count, 8)?;
        self.take(count * 8)
    }

    fn expect(&mut self, count: usize, size: usize) -> Result<(), Malformed> {
        match self.count(size)? {
            found if found == count => Ok(()),
            found => Err(self.malformed(format!("{found} numbers, where the drive has {count}"))),
        }
    }

    /// Whether nothing is left.
    pub fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// Ends.
    ///
    /// # Errors
    /// When something is left.
    pub fn finish(self) -> Result<(), Malformed> {
        match self.bytes.len() - self.at {
            0 => Ok(()),
            left => Err(self.malformed(format!("{left} bytes too many"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_they_were_written_and_no_others() {
        let mut writer = Writer::default();
        writer.byte(7);
        writer.words(&[1, u32::MAX]);
        writer.longs(&[u64::MAX]);
        writer.bytes(b"data");
        let bytes = writer.finish();
        let read = |bytes: &[u8]| -> Result<(), Malformed> {
            let mut reader = Reader::new(bytes);
            assert_eq!(reader.byte()?, 7);
            assert_eq!(reader.words(2)?, [1, u32::MAX]);
            assert_eq!(reader.longs(1)?, u64::MAX.to_le_bytes());
            assert_eq!(reader.bytes()?, b"data");
            reader.finish()
        };
        assert_eq!(read(&bytes), Ok(()));
        (1..bytes.len()).for_each(|len| assert!(read(&bytes[..len]).is_err(), "{len} bytes"));
        assert_eq!(Reader::new(&[0xff; 8]).count(8).unwrap_err().at, 8, "a count beyond all memory");
        assert!(Reader::new(&bytes[1..]).words(3).unwrap_err().problem.contains("the drive has 3"));
    }
}
