//! Wires, and the packets of messages on them.

use std::cell::Cell;

use nandscape_sim::units::Rate;
use nandscape_sim::{Span, Time};

/// Bytes of data in a packet of 1,500 bytes with headers of IP and TCP with its time stamps.
pub(crate) const SEGMENT: u64 = 1_448;
/// Bytes of a packet beyond its data: these headers, that of Ethernet with its checksum, preamble and gap.
pub(crate) const AROUND_SEGMENT: u64 = 52 + 38;

/// Packets of a message.
pub(crate) fn packets(bytes: u64) -> u64 {
    bytes.div_ceil(SEGMENT).max(1)
}

/// Bytes of a message on the wire.
pub fn on_wire(bytes: u64) -> u64 {
    bytes + packets(bytes) * AROUND_SEGMENT
}

/// One direction of a link: messages pass it first come, first served.
pub struct Wire {
    rate: Rate,
    free: Cell<Time>,
    carried: Cell<Span>,
}

impl Wire {
    /// A wire that is free.
    pub fn new(rate: Rate) -> Wire {
        Wire { rate, free: Cell::new(Time::ZERO), carried: Cell::new(Span::ZERO) }
    }

    /// Puts bytes on it, after all that was put there before. Returns when the last one has passed.
    pub fn put(&self, now: Time, bytes: u64) -> Time {
        let span = self.rate.time_for(bytes);
        self.carried.set(self.carried.get() + span);
        self.free.set(self.free.get().max(now) + span);
        self.free.get()
    }

    /// The time that it was sending.
    pub(crate) fn carried(&self) -> Span {
        self.carried.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_on_the_wire_have_their_headers() {
        assert_eq!([0, 30, 1_448, 1_449].map(on_wire), [90, 120, 1_538, 1_629]);
    }
}
