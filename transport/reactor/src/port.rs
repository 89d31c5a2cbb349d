//! The door between the model and the outside: connections are opened and closed here, commands and orders go in,
//! completions come out. Everything that goes in is stamped with the model's time and can be recorded.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use nandscape_drive::io::Sink;
use nandscape_drive::{Completion, Controller, Drive, DriveInfo, HostMem, Io, QueueDrive, Token};
use nandscape_sim::slots::{Key, Slots};
use nandscape_sim::{Sim, Time};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

use crate::order::{FaultCount, Order};
use crate::queue_ids::QueueIds;
use crate::recording::Recorder;

/// Names a connection of a port. No number is used twice: commands of a client that has gone may still be in a drive.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ConnectionId(pub u32);

/// A drive that clients can connect to.
pub trait Export {
    /// What the drive is.
    fn info(&self) -> DriveInfo;

    /// A way of its own into the drive for one connection.
    ///
    /// # Errors
    /// Why the drive takes no more.
    fn connect(&self) -> Result<Rc<dyn Drive>, Status>;

    /// What the drive counts, by name with unit; names end in `_total` where they only grow.
    fn counters(&self) -> BTreeMap<&'static str, f64> {
        BTreeMap::new()
    }

    /// Does as it is told.
    ///
    /// # Errors
    /// Why it does not, and what would be valid.
    fn order(&self, _order: &Order) -> Result<(), String> {
        Err("this drive takes no orders".to_owned())
    }

    /// What is to go wrong with the drive, and what of it did.
    fn faults(&self) -> Vec<FaultCount> {
        Vec::new()
    }
}

/// A controller that gives each connection a queue pair.
pub struct QueueExport {
    sim: Sim,
    controller: Rc<dyn Controller>,
    ids: Rc<QueueIds>,
    entries: u32,
}

impl QueueExport {
    /// Queue pairs 1 to `max_pairs` of a controller, of `entries` entries each.
    pub fn new(sim: &Sim, controller: Rc<dyn Controller>, max_pairs: u16, entries: u32) -> QueueExport {
        QueueExport { sim: sim.clone(), controller, ids: QueueIds::new(max_pairs), entries }
    }
}

impl Export for QueueExport {
    fn info(&self) -> DriveInfo {
        self.controller.info()
    }

    fn connect(&self) -> Result<Rc<dyn Drive>, Status> {
        let id = self.ids.take().ok_or(Status::INVALID_QUEUE_ID)?;
        let drive = QueueDrive::new(&self.sim, self.controller.clone(), id.id(), self.entries)?;
        // The next connection gets the number when the commands of this one have ended.
        drive.keep_until_deleted(Box::new(id));
        Ok(drive)
    }
}

/// A command that has completed.
#[derive(Debug)]
pub struct Released {
    /// Who submitted it.
    pub connection: ConnectionId,
    /// To which drive.
    pub export: u16,
    /// What the connection called it.
    pub tag: u64,
    /// Its opcode.
    pub opcode: u8,
    /// Bytes that it moved or was to move.
    pub bytes: u64,
    /// When it arrived.
    pub arrived: Time,
    /// When the model completed it.
    pub at: Time,
    /// How it ended.
    pub completion: Completion,
}

struct Outstanding {
    connection: ConnectionId,
    export: u16,
    tag: u64,
    opcode: u8,
    bytes: u64,
    arrived: Time,
}

/// Where the model's completions go.
struct Outbox {
    sim: Sim,
    outstanding: RefCell<Slots<Outstanding>>,
    released: RefCell<Vec<Released>>,
}

impl Sink for Outbox {
    fn complete(&self, tag: u64, completion: Completion) {
        let command = self.outstanding.borrow_mut().remove(Key::from_bits(tag));
        let Some(Outstanding { connection, export, tag, opcode, bytes, arrived }) = command else { return };
        let at = self.sim.now();
        self.released.borrow_mut().push(Released { connection, export, tag, opcode, bytes, arrived, at, completion });
    }

    fn is_stopped(&self) -> bool {
        self.sim.is_stopped()
    }
}

struct Connection {
    export: u16,
    drive: Rc<dyn Drive>,
    lba_bytes: u32,
}

/// The door. Whoever holds it moves the model's clock before each turn.
pub struct Port {
    exports: Vec<Rc<dyn Export>>,
    connections: BTreeMap<ConnectionId, Connection>,
    opened: u32,
    outbox: Rc<Outbox>,
    recorder: Option<Recorder>,
    turn_recorded: bool,
    arrivals: u64,
}

impl Port {
    /// A port to `exports`, which connections name by their place.
    pub fn new(sim: &Sim, exports: Vec<Rc<dyn Export>>) -> Port {
        let outbox = Outbox { sim: sim.clone(), outstanding: RefCell::default(), released: RefCell::default() };
        Port {
            exports,
            connections: BTreeMap::new(),
            opened: 0,
            outbox: Rc::new(outbox),
            recorder: None,
            turn_recorded: false,
            arrivals: 0,
        }
    }

    /// Records what arrives from now on.
    pub fn record(&mut self, recorder: Recorder) {
        self.recorder = Some(recorder);
    }

    /// Ends the recording at the model's time.
    ///
    /// # Errors
    /// When it could not be written whole, now or earlier.
    pub fn end_recording(&mut self) -> std::io::Result<()> {
        let now = self.outbox.sim.now();
        self.recorder.take().map_or(Ok(()), |recorder| recorder.end(now))
    }

    /// What went wrong with the recording since the last call: it ends there, the run goes on.
    pub(crate) fn recording_problem(&mut self) -> Option<String> {
        self.recorder.as_mut()?.news()
    }

    /// The drives that can be connected to.
    pub fn exports(&self) -> &[Rc<dyn Export>] {
        &self.exports
    }

    /// A turn begins: what arrives from now on has a stamp of its own.
    pub fn begin_turn(&mut self) {
        self.turn_recorded = false;
    }

    /// Things that have arrived so far.
    pub fn arrivals(&self) -> u64 {
        self.arrivals
    }

    /// Commands in the model.
    pub fn outstanding(&self) -> usize {
        self.outbox.outstanding.borrow().len()
    }

    /// Connects to a drive.
    ///
    /// # Errors
    /// The drive's refusal, or Invalid Namespace when there is no such drive.
    pub fn open(&mut self, export: u16) -> Result<ConnectionId, Status> {
        let id = ConnectionId(self.opened);
        self.opened += 1;
        self.arrived(|recorder| recorder.open(id, export));
        let drive = self.exports.get(usize::from(export)).ok_or(Status::INVALID_NAMESPACE)?.connect()?;
        let connection = Connection { export, lba_bytes: drive.info().lba_bytes, drive };
        self.connections.insert(id, connection);
        Ok(id)
    }

    /// Submits a command. Its completion comes out under `tag`.
    ///
    /// # Panics
    /// When the connection is not open.
    pub fn submit(&mut self, connection: ConnectionId, tag: u64, command: SubmissionEntry, mem: HostMem) {
        self.arrived(|recorder| recorder.command(connection, &command, &mem));
        let to = &self.connections[&connection];
        let (bytes, arrived) = (bytes_of(&command, to.lba_bytes), self.outbox.sim.now());
        let outstanding = Outstanding { connection, export: to.export, tag, opcode: command.opcode, bytes, arrived };
        let key = self.outbox.outstanding.borrow_mut().insert(outstanding);
        to.drive.submit(Io { command, mem, token: Token::new(self.outbox.clone(), key.to_bits()) });
    }

    /// Closes a connection. Commands that have not completed are aborted.
    pub fn close(&mut self, connection: ConnectionId) {
        self.arrived(|recorder| recorder.close(connection));
        let closed = self.connections.remove(&connection);
        drop(closed);
    }

    /// Tells a drive something from beside.
    ///
    /// # Errors
    /// The drive's reason for not doing it.
    pub fn order(&mut self, export: u16, order: &Order) -> Result<(), String> {
        self.arrived(|recorder| recorder.order(export, order));
        match self.exports.get(usize::from(export)) {
            Some(drive) => drive.order(order),
            None => Err("there is no such drive".to_owned()),
        }
    }

    /// What the drive of a connection is; `None` when it is not open.
    pub fn info(&self, connection: ConnectionId) -> Option<DriveInfo> {
        self.connections.get(&connection).map(|open| open.drive.info())
    }

    /// Whether a connection is open.
    pub fn is_open(&self, connection: ConnectionId) -> bool {
        self.connections.contains_key(&connection)
    }

    /// Takes the completions since the last call, in order, into `into`.
    pub fn take_released(&mut self, into: &mut Vec<Released>) {
        into.append(&mut self.outbox.released.borrow_mut());
    }

    fn arrived(&mut self, record: impl FnOnce(&mut Recorder)) {
        self.arrivals += 1;
        let Some(recorder) = &mut self.recorder else { return };
        if !self.turn_recorded {
            recorder.turn(self.outbox.sim.now());
            self.turn_recorded = true;
        }
        record(recorder);
    }
}

/// Bytes that a command names.
fn bytes_of(command: &SubmissionEntry, lba_bytes: u32) -> u64 {
    match IoOpcode(command.opcode) {
        IoOpcode::FLUSH | IoOpcode::DATASET_MANAGEMENT => 0,
        _ => (u64::from(command.cdw12.get() & 0xffff) + 1) * u64::from(lba_bytes),
    }
}
