//! What a host knows of the room in a drive's write buffer: the count of the last completion, less its own writes in flight (Shin 4.3.2).
//!
//! With one command at a time the count is exact. With several, the buffer may have been filled or drained since.

use std::cell::Cell;

/// See the file.
#[derive(Default)]
pub struct BufferAccount {
    /// Free slots by the last completion; `None` before it.
    free: Cell<Option<u32>>,
    /// Mapping units of writes in flight.
    in_flight: Cell<u32>,
}

impl BufferAccount {
    /// A write of mapping units is submitted. Whether it will find room; `None` before the first completion.
    pub fn submitted(&self, units: u32) -> Option<bool> {
        let taken = self.in_flight.get() + units;
        self.in_flight.set(taken);
        self.free.get().map(|free| free >= taken)
    }

    /// A command has ended, which had submitted mapping units; `free` is the drive's count, if it came with one.
    pub fn completed(&self, units: u32, free: Option<u32>) {
        self.in_flight.set(self.in_flight.get().saturating_sub(units));
        self.free.set(free.or(self.free.get()));
    }
}
