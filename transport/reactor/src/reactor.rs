//! The loop in real time: one thread that owns an executor, drives and clients.
//!
//! Each turn: the time T; the model's events up to T, completions on their way; then what has come from outside, stamped
//! T. When nothing is due soon it sleeps, and is awake again shortly before the next event: waking up takes the
//! system longer, and less surely, than waiting takes.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError};

use nandscape_drive::HostMem;
use nandscape_sim::slots::{Key, Slots};
use nandscape_sim::{Executor, Span, Time};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

use crate::buffers::{BUDGET, Pool};
use crate::client::{Client, Gone, Intake, Interest};
use crate::clock::WallClock;
use crate::handle::{ExportFigures, Figures, Handle, MakeClient, MakeHost, Message, NewHost, Refused};
use crate::outbox::{Interrupt, Released};
use crate::port::{ConnectionId, Export, Port};
use crate::timing::Timing;
use crate::vigil::Vigil;
use crate::waiter::{Events, Patience, Waiter};

/// Whether a reactor ever sleeps.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum PollMode {
    /// Never: it keeps a core busy.
    Busy,
    /// When nothing is due soon and nothing has come for a while.
    Adaptive,
}

/// What a reactor serves.
pub struct Setup {
    /// Runs the drives.
    pub executor: Executor,
    /// The door to them.
    pub port: Port,
    /// Their names, in the order of the port.
    pub names: Vec<String>,
    /// Whether it sleeps.
    pub poll: PollMode,
    /// Is told of clients that broke off or broke the rules.
    pub log: Box<dyn Fn(&str)>,
}

/// Keeps the calling thread on one core, counted over those that the process may use.
///
/// # Errors
/// When there is no such core.
pub fn pin_to_core(number: usize) -> io::Result<()> {
    let allowed = rustix::thread::sched_getaffinity(None)?;
    let mut cores = (0..rustix::thread::CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core));
    let core = cores.nth(number).ok_or(io::ErrorKind::NotFound)?;
    let mut only = rustix::thread::CpuSet::new();
    only.set(core);
    Ok(rustix::thread::sched_setaffinity(None, &only)?)
}

/// Events run between two looks at what they completed: a client in this process has it at once.
const EVENTS_A_LOOK: u32 = 16;
/// Looks between two times that completions are sent: a system call for many is better than one for each.
const LOOKS_A_SENDING: u32 = 16;
/// The model runs so long in one turn, whatever is left: what comes from outside does not wait longer. Short beside what
/// anybody would call a stall, long beside looking at sockets.
const MODEL_A_TURN: Span = Span::from_ms(1);
/// Messages from other threads heard in one turn: who connects and hangs up without end must not keep the loop from
/// those who are connected. To connect one takes a few microseconds.
const MESSAGES_A_TURN: u32 = 16;
/// After a turn that took so long, sockets are looked at in any case.
const LONG_TURN: Span = Span::from_us(50);
/// Clients that waited for memory and go on in one turn.
const INVITED_A_TURN: u32 = 16;
/// The loop is awake this long before an event is due.
const AWAKE_BEFORE: Span = Span::from_us(80);
/// Time given to clients to take their last completions when the reactor ends and the drives have done all.
const LAST_WORDS: Span = Span::from_s(5);
/// The tag of the flushes at the end.
const FAREWELL: u64 = u64::MAX;

/// See the module.
pub struct Reactor {
    executor: Executor,
    port: Port,
    poll: PollMode,
    log: Box<dyn Fn(&str)>,
    clock: WallClock,
    waiter: Waiter,
    inbox: Receiver<Message>,
    clients: Slots<Connected>,
    /// The client of each connection.
    by_connection: BTreeMap<ConnectionId, Key>,
    /// Memory for the data of clients.
    pool: Rc<Pool>,
    /// Connections whose client is still to come.
    reserved: BTreeSet<ConnectionId>,
    /// Whether sockets were not looked at after the last turn.
    passed_over: bool,
    /// Whether the turn before this one took long.
    long_turn: bool,
    /// What has happened to sockets, by client.
    events: Events,
    /// Clients that have no socket.
    polled: Vec<Key>,
    /// Clients with completions to send.
    dirty: Vec<Key>,
    /// Clients found gone while the model ran. They leave when it stands at this turn's time, as a recording has it.
    lost: Vec<(Key, Gone)>,
    released: Vec<Released>,
    interrupts: Vec<Interrupt>,
    /// When each of those was completed.
    completed_at: Vec<Time>,
    vigil: Vigil,
    /// Whether it has slept since the last turn.
    slept: bool,
    figures: Vec<ExportFigures>,
    timing: Timing,
    /// Who has asked for figures, which may be as old as this.
    asked: Vec<(Time, Sender<Arc<Figures>>)>,
    /// The figures that were told last, and when.
    told: Option<(Time, Arc<Figures>)>,
    /// The time of the last turn.
    turn: Time,
    /// What the clock showed when it began: later than its time where the model is behind.
    begun: Time,
    /// When something last came from outside or went there.
    last_activity: Time,
    stopping: Option<Time>,
    recording_problem: Option<String>,
}

struct Connected {
    connection: ConnectionId,
    client: Box<dyn Client>,
    watched: Interest,
}

impl Reactor {
    /// A reactor, and the way to it.
    ///
    /// # Errors
    /// When the system has no more descriptors.
    pub fn new(setup: Setup) -> io::Result<(Reactor, Handle)> {
        Reactor::with_memory(setup, BUDGET)
    }

    /// As [`Reactor::new`], and all clients together hold at most so many bytes for requests and replies, besides
    /// [`GUARANTEED`](crate::GUARANTEED) each.
    ///
    /// # Errors
    /// When the system has no more descriptors.
    pub fn with_memory(setup: Setup, bytes: usize) -> io::Result<(Reactor, Handle)> {
        let waiter = Waiter::new()?;
        let clock = WallClock::start();
        let (handle, inbox) = Handle::new(waiter.waker(), clock);
        let Setup { executor, port, names, poll, log } = setup;
        let figures = names.into_iter().map(|name| ExportFigures { name, ..ExportFigures::default() }).collect();
        let reactor = Reactor {
            executor,
            port,
            poll,
            log,
            clock,
            waiter,
            inbox,
            clients: Slots::new(),
            by_connection: BTreeMap::new(),
            pool: Pool::new(bytes),
            reserved: BTreeSet::new(),
            passed_over: false,
            long_turn: false,
            events: Events::default(),
            polled: Vec::new(),
            dirty: Vec::new(),
            lost: Vec::new(),
            released: Vec::new(),
            interrupts: Vec::new(),
            completed_at: Vec::new(),
            vigil: Vigil::default(),
            slept: false,
            figures,
            timing: Timing::default(),
            asked: Vec::new(),
            told: None,
            turn: Time::ZERO,
            begun: Time::ZERO,
            last_activity: Time::ZERO,
            stopping: None,
            recording_problem: None,
        };
        Ok((reactor, handle))
    }

    /// Turns until it is stopped and everything it has taken in is done. Returns the executor and its last figures, which
    /// also say what became of the recording.
    ///
    /// # Errors
    /// When waiting for sockets fails.
    pub fn run(mut self) -> io::Result<(Executor, Figures)> {
        while !self.is_finished() {
            self.step()?;
        }
        self.say_farewell()?;
        if let Err(problem) = self.port.end_recording() {
            self.recording_problem = Some(problem.to_string());
        }
        let left = self.port.outstanding();
        if left > 0 {
            return Err(io::Error::other(format!(
                "{left} commands are left in the drives, and nothing would end them"
            )));
        }
        let figures = self.figures();
        Ok((self.executor, figures))
    }

    /// A turn, and a look at the sockets after it where nothing has come, after a long turn, and after every other turn in
    /// any case: clients without sockets may keep the loop busy for ever.
    fn step(&mut self) -> io::Result<()> {
        if !self.turn() {
            self.passed_over = false;
            return self.rest();
        }
        self.passed_over = !self.passed_over && !self.long_turn;
        if !self.passed_over && self.waiter.has_sockets() {
            self.waiter.wait(Patience::None, &mut self.events)?;
        }
        Ok(())
    }

    /// One turn; whether anything has come.
    fn turn(&mut self) -> bool {
        let before = self.begun;
        self.timing.turns += 1;
        self.catch_up();
        if let Some(problem) = self.port.recording_problem() {
            (self.log)(&problem);
            self.recording_problem = Some(problem);
        }
        let since_last = self.begun.since(before);
        self.long_turn = !self.slept && since_last >= LONG_TURN;
        if !std::mem::take(&mut self.slept) {
            self.timing.poll_gap.record(since_last);
        }
        let came = self.take_in();
        self.vigil.looked(came);
        if came {
            self.last_activity = self.begun;
        }
        came
    }

    /// Takes the time and runs the model up to it. What arrives from now on is stamped with it.
    fn catch_up(&mut self) {
        self.begun = self.clock.now();
        self.turn = self.begun.max(self.turn);
        self.advance();
        self.executor.arrive(self.turn);
        self.port.begin_turn();
    }

    /// Runs the model up to this turn's time, and sends what it completes on its way. Where that takes long, this turn's
    /// time is as far as the model has come, and the rest is for the next turn.
    fn advance(&mut self) {
        let any = self.executor.next_due().is_some_and(|due| due <= self.turn);
        for look in 1.. {
            let done = self.executor.advance(self.turn, EVENTS_A_LOOK);
            let late = any && self.is_late();
            let enough = done || late;
            self.hand_over();
            if enough || look % LOOKS_A_SENDING == 0 {
                self.send();
            }
            if enough {
                if !done {
                    self.turn = self.executor.sim().now();
                }
                return;
            }
        }
    }

    /// Notes how far the model is behind after an event; whether it has run for long and may stop here, between two times.
    fn is_late(&mut self) -> bool {
        let (now, reached) = (self.clock.now(), self.executor.sim().now());
        self.timing.behind_max = self.timing.behind_max.max(now.since(reached));
        // A replay runs all events of a turn's time before what arrived at that time.
        now.since(self.begun) >= MODEL_A_TURN && self.executor.next_due().is_none_or(|due| due > reached)
    }

    /// Hands completions to their clients.
    fn hand_over(&mut self) {
        let mut released = std::mem::take(&mut self.released);
        self.port.take_released(&mut released);
        for one in released.drain(..) {
            self.completed_at.push(one.at);
            self.count(&one);
            // Who has left in the meantime gets nothing.
            let Some(&key) = self.by_connection.get(&one.connection) else { continue };
            let Some(connected) = self.clients.get_mut(key) else { continue };
            if one.queue.is_none() {
                connected.client.complete(one);
            }
            if self.dirty.last() != Some(&key) {
                self.dirty.push(key);
            }
        }
        self.released = released;
        self.interrupt();
    }

    /// Interrupts hosts that find their completions in their own memory.
    fn interrupt(&mut self) {
        let mut interrupts = std::mem::take(&mut self.interrupts);
        self.port.take_interrupts(&mut interrupts);
        for Interrupt { connection, vector } in interrupts.drain(..) {
            let Some(&key) = self.by_connection.get(&connection) else { continue };
            let Some(connected) = self.clients.get_mut(key) else { continue };
            connected.client.interrupt(vector);
            self.dirty.push(key);
        }
        self.interrupts = interrupts;
    }

    /// Sends what was handed over.
    fn send(&mut self) {
        if self.completed_at.is_empty() && self.dirty.is_empty() {
            return;
        }
        self.flush();
        let now = self.clock.now();
        self.last_activity = now;
        for at in self.completed_at.drain(..) {
            self.timing.release_lag.record(now.since(at));
        }
    }

    fn count(&mut self, one: &Released) {
        let figures = &mut self.figures[usize::from(one.export)];
        let tally = match IoOpcode(one.opcode) {
            IoOpcode::READ | IoOpcode::COMPARE | IoOpcode::VERIFY => &mut figures.reads,
            IoOpcode::WRITE | IoOpcode::WRITE_ZEROES => &mut figures.writes,
            _ => &mut figures.others,
        };
        match one.completion.status.is_success() {
            true => {
                tally.bytes += one.bytes;
                tally.latency.record(one.at - one.arrived);
            }
            false => {
                tally.errors += 1;
                let of_media = [Status::UNRECOVERED_READ_ERROR, Status::WRITE_FAULT];
                figures.media_errors += u64::from(of_media.contains(&one.completion.status.meaning()));
            }
        }
    }

    fn flush(&mut self) {
        let mut dirty = std::mem::take(&mut self.dirty);
        for key in dirty.drain(..) {
            let Some(connected) = self.clients.get_mut(key) else { continue };
            match connected.client.flush() {
                Ok(()) => self.watch(key),
                Err(gone) => self.lost.push((key, gone)),
            }
        }
        self.dirty = dirty;
    }

    /// Takes in what has come from outside; whether anything had.
    fn take_in(&mut self) -> bool {
        let mut came = self.hear();
        for (key, gone) in std::mem::take(&mut self.lost) {
            self.disconnect(key, &gone);
            came = true;
        }
        if self.stopping.is_some() {
            // Nothing is read any more. What can be sent still is.
            let ready = std::mem::take(&mut self.events).ready;
            let can_send = |number: u64| {
                let connected = self.clients.get(Key::from_bits(number));
                connected.is_some_and(|Connected { client, .. }| !client.is_flushed() && !client.interest().write)
            };
            return came || ready.into_iter().any(can_send);
        }
        for number in self.events.hung_up.drain(..) {
            if let Some(connected) = self.clients.get_mut(Key::from_bits(number)) {
                connected.client.hung_up();
            }
        }
        // Those who have more get their next turn at the next one. One share each: who was answered while the model ran
        // may be here several times.
        let mut ready = std::mem::take(&mut self.events.ready);
        ready.sort_unstable();
        ready.dedup();
        for number in ready {
            came |= self.take_from(Key::from_bits(number));
        }
        came |= self.serve_line();
        let mut index = 0;
        while let Some(&key) = self.polled.get(index) {
            came |= self.take_from(key);
            // Where one has left, the next has taken its place.
            index += usize::from(self.polled.get(index) == Some(&key));
        }
        came
    }

    /// Lets some of those go on who wait for memory, in the order in which they came.
    fn serve_line(&mut self) -> bool {
        let mut came = false;
        for _ in 0..INVITED_A_TURN {
            let Some(client) = self.pool.invite() else { break };
            if let Some(&key) = self.by_connection.get(&client) {
                came |= self.take_from(key);
            }
        }
        came
    }

    fn take_from(&mut self, key: Key) -> bool {
        let Some(connected) = self.clients.get_mut(key) else { return false };
        let mut intake = Intake::new(&mut self.port, connected.connection);
        let result = connected.client.take_in(&mut intake);
        // What needs no drive is answered at once, and room to write may be what the socket was ready for.
        let result = result.and_then(|came| connected.client.flush().map(|()| came));
        match result {
            Ok(came) => {
                self.watch(key);
                came
            }
            Err(gone) => {
                self.disconnect(key, &gone);
                true
            }
        }
    }

    /// Watches a client's socket for what it waits for now.
    fn watch(&mut self, key: Key) {
        let Some(connected) = self.clients.get_mut(key) else { return };
        if connected.client.has_more() {
            self.events.ready.push(key.to_bits());
        }
        let Interest { read, write } = connected.client.interest();
        // At the end nothing more is read.
        let interest = Interest { read: read && self.stopping.is_none(), write };
        if interest == connected.watched {
            return;
        }
        connected.watched = interest;
        if let Some(socket) = connected.client.socket()
            && let Err(error) = self.waiter.change(socket, key.to_bits(), interest)
        {
            self.lost.push((key, Gone::because(error.to_string())));
        }
    }

    /// Reads some messages from other threads; whether there were any.
    fn hear(&mut self) -> bool {
        let heard = self.hear_some();
        self.tell();
        heard
    }

    fn hear_some(&mut self) -> bool {
        for heard in 0..MESSAGES_A_TURN {
            match self.inbox.try_recv() {
                Ok(Message::Connect { export, make }) => match self.reserve(export) {
                    Ok(connection) => self.seat(connection, make),
                    Err(Refused::Ending) => {}
                    Err(refused) => (self.log)(&format!("a client was refused: {refused}")),
                },
                Ok(Message::Attach { export, make, reply }) => {
                    let answer = self.attach(export, make);
                    // Whoever asked may have gone.
                    let _ = reply.send(answer);
                }
                Ok(Message::Reserve { export, reply }) => {
                    let answer = self.reserve(export);
                    // Who asked waits for the answer, and gives back what it does not need.
                    let _ = reply.send(answer);
                }
                Ok(Message::Seat { connection, make }) => self.seat(connection, make),
                Ok(Message::Release(connection)) => {
                    if self.reserved.remove(&connection) {
                        self.port.close(connection);
                    }
                }
                Ok(Message::Order { export, order, reply }) => {
                    let answer = match self.stopping {
                        Some(_) => Err(Refused::Ending.to_string()),
                        None => self.port.order(export, &order),
                    };
                    // Who gave it may have gone.
                    let _ = reply.send(answer);
                }
                Ok(Message::Figures { not_before, reply }) => self.asked.push((not_before, reply)),
                Ok(Message::Stop) => self.stop(),
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => return heard > 0,
            }
        }
        true
    }

    /// From now on nothing is read from clients.
    fn stop(&mut self) {
        self.stopping = self.stopping.or(Some(self.turn));
        let keys: Vec<Key> = self.by_connection.values().copied().collect();
        keys.into_iter().for_each(|key| self.watch(key));
    }

    /// Opens a connection for a client that is still to come.
    fn reserve(&mut self, export: u16) -> Result<ConnectionId, Refused> {
        if self.stopping.is_some() {
            return Err(Refused::Ending);
        }
        let connection = self.port.open(export).map_err(Refused::Drive)?;
        self.reserved.insert(connection);
        Ok(connection)
    }

    /// Gives a connection its client; too late where the end has come.
    fn seat(&mut self, connection: ConnectionId, make: MakeClient) {
        if self.stopping.is_some() || !self.reserved.remove(&connection) {
            return;
        }
        let Some(info) = self.port.info(connection) else { return };
        let client = make(info, self.pool.share(connection));
        self.admit(connection, client);
    }

    /// Connects a host with queues of its own.
    fn attach(&mut self, export: u16, make: MakeHost) -> Result<(), Refused> {
        if self.stopping.is_some() {
            return Err(Refused::Ending);
        }
        let drive = self.port.exports().get(usize::from(export));
        let info = drive.ok_or(Refused::Drive(Status::INVALID_NAMESPACE))?.info();
        let NewHost { client, memory, vectors } = make(info);
        let connection = self.port.attach(export, memory, vectors).map_err(Refused::Drive)?;
        self.admit(connection, client);
        Ok(())
    }

    /// Looks after a client from now on.
    fn admit(&mut self, connection: ConnectionId, client: Box<dyn Client>) {
        let watched = client.interest();
        let key = self.clients.insert(Connected { connection, client, watched });
        self.by_connection.insert(connection, key);
        let connected = self.clients.get_mut(key).expect("just inserted");
        if connected.client.is_polled() {
            self.polled.push(key);
        }
        let socket = connected.client.socket().map(|socket| (socket, watched));
        let others = connected.client.descriptors().into_iter().map(|fd| (fd, Interest { read: true, write: false }));
        let result = socket.into_iter().chain(others).try_for_each(|(fd, interest)| {
            // Something may have come before it was watched.
            self.events.ready.push(key.to_bits());
            self.waiter.add(fd, key.to_bits(), interest)
        });
        if let Err(error) = result {
            self.disconnect(key, &Gone::because(error.to_string()));
        }
    }

    fn disconnect(&mut self, key: Key, gone: &Gone) {
        let Some(connected) = self.clients.remove(key) else { return };
        let descriptors = connected.client.socket().into_iter().chain(connected.client.descriptors());
        descriptors.for_each(|descriptor| self.waiter.remove(descriptor));
        self.polled.retain(|polled| *polled != key);
        self.by_connection.remove(&connected.connection);
        self.port.close(connected.connection);
        if let Some(reason) = &gone.reason {
            (self.log)(&format!("client {}: {reason}", connected.connection.0));
        }
    }

    /// Waits for the next event, socket or message.
    fn rest(&mut self) -> io::Result<()> {
        let patience = self.patience();
        if patience != Patience::None {
            self.waiter.announce_sleep();
            // What was handed over before the announcement would not wake the loop.
            if self.take_in() || self.has_work() {
                return Ok(());
            }
            self.vigil.sleeps();
            self.timing.sleeps += 1;
            self.slept = true;
        }
        self.waiter.wait(patience, &mut self.events)
    }

    /// Whether some client can go on without anything coming from outside.
    fn has_work(&self) -> bool {
        let can_go_on = !self.events.ready.is_empty() || self.pool.can_invite();
        can_go_on && self.stopping.is_none()
    }

    fn patience(&mut self) -> Patience {
        if self.poll == PollMode::Busy || self.has_work() {
            return Patience::None;
        }
        let now = self.clock.now();
        // At the end, clients have a while to take their replies.
        let last_words = self.stopping.map(|since| since + LAST_WORDS);
        let due = self.executor.next_due().into_iter().chain(last_words).min().map(|due| due.since(now));
        if now.since(self.last_activity) < self.vigil.length() || due.is_some_and(|left| left <= AWAKE_BEFORE) {
            return Patience::None;
        }
        match due {
            Some(left) => Patience::For(left - AWAKE_BEFORE),
            None => Patience::Forever,
        }
    }

    /// Whether it was stopped, and everything is done and sent, as far as clients take it.
    fn is_finished(&mut self) -> bool {
        let Some(since) = self.stopping else { return false };
        self.dirty.extend(self.by_connection.values());
        self.flush();
        if self.is_working() {
            // However long it takes. The time for clients begins when it is done.
            self.stopping = Some(self.clock.now());
            return false;
        }
        let unsent = self.by_connection.values().filter_map(|key| self.clients.get(*key));
        let mut unsent = unsent.filter(|connected| !connected.client.is_flushed()).peekable();
        if unsent.peek().is_some() && self.clock.now().since(since) <= LAST_WORDS {
            return false;
        }
        unsent.for_each(|connected| {
            let number = connected.connection.0;
            (self.log)(&format!("client {number}: did not take its last replies within {} s", LAST_WORDS.as_s()));
        });
        true
    }

    /// Whether the drives have something in work that they will finish: without an event they never would.
    fn is_working(&self) -> bool {
        self.port.outstanding() > 0 && self.executor.next_due().is_some()
    }

    /// Disconnects every client and flushes every drive.
    fn say_farewell(&mut self) -> io::Result<()> {
        std::mem::take(&mut self.reserved).into_iter().for_each(|connection| self.port.close(connection));
        let keys: Vec<Key> = self.by_connection.values().copied().collect();
        keys.iter().for_each(|key| self.disconnect(*key, &Gone::quietly()));
        self.run_while(|reactor| !reactor.port.exports().iter().all(|export| export.is_ready()))?;
        for export in 0..self.port.exports().len() as u16 {
            let info = self.port.exports()[usize::from(export)].info();
            if let Ok(connection) = self.port.open(export) {
                let flush = SubmissionEntry::io(IoOpcode::FLUSH, info.nsid);
                self.port.submit(connection, FAREWELL, flush, HostMem::none());
            }
        }
        self.run_while(|reactor| reactor.port.outstanding() > 0)
    }

    /// Runs the model while `busy` and while there are events. It runs at least once: what was closed or submitted at
    /// this turn's time has its consequences at that time, which a replay runs too.
    fn run_while(&mut self, busy: impl Fn(&Reactor) -> bool) -> io::Result<()> {
        loop {
            self.catch_up();
            if !busy(self) || self.executor.next_due().is_none() {
                return Ok(());
            }
            let patience = self.patience();
            self.waiter.wait(patience, &mut self.events)?;
        }
    }

    /// Tells figures to those who have asked. Copying them takes long beside a turn: all share one copy, and an old one
    /// where it is good enough for all.
    fn tell(&mut self) {
        let Some(not_before) = self.asked.iter().map(|(not_before, _)| *not_before).max() else { return };
        let (_, figures) = match self.told.take() {
            Some(told) if told.0 >= not_before => self.told.insert(told),
            _ => {
                let figures = Arc::new(self.figures());
                self.told.insert((self.clock.now(), figures))
            }
        };
        for (_, reply) in self.asked.drain(..) {
            // Who asked may have gone.
            let _ = reply.send(figures.clone());
        }
    }

    fn figures(&self) -> Figures {
        let counted = |(figures, export): (&ExportFigures, &Rc<dyn Export>)| {
            let (counters, faults) = (export.counters(), export.faults());
            ExportFigures { counters, faults, ..figures.clone() }
        };
        Figures {
            now: self.turn,
            exports: self.figures.iter().zip(self.port.exports()).map(counted).collect(),
            timing: self.timing.clone(),
            clients: self.clients.len(),
            outstanding: self.port.outstanding(),
            recording_problem: self.recording_problem.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
