//! P7-REC (OX table 5.8): what the tables can be rebuilt from, under keys. CHECKPOINT, RECOVER and REPLAY are processes:
//! they live in the FTL that runs them.

/// A key of an entry.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Key(pub u32);

/// Collects the entries of the next checkpoint, or hands out those of the last.
pub trait Checkpoint {
    /// SET: adds an entry, or replaces the one with the key.
    fn set(&mut self, key: Key, value: Vec<u8>);

    /// GET: the entry with a key.
    fn get(&self, key: Key) -> Option<&[u8]>;
}
