//! Clients of memcached's text protocol on another machine, in simulated time: YCSB behind memcached (Shin 5.4.3).
//!
//! A request takes its client's processor, the network, the server's processor, the engine, and the same way back. Each message costs both
//! machines processor time; data passes the links first come, first served, with the headers of its packets.
//!
//! Left out: connections of several links by themselves (all are one), acknowledgements, losses, and the time of YCSB itself.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_apps_memcached_engine::memcached::{Server, Wire};
use nandscape_apps_memcached_engine::{Engine, Expect, New, Stats};
use nandscape_apps_store::{Costs, Host};
use nandscape_device_ssd::Ssd;
use nandscape_host_network::wire::{self as network, on_wire};
use nandscape_sim::units::Rate;
use nandscape_sim::{Executor, Histogram, Rng, Seed, Sim, Span, Time};

use crate::below::Left;
use crate::draws::Ycsb;
use crate::simulated::{AROUND_ITEM, RunError, Spec};
use crate::text;

/// The machines' network, and the load on it. The load of the [`Spec`] is read otherwise here: its readers are the clients, its reads the
/// operations that are measured, and `read_bytes` the bytes of values; it has no writers.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Clients {
    /// A core workload of YCSB of reads and updates: "a", "b" or "c".
    pub workload: &'static str,
    /// The share of the values that memory has room for, in percent.
    pub cached: u64,
    /// Bytes a second of the network, in each direction.
    pub network: u64,
    /// Processor time of a message on each machine: its interrupt, the protocols, and the switch to the thread that waits for it.
    pub message: Span,
}

/// What came of it.
#[derive(Clone)]
pub struct Served {
    /// Operations, from a client's request to its answer.
    pub operations: Histogram,
    /// How long they took together, in simulated time.
    pub took: Span,
    /// The engine's counters at the end, and at the beginning of the measurement.
    pub after: Stats,
    /// See `after`.
    pub before: Stats,
    /// Blocks that the drives collected meanwhile.
    pub collected: u64,
    /// Layers, faults, and what they led to.
    pub left: Left,
}

/// Bytes of memory of an item without its value: some 155 of the index, 20 of the key, and a place in the cache's list.
const INDEX: u64 = 155 + 20 + 32;
/// Runs it.
///
/// # Errors
/// Why there is no outcome.
pub fn serve_clients(spec: &Spec, clients: &Clients) -> Result<Served, RunError> {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let ssds = spec.drives_in(&sim)?;
    executor.block_on(run_on(spec, clients, &sim, &ssds))?
}

/// What clients share.
struct Run {
    engine: Rc<Engine>,
    server: Rc<Server>,
    sim: Sim,
    /// To the server, and to the clients.
    network: [network::Wire; 2],
    /// What messages cost the server, and the clients' machine.
    ends: [Host; 2],
    ycsb: RefCell<Ycsb>,
    value_bytes: usize,
    left: Cell<u64>,
    /// When the last operation ended.
    ended: Cell<Time>,
    operations: RefCell<Histogram>,
    problem: RefCell<Option<RunError>>,
}

async fn run_on(spec: &Spec, clients: &Clients, sim: &Sim, ssds: &[Rc<Ssd>]) -> Result<Served, RunError> {
    let load = spec.load;
    let cpu = spec.machine.cpu(sim);
    let host = Host::new(sim, cpu.clone(), spec.machine.costs);
    let members = spec.members_on(sim, ssds).await?;
    let items = load.items_in(spec.member_bytes(&members) * (spec.members() / 2));
    let value_bytes = load.read_bytes as usize;
    let ycsb = Ycsb::new(clients.workload, items, value_bytes).map_err(RunError::Spec)?;
    let memory = items * (INDEX + load.read_bytes * clients.cached / 100);
    let engine = spec.engine_on((&host, &members), memory, true).await?;
    let most = engine.item_limit() as u64 - AROUND_ITEM;
    if load.read_bytes > most {
        return Err(RunError::TooLarge { read: true, most });
    }
    let seed = Seed::new(spec.seed);
    let all = engine.stats().log_bytes / spec.data_drives() * spec.members();
    prepare(&engine, items, load.read_bytes, spec.passes * all, seed.child("prepare").rng()).await?;
    let message = |cpu| Host::new(sim, cpu, Costs { operation: clients.message, ..Costs::NONE });
    let run = Rc::new(Run {
        engine: engine.clone(),
        server: Server::new(engine.clone(), "simulated"),
        sim: sim.clone(),
        network: [(); 2].map(|()| network::Wire::new(Rate::new(clients.network, Span::from_s(1)))),
        ends: [message(cpu), message(spec.machine.cpu(sim))],
        ycsb: RefCell::new(ycsb),
        value_bytes,
        left: Cell::new(load.reads),
        ended: Cell::new(sim.now()),
        operations: RefCell::new(Histogram::new()),
        problem: RefCell::new(None),
    });
    let (begun, before) = (sim.now(), engine.stats());
    members.begin();
    for client in 0..load.readers {
        sim.spawn(run.clone().client(sim.clone(), seed.child("client").nth(client).rng()));
    }
    while run.left.get() > 0 && run.problem.borrow().is_none() && engine.failure().is_none() {
        sim.sleep(Span::from_ms(1)).await;
    }
    if let Some(problem) = run.problem.take().or_else(|| engine.failure().map(RunError::Stopped)) {
        return Err(problem);
    }
    let (took, operations) = (run.ended.get() - begun, run.operations.borrow().clone());
    let (collected, left) = (members.figures().gc_blocks, Left::of(&engine, &members));
    Ok(Served { operations, took, after: engine.stats(), before, collected, left })
}

/// Puts all items, then updates random ones until `written_bytes` were written to all drives together.
async fn prepare(engine: &Engine, items: u64, bytes: u64, written_bytes: u64, mut rng: Rng) -> Result<(), RunError> {
    let mut next = 0;
    while next < items || engine.stats().written_bytes < written_bytes {
        let item = if next < items { next } else { rng.below(items) };
        let new = New { flags: 0, expiry: 0, value: Ycsb::value(item, bytes as usize).into() };
        engine.put(Ycsb::key(item).as_bytes(), Expect::Any, new).await?;
        next += 1;
    }
    engine.flush().await.map_err(RunError::Stopped)
}

impl Run {
    /// One operation after the other.
    async fn client(self: Rc<Self>, sim: Sim, mut rng: Rng) {
        let wire = Wire::new(&sim, &Rc::default());
        self.server.serve(&wire);
        while self.left.get() > 0 {
            let drawn = self.ycsb.borrow_mut().next(&mut rng);
            let request = self.ycsb.borrow().request(drawn);
            let begun = sim.now();
            let answer = self.ask(&wire, &request).await;
            let answer = text::answer(&answer, self.value_bytes);
            if !answer.is_ok_and(|answer| answer.is_some_and(|answer| self.ycsb.borrow().is_right(drawn, &answer))) {
                self.problem.borrow_mut().get_or_insert(RunError::lost(&self.engine, drawn.item));
                return;
            }
            if self.left.get() > 0 {
                self.left.set(self.left.get() - 1);
                self.ended.set(sim.now());
                self.operations.borrow_mut().record(sim.now() - begun);
            }
        }
    }

    /// Passes a message of `bytes` over a wire.
    async fn pass(&self, wire: &network::Wire, bytes: usize) {
        self.sim.sleep_until(wire.put(self.sim.now(), on_wire(bytes as u64))).await;
    }

    /// A request's way to the server, and its answer's way back.
    async fn ask(&self, wire: &Wire, request: &[u8]) -> Vec<u8> {
        let [server, clients] = &self.ends;
        clients.operation().await;
        self.pass(&self.network[0], request.len()).await;
        server.operation().await;
        wire.received(request);
        let mut answer = Vec::new();
        while text::answer(&answer, self.value_bytes).is_ok_and(|answer| answer.is_none()) && !wire.is_ended() {
            wire.answer().await;
            let taken: Result<usize, std::convert::Infallible> = wire.send(|bytes| {
                answer.extend_from_slice(bytes);
                Ok(bytes.len())
            });
            debug_assert!(taken.is_ok());
        }
        server.operation().await;
        self.pass(&self.network[1], answer.len()).await;
        clients.operation().await;
        answer
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use nandscape_device_ssd::Profile;
    use nandscape_lab_run::MemberLayers;

    use super::*;
    use nandscape_apps_memcached_engine::Placement;

    use crate::{Load, Machine};

    pub(crate) fn spec(policy: &'static str) -> Spec {
        let mut profile = Profile::load("default").unwrap();
        let changes = [
            "capacity=16MiB",
            "lba_size=4KiB",
            "geometry.channels=2",
            "geometry.dies_per_channel=1",
            "geometry.planes_per_die=1",
            "geometry.pages_per_block=32",
            "buffer.mode=capacitor",
            "buffer.size=256KiB",
        ];
        changes.iter().for_each(|change| profile.set(change).unwrap());
        let load = Load {
            readers: 8,
            read_bytes: 1_000,
            writers: 0,
            write_bytes: 0,
            reads: 600,
            fill: 30,
            small: 0,
            absent: 0,
        };
        let drive = profile.resolve().unwrap();
        Spec {
            drive,
            drives: 2,
            policy,
            placement: Placement::Copies,
            in_place: false,
            dirty: 256 << 10,
            machine: Machine::new(2),
            load,
            tenants: Vec::new(),
            over: MemberLayers::default(),
            passes: 1,
            seed: 1,
            trace: false,
            turns: false,
        }
    }

    fn clients(message: Span) -> Clients {
        Clients { workload: "a", cached: 10, network: 500_000_000, message }
    }

    #[test]
    fn operations_take_the_network_and_the_processors() {
        let of = |us| serve_clients(&spec("epochs"), &clients(Span::from_us(us))).unwrap();
        let [free, dear] = [0, 20].map(of);
        assert_eq!((free.operations.count(), dear.operations.count()), (600, 600));
        // Two messages on each of two machines.
        let least = dear.operations.quantile(0.01);
        assert!(least >= Span::from_us(80), "{least:?}");
        assert!(free.took < dear.took, "{:?} and {:?}", free.took, dear.took);
        assert!(free.after.drive_hits > free.before.drive_hits && free.after.memory_hits > free.before.memory_hits);
        assert_eq!((dear.after.unreadable, dear.after.reads_at_tokens), (0, 0));
    }
}
