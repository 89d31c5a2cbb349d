//! Outcomes as a page of Markdown: the verdicts first, then each claim with its criteria, figures and inputs.

use nandscape_lab_run::Program;

use crate::experiment::{Clock, Effort, Experiment};
use crate::ledger::Ledger;
use crate::outcome::{Circumstances, Outcome};
use crate::results::{EffortOf, this_program};
use crate::score::Score;
use crate::show::text::{came, published, under};
use crate::verdict::{Role, Table};

/// The words after a verdict that is none.
pub const NO_VERDICT: &str = "(not a verdict: other build)";

/// The verdicts of outcomes that are shown together. The page names one program, the one that measured most of them, built for
/// release; results of other programs are marked. If several programs measured as many, it is this one, else the one of the first.
pub fn verdicts(outcomes: &[Outcome]) -> Vec<String> {
    let program = |outcome: &Outcome| outcome.circumstances.as_ref().map(|of| of.inputs.program.clone());
    let measured: Vec<Program> = outcomes.iter().filter_map(program).collect();
    let most = most(&measured, &this_program());
    let is_other = |Circumstances { inputs, .. }: &Circumstances| {
        Some(&inputs.program) != most || inputs.machine.as_ref().is_some_and(|machine| machine.build != "release")
    };
    let words = |outcome: &Outcome| match &outcome.circumstances {
        Some(circumstances) if is_other(circumstances) => format!("{} {NO_VERDICT}", outcome.verdict()),
        _ => outcome.verdict().to_owned(),
    };
    outcomes.iter().map(words).collect()
}

/// The program that measured the most; of those that measured as many, `own` or else the first.
fn most<'a>(measured: &'a [Program], own: &Program) -> Option<&'a Program> {
    let rank = |one: &&Program| (measured.iter().filter(|other| other == one).count(), *one == own);
    measured.iter().rev().max_by_key(rank)
}

/// The page.
pub fn report(ledger: &Ledger, outcomes: &[Outcome]) -> String {
    let mut text =
        "# Verdicts\n\nWritten by `nandscape lab report` from the results of `nandscape lab run`.\n\n".to_owned();
    let verdicts = verdicts(outcomes);
    // A part of the experiments has no score.
    if let Ok(score) = Score::of(ledger, outcomes) {
        text.push_str(&format!("{}\n", score.markdown()));
    }
    let rows = outcomes.iter().zip(&verdicts).map(|(outcome, verdict)| {
        let claim = &outcome.experiment.claim;
        let name = match outcome.circumstances {
            Some(_) => format!("[{}](#{})", claim.id, claim.id),
            None => claim.id.to_owned(),
        };
        vec![name, cell(&claim.source()), claim.check.name().to_owned(), verdict.clone()]
    });
    text.push_str(&table(&["claim", "source", "check", "verdict"], rows));
    let unmeasured: Vec<&Outcome> = outcomes.iter().filter(|outcome| outcome.circumstances.is_none()).collect();
    if !unmeasured.is_empty() {
        text.push_str("\nWithout figures:\n\n");
        unmeasured.iter().for_each(|outcome| {
            text.push_str(&format!("- {}: {}\n", outcome.experiment.claim.id, plain(&outcome.reason)))
        });
    }
    outcomes
        .iter()
        .zip(&verdicts)
        .filter(|(outcome, _)| outcome.circumstances.is_some())
        .for_each(|(outcome, verdict)| text.push_str(&section(outcome, verdict)));
    text
}

fn section(outcome: &Outcome, verdict: &str) -> String {
    let Experiment { claim, parameters, choices, .. } = outcome.experiment;
    let mut text = format!(
        "\n## {}\n\n{}.\n\n- {}: {}\n- to show: {}\n{}- verdict: **{}**",
        claim.id,
        plain(&claim.source()),
        claim.lead(),
        plain(claim.says),
        plain(claim.must_show()),
        claim.ruling.map(|ruling| format!("- ruling: {}\n", plain(ruling))).unwrap_or_default(),
        verdict
    );
    match outcome.reason.is_empty() {
        true => text.push('\n'),
        false => text.push_str(&format!("; {}\n", plain(&outcome.reason))),
    }
    outcome.notes().iter().for_each(|note| text.push_str(&format!("- note: {}\n", plain(note))));
    if let Some(circumstances) = &outcome.circumstances {
        text.push_str(&format!("- run: `{}`: {}\n\n", command(circumstances), plain(&under(circumstances))));
    }
    let criteria = outcome.judgement.criteria.iter().map(|criterion| {
        let came = match criterion.holds || criterion.role != Role::Judged {
            true => cell(&came(criterion)),
            false => format!("**{}**", cell(&came(criterion))),
        };
        let measured = criterion.measured.to_string();
        let told = [&criterion.what, &measured, &criterion.unit, published(criterion), &criterion.must_be].map(cell);
        told.into_iter().chain([came]).collect()
    });
    text.push_str(&table(&["measured", "", "unit", claim.lead(), "must be", ""], criteria));
    for Table { title, head, rows } in &outcome.judgement.tables {
        let head: Vec<&str> =
            head.iter().enumerate().map(|(place, name)| if place == 0 { title.as_str() } else { name }).collect();
        let rows = rows.iter().map(|row| row.iter().map(|text| cell(text)).collect());
        text.push_str(&format!("\n{}", table(&head, rows)));
    }
    let rows =
        parameters.iter().map(|parameter| [parameter.what, parameter.value, parameter.source].map(cell).to_vec());
    text.push_str(&format!("\n{}", table(&["parameter", "value", "source"], rows)));
    let rows = choices.iter().map(|choice| [choice.open, choice.taken, choice.why].map(cell).to_vec());
    text.push_str(&format!("\n{}", table(&["open point", "choice", "reason"], rows)));
    text
}

/// The command that measures it with these inputs.
fn command(Circumstances { inputs, .. }: &Circumstances) -> String {
    let mut command = format!("nandscape lab run {}", inputs.claim);
    if inputs.seed != 1 {
        command.push_str(&format!(" --seed {}", inputs.seed));
    }
    match inputs.effort {
        effort if effort == EffortOf::new(Effort::FULL, Clock::Virtual) => {}
        effort if effort == EffortOf::new(Effort::FULL, Clock::Wall) => {}
        EffortOf::Virtual { .. } => command.push_str(" --quick"),
        EffortOf::Wall { rounds, slice_ms } => command.push_str(&format!(" --rounds {rounds} --slice-ms {slice_ms}")),
    }
    command
}

fn table(head: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let line = |cells: &[String]| {
        let cells: Vec<String> =
            cells.iter().map(|cell| if cell.is_empty() { String::new() } else { format!(" {cell} ") }).collect();
        format!("|{}|\n", cells.join("|"))
    };
    let head: Vec<String> = head.iter().map(|name| cell(name)).collect();
    let mut text = line(&head);
    text.push_str(&format!("|{}\n", "---|".repeat(head.len())));
    rows.for_each(|row| text.push_str(&line(&row)));
    text
}

/// Escapes text for a table cell. Links are generated here and are kept.
fn cell(text: &str) -> String {
    plain(text).replace('|', "\\|")
}

/// Escapes Markdown's special characters.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '*' | '_' | '<' | '[' | ']' | '\\' => plain.extend(['\\', letter]),
            '\n' => plain.push(' '),
            letter => plain.push(letter),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_program_wins_a_tie() {
        let program = |sources: &str| Program { version: "1".to_owned(), sources: sources.to_owned() };
        let (own, first, other) = (program("own"), program("first"), program("other"));
        let most = |measured: &[&Program]| {
            let measured: Vec<Program> = measured.iter().map(|one| (*one).clone()).collect();
            most(&measured, &own).map(|most| most.sources.clone())
        };
        assert_eq!(most(&[&first, &own, &other]).as_deref(), Some("own"));
        assert_eq!(most(&[&first, &own, &other, &other]).as_deref(), Some("other"), "more results count more");
        assert_eq!(most(&[&first, &other]).as_deref(), Some("first"));
        assert_eq!(most(&[]), None);
    }

    #[test]
    fn cells_stay_whole() {
        let rows = [vec![cell("a|b"), cell("x_y\nz")]];
        let text = table(&["one", ""], rows.into_iter());
        assert_eq!(text, "| one ||\n|---|---|\n| a\\|b | x\\_y z |\n");
    }
}
