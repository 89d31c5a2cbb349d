//! The mean time that commands take, by direction and by size in powers of two from 512 bytes to 64 KiB.

use std::cell::Cell;

use nandscape_sim::Span;

use super::Submitted;

/// Groups of sizes.
const SIZES: usize = 8;
/// Opcodes: read, write, all others.
const DIRECTIONS: usize = 3;
/// Completions over which a mean moves.
const WEIGHT: u64 = 16;

/// A mean that moves by a sixteenth of the difference at each value.
#[derive(Clone, Default)]
pub(crate) struct Mean(Cell<u64>);

impl Mean {
    /// The mean; `None` without a value.
    pub(crate) fn get(&self) -> Option<Span> {
        let Mean(sum) = self;
        (sum.get() > 0).then(|| Span::from_ns(sum.get() / WEIGHT))
    }

    pub(crate) fn add(&self, value: Span) {
        let Mean(sum) = self;
        sum.set(match sum.get() {
            0 => value.ns().saturating_mul(WEIGHT),
            old => (old - old / WEIGHT).saturating_add(value.ns()),
        });
    }
}

/// See the file.
#[derive(Default)]
pub(crate) struct Means([Mean; SIZES * DIRECTIONS]);

impl Means {
    fn mean(&self, command: &Submitted) -> &Mean {
        let direction = match command.opcode {
            0x02 => 0,
            0x01 => 1,
            _ => 2,
        };
        let size = (command.bytes / 512).max(1).ilog2() as usize;
        &self.0[direction * SIZES + size.min(SIZES - 1)]
    }

    /// The mean of such commands; `None` before the first.
    pub(crate) fn of(&self, command: &Submitted) -> Option<Span> {
        self.mean(command).get()
    }

    pub(crate) fn add(&self, command: &Submitted, took: Span) {
        self.mean(command).add(took);
    }
}
