//! The commands of a host that shares the clock of its drive, recorded as a port records those of a client: a replay has the same
//! arrivals at the same times. A recording changes nothing in the run.
//!
//! Left out: admin commands, hosts with their own queues, and cancels: with the first one the recording ends.

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
    warn: fn(&str),
    /// Why it could not be written whole, if it has ended early.
    failed: Cell<Option<io::Error>>,
}

impl Tape {
    /// Records with this recorder. Calls `warn` with a sentence if the recording ends before the run.
    pub fn new(sim: &Sim, recorder: Recorder, warn: fn(&str)) -> Rc<Tape> {
        Rc::new(Tape {
            sim: sim.clone(),
            recorder: RefCell::new(Some(recorder)),
            connections: Cell::new(0),
            stamped: Cell::new(None),
            warn,
            failed: Cell::new(None),
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

    /// Ends the recording at this time, unless it has ended early.
    ///
    /// # Errors
    /// When it could not be written whole.
    pub fn end(&self) -> io::Result<()> {
        let Some(mut recorder) = self.recorder.take() else { return self.failed.take().map_or(Ok(()), Err) };
        let now = self.sim.now();
        recorder.turn(DRIVE, now, None);
        recorder.end(now)
    }

    /// Ends it before the run. What is recorded stays valid.
    fn end_early(&self, why: &str) {
        if self.recorder.borrow().is_none() {
            return;
        }
        let at = self.sim.now().since(Time::ZERO);
        match self.end() {
            Ok(()) => {
                (self.warn)(&format!("the recording ends at {at} of simulated time, and the run continues: {why}"))
            }
            Err(error) => self.failed.set(Some(error)),
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
        self.tape.write(|recorder| recorder.command((self.id, DRIVE, self.lba_bytes), &io.command, &io.mem));
        self.below.submit(io);
    }

    fn cancel(&self, command: CommandRef) -> bool {
        let found = self.below.cancel(command);
        if found {
            self.tape.end_early("its host has cancelled a command, which a replay does not repeat");
        }
        found
    }
}
