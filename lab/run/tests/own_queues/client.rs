//! The drive's end of a host with its own queues: maps the host's memory, passes on its messages, and watches the doorbells
//! in that memory.

use std::fs::File;
use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::rc::Rc;

use nandscape_drive::QueueId;
use nandscape_drive::mem::{Ask, Dma as _, GuestMemory, Mapping};
use nandscape_sim::Span;
use nandscape_transport_reactor::client::Gone;
use nandscape_transport_reactor::doorbells::Unwatched;
use nandscape_transport_reactor::handle::NewHost;
use nandscape_transport_reactor::{Arrival, Client, Handle, Intake, Interest, Released};
use nandscape_wire_nvme::register;

use crate::messages::{DONE, INTERRUPT, Message, NOT_READY, PAGE, PAIRS, READY, REFUSED};

/// See the module.
struct HostClient {
    socket: UnixStream,
    file: File,
    memory: Rc<GuestMemory>,
    /// Where the memory is reached by asking: what the host reaches.
    reached: Option<GuestMemory>,
    /// What was asked for, done and not answered yet.
    done: Vec<(u64, Option<Vec<u8>>)>,
    doorbells: Mapping,
    /// Tail and head of each pair as last seen.
    seen: [[u16; 2]; PAIRS as usize],
    inbox: Vec<u8>,
    answers: Vec<u8>,
}

/// Connects a host whose socket is `socket` to the first drive. Its memory is mapped, or it is asked for it.
pub(crate) fn attach(handle: &Handle, socket: UnixStream, is_asked: bool) {
    let mut path = String::new();
    // The host waits for an answer after this line: nothing after it may be read.
    BufReader::with_capacity(1, &socket).read_line(&mut path).unwrap();
    let file = File::options().read(true).write(true).open(path.trim_end()).unwrap();
    socket.set_nonblocking(true).unwrap();
    let attached = handle.attach(
        0,
        Box::new(move |_| {
            let memory = Rc::new(GuestMemory::new());
            let doorbells = Mapping::new(&file, 0, PAGE as usize, true).unwrap();
            assert!(doorbells.is_mapped(), "a memory file is sealed");
            let (seen, inbox, answers) = ([[0; 2]; PAIRS as usize], Vec::new(), Vec::new());
            let (reached, done) = (is_asked.then(GuestMemory::new), Vec::new());
            let client =
                HostClient { socket, file, memory: memory.clone(), reached, done, doorbells, seen, inbox, answers };
            NewHost { client: Box::new(client), memory, vectors: PAIRS, function: 0, doorbells: Rc::new(Unwatched) }
        }),
    );
    attached.unwrap();
}

impl HostClient {
    /// Executes a message; returns the answer.
    fn obey(&mut self, message: Message, intake: &mut Intake<'_>) -> Option<u8> {
        let done = match message {
            Message::Kick => return None,
            Message::Look => true,
            Message::Register { offset, value } => {
                intake.arrive(Arrival::Register { offset, value });
                true
            }
            Message::Status => {
                let ready = intake.register(register::CSTS) & register::CSTS_RDY != 0;
                return Some(if ready { READY } else { NOT_READY });
            }
            Message::Map { address, len } => {
                let mapping = Mapping::new(&self.file, address, len as usize, true);
                let map = |mapping| match &self.reached {
                    Some(reached) => {
                        reached.map(address, mapping).is_ok() && self.memory.map_remote(address, len, true).is_ok()
                    }
                    None => self.memory.map(address, mapping).is_ok(),
                };
                mapping.is_ok_and(map)
            }
            Message::Unmap { address, len } => {
                let reached = self.reached.as_ref().is_none_or(|reached| reached.unmap(address, len).is_ok());
                reached && self.memory.unmap(address, len).is_ok()
            }
        };
        Some(if done { DONE } else { REFUSED })
    }

    /// Passes on doorbells that have changed; whether any had.
    fn look_at_doorbells(&mut self, intake: &mut Intake<'_>) -> bool {
        let mut came = false;
        for (id, seen) in self.seen.iter_mut().enumerate() {
            let queue = QueueId(id as u16);
            let [tail, head] = [0, 4].map(|at| self.doorbells.load(id * 8 + at).unwrap() as u16);
            // The head first: it makes room for what the new commands complete.
            if seen[1] != head {
                intake.arrive(Arrival::CompletionHead { queue, head });
            }
            if seen[0] != tail {
                intake.arrive(Arrival::SubmissionTail { queue, tail });
            }
            came |= *seen != [tail, head];
            *seen = [tail, head];
        }
        came
    }
}

impl Client for HostClient {
    fn socket(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    fn is_polled(&self) -> bool {
        true
    }

    fn interest(&self) -> Interest {
        Interest { read: true, write: !self.answers.is_empty() }
    }

    fn receive_arrivals(&mut self, intake: &mut Intake<'_>) -> Result<bool, Gone> {
        let mut bytes = [0; 1_024];
        let read = match self.socket.read(&mut bytes) {
            Ok(0) => return Err(Gone::quietly()),
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
            Err(error) => return Err(Gone::because(error.to_string())),
        };
        self.inbox.extend_from_slice(&bytes[..read]);
        let whole = self.inbox.len() / Message::LEN * Message::LEN;
        let messages: Vec<u8> = self.inbox.drain(..whole).collect();
        for message in messages.chunks_exact(Message::LEN).map(Message::of_bytes) {
            // What was rung before it comes before it.
            self.look_at_doorbells(intake);
            let answer = self.obey(message, intake);
            self.answers.extend(answer);
        }
        let done = std::mem::take(&mut self.done);
        let answered = !done.is_empty();
        done.into_iter().for_each(|(number, answer)| intake.answer(number, answer));
        Ok(self.look_at_doorbells(intake) || answered || read > 0)
    }

    fn before_sleep(&mut self, _: Span) -> Option<Span> {
        (!self.done.is_empty()).then_some(Span::from_us(1))
    }

    fn ask(&mut self, number: u64, ask: Ask) {
        let reached = self.reached.as_ref().expect("its memory is not mapped");
        let answer = match ask {
            Ask::Read { address, len } => {
                let mut bytes = vec![0; len];
                reached.read(address, &mut bytes).ok().map(|()| bytes)
            }
            Ask::Write { address, bytes } => reached.write(address, &bytes).ok().map(|()| Vec::new()),
        };
        self.done.push((number, answer));
    }

    fn complete(&mut self, _: Released) {
        unreachable!("its completions are in its memory");
    }

    fn interrupt(&mut self, _: u16) {
        self.answers.push(INTERRUPT);
    }

    fn flush(&mut self) -> Result<(), Gone> {
        match self.socket.write(&self.answers) {
            Ok(written) => drop(self.answers.drain(..written)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(Gone::because(error.to_string())),
        }
        Ok(())
    }

    fn is_flushed(&self) -> bool {
        self.answers.is_empty()
    }
}
