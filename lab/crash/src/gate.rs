//! The path of a host to its drive: once the host is dead, no command passes.
//!
//! Left out: answers to commands already in the drive. A drive without power ends them, and the next command of a dead host is
//! held.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_drive::{Completion, Drive, DriveInfo, Io};
use nandscape_sim::Sim;
use nandscape_sim::signal::Signal;
use nandscape_wire_nvme::Status;

/// Counts the commands of hosts, for points at a command.
pub struct Commands {
    sent: Cell<u64>,
    changed: Signal,
}

impl Commands {
    /// None so far.
    pub fn new(sim: &Sim) -> Rc<Commands> {
        Rc::new(Commands { sent: Cell::new(0), changed: Signal::new(sim) })
    }

    /// Commands so far.
    pub fn sent(&self) -> u64 {
        self.sent.get()
    }

    /// Waits for the command of a number, counted from 1.
    pub async fn reached(&self, number: u64) {
        while self.sent.get() < number {
            self.changed.changed().await;
        }
    }
}

#[derive(Default)]
struct Host {
    is_dead: Cell<bool>,
    held: RefCell<Vec<Io>>,
}

/// See the file.
pub struct Gate {
    drive: Rc<dyn Drive>,
    host: Rc<Host>,
    is_gone: Rc<Cell<bool>>,
    commands: Option<Rc<Commands>>,
}

impl Gate {
    /// Of a host that lives, to a drive that works.
    pub fn new(drive: Rc<dyn Drive>) -> Rc<Gate> {
        Gate::to(drive, &Rc::default())
    }

    /// The same to a drive that may be gone: while `is_gone`, commands of a living host end with Internal Error.
    pub fn to(drive: Rc<dyn Drive>, is_gone: &Rc<Cell<bool>>) -> Rc<Gate> {
        Rc::new(Gate { drive, host: Rc::default(), is_gone: is_gone.clone(), commands: None })
    }

    /// The same, whose commands are counted while the host lives.
    pub fn counting(drive: Rc<dyn Drive>, is_gone: &Rc<Cell<bool>>, commands: &Rc<Commands>) -> Rc<Gate> {
        let (is_gone, commands) = (is_gone.clone(), Some(commands.clone()));
        Rc::new(Gate { drive, host: Rc::default(), is_gone, commands })
    }

    /// Another queue pair of the same host to the same drive. Its commands are not counted.
    pub fn second(&self, drive: Rc<dyn Drive>) -> Rc<Gate> {
        Rc::new(Gate { drive, host: self.host.clone(), is_gone: self.is_gone.clone(), commands: None })
    }

    /// The host dies: later commands are held for ever.
    pub fn kill(&self) {
        self.host.is_dead.set(true);
    }
}

impl Drive for Gate {
    fn info(&self) -> DriveInfo {
        self.drive.info()
    }

    fn submit(&self, io: Io) {
        if self.host.is_dead.get() {
            return self.host.held.borrow_mut().push(io);
        }
        if let Some(commands) = &self.commands {
            commands.sent.set(commands.sent.get() + 1);
            commands.changed.notify();
        }
        if self.is_gone.get() {
            io.token.complete(Completion::of(Status::INTERNAL_ERROR));
        } else {
            self.drive.submit(io);
        }
    }
}
