//! Every claim run for a moment: it measures, its figures are figures, its form is whole. Nothing here is about speed.
#![cfg(target_os = "linux")]

use nandscape_lab_claims::CLAIMS;
use nandscape_lab_claims::claim::{Effort, Verdict};
use nandscape_sim::Span;
use serde_json::Value;

#[test]
fn every_claim_measures_and_judges() {
    for claim in CLAIMS {
        let outcome = claim.outcome(&Effort { rounds: 1, slice: Span::from_ms(2) }).unwrap();
        assert!(outcome.measured.iter().all(|figure| figure.value.is_finite()), "{outcome:?}");
        let missed = outcome.measured.iter().filter(|figure| !figure.holds()).count();
        assert_eq!(outcome.verdict == Verdict::Missed, missed > 0, "{outcome:?}");
        assert_eq!(outcome.reason.is_empty(), missed == 0, "{outcome:?}");
        let text = outcome.to_text();
        assert!(text.contains(claim.published) && text.contains("verdict: "), "{text}");
        let json: Value = serde_json::from_str(&outcome.to_json()).unwrap();
        assert_eq!((&json["schema"], &json["id"]), (&1.into(), &claim.id.into()));
        assert_eq!(json["measured"].as_array().map(Vec::len), Some(outcome.measured.len()));
    }
}

#[test]
fn names_differ() {
    let mut names: Vec<&str> = CLAIMS.iter().map(|claim| claim.id).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), CLAIMS.len());
}
