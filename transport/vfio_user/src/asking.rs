//! The reactor's requests to a client, as messages (`DMA_READ`, `DMA_WRITE`): their numbers, and the interrupts that
//! wait for completions to be written.
//!
//! Clients differ in the place of the data: the specification has a count of 64 bits before it, QEMU's source one of
//! 32 bits. The first message detects the layout: a read with a bit set that only the longer count has. A client with
//! the longer count rejects that many bytes.

use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc::Sender;

use nandscape_drive::mem::Ask;
use nandscape_transport_reactor::client::Gone;
use nandscape_wire_vfio_user::access::DmaAccess;
use nandscape_wire_vfio_user::{Command, Header};
use zerocopy::IntoBytes as _;

use crate::writer::Outgoing;

/// Unanswered messages above which a client is disconnected. The controller limits commands that wait for answers, so
/// these are completions that a client does not take.
const MOST: usize = 1 << 14;

/// A client's answer: the data read, no bytes for a write, or `None` for a failure. The receiver of the answer
/// detects a wrong length.
pub(crate) type Answer = Option<Vec<u8>>;

/// See the file.
pub(crate) struct Asking {
    to: Sender<Outgoing>,
    layout: Layout,
    /// Requests for when the layout is known.
    waiting: Vec<(u64, Ask)>,
    /// The number of the next message.
    next: u16,
    /// The requests, by the number of their message: the reactor's number.
    unanswered: BTreeMap<u16, Asked>,
    /// Counts messages, beyond their numbers.
    sent: u64,
    /// Interrupts, each held until the write with this count.
    held: VecDeque<(u64, u16)>,
}

/// The place of the data of a transfer.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Layout {
    Unknown,
    /// This message shows it.
    Probed(u16),
    Specified,
    /// Behind a count of 32 bits.
    Short,
}

/// Bytes before the data if the count has 32 bits. Messages are as long as with the longer count.
const SHORT: usize = 12;

struct Asked {
    number: u64,
    writes: bool,
    count: u64,
}

impl Asking {
    pub(crate) fn new(to: Sender<Outgoing>) -> Asking {
        let (layout, waiting) = (Layout::Unknown, Vec::new());
        Asking { to, layout, waiting, next: 0, unanswered: BTreeMap::new(), sent: 0, held: VecDeque::new() }
    }

    /// Sends a request of the reactor under its number.
    pub(crate) fn send(&mut self, number: u64, ask: Ask) {
        if self.layout == Layout::Unknown {
            let (Ask::Read { address, .. } | Ask::Write { address, .. }) = ask;
            let access = DmaAccess { address: address.into(), count: (1 << 32 | 4).into() };
            self.layout = Layout::Probed(self.command(Command::DMA_READ, access.as_bytes()));
        }
        match self.layout {
            Layout::Unknown | Layout::Probed(_) => self.waiting.push((number, ask)),
            Layout::Specified | Layout::Short => self.transfer(number, ask),
        }
    }

    fn transfer(&mut self, number: u64, ask: Ask) {
        let (command, address, count, data) = match ask {
            Ask::Read { address, len } => (Command::DMA_READ, address, len, Vec::new()),
            Ask::Write { address, bytes } => (Command::DMA_WRITE, address, bytes.len(), bytes),
        };
        let access = DmaAccess { address: address.into(), count: (count as u64).into() };
        let mut payload = access.as_bytes().to_vec();
        if self.layout == Layout::Short {
            payload.truncate(SHORT);
        }
        payload.extend_from_slice(&data);
        payload.resize(size_of::<DmaAccess>() + data.len(), 0);
        self.sent += 1;
        let asked = Asked { number, writes: command == Command::DMA_WRITE, count: self.sent };
        let id = self.command(command, &payload);
        self.unanswered.insert(id, asked);
    }

    /// Sends a message; its number.
    fn command(&mut self, command: Command, payload: &[u8]) -> u16 {
        // There are more numbers than unanswered messages.
        while self.unanswered.contains_key(&self.next) && self.unanswered.len() < usize::from(u16::MAX) {
            self.next = self.next.wrapping_add(1);
        }
        let id = self.next;
        self.next = id.wrapping_add(1);
        let header = Header::command(id, command, payload.len());
        // The session detects a broken connection.
        let _ = self.to.send(Outgoing::Command([header.as_bytes(), payload].concat()));
        id
    }

    /// A message was answered with a payload, or refused: returns the reactor's number and the data, unless nothing was
    /// requested.
    pub(crate) fn answered(&mut self, id: u16, payload: Option<Vec<u8>>) -> Option<(u64, Answer)> {
        if self.layout == Layout::Probed(id) {
            self.layout = if payload.is_some() { Layout::Short } else { Layout::Specified };
            std::mem::take(&mut self.waiting).into_iter().for_each(|(number, ask)| self.transfer(number, ask));
            return None;
        }
        let Asked { number, writes, .. } = self.unanswered.remove(&id)?;
        let data = |payload: Vec<u8>| match self.layout {
            _ if writes => Some(Vec::new()),
            Layout::Short => {
                Some(payload.get(SHORT..payload.len().checked_sub(size_of::<DmaAccess>() - SHORT)?)?.to_vec())
            }
            _ => Some(payload.get(size_of::<DmaAccess>()..)?.to_vec()),
        };
        Some((number, payload.and_then(data)))
    }

    /// An interrupt: whether it can be sent now, as everything before it is written.
    pub(crate) fn interrupts(&mut self, vector: u16) -> bool {
        match self.unanswered.values().filter(|asked| asked.writes).map(|asked| asked.count).max() {
            None => true,
            Some(last) => {
                self.held.push_back((last, vector));
                false
            }
        }
    }

    /// The next interrupt that no write holds.
    pub(crate) fn next_interrupt(&mut self) -> Option<u16> {
        let (last, _) = *self.held.front()?;
        let oldest = self.unanswered.values().filter(|asked| asked.writes).map(|asked| asked.count).min();
        match oldest.is_none_or(|oldest| oldest > last) {
            true => self.held.pop_front().map(|(_, vector)| vector),
            false => None,
        }
    }

    /// Checks that the client answers requests.
    ///
    /// # Errors
    /// [`Gone`] when it must be disconnected.
    pub(crate) fn check(&self) -> Result<(), Gone> {
        match self.unanswered.len() <= MOST {
            true => Ok(()),
            false => Err(Gone::because(format!("vfio-user: {MOST} messages of the server were not answered"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};

    use super::*;

    /// The requests to a client with a layout, and the messages sent to it.
    fn asking(layout: Layout) -> (Asking, Receiver<Outgoing>) {
        let (to, sent) = channel();
        (Asking { layout, ..Asking::new(to) }, sent)
    }

    fn payload(sent: &Receiver<Outgoing>) -> Vec<u8> {
        let Ok(Outgoing::Command(message)) = sent.try_recv() else { panic!("nothing was sent") };
        message[Header::BYTES..].to_vec()
    }

    #[test]
    fn interrupts_wait_for_what_was_written_before_them() {
        let (mut asking, _sent) = asking(Layout::Specified);
        let answered = |asking: &mut Asking, id| asking.answered(id, Some(vec![0; 16])).map(|(number, _)| number);
        assert!(asking.interrupts(7));
        asking.send(100, Ask::Write { address: 0, bytes: vec![1; 12] });
        asking.send(101, Ask::Write { address: 12, bytes: vec![1; 4] });
        assert!(!asking.interrupts(1));
        asking.send(102, Ask::Read { address: 0, len: 8 });
        asking.send(103, Ask::Write { address: 16, bytes: vec![1; 4] });
        assert!(!asking.interrupts(2));
        assert_eq!((answered(&mut asking, 0), asking.next_interrupt()), (Some(100), None));
        assert_eq!((answered(&mut asking, 1), asking.next_interrupt()), (Some(101), Some(1)));
        assert_eq!(asking.next_interrupt(), None);
        assert_eq!((answered(&mut asking, 3), asking.next_interrupt()), (Some(103), Some(2)));
        assert_eq!([3, 99, 2].map(|id| answered(&mut asking, id)), [None, None, Some(102)]);
    }

    #[test]
    fn the_first_message_finds_out_where_the_data_stands() {
        for (refuses, right) in [(true, Layout::Specified), (false, Layout::Short)] {
            let (mut asking, sent) = asking(Layout::Unknown);
            asking.send(5, Ask::Write { address: 0x1000, bytes: vec![7, 8] });
            asking.send(6, Ask::Read { address: 0x2000, len: 3 });
            let probe = payload(&sent);
            assert_eq!((&probe[..8], &probe[8..]), (&0x1000u64.to_le_bytes()[..], &[4, 0, 0, 0, 1, 0, 0, 0][..]));
            assert!(sent.try_recv().is_err(), "the rest waits");
            assert!(asking.answered(0, (!refuses).then(|| vec![0; 20])).is_none());
            assert_eq!(asking.layout, right);
            let (write, read) = (payload(&sent), payload(&sent));
            let from = if refuses { 16 } else { SHORT };
            assert_eq!((write.len(), &write[from..from + 2], read.len()), (18, &[7, 8][..], 16));
            let mut reply = [read, vec![0; 3]].concat();
            reply[from..from + 3].copy_from_slice(&[1, 2, 3]);
            assert_eq!(asking.answered(1, Some(vec![0; 16])), Some((5, Some(Vec::new()))));
            assert_eq!(asking.answered(2, Some(reply)), Some((6, Some(vec![1, 2, 3]))));
            asking.send(7, Ask::Read { address: 0, len: 3 });
            assert_eq!(asking.answered(3, Some(vec![0; 2])), Some((7, None)), "too short");
            asking.send(8, Ask::Read { address: 0, len: 3 });
            assert_eq!(asking.answered(4, None), Some((8, None)), "refused");
        }
    }
}
