//! The processor time that the store costs its host.
//!
//! In simulated time each step costs the time in [`Costs`] on one of the host's processors; the sum is reported. In
//! wall time the steps take their real time, costs are zero, and a meter may supply the processor time.

use std::cell::Cell;
use std::rc::Rc;

use crate::Cpu;
use nandscape_sim::{Sim, Span, Time};

/// Processor time of the steps of the store.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Costs {
    /// An operation: the way from the root to the leaf, and the leaf itself.
    pub operation: Span,
    /// Submission and completion of a command to the drive.
    pub command: Span,
    /// Encoding, decoding or copying 1 KiB, with its checksum.
    pub kib: Span,
    /// An entry of the mapping table that is looked up or changed, with its cache miss.
    pub entry: Span,
}

impl Costs {
    /// None: the machine's own time counts.
    pub const NONE: Costs = Costs { operation: Span::ZERO, command: Span::ZERO, kib: Span::ZERO, entry: Span::ZERO };

    /// Assumptions for a core of 2 GHz, the thesis' host (7.4), of which it gives no figures: 3 us an operation, 4 us a command over
    /// a network stack, 0.25 us a KiB (4 GB/s), 0.1 us an entry, a miss of the caches.
    pub const ASSUMED: Costs = Costs {
        operation: Span::from_us(3),
        command: Span::from_us(4),
        kib: Span::from_ns(250),
        entry: Span::from_ns(100),
    };
}

/// The machine on which a store runs. Clones are the same machine.
#[derive(Clone)]
pub struct Host {
    sim: Sim,
    cpu: Rc<Cpu>,
    costs: Costs,
    spent: Rc<Cell<Span>>,
    machine: Option<Machine>,
}

/// The machine that runs the code, if its own time counts.
#[derive(Clone)]
struct Machine {
    wall: Rc<dyn Fn() -> Time>,
    meter: Rc<dyn Fn() -> Span>,
}

impl Host {
    /// A machine with processors, and the costs of work on them.
    pub fn new(sim: &Sim, cpu: Rc<Cpu>, costs: Costs) -> Host {
        Host { sim: sim.clone(), cpu, costs, spent: Rc::new(Cell::new(Span::ZERO)), machine: None }
    }

    /// A machine on which work takes no time of the model.
    pub fn free(sim: &Sim) -> Host {
        Host::new(sim, Rc::new(Cpu::elsewhere(sim)), Costs::NONE)
    }

    /// The same at the wall clock, with a meter of its processor time.
    pub fn metered(sim: &Sim, wall: Rc<dyn Fn() -> Time>, meter: impl Fn() -> Span + 'static) -> Host {
        Host { machine: Some(Machine { wall, meter: Rc::new(meter) }), ..Host::free(sim) }
    }

    /// Processor time so far.
    pub fn spent(&self) -> Span {
        self.machine.as_ref().map_or_else(|| self.spent.get(), |machine| (machine.meter)())
    }

    /// Lets the simulator's clock catch up with the wall clock, if there is one: it stalls during work that never
    /// waits.
    pub async fn tick(&self) {
        if let Some(machine) = &self.machine {
            self.sim.sleep_until((machine.wall)()).await;
        }
    }

    /// Its clock.
    pub fn sim(&self) -> &Sim {
        &self.sim
    }

    /// An operation's work.
    pub async fn operation(&self) {
        self.work(self.costs.operation).await;
    }

    /// The work of commands to a drive.
    pub async fn commands(&self, count: usize) {
        self.work(self.costs.command * count as u64).await;
    }

    /// The work on bytes.
    pub async fn bytes(&self, bytes: usize) {
        self.work(Span::from_ns(self.costs.kib.ns() * bytes as u64 / 1_024)).await;
    }

    /// The work on entries of a table.
    pub async fn entries(&self, count: usize) {
        self.work(self.costs.entry * count as u64).await;
    }

    async fn work(&self, span: Span) {
        if !span.is_zero() {
            self.spent.set(self.spent.get() + span);
            self.cpu.work(span).await;
        }
    }
}
