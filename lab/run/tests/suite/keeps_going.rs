//! No drive stalls. Every built-in profile runs under 512 B, 4 KiB, unit-sized and large random writes, from empty,
//! written once and worn in. Something completes in every 10 ms, or the breakdown of the request that ends the pause
//! attributes it to collections. Such pauses are at most 20 ms, except on papers' drives whose collections keep the host out
//! for whole blocks. `NANDSCAPE_TEST_SEED` sets the seed; a short run takes a part of the sizes, profiles and states, and
//! `NANDSCAPE_TEST_WHOLE_GRID=1` all.

use std::cell::RefCell;
use std::rc::Rc;

use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{BUILTIN, Profile, Resolved};
use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, QueueDrive, QueueId, Stage};
use nandscape_lab_run::{Precondition, Simulation, build_drive};
use nandscape_lab_workload::{Hooks, JobSpec, Limit, Runner, Served, Workload};
use nandscape_sim::{Executor, Seed, Span, Time};

/// The longest time in which nothing completes.
const LONGEST: Span = Span::from_ms(10);

/// The same for a pause that is attributed to collections which keep in step with the host: word lines of three pages have
/// to be moved before the host gets another.
const LONGEST_IN_STEP: Span = Span::from_ms(20);

/// A time without completions, and the breakdown of the request that ended it.
#[derive(Clone, Debug)]
struct Pause {
    from: Time,
    to: Time,
    breakdown: Breakdown,
}

impl Pause {
    /// Whether the request that ended it waited for collectors during most of the pause.
    fn is_put_down_to_gc(&self) -> bool {
        let gc: Span = Stage::WAITS.iter().map(|stage| self.breakdown.waited(*stage, cause::GC)).sum();
        gc * 2 > self.to - self.from
    }
}

/// Notes pauses.
struct Watch {
    last: RefCell<Time>,
    pauses: Rc<RefCell<Vec<Pause>>>,
}

impl Hooks for Watch {
    fn served(&self, request: &Served<'_>) {
        let (from, to) = (self.last.replace(request.completed), request.completed);
        if to - from >= LONGEST {
            let breakdown = request.completion.breakdown.clone();
            self.pauses.borrow_mut().push(Pause { from, to, breakdown });
        }
    }
}

/// A load on a drive.
#[derive(Clone, Debug)]
struct Case {
    profile: &'static str,
    changes: Vec<String>,
    bs: String,
    precondition: Precondition,
    requests: u64,
}

impl Case {
    fn resolve(&self) -> Resolved {
        let mut profile = Profile::load(self.profile).unwrap();
        profile.set_all(&self.changes).unwrap();
        profile.resolve().unwrap()
    }

    fn pauses(&self, seed: u64) -> Vec<Pause> {
        let (profile, seed) = (self.resolve(), Seed::new(seed));
        let mut executor = Executor::new();
        let sim = executor.sim();
        let ssd = build_drive(&sim, &profile, StoreKind::None, self.precondition, seed, &()).unwrap();
        // OX-Block formats its flash at the first start.
        executor.block_on(ssd.in_service()).unwrap();
        let job = JobSpec {
            rw: "randwrite".parse().unwrap(),
            bs: self.bs.parse().unwrap(),
            iodepth: 16,
            ..JobSpec::default()
        };
        let workload = Workload { limit: Limit::Requests(self.requests), ..Workload::of(job) };
        let drive = QueueDrive::new(&sim, ssd.controller(), QueueId(1), 32).unwrap();
        let pauses = Rc::default();
        let watch = Watch { last: RefCell::new(sim.now()), pauses: Rc::clone(&pauses) };
        let runner = Runner::new(&sim, &workload, Box::new(watch));
        let outcome = executor.block_on(runner.run(&workload, seed, |_, _| drive.clone())).unwrap();
        assert_eq!((outcome.requests(), outcome.failures().count()), (self.requests, 0), "{self:?}");
        ssd.check().unwrap();
        pauses.take()
    }

    /// Whether collectors keep the host out of what they clean for whole blocks.
    fn shuts_the_host_out(&self) -> bool {
        self.resolve().keys.ftl.gc.batch == Some(0)
    }

    fn check(&self, seed: u64) {
        let in_step = |pause: &Pause| pause.to - pause.from <= LONGEST_IN_STEP;
        let allowed = |pause: &Pause| pause.is_put_down_to_gc() && (self.shuts_the_host_out() || in_step(pause));
        let bad: Vec<Pause> = self.pauses(seed).into_iter().filter(|pause| !allowed(pause)).collect();
        let Some(longest) = bad.iter().max_by_key(|pause| pause.to - pause.from) else { return };
        panic!("{self:?}, seed {seed}: {} pauses, the longest {longest:?}", bad.len());
    }
}

/// Small drives with small blocks, so that they keep all their dies: collections begin soon.
const SMALL_BLOCKS: &[&str] = &["capacity=2GiB", "geometry.pages_per_block=48"];

/// Small drives with the blocks of their profiles.
const OWN_BLOCKS: &[&str] = &["capacity=8GiB"];

/// Some profiles in every state. The whole grid has every size for each; a short run takes one case of `one_of`, so that sizes, states
/// and profiles take turns. There are enough writes for collections to begin in all of them.
fn grid(changes: &[&str], one_of: usize, is_in: impl Fn(usize) -> bool) -> Vec<Case> {
    let one_of = if std::env::var_os("NANDSCAPE_TEST_WHOLE_GRID").is_some() { 1 } else { one_of };
    let mut cases = Vec::new();
    // Zones, runs and chunks are not written at random.
    let has_blocks = |name: &str| {
        let resolved = Profile::load(name).unwrap().resolve().unwrap();
        resolved.zone().is_none() && resolved.lsm().is_none() && resolved.open_channel().is_none()
    };
    let of_blocks = BUILTIN.iter().filter(|builtin| has_blocks(builtin.name));
    for (number, builtin) in of_blocks.enumerate().filter(|(number, _)| is_in(*number)) {
        for (state, precondition) in
            [Precondition::None, Precondition::Full, Precondition::Steady].into_iter().enumerate()
        {
            let sizes = ["512", "4k", "unit", "64k"].into_iter().enumerate();
            for (_, bs) in sizes.filter(|(size, _)| (number / 2 + state + size).is_multiple_of(one_of)) {
                let mut case = Case {
                    profile: builtin.name,
                    changes: changes.iter().map(|change| (*change).to_owned()).collect(),
                    bs: bs.to_owned(),
                    precondition,
                    requests: if bs == "64k" { 16_000 } else { 100_000 },
                };
                if bs == "unit" {
                    let unit = case.resolve().keys.ftl.mapping_unit.expect("it is filled in");
                    case.bs = format!("{}", unit.0.0);
                }
                cases.push(case);
            }
        }
    }
    cases
}

fn seed() -> u64 {
    std::env::var("NANDSCAPE_TEST_SEED").map_or(1, |text| text.parse().expect("NANDSCAPE_TEST_SEED is a number"))
}

#[test]
fn with_small_blocks_under_every_size_of_write_in_every_state() {
    grid(SMALL_BLOCKS, 4, |_| true).iter().for_each(|case| case.check(seed()));
}

/// In two halves, which run side by side.
#[test]
fn with_their_own_blocks_every_second_profile() {
    grid(OWN_BLOCKS, 8, |number| number % 2 == 0).iter().for_each(|case| case.check(seed()));
}

#[test]
fn with_their_own_blocks_the_other_profiles() {
    grid(OWN_BLOCKS, 8, |number| number % 2 == 1).iter().for_each(|case| case.check(seed()));
}

/// Striping fills all planes alike, so that their first collections begin together, with nearly all pages of the victims valid. A
/// real drive continues; the model once stalled for 425 ms.
#[test]
fn when_the_first_collections_begin() {
    for profile in ["default", "samsung-970pro", "wd-zn540-block", "mqsim-mlc"] {
        let case = Case {
            profile,
            changes: vec!["capacity=8GiB".to_owned()],
            bs: "64k".to_owned(),
            precondition: Precondition::Full,
            requests: 30_000,
        };
        assert!(!case.shuts_the_host_out(), "{profile}");
        case.check(1);
    }
}

/// A drive whose collections keep the host out for whole blocks stalls, and the run reports this and why.
#[test]
fn a_run_says_why_a_drive_stood_still() {
    let notes = |batch: &str| {
        let mut profile = Profile::load("femu-ocssd").unwrap();
        profile.set_all(["capacity=2GiB", batch]).unwrap();
        let job =
            JobSpec { rw: "randwrite".parse().unwrap(), bs: "64k".parse().unwrap(), iodepth: 16, ..JobSpec::default() };
        let workload = Workload { limit: Limit::Requests(10_000), ..Workload::of(job) };
        let simulation = Simulation::on(profile.resolve().unwrap(), Precondition::Full, workload, 1);
        simulation.run(Rc::new(())).unwrap().into_drive().report.notes.join("; ")
    };
    assert!(notes("ftl.gc.batch=0").contains("while collections kept the host out"), "{}", notes("ftl.gc.batch=0"));
    assert!(!notes("ftl.gc.batch=1").contains("while collections kept the host out"));
}

/// A buffer full of partial units: their fills once began all at once, and every program stood behind them for 90 ms.
#[test]
fn when_the_buffer_is_full_of_partial_units() {
    let case = |profile, changes: &[&str]| Case {
        profile,
        changes: changes.iter().map(|change| (*change).to_owned()).collect(),
        bs: "4k".to_owned(),
        precondition: Precondition::Full,
        requests: 100_000,
    };
    case("mqsim-mlc", &["capacity=64GiB"]).check(1);
    case("default", &["capacity=16GiB", "ftl.mapping_unit=16KiB", "buffer.size=256MiB"]).check(1);
}
