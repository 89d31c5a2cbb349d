//! A claim with its costs at half and at twice: what flips is listed, and what only one seed shows is not counted.

use std::path::Path;

use nandscape_lab_ledger::claim::{Check, Claim, Kind, Paper};
use nandscape_lab_ledger::experiment::{Choice, Clock, Experiment, Parameter, Point, Run};
use nandscape_lab_ledger::figures::{Figures, Results};
use nandscape_lab_ledger::verdict::{Judgement, order};
use nandscape_lab_ledger::{Effort, Sensitivity, Session};
use nandscape_papers_claims::LEDGER;
use nandscape_sim::Span;

use crate::support::{TINY, folder, session};

const fn claim(id: &'static str) -> Claim {
    Claim {
        id,
        source: &[(Paper::Shin, "none")],
        says: "the latency is below 150 us",
        show: None,
        ruling: None,
        check: Check::Order,
        kind: Kind::Design,
    }
}

const fn experiment(id: &'static str, points: fn() -> Vec<Point>) -> Experiment {
    Experiment {
        claim: claim(id),
        clock: Clock::Virtual,
        runs: 1,
        published: &[],
        awaits: &[],
        parameters: &[Parameter { what: "none", value: "none", source: "none" }],
        choices: &[Choice { open: "none", taken: "none", why: "none" }],
        points,
        judge,
    }
}

/// A latency that is the sum of two costs, of which twice the large one is beyond the bound.
static SUM: Experiment = experiment("sum", || {
    vec![point(|run| run.cost("large", Span::from_us(100)) + run.cost("small", Span::from_us(1)))]
});

/// A latency beyond the bound, but for the first seed: that one is near it.
static NEAR: Experiment = experiment("near", || {
    vec![point(|run| match run.seed == NEAR.seed_of(1, 0, None) {
        true => Span::from_us(99) + run.cost("odd", Span::from_us(50)),
        false => Span::from_us(500),
    })]
});

fn point(latency: fn(&Run<'_>) -> Span) -> Point {
    Point::new("sum", move |run| {
        let mut figures = Figures::default();
        figures.add("latency", latency(run).as_us(), "us");
        Ok(figures)
    })
}

fn judge(results: &Results) -> anyhow::Result<Judgement> {
    let latency = results.of("sum")?.number("latency")?;
    Ok(Judgement { criteria: vec![order::below("sum", latency, "us", 150.0)], ..Judgement::default() })
}

fn full(folder: &Path) -> Session {
    let effort = Effort { is_repeated: true, requests_percent: 100, ..TINY };
    Session { effort, ..session(folder) }
}

#[test]
fn a_cost_that_decides_is_listed_with_what_it_flips() {
    let folder = folder();
    let measure = || Sensitivity::measure(&full(folder.path()), &SUM, &["large", "small"], &mut ()).unwrap().unwrap();
    let found = measure();
    assert_eq!((found.verdict, found.is_quick, found.deciding()), ("holds", false, vec!["large"]));
    let [half, twice] = &found.costs[0].at;
    assert!(half.is_none() && twice.verdict == Some("missed") && twice.fail == ["sum"], "{half:?} {twice:?}");
    let text = found.markdown();
    for part in
        ["## sum", "Of 2 costs 1 decides something", "| `large` | same | **missed**; fails: sum |", "with `small`."]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    // The same again is read from the folder.
    assert_eq!(measure().markdown(), text);
}

#[test]
fn what_only_one_seed_shows_does_not_count_in_full_and_a_quick_look_says_what_it_is() {
    let folder = folder();
    let found = Sensitivity::measure(&full(folder.path()), &NEAR, &["odd"], &mut ()).unwrap().unwrap();
    assert!(found.deciding().is_empty() && found.costs[0].at[1].was_chance, "three seeds miss it at any cost");
    assert_eq!(found.verdict, "missed");
    let quick = Sensitivity::measure(&session(folder.path()), &NEAR, &["odd"], &mut ()).unwrap().unwrap();
    assert_eq!((quick.is_quick, quick.deciding()), (true, vec!["odd"]));
    assert!(quick.markdown().contains("Quick: "), "{}", quick.markdown());
}

#[test]
fn each_claim_with_costs_has_an_experiment_and_each_cost_once() {
    for costs in LEDGER.costs {
        assert!(LEDGER.find(&[costs.id.to_owned()]).is_ok(), "{}", costs.id);
        let mut keys = LEDGER.costs_of(costs.id);
        let all = keys.len();
        keys.sort_unstable();
        keys.dedup();
        assert!(all > 0 && keys.len() == all, "{}: {keys:?}", costs.id);
    }
    assert!(LEDGER.costs_of("femu-registers").is_empty());
}
