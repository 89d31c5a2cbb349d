//! Both forms under all loads: the counters of store and drive agree, the same seed gives the same figures, and
//! invalid input is rejected.

use nandscape_apps_lsm_engine::{BlockConfig, Config, LevelConfig, OpenError};
use nandscape_apps_lsm_run::{Benchmark, Experiment, Form, Load, RunError, Spec, experiment, run};
use nandscape_apps_store::Costs;
use nandscape_device_ssd::{Profile, Resolved};
use nandscape_lab_workload::Mix;

const FLASH: [&str; 4] =
    ["geometry.channels=2", "geometry.dies_per_channel=1", "geometry.planes_per_die=2", "geometry.pages_per_block=16"];
const REST: [&str; 5] =
    ["capacity=24MiB", "lba_size=4KiB", "buffer.mode=capacitor", "buffer.size=1MiB", "controller.max_transfer=512KiB"];

fn drive(kind: &str) -> Resolved {
    let mut profile = Profile::load("default").unwrap();
    profile.set_all(FLASH.iter().chain(&REST)).unwrap();
    profile.set_all([&format!("ftl.kind={kind}"), "ftl.zone.mapping=dies"]).unwrap();
    profile.resolve().unwrap()
}

fn spec(kind: &str, form: Form, benchmark: Benchmark) -> Spec {
    let levels = LevelConfig { trigger: 2, base: 512 << 10, ratio: 4, debt: 1 << 20 };
    let store = Config { memtable: 128 << 10, run: 256 << 10, levels, ..Config::default() };
    let load = Load { benchmark, keys: 20_000, operations: 6_000, warm_up: 10_000, clients: 2, ..Load::default() };
    Spec { drive: drive(kind), below: Default::default(), form, store, cores: 2, costs: Costs::ASSUMED, load, seed: 3 }
}

fn forms() -> [(&'static str, Form); 2] {
    let block = BlockConfig { chunk: 128 << 10, run: 1 << 20, ..BlockConfig::default() };
    [("page", Form::Block(block)), ("lsm", Form::Runs)]
}

#[test]
fn what_store_and_drive_count_agrees_and_the_same_seed_gives_the_same() {
    for (kind, form) in forms() {
        let of_ycsb = Mix::CORE.map(|(_, shares, choice)| Benchmark::Ycsb(shares, choice));
        for benchmark in Benchmark::ALL.into_iter().chain(of_ycsb) {
            let spec = spec(kind, form, benchmark);
            let outcome = run(&spec).unwrap_or_else(|error| panic!("{kind} {}: {error}", benchmark.name()));
            assert_eq!(
                Some(outcome.store_bytes()),
                outcome.drive.map(|drive| drive.host_bytes),
                "{kind} {}",
                benchmark.name()
            );
            if let (Some(store), Some(drive), Some(total)) =
                (outcome.application_waf(), outcome.drive_waf(), outcome.total_waf())
            {
                assert!((store * drive - total).abs() < 1e-9 * total && store > 1.0, "{store} x {drive} is {total}");
            }
            assert!(outcome.rate() > 0.0 && outcome.utilisation() > 0.1);
            let again = run(&spec).unwrap();
            assert_eq!((outcome.took, outcome.after, outcome.drive), (again.took, again.after, again.drive));
        }
    }
}

#[test]
fn an_experiment_has_a_row_for_each_form_and_number_of_keys_with_the_range_of_its_seeds() {
    let forms = forms().map(|(kind, form)| spec(kind, form, Benchmark::Overwrite)).to_vec();
    let of = |seeds| Experiment { forms: forms.clone(), keys: vec![10_000, 20_000], warm_up: Some(1), seeds };
    let mut begun = Vec::new();
    let rows = experiment(&of(2), &mut |number| begun.push(number)).unwrap();
    assert_eq!(begun, (0..8).collect::<Vec<_>>());
    let names: Vec<_> = rows.iter().map(|row| (row.keys, row.form.name())).collect();
    assert_eq!(names, [(10_000, "generic"), (10_000, "lsm"), (20_000, "generic"), (20_000, "lsm")]);
    for row in &rows {
        for spread in [row.full, row.rate, row.store, row.drive, row.data, row.moved, row.total] {
            let spread = spread.unwrap();
            assert!(spread.low <= spread.mean && spread.mean <= spread.high, "{row:?}");
        }
        let (drive, data, moved) = (row.drive.unwrap(), row.data.unwrap(), row.moved.unwrap());
        // The rest is padding of pages.
        assert!(drive.mean >= data.mean + moved.mean - 1e-9 && data.high <= 1.0 && data.low > 0.5, "{row:?}");
    }
    // The first seed is that of a single run.
    let (warm_up, keys) = (10_000, 10_000);
    let alone = run(&Spec { load: Load { warm_up, keys, ..forms[0].load }, ..forms[0].clone() }).unwrap();
    let one = experiment(&of(1), &mut |_| ()).unwrap().remove(0);
    assert_eq!(one.total.map(|total| (total.low, total.high)), alone.total_waf().map(|waf| (waf, waf)));
}

#[test]
fn runs_that_die_as_a_whole_are_not_moved() {
    let outcome = run(&spec("lsm", Form::Runs, Benchmark::Overwrite)).unwrap();
    assert!(outcome.after.merges > outcome.before.merges);
    let drive = outcome.drive.expect("a drive of this process");
    assert_eq!((drive.moved_bytes, drive.gc_blocks), (0, 0));
}

#[test]
fn the_work_of_the_controllers_processors_is_told() {
    for (kind, form) in forms() {
        let without = run(&spec(kind, form, Benchmark::ReadRandom)).unwrap();
        assert_eq!((without.device_cpu_us(), without.device_busy()), (None, None));
        let with = |count: u32| {
            let mut profile = Profile::load("default").unwrap();
            profile.set_all(FLASH.iter().chain(&REST)).unwrap();
            profile.set_all([&format!("ftl.kind={kind}"), "ftl.zone.mapping=dies"]).unwrap();
            profile.set(&format!("controller.processors.count={count}")).unwrap();
            let right = spec(kind, form, Benchmark::ReadRandom);
            let outcome = run(&Spec { drive: profile.resolve().unwrap(), ..right }).unwrap();
            (outcome.device_cpu_us().unwrap(), outcome.device_busy().unwrap(), outcome.rate())
        };
        let ((one, busy, slow), (eight, less, fast)) = (with(1), with(8));
        // Gets that read flash cost a command, a flash operation, and 4 KiB twice.
        assert!(one > 22.2 && (one - eight).abs() < 0.2 * one, "{kind}: {one} and {eight} us");
        assert!(busy <= 1.0 && less < busy / 2.0 && fast > slow, "{kind}: {busy} and {less} busy, {slow} and {fast}");
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let of = |spec: &Spec| run(spec).err().expect("it cannot be").to_string();
    let right = spec("page", forms()[0].1, Benchmark::Overwrite);
    let Err(RunError::Open(error)) = run(&Spec { form: Form::Runs, ..right.clone() }) else { panic!("a page FTL") };
    assert_eq!(error, OpenError::NoRuns);
    let load = Load { key_bytes: 4, ..right.load };
    assert!(of(&Spec { load, ..right.clone() }).contains("8 bytes at the least"));
    let load = Load { clients: 0, ..right.load };
    assert!(of(&Spec { load, ..right.clone() }).contains("at the least"));
    let load = Load { keys: 200_000, ..right.load };
    assert!(of(&Spec { load, ..right }).contains("full"));
}
