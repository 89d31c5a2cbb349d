//! Arrays, layers and sweeps, through the public interface alone.

use std::rc::Rc;

use nandscape::array::{Array, Config, Member};
use nandscape::drive::{Drive, HostMem, Issuer, QueueDrive, QueueId};
use nandscape::layer::{Chain, LayerSettings, Node, Role, Use};
use nandscape::nvme::{IoOpcode, Status, SubmissionEntry};
use nandscape::sim::{Executor, Seed, Sim};
use nandscape::ssd::{Profile, Ssd, StoreKind};
use nandscape::sweep::{Axis, Folder, Session, State, Sweep, Threads, Value, figure};

fn drive(sim: &Sim, number: u64) -> Rc<dyn Drive> {
    let mut profile = Profile::load("default").unwrap();
    profile.set("capacity=64MiB").unwrap();
    let ssd = Ssd::new(sim, &profile.resolve().unwrap(), StoreKind::Ram, Seed::new(number)).unwrap();
    QueueDrive::new(sim, ssd.controller(), QueueId(1), 32).unwrap()
}

#[test]
fn an_array_reads_what_it_wrote_without_one_of_its_drives() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let members = (0..3).map(|number| Member { io: drive(&sim, number), reads: None, admin: None }).collect();
    let array = Array::new(&sim, "raid5:3".parse().unwrap(), Config::default(), members).unwrap();
    let issuer = Issuer::new(&sim);
    let (data, back) = (HostMem::from_bytes(&[7; 32 << 10]), HostMem::zeroed(32 << 10));
    executor
        .block_on(async {
            let write = SubmissionEntry::blocks(IoOpcode::WRITE, 1, 0, 64);
            assert_eq!(issuer.execute(&*array, write, data.clone()).await.status, Status::SUCCESS);
            array.fail_member(1);
            let read = SubmissionEntry::blocks(IoOpcode::READ, 1, 0, 64);
            assert_eq!(issuer.execute(&*array, read, back.clone()).await.status, Status::SUCCESS);
        })
        .unwrap();
    assert_eq!((back.to_vec(), array.missing()), (data.to_vec(), vec![1]));
}

#[test]
fn a_chain_of_layers_has_names_and_settings() {
    let chain: Chain = "cache raid5:3 block".parse().unwrap();
    let layers = chain.resolve().unwrap();
    let settings = LayerSettings::of(&layers);
    assert_eq!(layers.len(), 3);
    assert!(settings.iter().flat_map(|layer| &layer.settings).count() > 5);
    // What hands out connections, and what for.
    let connect = |node: &dyn Node| node.connect(Use { role: Role::Any, entries: 32 }).is_ok();
    let _: &dyn Fn(&dyn Node) -> bool = &connect;
}

#[test]
fn a_sweep_measures_its_points_once() {
    let folder = tempfile::tempdir().unwrap();
    let run = || {
        let mut sweep = Sweep::new("depth");
        for (key, value) in [("rw", "randread"), ("capacity", "64MiB"), ("io_count", "200")] {
            sweep.set(key, Value::parse(value));
        }
        sweep.vary(Axis::of_key("iodepth", Value::list("1,4")));
        let session = Session { folder: Folder::at(folder.path()), fresh: false };
        session.run(sweep.plan().unwrap(), &mut Threads::new(1), &mut ()).unwrap().states
    };
    let states = run();
    let iops: Vec<f64> =
        states.iter().map(|state| figure(state.report().expect("measured"), "iops").expect("a figure")).collect();
    assert!(iops.len() == 2 && iops[1] > iops[0], "{iops:?}");
    assert!(run().iter().all(|state| matches!(state, State::Done(_))));
}
