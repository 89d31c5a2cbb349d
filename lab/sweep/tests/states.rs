//! Points with a shared initial state: made once for several of them, or read from a file. Results are the same bytes as without.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use nandscape_lab_run::{Begin, Precondition, StateFile};
use nandscape_lab_sweep::{Axis, Event, Folder, Inputs, Plan, Runner, Session, State, Sweep, Threads, Value};

fn sweep(set: &[(&str, &str)]) -> Sweep {
    let mut sweep = Sweep::new("states");
    let common = [("rw", "randrw"), ("capacity", "64MiB"), ("io_count", "300")];
    for (key, value) in common.iter().chain(set) {
        sweep.set(key, Value::parse(value));
    }
    sweep.vary(Axis::of_key("iodepth", Value::list("1,4")));
    sweep
}

fn run(folder: &Path, plan: Plan, runner: &mut dyn Runner) -> Vec<State> {
    Session { folder: Folder::at(folder), fresh: false }.run(plan, runner, &mut ()).unwrap().states
}

/// Measures each point by itself.
struct OneByOne;

impl Runner for OneByOne {
    fn run(&mut self, tasks: Vec<Inputs>, heard: &mut dyn FnMut(Event) -> ControlFlow<()>) -> Result<(), String> {
        for (task, inputs) in tasks.iter().enumerate() {
            assert!(heard(Event::Done { task, result: Box::new(inputs.measure(|_| ())) }).is_continue());
        }
        Ok(())
    }
}

/// Runs on one thread, and counts the files of states when the first point is done.
struct Counting<'a>(Threads, &'a Path, Option<usize>);

impl Runner for Counting<'_> {
    fn run(&mut self, tasks: Vec<Inputs>, heard: &mut dyn FnMut(Event) -> ControlFlow<()>) -> Result<(), String> {
        let Counting(threads, folder, seen) = self;
        threads.run(tasks, &mut |event| {
            if matches!(event, Event::Done { .. }) {
                seen.get_or_insert_with(|| fs::read_dir(folder.join("states")).map_or(0, Iterator::count));
            }
            heard(event)
        })
    }

    fn share_states_in(&mut self, folder: &Path) {
        self.0.share_states_in(folder);
    }
}

#[test]
fn a_state_is_made_once_for_the_points_that_begin_in_it() {
    let load = [("precondition", "load"), ("precondition_workload", "mixed")];
    for set in [&[("precondition", "steady")][..], &load] {
        let mut sweep = sweep(set);
        // A load takes its time.
        sweep.seeds = if set.len() == 1 { vec![1, 2] } else { vec![1] };
        let plan = sweep.plan().unwrap();
        let folders = [(); 3].map(|()| tempfile::tempdir().unwrap());
        let [alone, shared, parallel] = folders.each_ref().map(tempfile::TempDir::path);
        let expected = run(alone, plan.clone(), &mut OneByOne);
        let mut counting = Counting(Threads::new(1), shared, None);
        assert_eq!(run(shared, plan.clone(), &mut counting), expected);
        assert!(counting.2.is_some_and(|files| (1..=2).contains(&files)), "{set:?}: {:?}", counting.2);
        assert_eq!(run(parallel, plan, &mut Threads::new(3)), expected);
        assert!(!shared.join("states").exists() && !parallel.join("states").exists());
        assert!(expected.iter().all(|state| state.report().is_some()), "{expected:?}");
    }
}

/// A separate load makes another state of each point.
#[test]
fn the_load_is_the_workload_of_the_point_where_none_is_given() {
    let folder = tempfile::tempdir().unwrap();
    let states = run(folder.path(), sweep(&[("precondition", "load")]).plan().unwrap(), &mut Threads::new(2));
    let settled = |state: &State| state.report().unwrap()["settled"]["workload"].clone();
    assert_eq!(states.iter().map(settled).collect::<Vec<_>>(), ["randrw"; 2]);
}

#[test]
fn points_do_without_states_that_cannot_be_saved() {
    let set = [("precondition", "steady")];
    let folder = tempfile::tempdir().unwrap();
    let expected = run(folder.path(), sweep(&set).plan().unwrap(), &mut OneByOne);
    // A file where the folder of states would be.
    let blocked = tempfile::tempdir().unwrap();
    fs::write(blocked.path().join("states"), "in the way").unwrap();
    assert_eq!(run(blocked.path(), sweep(&set).plan().unwrap(), &mut Threads::new(2)), expected);
}

/// Saves the state that the first point of a sweep begins in.
fn save(plan: &Plan, path: &Path) {
    let inputs = plan.points[0].inputs.as_ref().unwrap();
    let mut profile = nandscape_device_ssd::Profile::load("default").unwrap();
    profile.set("capacity=64MiB").unwrap();
    let workload = nandscape_lab_workload::Workload::of(nandscape_lab_workload::JobSpec::default());
    let simulation =
        nandscape_lab_run::Simulation::on(profile.resolve().unwrap(), Precondition::Steady, workload, inputs.seed);
    let begin = Begin { save: Some(path.to_owned()), ..Begin::default() };
    begin.make(&simulation, &(std::rc::Rc::new(()) as _)).unwrap();
}

#[test]
fn points_begin_in_the_state_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("worn.state");
    let path = file.to_str().unwrap();
    let plain = sweep(&[("precondition", "steady")]);
    save(&plain.clone().plan().unwrap(), &file);
    let expected = run(&folder.path().join("plain"), plain.clone().plan().unwrap(), &mut Threads::new(2));

    // With and without its profile. The key takes the place of the precondition.
    let with = |change: &dyn Fn(&mut Sweep)| {
        let mut sweep = plain.clone();
        sweep.set("from_state", Value::parse(path));
        change(&mut sweep);
        sweep
    };
    let forked = run(&folder.path().join("forked"), with(&|_| ()).plan().unwrap(), &mut Threads::new(2));
    let reports = |states: &[State]| states.iter().map(|state| state.report().cloned()).collect::<Vec<_>>();
    assert_eq!(reports(&expected), reports(&forked));
    let of_file = with(&|sweep| sweep.set.retain(|(key, _)| key != "capacity"));
    let inputs = of_file.plan().unwrap().points.remove(0).inputs.unwrap();
    assert_eq!(inputs.drive.keys, with(&|_| ()).plan().unwrap().points[0].inputs.as_ref().unwrap().drive.keys);
    assert_eq!(inputs.precondition, Precondition::Steady);

    let policies = with(&|sweep| sweep.vary(Axis::of_key("ftl.gc.victim", Value::list("greedy,cost_benefit"))));
    assert_eq!(policies.plan().unwrap().points.len(), 4);

    let refused = |change: &dyn Fn(&mut Sweep)| with(change).plan().unwrap_err().to_string();
    let other = refused(&|sweep| sweep.set("capacity", Value::parse("128MiB")));
    assert!(other.contains("of another drive: capacity"), "{other}");
    let missing = refused(&|sweep| sweep.set("from_state", Value::parse("nothing.state")));
    assert!(missing.contains("from_state") && missing.contains("nothing.state"), "{missing}");
    let load = refused(&|sweep| sweep.set("precondition_workload", Value::parse("mixed")));
    assert!(load.contains("precondition = \"load\""), "{load}");

    // A file that has changed since is not begun in.
    let digest = StateFile::open(&file).unwrap().digest();
    let mut another = plain.clone();
    another.seeds = vec![2];
    save(&another.plan().unwrap(), &file);
    assert_ne!(digest, StateFile::open(&file).unwrap().digest());
    let problem = inputs.measure(|_| ()).unwrap_err();
    assert!(problem.contains("its content has changed"), "{problem}");
}
