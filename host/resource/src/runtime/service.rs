//! Requests, each of which has a thread, allocates, and works; and the prediction of their time.
//!
//! During a collection, a request waits for the rest of it. Otherwise it meets a collection if the young generation
//! lacks room for three things: allocations of earlier requests, its own, and those of others until it has ended.
//! Allocations and work of a request are unknown beforehand, so moving averages are used. The time of a collection by
//! the bytes it copies is learned from earlier ones.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_sim::credits::Credits;
use nandscape_sim::signal::Signal;
use nandscape_sim::{Cause, Rng, Seed, Sim, Span, Time, Wait};

use super::heap::{Collections, Heap, HeapSpec};
use super::world::World;
use crate::resource::{Average, Fit, Forecast, Resource, Serving};

/// See the file.
#[derive(Clone, PartialEq, Debug)]
pub struct RuntimeSpec {
    /// The heap.
    pub heap: HeapSpec,
    /// Threads.
    pub threads: usize,
    /// The work of a request, on average.
    pub work: Span,
    /// Mean bytes that a request allocates.
    pub allocates: u64,
    /// Whether a request that is rejected for an impending collection starts it.
    pub collect_rejected: bool,
}

impl Default for RuntimeSpec {
    /// 8 threads, half a millisecond and 128 KiB a request.
    fn default() -> RuntimeSpec {
        RuntimeSpec {
            heap: HeapSpec::default(),
            threads: 8,
            work: Span::from_us(500),
            allocates: 128 << 10,
            collect_rejected: true,
        }
    }
}

/// The most times the mean that a draw is.
const MOST: u64 = 10;
/// The weight of a new value in averages.
const WEIGHT: f64 = 0.05;

/// Statistics of ended gets and collections.
struct Seen {
    work: Average,
    /// Bytes that a get allocates.
    bytes: f64,
    /// Bytes allocated in a nanosecond.
    rate: f64,
    /// Since when `since_bytes` are counted.
    since: Time,
    since_bytes: u64,
    /// Nanoseconds of a collection by the bytes that it copies or marks.
    pauses: Fit,
}

/// See the file.
pub struct Runtime {
    sim: Sim,
    spec: RuntimeSpec,
    heap: RefCell<Heap>,
    world: World,
    threads: Credits,
    rng: RefCell<Rng>,
    seen: RefCell<Seen>,
    /// Requests that wait for a thread or have one, and have not allocated.
    coming: Cell<u64>,
    /// Requests in all.
    requests: Cell<u64>,
    /// When the collection under way will have ended, by prediction.
    until: Cell<Time>,
    collections: Cell<Collections>,
    wanted: Signal,
    me: std::rc::Weak<Runtime>,
}

/// How long a rate is measured before it counts.
const WINDOW: Span = Span::from_ms(5);

impl Runtime {
    /// A runtime whose old generation holds the data that the program keeps. Requests are drawn from the seed.
    pub fn new(sim: &Sim, spec: RuntimeSpec, seed: Seed) -> Rc<Runtime> {
        let seen = Seen {
            work: Average::new(spec.work, WEIGHT),
            bytes: spec.allocates as f64,
            rate: 0.0,
            since: sim.now(),
            since_bytes: 0,
            pauses: Fit::default(),
        };
        Rc::new_cyclic(|me| Runtime {
            sim: sim.clone(),
            heap: RefCell::new(Heap::new(spec.heap.clone())),
            world: World::new(sim),
            threads: Credits::new(sim, spec.threads.max(1), Cause::new(0)),
            rng: RefCell::new(seed.rng()),
            seen: RefCell::new(seen),
            coming: Cell::new(0),
            requests: Cell::new(0),
            until: Cell::new(Time::ZERO),
            collections: Cell::default(),
            wanted: Signal::new(sim),
            me: me.clone(),
            spec,
        })
    }

    /// The counters of collections.
    pub fn collections(&self) -> Collections {
        self.collections.get()
    }

    /// Runs a request that allocates `bytes` and works for `work`.
    pub async fn request(&self, bytes: u64, work: Span) {
        self.coming.set(self.coming.get() + 1);
        self.requests.set(self.requests.get() + 1);
        self.threads.take(1, &mut Wait::default()).await;
        self.world.runs().await;
        while !self.allocate(bytes) {
            self.collect().await;
        }
        self.coming.set(self.coming.get() - 1);
        self.world.work(work).await;
        self.threads.give(1);
        self.heap.borrow_mut().ended(bytes);
        self.requests.set(self.requests.get() - 1);
    }

    /// A get has ended. Other requests are of other kinds and do not predict the next get.
    fn learn(&self, bytes: u64, work: Span) {
        let mut seen = self.seen.borrow_mut();
        seen.work.add(work);
        seen.bytes += (bytes as f64 - seen.bytes) * WEIGHT;
    }

    fn allocate(&self, bytes: u64) -> bool {
        let is_there = self.heap.borrow_mut().allocate(bytes);
        if is_there {
            self.seen.borrow_mut().allocated(bytes, self.sim.now());
        }
        is_there
    }

    /// Stops all threads and collects, or waits for the collection that is under way.
    async fn collect(&self) {
        if self.world.stands_since().is_some() {
            return self.world.runs().await;
        }
        let (takes, work) = {
            let heap = self.heap.borrow();
            let drawn = 1.0 + self.spec.heap.jitter * (2.0 * self.rng.borrow_mut().unit() - 1.0);
            (Span::from_ns((heap.takes().ns() as f64 * drawn) as u64), heap.work())
        };
        self.until.set(self.sim.now() + self.seen.borrow().pause(work));
        self.world.stop();
        self.sim.sleep(takes).await;
        let is_full = self.heap.borrow_mut().collect();
        self.seen.borrow_mut().pauses.add(work as f64, takes.ns() as f64);
        let mut collections = self.collections.get();
        match is_full {
            true => collections.full += 1,
            false => collections.young += 1,
        }
        collections.stopped += takes;
        self.collections.set(collections);
        self.world.go_on();
        self.wanted.notify();
    }

    /// The time of the collection that a request arriving now will meet, if any.
    fn to_come(&self, latency: Span) -> Option<Span> {
        let (heap, seen) = (self.heap.borrow(), self.seen.borrow());
        // Allocations of later requests count by their rate.
        let later = seen.rate * latency.ns() as f64;
        let needed = (self.coming.get() + 1) as f64 * seen.bytes + later;
        (needed > heap.free() as f64).then(|| seen.pause(heap.work()))
    }
}

impl Seen {
    fn allocated(&mut self, bytes: u64, now: Time) {
        self.since_bytes += bytes;
        let span = now.since(self.since);
        if span >= WINDOW {
            let rate = self.since_bytes as f64 / span.ns() as f64;
            self.rate += (rate - self.rate) * 0.25;
            (self.since, self.since_bytes) = (now, 0);
        }
    }

    /// The time of a collection that copies or marks `work` bytes; unknown before the first one.
    fn pause(&self, work: u64) -> Span {
        Span::from_ns(self.pauses.at(work as f64) as u64)
    }
}

impl Resource for Runtime {
    fn forecast(&self) -> Forecast {
        let own = self.seen.borrow().work.get();
        let waiting = (self.requests.get() as usize).saturating_sub(self.spec.threads - 1);
        let behind = Span::from_ns(own.ns() * waiting as u64 / self.spec.threads as u64);
        let wait = match self.world.stands_since() {
            Some(_) => self.until.get().since(self.sim.now()) + behind,
            None => behind + self.to_come(behind + own).unwrap_or_default(),
        };
        Forecast { latency: wait + own, wait }
    }

    fn serve(&self) -> Serving {
        let (bytes, work) = {
            let mut rng = self.rng.borrow_mut();
            let mut draw = |mean: u64| rng.exponential(mean as f64).ns().min(mean * MOST);
            (draw(self.spec.allocates), Span::from_ns(draw(self.spec.work.ns())))
        };
        let me = self.me.upgrade().expect("a runtime that is used");
        Box::pin(async move {
            me.request(bytes, work).await;
            me.learn(bytes, work);
        })
    }

    fn rejected(&self, _: &Forecast) {
        let own = self.seen.borrow().work.get();
        let is_free = self.world.stands_since().is_none();
        if self.spec.collect_rejected && is_free && self.to_come(own).is_some() {
            let me = self.me.upgrade().expect("a runtime that is used");
            self.sim.spawn(async move { me.collect().await });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_sim::Executor;

    fn spec() -> RuntimeSpec {
        let heap = HeapSpec {
            young: 1 << 20,
            old: 64 << 20,
            kept: 32 << 20,
            outlives: 0.0,
            jitter: 0.0,
            ..HeapSpec::default()
        };
        RuntimeSpec { heap, threads: 2, allocates: 512 << 10, ..RuntimeSpec::default() }
    }

    #[test]
    fn a_request_that_finds_no_room_stops_all_threads() {
        let mut executor = Executor::new();
        let sim = executor.sim();
        executor
            .block_on(async {
                let runtime = Runtime::new(&sim, spec(), Seed::new(1));
                let (other, clock) = (runtime.clone(), sim.clone());
                let ended = Rc::new(Cell::new(Time::ZERO));
                let told = ended.clone();
                sim.spawn(async move {
                    other.request(700 << 10, Span::from_ms(10)).await;
                    told.set(clock.now());
                });
                sim.sleep(Span::from_ms(2)).await;
                runtime.request(700 << 10, Span::from_ms(1)).await;
                // The first one's 700 KiB are live: 1 ms and 0.68 ms.
                let pause = Span::from_ms(1) + Span::from_ns(683_593);
                assert_eq!(sim.now().ns(), (Span::from_ms(3) + pause).ns());
                sim.sleep(Span::from_ms(20)).await;
                assert_eq!(ended.get().ns(), (Span::from_ms(10) + pause).ns());
                assert_eq!(runtime.collections(), Collections { young: 1, full: 0, stopped: pause });
            })
            .unwrap();
    }

    #[test]
    fn a_rejected_request_has_the_collection_begin_where_that_is_wanted() {
        for collect_rejected in [true, false] {
            let mut executor = Executor::new();
            let sim = executor.sim();
            executor
                .block_on(async {
                    let runtime = Runtime::new(&sim, RuntimeSpec { collect_rejected, ..spec() }, Seed::new(1));
                    for _ in 0..3 {
                        runtime.request(400 << 10, Span::from_ms(1)).await;
                    }
                    runtime.request(400 << 10, Span::from_ms(1)).await;
                    let forecast = runtime.forecast();
                    assert!(forecast.wait > Span::from_us(100), "{forecast:?}");
                    let before = runtime.collections().young;
                    runtime.rejected(&forecast);
                    sim.sleep(Span::from_ms(5)).await;
                    assert_eq!(runtime.collections().young - before, u64::from(collect_rejected));
                    assert_eq!(runtime.forecast().wait.is_zero(), collect_rejected);
                })
                .unwrap();
        }
    }
}
