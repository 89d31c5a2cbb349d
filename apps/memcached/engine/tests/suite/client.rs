//! A client of memcached's protocols without a socket, and drives in memory for the engine.

use std::rc::Rc;

use nandscape_apps_memcached_engine::memcached::{Server, Wire};
use nandscape_apps_memcached_engine::policy::policy;
use nandscape_apps_memcached_engine::{Config, Engine, Given, OpenError};
use nandscape_apps_store::Host;
use nandscape_apps_store::testing::{Disk, QueueingDrive, Times};
use nandscape_drive::{Completion, Drive, DriveInfo, HostMem, Io};
use nandscape_sim::{Executor, Sim, Span};
use nandscape_wire_nvme::identify::CTRATT_PLACEMENT;
use nandscape_wire_nvme::{AdminOpcode, IoOpcode, Status, SubmissionEntry};

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
    start_ns: 0,
    placement: nandscape_apps_memcached_engine::Placement::Copies,
    small: 0,
    id: 7,
    patience_ms: nandscape_apps_memcached_engine::PATIENCE_MS,
    records_opening: false,
    hedges_reads: false,
};

/// Empty disks of 4 MiB.
pub(crate) fn disks(count: usize) -> Vec<Rc<Disk>> {
    (0..count).map(|_| Disk::new(4 << 20)).collect()
}

/// Empty disks with zones: their number, the bytes from one to the next, and the bytes that each takes.
pub(crate) fn zoned_disks(count: usize, zones: usize, (size, capacity): (usize, usize)) -> Vec<Rc<Disk>> {
    (0..count).map(|_| Disk::with_zones(zones * size, (size, capacity))).collect()
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

/// A test of a server over an engine on two empty drives.
pub(crate) fn serve(policy: &str, config: Config, test: impl AsyncFnOnce(Sim, Rc<Engine>, Rc<Server>)) {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let drives = drives(&sim, &disks(2));
    let ran = executor.block_on(async {
        let engine = open(&sim, &drives, policy, config).await.unwrap();
        let server = Server::new(engine.clone(), "1");
        test(sim.clone(), engine, server).await;
    });
    ran.unwrap();
}

/// A drive as an engine with a policy takes it.
pub(crate) fn given(io: Rc<dyn Drive>, policy: &str) -> Given {
    match policy {
        "fdp" => {
            let drive: Rc<dyn Drive> = Rc::new(Placing(io));
            Given { io: drive.clone(), admin: Some(drive) }
        }
        "zoned" => Given { io: io.clone(), admin: Some(io) },
        _ => Given { io, admin: None },
    }
}

/// The same on drives of which some are missing.
pub(crate) async fn open_all(
    sim: &Sim,
    drives: impl Iterator<Item = Option<Rc<dyn Drive>>>,
    name: &str,
    config: Config,
) -> Result<Rc<Engine>, OpenError> {
    let given = drives.map(|drive| drive.map(|io| given(io, name))).collect();
    Engine::open(&Host::free(sim), given, policy(name).expect("a policy"), config).await
}

/// A drive with two reclaim unit handles, also as its admin queue. Deallocated blocks become zeros, one after the other: a crash may come
/// between them.
struct Placing(Rc<dyn Drive>);

impl Drive for Placing {
    fn info(&self) -> DriveInfo {
        self.0.info()
    }

    fn submit(&self, io: Io) {
        if io.command.opcode == AdminOpcode::IDENTIFY.0 {
            // CTRATT.
            io.mem.write(96, &CTRATT_PLACEMENT.to_le_bytes());
            return io.token.complete(Completion::of(Status::SUCCESS));
        }
        match IoOpcode(io.command.opcode) {
            IoOpcode::IO_MANAGEMENT_RECEIVE => {
                // Two handles; the second has room for one segment less a block, so that each begins a reclaim unit.
                io.mem.write(14, &2u16.to_le_bytes());
                io.mem.write(16 + 32 + 8, &127u64.to_le_bytes());
                io.token.complete(Completion::of(Status::SUCCESS));
            }
            IoOpcode::IO_MANAGEMENT_SEND => io.token.complete(Completion::of(Status::SUCCESS)),
            IoOpcode::DATASET_MANAGEMENT => {
                let (mut blocks, mut slba) = ([0; 4], [0; 8]);
                io.mem.read(4, &mut blocks);
                io.mem.read(8, &mut slba);
                let blocks = u32::from_le_bytes(blocks);
                let write =
                    SubmissionEntry::blocks(IoOpcode::WRITE, self.info().nsid, u64::from_le_bytes(slba), blocks);
                self.0.submit(Io { command: write, mem: HostMem::zeroed(blocks as usize * 512), ..io });
            }
            _ => self.0.submit(io),
        }
    }
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

    /// What the server answers to a command, in this many lines.
    pub(crate) async fn answer(&mut self, lines: usize) -> String {
        String::from_utf8(self.answer_bytes(lines).await).expect("text")
    }

    /// The same of values of any bytes.
    pub(crate) async fn answer_bytes(&mut self, lines: usize) -> Vec<u8> {
        loop {
            self.receive();
            let ends = self.received.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
            if let Some((end, _)) = ends.clone().nth(lines - 1) {
                return self.received.drain(..=end).collect();
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
