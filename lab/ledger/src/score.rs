//! The score: how many results of each paper are reproduced, in part, missed, to be run again, and not built. It is counted from the
//! verdicts of a folder of results, or from a page of verdicts.

use anyhow::{Context as _, Result, bail, ensure};

use crate::claim::{Claim, Kind, Paper};
use crate::ledger::Ledger;
use crate::outcome::Outcome;
use crate::show;

/// The line before the score in a file that carries it.
pub const BEGIN: &str = "<!-- score -->";
/// The line after it.
pub const END: &str = "<!-- /score -->";

/// The head of the table of verdicts on the page.
const HEAD: &str = "| claim | source | check | verdict |";

/// What a claim counts as.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Count {
    Reproduced,
    /// In part; in order, not in size; or depending on an open choice.
    InPart,
    /// Missed, or within the spread between runs.
    Missed,
    /// No verdict: not measured by this program, or the rules ask for a run.
    Again,
    /// No experiment.
    Unbuilt,
}

/// The columns, by their names.
const COUNTS: [(Count, &str); 5] = [
    (Count::Reproduced, "reproduced"),
    (Count::InPart, "in part"),
    (Count::Missed, "missed"),
    (Count::Again, "to be run again"),
    (Count::Unbuilt, "not built"),
];

/// How many results count as what.
#[derive(Clone, Debug)]
pub struct Score(Vec<(&'static Claim, Count)>);

impl Score {
    /// Of the outcomes of all experiments.
    ///
    /// # Errors
    /// When an experiment has no outcome among them.
    pub fn of(ledger: &Ledger, outcomes: &[Outcome]) -> Result<Score> {
        let words: Vec<(&str, String)> = outcomes
            .iter()
            .zip(show::verdicts(outcomes))
            .map(|(of, verdict)| (of.experiment.claim.id, verdict))
            .collect();
        Score::of_words(ledger, &words)
    }

    /// Of a page that `nandscape lab report` wrote.
    ///
    /// # Errors
    /// When the page has no table of verdicts, not the verdict of each experiment, or a section with another verdict than the
    /// table.
    pub fn of_page(ledger: &Ledger, page: &str) -> Result<Score> {
        let words = rows(page)?;
        for (name, verdict) in sections(page) {
            let Some((_, cell)) = words.iter().find(|(id, _)| *id == name) else { continue };
            ensure!(
                cell == verdict,
                "{name}: the verdict of its section is \"{verdict}\", that of the table \"{cell}\""
            );
        }
        Score::of_words(ledger, &words)
    }

    fn of_words(ledger: &Ledger, words: &[(&str, String)]) -> Result<Score> {
        let mut counts = Vec::new();
        for experiment in ledger.experiments {
            let claim = &experiment.claim;
            let found: Vec<&str> =
                words.iter().filter(|(id, _)| *id == claim.id).map(|(_, verdict)| verdict.as_str()).collect();
            ensure!(found.len() == 1, "{}: one verdict is due, there are {}", claim.id, found.len());
            counts.push((claim, count(found[0]).with_context(|| claim.id)?));
        }
        counts.extend(ledger.unbuilt.iter().map(|claim| (claim, Count::Unbuilt)));
        Ok(Score(counts))
    }

    fn number(&self, of: impl Fn(&Claim, Count) -> bool) -> usize {
        self.0.iter().filter(|(claim, count)| of(claim, *count)).count()
    }

    /// The table and what it leaves out, as Markdown.
    pub fn markdown(&self) -> String {
        let names: Vec<&str> = COUNTS.iter().map(|(_, name)| *name).collect();
        let mut text = format!("| paper | results | {} |\n", names.join(" | "));
        text.push_str(&format!("|---|{}\n", "---:|".repeat(COUNTS.len() + 1)));
        let mut row = |name: &str, of: &dyn Fn(&Claim) -> bool| {
            let is = |claim: &Claim| claim.kind == Kind::Result && of(claim);
            let counts = COUNTS.iter().map(|(count, _)| self.number(|claim, counted| is(claim) && counted == *count));
            let cells: Vec<String> = counts.map(|count| count.to_string()).collect();
            text.push_str(&format!("| {name} | {} | {} |\n", self.number(|claim, _| is(claim)), cells.join(" | ")));
        };
        for paper in Paper::ALL {
            row(&linked(paper), &|claim| claim.source.first().is_some_and(|(of, _)| *of == paper));
        }
        row("all", &|_| true);
        let designs =
            |wanted: &[Count]| self.number(|claim, count| claim.kind == Kind::Design && wanted.contains(&count));
        text.push_str(&format!(
            "\nThe papers also describe {} parts without a result: {} hold, {} missed, {} to be run again, {} not built.\n",
            self.number(|claim, _| claim.kind == Kind::Design),
            designs(&[Count::Reproduced, Count::InPart]),
            designs(&[Count::Missed]),
            designs(&[Count::Again]),
            designs(&[Count::Unbuilt]),
        ));
        text
    }

    /// The Markdown between the lines that mark it in a file.
    pub fn block(&self) -> String {
        format!("{BEGIN}\n{}{END}\n", self.markdown())
    }
}

/// The claims of a page's table of verdicts, each with its verdict.
pub(crate) fn rows(page: &str) -> Result<Vec<(&str, String)>> {
    let (_, table) = page.split_once(HEAD).with_context(|| format!("there is no table of verdicts: {HEAD}"))?;
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let words = rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let (name, verdict) = (cells.first().copied().unwrap_or(""), cells.last().copied().unwrap_or(""));
        let name = name.trim_start_matches('[').split(']').next().unwrap_or(name);
        (name, verdict.to_owned())
    });
    Ok(words.collect())
}

/// The verdicts of the sections of a page, by claim.
fn sections(page: &str) -> impl Iterator<Item = (&str, &str)> {
    page.split("\n## ").skip(1).filter_map(|section| {
        let (name, text) = section.split_once('\n')?;
        let (_, verdict) = text.split_once("\n- verdict: **")?;
        Some((name, verdict.split("**").next()?))
    })
}

/// A paper's name, with a link where it is published at one.
fn linked(paper: Paper) -> String {
    match paper.link() {
        Some(link) => format!("[{}]({link})", paper.title()),
        None => paper.title().to_owned(),
    }
}

/// What a verdict counts as, by its words.
fn count(verdict: &str) -> Result<Count> {
    Ok(match verdict {
        _ if verdict.contains(show::NO_VERDICT) => Count::Again,
        "reproduced" | "holds" => Count::Reproduced,
        "missed" | "not told apart" => Count::Missed,
        "asks for a run" | "not measured" | "failed" | "too short to tell" => Count::Again,
        _ if ["reproduced in ", "holds in ", "depends"].iter().any(|words| verdict.starts_with(words)) => Count::InPart,
        _ => bail!("\"{verdict}\" is no verdict"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::Kind;
    use crate::verdict::Verdict;

    #[test]
    fn every_verdict_counts() {
        let all = [
            (Verdict::Reproduced, Count::Reproduced),
            (Verdict::InOrder, Count::InPart),
            (Verdict::InPart, Count::InPart),
            (Verdict::Depends, Count::InPart),
            (Verdict::Awaits, Count::Again),
            (Verdict::NotToldApart, Count::Missed),
            (Verdict::Missed, Count::Missed),
            (Verdict::NotMeasured, Count::Again),
            (Verdict::Failed, Count::Again),
        ];
        for (verdict, counted) in all {
            for kind in [Kind::Result, Kind::Design] {
                assert_eq!(count(verdict.name(kind)).unwrap(), counted);
            }
        }
        assert_eq!(count("missed (not a verdict: other build)").unwrap(), Count::Again);
        assert!(count("perhaps").unwrap_err().to_string().contains("\"perhaps\" is no verdict"));
    }
}
