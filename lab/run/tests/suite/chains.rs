//! Layers in any order: all ordered pairs of kinds, and random chains of four, pass the checks that every drive must;
//! their times sum up, each layer has its own, and the same inputs give the same figures.
//!
//! `NANDSCAPE_TEST_SEED` gives another seed.

use std::rc::Rc;

use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Resolved, Ssd};
use nandscape_drive::conformance::{self, Load, Subject};
use nandscape_drive::{Node, Role, Use};
use nandscape_host_open_channel::{ChunkInfo, Geometry, Means, OpenChannel};
use nandscape_lab_run::chain::{
    Chain, LayerNode, ModelNode, Opened, check_over, drives_below, is_over_chunks, kinds, open,
};
use nandscape_lab_run::host_ftl::{self, Chunks};
use nandscape_lab_run::{ChainFinished, DRIVE, Offers, Precondition, RigDrive, Simulation, Wanted};
use nandscape_lab_workload::{JobSpec, Limit, Workload};
use nandscape_sim::{Executor, Rng, Seed, Sim};

use crate::kinds::{KINDS, drawn};

/// The FTL of a host, the lowest layer of a chain over open-channel drives.
pub(crate) const FTL: &str = "ftl,buffer.size=256KiB,controller.queue_pairs=8,controller.max_transfer=256KiB";

pub(crate) fn seed() -> u64 {
    std::env::var("NANDSCAPE_TEST_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

fn chain(words: &[&str]) -> Chain {
    Chain { layers: words.iter().map(|word| word.parse().expect("a valid layer")).collect() }
}

/// A drive of some MiB, as the tests of arrays have it.
pub(crate) fn profile() -> Resolved {
    profile_with(&[])
}

/// The same with changes.
pub(crate) fn profile_with(changes: &[&str]) -> Resolved {
    let small = [
        "capacity=8MiB",
        "geometry.channels=2",
        "geometry.dies_per_channel=1",
        "geometry.planes_per_die=2",
        "geometry.pages_per_block=16",
        "buffer.size=256KiB",
        "controller.max_transfer=256KiB",
    ];
    let mut profile = Profile::load("default").expect("a built-in profile");
    profile.set_all(small.iter().chain(changes)).expect("valid changes");
    profile.resolve().expect("a possible drive")
}

/// An open-channel drive of four parallel units, with chunks of 16 strips of 16 KiB.
pub(crate) fn profile_of_chunks() -> Resolved {
    let small = [
        "lba_size=4KiB",
        "geometry.channels=2",
        "geometry.dies_per_channel=2",
        "geometry.planes_per_die=1",
        "geometry.blocks_per_plane=24",
        "geometry.pages_per_block=16",
        "geometry.factory_bad_blocks=0%",
        "buffer.mode=through",
        "ftl.kind=open_channel",
        "controller.max_transfer=256KiB",
    ];
    let mut profile = Profile::load("default").expect("a built-in profile");
    profile.set_all(small).expect("valid changes");
    profile.resolve().expect("a possible drive")
}

/// What a new open-channel drive reports of itself.
fn told(profile: &Resolved) -> (Geometry, Vec<ChunkInfo>) {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let ssd = Rc::new(Ssd::new(&sim, profile, StoreKind::None, Seed::new(3)).expect("memory"));
    let node = ModelNode::new(&sim, &ssd, profile);
    let (host, report) = executor.block_on(host_ftl::open(&sim, &node, Means::Vector)).unwrap().expect("chunks");
    (*host.geometry(), report)
}

/// A drive as the lowest node, opened for an FTL if it is an open-channel one.
pub(crate) fn lowest(sim: &Sim, ssd: &Rc<Ssd>, profile: &Resolved) -> Rc<dyn Node> {
    let node = ModelNode::new(sim, ssd, profile);
    if profile.open_channel().is_none() {
        return Rc::new(node);
    }
    let (geometry, report) = told(profile);
    let connect = |role| node.connect(Use { role, entries: 256 }).expect("a free queue pair");
    let queues = (connect(Role::Admin), connect(Role::Any));
    let host = OpenChannel::with_geometry(sim, queues, geometry, Means::Vector);
    Rc::new(node.with_chunks(Chunks::of_model(ssd, host, report)))
}

/// A chain over drives that keep data.
pub(crate) fn opened(sim: &Sim, chain: &Chain) -> (Vec<Rc<Ssd>>, Opened) {
    let layers = chain.resolve().expect("valid layers");
    let profile = if is_over_chunks(&layers) { profile_of_chunks() } else { profile() };
    let ssd = |number: usize| Ssd::new(sim, &profile, StoreKind::Ram, Seed::new(3).nth(number as u64)).expect("memory");
    let ssds: Vec<Rc<Ssd>> = (0..drives_below(&layers)).map(|number| Rc::new(ssd(number))).collect();
    let node = |(number, ssd): (usize, &Rc<Ssd>)| -> (String, Rc<dyn Node>) {
        (format!("drive-{number}"), lowest(sim, ssd, &profile))
    };
    let opened = open(sim, &layers, ssds.iter().enumerate().map(node).collect()).expect("it fits");
    (ssds, opened)
}

/// The top of it.
fn make(sim: &Sim, chain: &Chain) -> Subject {
    let (ssds, opened) = opened(sim, chain);
    let drive = opened.tops[0].connect(Use { role: Role::Any, entries: 33 }).expect("a free queue pair");
    let nodes: Vec<Rc<dyn LayerNode>> = opened.layers.iter().map(|layer| layer.node.clone()).collect();
    let check = move || {
        ssds.iter().try_for_each(|ssd| ssd.check()).and_then(|()| nodes.iter().try_for_each(|layer| layer.check()))
    };
    Subject { check: Box::new(check), ..Subject::new(drive) }
}

/// All checks of [`conformance::all`], with less load; `NANDSCAPE_TEST_WHOLE_GRID=1` takes all of it.
fn passes(words: &[&str]) {
    let (chain, whole) = (chain(words), Load::default());
    let small = Load { steps: 300, ..whole };
    // The checks that compare runs make two or three of them.
    let brief = Load { steps: 160, span: 512, ..whole };
    let is_whole = std::env::var_os("NANDSCAPE_TEST_WHOLE_GRID").is_some();
    let (load, brief, cuts) = if is_whole { (whole, whole, conformance::CUTS) } else { (small, brief, 6) };
    let make = |sim: &Sim| make(sim, &chain);
    conformance::fields(&make, seed())
        .and_then(|()| conformance::data(&make, &load, seed()))
        .and_then(|()| conformance::overlap(&make, seed()))
        .and_then(|()| conformance::once_each(&make, seed()))
        .and_then(|()| conformance::power_cut(&make, cuts, seed()))
        .and_then(|()| conformance::dropped_drive(&make, seed()))
        .and_then(|()| conformance::repeat(&make, &brief, seed()))
        .and_then(|()| conformance::spurious_polls(&make, &brief, seed()))
        .unwrap_or_else(|what| panic!("{words:?}, seed {}: {what}", seed()));
}

/// A new kind joins those of which pairs and chains are drawn.
#[test]
fn every_kind_of_the_list_is_drawn() {
    let drawn: Vec<&str> =
        KINDS.into_iter().chain([FTL]).map(|word| chain(&[word]).resolve().unwrap()[0].layer.kind()).collect();
    let missing: Vec<&str> = kinds().iter().map(|kind| kind.name).filter(|name| !drawn.contains(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn an_ftl_below_each_kind_passes_the_checks_of_a_drive() {
    for above in KINDS {
        passes(&[FTL, above]);
    }
}

#[test]
fn an_ftl_over_another_layer_is_refused() {
    for below in KINDS.into_iter().chain([FTL]) {
        let layers = chain(&[below, FTL]).resolve().expect("valid layers");
        let executor = Executor::new();
        let sim = executor.sim();
        let profile = if is_over_chunks(&layers) { profile_of_chunks() } else { profile() };
        let ssd = |_| Rc::new(Ssd::new(&sim, &profile, StoreKind::None, Seed::new(3)).expect("memory"));
        let node = |ssd: Rc<Ssd>| ("drive".to_owned(), lowest(&sim, &ssd, &profile));
        let drives = (0..drives_below(&layers)).map(ssd).map(node).collect();
        let problem = open(&sim, &layers, drives).map(drop).unwrap_err();
        assert!(problem.starts_with("host_ftl") && problem.contains("no open-channel drive"), "{below}: {problem}");
    }
}

#[test]
fn every_ordered_pair_passes_the_checks_of_a_drive() {
    for below in KINDS {
        for above in KINDS {
            passes(&[below, above]);
        }
    }
}

#[test]
fn drawn_chains_of_four_pass_the_checks_of_a_drive() {
    let mut rng: Rng = Seed::new(seed()).child("chains").rng();
    for number in 0..20 {
        // Every fourth lies over open-channel drives.
        passes(&drawn(&mut rng, (number % 4 == 0).then_some(FTL)));
    }
}

/// A stripe of a mirror and of a drive with a cache.
const TREE: [&str; 3] =
    ["safe=raid1:2,over=drive-0+drive-1", "fast=cache,memory=64KiB,over=drive-2", "raid0:2,over=safe+fast"];

#[test]
fn a_tree_passes_the_checks_of_a_drive() {
    passes(&TREE);
    passes(&["block,over=drive-1", "raid5:3", "cache,memory=64KiB"]);
}

#[test]
fn layers_of_a_tree_lie_over_what_they_name() {
    let finished = run(&TREE);
    assert_eq!(finished.called("default"), "raid0:2 over fast and raid1:2 of default");
    let host = finished.host;
    let sections: Vec<(&str, String)> = host.chain.iter().map(|one| (&*one.layer, one.over.join(" "))).collect();
    let expected = [("safe", "drive-0 drive-1"), ("fast", "drive-2"), ("array", "safe fast")];
    assert_eq!(sections, expected.map(|(layer, over)| (layer, over.to_owned())));
    for (way, latency) in &host.latency_us {
        let (mean, layers) = (latency.mean.unwrap(), &host.layers_us[way]);
        assert!((layers.values().sum::<f64>() - mean).abs() < 1e-6, "{way}: {layers:?} of {mean}");
    }
    // What one of its halves takes is no command of the whole.
    let below = Offers { compare: true, copy: true, deadlines: true, ..Offers::default() };
    assert_eq!(
        below.of_both(Offers { compare: true, ..Offers::default() }),
        Offers { compare: true, ..Offers::default() }
    );
}

fn run(words: &[&str]) -> ChainFinished {
    let layers = chain(words).resolve().expect("valid layers");
    let mut profile = Profile::load("default").unwrap();
    profile.set_all(["capacity=128MiB", "geometry.channels=2", "geometry.dies_per_channel=2"]).unwrap();
    let resolved = profile.resolve().unwrap();
    let drive = |number: usize| RigDrive {
        name: format!("drive-{number}"),
        profile: resolved.clone(),
        store: StoreKind::None,
        precondition: Precondition::Steady,
        seed: Seed::new(9).nth(number as u64),
    };
    let job = JobSpec { rw: "randrw".parse().unwrap(), bs: "4k".parse().unwrap(), iodepth: 8, ..JobSpec::default() };
    let workload = Workload { limit: Limit::Requests(2_000), warmup: 100, ..Workload::of(job) };
    let (drives, wanted) = ((0..drives_below(&layers)).map(drive).collect(), Wanted { trace: false, details: true });
    let simulation = Simulation { layers, wanted, check: true, ..Simulation::of(drives, workload, 5) };
    simulation.run(Rc::new(())).unwrap_or_else(|error| panic!("{error}")).into_chain().unwrap()
}

#[test]
fn times_of_all_layers_sum_and_each_has_its_section() {
    let words = ["block,depth=4,scheduler=ssd", "low=raid1:2", "cache,memory=4MiB"];
    let finished = run(&words);
    let host = &finished.host;
    for (way, latency) in &host.latency_us {
        let (mean, layers) = (latency.mean.unwrap(), &host.layers_us[way]);
        assert!((layers.values().sum::<f64>() - mean).abs() < 1e-6, "{way}: {layers:?} of {mean}");
        assert!(layers[DRIVE] > 0.0, "{way}: {layers:?}");
    }
    assert!(host.layers_us["read"]["cache"] > 0.0 && host.layers_us["write"]["block"] > 0.0, "{:?}", host.layers_us);
    let sections: Vec<(&str, String)> = host.chain.iter().map(|one| (&*one.layer, one.over.join(" "))).collect();
    let expected = [("block/0", "drive-0"), ("block/1", "drive-1"), ("low", "block/0 block/1"), ("cache", "low")];
    assert_eq!(sections, expected.map(|(layer, over)| (layer, over.to_owned())));
    let json = serde_json::to_value(&host.chain).unwrap();
    assert!(json[0]["block"]["reads"].as_u64() > Some(0) && json[2]["array"]["array"] == "raid1:2", "{json}");
    assert!(json[3]["cache"]["hits"].as_u64() > Some(0), "{json}");
    assert_eq!(host.array.as_ref().unwrap().array, "raid1:2");
    assert_eq!(finished.called("default"), "cache over raid1:2 over block of default");
    let again = run(&words);
    assert_eq!(serde_json::to_value(host).unwrap(), serde_json::to_value(&again.host).unwrap());
}

#[test]
fn a_drive_of_several_namespaces_is_refused() {
    let drive = Profile::load("two-ftls").unwrap().resolve().unwrap();
    for words in [&["block"][..], &["raid0:2"]] {
        let refused = check_over(&chain(words).resolve().unwrap(), &drive).unwrap_err();
        assert!(refused.contains("two-ftls has 2 namespaces, and layers lie over one"), "{refused}");
    }
}

#[test]
fn what_cannot_lie_over_what_is_below_it_is_refused() {
    let opened = |words: &[&str], drives: usize| {
        let (executor, profile) = (Executor::new(), profile());
        let sim = executor.sim();
        let node = |number: usize| -> (String, Rc<dyn Node>) {
            let ssd = Rc::new(Ssd::new(&sim, &profile, StoreKind::None, Seed::new(3)).expect("memory"));
            (format!("drive-{number}"), Rc::new(ModelNode::new(&sim, &ssd, &profile)))
        };
        open(&sim, &chain(words).resolve().unwrap(), (0..drives).map(node).collect()).map(|_| ()).unwrap_err()
    };
    assert_eq!(opened(&["raid0:2"], 3), "array: 3 drives or layers lie below it, and it takes 2 at a time");
    let error = opened(&["raid1:2", "block,predictor=ssd"], 2);
    assert!(
        error.contains("block: block.predictor: ssd knows the flash") && error.contains("none and told"),
        "{error}"
    );
    let error = opened(&["block", "block,predictor=ssd"], 1);
    assert!(error.starts_with("block-2: block.predictor"), "{error}");
}
