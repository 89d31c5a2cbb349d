//! `cargo xtask bench`: speed and memory of the simulator, alone or against another revision.
//!
//! | file | what |
//! |---|---|
//! | `suite` | the benchmarks, and the figures taken from a run's report |
//! | `live`, `servers` | the live benchmarks; the servers under test and the reference servers |
//! | `nvme_tcp`, `target` | NVMe/TCP against a rival; servers that are reached by a URL |
//! | `guest`, `boot` | a drive in a Linux guest; the start of a guest, and an idle server |
//! | `instructions` | instructions of a command of a simulation, by stage |
//! | `served_instructions` | instructions of a server for a command, by stage |
//! | `neighbour` | the cost of one client of a live drive to another |
//! | `tails` | tails under fio with a technique, against the same drive or array without it |
//! | `cache` | servers with memcached's protocol: tails of the policies, and memcached with extstore |
//! | `dashboard` | the cost of an open dashboard page to the clients of a drive |
//! | `array` | commands to an array compared with those to a single drive |
//! | `parity` | the parity of eight pages |
//! | `price`, `options` | cost of the options: NAND timing, aging, scrubbing, placement, partitions, zones; which they are |
//! | `restart` | drives in files: time until they serve again, cost of a file |
//! | `state` | the set-up of a worn drive, from a saved state and without |
//! | `sweep` | a sweep on two cores, against one |
//! | `python` | the Python package compared with the command, and its policies with those in Rust |
//! | `durability` | OX-Block compared with the page FTL under the same load |
//! | `subject` | the program under test: this tree's, or another revision's |
//! | `calibration` | a fixed piece of work, so that figures of different machines can be related |
//! | `record` | raw results, kept under `bench/results` |
//! | `summary` | the table of medians and ratios |
//!
//! No benchmark passes or fails: speed is a ratio to a reference measured in the same session.

mod array;
mod boot;
mod cache;
mod calibration;
mod dashboard;
mod durability;
mod guest;
mod instructions;
mod live;
mod neighbour;
mod nvme_tcp;
mod options;
mod parity;
mod price;
mod python;
mod record;
mod restart;
mod served_instructions;
pub(crate) mod servers;
mod state;
mod subject;
mod suite;
mod summary;
mod sweep;
mod tails;
mod target;

use anyhow::{Context as _, bail};
use clap::Args;

use self::record::{Line, Machine, Record};
use self::subject::Subject;
use self::suite::{Benchmark, How, SUITE};
use crate::{clock, run, say};

/// Measure speed and memory of the release build. Raw results are added under bench/results, one file a session.
#[derive(Args)]
#[command(after_help = "\
Examples:
  cargo xtask bench                              all of them, five times
  cargo xtask bench --runs 1 --only reads        a first look at one
  cargo xtask bench --against main               this tree against a revision, run by run in turn
  cargo xtask bench --list                       what they are

Leave the machine alone meanwhile: other work shows in the figures, CPU seconds or not.")]
pub(crate) struct BenchArgs {
    /// Runs of each benchmark; figures are their medians
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    runs: u32,
    /// Build this revision too, and let its runs alternate with this tree's
    #[arg(long, value_name = "REV")]
    against: Option<String>,
    /// Measure programs optimised with a profile, as `cargo xtask release` builds them
    #[arg(long)]
    profiled: bool,
    /// Only this benchmark; may be repeated
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// List the benchmarks
    #[arg(long)]
    list: bool,
}

/// Measures.
pub(crate) fn run(args: &BenchArgs) -> anyhow::Result<()> {
    let chosen = choose(&args.only)?;
    if args.list {
        chosen.iter().for_each(|benchmark| say::line(&format!("{:18} {}", benchmark.name, benchmark.about)));
        return Ok(());
    }
    let mut subjects = vec![Subject::of_this_tree(args.profiled)?];
    if let Some(revision) = &args.against {
        subjects.push(Subject::of_revision(revision, args.profiled)?);
    }
    let machine = Machine::here();
    let mut record = Record::new(&run::root().join("bench/results"), &subjects[0].revision)?;
    say::line(&format!("\n{}, {} cores; raw results in {}\n", machine.cpu, machine.cores, record.shown()));
    let mut lines = Vec::new();
    for number in 1..=args.runs {
        for benchmark in chosen.iter().filter(|benchmark| number == 1 || !benchmark.is_exact()) {
            for (at, subject) in in_turn(&subjects, number) {
                let measured = measure(benchmark, (at, subject), number, &machine);
                let Some(line) = measured.with_context(|| format!("of {}", subject.revision))? else { continue };
                say::line(&summary::of_run(&line));
                record.add(&line)?;
                lines.push(line);
            }
        }
    }
    if record.is_empty() {
        bail!("nothing was measured; the lines above say why");
    }
    say::line(&format!("\n{}", summary::of_all(&chosen, &subjects, &lines)));
    Ok(())
}

fn choose(names: &[String]) -> anyhow::Result<Vec<&'static Benchmark>> {
    let find = |name: &String| SUITE.iter().find(|benchmark| benchmark.name == name).with_context(|| unknown(name));
    if names.is_empty() { Ok(SUITE.iter().collect()) } else { names.iter().map(find).collect() }
}

fn unknown(name: &str) -> String {
    let names: Vec<&str> = SUITE.iter().map(|benchmark| benchmark.name).collect();
    format!("--only {name}: no such benchmark; there are {}", names.join(", "))
}

/// The first program alternates from run to run, so that neither always gets the warm machine.
fn in_turn(subjects: &[Subject], run: u32) -> Vec<(usize, &Subject)> {
    let mut order: Vec<_> = subjects.iter().enumerate().collect();
    if run.is_multiple_of(2) {
        order.reverse();
    }
    order
}

fn measure(
    benchmark: &Benchmark,
    (at, subject): (usize, &Subject),
    run: u32,
    machine: &Machine,
) -> anyhow::Result<Option<Line>> {
    let calibration = calibration::measure();
    let (figures, report) = match benchmark.how {
        How::Sim { args, figures } => {
            let report = subject.report(args)?;
            let figures = figures(&report, &|| subject.flash_bytes(args))
                .with_context(|| format!("{}: the report lacks a figure", benchmark.name))?;
            (figures, report)
        }
        How::Own(own) | How::Exact(own) => match own(subject).with_context(|| benchmark.name)? {
            Some(measured) => measured,
            None => return Ok(None),
        },
    };
    if figures.iter().any(|figure| !figure.value.is_finite()) {
        bail!("{}: a run took no measurable time", benchmark.name);
    }
    Ok(Some(Line {
        date: clock::date(),
        subject: at,
        revision: subject.revision.clone(),
        machine: machine.clone(),
        benchmark: benchmark.name,
        run,
        calibration,
        figures,
        report,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_benchmark_is_chosen_by_name() {
        assert_eq!(choose(&[]).unwrap().len(), SUITE.len());
        assert_eq!(choose(&["reads".to_owned()]).unwrap()[0].name, "reads");
        let error = choose(&["raeds".to_owned()]).err().unwrap().to_string();
        assert!(error.starts_with("--only raeds: no such benchmark; there are reads,"), "{error}");
    }

    #[test]
    fn subjects_take_turns_at_being_first() {
        let subjects = ["a", "b"].map(Subject::named);
        let first = |run| in_turn(&subjects, run)[0];
        assert_eq!([1, 2, 3].map(|run| (first(run).0, first(run).1.revision.as_str())), [(0, "a"), (1, "b"), (0, "a")]);
    }
}
