//! The way of an engine to its drive. Once it is closed, commands are kept and never end, as when the host loses power: background
//! work of the engine changes nothing while the drives come to rest.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use nandscape_drive::io::Sink;
use nandscape_drive::{CommandRef, Completion, Drive, DriveInfo, Io, Token};
use nandscape_sim::signal::Signal;
use nandscape_sim::slots::{Key, Slots};
use nandscape_sim::{Sim, Span};

/// See the file.
pub(super) struct Gate {
    sim: Sim,
    below: Rc<dyn Drive>,
    under_way: RefCell<Slots<Token>>,
    is_closed: Cell<bool>,
    kept: RefCell<Vec<Io>>,
    ended: Signal,
    me: Weak<Gate>,
}

impl Gate {
    pub(super) fn over(sim: &Sim, below: Rc<dyn Drive>) -> Rc<Gate> {
        Rc::new_cyclic(|me| Gate {
            sim: sim.clone(),
            below,
            under_way: RefCell::default(),
            is_closed: Cell::new(false),
            kept: RefCell::default(),
            ended: Signal::new(sim),
            me: me.clone(),
        })
    }

    /// Closes it, and waits for the commands that have passed.
    pub(super) async fn close(&self) {
        self.is_closed.set(true);
        while !self.under_way.borrow().is_empty() {
            self.ended.changed().await;
        }
    }
}

impl Drive for Gate {
    fn info(&self) -> DriveInfo {
        self.below.info()
    }

    fn submit(&self, io: Io) {
        if self.is_closed.get() {
            return self.kept.borrow_mut().push(io);
        }
        let Io { command, mem, token } = io;
        let tag = self.under_way.borrow_mut().insert(token).to_bits();
        let me = self.me.upgrade().expect("a connection in use is alive");
        self.below.submit(Io { command, mem, token: Token::new(me, tag) });
    }

    fn cancel(&self, command: CommandRef) -> bool {
        let found = self.under_way.borrow().find(|token| token.is_of(command));
        let me: Rc<dyn Sink> = self.me.upgrade().expect("a connection in use is alive");
        found.is_some_and(|key| self.below.cancel(CommandRef::new(&me, key.to_bits())))
    }
}

impl Sink for Gate {
    fn complete(&self, tag: u64, completion: Completion) {
        let token = self.under_way.borrow_mut().remove(Key::from_bits(tag)).expect("a command completes once");
        token.complete(completion);
        if self.is_closed.get() {
            self.ended.notify();
        }
    }

    fn announced(&self, tag: u64, remaining: Span) {
        let announcer = self.under_way.borrow().get(Key::from_bits(tag)).map(Token::announcer);
        if let Some(announce) = announcer {
            announce(remaining);
        }
    }

    fn is_stopped(&self) -> bool {
        self.sim.is_stopped()
    }
}
