//! Arrivals from a host that has its own queues in a controller: register writes and doorbells. Commands and data are
//! in the host's memory. The controller's reads there are accesses (`access`) and not arrivals.
//!
//! Left out: the effect of an arrival, which is [`Port`](crate::Port)'s.

use nandscape_drive::QueueId;

/// An action of a host on its controller.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// A dword of the controller's properties is written (Base 3.1.4): enable, reset and shutdown among others.
    Register {
        /// Its byte offset.
        offset: u32,
        /// The value.
        value: u32,
    },
    /// The submission queue tail doorbell is rung.
    SubmissionTail {
        /// Of which queue.
        queue: QueueId,
        /// The new tail.
        tail: u16,
    },
    /// The completion queue head doorbell is rung.
    CompletionHead {
        /// Of which queue.
        queue: QueueId,
        /// The new head.
        head: u16,
    },
    /// The controller is reset with all its properties, as a reset of its PCI function does (Base 3.7.2).
    Reset,
}

const REGISTER: u8 = 0;
const SUBMISSION_TAIL: u8 = 1;
const COMPLETION_HEAD: u8 = 2;
const RESET: u8 = 3;
/// Bytes of an arrival in a recording.
pub(crate) const BYTES: usize = 9;

impl Arrival {
    /// Its form in a recording: the kind, and two values.
    pub(crate) fn to_bytes(self) -> [u8; BYTES] {
        let (kind, first, second) = match self {
            Arrival::Register { offset, value } => (REGISTER, offset, value),
            Arrival::SubmissionTail { queue, tail } => (SUBMISSION_TAIL, queue.0.into(), tail.into()),
            Arrival::CompletionHead { queue, head } => (COMPLETION_HEAD, queue.0.into(), head.into()),
            Arrival::Reset => (RESET, 0, 0),
        };
        let mut bytes = [kind; BYTES];
        bytes[1..5].copy_from_slice(&first.to_le_bytes());
        bytes[5..].copy_from_slice(&second.to_le_bytes());
        bytes
    }

    /// Back; `None` when the bytes are none.
    pub(crate) fn of_bytes(bytes: [u8; BYTES]) -> Option<Arrival> {
        let [kind, a, b, c, d, second @ ..] = bytes;
        let (first, second) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes(second));
        let doorbell = || Some((QueueId(u16::try_from(first).ok()?), u16::try_from(second).ok()?));
        match kind {
            REGISTER => Some(Arrival::Register { offset: first, value: second }),
            SUBMISSION_TAIL => doorbell().map(|(queue, tail)| Arrival::SubmissionTail { queue, tail }),
            COMPLETION_HEAD => doorbell().map(|(queue, head)| Arrival::CompletionHead { queue, head }),
            RESET if (first, second) == (0, 0) => Some(Arrival::Reset),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back_and_nothing_else_is() {
        let arrivals = [
            Arrival::Register { offset: 0x14, value: 0x0046_0001 },
            Arrival::SubmissionTail { queue: QueueId(7), tail: 0xfffe },
            Arrival::CompletionHead { queue: QueueId(0), head: 3 },
            Arrival::Reset,
        ];
        for arrival in arrivals {
            assert_eq!(Arrival::of_bytes(arrival.to_bytes()), Some(arrival));
        }
        assert_eq!(Arrival::of_bytes([9; BYTES]), None);
        assert_eq!(Arrival::of_bytes([3; BYTES]), None, "a reset has no values");
        assert_eq!(Arrival::of_bytes([1; BYTES]), None, "no queue has such a number");
    }
}
