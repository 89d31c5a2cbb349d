//! Experiments by their names.

use nandscape_papers_claims::LEDGER;

fn ids(names: &[&str]) -> Result<Vec<&'static str>, String> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let found = LEDGER.find(&names).map_err(|error| error.to_string())?;
    Ok(found.iter().map(|experiment| experiment.claim.id).collect())
}

#[test]
fn names_are_found_once_and_all_means_all() {
    assert_eq!(ids(&["femu-delay", "femu-registers", "femu-delay"]).unwrap(), ["femu-delay", "femu-registers"]);
    assert_eq!(ids(&["all"]).unwrap().len(), LEDGER.experiments.len());
    assert_eq!(ids(&["femu-delay", "all"]).unwrap().len(), LEDGER.experiments.len());
}

#[test]
fn near_names_are_offered() {
    assert!(ids(&["femu-dealy"]).unwrap_err().contains("did you mean femu-delay"));
    assert!(ids(&["registers"]).unwrap_err().ends_with("did you mean femu-registers?"));
    let far = ids(&["femu-delay", "xyzzy"]).unwrap_err();
    assert!(far.contains("\"xyzzy\"") && far.contains("femu-gc-schemes") && far.ends_with("or all"), "{far}");
    assert!(ids(&[""]).unwrap_err().contains("there are"));
}
