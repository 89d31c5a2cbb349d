//! The loop in real time: one thread that owns executors, drives and clients.
//!
//! Each turn takes the time T, runs the model's events up to T, sends their completions, and then receives arrivals from
//! outside, stamped T. Each executor is a timeline (the file `timelines`) of drives that share nothing with those of the
//! others. One that is behind at the end of a turn stamps its arrivals with the time that it has reached. When no event is
//! due soon the loop sleeps. It wakes shortly before the next event, because the system's wake-up latency is longer and
//! varies more than that of spinning.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use nandscape_sim::slots::{Key, Slots};
use nandscape_sim::{Executor, Span, Time};

use crate::buffers::{BUDGET, Pool};
use crate::client::{Client, Gone, Interest};
use crate::clock::WallClock;
use crate::handle::{ExportFigures, Figures, Handle, Message};
use crate::linger::Linger;
use crate::outbox::{Released, ToHost};
use crate::port::{ConnectionId, Port};
use crate::timing::Timing;
use crate::waiter::{Events, Wait, Waiter};
use crate::watch::Watch;
use line::Line;
use sources::Sources;
use timelines::Timelines;

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
    /// Run the drives: one for all of them, or one for each, as in the port.
    pub timelines: Vec<Executor>,
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
/// When the core does not exist.
pub fn pin_to_core(number: usize) -> io::Result<()> {
    let allowed = rustix::thread::sched_getaffinity(None)?;
    let mut cores = (0..rustix::thread::CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core));
    let core = cores.nth(number).ok_or(io::ErrorKind::NotFound)?;
    let mut only = rustix::thread::CpuSet::new();
    only.set(core);
    Ok(rustix::thread::sched_setaffinity(None, &only)?)
}

/// Polls of tasks between two deliveries of completions. A client in this process sees them at once.
const POLLS_A_DELIVERY: u32 = 32;
/// The same where drives have separate timelines, of which another may be next.
const POLLS_A_SHARE: u32 = 8;
/// Deliveries between two times that replies are sent: one system call for many is cheaper than one for each.
const DELIVERIES_A_SEND: u32 = 16;
/// The longest that the model runs in one turn, so that arrivals do not wait longer. It is short compared with a stall, and
/// long compared with polling sockets.
const MODEL_A_TURN: Span = Span::from_us(250);
/// The same where drives have separate timelines: a client of one drive should not notice that another drive works.
const MODEL_A_SHARED_TURN: Span = Span::from_us(100);
/// The most work of long commands in one turn, in mapping units read or written: no longer than [`MODEL_A_TURN`] on a usual
/// machine. A part of such a command has half of it, so that others have a turn between two parts.
const WORK_A_TURN: u64 = 32;
/// Messages from other threads handled in one turn, so that clients that connect and hang up in a loop cannot starve the
/// connected ones. Connecting a client takes a few microseconds.
const MESSAGES_A_TURN: u32 = 16;
/// After a turn longer than this, sockets are always polled.
const LONG_TURN: Span = Span::from_us(50);
/// Clients that waited for memory and continue in one turn.
const INVITED_A_TURN: u32 = 16;
/// The loop is awake this long before an event is due.
const AWAKE_BEFORE: Span = Span::from_us(80);
/// The time for clients to receive their last replies when the reactor ends, once the drives have finished.
const DRAIN_TIME: Span = Span::from_s(5);
/// The time between two checks of the clients' deadlines.
const DEADLINES_EVERY: Span = Span::from_s(1);

/// See the module.
pub struct Reactor {
    timelines: Timelines,
    /// The longest that the model runs in one turn.
    model_a_turn: Span,
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
    /// Connections whose client is not connected yet.
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
    /// Clients found disconnected while the model ran. They are disconnected at this turn's time, as a recording has
    /// it.
    lost: Vec<(Key, Gone)>,
    /// Connections that the model has ended.
    ended: Vec<ConnectionId>,
    /// When the clients' deadlines are checked; `None` while no client has one.
    check_at: Option<Time>,
    released: Vec<Released>,
    to_hosts: Vec<ToHost>,
    /// When each of them was completed.
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
    /// Data gathered for watchers.
    watch: Option<Watch>,
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

    /// As [`Reactor::new`]; all clients together hold at most `bytes` of data for requests and replies, in addition to
    /// [`GUARANTEED`](crate::GUARANTEED) each.
    ///
    /// # Errors
    /// When the system has no more descriptors.
    pub fn with_memory(setup: Setup, bytes: usize) -> io::Result<(Reactor, Handle)> {
        let mut waiter = Waiter::new()?;
        let Setup { timelines, port, names, poll, log } = setup;
        let timelines = Timelines::new(timelines);
        let model_a_turn = if timelines.count() > 1 { MODEL_A_SHARED_TURN } else { MODEL_A_TURN };
        // The drives may have worked before, to open an array.
        let first = timelines.now();
        let clock = WallClock::start_at(first);
        let (handle, inbox) = Handle::new(waiter.waker(), clock);
        let sources = Sources::of(port.exports(), &names, &mut waiter)?;
        let figures = names.into_iter().map(|name| ExportFigures { name, ..ExportFigures::default() }).collect();
        let reactor = Reactor {
            timelines,
            model_a_turn,
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
            watch: None,
            turn: first,
            begun: first,
            last_activity: first,
            stopping: None,
            recording_problem: None,
            sources,
            flush_problem: None,
        };
        Ok((reactor, handle))
    }

    /// Turns until it is stopped and all received requests are done. Returns the timelines and the last figures, which include
    /// the outcome of the recording.
    ///
    /// # Errors
    /// When waiting for sockets fails.
    pub fn run(mut self) -> io::Result<(Vec<Executor>, Figures)> {
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
        Ok((self.timelines.into_executors(), figures))
    }

    /// One turn. Then polls the sockets: when there was no arrival, after a long turn, and in any case after every
    /// second turn, so that clients without sockets cannot starve them.
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

    /// One turn; returns whether there was an arrival.
    fn turn(&mut self) -> bool {
        let before = self.begun;
        self.timing.turns += 1;
        self.catch_up();
        if let Some(problem) = self.port.recording_problem() {
            (self.log)(&problem);
            self.recording_problem = Some(problem);
        }
        let since_last = self.begun.since(before);
        let slept = std::mem::take(&mut self.slept);
        self.pool.begin_turn(slept);
        self.long_turn = !slept && since_last >= LONG_TURN;
        if !slept {
            self.timing.poll_gap.record(since_last);
        }
        let came = self.receive_arrivals();
        self.linger.polled(came);
        if came {
            self.last_activity = self.begun;
        }
        came
    }

    /// Takes the time and runs the model up to it. Arrivals from now on are stamped with it, or with the time that their timeline
    /// has reached.
    fn catch_up(&mut self) {
        self.begun = self.clock.now();
        let until = self.begun.max(self.turn);
        self.run_model(until);
        let port = &mut self.port;
        self.turn = self.timelines.arrive(until, |timeline, polls| port.begin_turn(timeline, polls));
    }

    /// Runs the model up to `until`, and sends completions on the way. If that takes long, the rest is for the next turn, also of what
    /// is due at the time that a timeline has reached.
    fn run_model(&mut self, until: Time) {
        self.timelines.begin(until);
        let are_several = self.timelines.count() > 1;
        let most = if are_several { POLLS_A_SHARE } else { POLLS_A_DELIVERY };
        let (mut looks, mut work) = (0_u32, 0);
        loop {
            looks += 1;
            let begun = are_several.then(|| self.clock.now());
            let share = self.timelines.advance(until, most);
            if let Some(begun) = begun {
                self.timelines.charge(self.clock.now().since(begun));
            }
            work += share.work;
            let late = share.reached.is_some_and(|reached| self.is_late(reached, work));
            let enough = share.are_all_whole || late;
            self.deliver();
            // The clients of a drive do not wait for the others.
            if enough || share.is_whole || looks.is_multiple_of(DELIVERIES_A_SEND) {
                self.send();
            }
            if enough {
                return;
            }
        }
    }

    /// Notes the delay of a timeline, and the long work of this turn. Returns whether the model has run for long.
    fn is_late(&mut self, reached: Time, work: u64) -> bool {
        let now = self.clock.now();
        self.timing.behind_max = self.timing.behind_max.max(now.since(reached));
        self.timing.work_max = self.timing.work_max.max(work);
        work >= WORK_A_TURN || now.since(self.begun) >= self.model_a_turn
    }

    /// Receives arrivals from outside; returns whether there were any.
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
            // No more input is read. Replies are still sent.
            let Events { ready, hung_up, .. } = std::mem::take(&mut self.events);
            for key in hung_up.into_iter().map(Key::from_bits) {
                if let Some(connected) = self.clients.get_mut(key) {
                    connected.client.hung_up();
                    came |= self.leave_if_deserted(key);
                }
            }
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
}

mod clients;
mod delivering;
mod ending;
mod line;
mod messages;
mod resting;
mod sources;
#[cfg(test)]
mod tests;
mod timelines;
