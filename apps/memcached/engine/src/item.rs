//! Items as users of the engine see them, and what is asked of them.

use std::rc::Rc;

use crate::error::EngineError;

/// An item.
#[derive(Clone, Debug)]
pub struct Item {
    /// What the client wants to know of it.
    pub flags: u32,
    /// When it expires, in seconds since 1970; 0 is never.
    pub expiry: u64,
    /// Its version: unique among all that this store has had.
    pub version: u64,
    /// Its value.
    pub value: Rc<[u8]>,
    /// When it was last asked for before this time, in seconds since 1970.
    pub accessed: u64,
    /// Whether it was asked for before.
    pub is_fetched: bool,
    /// Its marks.
    pub marks: Marks,
}

/// Marks of an item that a client is to renew.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Marks {
    /// It is to be renewed, and may be served until then.
    pub is_stale: bool,
    /// A client knows that it is the one to renew it. Drives may have it without this mark: then another client learns the same after a
    /// restart.
    pub is_won: bool,
}

/// Whether a look at an item counts as an access.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Access {
    /// It does.
    Counts,
    /// The item is as if it had not been looked at.
    Ignored,
}

/// An item that is put.
#[derive(Clone, Debug)]
pub struct New {
    /// What the client wants to know of it.
    pub flags: u32,
    /// When it expires, in seconds since 1970; 0 is never.
    pub expiry: u64,
    /// Its value.
    pub value: Rc<[u8]>,
}

/// What must be so for a change to be made.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Expect {
    /// Nothing.
    Any,
    /// The key has no item.
    Absent,
    /// The key has an item.
    Present,
    /// The key has an item of this version.
    Version(u64),
}

/// Why a change was not made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refused {
    /// The key has an item.
    Exists,
    /// The key has no item.
    NotFound,
    /// Key and value are longer than an item may be.
    TooLarge,
    /// The engine does not serve any more.
    Failed(EngineError),
}

/// The most bytes of a key, as in memcached.
pub const MOST_KEY: usize = 250;
