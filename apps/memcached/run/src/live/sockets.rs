//! Clients of a server, behind one descriptor that any loop can wait for. Nothing here blocks.
//!
//! A client that sends half a command or does not take its answers holds a bounded amount of memory, and all of them together do: beyond
//! that the one that has finished no command for longest is cut off. Neither do clients keep others out that are idle, or never finish a command.
//!
//! When the server is to end, nothing more is read: commands that have come are finished, and then the engine is closed.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use super::added::Added;
use super::client::{Client, LITTLE};
use super::drives::{self, Drive};
use super::replace::{Claim, Wanted};
use nandscape_apps_memcached_engine::memcached::{Server, Wire};
use nandscape_apps_memcached_engine::{Engine, Stats};
use nandscape_sim::{Sim, Span};
use nandscape_transport_reactor::Source;
use nandscape_transport_reactor::socket::Stream;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};

/// Events taken at a time.
const EVENTS: usize = 64;
/// The number of the event of what comes from other threads.
const CAME: u64 = u64::MAX;
/// The number of the events of remote drives that were added.
pub(super) const ADDED: u64 = u64::MAX - 1;
/// New clients taken in a turn, and those that may wait for that with a descriptor each. More wait in the system: a crowd of them cannot
/// keep those out that are served.
const CLIENTS_A_TURN: usize = 16;
const MOST_NEW: usize = 16;
/// Clients that are cut off at a time of those that were never served, where one must be: looking for one takes as long as for many.
const CUT_AT_A_TIME: usize = 32;
/// Bytes that all clients may hold in commands and answers that are not complete, and as many in values that wait for room.
const MOST_HELD: usize = 64 << 20;

/// Hears why the engine does not serve any more.
pub(super) type OnFailure = Arc<dyn Fn(String) + Send + Sync>;

/// Receives what happens.
pub(super) type Log = Arc<dyn Fn(&str) + Send + Sync>;

/// What the server has done, once everything is on the drives, or why that is not so.
pub(super) type Ended = Result<Stats, String>;

/// What comes from other threads.
enum Came {
    /// The server is to end: the sender hears when everything is on the drives.
    End(Sender<Ended>),
    /// A drive may be about to take the place of another one: the sender hears whether it may, and whether it is connected to already.
    Claim(Claim, Sender<Result<bool, String>>),
    /// A drive is to take the place of another one: the sender hears whether it does.
    Replace(Box<Wanted>, Sender<Result<String, String>>),
    /// No drive is about to take the place of the one of a number any more.
    Release(usize),
}

/// See the file.
pub(super) struct Sockets {
    sim: Sim,
    seed: u64,
    epoll: Rc<OwnedFd>,
    /// Remote drives that were added.
    added: Rc<Added>,
    clients: RefCell<BTreeMap<u64, Client>>,
    next: Cell<u64>,
    turn: Cell<u64>,
    came: Arc<OwnedFd>,
    inbox: Receiver<Came>,
    entry: Sender<Came>,
    new: Receiver<Stream>,
    new_entry: SyncSender<Stream>,
    /// More of them may wait.
    has_new: Cell<bool>,
    /// Something is to be done for a client.
    notice: Rc<Cell<bool>>,
    server: RefCell<Option<Rc<Server>>>,
    /// Clients at a time.
    most_clients: usize,
    /// As many values wait for room as may: more are not read.
    is_full: Cell<bool>,
    drives: Rc<[Drive]>,
    log: Log,
    failed: OnFailure,
    has_failed: Cell<bool>,
    is_ending: Cell<bool>,
    /// Who waits for the end while commands are finished.
    ends: RefCell<Vec<Sender<Ended>>>,
    news: RefCell<Option<String>>,
}

/// The way in for other threads.
#[derive(Clone)]
pub(super) struct Door {
    came: Arc<OwnedFd>,
    entry: Sender<Came>,
    new: SyncSender<Stream>,
}

impl Door {
    fn send(&self, came: Came) {
        // The sockets are gone once the server has ended.
        if self.entry.send(came).is_ok() {
            self.wake();
        }
    }

    fn wake(&self) {
        // It can only fail when the counter is full.
        let _ = rustix::io::write(&*self.came, &1u64.to_ne_bytes());
    }

    /// A client has come. Blocks while many others wait.
    pub(super) fn enter(&self, stream: Stream) {
        if self.new.send(stream).is_ok() {
            self.wake();
        }
    }

    /// A drive may be about to take the place of another one, which no other may take until [`Door::release`].
    pub(super) fn claim(&self, claim: Claim) -> Receiver<Result<bool, String>> {
        let (sender, receiver) = channel();
        self.send(Came::Claim(claim, sender));
        receiver
    }

    /// Another drive may take the place of the one of a number.
    pub(super) fn release(&self, number: usize) {
        self.send(Came::Release(number));
    }

    /// A drive is to take the place of another one.
    pub(super) fn replace(&self, wanted: Wanted) -> Receiver<Result<String, String>> {
        let (sender, receiver) = channel();
        self.send(Came::Replace(Box::new(wanted), sender));
        receiver
    }

    /// Everything is to be on the drives.
    pub(super) fn end(&self) -> Receiver<Ended> {
        let (sender, receiver) = channel();
        self.send(Came::End(sender));
        receiver
    }
}

impl Sockets {
    pub(super) fn new(
        sim: &Sim,
        (most_clients, seed): (usize, u64),
        drives: Rc<[Drive]>,
        (log, failed): (Log, OnFailure),
    ) -> io::Result<Sockets> {
        let epoll = Rc::new(epoll::create(CreateFlags::CLOEXEC)?);
        let came = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        epoll::add(&*epoll, &*came, EventData::new_u64(CAME), EventFlags::IN)?;
        let ((entry, inbox), (new_entry, new)) = (channel(), sync_channel(MOST_NEW));
        let added = Rc::new(Added::new(epoll.clone(), log.clone()));
        Ok(Sockets {
            sim: sim.clone(),
            seed,
            epoll,
            added,
            clients: RefCell::default(),
            next: Cell::new(0),
            turn: Cell::new(0),
            came,
            inbox,
            entry,
            new,
            new_entry,
            has_new: Cell::new(false),
            notice: Rc::default(),
            server: RefCell::default(),
            most_clients,
            is_full: Cell::new(false),
            drives,
            log,
            failed,
            has_failed: Cell::new(false),
            is_ending: Cell::new(false),
            ends: RefCell::default(),
            news: RefCell::default(),
        })
    }

    pub(super) fn door(&self) -> Door {
        Door { came: self.came.clone(), entry: self.entry.clone(), new: self.new_entry.clone() }
    }

    /// From now on clients are served.
    pub(super) fn open(&self, server: Rc<Server>) {
        self.server.replace(Some(server));
    }

    pub(super) fn server(&self) -> Option<Rc<Server>> {
        self.server.borrow().clone()
    }

    fn next_turn(&self) -> u64 {
        self.turn.set(self.turn.get() + 1);
        self.turn.get()
    }

    fn take_in(&self) {
        let _ = rustix::io::read(&*self.came, &mut [0; 8]);
        while let Ok(came) = self.inbox.try_recv() {
            let Some(server) = self.server() else { continue };
            match came {
                Came::Claim(claim, reply) => {
                    let (engine, drives) = (server.engine().clone(), self.drives.clone());
                    self.sim.spawn(async move {
                        let may = claim.make(&engine, &drives).await;
                        // The thread that waits for it has given up.
                        if reply.send(may.clone()).is_err() && may.is_ok() {
                            drives[claim.number].awaits(None);
                        }
                    });
                }
                Came::Release(number) => self.drives[number].awaits(None),
                Came::Replace(wanted, reply) => {
                    let (sim, seed, drives) = (self.sim.clone(), self.seed, self.drives.clone());
                    let (added, log) = (self.added.clone(), self.log.clone());
                    self.sim.spawn(async move {
                        let number = wanted.number;
                        let note = |what: &str| log(what);
                        let done = wanted.carry_out((&sim, seed), server.engine(), (&drives, &added), &note).await;
                        drives[number].awaits(None);
                        // The thread that waits for it may have given up.
                        let _ = reply.send(done);
                    });
                }
                Came::End(ended) => {
                    self.ends.borrow_mut().push(ended);
                    self.is_ending.set(true);
                    self.clients.borrow().values().for_each(|client| client.wire.finish());
                    self.notice.set(true);
                }
            }
        }
    }

    fn take_clients(&self) {
        let mut count = 0;
        for stream in self.new.try_iter().take(CLIENTS_A_TURN) {
            count += 1;
            if let Some(server) = self.server().filter(|_| !self.is_ending.get()) {
                self.add(&server, stream);
            }
        }
        self.has_new.set(count == CLIENTS_A_TURN);
    }

    /// Closes the engine once no command runs any more, if the server is to end.
    fn close(&self) {
        let Some(server) = self.server().filter(|server| server.counters().connections == 0) else { return };
        for ended in self.ends.take() {
            let (engine, drives) = (server.engine().clone(), self.drives.clone());
            self.sim.spawn(async move {
                let closed = engine.close().await.map(|()| engine.stats());
                let closed = closed.map_err(|error| drives::failure(&drives, &error));
                // The thread that waits for it may have given up.
                let _ = ended.send(closed);
            });
        }
    }

    /// Reports what has happened to the engine.
    pub(super) fn report(&self, engine: &Engine) {
        engine.take_events().iter().for_each(|event| (self.log)(&drives::event(&self.drives, event)));
    }

    /// The same, and once that it has failed.
    fn report_failure(&self) {
        if let Some(server) = self.server() {
            self.report(server.engine());
        }
        if self.has_failed.get() {
            return;
        }
        if let Some(error) = self.server.borrow().as_ref().and_then(|server| server.engine().failure()) {
            self.has_failed.set(true);
            (self.failed)(drives::failure(&self.drives, &error));
        }
    }

    fn add(&self, server: &Rc<Server>, stream: Stream) {
        let is_ready = stream.set_nonblocking().is_ok();
        if let Stream::Tcp(stream) = &stream {
            // Answers are small; without it they only come later.
            let _ = stream.set_nodelay(true);
        }
        if !is_ready || !self.make_room() {
            let _ = (&stream).write_all(b"SERVER_ERROR too many open connections\r\n");
            return;
        }
        let number = self.next.get();
        self.next.set(number + 1);
        let interest = EventFlags::IN;
        if epoll::add(&*self.epoll, &stream, EventData::new_u64(number), interest).is_err() {
            return;
        }
        let wire = Wire::new(&self.sim, &self.notice);
        server.serve(&wire);
        let (served, commands) = (self.next_turn(), 0);
        let client =
            Client { stream, wire, interest, is_apart: false, served, commands, is_over: false, is_cut: false };
        self.clients.borrow_mut().insert(number, client);
    }

    /// Makes room for a client: where there are as many as may be, one goes ([`Client::rank`]). Whether there is room.
    fn make_room(&self) -> bool {
        let mut clients = self.clients.borrow_mut();
        if clients.len() < self.most_clients {
            return true;
        }
        let mut present: Vec<&mut Client> = clients.values_mut().filter(|client| !client.is_over).collect();
        if present.len() < self.most_clients {
            return true;
        }
        let is_unserved = |client: &Client| !client.wire.is_served() && client.wire.commands() == 0;
        // As long as clients that were never served have at most their part, they do not go before others: a crowd of new ones would cut
        // each other off before their first commands.
        let are_few = present.iter().filter(|client| is_unserved(client)).count() <= (self.most_clients / 4).max(1);
        present.sort_unstable_by_key(|client| {
            let (is_waiting, was_served, at) = client.rank();
            (is_waiting, was_served || are_few, at)
        });
        for (number, client) in present.into_iter().take(CUT_AT_A_TIME.min(self.most_clients / 4).max(1)).enumerate() {
            if number == 0 || !are_few && is_unserved(client) {
                (client.is_over, client.is_cut) = (true, true);
            }
        }
        self.notice.set(true);
        true
    }

    /// Cuts off clients of those that hold much ([`Client::least_recent`]), while all hold too much. Those whose values wait for room wait for the
    /// server: they are not cut off, and no more values are read while they hold too much.
    fn limit_held(&self) {
        let mut clients = self.clients.borrow_mut();
        let held = |is_throttled: bool| {
            let some = clients.values().filter(|client| !client.is_over && client.wire.is_throttled() == is_throttled);
            some.map(|client| client.wire.held()).sum::<usize>()
        };
        let (mut held, waiting) = (held(false), held(true));
        self.is_full.set(waiting > MOST_HELD);
        while held > MOST_HELD {
            let is_much =
                |client: &&mut Client| client.wire.held() > LITTLE && !client.is_over && !client.wire.is_throttled();
            let Some(worst) = clients.values_mut().filter(is_much).min_by_key(|client| client.least_recent()) else {
                return;
            };
            held -= worst.wire.held();
            (worst.is_over, worst.is_cut) = (true, true);
        }
    }

    fn event(&self, number: u64, flags: EventFlags) {
        let mut clients = self.clients.borrow_mut();
        let Some(client) = clients.get_mut(&number) else { return };
        if !self.is_ending.get() {
            client.receive(self.is_full.get());
        }
        if flags.intersects(EventFlags::HUP | EventFlags::ERR) {
            // It would be reported for ever.
            let _ = epoll::delete(&*self.epoll, &client.stream);
            client.is_apart = !client.has_left();
            client.is_over |= flags.contains(EventFlags::ERR);
        }
        self.notice.set(true);
    }

    /// Sends, reads on what has hung up, and removes what is over. Whether anything moved.
    fn serve_all(&self) -> bool {
        self.limit_held();
        let mut moved = false;
        let turn = self.next_turn();
        let (is_ending, is_full) = (self.is_ending.get(), self.is_full.get());
        self.clients.borrow_mut().retain(|number, client| {
            client.note(turn);
            moved |= client.wire.has_output() && client.send();
            while client.is_apart && !is_ending && client.receive(is_full) {
                moved = true;
            }
            if client.is_over || client.wire.is_ended() && !client.wire.has_output() {
                if client.is_cut {
                    client.wire.cut()
                } else {
                    client.wire.close()
                }
                let _ = epoll::delete(&*self.epoll, &client.stream);
                client.stream.shutdown(std::net::Shutdown::Both);
                moved = true;
                return false;
            }
            let mut wanted = client.wanted(is_full);
            if is_ending {
                wanted -= EventFlags::IN;
            }
            if wanted != client.interest {
                client.interest = wanted;
                let events = wanted & (EventFlags::IN | EventFlags::OUT);
                // One that has hung up is not waited for any more.
                let _ = epoll::modify(&*self.epoll, &client.stream, EventData::new_u64(*number), events);
            }
            true
        });
        moved
    }
}

impl Source for Sockets {
    fn descriptor(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    fn has_unsent(&self) -> bool {
        self.notice.get() || self.has_new.get() || self.news.borrow().is_some() || self.added.has_unsent()
    }

    fn poll(&self) -> bool {
        let mut events = Vec::with_capacity(EVENTS);
        let nothing = Timespec { tv_sec: 0, tv_nsec: 0 };
        if let Err(error) = epoll::wait(&*self.epoll, rustix::buffer::spare_capacity(&mut events), Some(&nothing))
            && error != rustix::io::Errno::INTR
        {
            self.news.replace(Some(format!("its clients cannot be served: {error}")));
            return false;
        }
        let mut moved = !events.is_empty();
        for event in &events {
            let (number, flags) = (event.data.u64(), event.flags);
            match number {
                CAME => {
                    self.take_in();
                    self.has_new.set(true);
                }
                ADDED => self.added.came(),
                number => self.event(number, flags),
            }
        }
        if self.has_new.get() {
            self.take_clients();
            moved = true;
        }
        if self.notice.take() {
            moved |= self.serve_all();
        }
        moved |= self.added.poll();
        if self.is_ending.get() {
            self.close();
        }
        self.report_failure();
        moved
    }

    fn outstanding(&self) -> usize {
        self.added.outstanding()
    }

    fn news(&self) -> Option<String> {
        self.news.take()
    }

    fn limit_patience(&self, patience: Span) {
        self.added.limit_patience(patience);
    }
}
