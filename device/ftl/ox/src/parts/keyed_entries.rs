//! The entries of a checkpoint, by key (OX 6.1.7.1). In bytes, each is its key, its length and its value.

use std::collections::BTreeMap;

use nandscape_device_ftl_core::component::{Checkpoint, Checkpointing, Key, Process, ReplayEnded, Replayed, Replaying};

use super::fuzzy::{fuzzy_checkpoint, replay_in_order};

/// Entries by key.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct KeyedEntries(BTreeMap<u32, Vec<u8>>);

impl KeyedEntries {
    /// The entries of bytes; `None` if they are not entries.
    pub fn decode(mut bytes: &[u8]) -> Option<KeyedEntries> {
        let mut entries = BTreeMap::new();
        while !bytes.is_empty() {
            let (key, rest) = bytes.split_first_chunk()?;
            let (len, rest) = rest.split_first_chunk()?;
            let (value, rest) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
            entries.insert(u32::from_le_bytes(*key), value.to_vec());
            bytes = rest;
        }
        Some(KeyedEntries(entries))
    }
}

impl Checkpoint for KeyedEntries {
    fn set(&mut self, key: Key, value: Vec<u8>) {
        self.0.insert(key.0, value);
    }

    fn get(&self, key: Key) -> Option<&[u8]> {
        self.0.get(&key.0).map(Vec::as_slice)
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (key, value) in &self.0 {
            bytes.extend(key.to_le_bytes());
            bytes.extend((value.len() as u32).to_le_bytes());
            bytes.extend(value);
        }
        bytes
    }

    fn recover(&mut self, bytes: &[u8]) -> bool {
        let entries = KeyedEntries::decode(bytes);
        let is_whole = entries.is_some();
        entries.into_iter().for_each(|entries| *self = entries);
        is_whole
    }

    fn checkpoint<'a>(&'a mut self, ftl: &'a dyn Checkpointing) -> Process<'a> {
        Box::pin(fuzzy_checkpoint(self, ftl))
    }

    fn replay<'a>(&'a self, ftl: &'a dyn Replaying) -> Process<'a, Replayed, ReplayEnded> {
        Box::pin(replay_in_order(ftl))
    }
}

/// Numbers of 8 bytes in a row.
pub fn numbers_to_bytes(numbers: impl IntoIterator<Item = u64>) -> Vec<u8> {
    let numbers = numbers.into_iter();
    let mut bytes = Vec::with_capacity(numbers.size_hint().0 * 8);
    numbers.for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
    bytes
}

/// The numbers of bytes that [`numbers_to_bytes`] gave.
pub fn numbers_of_bytes(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.chunks_exact(8).map(|bytes| u64::from_le_bytes(bytes.try_into().expect("8 bytes")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_as_they_were_written() {
        let mut entries = KeyedEntries::default();
        entries.set(Key(3), vec![1, 2, 3]);
        entries.set(Key(1), numbers_to_bytes([7, u64::MAX]));
        entries.set(Key(3), vec![]);
        let bytes = entries.encode();
        let read = KeyedEntries::decode(&bytes).unwrap();
        assert_eq!(read, entries);
        assert_eq!(numbers_of_bytes(read.get(Key(1)).unwrap()).collect::<Vec<_>>(), [7, u64::MAX]);
        assert_eq!((read.get(Key(3)), read.get(Key(2))), (Some(&[][..]), None));
        assert_eq!(KeyedEntries::decode(&bytes[..bytes.len() - 1]), None);
    }
}
