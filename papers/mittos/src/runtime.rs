//! A managed runtime. The server's gets allocate, and so does an occasional batch job in the same runtime: collections are
//! frequent, and some cover the whole heap.

use std::cell::Cell;
use std::rc::Rc;

use nandscape_apps_kv_run::Load;
use nandscape_host_resource::runtime::{Runtime, RuntimeSpec as Settings};
use nandscape_host_resource::{Gate, ResourceServer};
use nandscape_sim::{Seed, Sim, Span};

use crate::cluster::{REJECT, Replica, Replicas};
use crate::keys::{Change, KeyError};
use crate::noise::Spells;
use crate::spec::Spec;

/// See the file.
#[derive(Clone, Debug)]
pub struct RuntimeSpec {
    /// The runtime.
    pub runtime: Settings,
    /// When the batch job runs.
    pub noise: Spells,
    /// Its threads.
    pub streams: usize,
}

impl Default for RuntimeSpec {
    /// The usual runtime, and a job of four threads that runs for 2 s, every 4 s.
    fn default() -> RuntimeSpec {
        let noise = Spells { on: Span::from_s(2), off: Span::from_s(4) };
        RuntimeSpec { runtime: Settings::default(), noise, streams: 4 }
    }
}

const KEYS: [(&str, &str); 14] = [
    ("heap.young", "size of the young generation, such as 64MiB"),
    ("heap.old", "size of the old generation, such as 512MiB"),
    ("heap.kept", "what the program keeps in it, such as 256MiB"),
    ("heap.outlives", "the share of allocations that outlives its request, such as 5%"),
    ("heap.pause", "the least that a collection takes, such as 1ms"),
    ("heap.mib", "time to copy or mark a MiB, such as 1ms"),
    ("heap.jitter", "by which share a collection takes less or more, such as 10%"),
    ("runtime.threads", "threads for requests"),
    ("runtime.work", "the work of a get on average, such as 500us"),
    ("runtime.allocates", "what a get allocates on average, such as 128KiB"),
    ("runtime.collect_rejected", "begin a collection when a get is rejected for one to come: true or false"),
    ("noise.on", "the mean time for which the batch job runs, such as 2s"),
    ("noise.off", "the mean time between, such as 4s"),
    ("noise.streams", "threads of the batch job"),
];

/// What a step of the batch job allocates, and how long it works.
const STEP: (u64, Span) = (1 << 20, Span::from_ms(2));
/// Sizes that are taken.
const SIZES: std::ops::RangeInclusive<u64> = 1 << 10..=1 << 40;

impl RuntimeSpec {
    pub(crate) fn keys() -> Vec<(&'static str, &'static str)> {
        KEYS.to_vec()
    }

    pub(crate) fn set(&mut self, change: &Change<'_>) -> Result<(), KeyError> {
        let (runtime, heap) = (&mut self.runtime, change.key.starts_with("heap."));
        match change.key {
            "heap.young" => runtime.heap.young = change.size(SIZES)?,
            "heap.old" => runtime.heap.old = change.size(SIZES)?,
            "heap.kept" => runtime.heap.kept = change.size(SIZES)?,
            "heap.outlives" => runtime.heap.outlives = change.share()?,
            "heap.pause" => runtime.heap.pause = change.time()?,
            "heap.mib" => runtime.heap.mib = change.time()?,
            "heap.jitter" => runtime.heap.jitter = change.share()?,
            "runtime.threads" => runtime.threads = change.number(1..=4_096)? as usize,
            "runtime.work" => runtime.work = change.time()?,
            "runtime.allocates" => runtime.allocates = change.size(SIZES)?,
            "runtime.collect_rejected" => runtime.collect_rejected = change.yes()?,
            "noise.on" => self.noise.on = change.time()?,
            "noise.off" => self.noise.off = change.time()?,
            "noise.streams" => self.streams = change.number(0..=4_096)? as usize,
            _ => return Err(change.unknown(&KEYS)),
        }
        let settings = &self.runtime.heap;
        match heap && settings.kept > settings.old {
            true => Err(change.wrong("the program keeps more than the old generation holds; set heap.old first")),
            false => Ok(()),
        }
    }

    /// Many clients: those of a few would all wait for one collection, and ask nothing meanwhile.
    pub(crate) fn usual_load() -> Load {
        Load { clients: 24, think: Span::from_ms(32), records: 4_000, requests: 50_000, ..Load::default() }
    }

    /// Servers with a runtime each.
    pub(crate) fn build(&self, sim: &Sim, spec: &Spec, seed: Seed) -> Replicas {
        let mut replicas = Replicas::default();
        for number in 0..spec.servers {
            let runtime = Runtime::new(sim, self.runtime.clone(), seed.child("work").nth(number as u64));
            let gate = Rc::new(Gate::new(sim, runtime.clone(), REJECT, spec.predict_only));
            let server = Rc::new(ResourceServer::new(sim, gate.clone(), spec.load.value_bytes));
            let (anew, counted) = (gate.clone(), gate);
            let (noise, sim, streams) = (self.noise, sim.clone(), self.streams);
            replicas.all.push(Replica {
                server,
                count_anew: Box::new(move || anew.count_anew()),
                counted: Box::new(move || counted.counted()),
                disturb: Box::new(move |seed: Seed| {
                    let of_task = sim.clone();
                    sim.spawn(noise.run(sim.clone(), seed, move |_, _| batch(&of_task, &runtime, streams)));
                }),
            });
        }
        replicas
    }
}

/// The batch job, until the returned closure is called.
fn batch(sim: &Sim, runtime: &Rc<Runtime>, streams: usize) -> impl FnOnce() + use<> {
    let runs = Rc::new(Cell::new(true));
    for _ in 0..streams {
        let (runtime, runs) = (runtime.clone(), runs.clone());
        sim.spawn(async move {
            while runs.get() {
                runtime.request(STEP.0, STEP.1).await;
            }
        });
    }
    move || runs.set(false)
}
