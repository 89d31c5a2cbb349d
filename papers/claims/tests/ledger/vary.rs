//! A claim with its costs at half and at twice: what flips is listed, and what only one seed shows is not counted.

use nandscape_lab_ledger::claim::{Check, Claim, Kind, Paper};
use nandscape_lab_ledger::experiment::{Choice, Clock, Experiment, Parameter, Point};
use nandscape_lab_ledger::figures::{Figures, Results};
use nandscape_lab_ledger::verdict::{Judgement, order};
use nandscape_lab_ledger::{Effort, Sensitivity, Session};
use nandscape_papers_claims::LEDGER;
use nandscape_sim::Span;

use crate::support::{TINY, folder, session};

/// A latency that is the sum of two costs, with a bound between one and two of the first. Seed 1 is lucky.
static SUM: Experiment = Experiment {
    claim: Claim {
        id: "sum",
        source: &[(Paper::Shin, "none")],
        says: "the sum is below 150 us",
        show: None,
        ruling: None,
        check: Check::Order,
        kind: Kind::Design,
    },
    clock: Clock::Virtual,
    runs: 1,
    published: &[],
    awaits: &[],
    parameters: &[Parameter { what: "none", value: "none", source: "none" }],
    choices: &[Choice { open: "none", taken: "none", why: "none" }],
    points,
    judge,
};

fn points() -> Vec<Point> {
    let sum = |name: &str| {
        Point::new(name, |run| {
            let costs = run.cost("large", Span::from_us(100)) + run.cost("small", Span::from_us(1));
            let mut figures = Figures::default();
            figures.add("sum", costs.as_us(), "us");
            // Below 100 with the first seed alone, if the cost is at half.
            let is_first = run.seed == SUM.seed_of(1, 0);
            let odd = if is_first && run.cost("odd", Span::from_us(2)) == Span::from_us(1) { 1.0 } else { 200.0 };
            figures.add("odd", odd, "us");
            Ok(figures)
        })
    };
    vec![sum("sum")]
}

fn judge(results: &Results) -> anyhow::Result<Judgement> {
    let mut judgement = Judgement::default();
    let of = |figure| results.of("sum")?.number(figure);
    judgement.criteria.push(order::below("sum", of("sum")?, "us", 150.0));
    judgement.criteria.push(order::above("odd", of("odd")?, "us", 100.0));
    Ok(judgement)
}

#[test]
fn a_cost_that_decides_is_listed_with_what_it_flips() {
    let folder = folder();
    let full = Effort { is_repeated: true, requests_percent: 100, ..TINY };
    let session = Session { effort: full, ..session(folder.path()) };
    let found = Sensitivity::measure(&session, &SUM, &["large", "small", "odd"], &mut ()).unwrap().unwrap();
    assert_eq!((found.verdict, found.is_quick, found.deciding()), ("holds", false, vec!["large"]));
    let [half, twice] = &found.costs[0].at;
    assert!(half.is_none() && twice.verdict == Some("missed") && twice.fail == ["sum"], "{half:?} {twice:?}");
    assert!(found.costs[2].at[0].was_chance, "three seeds do not agree with the first");
    let text = found.markdown();
    for part in ["## sum", "Of 3 costs 1 decide", "| `large` | same | **missed**; fails: sum |", "`small`, `odd`."] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // The same again is read from the folder.
    let again = Sensitivity::measure(&session, &SUM, &["large", "small", "odd"], &mut ()).unwrap().unwrap();
    assert_eq!(again.markdown(), text);
}

#[test]
fn a_quick_look_has_one_seed_and_says_so() {
    let folder = folder();
    let found = Sensitivity::measure(&session(folder.path()), &SUM, &["odd", "small"], &mut ()).unwrap().unwrap();
    assert_eq!((found.is_quick, found.deciding()), (true, vec!["odd"]));
    assert!(found.markdown().contains("Quick: "), "{}", found.markdown());
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
