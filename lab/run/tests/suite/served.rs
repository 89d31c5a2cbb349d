//! A layer behind controllers of a server takes the same times as in a simulation, and accounts for them alike: stages, waits by
//! cause, and layers.

use std::rc::Rc;

use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Resolved};
use nandscape_drive::{Drive, Stage};
use nandscape_host_array::Config;
use nandscape_lab_run::{
    ArraySpec, DriveSpec, LayersExport, MemberSpec, Precondition, Rig, RigDrive, Wanted, array_on, block_layer,
    offers_of_model,
};
use nandscape_lab_workload::{Direction, JobSpec, Limit, Outcome, Runner, Workload};
use nandscape_sim::{Executor, Seed, Sim};
use nandscape_transport_reactor::Export;

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

/// The load on a drive, in simulated time.
async fn outcome(sim: Sim, drive: Rc<dyn Drive>) -> Outcome {
    let workload = load();
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
    let simulated = rig.run(outcome(rig.sim().clone(), array)).unwrap();

    let mut executor = Executor::new();
    let spec = ArraySpec {
        name: "array".to_owned(),
        shape,
        config,
        members: (0..MEMBERS).map(|number| MemberSpec::Model(spec(number))).collect(),
        creates: false,
        is_degraded: false,
        overwrites: false,
    };
    let export = spec.build(&mut executor, SEED, (0..MEMBERS).map(|_| None).collect(), &()).unwrap();
    let served = executor.block_on(outcome(executor.sim(), export.connect().unwrap())).unwrap();
    check(&served, &simulated, "array");
}

#[test]
fn a_served_block_layer_accounts_for_time_as_a_simulated_one() {
    // Where commands wait for others in the layer, their order depends on which of two that come at one instant is first.
    let config = nandscape_host_block::Config::default();
    let mut rig = rig(1);
    let ssd = rig.ssds().next().unwrap().clone();
    let layer = block_layer(rig.sim(), &ssd, resolved().priority(), &config).unwrap();
    let top = layer.over(rig.connect(0, 1_024).unwrap());
    let simulated = rig.run(outcome(rig.sim().clone(), top)).unwrap();

    let mut executor = Executor::new();
    let model = Rc::new(spec(0).build(&executor.sim(), SEED, &()).unwrap());
    let (chain, offers) = ("block".parse().unwrap(), offers_of_model(&model.info()));
    let export =
        LayersExport::over((&executor.sim(), SEED), "drive-0", (model.clone(), offers), Some(model), &chain).unwrap();
    let served = executor.block_on(outcome(executor.sim(), export.connect().unwrap())).unwrap();
    check(&served, &simulated, "block");
}
