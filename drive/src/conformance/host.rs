//! Submits commands to a drive and records their results. For all checks, it verifies that every command completes once and
//! that its stages sum to its latency.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_sim::signal::Signal;
use nandscape_sim::{Sim, Time};
use nandscape_wire_nvme::SubmissionEntry;

use crate::drive::{Drive, DriveInfo};
use crate::io::{Completion, Io, Sink, Token};
use crate::mem::HostMem;

/// A command that has ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ended {
    /// Commands are numbered in the order of submission.
    pub tag: u64,
    /// When it was submitted.
    pub submitted: Time,
    /// When it completed.
    pub ended: Time,
    /// Status, result dwords and breakdown.
    pub completion: Completion,
}

/// A user of a drive.
pub struct Host {
    drive: RefCell<Option<Rc<dyn Drive>>>,
    info: DriveInfo,
    book: Rc<Book>,
}

/// The commands submitted and their results.
struct Book {
    sim: Sim,
    news: Signal,
    /// When each command was submitted, and whether it has ended, by tag.
    commands: RefCell<Vec<(Time, bool)>>,
    log: RefCell<Vec<Ended>>,
    /// Entries of the log that were taken.
    seen: Cell<usize>,
    /// The first error.
    fault: RefCell<Option<String>>,
}

impl Book {
    fn blame(&self, what: String) {
        self.fault.borrow_mut().get_or_insert(what);
    }
}

impl Sink for Book {
    fn complete(&self, tag: u64, completion: Completion) {
        let ended = self.sim.now();
        let (submitted, before) = {
            let command = &mut self.commands.borrow_mut()[tag as usize];
            (command.0, std::mem::replace(&mut command.1, true))
        };
        if before {
            self.blame(format!("command {tag} completed twice, the second time with {}", completion.status));
        }
        let (told, taken) = (completion.breakdown.total(), ended - submitted);
        if !told.is_zero() && told != taken {
            self.blame(format!("command {tag} took {taken:?}, and its stages sum to {told:?}"));
        }
        self.log.borrow_mut().push(Ended { tag, submitted, ended, completion });
        self.news.notify();
    }

    fn is_stopped(&self) -> bool {
        self.sim.is_stopped()
    }
}

impl Host {
    /// A user of `drive` alone.
    pub fn new(sim: &Sim, drive: Rc<dyn Drive>) -> Host {
        let book = Book {
            sim: sim.clone(),
            news: Signal::new(sim),
            commands: RefCell::default(),
            log: RefCell::default(),
            seen: Cell::new(0),
            fault: RefCell::default(),
        };
        Host { info: drive.info(), drive: RefCell::new(Some(drive)), book: Rc::new(book) }
    }

    /// The drive's description.
    pub fn info(&self) -> DriveInfo {
        self.info
    }

    /// Submits a command; its tag.
    ///
    /// # Panics
    /// After [`Host::let_go`].
    pub fn submit(&self, command: SubmissionEntry, mem: HostMem) -> u64 {
        let mut commands = self.book.commands.borrow_mut();
        let tag = commands.len() as u64;
        commands.push((self.book.sim.now(), false));
        drop(commands);
        let drive = self.drive.borrow().clone().expect("the drive was not let go");
        drive.submit(Io { command, mem, token: Token::new(self.book.clone(), tag) });
        tag
    }

    /// Waits for the next command to end.
    ///
    /// # Errors
    /// The drive's fault.
    pub async fn next(&self) -> Result<Ended, String> {
        loop {
            self.verdict()?;
            let seen = self.book.seen.get();
            if let Some(ended) = self.book.log.borrow().get(seen) {
                self.book.seen.set(seen + 1);
                return Ok(ended.clone());
            }
            self.book.news.changed().await;
        }
    }

    /// Submits a command and waits for it, while no other is outstanding.
    ///
    /// # Errors
    /// The drive's fault.
    pub async fn execute(&self, command: SubmissionEntry, mem: HostMem) -> Result<Completion, String> {
        let tag = self.submit(command, mem);
        let ended = self.next().await?;
        match ended.tag == tag {
            true => Ok(ended.completion),
            false => Err(format!("command {} ended, but {tag} alone was outstanding", ended.tag)),
        }
    }

    /// Commands submitted.
    pub fn submitted(&self) -> usize {
        self.book.commands.borrow().len()
    }

    /// Commands that have ended so far.
    pub fn ended(&self) -> usize {
        self.book.log.borrow().len()
    }

    /// Every command that has ended, in the order of their ends.
    pub fn log(&self) -> Vec<Ended> {
        self.book.log.borrow().clone()
    }

    /// Releases the drive.
    pub fn let_go(&self) {
        let drive = self.drive.take();
        drop(drive);
    }

    /// Checks that the drive has made no error so far.
    ///
    /// # Errors
    /// The first error of the drive.
    pub fn verdict(&self) -> Result<(), String> {
        match &*self.book.fault.borrow() {
            Some(fault) => Err(fault.clone()),
            None => Ok(()),
        }
    }
}
