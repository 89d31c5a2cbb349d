//! A queue pair between threads: the fastest way to a drive, for a client in this process.
//!
//! The client's end is a [`RingHost`] on any thread; the reactor's end is a [`Client`] without a socket. Buffers
//! move with their commands and return with the completions. A host that sleeps gives an event descriptor, which is signalled
//! once for all completions of a turn, as an interrupt.
//!
//! Announced ends of commands pass over a third ring, for a host that wants them. A notice is there before its completion. A host
//! that takes none loses those for which the ring has no room, and no completion.

use std::cell::RefCell;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::rc::Rc;

use nandscape_drive::mem::Buffer;
use nandscape_drive::{Completion, DriveInfo, HostMem};
use nandscape_sim::{Span, Time};
use nandscape_wire_nvme::{Status, SubmissionEntry};
use rtrb::{Consumer, Producer, RingBuffer};

use crate::client::{Client, Gone, Intake, Interest};
use crate::handle::Handle;
use crate::outbox::Released;

/// A command on its way.
struct Request {
    tag: u64,
    command: SubmissionEntry,
    data: Vec<u8>,
}

/// A command that has completed.
#[derive(Debug)]
pub struct Reply {
    /// The client's tag.
    pub tag: u64,
    /// Its status.
    pub status: Status,
    /// DW0 of the completion queue entry.
    pub dw0: u32,
    /// DW1 of the completion queue entry.
    pub dw1: u32,
    /// When it arrived in the model.
    pub arrived: Time,
    /// When the model completed it, by [`Handle::clock`]; it arrives here later.
    pub at: Time,
    /// Its memory.
    pub data: Vec<u8>,
}

/// The drive announces the end of a command that asked for it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Announced {
    /// The client's tag of the command.
    pub tag: u64,
    /// How long it was predicted to take from the announcement on.
    pub remaining: Span,
}

/// What a connection is to have.
#[derive(Debug)]
pub struct RingSetup {
    /// The namespace; `None` is the drive's first.
    pub nsid: Option<u32>,
    /// Commands at a time.
    pub depth: usize,
    /// Signalled by completions, by notices, and by the end of the reactor.
    pub event: Option<OwnedFd>,
    /// Whether notices are passed on.
    pub notices: bool,
}

impl RingSetup {
    /// Room for `depth` commands to the drive's first namespace, without signals and notices.
    pub fn of_depth(depth: usize) -> RingSetup {
        RingSetup { nsid: None, depth, event: None, notices: false }
    }
}

/// The client's end. Dropping it disconnects.
pub struct RingHost {
    requests: Producer<Request>,
    replies: Consumer<Reply>,
    notices: Option<Consumer<Announced>>,
    handle: Handle,
    info: DriveInfo,
    depth: usize,
    /// Commands whose completion was not taken: with more than `depth`, there would be no room for completions.
    outstanding: usize,
}

/// The reactor's end.
struct RingClient {
    requests: Consumer<Request>,
    replies: Producer<Reply>,
    notices: Option<Producer<Announced>>,
    /// Completions for which the ring has no room.
    waiting: Vec<Reply>,
    /// Buffers of commands under way, by slot.
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// There are completions or notices since the last signal.
    has_news: bool,
    /// Signalled when there are completions or notices. It is dropped after `replies`.
    bell: Bell,
}

/// The event descriptor of a host that sleeps, if it has one. The end of the ring signals it too.
struct Bell(Option<OwnedFd>);

impl Bell {
    fn ring(&self) {
        if let Some(event) = &self.0 {
            // The only error is a counter at its end, which wakes the host as well.
            let _ = rustix::io::write(event, &1u64.to_ne_bytes());
        }
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        self.ring();
    }
}

#[derive(Default)]
struct Slot {
    tag: u64,
    buffer: Buffer,
}

impl RingHost {
    /// Connects to a drive of a reactor, with room for `depth` commands. Blocks until that is done.
    ///
    /// # Errors
    /// Invalid Queue Identifier when the drive takes no more, or the reactor has ended.
    pub fn connect(handle: &Handle, export: u16, depth: usize) -> Result<RingHost, Status> {
        RingHost::connect_with(handle, export, RingSetup::of_depth(depth))
    }

    /// The same with more than room for commands.
    ///
    /// # Errors
    /// As [`RingHost::connect`], and when there is no such namespace.
    pub fn connect_with(handle: &Handle, export: u16, setup: RingSetup) -> Result<RingHost, Status> {
        let RingSetup { nsid, depth, event, notices } = setup;
        let (requests, from_host) = RingBuffer::new(depth);
        let (to_host, replies) = RingBuffer::new(depth);
        // A command is announced once.
        let (announced, notices) = notices.then(|| RingBuffer::new(depth)).unzip();
        let (tell, told) = std::sync::mpsc::channel();
        handle.connect_namespace(
            export,
            nsid,
            Box::new(move |info, _| {
                // The connecting thread waits for it.
                let _ = tell.send(info);
                let (waiting, slots, free) = (Vec::new(), Vec::new(), Vec::new());
                let (requests, replies, notices) = (from_host, to_host, announced);
                let (has_news, bell) = (false, Bell(event));
                Box::new(RingClient { requests, replies, notices, waiting, slots, free, has_news, bell })
            }),
        );
        let info = told.recv().map_err(|_| Status::INVALID_QUEUE_ID)?;
        Ok(RingHost { requests, replies, notices, handle: handle.clone(), info, depth, outstanding: 0 })
    }

    /// The drive's description.
    pub fn info(&self) -> DriveInfo {
        self.info
    }

    /// Submits a command with its memory, which may be empty.
    ///
    /// # Errors
    /// The memory, when the ring is full of outstanding commands.
    pub fn submit(&mut self, tag: u64, command: SubmissionEntry, data: Vec<u8>) -> Result<(), Vec<u8>> {
        if self.outstanding == self.depth {
            return Err(data);
        }
        let request = Request { tag, command, data };
        self.requests.push(request).map_err(|rtrb::PushError::Full(request)| request.data)?;
        self.outstanding += 1;
        self.handle.wake();
        Ok(())
    }

    /// Takes a completion, if there is one.
    pub fn poll(&mut self) -> Option<Reply> {
        let reply = self.replies.pop().ok()?;
        self.outstanding -= 1;
        Some(reply)
    }

    /// Takes a notice, if there is one. After a completion was taken, the notice of its command is there, if it got one.
    pub fn notice(&mut self) -> Option<Announced> {
        self.notices.as_mut()?.pop().ok()
    }

    /// Whether the reactor has ended.
    pub fn is_disconnected(&self) -> bool {
        self.replies.is_abandoned() && self.replies.is_empty()
    }
}

impl Drop for RingHost {
    fn drop(&mut self) {
        self.handle.wake();
    }
}

impl RingClient {
    fn slot(&mut self, request: &mut Request) -> u32 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { tag: 0, buffer: Rc::new(RefCell::new(Vec::new())) });
            self.slots.len() as u32 - 1
        });
        let slot = &mut self.slots[index as usize];
        slot.tag = request.tag;
        // A command that was aborted may still hold the buffer.
        if Rc::strong_count(&slot.buffer) > 1 {
            slot.buffer = Buffer::default();
        }
        slot.buffer.replace(std::mem::take(&mut request.data));
        index
    }

    /// Signals the event descriptor, if the host has one.
    fn signal(&mut self) {
        if std::mem::take(&mut self.has_news) {
            self.bell.ring();
        }
    }
}

impl Client for RingClient {
    fn socket(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn interest(&self) -> Interest {
        Interest::default()
    }

    fn receive_arrivals(&mut self, intake: &mut Intake<'_>) -> Result<bool, Gone> {
        let mut came = false;
        while let Ok(mut request) = self.requests.pop() {
            came = true;
            let index = self.slot(&mut request);
            let buffer = &self.slots[index as usize].buffer;
            let mem = if buffer.borrow().is_empty() { HostMem::none() } else { HostMem::whole(buffer) };
            intake.submit(index.into(), request.command, mem);
        }
        match !came && self.requests.is_abandoned() {
            true => Err(Gone::quietly()),
            false => Ok(came),
        }
    }

    fn complete(&mut self, released: Released) {
        let index = released.tag as u32;
        let slot = &mut self.slots[index as usize];
        let Released { arrived, at, completion, .. } = released;
        let (tag, data) = (slot.tag, slot.buffer.take());
        let Completion { status, dw0, dw1, .. } = completion;
        let reply = Reply { tag, status, dw0, dw1, arrived, at, data };
        self.free.push(index);
        self.has_news = true;
        if !self.waiting.is_empty() {
            self.waiting.push(reply);
        } else if let Err(rtrb::PushError::Full(reply)) = self.replies.push(reply) {
            self.waiting.push(reply);
        }
    }

    fn announced(&mut self, tag: u64, remaining: Span) {
        let Some(notices) = &mut self.notices else { return };
        let tag = self.slots[tag as usize].tag;
        // Without room, the host waits for the completion.
        self.has_news |= notices.push(Announced { tag, remaining }).is_ok();
    }

    fn flush(&mut self) -> Result<(), Gone> {
        let room = self.replies.slots().min(self.waiting.len());
        self.has_news |= room > 0;
        for reply in self.waiting.drain(..room) {
            if self.replies.push(reply).is_err() {
                unreachable!("there was room for it");
            }
        }
        self.signal();
        Ok(())
    }

    fn is_flushed(&self) -> bool {
        self.waiting.is_empty()
    }
}
