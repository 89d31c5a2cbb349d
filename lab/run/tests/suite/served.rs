//! A layer behind controllers of a server takes the same times as in a simulation, and accounts for them in the same way: stages,
//! waits by cause, and layers.

use std::collections::BTreeMap;
use std::rc::Rc;

use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Resolved};
use nandscape_drive::{Drive, Node, Role, Stage, Use};
use nandscape_lab_run::chain::{ModelNode, Opening, drives_below, open_in};
use nandscape_lab_run::{
    ArraySpec, Chain, DriveSpec, LiveSpec, LowestSpec, Precondition, Rig, RigDrive, Rules, Wanted, array_on,
    block_layer, build_drive,
};
use nandscape_lab_workload::{Direction, JobSpec, Limit, Outcome, Runner, Workload};
use nandscape_layers_array::Config;
use nandscape_sim::{Executor, Seed, Sim};
use nandscape_transport_reactor::{Connect, Export};

const SEED: u64 = 5;
const MEMBERS: u64 = 3;

fn profile() -> Profile {
    let mut profile = Profile::load("default").unwrap();
    let small = ["capacity=128MiB", "geometry.channels=2", "geometry.dies_per_channel=2", "ftl.gc.scheme=channel"];
    profile.set_all(small).unwrap();
    profile
}

fn resolved() -> Resolved {
    profile().resolve().unwrap()
}

fn spec(number: u64) -> DriveSpec {
    DriveSpec {
        name: format!("drive-{number}"),
        number,
        profile_name: "default".to_owned(),
        profile: resolved().to_toml(),
        keeps_data: false,
        precondition: Precondition::Steady,
        from_state: None,
        is_shared: false,
        own_seed: None,
    }
}

/// The same drives in a simulation.
fn rig(drives: u64) -> Rig {
    let drive = |number: u64| RigDrive {
        name: format!("drive-{number}"),
        profile: resolved(),
        store: StoreKind::None,
        precondition: Precondition::Steady,
        seed: Seed::new(SEED).child("live").nth(number),
    };
    Rig::build((0..drives).map(drive).collect(), Wanted::default(), &()).unwrap()
}

fn load() -> Workload {
    let job = JobSpec { rw: "randrw".parse().unwrap(), bs: "4k".parse().unwrap(), iodepth: 8, ..JobSpec::default() };
    Workload { limit: Limit::Requests(4_000), ..Workload::of(job) }
}

/// An urgent job next to an idle one of more depth.
fn classes() -> Workload {
    let job = |name: &str, iodepth, class| {
        let rw = "randrw".parse().unwrap();
        JobSpec {
            name: name.to_owned(),
            rw,
            bs: "4k".parse().unwrap(),
            iodepth,
            class,
            tenant: 7,
            ..JobSpec::default()
        }
    };
    let jobs = vec![job("urgent", 2, 1), job("idle", 32, 15)];
    Workload { limit: Limit::Requests(4_000), jobs, ..Workload::of(JobSpec::default()) }
}

/// A load on a drive, in simulated time.
async fn outcome(sim: Sim, drive: Rc<dyn Drive>, workload: Workload) -> Outcome {
    let runner = Runner::new(&sim, &workload, Box::new(()));
    runner.run(&workload, Seed::new(SEED), |_, _| drive.clone()).await
}

fn check(served: &Outcome, simulated: &Outcome, layer: &str) {
    for way in [Direction::Read, Direction::Write] {
        let (served, simulated) = (served.tally(way), simulated.tally(way));
        assert_eq!(served.latency.mean_ns(), simulated.latency.mean_ns(), "{way:?}");
        assert_eq!(served.breakdown, simulated.breakdown, "{way:?}");
        assert!(!served.breakdown.stage(Stage::Link).is_zero(), "it shows what passes in the drives");
        let layers: Vec<&str> = served.breakdown.layers().map(|(name, _)| name).collect();
        assert!(layers.is_empty() || layers == [layer], "{layers:?}");
    }
}

#[test]
fn a_served_array_accounts_for_time_as_a_simulated_one() {
    let config = Config::default();
    let shape = "raid5:3".parse().unwrap();
    let mut rig = rig(MEMBERS);
    let array = array_on(&rig, shape, config.clone()).unwrap();
    let simulated = rig.run(outcome(rig.sim().clone(), array, load())).unwrap();

    let mut executor = Executor::new();
    let spec = ArraySpec {
        name: "array".to_owned(),
        shape,
        config,
        members: (0..MEMBERS).map(|number| LowestSpec::Model(spec(number)).into()).collect(),
        creates: false,
        is_degraded: false,
        overwrites: false,
    };
    let export = spec.build(&mut executor, SEED, (0..MEMBERS).map(|_| None).collect(), &()).unwrap();
    let served = executor.block_on(outcome(executor.sim(), export.connect().unwrap(), load())).unwrap();
    check(&served, &simulated, "array");
}

/// The same load on a block layer over a drive in a simulation, and on the same that is served.
fn simulated_and_served(config: &nandscape_host_block::Config, chain: &str, load: fn() -> Workload) -> [Outcome; 2] {
    let mut rig = rig(1);
    let ssd = rig.ssds().next().unwrap().clone();
    let layer = block_layer(rig.sim(), &ssd, resolved().priority(), config).unwrap();
    let top = layer.over(rig.connect(0, 1_024).unwrap());
    let simulated = rig.run(outcome(rig.sim().clone(), top, load())).unwrap();

    let mut executor = Executor::new();
    let export = over(&chain.parse().unwrap(), 0).build(&mut executor, SEED, Vec::new(), &()).unwrap();
    let served = executor.block_on(outcome(executor.sim(), export.connect().unwrap(), load())).unwrap();
    [simulated, served]
}

#[test]
fn a_served_block_layer_accounts_for_time_as_a_simulated_one() {
    // Where commands wait for others in the layer, their order depends on which of two that come at one instant is first.
    let [simulated, served] = simulated_and_served(&nandscape_host_block::Config::default(), "block", load);
    check(&served, &simulated, "block");
}

#[test]
fn a_served_block_layer_prefers_the_urgent_class_as_a_simulated_one() {
    let mut config = nandscape_host_block::Config::default();
    for change in ["block.scheduler=cfq", "block.depth=4"] {
        config.set(change).unwrap();
    }
    let both = simulated_and_served(&config, "block,scheduler=cfq,depth=4", classes);
    for way in [Direction::Read, Direction::Write] {
        let requests = |of: &Outcome, job: usize| of.flows[job].tally(way).latency.count() as f64;
        // Without classes, the urgent job has 2 of 34 requests. How many more it has depends on whether its next request reaches the
        // layer before the layer fills a free place, which differs by a turn of the controller.
        for of in &both {
            let share = requests(of, 0) / (requests(of, 0) + requests(of, 1));
            assert!(share > 0.3, "{way:?}: {share}");
        }
    }
}

/// A rule of the server gives a client its class: the scheduler of the layer below its front sees it.
#[test]
fn a_served_block_layer_prefers_the_client_that_a_rule_makes_urgent() {
    let share = |rules: &str| {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let chain = "block,scheduler=cfq,depth=4".parse().unwrap();
        let export = over(&chain, 0).build(&mut executor, SEED, Vec::new(), &()).unwrap();
        Rules(rules.parse().unwrap()).assign_to(&export);
        let mut workload = classes();
        workload.jobs.iter_mut().for_each(|job| (job.class, job.tenant) = (0, 0));
        let mut clients = [export.connect().unwrap(), export.connect().unwrap()].into_iter();
        let runner = Runner::new(&sim, &workload, Box::new(()));
        let run = async { runner.run(&workload, Seed::new(SEED), |_, _| clients.next().unwrap()).await };
        let outcome = executor.block_on(run).unwrap();
        let reads = |job: usize| outcome.flows[job].tally(Direction::Read).latency.count() as f64;
        reads(0) / (reads(0) + reads(1))
    };
    let (urgent, plain) = (share("queue=1,class=1,tenant=1 class=15,tenant=2"), share("tenant=7"));
    assert!(urgent > 0.3 && plain < 0.15, "{urgent} and {plain}");
}

/// Layers over a drive.
fn over(chain: &Chain, number: u64) -> LiveSpec {
    LiveSpec { chain: chain.clone(), ..LowestSpec::Model(spec(number)).into() }
}

/// Layers that take several drives.
fn top(drives: Vec<LowestSpec>, chain: &Chain) -> LiveSpec {
    LiveSpec { name: "top".to_owned(), drives, chain: chain.clone(), is_engine: false }
}

fn array_over(chain: &Chain) -> ArraySpec {
    ArraySpec {
        name: "array".to_owned(),
        shape: "raid5:3".parse().unwrap(),
        config: Config::default(),
        members: (0..MEMBERS).map(|number| over(chain, number)).collect(),
        creates: false,
        is_degraded: false,
        overwrites: false,
    }
}

/// The times of commands through layers below a served array sum to their latencies, and the layers count them.
#[test]
fn layers_below_a_served_array_account_for_all_time() {
    let chain: Chain = "block".parse().unwrap();
    let mut executor = Executor::new();
    let export = array_over(&chain).build(&mut executor, SEED, (0..MEMBERS).map(|_| None).collect(), &()).unwrap();
    let served = executor.block_on(outcome(executor.sim(), export.connect().unwrap(), load())).unwrap();
    for way in [Direction::Read, Direction::Write] {
        let tally = served.tally(way);
        let latency = tally.latency.mean_ns() * tally.latency.count() as f64;
        let of_all = tally.breakdown.total().ns() as f64;
        assert!((of_all - latency).abs() < 1.0, "{way:?}: {of_all} ns of {latency}");
    }
    let parts = export.parts();
    assert!(parts.iter().all(|(_, counters)| counters["block_reads_total"] > 0.0), "{parts:?}");
}

/// Two layers of a kind below a served array count each for itself, by the names that they have in a simulation.
#[test]
fn layers_of_a_kind_below_a_served_array_are_parts() {
    let chain: Chain = "block,depth=1 cache,memory=64KiB block".parse().unwrap();
    let mut executor = Executor::new();
    let export = array_over(&chain).build(&mut executor, SEED, (0..MEMBERS).map(|_| None).collect(), &()).unwrap();
    let served = executor.block_on(outcome(executor.sim(), export.connect().unwrap(), load())).unwrap();
    let parts: BTreeMap<_, _> = export.parts().into_iter().collect();
    let names: Vec<&str> = parts.keys().map(String::as_str).collect();
    let of = |layer: &str| (0..MEMBERS).map(|number| format!("{layer}/{number}")).collect::<Vec<_>>();
    let drives = (0..MEMBERS).map(|number| format!("drive-{number}"));
    assert_eq!(names, [of("block-1"), of("block-2"), of("cache"), drives.collect()].concat());
    for number in 0..MEMBERS {
        let reads = |layer: &str| parts[&format!("{layer}/{number}")]["block_reads_total"];
        // The cache between them reads the pages that it misses.
        assert!(reads("block-1") > 0.0 && reads("block-2") > 0.0, "{parts:?}");
    }
    assert!(layers_of(&served, Direction::Read).contains(&"block-1"), "{:?}", layers_of(&served, Direction::Read));
}

/// Two layers of a kind on one path, in both of which commands wait.
const TWICE: &str = "block,depth=1 raid5:3 block,depth=4";

/// Chains in which a layer of each kind lies over one of another, layers in which commands wait in order, and a tree.
const CHAINS: [&str; 8] = [
    "block raid5:3",
    "ftl block",
    "raid5:3 cache,memory=64KiB",
    "ahci:3 cache,memory=64KiB",
    "cache,memory=64KiB raid1:2 cache,memory=64KiB",
    "block,depth=1",
    TWICE,
    "safe=raid1:2,over=drive-0+drive-1 fast=cache,memory=64KiB,over=drive-2 raid0:2,over=safe+fast",
];

/// Layers that choose among the commands that wait, with the share by which the mean latencies of a direction may differ, and that of
/// all requests. Where the next request of a job competes with commands that wait, a simulated job sends it as the place becomes free; a
/// served one sends it a turn of the controller later, when another command has the place. The work is the same, its order is not.
const CHOOSING: [(&str, f64, f64); 4] = [
    ("ahci:3,slots=2", 0.001, 0.001),
    ("block,scheduler=cfq,depth=4", 0.05, 0.03),
    ("block,scheduler=cfq,depth=1", 0.05, 0.03),
    ("block,scheduler=ssd,depth=2", 0.3, 0.01),
];

/// Chains that are drawn.
const DRAWN: usize = 5;

/// The profile of the drives below a chain.
fn below(chain: &Chain) -> Resolved {
    if chain.has_ftl() { crate::chains::profile_of_chunks() } else { resolved() }
}

/// A load on a chain in a simulation.
fn simulated(chain: &Chain, drives: u64, load: Workload) -> Outcome {
    let mut executor = Executor::new();
    let (sim, profile) = (executor.sim(), below(chain));
    let precondition = if chain.has_ftl() { Precondition::None } else { Precondition::Steady };
    let mut nodes: Vec<(String, Rc<dyn Node>)> = Vec::new();
    for number in 0..drives {
        let seed = Seed::new(SEED).child("live").nth(number);
        let ssd = Rc::new(build_drive(&sim, &profile, StoreKind::None, precondition, seed, &()).unwrap());
        let node = ModelNode::new(&sim, &ssd, &profile);
        executor.block_on(node.open_chunks()).unwrap().unwrap();
        nodes.push((format!("drive-{number}"), Rc::new(node)));
    }
    let seed = Seed::new(SEED).child("layers");
    let how = Opening { seed, precondition: Precondition::Steady, ..Opening::new(&sim, "") };
    let opened = open_in(&how, &chain.resolve().unwrap(), nodes, &[]).unwrap();
    let top = opened.tops[0].connect(Use { role: Role::Any, entries: u32::MAX }).unwrap();
    executor.block_on(outcome(sim, top, load)).unwrap()
}

/// The same load on the same chain that is served, and in a simulation.
fn served_and_simulated(chain: &Chain, load: fn() -> Workload) -> [Outcome; 2] {
    let drives = drives_below(&chain.resolve().unwrap()) as u64;
    let profile = below(chain).to_toml();
    let model = |number| LowestSpec::Model(DriveSpec { profile: profile.clone(), ..spec(number) });
    let live = top((0..drives).map(model).collect(), chain);
    let mut executor = Executor::new();
    let export = live.build(&mut executor, SEED, Vec::new(), &()).unwrap();
    let served = executor.block_on(outcome(executor.sim(), export.connect().unwrap(), load())).unwrap();
    [served, simulated(chain, drives, load())]
}

fn layers_of(outcome: &Outcome, way: Direction) -> Vec<&'static str> {
    outcome.tally(way).breakdown.layers().map(|(name, _)| name).collect()
}

/// Where a load on a chain that is served differs from the same in a simulation.
fn difference(words: &str, load: fn() -> Workload) -> Option<String> {
    let [served, simulated] = served_and_simulated(&words.parse().unwrap(), load);
    let differs = |way: Direction| {
        let (served, simulated) = (served.tally(way), simulated.tally(way));
        let (here, there) = (served.latency.mean_ns(), simulated.latency.mean_ns());
        let is_same = here == there && served.breakdown == simulated.breakdown;
        (!is_same).then(|| format!("{words}: {way:?}: {here} ns served, {there} simulated"))
    };
    [Direction::Read, Direction::Write].into_iter().find_map(differs)
}

#[test]
fn served_chains_account_for_time_as_simulated_ones() {
    for words in CHAINS {
        assert_eq!(difference(words, load), None);
    }
}

/// As [`load`], at half the depth: layers of drawn chains have a place for each command, and none chooses among several.
fn shallow() -> Workload {
    let mut workload = Workload { limit: Limit::Requests(2_000), ..load() };
    workload.jobs.iter_mut().for_each(|job| job.iodepth /= 2);
    workload
}

#[test]
fn served_chains_that_are_drawn_account_for_time_as_simulated_ones() {
    let mut rng = Seed::new(crate::chains::seed()).child("served").rng();
    for _ in 0..DRAWN {
        let words = crate::kinds::drawn(&mut rng, None).join(" ");
        assert_eq!(difference(&words, shallow), None, "seed {}", crate::chains::seed());
    }
}

#[test]
fn times_of_two_layers_of_a_kind_are_told_apart() {
    let [served, simulated] = served_and_simulated(&TWICE.parse().unwrap(), load);
    for outcome in [served, simulated] {
        assert_eq!(layers_of(&outcome, Direction::Write), ["block-1", "block-2"]);
    }
}

#[test]
fn served_layers_that_choose_differ_by_a_turn_of_the_controller() {
    for (words, of_each, of_all) in CHOOSING {
        let both = served_and_simulated(&words.parse().unwrap(), load);
        let mean = |ways: &[Direction]| {
            both.each_ref().map(|outcome| {
                let all = ways.iter().map(|way| outcome.tally(*way));
                let (sum, count) = all.fold((0, 0), |(sum, count), one| {
                    assert_eq!(one.breakdown.total().ns() as f64, one.latency.sum_ns() as f64, "{words}");
                    (sum + one.latency.sum_ns(), count + one.latency.count())
                });
                sum as f64 / count as f64
            })
        };
        let (read, write) = ([Direction::Read], [Direction::Write]);
        let both_ways = [Direction::Read, Direction::Write];
        for (ways, within) in [(&read[..], of_each), (&write, of_each), (&both_ways, of_all)] {
            let [served, simulated] = mean(ways);
            assert!(
                (served / simulated - 1.0).abs() < within,
                "{words}: {ways:?}: {served} ns served, {simulated} simulated"
            );
        }
    }
}
