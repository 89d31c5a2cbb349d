//! The score on the page of verdicts and in the README is the count of the page's verdicts.

use std::fs;

use nandscape_lab_ledger::claim::Kind;
use nandscape_lab_ledger::experiment::Experiment;
use nandscape_lab_ledger::score::{BEGIN, END};
use nandscape_lab_ledger::{Recorded, Score};
use nandscape_papers_claims::LEDGER;

fn read(path: &str) -> String {
    let path = format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"));
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn the_readme_and_the_page_have_the_score_of_the_pages_verdicts() {
    let page = read("docs/validation/claims.md");
    let score = Score::of_page(&LEDGER, &page).expect("a page of verdicts");
    assert!(page.contains(&score.markdown()), "the page has another score than\n{}", score.markdown());
    let readme = read("README.md");
    let (_, rest) = readme.split_once(BEGIN).expect("README.md has the line before the score");
    let (block, _) = rest.split_once(END).expect("README.md has the line after the score");
    let due = score.block();
    assert_eq!(
        format!("{BEGIN}{block}{END}\n"),
        due,
        "paste what `nandscape lab score --page docs/validation/claims.md` prints into README.md"
    );
}

#[test]
fn the_recorded_verdicts_are_those_of_the_page() {
    let page = read("docs/validation/claims.md");
    let due = Recorded::of_page(&page).expect("a page of verdicts").text(&LEDGER);
    let renew =
        "nandscape lab score --verdicts --page docs/validation/claims.md > docs/validation/verdicts.txt renews it";
    assert_eq!(LEDGER.recorded, due, "{renew}");
    let recorded = LEDGER.recorded();
    assert!(LEDGER.experiments.iter().all(|experiment| recorded.of(experiment.claim.id).is_some()));
}

#[test]
fn a_page_without_all_verdicts_has_no_score() {
    assert!(Score::of_page(&LEDGER, "# Verdicts\n").unwrap_err().to_string().contains("no table of verdicts"));
    let page = read("docs/validation/claims.md").replacen("| [femu-delay]", "| [femu-dealy]", 1);
    assert!(
        Score::of_page(&LEDGER, &page).unwrap_err().to_string().contains("femu-delay: one verdict is due, there are 0")
    );
}

#[test]
fn the_verdict_of_a_section_is_that_of_the_table() {
    let page = read("docs/validation/claims.md");
    let other = page.replacen("- verdict: **missed**", "- verdict: **failed**", 1);
    assert!(page != other, "no claim is missed");
    let error = Score::of_page(&LEDGER, &other).unwrap_err().to_string();
    let due = "the verdict of its section is \"failed\", that of the table \"missed\"";
    assert!(error.contains(due), "{error}");
}

#[test]
fn all_results_of_the_ledger_are_counted_once() {
    let head = "| claim | source | check | verdict |\n|---|---|---|---|\n";
    let row = |experiment: &&Experiment| format!("| {} | | | missed |\n", experiment.claim.id);
    let rows: Vec<String> = LEDGER.experiments.iter().map(row).collect();
    let score = Score::of_page(&LEDGER, &format!("{head}{}", rows.concat())).expect("a page of verdicts");
    let all = LEDGER.experiments.iter().map(|experiment| &experiment.claim).chain(LEDGER.unbuilt);
    let results = all.filter(|claim| claim.kind == Kind::Result).count();
    let text = score.markdown();
    let last = text.lines().find(|line| line.starts_with("| all |")).expect("a sum");
    let numbers: Vec<usize> = last.split('|').filter_map(|cell| cell.trim().parse().ok()).collect();
    assert_eq!((numbers[0], numbers[1..].iter().sum::<usize>()), (results, results), "{last}");
    let short = Score::of_page(&LEDGER, &format!("{head}{}", rows[1..].concat())).expect_err("a verdict is missing");
    assert!(short.to_string().contains("one verdict is due, there are 0"), "{short}");
}
