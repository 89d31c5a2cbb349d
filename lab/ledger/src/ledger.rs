//! The ledger: all entries, with an experiment or without one, and experiments by their names.

use anyhow::bail;

use crate::claim::Claim;
use crate::durations::Durations;
use crate::experiment::{Costs, Experiment};
use crate::recorded::Recorded;

/// The similarity at which a name is suggested; 1 is equal.
const LIKE: f64 = 0.85;

/// All entries, in the order of the papers' ledger.
pub struct Ledger {
    /// The experiments.
    pub experiments: &'static [&'static Experiment],
    /// Entries without an experiment.
    pub unbuilt: &'static [Claim],
    /// The costs of experiments that have some without a published value.
    pub costs: &'static [Costs],
    /// The processor time of experiments: the text of a table of [`Durations`].
    pub durations: &'static str,
    /// The verdicts of the page of claims: the text of a table of [`Recorded`].
    pub recorded: &'static str,
}

impl Ledger {
    /// The experiments with these names, each once, in the order given; `all` selects all.
    ///
    /// # Errors
    /// When a name is not known; the error suggests similar ones.
    pub fn find(&self, names: &[String]) -> anyhow::Result<Vec<&'static Experiment>> {
        let mut found: Vec<&'static Experiment> = Vec::new();
        for name in names {
            let named = self.experiments.iter().filter(|experiment| name == "all" || experiment.claim.id == name);
            let mut known = false;
            for experiment in named {
                known = true;
                if !found.iter().any(|other| other.claim.id == experiment.claim.id) {
                    found.push(experiment);
                }
            }
            if !known {
                bail!("{}", self.unknown(name));
            }
        }
        Ok(found)
    }

    /// The costs of an experiment; none if all its values are published.
    pub fn costs_of(&self, id: &str) -> Vec<&'static str> {
        let of = self.costs.iter().filter(|costs| costs.id == id);
        of.flat_map(|costs| costs.keys.iter().flat_map(|keys| keys.iter().copied())).collect()
    }

    /// The table of processor times.
    ///
    /// # Panics
    /// When the program was built with a table that is none, which a test of the ledger notices.
    pub fn durations(&self) -> Durations {
        Durations::parse(self.durations).expect("the ledger's table of durations")
    }

    /// The verdicts of the page of claims.
    ///
    /// # Panics
    /// When the program was built with a table that is none, which a test of the ledger notices.
    pub fn recorded(&self) -> Recorded {
        Recorded::parse(self.recorded).expect("the ledger's table of verdicts")
    }

    fn unknown(&self, name: &str) -> String {
        let likeness = |experiment: &Experiment| strsim::jaro_winkler(name, experiment.claim.id);
        let near = |experiment: &&&Experiment| likeness(experiment) > LIKE || experiment.claim.id.contains(name);
        let mut near: Vec<&Experiment> = self.experiments.iter().filter(near).copied().collect();
        near.sort_by(|one, other| likeness(other).total_cmp(&likeness(one)));
        let all: Vec<&str> = self.experiments.iter().map(|experiment| experiment.claim.id).collect();
        let near: Vec<&str> = near.iter().map(|experiment| experiment.claim.id).take(3).collect();
        match near.is_empty() || name.is_empty() {
            true => format!("no experiment is called \"{name}\"; there are {}, or all", all.join(", ")),
            false => format!("no experiment is called \"{name}\"; did you mean {}?", near.join(", or ")),
        }
    }
}
