//! Values that tell whose they are, so that every read can be checked: a value is one that was put for its key.
//!
//! A value has its version, a number that follows from key and version, and more of the kind, 8 bytes at a time.
//!
//! Left out: whether a value is the latest one, for which `host/llama` has tests against a map; versions of values of less than 8 bytes.

use nandscape_sim::rng::mix;

/// What was read is not what was put.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{reads} reads are wrong; the first: {first}")]
pub struct Wrong {
    /// Reads that found something wrong.
    pub reads: u64,
    /// What the first of them found.
    pub first: String,
}

/// 8 bytes of a value.
fn word(key: u64, version: u32, place: u64) -> [u8; 8] {
    let number = mix(key ^ u64::from(version).rotate_left(32) ^ place);
    match place {
        0 => (number << 32 | u64::from(version)).to_le_bytes(),
        _ => number.to_le_bytes(),
    }
}

/// A value of a key. Versions differ in 32 bits.
pub(crate) fn value(key: &[u8; 8], version: u64, bytes: usize) -> Vec<u8> {
    let (key, mut value) = (u64::from_be_bytes(*key), vec![0; bytes]);
    for (place, chunk) in value.chunks_mut(8).enumerate() {
        chunk.copy_from_slice(&word(key, version as u32, place as u64)[..chunk.len()]);
    }
    value
}

/// Whether a value is one of its key, as far as its length tells.
fn is_of(key: &[u8; 8], value: &[u8]) -> bool {
    let Some(version) = value.first_chunk() else { return true };
    let (key, version) = (u64::from_be_bytes(*key), u32::from_le_bytes(*version));
    value.chunks(8).enumerate().all(|(place, chunk)| word(key, version, place as u64).starts_with(chunk))
}

/// A read by its key, or of keys from there on.
pub(crate) struct Read {
    pub(crate) key: [u8; 8],
    /// Whether the key is there: its first put has ended.
    pub(crate) is_there: bool,
}

impl Read {
    /// Checks what a get has found.
    pub(crate) fn get(&self, found: Option<&[u8]>, bytes: usize) -> Result<(), String> {
        let number = u64::from_be_bytes(self.key);
        match found {
            None if self.is_there => Err(format!("key {number:016x} was put and is not there")),
            Some(value) if value.len() != bytes => {
                Err(format!("key {number:016x} has {} bytes, and {bytes} were put", value.len()))
            }
            Some(value) if !is_of(&self.key, value) => {
                Err(format!("key {number:016x} has a value that was not put for it"))
            }
            _ => Ok(()),
        }
    }

    /// Checks what a scan of at most `most` keys has found. There may be values of other lengths, of runs before.
    pub(crate) fn scan(&self, most: usize, found: &[(Vec<u8>, Vec<u8>)]) -> Result<(), String> {
        let number = u64::from_be_bytes(self.key);
        if found.len() > most {
            return Err(format!("a scan of {most} keys from {number:016x} on found {}", found.len()));
        }
        let first = found.first().map(|(key, _)| key.as_slice());
        if first.is_some_and(|first| first < &self.key[..]) || self.is_there && first != Some(&self.key[..]) {
            return Err(format!("a scan from {number:016x} on, which is there, begins with {first:02x?}"));
        }
        if !found.is_sorted_by(|(one, _), (next, _)| one < next) {
            return Err(format!("a scan from {number:016x} on is not in the order of keys"));
        }
        let is_right =
            |(key, value): &&(Vec<u8>, Vec<u8>)| key.as_slice().try_into().is_ok_and(|key| is_of(key, value));
        match found.iter().find(|pair| !is_right(pair)) {
            Some((key, _)) => Err(format!("a scan found a value of {key:02x?} that was not put for it")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: [u8; 8] = [3; 8];
    const NEXT: [u8; 8] = [4; 8];

    #[test]
    fn any_changed_byte_of_a_value_and_that_of_another_key_are_noticed() {
        let read = Read { key: KEY, is_there: true };
        for bytes in [8, 15, 16, 1_000] {
            let right = value(&KEY, 7, bytes);
            assert_eq!(read.get(Some(&right), bytes), Ok(()));
            for at in 0..bytes {
                let mut changed = right.clone();
                changed[at] ^= 4;
                assert!(read.get(Some(&changed), bytes).is_err(), "byte {at} of {bytes}");
            }
            assert!(read.get(Some(&value(&NEXT, 7, bytes)), bytes).is_err());
            assert!(read.get(Some(&right[1..]), bytes).is_err());
        }
        assert_ne!(value(&KEY, 7, 100), value(&KEY, 8, 100));
        assert!(read.get(None, 8).is_err());
        assert_eq!(Read { is_there: false, ..read }.get(None, 8), Ok(()), "it is being inserted");
    }

    #[test]
    fn a_scan_has_its_first_key_the_order_and_values_of_its_keys() {
        let read = Read { key: KEY, is_there: true };
        let of = |key: &[u8; 8], of: &[u8; 8]| (key.to_vec(), value(of, 1, 100));
        let right = [of(&KEY, &KEY), of(&NEXT, &NEXT)];
        assert_eq!(read.scan(2, &right), Ok(()));
        for wrong in [
            &[][..],
            &right[1..],
            &[right[1].clone(), right[0].clone()],
            &[right[0].clone(), right[0].clone()],
            &[of(&KEY, &NEXT), right[1].clone()],
            &[right[0].clone(), of(&NEXT, &KEY)],
        ] {
            assert!(read.scan(2, wrong).is_err(), "{wrong:?}");
        }
        assert!(read.scan(1, &right).is_err(), "more than was asked for");
        assert_eq!(Read { is_there: false, ..read }.scan(2, &right[1..]), Ok(()));
    }
}
