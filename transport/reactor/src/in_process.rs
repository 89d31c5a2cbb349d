//! Connections of a server in the drives' own loop. The server submits its commands without the port, and the loop counts them with those of
//! clients.
//!
//! Left out: recordings, which contain only what passes the port.

use std::cell::RefCell;
use std::rc::{Rc, Weak};

use nandscape_drive::io::Sink;
use nandscape_drive::{BlockSizes, CommandRef, Completion, Drive, DriveInfo, Io, Token};
use nandscape_sim::Span;
use nandscape_sim::slots::{Key, Slots};

use crate::outbox::{Outbox, Outstanding};
use crate::port::ConnectionId;

/// Counts the commands of such connections to one drive.
#[derive(Clone)]
pub struct Counter {
    outbox: Rc<Outbox>,
    export: u16,
}

impl Counter {
    pub(crate) fn new(outbox: Rc<Outbox>, export: u16) -> Counter {
        Counter { outbox, export }
    }

    /// A connection whose commands pass to `below` and are counted.
    pub fn over(&self, below: Rc<dyn Drive>) -> Rc<dyn Drive> {
        let (counter, sizes, passing) = (self.clone(), BlockSizes::of(&below.info()), RefCell::default());
        Rc::new_cyclic(|me| Counted { counter, sizes, below, passing, me: me.clone() })
    }
}

/// A counted connection.
struct Counted {
    counter: Counter,
    sizes: BlockSizes,
    below: Rc<dyn Drive>,
    passing: RefCell<Slots<(Token, Outstanding)>>,
    me: Weak<Counted>,
}

impl Counted {
    fn sink(&self) -> Rc<dyn Sink> {
        self.me.upgrade().expect("a connection in use is alive")
    }
}

impl Drive for Counted {
    fn info(&self) -> DriveInfo {
        self.below.info()
    }

    fn submit(&self, io: Io) {
        let Io { command, mem, token } = io;
        let of = (ConnectionId::IN_PROCESS, self.counter.export);
        let outstanding = Outstanding::of(of, &command, &self.sizes, self.counter.outbox.sim.now());
        let tag = self.passing.borrow_mut().insert((token, outstanding)).to_bits();
        self.below.submit(Io { command, mem, token: Token::new(self.sink(), tag) });
    }

    fn cancel(&self, command: CommandRef) -> bool {
        let found = self.passing.borrow().find(|(token, _)| token.is_of(command));
        found.is_some_and(|key| self.below.cancel(CommandRef::new(&self.sink(), key.to_bits())))
    }
}

impl Sink for Counted {
    fn complete(&self, tag: u64, completion: Completion) {
        let passed = self.passing.borrow_mut().remove(Key::from_bits(tag));
        let (token, command) = passed.expect("a command completes once");
        let outbox = &self.counter.outbox;
        let counted = if outbox.is_watched.get() { completion.clone() } else { Completion::of(completion.status) };
        outbox.release(command, counted);
        token.complete(completion);
    }

    fn announced(&self, tag: u64, remaining: Span) {
        let announcer = self.passing.borrow().get(Key::from_bits(tag)).map(|(token, _)| token.announcer());
        if let Some(announce) = announcer {
            announce(remaining);
        }
    }

    fn is_stopped(&self) -> bool {
        self.counter.outbox.sim.is_stopped()
    }
}
