//! Complete results are kept. Torn and foreign results, and results of other inputs, are measured again with a message. Neither
//! threads nor interruptions change a byte.

use std::fs;
use std::path::PathBuf;

use nandscape_lab_ledger::experiment::Effort;
use nandscape_lab_ledger::results::{Found, Inputs, Stored, this_program};
use nandscape_lab_ledger::verdict::Verdict;
use nandscape_lab_ledger::{Outcome, Session};

use crate::support::{Ear, SEEDED, TINY, TOY, TROUBLE, experiment, files, folder, session};

#[test]
fn threads_change_nothing() {
    let (one, four) = (folder(), folder());
    let run = |folder: &tempfile::TempDir, jobs| {
        let asked = [&TOY, experiment("ttflash-wear"), experiment("hiops-handler")];
        let session = Session { jobs, ..session(folder.path()) };
        session.run(&asked, &mut ()).unwrap().expect("nobody broke it off")
    };
    let (serial, parallel) = (run(&one, 1), run(&four, 4));
    assert_eq!(files(one.path()), files(four.path()));
    assert_eq!(files(one.path()).len(), 36, "12, 8 and 16 points");
    for (serial, parallel) in serial.iter().zip(&parallel) {
        assert_eq!(serial.to_json(), parallel.to_json());
    }
}

#[test]
fn a_run_that_was_broken_off_goes_on_to_the_same_bytes() {
    let (whole, broken) = (folder(), folder());
    session(whole.path()).run(&[&TOY], &mut ()).unwrap();
    let mut ear = Ear { stop_after: Some(7), ..Ear::default() };
    assert!(session(broken.path()).run(&[&TOY], &mut ear).unwrap().is_none());
    assert_eq!((ear.points, ear.measured.len(), ear.decided.len()), (12, 7, 0));
    let held = Outcome::held(&TOY, &session(broken.path()).folder);
    assert!(held.verdict == Verdict::NotMeasured && held.reason.contains("7 of 12 points"), "{}", held.reason);

    // A killed process leaves unfinished files.
    let unfinished = broken.path().join("toy").join(".unfinished-abc");
    fs::write(&unfinished, "{\"schema\"").unwrap();
    let mut ear = Ear::default();
    let outcomes = session(broken.path()).run(&[&TOY], &mut ear).unwrap().unwrap();
    assert_eq!((ear.points, ear.measured.len(), outcomes.len()), (5, 5, 1));
    assert!(ear.notes.iter().any(|note| note.contains("7 of 12 points exist already")), "{:?}", ear.notes);
    assert!(!unfinished.exists());
    assert_eq!(files(whole.path()), files(broken.path()));

    let mut ear = Ear::default();
    session(broken.path()).run(&[&TOY], &mut ear).unwrap();
    assert_eq!((ear.points, ear.decided.len()), (0, 1), "all is there, and judged again");
    let mut ear = Ear::default();
    let fresh = Session { fresh: true, ..session(broken.path()) };
    fresh.run(&[&TOY], &mut ear).unwrap();
    assert_eq!(ear.measured.len(), 12, "{:?}", ear.notes);
    assert_eq!(files(whole.path()), files(broken.path()));
}

/// The files of a small experiment, each spoilt in another way, and the message about each.
#[test]
fn torn_changed_and_foreign_files_are_measured_again() {
    let folder = folder();
    let registers = experiment("femu-registers");
    let run = || {
        let mut ear = Ear::default();
        session(folder.path()).run(&[registers], &mut ear).unwrap();
        ear
    };
    run();
    let good = files(folder.path());
    let paths: Vec<PathBuf> = good.keys().map(|name| folder.path().join(name)).collect();
    let text = String::from_utf8(good.values().next().unwrap().clone()).unwrap();
    let spoil: [(String, &str); 6] = [
        (text[..text.len() / 2].to_owned(), "breaks off"),
        (String::new(), "breaks off"),
        (text.replace("108.0", "107.0"), "was changed after it was written"),
        ("not ours".to_owned(), "is not a file of results"),
        (text.replace("\"schema\": 1", "\"schema\": 99"), "has form 99"),
        (String::from_utf8(good.values().nth(1).unwrap().clone()).unwrap(), "is of femu-registers, two reads, double"),
    ];
    for (spoilt, said) in spoil {
        fs::write(&paths[0], &spoilt).unwrap();
        let ear = run();
        assert_eq!(ear.measured, ["two reads, single register"], "{said}");
        assert!(ear.notes.iter().any(|note| note.contains(said)), "{said} is not in {:?}", ear.notes);
        assert_eq!(files(folder.path()), good, "{said}");
    }
}

#[test]
fn other_inputs_are_other_results() {
    let folder = folder();
    let registers = experiment("femu-registers");
    let points = (registers.points)().len();
    session(folder.path()).run(&[registers], &mut ()).unwrap();
    let more = Effort { requests_percent: 2, ..TINY };
    for (other, said) in [
        (Session { seed: 2, ..session(folder.path()) }, "3 of 3 points: was measured with seed 1; measured again"),
        (Session { seed: 2, effort: more, ..session(folder.path()) }, "was measured with 1% of the requests"),
    ] {
        let mut ear = Ear::default();
        other.run(&[registers], &mut ear).unwrap();
        assert_eq!(ear.measured.len(), points);
        assert!(ear.notes.iter().any(|note| note.contains(said)), "{said} is not in {:?}", ear.notes);
    }
    // Rounds are of real time: they make nothing old here.
    let rounds = Effort { rounds: 9, ..more };
    let mut ear = Ear::default();
    Session { seed: 2, effort: rounds, ..session(folder.path()) }.run(&[registers], &mut ear).unwrap();
    assert_eq!(ear.points, 0, "{:?}", ear.notes);
}

#[test]
fn results_of_another_program_are_shown_as_such_and_measured_again() {
    let folder = folder();
    let registers = experiment("femu-registers");
    let session = session(folder.path());
    session.run(&[registers], &mut ()).unwrap();
    let good = files(folder.path());
    for (number, point) in (registers.points)().iter().enumerate() {
        let file = session.folder.file(registers, number, point, 0);
        let inputs = Inputs::new(registers, point, session.seed, session.effort);
        let Found::Fits(stored) = Stored::find(&file, &inputs) else { panic!("{} does not fit", file.display()) };
        let program = nandscape_lab_run::Program { sources: "0".to_owned(), ..this_program() };
        let older = Stored::new(Inputs { program, ..inputs }, None, stored.figures);
        fs::write(&file, older.to_json()).unwrap();
    }
    let held = Outcome::held(registers, &session.folder);
    assert_eq!(held.verdict, Verdict::Reproduced);
    assert!(held.notes().iter().any(|note| note.contains("another program")), "{:?}", held.notes());
    let mut ear = Ear::default();
    session.run(&[registers], &mut ear).unwrap();
    assert!(ear.points == 3 && ear.notes[0].contains("was measured by another program"), "{:?}", ear.notes);
    assert_eq!(files(folder.path()), good);
}

#[test]
fn points_are_measured_with_three_seeds_and_one_asks_for_more() {
    let folder = folder();
    let one = session(folder.path());
    let outcome = one.run(&[&SEEDED], &mut ()).unwrap().unwrap().remove(0);
    assert_eq!((outcome.verdict, files(folder.path()).len()), (Verdict::Awaits, 2));
    assert!(outcome.reason.contains("3 seeds, here 1"), "{}", outcome.reason);

    let three = Session { effort: Effort { is_repeated: true, ..TINY }, jobs: 1, ..session(folder.path()) };
    let mut ear = Ear { stop_after: Some(3), ..Ear::default() };
    assert!(three.run(&[&SEEDED], &mut ear).unwrap().is_none(), "the first of the new points are kept");
    let held = Outcome::held(&SEEDED, &three.folder);
    assert!(held.verdict == Verdict::NotMeasured && held.reason.contains("5 of 6 points"), "{}", held.reason);
    let mut ear = Ear::default();
    let outcome = three.run(&[&SEEDED], &mut ear).unwrap().unwrap().remove(0);
    assert_eq!((outcome.verdict, ear.points, files(folder.path()).len()), (Verdict::Reproduced, 1, 6));
    assert!(outcome.judgement.criteria.iter().all(|criterion| criterion.runs == 3), "{:?}", outcome.judgement);
    let values: Vec<f64> = outcome.results.iter().map(|run| run.of("one").unwrap().number("value").unwrap()).collect();
    assert!(values.len() == 3 && values[0] != values[1] && values[1] != values[2], "{values:?}");
    let held = Outcome::held(&SEEDED, &three.folder);
    assert_eq!((held.verdict, held.judgement), (outcome.verdict, outcome.judgement));
}

#[test]
fn a_folder_serves_one_run_at_a_time() {
    let folder = folder();
    let first = session(folder.path());
    let lock = first.folder.lock().unwrap();
    let refused = first.run(&[experiment("femu-registers")], &mut ()).err().expect("it is taken").to_string();
    assert!(refused.contains("another run is using"), "{refused}");
    drop(lock);
    assert!(first.run(&[experiment("femu-registers")], &mut ()).unwrap().is_some());
}

#[test]
fn a_point_that_fails_fails_its_claim_and_is_tried_again() {
    let folder = folder();
    for (points, kept) in [(2, 0), (1, 1)] {
        let mut ear = Ear::default();
        let outcomes = session(folder.path()).run(&[&TROUBLE, &TOY], &mut ear).unwrap().unwrap();
        assert_eq!((outcomes[0].verdict, outcomes[0].reason.as_str()), (Verdict::Failed, "bad: out of luck"));
        assert_eq!(outcomes[1].verdict, Verdict::Reproduced, "the others are measured all the same");
        assert_eq!(ear.points, points + if kept == 0 { 12 } else { 0 });
        assert_eq!(fs::read_dir(folder.path().join("trouble")).unwrap().count(), 1);
    }
}
