//! Experiments by their names.

use anyhow::bail;

use crate::experiment::Experiment;
use crate::experiments::EXPERIMENTS;

/// The similarity at which a name is suggested; 1 is equal.
const LIKE: f64 = 0.85;

/// The experiments with these names, each once, in the order given; `all` selects all.
///
/// # Errors
/// When a name is not known; the error suggests similar ones.
pub fn find(names: &[String]) -> anyhow::Result<Vec<&'static Experiment>> {
    let mut found: Vec<&'static Experiment> = Vec::new();
    for name in names {
        let named = EXPERIMENTS.iter().filter(|experiment| name == "all" || experiment.claim.id == name);
        let mut known = false;
        for experiment in named {
            known = true;
            if !found.iter().any(|other| other.claim.id == experiment.claim.id) {
                found.push(experiment);
            }
        }
        if !known {
            bail!("{}", unknown(name));
        }
    }
    Ok(found)
}

fn unknown(name: &str) -> String {
    let likeness = |experiment: &Experiment| strsim::jaro_winkler(name, experiment.claim.id);
    let near = |experiment: &&&Experiment| likeness(experiment) > LIKE || experiment.claim.id.contains(name);
    let mut near: Vec<&Experiment> = EXPERIMENTS.iter().filter(near).copied().collect();
    near.sort_by(|one, other| likeness(other).total_cmp(&likeness(one)));
    let all: Vec<&str> = EXPERIMENTS.iter().map(|experiment| experiment.claim.id).collect();
    let near: Vec<&str> = near.iter().map(|experiment| experiment.claim.id).take(3).collect();
    match near.is_empty() || name.is_empty() {
        true => format!("no experiment is called \"{name}\"; there are {}, or all", all.join(", ")),
        false => format!("no experiment is called \"{name}\"; did you mean {}?", near.join(", or ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(names: &[&str]) -> Result<Vec<&'static str>, String> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let found = find(&names).map_err(|error| error.to_string())?;
        Ok(found.iter().map(|experiment| experiment.claim.id).collect())
    }

    #[test]
    fn names_are_found_once_and_all_means_all() {
        assert_eq!(ids(&["femu-delay", "femu-registers", "femu-delay"]).unwrap(), ["femu-delay", "femu-registers"]);
        assert_eq!(ids(&["all"]).unwrap().len(), EXPERIMENTS.len());
        assert_eq!(ids(&["femu-delay", "all"]).unwrap().len(), EXPERIMENTS.len());
    }

    #[test]
    fn near_names_are_offered() {
        assert!(ids(&["femu-dealy"]).unwrap_err().contains("did you mean femu-delay"));
        assert!(ids(&["registers"]).unwrap_err().ends_with("did you mean femu-registers?"));
        let far = ids(&["femu-delay", "xyzzy"]).unwrap_err();
        assert!(far.contains("\"xyzzy\"") && far.contains("femu-gc-schemes") && far.ends_with("or all"), "{far}");
        assert!(ids(&[""]).unwrap_err().contains("there are"));
    }
}
