//! A component of your own in OX-Block: one that chooses the blocks to collect. `docs/ftl-components.md` explains it line by line.
//!
//! Windowed greedy considers the blocks that became full longest ago, and takes the block with the most garbage among them:
//! between "oldest" and "most_garbage". The example registers it, runs the same load with all three, and prints the resulting
//! write amplification.
//!
//!     cargo run --release -p nandscape --example ftl_component

use std::error::Error;
use std::fmt::Write as _;
use std::io::Write as _;
use std::rc::Rc;

use nandscape::ftl::registry::{self, Component, MakeGarbageCollection};
use nandscape::ftl::{BlockId, Candidate, Choice, GarbageCollection};
use nandscape::run::{Precondition, Report, Simulation};
use nandscape::ssd::Profile;
use nandscape::workload::{JobSpec, Limit, Workload};

/// Blocks of a channel that are considered.
const WINDOW: usize = 12;

/// P8-GC: the block with the most garbage among the oldest.
struct Windowed;

impl GarbageCollection for Windowed {
    fn target(&self, blocks: &mut dyn Iterator<Item = (BlockId, Candidate)>) -> Option<BlockId> {
        let mut oldest: Vec<(BlockId, Candidate)> = blocks.collect();
        oldest.sort_by_key(|(block, candidate)| (std::cmp::Reverse(candidate.age), block.0));
        oldest.truncate(WINDOW);
        oldest.into_iter().min_by_key(|(_, candidate)| candidate.valid).map(|(block, _)| block)
    }
}

/// Registers the component under its name. From here on, profiles can set `ftl.ox.gc = "windowed"`.
fn register() -> Result<(), registry::Taken> {
    let make: MakeGarbageCollection = |_| Box::new(Windowed);
    let about = "the block with the most garbage of those that became full longest ago";
    registry::register(Component::GarbageCollection(Choice::new("windowed", about, make)))
}

/// Writes a small drive several times over at random, with a collector by name.
fn run(gc: &str) -> Result<Report, Box<dyn Error>> {
    let mut profile = Profile::load("default")?;
    profile.set_all([
        "ftl.kind=ox_block",
        "capacity=64MiB",
        "geometry.channels=2",
        "geometry.dies_per_channel=2",
        "geometry.pages_per_block=16",
        "buffer.size=256KiB",
        &format!("ftl.ox.gc={gc}"),
    ])?;
    let job = JobSpec { rw: "randwrite".parse()?, iodepth: 16, ..JobSpec::default() };
    // The first half fills the drive and is not counted.
    let workload = Workload { limit: Limit::Requests(60_000), warmup: 60_000, ..Workload::of(job) };
    let simulation = Simulation { check: true, ..Simulation::on(profile.resolve()?, Precondition::None, workload, 1) };
    Ok(simulation.run(Rc::new(()))?.into_drive().report)
}

/// The three collectors, with the write amplification of each.
fn table() -> Result<String, Box<dyn Error>> {
    let mut table = format!("{:<14}{:>8}{:>14}{:>14}\n", "ftl.ox.gc", "waf", "blocks", "units moved");
    for gc in ["most_garbage", "windowed", "oldest"] {
        let report = run(gc)?;
        let waf = report.waf.unwrap_or(f64::NAN);
        writeln!(table, "{gc:<14}{waf:>8.3}{:>14}{:>14}", report.gc.blocks, report.gc.pages_moved)?;
    }
    Ok(table)
}

fn main() -> Result<(), Box<dyn Error>> {
    register()?;
    Ok(std::io::stdout().lock().write_all(table()?.as_bytes())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_component_lies_between_the_built_in_ones() {
        register().expect("the name is free");
        let table = table().expect("the runs succeed");
        let moved =
            |line: &str| line.rsplit(' ').next().and_then(|moved| moved.parse::<u64>().ok()).expect("units moved");
        let rows: Vec<u64> = table.lines().skip(1).map(moved).collect();
        assert!(rows.len() == 3 && rows.is_sorted_by(|one, next| one < next), "{table}");
        let page = include_str!("../../docs/ftl-components.md");
        let shown: Vec<&str> = page.lines().map(str::trim).collect();
        let is_shown = shown.windows(4).any(|lines| lines.iter().copied().eq(table.lines()));
        assert!(is_shown, "docs/ftl-components.md shows another table than\n{table}");
    }
}
