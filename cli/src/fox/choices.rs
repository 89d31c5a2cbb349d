//! The meaning of the words on the command line, and which of them combine.

use nandscape_papers_fox::{Benchmark, Choice, Engines, Kind, Mix, Plan, Unit, Wanted, WearPlan};

use super::FoxArgs;
use super::measure::{USUAL, What};
use crate::failure::Failure;

/// Cycles of oc-1.
const CYCLES: u64 = 1_000;
/// Lines of oc-1 by default.
const LINES: u64 = 20;

fn bad(problem: String) -> Failure {
    Failure::Input(anyhow::anyhow!(problem))
}

/// What to run.
pub(super) fn what(args: &FoxArgs) -> Result<What, Failure> {
    let benchmark = Benchmark::ALL.into_iter().find(|benchmark| benchmark.name() == args.what);
    let engines = Engines::built_in();
    let is_wear = args.what == "oc-1";
    if benchmark.is_none() && !is_wear && engines.find(&args.what).is_err() {
        let names = Benchmark::ALL.iter().map(|benchmark| benchmark.name()).chain(["oc-1"]);
        let names: Vec<&str> = names.chain(engines.all().iter().map(|engine| engine.name())).collect();
        return Err(bad(format!("there is no benchmark or engine \"{}\"; there are {}", args.what, names.join(", "))));
    }
    let alone = benchmark.is_none() && !is_wear;
    for (option, given, fits, whose) in [
        ("--channels", args.channels.is_some(), alone, "an engine alone"),
        ("--pus", args.pus.is_some(), alone, "an engine alone"),
        ("--threads", args.threads.is_some(), alone, "an engine alone"),
        ("--mix", args.mix.is_some(), alone, "an engine alone"),
        ("--pages-per-command", args.pages_per_command.is_some(), alone, "an engine alone"),
        ("--blocks", args.blocks.is_some(), !is_wear, "runs on many blocks (--first-block names one)"),
        ("--cycles", args.cycles.is_some(), is_wear, "oc-1"),
        ("--every", args.every.is_some(), is_wear, "oc-1"),
    ] {
        if given && !fits {
            return Err(bad(format!("{option} is for {whose}, and not for {}; leave it out", args.what)));
        }
    }
    let FoxArgs { blocks, pages, first_block, .. } = *args;
    Ok(match benchmark {
        Some(benchmark) => What::Benchmark(benchmark, Choice { blocks, pages, first_block }),
        None if is_wear => {
            let cycles = args.cycles.unwrap_or(CYCLES);
            What::Wear(WearPlan {
                unit: Unit { channel: 0, pu: 0 },
                block: first_block,
                cycles,
                every: args.every.unwrap_or((cycles / LINES).max(1)),
                pages: pages.unwrap_or(USUAL),
            })
        }
        None => What::Alone(Wanted {
            group: args.what.clone(),
            name: args.mix.as_ref().map_or("WWWW".to_owned(), Mix::to_string),
            engine: args.what.clone(),
            plan: Plan {
                channels: args.channels.unwrap_or(1),
                pus: args.pus.unwrap_or(1),
                threads: args.threads.unwrap_or(1),
                blocks: blocks.unwrap_or(USUAL),
                first_block,
                pages: pages.unwrap_or(USUAL),
                vector: args.pages_per_command.unwrap_or(1),
                mix: args.mix.clone().unwrap_or(Mix::only(Kind::Write)),
            },
        }),
    })
}
