//! A drive in this process: its reactor has its own thread, and commands, completions and notices pass over rings.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use nandscape_drive::{Completion, Drive, DriveInfo, HostMem, Io, Token};
use nandscape_host_driver::{Lost, Pending};
use nandscape_sim::slots::{Key, Slots};
use nandscape_transport_reactor::ring::{Announced, Reply, RingHost};
use nandscape_wire_nvme::Status;
use nandscape_wire_nvme::opcode::Transfer;
use rustix::event::PollFlags;

use super::pacer::Source;

/// See the module.
pub(super) struct RingDrive {
    name: String,
    info: DriveInfo,
    /// Signalled by completions and notices, where they interrupt.
    event: Option<OwnedFd>,
    state: RefCell<State>,
}

struct State {
    ring: RingHost,
    outstanding: Slots<(Token, HostMem)>,
    /// Commands for which the ring has no room.
    waiting: VecDeque<Io>,
    /// Commands that have ended.
    answers: u64,
    /// Empty between polls; kept for its memory.
    replies: Vec<Reply>,
    /// The same.
    notices: Vec<Announced>,
}

impl RingDrive {
    pub(super) fn new(name: String, ring: RingHost, event: Option<OwnedFd>) -> RingDrive {
        let info = ring.info();
        RingDrive {
            name,
            info,
            event,
            state: RefCell::new(State {
                ring,
                outstanding: Slots::new(),
                waiting: VecDeque::new(),
                answers: 0,
                replies: Vec::new(),
                notices: Vec::new(),
            }),
        }
    }
}

impl State {
    /// Puts a command into the ring; gives it back where there is no room.
    fn put(&mut self, io: Io) -> Option<Io> {
        let Io { command, mem, token } = io;
        let data = mem.to_vec();
        // Only data that comes from the drive is copied back.
        let kept = if Transfer::of(command.opcode).returns() { mem.clone() } else { HostMem::none() };
        let tag = self.outstanding.insert((token, kept));
        match self.ring.submit(tag.to_bits(), command, data) {
            Ok(()) => None,
            Err(_) => {
                let (token, _) = self.outstanding.remove(tag).expect("it was put there");
                Some(Io { command, mem, token })
            }
        }
    }

    fn fill(&mut self) {
        while let Some(io) = self.waiting.pop_front() {
            if let Some(io) = self.put(io) {
                return self.waiting.push_front(io);
            }
        }
    }
}

impl RingDrive {
    /// A notice of a command that has ended is ignored.
    fn announce(&self, Announced { tag, remaining }: Announced) {
        let state = self.state.borrow();
        let announcer = state.outstanding.get(Key::from_bits(tag)).map(|(token, _)| token.announcer());
        drop(state);
        if let Some(announce) = announcer {
            announce(remaining);
        }
    }
}

impl Drive for RingDrive {
    fn info(&self) -> DriveInfo {
        self.info
    }

    fn submit(&self, io: Io) {
        let mut state = self.state.borrow_mut();
        let back = if state.waiting.is_empty() { state.put(io) } else { Some(io) };
        state.waiting.extend(back);
    }
}

impl Source for RingDrive {
    fn poll(&self) -> Result<bool, Lost> {
        let mut state = self.state.borrow_mut();
        // All replies first: those to commands that a completion brings belong to a later time.
        let mut replies = std::mem::take(&mut state.replies);
        while let Some(reply) = state.ring.poll() {
            replies.push(reply);
        }
        // Notices after them, as the notice of a command that has ended is there then.
        let mut notices = std::mem::take(&mut state.notices);
        while let Some(notice) = state.ring.notice() {
            notices.push(notice);
        }
        state.fill();
        if replies.is_empty() && state.ring.is_disconnected() {
            return Err(Lost { endpoint: self.name.clone(), reason: "the drive's thread has ended".to_owned() });
        }
        state.answers += replies.len() as u64;
        drop(state);
        let moved = !replies.is_empty() || !notices.is_empty();
        notices.drain(..).for_each(|notice| self.announce(notice));
        for reply in replies.drain(..) {
            let ended = self.state.borrow_mut().outstanding.remove(Key::from_bits(reply.tag));
            let (token, mem) = ended.expect("a command ends once");
            mem.write(0, &reply.data[..mem.len().min(reply.data.len())]);
            token.complete(Completion { dw0: reply.dw0, dw1: reply.dw1, ..Completion::of(reply.status) });
        }
        let mut state = self.state.borrow_mut();
        (state.replies, state.notices) = (replies, notices);
        Ok(moved)
    }

    fn pending(&self) -> Pending {
        let state = self.state.borrow();
        Pending { commands: state.outstanding.len(), answers: state.answers }
    }

    fn sockets(&self) -> Option<Vec<(BorrowedFd<'_>, PollFlags)>> {
        Some(vec![(self.event.as_ref()?.as_fd(), PollFlags::IN)])
    }

    fn woken(&self) {
        if let Some(event) = &self.event {
            // There may be no signal.
            let _ = rustix::io::read(event, &mut [0; 8]);
        }
    }
}

impl Drop for RingDrive {
    /// Commands whose drive is dropped were not carried out, as far as their host knows.
    fn drop(&mut self) {
        let state = self.state.get_mut();
        state.waiting.drain(..).for_each(|io| io.token.complete(Completion::of(Status::ABORTED_SQ_DELETION)));
    }
}
