//! P7-REC (OX table 5.8): what the tables can be rebuilt from, under keys.
//!
//! | OX | here |
//! |---|---|
//! | INIT, EXIT | the construction of the component and the drop of it |
//! | SET, GET | [`Checkpoint::set`], [`Checkpoint::get`] |
//! | CHECKPOINT | [`Checkpoint::encode`]; the FTL writes tables, log and these bytes in the right order |
//! | RECOVER | [`Checkpoint::recover`]; the FTL reads the bytes |
//! | REPLAY | a process of the FTL, over the records of P6 |

/// A key of an entry.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Key(pub u32);

/// Collects the entries of the next checkpoint, or hands out those of the last.
pub trait Checkpoint {
    /// SET: adds an entry, or replaces the one with the key.
    fn set(&mut self, key: Key, value: Vec<u8>);

    /// GET: the entry with a key.
    fn get(&self, key: Key) -> Option<&[u8]>;

    /// CHECKPOINT: all entries in bytes.
    fn encode(&self) -> Vec<u8>;

    /// RECOVER: takes over what [`Checkpoint::encode`] gave. Returns whether it could be read.
    fn recover(&mut self, bytes: &[u8]) -> bool;
}
