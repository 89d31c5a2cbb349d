//! The loop in real time: one thread that owns an executor, drives and clients.
//!
//! Each turn takes the time T, runs the model's events up to T, sends their completions, and then receives arrivals from
//! outside, stamped T. When no event is due soon the loop sleeps, and wakes shortly before the next event, because the
//! system's wake-up latency is longer and varies more than that of spinning.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError};

use nandscape_sim::slots::{Key, Slots};
use nandscape_sim::{Executor, Span, Time};
use nandscape_wire_nvme::fabrics::CONTROLLER_BUSY;
use nandscape_wire_nvme::{IoOpcode, Status};

use crate::association::{ConnectQueue, ConnectRefusal};
use crate::buffers::{BUDGET, Pool};
use crate::client::{Client, Deadline, Gone, Intake, Interest};
use crate::clock::WallClock;
use crate::handle::{ExportFigures, Figures, Handle, MakeClient, MakeHost, Message, NewHost, Refused, Reservation};
use crate::linger::Linger;
use crate::outbox::{Released, ToHost, What};
use crate::port::{ConnectionId, Export, Port};
use crate::timing::Timing;
use crate::waiter::{Events, Wait, Waiter};
use line::{Line, Request};
use sources::Sources;

/// Whether a reactor ever sleeps.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum PollMode {
    /// Never: it keeps a core busy.
    Busy,
    /// When no event is due soon and there was no arrival for a while.
    Adaptive,
}

/// The drives of a reactor, and how it serves them.
pub struct Setup {
    /// Runs the drives.
    pub executor: Executor,
    /// The interface to them.
    pub port: Port,
    /// Their names, in the order of the port.
    pub names: Vec<String>,
    /// Whether it sleeps.
    pub poll: PollMode,
    /// Receives notes on clients that disconnected in mid-request or violated the protocol.
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

/// Events run between two deliveries of completions. A client in this process sees them at once.
const EVENTS_A_DELIVERY: u32 = 16;
/// Deliveries between two times that replies are sent: one system call for many is cheaper than one for each.
const DELIVERIES_A_SEND: u32 = 16;
/// The longest that the model runs in one turn, so that arrivals do not wait longer. It is short compared with a stall, and
/// long compared with polling sockets.
const MODEL_A_TURN: Span = Span::from_ms(1);
/// Messages from other threads handled in one turn, so that clients that connect and hang up in a loop cannot starve the
/// connected ones. Connecting a client takes a few microseconds.
const MESSAGES_A_TURN: u32 = 16;
/// After a turn longer than this, sockets are polled in any case.
const LONG_TURN: Span = Span::from_us(50);
/// Clients that waited for memory and go on in one turn.
const INVITED_A_TURN: u32 = 16;
/// The loop is awake this long before an event is due.
const AWAKE_BEFORE: Span = Span::from_us(80);
/// How long clients have to receive their last replies when the reactor ends, once the drives have finished.
const DRAIN_TIME: Span = Span::from_s(5);
/// Between two times that clients are asked for their deadlines.
const DEADLINES_EVERY: Span = Span::from_s(1);

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
    /// Requests for connections that wait for a queue pair.
    line: Line,
    /// Makes reservations, which give their connection back by it.
    handle: Handle,
    /// Times that the sockets were polled.
    polls: u64,
    /// Whether the last turn ended without polling the sockets.
    skipped_sockets: bool,
    /// Whether the turn before this one took long.
    long_turn: bool,
    /// Socket events, by client.
    events: Events,
    /// Room for the next of their lists.
    served: Vec<u64>,
    /// Clients that have no socket.
    polled: Vec<Key>,
    /// Clients with completions to send.
    dirty: Vec<Key>,
    /// Clients found gone while the model ran. They are disconnected at this turn's time, as a recording has it.
    lost: Vec<(Key, Gone)>,
    /// Connections that the model has ended.
    ended: Vec<ConnectionId>,
    /// When clients are asked for their deadlines; `None` while none has one.
    check_at: Option<Time>,
    released: Vec<Released>,
    to_hosts: Vec<ToHost>,
    /// When each of those was completed.
    completed_at: Vec<Time>,
    linger: Linger,
    /// Whether it has slept since the last turn.
    slept: bool,
    figures: Vec<ExportFigures>,
    timing: Timing,
    /// Pending requests for figures, each with the oldest time that is good enough.
    asked: Vec<(Time, Sender<Arc<Figures>>)>,
    /// The figures of the last answer, and their time.
    answered: Option<(Time, Arc<Figures>)>,
    /// The time of the last turn.
    turn: Time,
    /// The wall clock at its beginning: later than its time if the model is behind.
    begun: Time,
    /// The time of the last input or output.
    last_activity: Time,
    stopping: Option<Time>,
    recording_problem: Option<String>,
    /// Drives outside this process.
    sources: Sources,
    /// The drives that were not flushed at the end, and why.
    flush_problem: Option<String>,
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

    /// As [`Reactor::new`]; all clients together hold at most `bytes` of data for requests and replies, besides
    /// [`GUARANTEED`](crate::GUARANTEED) each.
    ///
    /// # Errors
    /// When the system has no more descriptors.
    pub fn with_memory(setup: Setup, bytes: usize) -> io::Result<(Reactor, Handle)> {
        let mut waiter = Waiter::new()?;
        let clock = WallClock::start();
        let (handle, inbox) = Handle::new(waiter.waker(), clock);
        let Setup { executor, port, names, poll, log } = setup;
        let sources = Sources::of(port.exports(), &names, &mut waiter)?;
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
            line: Line::new(),
            handle: handle.clone(),
            polls: 0,
            skipped_sockets: false,
            long_turn: false,
            events: Events::default(),
            served: Vec::new(),
            polled: Vec::new(),
            dirty: Vec::new(),
            lost: Vec::new(),
            ended: Vec::new(),
            check_at: None,
            released: Vec::new(),
            to_hosts: Vec::new(),
            completed_at: Vec::new(),
            linger: Linger::default(),
            slept: false,
            figures,
            timing: Timing::default(),
            asked: Vec::new(),
            answered: None,
            turn: Time::ZERO,
            begun: Time::ZERO,
            last_activity: Time::ZERO,
            stopping: None,
            recording_problem: None,
            sources,
            flush_problem: None,
        };
        Ok((reactor, handle))
    }

    /// Turns until it is stopped and all received requests are done. Returns the executor and its last figures, which include
    /// the outcome of the recording.
    ///
    /// # Errors
    /// When waiting for sockets fails.
    pub fn run(mut self) -> io::Result<(Executor, Figures)> {
        while !self.is_finished() {
            self.step()?;
        }
        self.flush_drives()?;
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

    /// One turn. Then polls the sockets: when there was no arrival, after a long turn, and after every second turn in any
    /// case, so that clients without sockets cannot starve them.
    fn step(&mut self) -> io::Result<()> {
        if !self.turn() {
            self.skipped_sockets = false;
            return self.rest();
        }
        self.skipped_sockets = !self.skipped_sockets && !self.long_turn;
        if !self.skipped_sockets {
            self.polls += 1;
            if self.waiter.has_sockets() {
                self.waiter.wait(Wait::None, &mut self.events)?;
            }
        }
        Ok(())
    }

    /// One turn; whether there was an arrival.
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
        let came = self.receive_arrivals();
        self.linger.polled(came);
        if came {
            self.last_activity = self.begun;
        }
        came
    }

    /// Takes the time and runs the model up to it. Arrivals from now on are stamped with it.
    fn catch_up(&mut self) {
        self.begun = self.clock.now();
        self.turn = self.begun.max(self.turn);
        self.run_model();
        self.executor.arrive(self.turn);
        self.port.begin_turn();
    }

    /// Runs the model up to this turn's time, and sends completions on the way. If that takes long, this turn's
    /// time is as far as the model has come, and the rest is for the next turn.
    fn run_model(&mut self) {
        let any = self.executor.next_due().is_some_and(|due| due <= self.turn);
        for look in 1.. {
            let done = self.executor.advance(self.turn, EVENTS_A_DELIVERY);
            let late = any && self.is_late();
            let enough = done || late;
            self.deliver();
            if enough || look % DELIVERIES_A_SEND == 0 {
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

    /// Delivers completions to their clients.
    fn deliver(&mut self) {
        let mut released = std::mem::take(&mut self.released);
        self.port.take_released(&mut released);
        for one in released.drain(..) {
            self.completed_at.push(one.at);
            self.count(&one);
            // The client may have left in the meantime.
            let Some(&key) = self.by_connection.get(&one.connection) else {
                self.completed_without_client(&one);
                continue;
            };
            let Some(connected) = self.clients.get_mut(key) else { continue };
            if one.queue.is_none() {
                connected.client.complete(one);
            }
            if self.dirty.last() != Some(&key) {
                self.dirty.push(key);
            }
        }
        self.released = released;
        self.tell_hosts();
    }

    /// Interrupts hosts that find their completions in their own memory, and asks them for transfers.
    fn tell_hosts(&mut self) {
        let mut to_hosts = std::mem::take(&mut self.to_hosts);
        self.port.take_to_hosts(&mut to_hosts);
        for ToHost { connection, what } in to_hosts.drain(..) {
            let Some(&key) = self.by_connection.get(&connection) else { continue };
            let Some(connected) = self.clients.get_mut(key) else { continue };
            match what {
                What::Interrupt(vector) => connected.client.interrupt(vector),
                What::Ask(number, ask) => connected.client.ask(number, *ask),
            }
            self.dirty.push(key);
        }
        self.to_hosts = to_hosts;
    }

    /// Has clients send the replies of delivered completions.
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

    /// Counts an I/O command.
    fn count(&mut self, one: &Released) {
        if one.is_admin {
            return;
        }
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

    /// Receives arrivals from outside; whether there were any.
    fn receive_arrivals(&mut self) -> bool {
        let mut came = self.handle_messages();
        if !self.sources.is_empty() {
            came |= self.serve_sources();
        }
        if self.check_at.is_some_and(|at| at <= self.begun) {
            self.check_deadlines();
        }
        self.disconnect_ended();
        for (key, gone) in std::mem::take(&mut self.lost) {
            self.disconnect(key, &gone);
            came = true;
        }
        if self.stopping.is_some() {
            came |= self.serve_line();
            // Nothing is read any more. Replies are still sent.
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
        // A client with more work is served again in the next turn. Each client has one share of a turn, even if it is listed
        // several times.
        let mut ready = std::mem::replace(&mut self.events.ready, std::mem::take(&mut self.served));
        ready.sort_unstable();
        ready.dedup();
        for number in ready.drain(..) {
            came |= self.serve_client(Key::from_bits(number));
        }
        self.served = ready;
        came |= self.serve_waiting();
        let mut index = 0;
        while let Some(&key) = self.polled.get(index) {
            came |= self.serve_client(key);
            // Where one has left, the next has taken its place.
            index += usize::from(self.polled.get(index) == Some(&key));
        }
        // After the clients, of which some may have left.
        came |= !self.line.is_empty() && self.serve_line();
        came
    }

    /// Serves some of the clients that wait for memory, first come, first served.
    fn serve_waiting(&mut self) -> bool {
        let mut came = false;
        for _ in 0..INVITED_A_TURN {
            let Some(client) = self.pool.invite() else { break };
            if let Some(&key) = self.by_connection.get(&client) {
                came |= self.serve_client(key);
            }
        }
        came
    }

    fn serve_client(&mut self, key: Key) -> bool {
        let Some(connected) = self.clients.get_mut(key) else { return false };
        let mut intake = Intake::new(&mut self.port, connected.connection);
        let result = connected.client.receive_arrivals(&mut intake);
        // Requests that need no drive are answered at once, and the socket may have become writable.
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

    /// Updates what a client's socket is watched for.
    fn watch(&mut self, key: Key) {
        let Some(connected) = self.clients.get_mut(key) else { return };
        if connected.client.has_more() {
            self.events.ready.push(key.to_bits());
        }
        let Interest { read, write } = connected.client.interest();
        // After a stop, nothing more is read.
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
    fn handle_messages(&mut self) -> bool {
        let heard = self.handle_some_messages();
        self.answer_figures();
        heard
    }

    fn handle_some_messages(&mut self) -> bool {
        for heard in 0..MESSAGES_A_TURN {
            match self.inbox.try_recv() {
                Ok(Message::Connect { export, make }) => match self.reserve(export) {
                    Ok((connection, _)) => self.start_client(connection, make),
                    Err(Refused::Ending) => {}
                    Err(refused) => (self.log)(&format!("a client was refused: {refused}")),
                },
                Ok(Message::Attach { export, make, reply }) => {
                    let answer = self.attach(export, make);
                    // The sender may have gone.
                    let _ = reply.send(answer);
                }
                Ok(Message::Reserve { export, reply }) => {
                    self.line.push_back(Request { export, reply, polls: self.polls, promised: false });
                }
                Ok(Message::ConnectQueue { ask, reply }) => {
                    let answer = self.connect_queue(&ask);
                    // The receiver gives back a connection that it does not need.
                    let _ = reply.send(answer);
                }
                Ok(Message::Info { export, reply }) => {
                    // The sender may have gone.
                    let _ = reply.send(self.info(export));
                }
                Ok(Message::Start { connection, make }) => self.start_client(connection, make),
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
                    // The sender may have gone.
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
        self.sources.limit_patience(DRAIN_TIME);
        let keys: Vec<Key> = self.by_connection.values().copied().collect();
        keys.into_iter().for_each(|key| self.watch(key));
    }

    /// Opens a connection to a queue for a client that is still to come.
    fn connect_queue(&mut self, ask: &ConnectQueue) -> Result<(Reservation, u16), ConnectRefusal> {
        if self.stopping.is_some() {
            return Err(CONTROLLER_BUSY.into());
        }
        let (connection, controller) = self.port.connect_queue(ask)?;
        self.reserved.insert(connection);
        let info = self.port.info(connection).expect("it was just opened");
        Ok((Reservation::new(self.handle.clone(), connection, info), controller))
    }

    /// Gives a connection its client; too late where the end has come.
    fn start_client(&mut self, connection: ConnectionId, make: MakeClient) {
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
        let NewHost { client, memory, vectors, doorbells } = make(info);
        let connection = self.port.attach(export, memory, vectors, doorbells).map_err(Refused::Drive)?;
        self.admit(connection, client);
        Ok(())
    }

    /// Serves a client from now on.
    fn admit(&mut self, connection: ConnectionId, client: Box<dyn Client>) {
        let watched = client.interest();
        let key = self.clients.insert(Connected { connection, client, watched });
        self.by_connection.insert(connection, key);
        let connected = self.clients.get_mut(key).expect("just inserted");
        if connected.client.is_polled() {
            self.polled.push(key);
        }
        // It may have a deadline as soon as it was served.
        self.check_at.get_or_insert(self.begun + DEADLINES_EVERY);
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
        drop(connected);
        self.disconnect_ended();
    }

    /// Disconnects clients whose connections the model has ended.
    fn disconnect_ended(&mut self) {
        self.port.take_ended(&mut self.ended);
        while let Some(connection) = self.ended.pop() {
            match self.by_connection.get(&connection) {
                Some(&key) => self.disconnect(key, &Gone::quietly()),
                // Its client is still to come, and finds that it is too late.
                None if self.reserved.remove(&connection) => self.port.close(connection),
                None => {}
            }
        }
    }

    /// Disconnects clients whose deadline has passed.
    fn check_deadlines(&mut self) {
        let deadlines = self.by_connection.values().filter_map(|key| {
            let deadline = self.clients.get(*key)?.client.deadline()?;
            Some((*key, deadline))
        });
        let deadlines: Vec<(Key, Deadline)> = deadlines.collect();
        self.check_at = (!deadlines.is_empty()).then(|| self.begun + DEADLINES_EVERY);
        let passed = deadlines.into_iter().filter(|(_, deadline)| deadline.at <= self.begun);
        self.lost.extend(passed.map(|(key, deadline)| (key, Gone::because(deadline.reason))));
    }

    /// Waits for the next event, socket or message.
    fn rest(&mut self) -> io::Result<()> {
        let mut time_to_wait = self.time_to_wait();
        if time_to_wait != Wait::None {
            self.waiter.announce_sleep();
            let look_again = self.prepare_clients_for_sleep();
            // A message sent before the announcement would not wake the loop.
            if self.receive_arrivals() || self.has_work() {
                return Ok(());
            }
            match look_again {
                // Waking up would take longer.
                Some(after) if after < AWAKE_BEFORE => return Ok(()),
                Some(after) => time_to_wait = time_to_wait.at_most(after),
                None => self.linger.sleeps(),
            }
            self.timing.sleeps += 1;
            self.slept = true;
        }
        self.polls += 1;
        self.waiter.wait(time_to_wait, &mut self.events)
    }

    /// Tells polled clients of a sleep; the shortest time after which one of them has to be looked after again.
    fn prepare_clients_for_sleep(&mut self) -> Option<Span> {
        if self.polled.is_empty() || self.stopping.is_some() {
            return None;
        }
        let silent = self.clock.now().since(self.last_activity);
        let (clients, polled) = (&mut self.clients, &self.polled);
        let asked = |key: &Key| clients.get_mut(*key)?.client.before_sleep(silent);
        polled.iter().filter_map(asked).min()
    }

    /// Whether some client can go on without anything coming from outside.
    fn has_work(&self) -> bool {
        let can_go_on = !self.events.ready.is_empty() || self.pool.can_invite() || self.has_undecided();
        can_go_on && self.stopping.is_none()
    }

    fn time_to_wait(&mut self) -> Wait {
        if self.poll == PollMode::Busy || self.has_work() {
            return Wait::None;
        }
        let now = self.clock.now();
        // At the end, clients have a while to take their replies.
        let deadline = self.stopping.map(|since| since + DRAIN_TIME);
        let due =
            self.executor.next_due().into_iter().chain(deadline).chain(self.check_at).min().map(|due| due.since(now));
        if now.since(self.last_activity) < self.linger.length() || due.is_some_and(|left| left <= AWAKE_BEFORE) {
            return Wait::None;
        }
        match due {
            Some(left) => Wait::For(left - AWAKE_BEFORE),
            None => Wait::Forever,
        }
    }

    /// Answers requests for figures. Copying figures takes long compared with a turn, so all receivers share one copy, and
    /// an old one if it is recent enough for all.
    fn answer_figures(&mut self) {
        let Some(not_before) = self.asked.iter().map(|(not_before, _)| *not_before).max() else { return };
        let (_, figures) = match self.answered.take() {
            Some(recent) if recent.0 >= not_before => self.answered.insert(recent),
            _ => {
                let figures = Arc::new(self.figures());
                self.answered.insert((self.clock.now(), figures))
            }
        };
        for (_, reply) in self.asked.drain(..) {
            // The receiver may have gone.
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
            flush_problem: self.flush_problem.clone(),
        }
    }
}

mod ending;
mod line;
mod sources;
#[cfg(test)]
mod tests;
