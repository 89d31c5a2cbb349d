//! The machines of servers: threads that handle requests, threads that issue I/Os, and cards that receive messages.
//!
//! A server works as an asynchronous runtime does: its handlers are pieces of work on any processor, and a pool of threads issues the I/Os.
//!
//! Left out: the machines of clients, and cancelling a read that a thread has issued.

use std::cell::RefCell;
use std::rc::Rc;

use nandscape_apps_kv_engine::ServerConfig;
use nandscape_apps_store::Cpu;
use nandscape_drive::Drive;
use nandscape_host_machine::{Machine, ThreadSpec, Times};
use nandscape_host_network::card::{Card, LinkConfig};
use nandscape_host_path::{Path, Profile, RingKind, Threads};
use nandscape_sim::Sim;

use crate::outcome::ProcessorTimes;
use crate::spec::{Processors, Spec};

/// Threads of a server that issue I/Os, at most.
const IO_THREADS: u32 = 64;

/// The machines of all servers.
pub(crate) struct Machines {
    sim: Sim,
    all: Vec<Machine>,
    begun: RefCell<Option<ProcessorTimes>>,
}

/// What a server has of its machine.
pub(crate) struct ServerMachine {
    /// Its drive, to which threads of the machine issue the I/Os.
    pub(crate) drive: Rc<dyn Drive>,
    pub(crate) cpu: Rc<Cpu>,
    pub(crate) cards: Vec<Rc<Card>>,
}

impl Machines {
    pub(crate) fn new(sim: &Sim) -> Machines {
        Machines { sim: sim.clone(), all: Vec::new(), begun: RefCell::default() }
    }

    /// Another machine, with a drive.
    ///
    /// # Errors
    /// Which setting is invalid, or not for servers.
    pub(crate) fn add(&mut self, profile: &Profile, drive: &Rc<dyn Drive>) -> Result<ServerMachine, String> {
        let config = &profile.config;
        if config.ring != RingKind::Off {
            return Err(format!("host.ring: {} is not valid for servers; valid is off", config.ring.name()));
        }
        let path = Path::new(&self.sim, config.clone(), vec![drive.clone()]).map_err(|error| error.to_string())?;
        if path.asks() {
            return Err(
                "host.completion: precompletion is not valid for servers; valid is interrupt, poll, hybrid or adaptive"
                    .to_owned(),
            );
        }
        let threads = Threads::new(&path, drive.info(), (1, IO_THREADS), ThreadSpec::default());
        let network = LinkConfig { wake: config.costs.wake, ..config.network };
        let machine = path.machine().clone();
        self.all.push(machine.clone());
        Ok(ServerMachine {
            drive: threads.map_err(|error| error.to_string())?,
            cards: Card::all_of(&self.sim, network, &machine),
            cpu: Rc::new(Cpu::on(machine)),
        })
    }

    /// The work of a server. On a machine its threads take each message from a socket, and send each.
    pub(crate) fn work(&self, spec: &Spec) -> ServerConfig {
        let Processors::Machines(profile) = &spec.processors else { return spec.server };
        let (syscall, LinkConfig { message_in, message_out, .. }) =
            (profile.config.costs.syscall, profile.config.network);
        ServerConfig { message: [syscall + message_in, syscall + message_out], ..spec.server }
    }

    /// The measured phase begins.
    pub(crate) fn begin(&self) {
        self.begun.replace(Some(self.times()));
    }

    /// What the processors have done since then; `None` without machines.
    pub(crate) fn spent(&self) -> Option<ProcessorTimes> {
        let (begun, ended) = (self.begun.borrow().filter(|_| !self.all.is_empty())?, self.times());
        Some(ProcessorTimes { all: ended.all - begun.all, by: ended.by.since(&begun.by) })
    }

    fn times(&self) -> ProcessorTimes {
        let mut by = Times::default();
        self.all.iter().for_each(|machine| by.merge(&machine.total()));
        ProcessorTimes { all: by.total(), by }
    }
}
