//! Every experiment run for a moment. The tests check that it measures and judges, and that the forms of its outcome
//! are complete; they check verdicts only of figures that do not depend on the moment.

use std::collections::BTreeMap;
use std::fs;

use nandscape_lab_ledger::experiment::{Clock, Effort, Experiment, Run};
use nandscape_lab_ledger::figures::Figures;
use nandscape_lab_ledger::results::{Inputs, Stored};
use nandscape_lab_ledger::verdict::{Criterion, Verdict};
use nandscape_lab_ledger::{Outcome, Session, outcome, show};
use nandscape_papers_claims::LEDGER;
use serde_json::Value;

use crate::support::{Ear, TINY, TOY, experiment, folder, session};

/// How the names of each paper's experiments begin. A test for each paper, so that one can run alone.
macro_rules! papers {
    ($($test:ident: $($begins:literal),+;)+) => {
        const BEGINS: &[&[&str]] = &[$(&[$($begins),+]),+];

        $(#[test]
        fn $test() {
            measure_and_judge(&[$($begins),+]);
        })+
    };
}

papers! {
    experiments_of_femu_measure_and_judge: "femu-";
    experiments_of_mittos_measure_and_judge: "mitt-";
    experiments_of_teafa_measure_and_judge: "teafa-";
    experiments_of_ttflash_measure_and_judge: "ttflash-", "gc-tail-";
    experiments_of_leapio_measure_and_judge: "leapio-";
    experiments_of_hiops_measure_and_judge: "hiops-";
    experiments_of_the_engine_measure_and_judge: "kv-";
    experiments_of_precompletion_measure_and_judge: "pre-";
    experiments_of_ox_measure_and_judge: "ox-", "eleos-";
    experiments_of_fox_measure_and_judge: "oc-";
}

#[test]
fn every_experiment_is_of_one_paper() {
    for experiment in LEDGER.experiments {
        let of = |paper: &&&[&str]| paper.iter().any(|begins| experiment.claim.id.starts_with(begins));
        assert_eq!(BEGINS.iter().filter(of).count(), 1, "{}", experiment.claim.id);
    }
}

fn measure_and_judge(begins: &[&str]) {
    let of_paper = |experiment: &&&Experiment| begins.iter().any(|begin| experiment.claim.id.starts_with(begin));
    let experiments: Vec<&'static Experiment> = LEDGER.experiments.iter().filter(of_paper).copied().collect();
    let folder = folder();
    let (session, mut ear) = (session(folder.path()), Ear::default());
    if std::env::var_os("NANDSCAPE_TEST_WHOLE_GRID").is_none() {
        let (session, experiments) = (&session, &experiments);
        std::thread::scope(|scope| {
            for half in [0, 1] {
                scope.spawn(move || keep_one_run_for_all(session, experiments, half));
            }
        });
    }
    let outcomes = session.run(&experiments, &mut ear).unwrap().expect("nothing stopped it");
    assert_eq!((outcomes.len(), ear.decided.len()), (experiments.len(), experiments.len()));
    let decided = ear.decided.iter().map(|line| experiment(line.split(' ').next().unwrap_or_default()));
    let clocks: Vec<bool> = decided.filter(|of| of.lacks().is_none()).map(|of| of.clock == Clock::Wall).collect();
    assert!(clocks.is_sorted(), "real time runs last: {:?}", ear.decided);
    for outcome in &outcomes {
        let claim = &outcome.experiment.claim;
        if let Some(lack) = outcome.experiment.lacks() {
            assert_eq!((outcome.verdict, &outcome.reason), (Verdict::NotMeasured, &lack), "{}", claim.id);
            continue;
        }
        let is_judged = ![Verdict::NotMeasured, Verdict::Failed].contains(&outcome.verdict);
        assert!(is_judged, "{}: {}", claim.id, outcome.reason);
        assert_eq!(outcome.verdict == Verdict::Reproduced, outcome.reason.is_empty(), "{}", claim.id);
        if ["teafa-2d-window", "teafa-ocssd"].contains(&claim.id) {
            assert!(!outcome.judgement.reason.is_empty(), "{}: it tells why it may be missed", claim.id);
        }
        forms_are_whole(outcome);
    }
    // What the folder holds afterwards is the same.
    for outcome in &outcomes {
        let held = Outcome::held(outcome.experiment, &session.folder);
        assert_eq!((held.verdict, held.judgement), (outcome.verdict, outcome.judgement.clone()));
    }
    let page = show::report(&LEDGER, &outcomes);
    assert!(experiments.iter().all(|experiment| page.contains(experiment.claim.id)), "{page}");
    assert!(show::page(&outcomes, &page).contains("<table class=\"data\">"));
}

/// Runs of a point differ in their seed alone. A short run measures one of them, in turn the first, the second and the third, and keeps
/// its figures for the others, too. `NANDSCAPE_TEST_WHOLE_GRID=1` measures all. This is one of two halves of the points, which run
/// concurrently.
fn keep_one_run_for_all(session: &Session, experiments: &[&'static Experiment], half: usize) {
    let mut number = 0;
    for experiment in experiments.iter().filter(|one| one.clock == Clock::Virtual && one.runs > 1) {
        for places in runs_of_points(experiment).into_values().filter(|places| places.len() > 1) {
            number += 1;
            if number % 2 == half {
                let figures = measured(session, experiment, places[number / 2 % places.len()]);
                let points = (experiment.points)();
                for place in places {
                    let inputs = Inputs::new(experiment, &points[place], session.seed, session.effort);
                    let file = session.folder.file(experiment, place, &points[place], 0);
                    fs::create_dir_all(file.parent().expect("a folder")).unwrap();
                    fs::write(&file, Stored::new(inputs, None, figures.clone()).to_json()).unwrap();
                }
            }
        }
    }
}

/// The places of each point's runs, by what their names and parameters have in common.
fn runs_of_points(experiment: &Experiment) -> BTreeMap<String, Vec<usize>> {
    let mut places: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (place, point) in (experiment.points)().iter().enumerate() {
        let name = match point.name.rsplit_once("run ") {
            Some((before, number)) if number.parse::<u32>().is_ok() => before,
            _ => &point.name,
        };
        places.entry(format!("{name}{:?}", point.parameters)).or_default().push(place);
    }
    places
}

fn measured(session: &Session, experiment: &Experiment, place: usize) -> Figures {
    let point = &(experiment.points)()[place];
    let seed = experiment.seed_of(session.seed, place, point.shared.as_deref());
    let run = Run { seed, effort: session.effort, progress: &|_| (), varied: None };
    (point.measure)(&run).unwrap_or_else(|error| panic!("{}, {}: {error:#}", experiment.claim.id, point.name))
}

fn forms_are_whole(outcome: &Outcome) {
    let claim = &outcome.experiment.claim;
    let label = claim.lead();
    let text = show::outcome(outcome);
    for part in [claim.says, &format!("{label}: "), "verdict: ", "note: a short run"] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    let json: Value = serde_json::from_str(&outcome::to_json(std::slice::from_ref(outcome))).unwrap();
    assert_eq!(json["schema"], 1);
    let json = &json["claims"][0];
    assert_eq!((&json["id"], &json[label]), (&claim.id.into(), &claim.says.into()));
    assert_eq!(json["criteria"].as_array().map(Vec::len), Some(outcome.judgement.criteria.len()));
    assert_eq!(json["points"].as_array().map(Vec::len), Some((outcome.experiment.points)().len()));
    let wall = outcome.experiment.clock == Clock::Wall;
    assert_eq!((json.get("machine").is_some(), json["machine"]["cores"].as_u64() > Some(1)), (wall, wall));
}

#[test]
fn what_was_described_without_a_result_is_never_called_published() {
    let folder = folder();
    let outcomes = session(folder.path()).run(&[&TOY], &mut ()).unwrap().unwrap();
    let forms = [
        show::outcome(&outcomes[0]),
        show::entry(&LEDGER, &TOY),
        show::report(&LEDGER, &outcomes),
        outcome::to_json(&outcomes),
        show::list(&LEDGER, &outcomes),
    ];
    for form in forms {
        assert!(!form.contains("published") && !form.contains("reproduced"), "{form}");
    }
    assert!(show::outcome(&outcomes[0]).contains("described: random numbers are below one"));
    assert_eq!(outcomes[0].verdict(), "holds");
}

/// Arithmetic does not depend on effort.
#[test]
fn the_registers_are_reproduced() {
    let folder = folder();
    let outcomes = session(folder.path()).run(&[experiment("femu-registers")], &mut ()).unwrap().unwrap();
    assert_eq!((outcomes[0].verdict, outcomes[0].reason.as_str()), (Verdict::Reproduced, ""));
    assert_eq!(outcomes[0].judgement.criteria.len(), 14);
}

/// Nor does ttFlash's arithmetic, except for the machine's time for a parity.
#[test]
fn the_arithmetic_of_ttflash_is_exact() {
    let experiment = experiment("ttflash-arithmetic");
    if experiment.lacks().is_some() {
        return;
    }
    let folder = folder();
    let outcomes = session(folder.path()).run(&[experiment], &mut ()).unwrap().unwrap();
    let (wall, exact): (Vec<_>, Vec<_>) =
        outcomes[0].judgement.criteria.iter().partition(|one| one.what.contains("wall clock"));
    assert_eq!((wall.len(), exact.len()), (1, 13));
    assert!(exact.iter().all(|one| one.holds), "{exact:?}");
}

/// A thousand reads a point are enough to be near the formulas; neighbouring means may not be in order with so few.
#[test]
fn the_grid_is_near_its_queueing_solution() {
    let folder = folder();
    let outcomes = session(folder.path()).run(&[experiment("femu-grid")], &mut ()).unwrap().unwrap();
    let criteria = &outcomes[0].judgement.criteria;
    let missed: Vec<&str> = criteria.iter().filter(|one| !one.holds).map(|one| one.what.as_str()).collect();
    assert!(criteria.len() == 8 && missed.iter().all(|what| what.contains("largest rise")), "{criteria:?}");
}

/// The order of the schemes at a tenth of the requests. On the drive with two channels, the tails of channel and controller
/// blocking then differ by less than the spread between seeds; everything else is decided, and nothing contradicts the order.
#[test]
fn the_collection_schemes_are_in_order() {
    let folder = folder();
    let session = Session { effort: Effort { requests_percent: 10, ..TINY }, ..session(folder.path()) };
    let outcomes = session.run(&[experiment("femu-gc-schemes")], &mut ()).unwrap().unwrap();
    let criteria = &outcomes[0].judgement.criteria;
    let may_miss = |one: &Criterion| !one.told_apart && one.what.starts_with("femu-ocssd: p9");
    assert!(criteria.len() == 8 && criteria.iter().all(|one| one.holds || may_miss(one)), "{criteria:?}");
}
