//! A measurement that several claims share is made once, and each claim keeps its figures.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

use nandscape_lab_ledger::Session;
use nandscape_lab_ledger::claim::Claim;
use nandscape_lab_ledger::experiment::{Experiment, Point};
use nandscape_lab_ledger::figures::Figures;

use crate::support::{Ear, SEEDED, folder, session};

/// Measurements so far.
static MEASURED: AtomicUsize = AtomicUsize::new(0);

fn counted(name: &str) -> Point {
    Point::new(name, |run| {
        MEASURED.fetch_add(1, Ordering::Relaxed);
        let mut figures = Figures::default();
        figures.add("value", run.seed.rng().unit(), "");
        Ok(figures)
    })
}

static ONE: Experiment = Experiment {
    claim: Claim { id: "one", ..SEEDED.claim },
    points: || vec![counted("alone"), counted("both").shared("load a")],
    ..SEEDED
};
static OTHER: Experiment = Experiment {
    claim: Claim { id: "other", ..SEEDED.claim },
    points: || vec![counted("as in one").shared("load a"), counted("different").shared("load b")],
    ..SEEDED
};

/// The figures of a stored point.
fn figures(folder: &std::path::Path, file: &str) -> serde_json::Value {
    let text = fs::read_to_string(folder.join(file)).unwrap();
    serde_json::from_str::<serde_json::Value>(&text).unwrap()["figures"].clone()
}

#[test]
fn a_shared_measurement_is_made_once_and_lent_to_claims_that_lack_it() {
    let shared = folder();
    let (both, as_in_one) = ("one/001-both.json", "other/000-as-in-one.json");
    let measure = |session: Session, asked: &[&'static Experiment]| {
        let (before, mut ear) = (MEASURED.load(Ordering::Relaxed), Ear::default());
        session.run(asked, &mut ear).unwrap().unwrap();
        (MEASURED.load(Ordering::Relaxed) - before, ear.measured.len())
    };
    assert_eq!(measure(session(shared.path()), &[&ONE, &OTHER]), (3, 4), "measurements, and points that have them");
    assert_eq!(figures(shared.path(), both), figures(shared.path(), as_in_one));

    // A claim alone gives the same bytes, whichever of the two.
    for experiment in [&ONE, &OTHER] {
        let alone = folder();
        assert_eq!(measure(session(alone.path()), &[experiment]), (2, 2));
        for file in [both, as_in_one].iter().filter(|file| alone.path().join(file).exists()) {
            assert_eq!(fs::read(alone.path().join(file)).unwrap(), fs::read(shared.path().join(file)).unwrap());
        }
    }

    // An interrupted run borrows what the other claim has.
    let whole = fs::read(shared.path().join(as_in_one)).unwrap();
    fs::remove_file(shared.path().join(as_in_one)).unwrap();
    assert_eq!(measure(session(shared.path()), &[&ONE, &OTHER]), (0, 0));
    assert_eq!(fs::read(shared.path().join(as_in_one)).unwrap(), whole);

    let fresh = Session { fresh: true, ..session(shared.path()) };
    assert_eq!(measure(fresh, &[&OTHER, &ONE]), (3, 4));
}
