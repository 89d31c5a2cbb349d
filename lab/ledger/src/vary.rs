//! A claim with each of its costs at half and at twice its value: which of its criteria a cost decides.
//!
//! Each cost is screened with one seed. Where a criterion flips, or the verdict does, all seeds of a verdict are measured at that value, and at the given ones:
//! only a flip that remains counts.

use std::fmt::Write as _;

use anyhow::{Result, ensure};

use crate::experiment::{Effort, Experiment, Varied};
use crate::outcome::Outcome;
use crate::results::Folder;
use crate::session::{Session, Watch};

/// Times its value, for each cost.
const FACTORS: [f64; 2] = [0.5, 2.0];

/// What the costs of a claim decide.
pub struct Sensitivity {
    /// The experiment.
    pub experiment: &'static Experiment,
    /// Its verdict at the given costs, in words.
    pub verdict: &'static str,
    /// Whether the effort was less than a verdict asks for.
    pub is_quick: bool,
    /// What each cost decides, at half and at twice.
    pub costs: Vec<Cost>,
}

/// What a cost decides.
pub struct Cost {
    /// Its name.
    pub key: &'static str,
    /// At half, and at twice.
    pub at: [Flip; 2],
}

/// What is different at another value of a cost.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Flip {
    /// The verdict, if it is another one.
    pub verdict: Option<&'static str>,
    /// Criteria that hold, and did not.
    pub hold: Vec<String>,
    /// Criteria that do not hold, and did.
    pub fail: Vec<String>,
    /// It differed with the first seed only.
    pub was_chance: bool,
}

impl Flip {
    /// What differs between two outcomes of a claim.
    pub fn between(given: &Outcome, other: &Outcome) -> Flip {
        let mut flip =
            Flip { verdict: (given.verdict() != other.verdict()).then(|| other.verdict()), ..Flip::default() };
        for criterion in &other.judgement.criteria {
            let before = given.judgement.criteria.iter().find(|before| before.what == criterion.what);
            match before.map(|before| (before.holds, criterion.holds)) {
                Some((false, true)) => flip.hold.push(criterion.what.clone()),
                Some((true, false)) => flip.fail.push(criterion.what.clone()),
                _ => {}
            }
        }
        flip
    }

    /// Whether nothing differs.
    pub fn is_none(&self) -> bool {
        self.verdict.is_none() && self.hold.is_empty() && self.fail.is_empty()
    }

    fn text(&self) -> String {
        if self.is_none() {
            return if self.was_chance { "same (one seed differed)" } else { "same" }.to_owned();
        }
        let mut parts: Vec<String> = self.verdict.iter().map(|verdict| format!("**{verdict}**")).collect();
        parts.extend(self.hold.iter().map(|what| format!("holds: {what}")));
        parts.extend(self.fail.iter().map(|what| format!("fails: {what}")));
        parts.join("; ")
    }
}

impl Sensitivity {
    /// Measures a claim as given, and with each of its costs at half and at twice. Results are in folders below that of the session. Nothing if the run was
    /// interrupted.
    ///
    /// # Errors
    /// When results cannot be written, or a point fails.
    pub fn measure(
        session: &Session,
        experiment: &'static Experiment,
        keys: &[&'static str],
        watch: &mut dyn Watch,
    ) -> Result<Option<Sensitivity>> {
        let mut run = |varied: Option<Varied>, is_repeated: bool| -> Result<Option<Outcome>> {
            let name = match &varied {
                Some(Varied { key, factor }) => format!("{key}-{factor}"),
                None => "given".to_owned(),
            };
            let seeds = if is_repeated { "seeds" } else { "seed" };
            let folder = Folder::at(session.folder.path().join("costs").join(format!("{name}-{seeds}")));
            let effort = Effort { is_repeated, ..session.effort };
            let one = Session { folder, effort, varied, ..session.clone() };
            let outcome = one.run(&[experiment], watch)?.and_then(|mut outcomes| outcomes.pop());
            if let Some(outcome) = &outcome {
                let is_judged = !outcome.judgement.criteria.is_empty();
                ensure!(is_judged, "{}, {name}: {}", experiment.claim.id, outcome.reason);
            }
            Ok(outcome)
        };
        let Some(given) = run(None, false)? else { return Ok(None) };
        let mut given_by_all_seeds = None;
        let mut costs = Vec::new();
        for key in keys {
            let mut at: [Flip; 2] = Default::default();
            for (flip, factor) in at.iter_mut().zip(FACTORS) {
                let varied = || Some(Varied { key: (*key).to_owned(), factor });
                let Some(screened) = run(varied(), false)? else { return Ok(None) };
                *flip = Flip::between(&given, &screened);
                // A quick run has one seed.
                if flip.is_none() || !session.effort.is_repeated {
                    continue;
                }
                if given_by_all_seeds.is_none() {
                    given_by_all_seeds = run(None, true)?;
                }
                let (Some(given), Some(other)) = (&given_by_all_seeds, run(varied(), true)?) else { return Ok(None) };
                *flip = Flip::between(given, &other);
                flip.was_chance = flip.is_none();
            }
            costs.push(Cost { key, at });
        }
        let verdict = given_by_all_seeds.as_ref().unwrap_or(&given).verdict();
        let is_quick = session.effort.requests_percent < Effort::FULL.requests_percent;
        Ok(Some(Sensitivity { experiment, verdict, is_quick, costs }))
    }

    /// Costs at whose half or twice something differs.
    pub fn deciding(&self) -> Vec<&'static str> {
        self.costs.iter().filter(|cost| cost.at.iter().any(|flip| !flip.is_none())).map(|cost| cost.key).collect()
    }

    /// As Markdown: a sentence, and a row for each cost that decides something.
    pub fn markdown(&self) -> String {
        let (id, deciding) = (self.experiment.claim.id, self.deciding());
        let quick = if self.is_quick { " Quick: a tenth of the requests or less, one seed." } else { "" };
        let all = self.costs.len();
        let mut text = format!("## {id}\n\nAs given: {}.{quick} ", self.verdict);
        if deciding.is_empty() {
            _ = writeln!(text, "Nothing differs with any of {all} costs at half or at twice.");
            return text;
        }
        let decide = if deciding.len() == 1 { "decides" } else { "decide" };
        _ = write!(
            text,
            "Of {all} costs {} {decide} something:\n\n| cost | at half | at twice |\n|---|---|---|\n",
            deciding.len()
        );
        for Cost { key, at: [half, twice] } in self.costs.iter().filter(|cost| deciding.contains(&cost.key)) {
            _ = writeln!(text, "| `{key}` | {} | {} |", half.text(), twice.text());
        }
        let others: Vec<String> = self
            .costs
            .iter()
            .filter(|cost| !deciding.contains(&cost.key))
            .map(|cost| format!("`{}`", cost.key))
            .collect();
        if !others.is_empty() {
            _ = writeln!(text, "\nNothing differs with {}.", others.join(", "));
        }
        text
    }
}
