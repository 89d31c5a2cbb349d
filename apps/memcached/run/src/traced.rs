//! A trace of a cache on an engine: each request arrives at its time, and those of a second are spread over it. A get that finds nothing is followed
//! by a put of the value, as a client does that reads the item elsewhere.
//!
//! The first requests fill the cache, and are not measured. The engine's keys and values have the sizes of the trace.
//!
//! Left out: the protocol and the network, and commands of several keys.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_apps_memcached_engine::{Engine, Expect, New, Refused, Stats};
use nandscape_apps_store::Host;
use nandscape_device_ssd::Ssd;
use nandscape_lab_run::DriveFigures;
use nandscape_sim::{Executor, Histogram, Sim, Span, Time};

use crate::below::Left;
use crate::cache_trace::{Asks, CacheTrace, Request};
use crate::simulated::{RunError, Spec};

/// How a trace is run.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Pace {
    /// How many seconds of the trace pass in a second.
    pub speed: f64,
    /// Requests before those that are measured, in percent.
    pub warm_up: u64,
    /// Bytes of memory for the index and cached values.
    pub memory: u64,
}

impl Pace {
    /// Checks that items of a trace expire at this pace.
    pub(crate) fn check(&self, trace: &CacheTrace) -> Result<(), String> {
        let shortest = trace.requests.iter().map(|request| request.ttl_s).filter(|ttl_s| *ttl_s > 0).min();
        match shortest.filter(|shortest| f64::from(*shortest) < self.speed) {
            None => Ok(()),
            Some(shortest) => Err(format!(
                "--speed {}: items expire in whole seconds, and one lives {shortest} s; {shortest} or less is valid",
                self.speed
            )),
        }
    }

    /// Requests that fill the cache, in whole seconds, and the second in which the measurement begins.
    pub(crate) fn warm_up(&self, trace: &CacheTrace) -> (usize, u32) {
        let nearly = (trace.requests.len() as u64 * self.warm_up.min(99) / 100) as usize;
        let from_s = trace.requests.get(nearly).map_or(0, |request| request.at_s);
        (trace.requests.partition_point(|request| request.at_s < from_s), from_s)
    }

    /// Requests with their times: those of a second are spread over it.
    pub(crate) fn arrivals<'a>(&self, requests: &'a [Request]) -> impl Iterator<Item = (Span, Request)> + use<'a> {
        let speed = self.speed;
        requests.chunk_by(|one, other| one.at_s == other.at_s).flat_map(move |second| {
            second.iter().enumerate().map(move |(place, request)| {
                let at_s = f64::from(request.at_s) + place as f64 / second.len() as f64;
                (Span::from_ns((at_s / speed * 1e9) as u64), *request)
            })
        })
    }

    /// Seconds that the item of a request lives: as long as in the trace, whose seconds pass faster here.
    pub(crate) fn lives_s(&self, request: &Request) -> u64 {
        (f64::from(request.ttl_s) / self.speed).ceil() as u64
    }
}

/// What came of it.
#[derive(Clone)]
pub struct Traced {
    /// Gets that found an item, from memory or a drive.
    pub hits: Histogram,
    /// Gets that found none.
    pub misses: Histogram,
    /// Changes, those after misses included.
    pub changes: Histogram,
    /// Changes that were not made because the item would be too large.
    pub too_large: u64,
    /// The trace's time that was measured.
    pub took: Span,
    /// The engine's counters at the end, and at the beginning of the measurement.
    pub after: Stats,
    /// See `after`.
    pub before: Stats,
    /// Bytes of keys and values that clients put.
    pub put_bytes: u64,
    /// Bytes of all drives.
    pub drive_bytes: u64,
    /// Bytes that the drives programmed for each byte that they received.
    pub waf: Option<f64>,
    /// Layers, faults, and what they led to.
    pub left: Left,
}

impl Traced {
    /// How often a day the drives' capacity is written to them, at the trace's rate.
    pub fn drive_writes_a_day(&self) -> f64 {
        let written = (self.after.written_bytes - self.before.written_bytes) as f64;
        written / self.drive_bytes.max(1) as f64 / (self.took.as_s() / 86_400.0)
    }

    /// The share of gets that found an item.
    pub fn hit_ratio(&self) -> f64 {
        let (hits, misses) = (self.hits.count() as f64, self.misses.count() as f64);
        hits / (hits + misses).max(1.0)
    }
}

/// Runs it. Of the load of `spec` only the limit of small items counts.
///
/// # Errors
/// Why there is no outcome.
pub fn run_trace(spec: &Spec, trace: &Rc<CacheTrace>, pace: Pace) -> Result<Traced, RunError> {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let ssds = spec.drives_in(&sim)?;
    executor.block_on(run_on(spec, trace.clone(), pace, sim.clone(), &ssds))?
}

struct Run {
    engine: Rc<Engine>,
    sim: Sim,
    pace: Pace,
    hits: RefCell<Histogram>,
    misses: RefCell<Histogram>,
    changes: RefCell<Histogram>,
    put_bytes: Cell<u64>,
    too_large: Cell<u64>,
    under_way: Cell<u64>,
    problem: RefCell<Option<RunError>>,
}

async fn run_on(
    spec: &Spec,
    trace: Rc<CacheTrace>,
    pace: Pace,
    sim: Sim,
    ssds: &[Rc<Ssd>],
) -> Result<Traced, RunError> {
    pace.check(&trace).map_err(RunError::Spec)?;
    let host = Host::new(&sim, spec.machine.cpu(&sim), spec.machine.costs);
    let members = spec.members_on(&sim, ssds).await?;
    let engine = spec.engine_on((&host, &members), pace.memory, true).await?;
    let (hits, misses, changes, problem) = Default::default();
    let [put_bytes, too_large, under_way] = [0; 3].map(Cell::new);
    let run = Rc::new(Run { engine, sim, pace, hits, misses, changes, put_bytes, too_large, under_way, problem });
    let (first, from_s) = pace.warm_up(&trace);
    let begun = run.sim.now();
    run.play(&trace.requests[..first], begun).await?;
    let (before, put_before) = (run.engine.stats(), run.put_bytes.get());
    members.begin();
    [&run.hits, &run.misses, &run.changes].into_iter().for_each(|one| drop(one.replace(Histogram::new())));
    run.too_large.set(0);
    run.play(&trace.requests[first..], begun).await?;
    let DriveFigures { host_bytes, flash_bytes, .. } = members.figures();
    Ok(Traced {
        hits: run.hits.take(),
        misses: run.misses.take(),
        changes: run.changes.take(),
        too_large: run.too_large.get(),
        took: Span::from_s(trace.seconds() - u64::from(from_s)),
        after: run.engine.stats(),
        before,
        put_bytes: run.put_bytes.get() - put_before,
        drive_bytes: spec.member_bytes(&members) * spec.members(),
        waf: (host_bytes > 0).then(|| flash_bytes as f64 / host_bytes as f64),
        left: Left::of(&run.engine, &members),
    })
}

impl Run {
    /// Has requests arrive at their times, and waits until all have ended.
    async fn play(self: &Rc<Self>, requests: &[Request], begun: Time) -> Result<(), RunError> {
        for (at, request) in self.pace.arrivals(requests) {
            self.sim.sleep_until(begun + at).await;
            if self.problem.borrow().is_some() {
                break;
            }
            self.under_way.set(self.under_way.get() + 1);
            self.sim.spawn(self.clone().serve(request));
        }
        while self.under_way.get() > 0 {
            self.sim.sleep(Span::from_us(100)).await;
        }
        self.problem.take().map_or(Ok(()), Err)
    }

    async fn serve(self: Rc<Self>, request: Request) {
        let key = key(&request);
        let begun = self.sim.now();
        match request.asks {
            Asks::Get => {
                let is_hit = self.engine.get(&key).await.is_some();
                let of = if is_hit { &self.hits } else { &self.misses };
                of.borrow_mut().record(self.sim.now() - begun);
                if !is_hit && request.value_bytes > 0 {
                    self.put(&key, Expect::Any, request).await;
                }
            }
            Asks::Set => self.put(&key, Expect::Any, request).await,
            Asks::Add => self.put(&key, Expect::Absent, request).await,
            Asks::Replace => self.put(&key, Expect::Present, request).await,
            // Both read the item, and put it anew.
            Asks::Append | Asks::Count => {
                if let Some(item) = self.engine.get(&key).await {
                    let grown = if request.asks == Asks::Append { request.value_bytes } else { 0 };
                    let value_bytes = (item.value.len() as u32).saturating_add(grown);
                    self.put(&key, Expect::Present, Request { value_bytes, ..request }).await;
                }
            }
            Asks::Delete => {
                let deleted = self.engine.delete(&key, Expect::Any).await;
                self.changed(begun, deleted);
            }
        }
        self.under_way.set(self.under_way.get() - 1);
    }

    async fn put(&self, key: &[u8], expect: Expect, request: Request) {
        let begun = self.sim.now();
        if key.len() + request.value_bytes as usize > self.engine.item_limit() {
            return self.changed(begun, Err(Refused::TooLarge));
        }
        let expiry = if request.ttl_s == 0 { 0 } else { self.engine.now_s() + self.pace.lives_s(&request) };
        let value: Rc<[u8]> = std::iter::repeat_n(request.key as u8, request.value_bytes as usize).collect();
        let put = self.engine.put(key, expect, New { flags: 0, expiry, value }).await.map(drop);
        if put.is_ok() {
            self.put_bytes.set(self.put_bytes.get() + key.len() as u64 + u64::from(request.value_bytes));
        }
        self.changed(begun, put);
    }

    /// A change has ended. That the key has an item or none is an answer, and that an item is too large is counted.
    fn changed(&self, begun: Time, ended: Result<(), Refused>) {
        match ended {
            Ok(()) | Err(Refused::Exists | Refused::NotFound) => {
                self.changes.borrow_mut().record(self.sim.now() - begun);
            }
            Err(Refused::TooLarge) => self.too_large.set(self.too_large.get() + 1),
            Err(refused) => drop(self.problem.borrow_mut().get_or_insert(RunError::from(refused))),
        }
    }
}

/// A key of the length of the trace's, or of the four bytes of its number.
fn key(request: &Request) -> Vec<u8> {
    let mut key = request.key.to_le_bytes().to_vec();
    key.resize(usize::from(request.key_bytes).max(4), b'k');
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::tests::spec;

    fn traced(text: &str, pace: Pace) -> Traced {
        let trace = Rc::new(CacheTrace::read(text.as_bytes(), u64::MAX).unwrap());
        run_trace(&spec("gc_control"), &trace, pace).unwrap()
    }

    const PACE: Pace = Pace { speed: 1.0, warm_up: 0, memory: 4 << 20 };

    #[test]
    fn a_get_that_misses_puts_the_item_and_the_next_one_finds_it() {
        let text = "0,a,1,500,1,get,0\n1,a,1,500,1,get,0\n1,b,1,0,1,get,0\n2,b,1,0,1,get,0\n3,a,1,0,1,delete,0\n4,a,1,0,1,get,0\n";
        let traced = traced(text, PACE);
        assert_eq!((traced.hits.count(), traced.misses.count(), traced.changes.count()), (1, 4, 2));
        assert_eq!((traced.took, traced.put_bytes), (Span::from_s(5), 504));
        assert!((traced.hit_ratio() - 0.2).abs() < 1e-9 && traced.drive_writes_a_day() > 0.0);
    }

    #[test]
    fn a_speed_at_which_items_would_live_too_long_is_refused() {
        let trace = Rc::new(CacheTrace::read("0,a,1,10,1,set,60\n".as_bytes(), u64::MAX).unwrap());
        let run = |speed| run_trace(&spec("mixed"), &trace, Pace { speed, ..PACE });
        assert!(run(60.0).is_ok());
        let refused = run(61.0).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(refused.contains("--speed 61") && refused.contains("60 or less is valid"), "{refused}");
    }

    #[test]
    fn operations_do_what_they_say() {
        let text = "0,a,1,10,1,replace,0\n0,a,1,10,1,append,0\n1,a,1,10,1,add,0\n2,a,1,10,1,add,0\n3,a,1,90,1,append,0\n4,a,1,7,1,incr,0\n\
                    5,a,1,2000000,1,set,0\n6,a,1,10,1,get,0\n";
        let traced = traced(text, PACE);
        // The refused replace and the second add are changes, too; nothing is appended to nothing.
        assert_eq!((traced.changes.count(), traced.too_large), (5, 1));
        assert_eq!((traced.put_bytes, traced.hits.count(), traced.misses.count()), (14 + 104 + 104, 1, 0));
    }

    #[test]
    fn items_expire_in_the_time_of_the_trace_and_the_warm_up_is_not_measured() {
        let text = "0,a,1,10,1,set,100\n0,b,1,10,1,set,0\n50,a,1,0,1,get,0\n150,a,1,0,1,get,0\n150,b,1,0,1,get,0\n";
        for (speed, warm_up, hits, misses) in [(1.0, 0, 2, 1), (10.0, 0, 2, 1), (1.0, 60, 1, 1)] {
            let traced = traced(text, Pace { speed, warm_up, ..PACE });
            assert_eq!((traced.hits.count(), traced.misses.count()), (hits, misses), "{speed} {warm_up}");
            let took_s = if warm_up == 0 { 151 } else { 1 };
            assert_eq!(traced.took, Span::from_s(took_s));
        }
    }
}
