//! Little-endian numbers and strings of bytes, read with checks.

/// The rest of some bytes. Reads beyond the end return `None`.
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    /// Bytes.
    pub fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.first_chunk().copied()
    }

    /// A number.
    pub fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// A number.
    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    /// A number.
    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// A number.
    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }
}

/// Bytes that are written one after the other.
pub trait Put {
    /// Appends a number.
    fn u16(&mut self, number: u16);
    /// Appends a number.
    fn u32(&mut self, number: u32);
    /// Appends a number.
    fn u64(&mut self, number: u64);
}

impl Put for Vec<u8> {
    fn u16(&mut self, number: u16) {
        self.extend_from_slice(&number.to_le_bytes());
    }

    fn u32(&mut self, number: u32) {
        self.extend_from_slice(&number.to_le_bytes());
    }

    fn u64(&mut self, number: u64) {
        self.extend_from_slice(&number.to_le_bytes());
    }
}

/// Writes the checksum of all bytes, of which its own place counts as zero.
pub fn seal(bytes: &mut [u8], at: usize) {
    let crc = checksum(bytes, at);
    bytes[at..at + 4].copy_from_slice(&crc.to_le_bytes());
}

/// Whether the bytes agree with the checksum among them.
pub fn is_sealed(bytes: &[u8], at: usize) -> bool {
    let there = bytes.get(at..at + 4).and_then(|crc| crc.first_chunk());
    there.is_some_and(|crc| u32::from_le_bytes(*crc) == checksum(bytes, at))
}

fn checksum(bytes: &[u8], at: usize) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&bytes[..at]);
    crc.update(&[0; 4]);
    crc.update(&bytes[at + 4..]);
    crc.finalize()
}
