//! Bytes as numbers and choices. Missing bytes at the end are zero.

/// The rest of an input.
#[derive(Clone, Debug)]
pub struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    /// All of it.
    pub fn new(bytes: &'a [u8]) -> Input<'a> {
        Input(bytes)
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Up to `len` bytes.
    pub fn take(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// All that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    /// A byte.
    pub fn byte(&mut self) -> u8 {
        self.array::<1>()[0]
    }

    /// A number below `bound`, which is at most 256.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::from(self.byte()) % bound
    }

    /// One of `all`.
    pub fn choose<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    /// Bytes, filled up with zeros.
    pub fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut array = [0; N];
        let taken = self.take(N);
        array[..taken.len()].copy_from_slice(taken);
        array
    }

    /// A number of any size in one byte or a few: small ones, wide ones, powers of two, and the largest.
    pub fn number(&mut self) -> u64 {
        let first = self.byte();
        let low = u64::from(first & 0x1f);
        match first {
            0..0x80 => first.into(),
            0x80..0xa0 => u16::from_le_bytes(self.array()).into(),
            0xa0..0xc0 => u32::from_le_bytes(self.array()).into(),
            0xc0..0xd0 => u64::from_le_bytes(self.array()),
            0xd0..0xe0 => u64::MAX - (low & 0xf),
            0xe0.. => 1u64 << (low * 2),
        }
    }

    /// A number of 32 bits. Upper bits beyond 32 are lost, so that one byte can encode `u32::MAX`.
    pub fn number32(&mut self) -> u32 {
        self.number() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_zero() {
        let mut input = Input::new(&[0x81, 7]);
        assert_eq!((input.number(), input.number(), input.byte()), (7, 0, 0));
        assert!(input.is_empty() && input.take(5).is_empty());
    }

    #[test]
    fn numbers_of_all_sizes_have_short_forms() {
        let number = |bytes: &[u8]| Input::new(bytes).number();
        assert_eq!((number(&[0x7f]), number(&[0x80, 1, 2]), number(&[0xd1])), (0x7f, 0x201, u64::MAX - 1));
        assert_eq!((number(&[0xe6]), number(&[0xa0, 0, 0, 0, 1])), (1 << 12, 1 << 24));
        assert_eq!(Input::new(&[0xd0]).number32(), u32::MAX);
    }
}
