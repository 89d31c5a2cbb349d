//! The commands of a host that shares the clock of its drive, recorded as a port records those of a client: a replay has the same
//! arrivals at the same times. A recording changes nothing in the run.
//!
//! Left out: admin commands, hosts with their own queues, and cancels: a recording with one fails at its end.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;

use nandscape_drive::{CommandRef, Drive, DriveInfo, Io};
use nandscape_sim::{Sim, Time};

use super::Recorder;
use crate::port::ConnectionId;

/// The only drive of such a recording, and its timeline.
const DRIVE: u16 = 0;

/// See the file.
pub struct Tape {
    sim: Sim,
    /// `None` once the recording has ended.
    recorder: RefCell<Option<Recorder>>,
    connections: Cell<u32>,
    /// The last stamp.
    stamped: Cell<Option<Time>>,
    /// Bytes that a command moves at most in a replay, and how many the first larger one has.
    most_bytes: u64,
    larger: Cell<Option<u64>>,
    /// Whether a command has been cancelled.
    cancelled: Cell<bool>,
}

impl Tape {
    /// Records with this recorder. The controller of a replay takes commands of `most_bytes` bytes at most.
    pub fn new(sim: &Sim, recorder: Recorder, most_bytes: u64) -> Rc<Tape> {
        Rc::new(Tape {
            sim: sim.clone(),
            recorder: RefCell::new(Some(recorder)),
            connections: Cell::new(0),
            stamped: Cell::new(None),
            most_bytes,
            larger: Cell::new(None),
            cancelled: Cell::new(false),
        })
    }

    /// A connection of the host to its drive, whose commands are recorded from now on.
    pub fn over(self: &Rc<Self>, drive: Rc<dyn Drive>) -> Rc<dyn Drive> {
        let number = self.connections.get();
        self.connections.set(number + 1);
        let id = ConnectionId(number);
        self.write(|recorder| recorder.open(id, DRIVE));
        Rc::new(Taped { tape: self.clone(), id, lba_bytes: drive.info().lba_bytes, below: drive })
    }

    /// Ends the recording at this time.
    ///
    /// # Errors
    /// When it could not be written whole, or has a command that no replay takes.
    pub fn end(&self) -> io::Result<()> {
        let Some(mut recorder) = self.recorder.take() else { return Ok(()) };
        let now = self.sim.now();
        recorder.turn(DRIVE, now, None);
        recorder.end(now)?;
        match self.larger.get() {
            None if self.cancelled.get() => {
                Err(io::Error::other("the host has cancelled a command, which a recording of it cannot repeat"))
            }
            None => Ok(()),
            Some(bytes) => Err(io::Error::other(format!(
                "a command of {bytes} bytes is too large for the controller of a replay, which takes {} at most",
                self.most_bytes
            ))),
        }
    }

    fn write(&self, record: impl FnOnce(&mut Recorder)) {
        let mut recorder = self.recorder.borrow_mut();
        let Some(recorder) = &mut *recorder else { return };
        let now = self.sim.now();
        if self.stamped.replace(Some(now)) != Some(now) {
            recorder.turn(DRIVE, now, None);
        }
        record(recorder);
    }
}

/// Such a connection.
struct Taped {
    tape: Rc<Tape>,
    id: ConnectionId,
    lba_bytes: u32,
    below: Rc<dyn Drive>,
}

impl Drive for Taped {
    fn info(&self) -> DriveInfo {
        self.below.info()
    }

    fn submit(&self, io: Io) {
        let bytes = io.mem.len() as u64;
        if bytes > self.tape.most_bytes && self.tape.larger.get().is_none() {
            self.tape.larger.set(Some(bytes));
        }
        self.tape.write(|recorder| recorder.command((self.id, DRIVE, self.lba_bytes), &io.command, &io.mem));
        self.below.submit(io);
    }

    fn cancel(&self, command: CommandRef) -> bool {
        let found = self.below.cancel(command);
        self.tape.cancelled.set(self.tape.cancelled.get() || found);
        found
    }
}
