//! A client of memcached's protocols without a socket, and drives in memory for the engine.

use std::rc::Rc;

use nandscape_apps_memcached_engine::memcached::{Server, Wire};
use nandscape_apps_memcached_engine::policy::policy;
use nandscape_apps_memcached_engine::{Config, Engine, Given, OpenError};
use nandscape_apps_store::Host;
use nandscape_apps_store::testing::{Disk, QueueingDrive, Times};
use nandscape_drive::Drive;
use nandscape_sim::{Sim, Span};

/// 2026, in seconds since 1970.
pub(crate) const NOW_S: u64 = 1_767_225_600;

/// Settings with little of everything.
pub(crate) const SMALL: Config = Config {
    memory: 256 << 10,
    dirty: 64 << 10,
    segment: Some(64 << 10),
    flush_after_ms: 20,
    ack: nandscape_apps_memcached_engine::Ack::Cache,
    caches: true,
    start_s: NOW_S,
    id: 7,
};

/// Empty disks of 4 MiB.
pub(crate) fn disks(count: usize) -> Vec<Rc<Disk>> {
    (0..count).map(|_| Disk::new(4 << 20)).collect()
}

/// Drives over disks.
pub(crate) fn drives(sim: &Sim, disks: &[Rc<Disk>]) -> Vec<Rc<QueueingDrive>> {
    disks.iter().map(|disk| QueueingDrive::new(sim, disk, Times::FLASH)).collect()
}

/// An engine on drives.
pub(crate) async fn open(
    sim: &Sim,
    drives: &[Rc<QueueingDrive>],
    name: &str,
    config: Config,
) -> Result<Rc<Engine>, OpenError> {
    open_all(sim, drives.iter().map(|drive| Some(drive.clone() as Rc<dyn Drive>)), name, config).await
}

/// The same on drives of which some are missing.
pub(crate) async fn open_all(
    sim: &Sim,
    drives: impl Iterator<Item = Option<Rc<dyn Drive>>>,
    name: &str,
    config: Config,
) -> Result<Rc<Engine>, OpenError> {
    let given = drives.map(|drive| drive.map(|io| Given { io, admin: None })).collect();
    Engine::open(&Host::free(sim), given, policy(name).expect("a policy"), config).await
}

/// A client.
pub(crate) struct Client {
    wire: Rc<Wire>,
    sim: Sim,
    received: Vec<u8>,
}

impl Client {
    pub(crate) fn new(sim: &Sim, server: &Rc<Server>) -> Client {
        let wire = Wire::new(sim, &Rc::default());
        server.serve(&wire);
        Client { wire, sim: sim.clone(), received: Vec::new() }
    }

    pub(crate) fn wire(&self) -> &Wire {
        &self.wire
    }

    /// Sends as much as the server takes at a time, and receives meanwhile.
    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        let mut sent = 0;
        while sent < bytes.len() && !self.wire.is_ended() {
            let now = self.wire.wants().min(bytes.len() - sent);
            self.wire.received(&bytes[sent..sent + now]);
            sent += now;
            self.receive();
            if now == 0 {
                self.sim.sleep(Span::from_us(10)).await;
            }
        }
    }

    fn receive(&mut self) {
        let received = &mut self.received;
        let all = self.wire.send(|bytes| {
            received.extend_from_slice(bytes);
            Ok::<usize, ()>(bytes.len())
        });
        assert!(all.is_ok());
    }

    /// What the server answers to a command, the last line of which ends with one of these.
    pub(crate) async fn answer(&mut self, lines: usize) -> String {
        loop {
            self.receive();
            let ends = self.received.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
            if let Some((end, _)) = ends.clone().nth(lines - 1) {
                let answer: Vec<u8> = self.received.drain(..=end).collect();
                return String::from_utf8(answer).expect("text");
            }
            assert!(!self.wire.is_ended(), "closed after {:?}", String::from_utf8_lossy(&self.received));
            self.sim.sleep(Span::from_us(20)).await;
        }
    }

    /// Sends a command and receives `lines` lines.
    pub(crate) async fn ask(&mut self, command: &str, lines: usize) -> String {
        self.send(command.as_bytes()).await;
        self.answer(lines).await
    }

    /// Whether nothing was answered.
    pub(crate) async fn is_silent(&mut self) -> bool {
        self.sim.sleep(Span::from_ms(1)).await;
        self.receive();
        self.received.is_empty()
    }
}
