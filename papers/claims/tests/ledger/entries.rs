//! Every experiment is complete, and its entry equals that of the shared ledger, where that exists.

use std::io::Write as _;
use std::path::Path;

use nandscape_lab_ledger::claim::{Check, Claim, Kind};
use nandscape_papers_claims::LEDGER;
use toml::{Table, Value};

/// The ledger of all results of the papers, if it exists.
const SHARED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/claims.toml");

#[test]
fn every_experiment_says_what_it_sets_and_chooses() {
    for experiment in LEDGER.experiments {
        let id = experiment.claim.id;
        assert!(!experiment.claim.source.is_empty() && !experiment.claim.says.is_empty(), "{id}");
        assert!(!experiment.parameters.is_empty() && !experiment.choices.is_empty(), "{id}");
        let points = (experiment.points)();
        let mut names: Vec<&str> = points.iter().map(|point| point.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert!(!names.is_empty() && names.len() == points.len(), "{id}: {names:?}");
    }
}

/// A criterion of an experiment with a published result shows the figure of the paper, unless the paper has none.
#[test]
fn experiments_with_a_published_result_have_its_figures() {
    for experiment in LEDGER.experiments.iter().filter(|experiment| experiment.claim.kind == Kind::Result) {
        // A formula or a ratio has its published figure itself.
        let has_own = matches!(experiment.claim.check, Check::Exact | Check::Ratio(_));
        assert!(has_own || !experiment.published.is_empty(), "{}", experiment.claim.id);
    }
}

#[test]
fn durations_are_those_of_claims_in_their_order() {
    let table = include_str!("../../durations.txt");
    let ids = || LEDGER.experiments.iter().map(|experiment| experiment.claim.id);
    assert_eq!(
        LEDGER.durations().text(ids()),
        table,
        "`nandscape lab run ID --fresh --durations FILE` renews lines of it"
    );
}

#[test]
fn seeds_of_points_depend_on_seed_claim_and_place_only() {
    let mut seeds = Vec::new();
    for experiment in LEDGER.experiments {
        for seed in [1, 2] {
            seeds.extend((0..3).map(|place| experiment.seed_of(seed, place, None).value()));
            let shared = experiment.seed_of(seed, 2, Some("a load"));
            assert_eq!(shared, LEDGER.experiments[0].seed_of(seed, 0, Some("a load")));
            assert_ne!(shared, experiment.seed_of(seed, 2, None));
        }
    }
    let all = seeds.len();
    seeds.sort_unstable();
    seeds.dedup();
    assert_eq!(seeds.len(), all);
}

#[test]
fn entries_are_those_of_the_shared_ledger() {
    let Ok(text) = std::fs::read_to_string(Path::new(SHARED)) else {
        // Written past the capture of the test harness, which hides what a passing test prints.
        let line = "skipped: the comparison of the entries with the ledger of the papers, ../shared/claims.toml, which is absent\n";
        std::io::stderr().write_all(line.as_bytes()).expect("standard error");
        return;
    };
    let shared: Table = text.parse().expect("the ledger is TOML");
    let entries = shared["claim"].as_array().expect("entries");
    let claims: Vec<&Claim> =
        LEDGER.experiments.iter().map(|experiment| &experiment.claim).chain(LEDGER.unbuilt).collect();
    for claim in &claims {
        let entry = entries.iter().find(|entry| entry["id"].as_str() == Some(claim.id));
        compare(claim, entry.unwrap_or_else(|| panic!("{} is not in the ledger", claim.id)));
    }
    for entry in entries {
        let id = entry["id"].as_str().expect("a name");
        assert_eq!(claims.iter().filter(|claim| claim.id == id).count(), 1, "{id} is in the ledger");
    }
}

fn compare(claim: &Claim, entry: &Value) {
    let id = claim.id;
    let text = |key: &str| entry.get(key).and_then(Value::as_str);
    assert_eq!(Some(claim.seed().as_str()), text("seed"), "{id}");
    // The shared ledger refers to a separate page for one table, and for one gap.
    let says = text("says").map(|says| says.replace("the pattern of errata.md", "a pattern of 512 digits"));
    assert_eq!(Some(claim.says), says.as_deref(), "{id}");
    let show = text("show").map(|show| show.replace(" (errata.md)", ""));
    assert_eq!(claim.show, show.as_deref(), "{id}");
    let ruling = text("ruling").map(|ruling| ruling.replace(" (errata)", ""));
    assert_eq!(claim.ruling, ruling.as_deref(), "{id}");
    assert_eq!(Some(claim.check.name()), text("check"), "{id}");
    assert_eq!(claim.kind == Kind::Design, text("kind") == Some("design"), "{id}");
    let band = match claim.check {
        Check::Ratio(band) => band,
        _ => None,
    };
    assert_eq!(band.map(|band| band.of.name()), text("band_of"), "{id}");
    let given = entry.get("band").and_then(Value::as_array).map(|pairs| {
        let number = |pair: &Value, place: usize| pair[place].as_float().expect("a number");
        pairs.iter().map(|pair| (number(pair, 0), number(pair, 1))).collect::<Vec<_>>()
    });
    assert_eq!(band.map(|band| band.within.to_vec()), given, "{id}");
}
