//! A core that virtual machines share. The server is one of them; the others have occasional work.

use std::rc::Rc;

use nandscape_apps_kv_run::Load;
use nandscape_host_resource::vm::{Core, Guest, SchedulerKind, Work};
use nandscape_host_resource::{Gate, ResourceServer};
use nandscape_sim::{Seed, Sim, Span};

use crate::cluster::{REJECT, Replica, Replicas};
use crate::keys::{Change, KeyError};
use crate::noise::Spells;
use crate::spec::Spec;

/// See the file.
#[derive(Clone, Debug)]
pub struct VmSpec {
    /// Which machine has the next turn.
    pub scheduler: SchedulerKind,
    /// The most time of a turn.
    pub slice: Span,
    /// The work of a get, on average.
    pub work: Span,
    /// Machines in addition to the server's.
    pub tenants: usize,
    /// When they have work.
    pub noise: Spells,
}

impl Default for VmSpec {
    /// In turn, for 30 ms (Li 6.1); half a millisecond a get; two tenants that work for 300 ms, every second.
    fn default() -> VmSpec {
        VmSpec {
            scheduler: SchedulerKind::RoundRobin,
            slice: Span::from_ms(30),
            work: Span::from_us(500),
            tenants: 2,
            noise: Spells { on: Span::from_ms(300), off: Span::from_s(1) },
        }
    }
}

const KEYS: [(&str, &str); 6] = [
    ("vm.scheduler", "which machine has the next turn: round-robin or credit"),
    ("vm.slice", "how long a turn is at the most, such as 30ms"),
    ("vm.work", "the work of a get on average, such as 500us"),
    ("vm.tenants", "machines in addition to that of the server"),
    ("noise.on", "the mean time for which they have work, such as 300ms"),
    ("noise.off", "the mean time between, such as 1s"),
];

impl VmSpec {
    pub(crate) fn keys() -> Vec<(&'static str, &'static str)> {
        KEYS.to_vec()
    }

    pub(crate) fn set(&mut self, change: &Change<'_>) -> Result<(), KeyError> {
        match change.key {
            "vm.scheduler" => self.scheduler = change.named(&SchedulerKind::ALL)?,
            "vm.slice" => self.slice = change.time()?,
            "vm.work" => self.work = change.time()?,
            "vm.tenants" => self.tenants = change.number(0..=64)? as usize,
            "noise.on" => self.noise.on = change.time()?,
            "noise.off" => self.noise.off = change.time()?,
            _ => return Err(change.unknown(&KEYS)),
        }
        Ok(())
    }

    pub(crate) fn usual_load() -> Load {
        Load { clients: 3, think: Span::from_ms(4), records: 4_000, requests: 50_000, ..Load::default() }
    }

    /// Servers with a core each, whose first machine serves.
    pub(crate) fn build(&self, sim: &Sim, spec: &Spec, seed: Seed) -> Replicas {
        let mut replicas = Replicas::default();
        for number in 0..spec.servers {
            let core = Core::new(sim, 1 + self.tenants, self.slice, self.scheduler);
            let work = Work { mean: self.work };
            let guest = Guest::new(core.clone(), 0, work, seed.child("work").nth(number as u64));
            let gate = Rc::new(Gate::new(sim, guest, REJECT, spec.predict_only));
            let server = Rc::new(ResourceServer::new(sim, gate.clone(), spec.load.value_bytes));
            let (anew, counted) = (gate.clone(), gate);
            let (noise, sim, tenants) = (self.noise, sim.clone(), self.tenants);
            replicas.all.push(Replica {
                server,
                count_anew: Box::new(move || anew.count_anew()),
                counted: Box::new(move || counted.counted()),
                disturb: Box::new(move |seed: Seed| {
                    let of_task = sim.clone();
                    sim.spawn(noise.run(sim.clone(), seed, move |_, length| {
                        // Together they keep the core for that time.
                        for vm in 1..=tenants {
                            let core = core.clone();
                            let work = Span::from_ns(length.ns() / tenants.max(1) as u64);
                            of_task.spawn(async move { core.run(vm, work).await });
                        }
                        || ()
                    }));
                }),
            });
        }
        replicas
    }
}
