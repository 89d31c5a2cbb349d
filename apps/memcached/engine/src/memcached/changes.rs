//! Changes that both protocols make: stores under a condition, and counters.

use std::rc::Rc;

use super::Server;
use crate::item::{Expect, New, Refused};

/// How an item is stored.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    Set,
    Add,
    Replace,
    Append,
    Prepend,
}

/// What came of a store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Stored {
    /// It has this version now.
    Yes(u64),
    /// The mode's condition does not hold.
    No,
    Refused(Refused),
}

/// A change of a counter.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Step {
    pub(crate) is_up: bool,
    pub(crate) delta: u64,
    /// The version that it must have.
    pub(crate) version: Option<u64>,
    /// When it expires from now on.
    pub(crate) expiry: Option<u64>,
}

/// What came of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Counted {
    /// The number, the version, and when it expires.
    Yes(u64, u64, u64),
    NoNumber,
    Refused(Refused),
}

impl Server {
    /// Stores an item. `version` is what the item that is there must have.
    pub(crate) async fn store(&self, key: &[u8], mode: Mode, version: Option<u64>, new: New) -> Stored {
        self.count(|counters| counters.sets += 1);
        self.prefixes.borrow_mut().set(key);
        let expect = match (mode, version) {
            (Mode::Append | Mode::Prepend, _) => return self.extend(key, mode, version, new.value).await,
            (Mode::Add, _) => Expect::Absent,
            (_, Some(version)) => Expect::Version(version),
            (Mode::Replace, None) => Expect::Present,
            (Mode::Set, None) => Expect::Any,
        };
        let refused = self.engine.put(key, expect, new).await;
        self.count_stored(&refused);
        self.count(|counters| match (&refused, version) {
            (Ok(_), Some(_)) => counters.cas_hits += 1,
            (Err(Refused::Exists), Some(_)) => counters.cas_bad += 1,
            (Err(Refused::NotFound), Some(_)) => counters.cas_misses += 1,
            _ => {}
        });
        match refused {
            Ok(version) => Stored::Yes(version),
            Err(Refused::TooLarge) => {
                if expect == Expect::Any {
                    // memcached, too: a client that failed to store must not find what was there before.
                    let _ = self.engine.delete(key, Expect::Any).await;
                }
                Stored::Refused(Refused::TooLarge)
            }
            Err(Refused::Exists | Refused::NotFound) if version.is_none() || mode == Mode::Add => Stored::No,
            Err(refused) => Stored::Refused(refused),
        }
    }

    /// Counts what came of a put.
    pub(super) fn count_stored(&self, put: &Result<u64, Refused>) {
        self.count(|counters| {
            counters.stored += u64::from(put.is_ok());
            counters.too_large += u64::from(*put == Err(Refused::TooLarge));
        });
    }

    /// Puts a value before or behind that which is there.
    async fn extend(&self, key: &[u8], mode: Mode, version: Option<u64>, more: Rc<[u8]>) -> Stored {
        loop {
            let Some(item) = self.engine.get(key).await else {
                return if version.is_some() { Stored::Refused(Refused::NotFound) } else { Stored::No };
            };
            if version.is_some_and(|version| version != item.version) {
                return Stored::Refused(Refused::Exists);
            }
            let parts: [&[u8]; 2] = if mode == Mode::Append { [&item.value, &more] } else { [&more, &item.value] };
            let new = New { flags: item.flags, expiry: item.expiry, value: parts.concat().into() };
            let put = self.engine.put(key, Expect::Version(item.version), new).await;
            self.count_stored(&put);
            match put {
                Ok(version) => return Stored::Yes(version),
                // Another client was faster: again with what is there now.
                Err(Refused::Exists | Refused::NotFound) => {}
                Err(refused) => return Stored::Refused(refused),
            }
        }
    }

    /// Changes a counter.
    pub(crate) async fn step(&self, key: &[u8], step: Step) -> Counted {
        loop {
            let Some(item) = self.engine.get(key).await else { return Counted::Refused(Refused::NotFound) };
            if step.version.is_some_and(|version| version != item.version) {
                return Counted::Refused(Refused::Exists);
            }
            let Some(number) = number(&item.value) else { return Counted::NoNumber };
            let number = if step.is_up { number.wrapping_add(step.delta) } else { number.saturating_sub(step.delta) };
            let mut value = number.to_string().into_bytes();
            // A number that gets shorter keeps its length, as in memcached.
            value.resize(value.len().max(item.value.len()), b' ');
            let expiry = step.expiry.unwrap_or(item.expiry);
            let new = New { flags: item.flags, expiry, value: value.into() };
            match self.engine.put(key, Expect::Version(item.version), new).await {
                Ok(version) => return Counted::Yes(number, version, expiry),
                Err(Refused::Exists | Refused::NotFound) => {}
                Err(refused) => return Counted::Refused(refused),
            }
        }
    }
}

/// A counter's number, as memcached's `strtoull` finds it: after spaces, and up to the end or the next space.
fn number(value: &[u8]) -> Option<u64> {
    let mut words = value.split(|byte| matches!(byte, b'\t'..=b'\r' | b' '));
    super::line::number(words.find(|word| !word.is_empty())?)
}
