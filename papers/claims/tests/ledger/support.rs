//! Folders and runs.

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use nandscape_lab_ledger::claim::{Check, Claim, Kind, Paper};
use nandscape_lab_ledger::experiment::{Choice, Clock, Experiment, Parameter, Point};
use nandscape_lab_ledger::figures::{Figures, Results};
use nandscape_lab_ledger::verdict::{Judgement, atmost, order};
use nandscape_lab_ledger::{Effort, Folder, Outcome, Session, Watch};
use nandscape_papers_claims::LEDGER;
use nandscape_sim::Span;
use tempfile::TempDir;

/// As little as can be measured.
pub(crate) const TINY: Effort = Effort { requests_percent: 1, rounds: 1, slice: Span::from_ms(2), is_repeated: false };

/// A folder that goes away.
pub(crate) fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

/// A run with tiny effort, seed 1 and two threads.
pub(crate) fn session(folder: &Path) -> Session {
    Session { folder: Folder::at(folder), seed: 1, effort: TINY, jobs: 2, fresh: false, varied: None }
}

/// The experiment of a name.
pub(crate) fn experiment(id: &str) -> &'static Experiment {
    LEDGER.find(&[id.to_owned()]).expect("a known name")[0]
}

/// Listens to a run, and stops it after `stop_after` points.
#[derive(Default)]
pub(crate) struct Ear {
    pub(crate) stop_after: Option<usize>,
    pub(crate) notes: Vec<String>,
    pub(crate) points: usize,
    pub(crate) measured: Vec<String>,
    pub(crate) decided: Vec<String>,
}

impl Watch for Ear {
    fn note(&mut self, text: &str) {
        self.notes.push(text.to_owned());
    }

    fn begun(&mut self, points: usize) {
        self.points = points;
    }

    fn measured(&mut self, _: &str, point: &str) -> ControlFlow<()> {
        self.measured.push(point.to_owned());
        match self.stop_after {
            Some(most) if self.measured.len() >= most => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }

    fn decided(&mut self, outcome: &Outcome) {
        self.decided.push(format!("{} {}", outcome.experiment.claim.id, outcome.verdict()));
    }
}

/// Every file of results below a folder, with its bytes.
pub(crate) fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for claim in fs::read_dir(folder).expect("a folder").flatten().filter(|entry| entry.path().is_dir()) {
        for file in fs::read_dir(claim.path()).expect("a folder").flatten() {
            let name = format!("{}/{}", claim.file_name().to_string_lossy(), file.file_name().to_string_lossy());
            files.insert(name, fs::read(file.path()).expect("a file"));
        }
    }
    files
}

/// A toy experiment: twelve points of random numbers, and a bound that they keep. It has no published figures.
pub(crate) static TOY: Experiment = Experiment {
    claim: Claim {
        id: "toy",
        source: &[(Paper::Li, "6.1")],
        says: "random numbers are below one",
        show: None,
        ruling: None,
        check: Check::AtMost,
        kind: Kind::Design,
    },
    clock: Clock::Virtual,
    runs: 3,
    published: &[],
    awaits: &[],
    parameters: &[Parameter { what: "bound", value: "1", source: "6.1" }],
    choices: &[Choice { open: "how many", taken: "twelve", why: "more than threads" }],
    points: || (0..12).map(|number| Point::new(format!("number {number}"), random).with("number", number)).collect(),
    judge: |results: &Results| {
        let mut judgement = Judgement::default();
        for (point, figures) in &results.0 {
            judgement.criteria.push(atmost::cost(point.clone(), figures.number("value")?, "", 1.0));
        }
        Ok(judgement)
    },
};

/// Two points without separate runs, far from their bound.
pub(crate) static SEEDED: Experiment = Experiment {
    claim: Claim { id: "seeded", check: Check::Order, ..TOY_CLAIM },
    clock: Clock::Virtual,
    runs: 1,
    published: &[],
    awaits: &[],
    parameters: &[],
    choices: &[],
    points: || vec![Point::new("one", random), Point::new("two", random)],
    judge: |results: &Results| {
        let mut judgement = Judgement::default();
        for (point, figures) in &results.0 {
            judgement.criteria.push(order::below(point.clone(), figures.number("value")?, "", 3.0));
        }
        Ok(judgement)
    },
};

/// The same, with a point that fails.
pub(crate) static TROUBLE: Experiment = Experiment {
    claim: Claim { id: "trouble", ..TOY_CLAIM },
    clock: Clock::Virtual,
    runs: 1,
    published: &[],
    awaits: &[],
    parameters: &[],
    choices: &[],
    points: || vec![Point::new("good", random), Point::new("bad", |_| anyhow::bail!("out of luck"))],
    judge: |_| Ok(Judgement::default()),
};

const TOY_CLAIM: Claim =
    Claim { id: "", source: &[], says: "", show: None, ruling: None, check: Check::Exact, kind: Kind::Result };

fn random(run: &nandscape_lab_ledger::experiment::Run<'_>) -> anyhow::Result<Figures> {
    let mut figures = Figures::default();
    figures.add("value", run.seed.rng().unit(), "");
    Ok(figures)
}
