//! The progress of a start: a bar on a terminal, a line now and then elsewhere, and the status at the control socket.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;
use std::{io, io::IsTerminal as _};

use nandscape_lab_run::{Phase, Progress};
use nandscape_transport_control::Startup;

use crate::{output, progress};

/// Without a terminal: the time until the first line, and between lines.
const PAUSE: Duration = Duration::from_secs(3);

/// Shows the progress of the drives of a reactor.
pub(super) struct Starting {
    bar: Rc<dyn Progress>,
    startup: Arc<Startup>,
    drive: RefCell<String>,
    /// The share that clients know, in thousandths.
    told: Cell<u64>,
}

impl Starting {
    pub(super) fn new(startup: &Arc<Startup>) -> Starting {
        Starting { bar: progress::bar(), startup: startup.clone(), drive: RefCell::default(), told: Cell::new(0) }
    }

    /// A drive is built from now on.
    pub(super) fn begin(&self, drive: &str) {
        self.startup.at(drive, "starting", None);
        self.told.set(u64::MAX);
        drive.clone_into(&mut self.drive.borrow_mut());
    }
}

impl Progress for Starting {
    fn at(&self, phase: Phase, share: f64) {
        self.bar.at(phase, share);
        let thousandths = (share * 1_000.0) as u64;
        if self.told.replace(thousandths) != thousandths {
            self.startup.at(&self.drive.borrow(), "preconditioning", Some(share));
        }
    }
}

/// Without a terminal, prints how far a long start is, until it is dropped.
pub(super) struct Lines {
    _stop: Option<Sender<()>>,
}

impl Lines {
    pub(super) fn of(startup: &Arc<Startup>) -> Lines {
        if io::stderr().is_terminal() {
            return Lines { _stop: None };
        }
        let (stop, stopped) = channel::<()>();
        let startup = startup.clone();
        // Without a thread there are no lines.
        let _ = std::thread::Builder::new().name("startup".to_owned()).spawn(move || {
            while stopped.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
                output::note(&startup.in_words());
            }
        });
        Lines { _stop: Some(stop) }
    }
}
