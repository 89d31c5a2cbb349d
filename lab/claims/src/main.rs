//! Measures claims: `cargo run --release -p nandscape-lab-claims -- femu-delay`.

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Parser;
use nandscape_lab_claims::CLAIMS;
use nandscape_lab_claims::claim::{Claim, Effort, Verdict};
use nandscape_sim::Span;

/// Published claims measured again.
///
/// Exit status: 0 when all were reproduced, 3 when one was missed, 1 when one could not be measured.
#[derive(Parser)]
#[command(name = "nandscape-lab-claims", arg_required_else_help = true, max_term_width = 110)]
#[command(after_help = "\
Examples:
  cargo run --release -p nandscape-lab-claims -- list
  cargo run --release -p nandscape-lab-claims -- femu-scalability
  cargo run --release -p nandscape-lab-claims -- all --json > claims.json

Claims in real time are about the machine too: build with --release, and leave it alone meanwhile.")]
struct Words {
    /// Names of claims, or `all`, or `list`
    #[arg(required = true)]
    claims: Vec<String>,
    /// One JSON object a claim, instead of tables
    #[arg(long)]
    json: bool,
    /// All points take turns, so often
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: u32,
    /// Time of a point in a round, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    slice_ms: u64,
}

fn main() -> ExitCode {
    match run(&Words::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(3),
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether all were reproduced.
fn run(words: &Words) -> anyhow::Result<bool> {
    let mut out = std::io::stdout().lock();
    let mut reproduced = true;
    let effort = Effort { rounds: words.rounds, slice: Span::from_ms(words.slice_ms) };
    for name in &words.claims {
        if name == "list" {
            CLAIMS.iter().try_for_each(|claim| writeln!(out, "{:20} {}", claim.id, claim.published))?;
            continue;
        }
        for claim in find(name)? {
            let outcome = claim.outcome(&effort).with_context(|| claim.id)?;
            reproduced &= outcome.verdict == Verdict::Reproduced;
            writeln!(out, "{}", if words.json { outcome.to_json() } else { outcome.to_text() })?;
        }
    }
    Ok(reproduced)
}

fn find(name: &str) -> anyhow::Result<Vec<&'static Claim>> {
    let found: Vec<&Claim> = CLAIMS.iter().filter(|claim| name == "all" || claim.id == name).collect();
    if found.is_empty() {
        let known: Vec<&str> = CLAIMS.iter().map(|claim| claim.id).collect();
        bail!("{name}: no such claim; there are {}", known.join(", "));
    }
    Ok(found)
}
