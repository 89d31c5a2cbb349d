//! `nandscape lab`: measures the claims of the source papers.

use std::io::IsTerminal as _;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use nandscape_lab_ledger::experiment::Experiment;
use nandscape_lab_ledger::{
    Durations, Effort, Folder, Outcome, Recorded, Score, Sensitivity, Session, Verdict, Watch, outcome, show,
};
use nandscape_lab_run::process_cpu;
use nandscape_papers_claims::LEDGER;
use nandscape_sim::Span;

use crate::failure::Failure;
use crate::numbers::whole;
use crate::output;

/// Measure the claims of the source papers, and judge them.
///
/// Each claim has an experiment, and fixed rules give its verdict. Experiments in simulated time give the same figures on
/// any machine, with any number of jobs. Experiments in real time need Linux and two cores, run alone, and measure the
/// machine as well: keep it otherwise idle.
#[derive(Args)]
#[command(arg_required_else_help = true)]
#[command(after_help = "\
Examples:
  nandscape lab list
        every claim, and what results there are
  nandscape lab list femu-gc-schemes
        one claim: parameters, their sources, what the paper leaves open
  nandscape lab run femu-registers            measure one
  nandscape lab run all --quick               a first look at all
  nandscape lab report > verdicts.md          what is in lab-results, as a page
  nandscape lab score                         results reproduced, by paper
  nandscape lab costs hiops-kv --quick        which costs of the host decide

Exit status: 0 when done, 1 when a point failed or results cannot be written, 2 for bad usage.")]
pub(crate) struct LabArgs {
    #[command(subcommand)]
    command: LabCommand,
}

#[derive(Subcommand)]
enum LabCommand {
    /// List the claims with the verdicts of your results and of the documentation, or show some of them in full
    List(ListArgs),
    /// Measure claims: published and measured figures, verdict, and the reason for misses
    Run(RunArgs),
    /// Summarise all results of a folder as Markdown
    Report(ReportArgs),
    /// Count the verdicts by paper: reproduced, in part, missed, to be run again, not built
    Score(ScoreArgs),
    /// Measure claims with each cost of their host at half and at twice its value, and list what flips
    Costs(CostsArgs),
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  nandscape lab list
  nandscape lab list femu-delay
  nandscape lab list --json --out lab-results

Exit status: 0 when listed, 2 for bad usage or results that cannot be read.")]
struct ListArgs {
    /// Claims to show in full
    ids: Vec<String>,
    /// Where results are
    #[arg(long, value_name = "DIR", default_value = "lab-results")]
    out: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// How points are measured.
#[derive(Args)]
struct PointArgs {
    /// Where results go
    #[arg(long, value_name = "DIR", default_value = "lab-results")]
    out: PathBuf,
    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole, allow_negative_numbers = true)]
    seed: u64,
    /// Points in simulated time that run in parallel [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1_024))]
    jobs: Option<u16>,
    /// Measure existing points again
    #[arg(long)]
    fresh: bool,
}

impl PointArgs {
    /// A session of an effort.
    ///
    /// # Errors
    /// When the folder cannot be used: bad input, found before anything runs.
    fn session(&self, effort: Effort) -> Result<Session, Failure> {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        let session = Session {
            folder: Folder::at(&self.out),
            seed: self.seed,
            effort,
            jobs: self.jobs.map_or_else(cores, usize::from),
            fresh: self.fresh,
            varied: None,
        };
        drop(session.folder.lock().map_err(|error| Failure::Input(error.context("--out")))?);
        Ok(session)
    }
}

#[derive(Args)]
#[command(after_help = "\
Results are kept in the folder --out, one file per point. Existing points with the same parameters, seed, effort and program are
not measured again, so an interrupted run resumes where it stopped.

Exit status: 0 when everything requested has been measured or cannot be measured here, with any verdicts; 1 when a point
failed or results cannot be written; 2 for bad usage. With --strict, 1 also when a claim was missed or not measured.

Examples:
  nandscape lab run femu-registers
  nandscape lab run femu-gc-schemes --jobs 8 --seed 2 --out second-seed
  nandscape lab run femu-delay --rounds 50 --fresh
  nandscape lab run all --json > verdicts.json
  nandscape lab run all --fresh --durations papers/claims/durations.txt
        the processor times that `nandscape lab list` shows")]
struct RunArgs {
    /// Claims, or `all`; see `nandscape lab list`
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    #[command(flatten)]
    points: PointArgs,
    /// A first look: a tenth of the requests, 4 rounds of 50 ms
    #[arg(long)]
    quick: bool,
    /// In real time: rounds, in each of which the compared alternatives run once [default: 20]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: Option<u32>,
    /// In real time: length of a slice in milliseconds [default: 100]
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=60_000))]
    slice_ms: Option<u64>,
    /// Refused: an experiment fixes its parameters
    #[arg(long, value_name = "KEY=VALUE", hide = true, value_parser = no_set)]
    set: Option<String>,
    /// Write the processor time of each claim to this table, one claim after the other; lines of other claims stay
    #[arg(long, value_name = "FILE", requires = "fresh", conflicts_with_all = ["quick", "rounds", "slice_ms"])]
    durations: Option<PathBuf>,
    /// Exit with status 1 if a claim is missed or not measured
    #[arg(long)]
    strict: bool,
    /// Print one JSON object, with all figures
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  nandscape lab report > verdicts.md
  nandscape lab report --html > verdicts.html
  nandscape lab report --out second-seed --json > verdicts.json

Exit status: 0 when printed, 2 for bad usage or results that cannot be read.")]
struct ReportArgs {
    /// Where results are
    #[arg(long, value_name = "DIR", default_value = "lab-results")]
    out: PathBuf,
    /// Print one JSON object, with all figures
    #[arg(long, conflicts_with = "html")]
    json: bool,
    /// Print a page of HTML
    #[arg(long)]
    html: bool,
}

#[derive(Args)]
#[command(after_help = "\
The table is Markdown, between the two comments that mark it in README.md.

Examples:
  nandscape lab score
  nandscape lab score --out second-seed
  nandscape lab score --page docs/validation/claims.md

Exit status: 0 when printed, 2 for bad usage, or results or a page that cannot be read.")]
struct ScoreArgs {
    /// Where results are
    #[arg(long, value_name = "DIR", default_value = "lab-results", conflicts_with = "page")]
    out: PathBuf,
    /// Count the verdicts of a page that `nandscape lab report` wrote
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
    /// Print the verdict of each claim of that page instead, a line each: docs/validation/verdicts.txt
    #[arg(long, requires = "page")]
    verdicts: bool,
}

#[derive(Args)]
#[command(after_help = "\
Each cost is screened with one seed. Where a criterion or the verdict differs, three seeds are measured, as for a verdict; only what differs
then counts. Results are kept below the folder --out, in costs, and are not measured again.

Examples:
  nandscape lab costs hiops-handler --quick
  nandscape lab costs hiops-kv --key host.switch --key host.packet_in
  nandscape lab costs all > costs.md

Exit status: 0 when printed, 1 when a point failed or results cannot be written, 2 for bad usage.")]
struct CostsArgs {
    /// Claims whose costs have no published value, or `all` of them
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    /// Only this cost; may be repeated
    #[arg(long, value_name = "COST")]
    key: Vec<String>,
    #[command(flatten)]
    points: PointArgs,
    /// A first look: a tenth of the requests, one seed
    #[arg(long)]
    quick: bool,
}

/// Runs the command.
pub(crate) fn run(args: &LabArgs) -> Result<(), Failure> {
    match &args.command {
        LabCommand::List(args) => list(args),
        LabCommand::Run(args) => measure(args),
        LabCommand::Report(args) => report(args),
        LabCommand::Score(args) => score(args),
        LabCommand::Costs(args) => costs(args),
    }
}

fn list(args: &ListArgs) -> Result<(), Failure> {
    let asked = if args.ids.is_empty() {
        LEDGER.experiments.to_vec()
    } else {
        LEDGER.find(&args.ids).map_err(Failure::Input)?
    };
    let folder = Folder::at(&args.out);
    let held = || asked.iter().map(|experiment| Outcome::held(experiment, &folder)).collect::<Vec<Outcome>>();
    if args.json {
        return output::result(&outcome::to_json_with(&held(), &LEDGER.recorded()));
    }
    if args.ids.is_empty() {
        let outcomes = held();
        return output::result(&show::list(&LEDGER, &outcomes));
    }
    let entries: Vec<String> = asked.iter().map(|experiment| show::entry(&LEDGER, experiment)).collect();
    output::result(&entries.join("\n"))
}

/// The outcomes of all experiments in a folder of results.
fn held(out: &Path) -> Result<Vec<Outcome>, Failure> {
    let folder = Folder::at(out);
    if !folder.path().is_dir() {
        return Err(Failure::Input(anyhow::anyhow!(
            "--out {}: there is no such folder; `nandscape lab run all` makes lab-results, and `nandscape lab score --page \
             docs/validation/claims.md` counts the verdicts of the documentation",
            out.display()
        )));
    }
    Ok(LEDGER.experiments.iter().map(|experiment| Outcome::held(experiment, &folder)).collect())
}

/// Bytes of a table of durations at most.
const MOST_OF_DURATIONS: u64 = 1 << 20;
/// Bytes of a page of claims at most.
const MOST_OF_PAGE: u64 = 64 << 20;

fn score(args: &ScoreArgs) -> Result<(), Failure> {
    let text = match &args.page {
        None => Score::of(&LEDGER, &held(&args.out)?).map_err(Failure::Input)?.block(),
        Some(page) => nandscape_files::input::text(page, MOST_OF_PAGE, "page of claims")
            .map_err(anyhow::Error::from)
            .and_then(|text| match args.verdicts {
                true => Recorded::of_page(&text).map(|recorded| recorded.text(&LEDGER)),
                false => Score::of_page(&LEDGER, &text).map(|score| score.block()),
            })
            .map_err(|error| Failure::Input(error.context(format!("--page {}", page.display()))))?,
    };
    output::result(&text)
}

fn report(args: &ReportArgs) -> Result<(), Failure> {
    let outcomes = held(&args.out)?;
    let text = match (args.json, args.html) {
        (true, _) => outcome::to_json(&outcomes),
        (_, true) => show::page(&outcomes, &show::report(&LEDGER, &outcomes)),
        _ => show::report(&LEDGER, &outcomes),
    };
    output::result(&text)
}

fn measure(args: &RunArgs) -> Result<(), Failure> {
    let asked = LEDGER.find(&args.ids).map_err(Failure::Input)?;
    let base = if args.quick { Effort::QUICK } else { Effort::FULL };
    let effort = Effort {
        rounds: args.rounds.unwrap_or(base.rounds),
        slice: args.slice_ms.map_or(base.slice, Span::from_ms),
        ..base
    };
    let session = args.points.session(effort)?;
    let mut watch = Screen { bar: bar(), json: args.json, failed: None };
    let outcomes = match &args.durations {
        None => session.run(&asked, &mut watch).map_err(Failure::Run)?.ok_or_else(interrupted)?,
        Some(table) => one_by_one(&session, &asked, table, &mut watch)?,
    };
    watch.bar.finish_and_clear();
    if let Some(failure) = watch.failed.take() {
        return Err(failure);
    }
    if args.json {
        output::result(&outcome::to_json(&outcomes))?;
    }
    judge(&outcomes, args.strict)
}

/// A part of the claims is not judged as all of them.
fn interrupted() -> Failure {
    Failure::Run(anyhow::anyhow!("interrupted before all claims were decided; the same command continues"))
}

/// Runs one claim after the other, and writes the processor time of each into a table.
fn one_by_one(
    session: &Session,
    asked: &[&'static Experiment],
    table: &Path,
    watch: &mut Screen,
) -> Result<Vec<Outcome>, Failure> {
    let of_table = |error: anyhow::Error| Failure::Input(error.context(format!("--durations {}", table.display())));
    let mut durations = match table.symlink_metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Durations::default()),
        _ => nandscape_files::input::text(table, MOST_OF_DURATIONS, "table of durations")
            .map_err(anyhow::Error::from)
            .and_then(|text| Durations::parse(&text)),
    }
    .map_err(of_table)?;
    nandscape_files::output::check_can_write(table).map_err(|error| of_table(error.into()))?;
    let ids = || LEDGER.experiments.iter().map(|experiment| experiment.claim.id);
    let mut outcomes = Vec::new();
    for experiment in asked {
        let begun = process_cpu();
        let ended = session.run(&[*experiment], watch).map_err(Failure::Run)?.ok_or_else(interrupted)?;
        if ended.iter().all(|outcome| outcome.circumstances.is_some()) {
            durations.set(experiment.claim.id, (process_cpu() - begun).as_s());
            let written = nandscape_files::output::replace(table, durations.text(ids()).as_bytes());
            written.map_err(|error| Failure::Run(anyhow::anyhow!("--durations {}: {error}", table.display())))?;
        }
        outcomes.extend(ended);
    }
    Ok(outcomes)
}

fn no_set(change: &str) -> Result<String, String> {
    Err(format!(
        "an experiment fixes its parameters. `nandscape lab list ID` shows its drive and load: run them with \
         `nandscape sim --set {change} ...`, or change the experiment's file below papers/claims (docs/lab.md)"
    ))
}

/// The claims that were asked for, each with the costs that are varied.
fn costs_of(args: &CostsArgs) -> Result<Vec<(&'static Experiment, Vec<&'static str>)>, Failure> {
    let wrong = |text: String| Failure::Input(anyhow::anyhow!("{text}"));
    let is_all = args.ids.iter().any(|id| id == "all");
    let mut found = Vec::new();
    for experiment in LEDGER.find(&args.ids).map_err(Failure::Input)? {
        let id = experiment.claim.id;
        let all = LEDGER.costs_of(id);
        if all.is_empty() && !is_all {
            let valid: Vec<&str> = LEDGER.costs.iter().map(|costs| costs.id).collect();
            return Err(wrong(format!("{id}: no cost of it can be varied; valid are {}, or all", valid.join(", "))));
        }
        let unknown = args.key.iter().find(|key| !all.contains(&key.as_str()));
        if let Some(key) = unknown.filter(|_| !all.is_empty()) {
            return Err(wrong(format!("--key {key}: {id} has no such cost; valid are {}", all.join(", "))));
        }
        let asked = all.into_iter().filter(|key| args.key.is_empty() || args.key.iter().any(|asked| asked == key));
        let asked: Vec<&'static str> = asked.collect();
        if !asked.is_empty() {
            found.push((experiment, asked));
        }
    }
    Ok(found)
}

fn costs(args: &CostsArgs) -> Result<(), Failure> {
    let asked = costs_of(args)?;
    let session = args.points.session(if args.quick { Effort::QUICK } else { Effort::FULL })?;
    let mut watch = Quiet { bar: bar() };
    for (experiment, keys) in asked {
        let measured = Sensitivity::measure(&session, experiment, &keys, &mut watch).map_err(Failure::Run)?;
        let Some(measured) = measured else { break };
        watch.bar.suspend(|| output::result(&measured.markdown()))?;
    }
    watch.bar.finish_and_clear();
    Ok(())
}

/// The run has failed if claims failed, or with `--strict` were not reproduced.
fn judge(outcomes: &[Outcome], strict: bool) -> Result<(), Failure> {
    let wrong: Vec<String> = outcomes
        .iter()
        .filter(|outcome| outcome.verdict == Verdict::Failed || strict && outcome.verdict != Verdict::Reproduced)
        .map(|outcome| format!("{} {}", outcome.experiment.claim.id, outcome.verdict()))
        .collect();
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(Failure::Run(anyhow::anyhow!("{}", wrong.join(", ")))),
    }
}

/// Progress on a terminal, and outcomes as they arrive.
struct Screen {
    bar: ProgressBar,
    json: bool,
    failed: Option<Failure>,
}

/// Progress on a terminal, without the outcomes.
struct Quiet {
    bar: ProgressBar,
}

impl Watch for Quiet {
    fn begun(&mut self, points: usize) {
        self.bar.inc_length(points as u64);
    }

    fn measured(&mut self, claim: &str, point: &str) -> ControlFlow<()> {
        self.bar.set_message(format!("{claim}: {point}"));
        self.bar.inc(1);
        ControlFlow::Continue(())
    }
}

fn bar() -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr_with_hz(10));
    let style =
        ProgressStyle::with_template("{bar:30} {pos}/{len} points {elapsed} {wide_msg}").expect("a valid template");
    bar.set_style(style);
    bar
}

impl Watch for Screen {
    fn note(&mut self, text: &str) {
        self.bar.suspend(|| output::note(text));
    }

    fn begun(&mut self, points: usize) {
        self.bar.set_length(points as u64);
    }

    fn measured(&mut self, claim: &str, point: &str) -> ControlFlow<()> {
        self.bar.set_message(format!("{claim}: {point}"));
        self.bar.inc(1);
        ControlFlow::Continue(())
    }

    fn share(&self, claim: &str, share: f64) {
        self.bar.set_message(format!("{claim}: {:.0}%", share * 100.0));
        self.bar.tick();
    }

    fn decided(&mut self, outcome: &Outcome) {
        if self.json {
            return;
        }
        let printed = self.bar.suspend(|| output::result(&format!("{}\n", show::outcome(outcome))));
        if let Err(failure) = printed {
            self.failed.get_or_insert(failure);
        }
    }
}
