//! The path of a host to its drive: once the host is dead, no command passes.
//!
//! Left out: answers to commands already in the drive. A drive without power ends them, and the next command of a dead host is
//! held.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_drive::{Completion, Drive, DriveInfo, Io};
use nandscape_wire_nvme::Status;

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
}

impl Gate {
    /// Of a host that lives, to a drive that works.
    pub fn new(drive: Rc<dyn Drive>) -> Rc<Gate> {
        Gate::to(drive, &Rc::default())
    }

    /// The same to a drive that may be gone: while `is_gone`, commands of a living host end with Internal Error.
    pub fn to(drive: Rc<dyn Drive>, is_gone: &Rc<Cell<bool>>) -> Rc<Gate> {
        Rc::new(Gate { drive, host: Rc::default(), is_gone: is_gone.clone() })
    }

    /// Another queue pair of the same host to the same drive.
    pub fn beside(&self, drive: Rc<dyn Drive>) -> Rc<Gate> {
        Rc::new(Gate { drive, host: self.host.clone(), is_gone: self.is_gone.clone() })
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
            self.host.held.borrow_mut().push(io);
        } else if self.is_gone.get() {
            io.token.complete(Completion::of(Status::INTERNAL_ERROR));
        } else {
            self.drive.submit(io);
        }
    }
}
