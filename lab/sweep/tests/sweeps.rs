//! Runs of sweeps: kept points are not measured again, neither threads nor interruptions change a byte, and the error of one
//! point does not end the others.

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::rc::Rc;

use nandscape_device_ssd::Profile;
use nandscape_lab_run::{Precondition, Simulation};
use nandscape_lab_sweep::{
    Axis, Begun, Event, Folder, Inputs, Outcome, Plan, Runner, Session, State, Stored, Sweep, Threads, Value, Watch,
    check_name, figure, names,
};
use nandscape_lab_workload::{JobSpec, Limit, Workload};

fn sweep() -> Sweep {
    let mut sweep = Sweep::new("toy");
    let set = [("rw", "randread"), ("capacity", "64MiB"), ("io_count", "500")];
    sweep.set = set.map(|(key, value)| (key.to_owned(), Value::parse(value))).to_vec();
    sweep.vary(Axis::of_key("iodepth", Value::list("8,1,4")));
    sweep.seeds = vec![1, 2];
    sweep
}

fn plan() -> Plan {
    sweep().plan().unwrap()
}

fn session(folder: &Path) -> Session {
    Session { folder: Folder::at(folder), fresh: false }
}

/// The files of the points, by name.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder.join("points")).unwrap().map(Result::unwrap);
    entries.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())).collect()
}

#[derive(Default)]
struct Ear {
    notes: Vec<String>,
    begun: Option<Begun>,
    measured: Vec<(String, Option<String>)>,
    share: f64,
}

impl Ear {
    /// The measurements to be made, and all points.
    fn begun(&self) -> Option<(usize, usize)> {
        self.begun.map(|begun| (begun.left, begun.of))
    }
}

impl Watch for Ear {
    fn note(&mut self, text: &str) {
        self.notes.push(text.to_owned());
    }

    fn begun(&mut self, begun: Begun) {
        self.begun = Some(begun);
    }

    fn share(&mut self, done: f64) {
        assert!(done >= self.share - 1e-9, "{done} after {}", self.share);
        self.share = done;
    }

    fn measured(&mut self, label: &str, problem: Option<&str>) {
        self.measured.push((label.to_owned(), problem.map(str::to_owned)));
    }
}

fn run(folder: &Path, plan: Plan, runner: &mut dyn Runner) -> (Outcome, Ear) {
    let mut ear = Ear::default();
    let outcome = session(folder).run(plan, runner, &mut ear).unwrap();
    (outcome, ear)
}

/// Stops after a number of points, as a killed process does.
struct Killed(Threads, usize);

impl Runner for Killed {
    fn run(&mut self, tasks: Vec<Inputs>, heard: &mut dyn FnMut(Event) -> ControlFlow<()>) -> Result<(), String> {
        let Killed(threads, left) = self;
        threads.run(tasks, &mut |event| {
            if *left == 0 {
                return heard(Event::Stop);
            }
            *left -= usize::from(matches!(event, Event::Done { .. }));
            heard(event)
        })
    }
}

/// Sends points away as text and gets text back, in reverse order, as a cluster may.
struct Elsewhere;

impl Runner for Elsewhere {
    fn run(&mut self, tasks: Vec<Inputs>, heard: &mut dyn FnMut(Event) -> ControlFlow<()>) -> Result<(), String> {
        for (task, inputs) in tasks.iter().enumerate().rev() {
            let sent = serde_json::to_string(inputs).unwrap();
            let received: Inputs = serde_json::from_str(&sent).unwrap();
            let text = received.measure(|_| ())?.to_json();
            let result = Box::new(Stored::parse(text.as_bytes(), inputs));
            if heard(Event::Done { task, result }).is_break() {
                break;
            }
        }
        Ok(())
    }
}

#[test]
fn neither_threads_nor_places_nor_interruptions_change_a_byte() {
    let folders = [(); 4].map(|()| tempfile::tempdir().unwrap());
    let [one, two, elsewhere, killed] = folders.each_ref().map(tempfile::TempDir::path);
    let (outcome, ear) = run(one, plan(), &mut Threads::new(1));
    assert_eq!((ear.begun(), ear.measured.len(), ear.share), (Some((6, 6)), 6, 6.0));
    assert!(outcome.missing() == 0 && outcome.failed().next().is_none());
    assert_eq!(files(one).len(), 6);
    let (parallel, _) = run(two, plan(), &mut Threads::new(3));
    run(elsewhere, plan(), &mut Elsewhere);
    assert!(files(one) == files(two) && files(one) == files(elsewhere));
    assert_eq!(outcome.states, parallel.states);

    let (broken, _) = run(killed, plan(), &mut Killed(Threads::new(2), 2));
    assert_eq!((broken.missing(), files(killed).len()), (4, 2));
    fs::write(killed.join("points/.unfinished-abc"), "{").unwrap();
    let (whole, ear) = run(killed, plan(), &mut Threads::new(2));
    assert_eq!((ear.begun(), whole.missing()), (Some((4, 6)), 0));
    assert_eq!(files(one), files(killed));
    let (_, ear) = run(killed, plan(), &mut Threads::new(2));
    assert_eq!(ear.begun(), Some((0, 6)));
    let fresh = Session { fresh: true, ..session(killed) };
    fresh.run(plan(), &mut Threads::new(2), &mut ()).unwrap();
    assert_eq!(files(one), files(killed));
}

/// The report of a point is that of a simulation with the same words.
#[test]
fn a_point_is_a_simulation() {
    let folder = tempfile::tempdir().unwrap();
    let (outcome, _) = run(folder.path(), plan(), &mut Threads::new(2));
    let mut profile = Profile::load("default").unwrap();
    profile.set("capacity=64MiB").unwrap();
    let job = JobSpec { iodepth: 4, name: "job0".to_owned(), ..JobSpec::default() };
    let mut workload = Workload { limit: Limit::Requests(500), ..Workload::of(job) };
    workload.name = "randread".to_owned();
    let simulation =
        Simulation { check: true, ..Simulation::on(profile.resolve().unwrap(), Precondition::Full, workload, 2) };
    let mut report = serde_json::to_value(simulation.run(Rc::new(())).unwrap().into_drive().report).unwrap();
    report.as_object_mut().unwrap().remove("host");
    report["inputs"]["set"] = serde_json::json!(["capacity=\"64MiB\""]);
    assert_eq!(outcome.plan.sweep.label(&outcome.plan.points[3].choices), "iodepth 4");
    assert_eq!(outcome.states[3].report(), Some(&report));
    assert!(!report["notes"].as_array().unwrap().is_empty(), "notes on the small capacity are kept");
}

#[test]
fn the_error_of_a_point_is_told_in_its_row() {
    let folder = tempfile::tempdir().unwrap();
    let mut sweep = sweep();
    sweep.vary(Axis::of_key("geometry.channels", Value::list("2,1000")));
    sweep.vary(Axis::of_key("size", Value::list("1MiB,1TiB")));
    let (outcome, ear) = run(folder.path(), sweep.plan().unwrap(), &mut Threads::new(2));
    assert_eq!(ear.begun(), Some((12, 24)), "impossible drives are not tried");
    let named = |note: &&String| {
        note.contains("geometry.channels 1000") && note.ends_with("; this combination is not measured, the others are")
    };
    assert_eq!(ear.notes.iter().filter(named).count(), 5, "{:?}", ear.notes);
    let last = ear.notes.last().map(String::as_str).unwrap();
    assert!(last.ends_with("their drive is impossible: 1; sweep.csv has the problem of each"), "{last}");
    let begun = ear.begun.unwrap();
    assert_eq!((begun.kept, begun.impossible, begun.alike()), (0, 12, 0));
    let failed: Vec<(usize, &str)> = outcome.failed().collect();
    assert_eq!((failed.len(), outcome.missing()), (18, 0));
    assert!(failed.iter().any(|(_, why)| why.contains("geometry.channels")), "{failed:?}");
    assert!(failed.iter().any(|(_, why)| why.contains("size")), "{failed:?}");
    let done = outcome.states.iter().filter_map(State::report).filter_map(|report| figure(report, "requests"));
    assert_eq!(done.collect::<Vec<_>>(), [500.0; 6]);
}

#[test]
fn a_file_that_is_spoilt_is_measured_again() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), plan(), &mut Threads::new(2));
    let good = files(folder.path());
    let mut names = good.keys();
    let (first, second) = (names.next().unwrap(), names.next().unwrap());
    let path = folder.path().join("points").join(first);
    let text = String::from_utf8(good[first].clone()).unwrap();
    for (spoilt, said) in [
        (text[..text.len() / 2].to_owned(), "breaks off"),
        (text.replace("\"requests\": 500", "\"requests\": 501"), "was changed after it was written"),
        (text.replace("\"schema\": 1,\n  \"program", "\"schema\": 9,\n  \"program"), "has form 9"),
        (String::from_utf8(good[second].clone()).unwrap(), "is of another point"),
        ("not ours".to_owned(), "is not the file of a point"),
    ] {
        fs::write(&path, &spoilt).unwrap();
        let (outcome, ear) = run(folder.path(), plan(), &mut Threads::new(2));
        assert_eq!((ear.begun(), outcome.missing()), (Some((1, 6)), 0), "{said}");
        assert!(ear.notes.iter().any(|note| note.contains(said)), "{said} is not in {:?}", ear.notes);
        assert_eq!(files(folder.path()), good, "{said}");
    }
}

#[test]
fn equal_points_are_measured_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut sweep = sweep();
    sweep.axes = vec![Axis::of_key("precondition", Value::list("full"))];
    let same = |name: &str| nandscape_lab_sweep::Choice { value: Value::parse(name), set: Vec::new() };
    sweep.axes.push(Axis { name: "label".to_owned(), choices: vec![same("a"), same("b")] });
    let (outcome, ear) = run(folder.path(), sweep.plan().unwrap(), &mut Threads::new(2));
    assert_eq!((ear.begun(), outcome.missing()), (Some((2, 4)), 0));
    assert_eq!(outcome.states[0], outcome.states[2]);
}

#[test]
fn a_stop_ends_the_run_and_a_folder_serves_one_run_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let mut threads = Threads::new(1);
    threads.stopper().stop();
    let (outcome, _) = run(folder.path(), plan(), &mut threads);
    assert_eq!(outcome.missing(), 6);
    let _lock = session(folder.path()).folder.lock().unwrap();
    let refused = session(folder.path()).run(plan(), &mut Threads::new(1), &mut ()).unwrap_err().to_string();
    assert!(refused.contains("another run is using it"), "{refused}");
}

#[test]
fn every_figure_of_a_report_has_a_valid_name() {
    let plan = plan();
    let stored = plan.points[0].inputs.as_ref().unwrap().measure(|_| ()).unwrap();
    let names = names([&stored.report]);
    assert!(names.len() > 100, "{names:?}");
    names.iter().for_each(|name| assert_eq!(check_name(name), Ok(())));
}
