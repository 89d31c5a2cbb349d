//! The threads of an application, as a drive: each thread has one I/O at a time, and what comes beyond waits for a thread. They run on the host, or are
//! clients on another machine.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};

use nandscape_drive::{CommandRef, Completion, Drive, DriveInfo, Io};
use nandscape_host_machine::{ConfigError, Context, Event, Machine, ThreadSpec};
use nandscape_sim::{Sim, Time};
use nandscape_wire_nvme::Status;

use crate::clients::{Clients, Connection};
use crate::path::Path;
use crate::stages::Account;

/// See the file. The threads end with the simulation.
pub struct Threads {
    sim: Sim,
    place: Place,
    info: DriveInfo,
    inbox: RefCell<VecDeque<(Io, Time)>>,
    /// A thread hands over a completion, and will take the I/O that follows.
    is_taking: Cell<bool>,
    spec: ThreadSpec,
    count: Cell<u32>,
    most: u32,
    me: Weak<Threads>,
    idle: Event,
}

/// Where the threads run.
enum Place {
    Host(Rc<Path>),
    Remote(Rc<Clients>),
}

/// How a thread has an I/O done.
enum Way {
    Host(Rc<Path>),
    Remote(Rc<Connection>),
}

impl Place {
    fn machine(&self) -> &Machine {
        match self {
            Place::Host(path) => path.machine(),
            Place::Remote(clients) => clients.machine(),
        }
    }
}

impl Threads {
    /// `count` threads that use a namespace, which `info` describes. An I/O that finds none of them idle begins another, up to `most`.
    ///
    /// # Errors
    /// That a thread may not run on any processor.
    pub fn new(
        path: &Rc<Path>,
        info: DriveInfo,
        counts: (u32, u32),
        spec: ThreadSpec,
    ) -> Result<Rc<Threads>, ConfigError> {
        Threads::at((Place::Host(path.clone()), path.sim.clone()), info, counts, spec)
    }

    /// The same on the machine of clients, each with a connection to a thread of the host.
    ///
    /// # Errors
    /// That a thread may not run on any processor.
    pub fn of_clients(
        clients: &Rc<Clients>,
        info: DriveInfo,
        counts: (u32, u32),
        spec: ThreadSpec,
    ) -> Result<Rc<Threads>, ConfigError> {
        Threads::at((Place::Remote(clients.clone()), clients.path().sim.clone()), info, counts, spec)
    }

    fn at(
        (place, sim): (Place, Sim),
        info: DriveInfo,
        (count, most): (u32, u32),
        spec: ThreadSpec,
    ) -> Result<Rc<Threads>, ConfigError> {
        let idle = Event::new(place.machine());
        let threads = Rc::new_cyclic(|me: &Weak<Threads>| Threads {
            sim,
            place,
            info,
            inbox: RefCell::default(),
            is_taking: Cell::new(false),
            spec,
            count: Cell::new(0),
            most,
            me: me.clone(),
            idle,
        });
        (0..count).try_for_each(|_| threads.begin_one())?;
        Ok(threads)
    }

    fn begin_one(&self) -> Result<(), ConfigError> {
        let thread = self.place.machine().thread(self.spec)?;
        let way = match &self.place {
            Place::Host(path) => Way::Host(path.clone()),
            Place::Remote(clients) => Way::Remote(clients.connect(self.spec)?),
        };
        self.count.set(self.count.get() + 1);
        self.sim.spawn(self.me.upgrade().expect("threads in use are alive").serve(thread, way));
        Ok(())
    }

    /// The threads that have begun.
    pub fn count(&self) -> u32 {
        self.count.get()
    }

    /// I/Os that wait for a thread.
    pub fn waiting(&self) -> usize {
        self.inbox.borrow().len()
    }

    async fn serve(self: Rc<Threads>, thread: Context, way: Way) {
        // When the thread began to wait for an I/O, and its account then.
        let mut idle: Option<(Time, Account)> = None;
        loop {
            let next = self.inbox.borrow_mut().pop_front();
            match next {
                Some((Io { command, mem, token }, arrived)) => {
                    let found_idle = idle.take().filter(|(since, _)| *since <= arrived).map(|(_, account)| account);
                    let command = (command, self.info.lba_bytes);
                    let completion = match &way {
                        Way::Host(path) => path.io_of_idle(&thread, (arrived, found_idle), command, mem).await,
                        Way::Remote(connection) => connection.call(&thread, arrived, command, mem).await,
                    };
                    self.is_taking.set(true);
                    token.complete(completion);
                    self.is_taking.set(false);
                    // This thread takes the first.
                    let more = self.waiting().saturating_sub(1).min(self.idle.waiting());
                    (0..more).for_each(|_| _ = self.idle.notify_from(&thread));
                }
                None => {
                    idle = Some((self.sim.now(), Account::of(&thread)));
                    self.idle.wait(&thread).await;
                }
            }
        }
    }
}

impl Drive for Threads {
    fn info(&self) -> DriveInfo {
        self.info
    }

    fn submit(&self, io: Io) {
        self.inbox.borrow_mut().push_back((io, self.sim.now()));
        if self.is_taking.get() {
            return;
        }
        if self.idle.waiting() == 0 && self.count.get() < self.most {
            self.begin_one().expect("the others could begin");
        } else {
            self.idle.notify();
        }
    }

    fn cancel(&self, command: CommandRef) -> bool {
        let mut inbox = self.inbox.borrow_mut();
        let Some(at) = inbox.iter().position(|(io, _)| io.token.is_of(command)) else { return false };
        let waiting = inbox.remove(at);
        drop(inbox);
        waiting.into_iter().for_each(|(io, _)| io.token.complete(Completion::of(Status::ABORT_REQUESTED)));
        true
    }
}
