//! What clients ask for next, on both clocks: an item of the paper's load, and an operation of YCSB.
//!
//! Left out: requests of a trace ([`CacheTrace`](crate::CacheTrace)).

use nandscape_lab_workload::{Chooser, Mix, Operation};
use nandscape_sim::Rng;

use crate::simulated::Load;
use crate::text::{self, Answer};

/// The next key of a reader of the paper's load.
pub(crate) enum Wanted {
    /// That of an item.
    Item(u64),
    /// One that has no item.
    Absent(u64),
}

impl Load {
    /// Draws it, with `items` items.
    pub(crate) fn wants(&self, rng: &mut Rng, items: u64) -> Wanted {
        match self.absent > 0 && rng.below(100) < self.absent {
            true => Wanted::Absent(items + rng.below(items)),
            false => Wanted::Item(rng.below(items)),
        }
    }
}

/// Clients of a core workload of YCSB: they read and update items.
pub(crate) struct Ycsb {
    mix: Mix,
    chooser: Chooser,
    items: u64,
    value_bytes: usize,
}

/// An operation of YCSB.
#[derive(Copy, Clone)]
pub(crate) struct Drawn {
    pub(crate) item: u64,
    pub(crate) is_read: bool,
}

impl Ycsb {
    /// The clients of a workload, on a number of items.
    ///
    /// # Errors
    /// When YCSB has no such workload.
    pub(crate) fn new(workload: &str, items: u64, value_bytes: usize) -> Result<Ycsb, String> {
        let core = Mix::CORE.iter().find(|(name, _, _)| *name == workload);
        let (_, mix, choice) = core.ok_or_else(|| format!("no workload {workload}"))?;
        Ok(Ycsb { mix: *mix, chooser: Chooser::new(*choice), items, value_bytes })
    }

    /// The key of an item.
    pub(crate) fn key(item: u64) -> String {
        format!("user{item:016}")
    }

    /// The letter of which an item's value is: none ends a line.
    pub(crate) fn letter(item: u64) -> u8 {
        b'a' + (item % 26) as u8
    }

    /// The value of an item.
    pub(crate) fn value(item: u64, bytes: usize) -> Vec<u8> {
        vec![Ycsb::letter(item); bytes]
    }

    /// Draws the next operation.
    pub(crate) fn next(&mut self, rng: &mut Rng) -> Drawn {
        let item = self.chooser.next(rng, self.items, self.items);
        Drawn { item, is_read: self.mix.draw(rng) == Operation::Read }
    }

    /// Its command.
    pub(crate) fn request(&self, drawn: Drawn) -> Vec<u8> {
        if drawn.is_read { text::get(&Ycsb::key(drawn.item)) } else { self.update(drawn.item) }
    }

    /// The command that puts an item.
    pub(crate) fn update(&self, item: u64) -> Vec<u8> {
        text::store("set", &Ycsb::key(item), 0, &Ycsb::value(item, self.value_bytes))
    }

    /// Whether an answer is the one of a store that has all items.
    pub(crate) fn is_right(&self, drawn: Drawn, answer: &Answer<'_>) -> bool {
        match answer {
            Answer::Found { key, value } => {
                drawn.is_read
                    && *key == Ycsb::key(drawn.item).as_bytes()
                    && is_of(value, Ycsb::letter(drawn.item), self.value_bytes)
            }
            answer => !drawn.is_read && *answer == Answer::Done,
        }
    }
}

/// Whether a value has `bytes` bytes, each equal to `mark`.
pub(crate) fn is_of(value: &[u8], mark: u8, bytes: usize) -> bool {
    value.len() == bytes && value.iter().all(|byte| *byte == mark)
}
