//! A Bloom filter: which keys are certainly not in a run. With 10 bits a key about 1 in 100 absent keys passes as
//! present.

use nandscape_sim::rng::mix;

/// Bits that are checked for each key: the best number for 10 bits a key.
const HASHES: u64 = 7;

/// See the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Bloom(Vec<u8>);

/// A key's number in filters.
pub(crate) fn hash(key: &[u8]) -> u64 {
    let part = |hash: u64, chunk: &[u8]| {
        let mut bytes = [0; 8];
        bytes[..chunk.len()].copy_from_slice(chunk);
        mix(hash ^ u64::from_le_bytes(bytes))
    };
    key.chunks(8).fold(key.len() as u64, part)
}

impl Bloom {
    /// A filter of keys, with a number of bits for each.
    pub(crate) fn of(hashes: &[u64], bits_a_key: u32) -> Bloom {
        let bytes = (hashes.len() * bits_a_key as usize).div_ceil(8);
        let mut filter = Bloom(vec![0; bytes]);
        if bytes > 0 {
            hashes.iter().for_each(|hash| filter.bits(*hash).for_each(|bit| filter.0[bit / 8] |= 1 << (bit % 8)));
        }
        filter
    }

    /// A filter that was read.
    pub(crate) fn read(bytes: &[u8]) -> Bloom {
        Bloom(bytes.to_vec())
    }

    /// Its bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn bits(&self, hash: u64) -> impl Iterator<Item = usize> + use<> {
        let (size, step) = (self.0.len() as u64 * 8, mix(hash) | 1);
        (0..HASHES).map(move |number| (hash.wrapping_add(step.wrapping_mul(number)) % size) as usize)
    }

    /// Whether a key may be present. A filter without bits excludes none.
    pub(crate) fn may_have(&self, hash: u64) -> bool {
        self.0.is_empty() || self.bits(hash).all(|bit| self.0[bit / 8] & 1 << (bit % 8) != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_keys_are_found_and_few_others() {
        let keys: Vec<u64> = (0..10_000u64).map(|number| hash(&number.to_be_bytes())).collect();
        let filter = Bloom::of(&keys, 10);
        assert!(keys.iter().all(|key| filter.may_have(*key)));
        let wrong = (10_000..110_000u64).filter(|number| filter.may_have(hash(&number.to_be_bytes()))).count();
        assert!((400..2_000).contains(&wrong), "{wrong} of 100,000 are taken for members, where 0.8 % are expected");
        assert_eq!(Bloom::read(filter.bytes()), filter);
        assert!(Bloom::of(&keys, 0).may_have(7) && Bloom::of(&[], 10).may_have(7));
    }
}
