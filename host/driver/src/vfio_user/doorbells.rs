//! The three ways of a doorbell: into a page that the server polls, by a message, or into the driver's own buffer,
//! with a message if the event index requires one (Base B.5).

use std::io;
use std::rc::Rc;
use std::sync::atomic::{Ordering, fence};

use nandscape_drive::mem::Mapping;

use super::memory::SharedMemory;
use super::messages::Messages;

/// The beginning of the doorbells in BAR0 (Base 3.1.4, "SQ0TDBL").
pub(super) const DOORBELLS: u64 = 0x1000;

/// Buffers of doorbells and of event indexes, by address.
#[derive(Copy, Clone)]
pub(super) struct Buffers {
    pub(super) shadow: u64,
    pub(super) events: u64,
}

/// The doorbells of a function.
pub(super) struct Doorbells {
    pub(super) messages: Rc<Messages>,
    pub(super) memory: Rc<SharedMemory>,
    /// The page, if it can be mapped.
    pub(super) page: Option<Rc<Mapping>>,
    /// The buffers, for I/O queues after Doorbell Buffer Config.
    pub(super) buffers: Option<Buffers>,
}

impl Doorbells {
    /// Rings a doorbell by its offset among all of them; `before` is its value so far.
    #[inline]
    pub(super) fn ring(&self, offset: u64, before: u16, value: u16) -> io::Result<()> {
        if let Some(buffers) = self.buffers {
            self.memory.store(buffers.shadow + offset, value.into())?;
            // The server writes an event index and then reads the buffer: at least one side sees the other's write.
            fence(Ordering::SeqCst);
            let event = self.memory.load(buffers.events + offset)? as u16;
            if !asks(event, before, value) {
                return Ok(());
            }
        }
        match &self.page {
            Some(page) => page.store(offset as usize, value.into()),
            None => self.messages.post(DOORBELLS + offset, value.into()),
        }
    }
}

/// Whether a doorbell's change from `before` to `value` passes the event index.
fn asks(event: u16, before: u16, value: u16) -> bool {
    value.wrapping_sub(event).wrapping_sub(1) < value.wrapping_sub(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_asked_for_when_the_event_index_is_passed() {
        for (event, before, value, wanted) in [
            (5, 5, 6, true),
            (5, 6, 7, false),
            (5, 4, 5, false),
            (5, 4, 6, true),
            (0, 0, 1, true),
            (14, 15, 0, false),
            (15, 15, 0, true),
        ] {
            assert_eq!(asks(event, before, value), wanted, "{event}: {before} to {value}");
        }
    }
}
