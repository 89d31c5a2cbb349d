//! The messages between a host and the drive's process over their socket: 32 bytes one way, single bytes the other.

/// Bytes of a page, and of the host's memory.
pub(crate) const PAGE: u64 = 4_096;
pub(crate) const MEMORY: u64 = 256 * PAGE;
/// Queue pairs with a doorbell.
pub(crate) const PAIRS: u16 = 3;

/// A message has had its effect.
pub(crate) const DONE: u8 = 1;
/// It was rejected.
pub(crate) const REFUSED: u8 = 2;
/// The controller is ready, or is not.
pub(crate) const READY: u8 = 4;
pub(crate) const NOT_READY: u8 = 5;
/// An interrupt.
pub(crate) const INTERRUPT: u8 = 3;

/// From the host.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Message {
    /// Look at the doorbells. The only one without an answer.
    Kick,
    /// As `Kick`, with an answer.
    Look,
    /// Write a register.
    Register {
        offset: u32,
        value: u32,
    },
    /// Asks whether Controller Status shows ready; the answer is `READY` or `NOT_READY`.
    Status,
    Map {
        address: u64,
        len: u64,
    },
    Unmap {
        address: u64,
        len: u64,
    },
}

impl Message {
    pub(crate) const LEN: usize = 32;

    pub(crate) fn to_bytes(self) -> [u8; Message::LEN] {
        let words: [u64; 4] = match self {
            Message::Kick => [0, 0, 0, 0],
            Message::Look => [1, 0, 0, 0],
            Message::Register { offset, value } => [2, offset.into(), value.into(), 0],
            Message::Status => [3, 0, 0, 0],
            Message::Map { address, len } => [4, address, len, 0],
            Message::Unmap { address, len } => [5, address, len, 0],
        };
        let mut bytes = [0; Message::LEN];
        bytes.chunks_exact_mut(8).zip(words).for_each(|(bytes, word)| bytes.copy_from_slice(&word.to_le_bytes()));
        bytes
    }

    pub(crate) fn of_bytes(bytes: &[u8]) -> Message {
        let word = |at: usize| u64::from_le_bytes(bytes[at * 8..at * 8 + 8].try_into().unwrap());
        match word(0) {
            0 => Message::Kick,
            1 => Message::Look,
            2 => Message::Register { offset: word(1) as u32, value: word(2) as u32 },
            3 => Message::Status,
            4 => Message::Map { address: word(1), len: word(2) },
            5 => Message::Unmap { address: word(1), len: word(2) },
            other => panic!("message {other}"),
        }
    }
}
