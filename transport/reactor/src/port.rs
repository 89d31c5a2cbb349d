//! The interface between the model and the outside: it opens and closes connections, takes commands and orders, and returns
//! completions. Every input is stamped with the model's time and can be recorded. Drives that share nothing may have a timeline
//! each: an executor, and the time of their inputs.
//!
//! A connection is a drive, which takes commands one by one; a host with its own controller, which rings doorbells; or
//! one queue of a host whose commands pass as messages.

use std::collections::BTreeMap;
use std::rc::Rc;

use nandscape_drive::subsystem::IN_PROCESS_CONTROLLER;
use nandscape_drive::{BlockSizes, Controller, Drive, DriveInfo, HostMem, Io, QueueId, Token};
use nandscape_sim::{Sim, Time};
use nandscape_wire_nvme::{Status, SubmissionEntry, register};

use crate::access::Tape;
use crate::arrival::Arrival;
use crate::association::Association;
use crate::export::Export;
use crate::host::Host;
use crate::in_process::Counter;
use crate::message_queue::MessageQueue;
use crate::order::Order;
use crate::outbox::{Outbox, Outstanding, Released, ToHost};
use crate::recording::Recorder;
use crate::timing::Timing;

/// Names a connection of a port. No number is reused: commands of a disconnected client may still be in a drive.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ConnectionId(pub u32);

impl ConnectionId {
    /// Of all connections that do not pass the port ([`Counter`]).
    pub const IN_PROCESS: ConnectionId = ConnectionId(u32::MAX);
}

struct Connection {
    export: u16,
    info: DriveInfo,
    sizes: Rc<BlockSizes>,
    way: Way,
}

impl Connection {
    /// Its queue, if it belongs to an association.
    fn queue_of(&self, association: &Rc<Association>) -> Option<&Rc<MessageQueue>> {
        match &self.way {
            Way::Queue { queue, association: of } if Rc::ptr_eq(of, association) => Some(queue),
            _ => None,
        }
    }
}

/// How a connection uses its drive.
enum Way {
    /// One command at a time.
    Drive(Rc<dyn Drive>),
    /// By its own queues.
    Controller { controller: Rc<dyn Controller>, host: Rc<Host> },
    /// One queue, whose commands pass as messages.
    Queue { queue: Rc<MessageQueue>, association: Rc<Association> },
}

impl Way {
    /// Whether it keeps its own controller.
    fn has_controller(&self) -> bool {
        match self {
            Way::Drive(_) => false,
            Way::Controller { .. } => true,
            Way::Queue { queue, .. } => queue.id == QueueId::ADMIN,
        }
    }
}

/// A timeline as the port sees it.
struct Timeline {
    outbox: Rc<Outbox>,
    /// Whether this turn's stamp is recorded.
    is_recorded: bool,
    /// Polls of tasks at the time of this turn, if others are due then.
    polls: Option<u64>,
}

/// See the module. Its owner moves the model's clocks before each turn.
pub struct Port {
    exports: Vec<Rc<dyn Export>>,
    connections: BTreeMap<ConnectionId, Connection>,
    opened: u32,
    /// One for all drives, or one for each.
    timelines: Vec<Timeline>,
    tape: Tape,
    arrivals: u64,
    observer: Option<Observer>,
}

/// Called with every completion.
type Observer = Box<dyn FnMut(&Released)>;

impl Port {
    /// A port to `exports`, which connections name by their place.
    pub fn new(sim: &Sim, exports: Vec<Rc<dyn Export>>) -> Port {
        Port::apart(std::slice::from_ref(sim), exports)
    }

    /// The same to drives that have a timeline each. A single one is that of all.
    ///
    /// # Panics
    /// When there are several timelines, and not as many as drives.
    pub fn apart(timelines: &[Sim], exports: Vec<Rc<dyn Export>>) -> Port {
        let (count, drives) = (timelines.len(), exports.len());
        assert!(count == 1 || count == drives, "{drives} drives have one timeline or {drives}, and there are {count}");
        let timeline = |sim| Timeline { outbox: Rc::new(Outbox::new(sim)), is_recorded: false, polls: None };
        Port {
            exports,
            connections: BTreeMap::new(),
            opened: 0,
            timelines: timelines.iter().map(timeline).collect(),
            tape: Tape::default(),
            arrivals: 0,
            observer: None,
        }
    }

    /// Records all arrivals from now on.
    pub fn record(&mut self, recorder: Recorder) {
        self.tape.replace(Some(recorder));
    }

    /// Ends the recording at the model's time, that of each timeline. No arrival and no event came after its last turn began.
    ///
    /// # Errors
    /// When it could not be written whole, now or earlier.
    pub fn end_recording(&mut self) -> std::io::Result<()> {
        let Some(mut recorder) = self.tape.take() else { return Ok(()) };
        let times = self.timelines.iter().map(|timeline| (timeline.outbox.sim.now(), timeline.polls));
        // A run may end within an instant.
        (0..).zip(times.clone()).for_each(|(timeline, (now, polls))| recorder.turn(timeline, now, polls));
        recorder.end(times.map(|(now, _)| now).max().unwrap_or(Time::ZERO))
    }

    /// Records how well the run has kept up with the clock. Later arrivals are not of clients.
    pub(crate) fn record_timing(&mut self, timing: &Timing) {
        if let Some(recorder) = &mut *self.tape.borrow_mut() {
            recorder.timing(timing);
        }
    }

    /// A failure of the recording since the last call, if any: the recording ends, the run continues.
    pub(crate) fn recording_problem(&mut self) -> Option<String> {
        self.tape.borrow_mut().as_mut()?.news()
    }

    /// The drives that can be connected to.
    pub fn exports(&self) -> &[Rc<dyn Export>] {
        &self.exports
    }

    /// A turn of a timeline begins: arrivals from now on have a new stamp. `polls` is set if the model has stopped within this instant:
    /// how often tasks have been polled at this time ([`Executor::polls_now`](nandscape_sim::Executor::polls_now)).
    ///
    /// # Panics
    /// When there is no such timeline.
    pub fn begin_turn(&mut self, timeline: usize, polls: Option<u64>) {
        let timeline = &mut self.timelines[timeline];
        (timeline.is_recorded, timeline.polls) = (false, polls);
    }

    /// The place of a drive's timeline.
    fn timeline_of(&self, export: u16) -> usize {
        usize::from(export).min(self.timelines.len() - 1)
    }

    /// The output of a drive's timeline.
    fn outbox_of(&self, export: u16) -> &Rc<Outbox> {
        &self.timelines[self.timeline_of(export)].outbox
    }

    /// Counts the commands of a server in this process that connects to a drive by itself.
    ///
    /// # Panics
    /// When there is no such drive.
    pub fn counter(&self, export: u16) -> Counter {
        assert!(usize::from(export) < self.exports.len(), "there is no drive {export}");
        Counter::new(self.outbox_of(export).clone(), export)
    }

    /// The drive of a connection; the first if the connection is not open.
    fn export_of(&self, connection: ConnectionId) -> u16 {
        self.connections.get(&connection).map_or(0, |open| open.export)
    }

    /// The output of all timelines.
    fn outboxes(&self) -> impl Iterator<Item = &Rc<Outbox>> {
        self.timelines.iter().map(|timeline| &timeline.outbox)
    }

    /// Arrivals so far.
    pub fn arrivals(&self) -> u64 {
        self.arrivals
    }

    /// Commands in the model.
    pub fn outstanding(&self) -> usize {
        let of_host = |open: &Connection| match &open.way {
            Way::Drive(_) => 0,
            Way::Controller { host, .. } => host.commands.len(),
            Way::Queue { queue, .. } => queue.outstanding(),
        };
        let one_by_one: usize = self.outboxes().map(|outbox| outbox.outstanding.borrow().len()).sum();
        one_by_one + self.connections.values().map(of_host).sum::<usize>()
    }

    /// Connections of queues that have ended without being closed: their controller was reset, or its host has left.
    pub fn take_ended(&mut self, into: &mut Vec<ConnectionId>) {
        self.outboxes().for_each(|outbox| into.append(&mut outbox.ended.borrow_mut()));
    }

    /// Submits a command. Its completion is released under `tag`.
    ///
    /// # Panics
    /// When the connection is not open, or has its own queues.
    pub fn submit(&mut self, connection: ConnectionId, tag: u64, command: SubmissionEntry, mem: HostMem) {
        let Connection { export, sizes, way, .. } = &self.connections[&connection];
        // An admin command is recorded whole.
        let is_io = !matches!(way, Way::Queue { queue, .. } if queue.id == QueueId::ADMIN);
        let of = (connection, *export, if is_io { sizes.get(command.nsid.get()) } else { 0 });
        self.arrived(*export, |recorder| recorder.command(of, &command, &mem));
        let Connection { export, sizes, way, .. } = &self.connections[&connection];
        let drive = match way {
            Way::Drive(drive) => drive,
            Way::Queue { queue, association } => {
                if queue.is_deleted() {
                    association.restore(queue);
                }
                return queue.submit(&*association.controller, tag, command, mem);
            }
            Way::Controller { .. } => panic!("{connection:?} has queues of its own"),
        };
        let outbox = self.outbox_of(*export);
        let outstanding =
            Outstanding { tag, ..Outstanding::of((connection, *export), &command, sizes, outbox.sim.now()) };
        let key = outbox.outstanding.borrow_mut().insert(outstanding);
        drive.submit(Io { command, mem, token: Token::new(outbox.clone(), key.to_bits()) });
    }

    /// The transport refuses a command of a message queue: the status with which it does. It is in the error log then.
    ///
    /// # Panics
    /// When the connection is not open, or is no message queue.
    pub fn refuse(&mut self, connection: ConnectionId, command: &SubmissionEntry, status: Status) -> Status {
        self.arrived(self.export_of(connection), |recorder| recorder.refusal(connection, command, status));
        match &self.connections[&connection].way {
            Way::Queue { queue, association } => association.controller.refuse(queue.id, command, status),
            Way::Drive(_) | Way::Controller { .. } => panic!("{connection:?} is no message queue"),
        }
    }

    /// A host with its own queues does something to its controller.
    ///
    /// # Panics
    /// When the connection is not open, or is a drive.
    pub fn arrive(&mut self, connection: ConnectionId, arrival: Arrival) {
        self.arrived(self.export_of(connection), |recorder| recorder.arrival(connection, arrival));
        let controller = self.controller(connection);
        match arrival {
            Arrival::Register { offset, value } => controller.set_register(offset, value),
            Arrival::SubmissionTail { queue, tail } => controller.ring_submission(queue, tail),
            Arrival::CompletionHead { queue, head } => controller.ring_completion(queue, head),
            Arrival::Reset => controller.reset_function(),
        }
        if let Way::Queue { queue, association } = &self.connections[&connection].way
            && matches!(arrival, Arrival::Register { offset: register::CC, .. })
        {
            association.restore(queue);
            self.connections.values().filter_map(|open| open.queue_of(association)).for_each(|queue| {
                queue.follow_shutdown(&*association.controller);
            });
        }
    }

    /// A host has answered a request by its number: the data read, nothing for a write, or `None` for a failure.
    ///
    /// # Panics
    /// When the connection is not open, or has no own queues.
    pub fn answer(&mut self, connection: ConnectionId, number: u64, answer: Option<Vec<u8>>) {
        self.arrived(self.export_of(connection), |recorder| recorder.answer(connection, number, answer.as_deref()));
        let Way::Controller { controller, host } = &self.connections[&connection].way else {
            panic!("{connection:?} is asked for nothing")
        };
        host.asks.answer(number, answer);
        let came = host.came.take();
        came.into_iter().for_each(|(queue, tail)| controller.ring_submission(queue, tail));
    }

    /// The dword of the controller's properties at a byte offset. A read changes nothing, so it is not an arrival.
    ///
    /// # Panics
    /// When the connection is not open, or is a drive.
    pub fn register(&self, connection: ConnectionId, offset: u32) -> u32 {
        self.controller(connection).register(offset)
    }

    fn controller(&self, connection: ConnectionId) -> &dyn Controller {
        match &self.connections[&connection].way {
            Way::Controller { controller, .. } => &**controller,
            Way::Queue { association, .. } => &*association.controller,
            Way::Drive(_) => panic!("{connection:?} has no queues of its own"),
        }
    }

    /// Gives a drive an order.
    ///
    /// # Errors
    /// The drive's reason to refuse it.
    pub fn order(&mut self, export: u16, order: &Order) -> Result<(), String> {
        self.arrived(export, |recorder| recorder.order(export, order));
        match self.exports.get(usize::from(export)) {
            Some(drive) => drive.order(order),
            None => Err("there is no such drive".to_owned()),
        }
    }

    /// Whether a drive has commands under way of disconnected hosts.
    pub fn is_leaving(&self, export: u16) -> bool {
        let subsystem = self.exports.get(usize::from(export)).and_then(|drive| drive.subsystem());
        let here = self.connections.values().filter(|open| open.export == export);
        let attached = here.filter(|open| open.way.has_controller()).count();
        let others = |id: &u16| *id != IN_PROCESS_CONTROLLER;
        subsystem.is_some_and(|subsystem| subsystem.controllers().into_iter().filter(others).count() > attached)
    }

    /// The time of a connection's drive.
    pub(crate) fn now(&self, connection: ConnectionId) -> Time {
        self.outbox_of(self.export_of(connection)).sim.now()
    }

    /// The description of a connection's drive; `None` when the connection is not open.
    pub fn info(&self, connection: ConnectionId) -> Option<DriveInfo> {
        self.connections.get(&connection).map(|open| open.info)
    }

    /// Bytes of a logical block of a namespace that a connection reaches; 0 if it does not exist.
    pub(crate) fn block_bytes(&self, connection: ConnectionId, nsid: u32) -> u32 {
        self.connections.get(&connection).map_or(0, |open| open.sizes.get(nsid))
    }

    /// Whether a connection is open, and takes commands one by one.
    pub fn is_drive(&self, connection: ConnectionId) -> bool {
        self.connections.get(&connection).is_some_and(|open| !matches!(open.way, Way::Controller { .. }))
    }

    /// Whether a connection is open, and is one queue of a host whose commands pass as messages.
    pub(crate) fn is_message_queue(&self, connection: ConnectionId) -> bool {
        self.connections.get(&connection).is_some_and(|open| matches!(open.way, Way::Queue { .. }))
    }

    /// Connections to a drive that are open and submit commands one by one.
    pub(crate) fn drives(&self, export: u16) -> usize {
        let is_one = |open: &&Connection| open.export == export && matches!(open.way, Way::Drive(_));
        self.connections.values().filter(is_one).count()
    }

    /// Whether a connection is open, and may get requests for memory.
    pub fn is_asked(&self, connection: ConnectionId) -> bool {
        self.connections.get(&connection).is_some_and(|open| matches!(open.way, Way::Controller { .. }))
    }

    /// Whether a connection is open, and has a controller.
    pub fn is_host(&self, connection: ConnectionId) -> bool {
        self.connections.get(&connection).is_some_and(|open| !matches!(open.way, Way::Drive(_)))
    }

    /// Takes the completions since the last call, in the order of each timeline, into `into`.
    pub fn take_released(&mut self, into: &mut Vec<Released>) {
        for timeline in &self.timelines {
            let mut released = timeline.outbox.released.borrow_mut();
            if let Some(observe) = &mut self.observer {
                released.iter().for_each(observe);
            }
            into.append(&mut released);
        }
    }

    /// Calls `observe` with every completion that is taken from now on.
    pub fn observe(&mut self, observe: impl FnMut(&Released) + 'static) {
        self.observer = Some(Box::new(observe));
    }

    /// Moves what connections are to be notified of since the last call, in the order of each timeline, into `into`.
    pub fn take_to_hosts(&mut self, into: &mut Vec<ToHost>) {
        self.outboxes().for_each(|outbox| into.append(&mut outbox.to_hosts.borrow_mut()));
    }

    /// Whether someone looks at where the time of commands goes.
    pub(crate) fn watch(&self, is_watched: bool) {
        self.outboxes().for_each(|outbox| outbox.is_watched.set(is_watched));
    }

    fn arrived(&mut self, export: u16, record: impl FnOnce(&mut Recorder)) {
        self.arrivals += 1;
        let number = self.timeline_of(export);
        let mut tape = self.tape.borrow_mut();
        let Some(recorder) = &mut *tape else { return };
        let timeline = &mut self.timelines[number];
        if !std::mem::replace(&mut timeline.is_recorded, true) {
            // As many as drives, whose numbers have 16 bits.
            recorder.turn(number as u16, timeline.outbox.sim.now(), timeline.polls);
        }
        record(recorder);
    }
}

mod connections;
