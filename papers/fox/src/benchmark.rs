//! uOC-0, uOC-2 and uOC-3 as lists of runs (Picoli 2019, table 4.1). The table's figures of its drive are replaced by
//! those of the drive at hand: the pages of a block, the parallel units of a channel, the channels. uOC-1 is in `wear`.

use nandscape_host_open_channel::Geometry;

use crate::mix::{Kind, Mix};
use crate::plan::{Plan, most_vector, pages_of};

/// Blocks of each parallel unit.
const BLOCKS: u32 = 64;

/// A micro-benchmark.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Benchmark {
    /// uOC-0: mixes of reads and writes on one parallel unit.
    Mixes,
    /// uOC-0 on every parallel unit, one after the other.
    Units,
    /// uOC-2: the parallel units of a channel.
    IntraChannel,
    /// uOC-3: a parallel unit of each channel.
    InterChannel,
}

/// The user's choices; the rest is that of the table.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Choice {
    /// Blocks of each unit.
    pub blocks: Option<u32>,
    /// Pages of each block.
    pub pages: Option<u32>,
    /// Where the search for blocks begins.
    pub first_block: u32,
}

/// A run of a benchmark.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wanted {
    /// The runs that it belongs to: the table.
    pub group: String,
    /// Its name in the group.
    pub name: String,
    /// The engine.
    pub engine: String,
    /// Its description.
    pub plan: Plan,
}

impl Benchmark {
    /// All of them.
    pub const ALL: [Benchmark; 4] =
        [Benchmark::Mixes, Benchmark::Units, Benchmark::IntraChannel, Benchmark::InterChannel];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Benchmark::Mixes => "oc-0",
            Benchmark::Units => "oc-0-units",
            Benchmark::IntraChannel => "oc-2",
            Benchmark::InterChannel => "oc-3",
        }
    }

    /// Its runs.
    pub fn runs(self, geometry: &Geometry, choice: &Choice) -> Vec<Wanted> {
        let plan = |mix: &Mix| Plan {
            channels: 1,
            pus: 1,
            threads: 1,
            blocks: choice.blocks.unwrap_or(BLOCKS.min(geometry.chunks.saturating_sub(choice.first_block))),
            first_block: choice.first_block,
            pages: choice.pages.unwrap_or(pages_of(geometry)),
            vector: 1,
            mix: mix.clone(),
        };
        let both = [Kind::Write, Kind::Read].map(Mix::only);
        match self {
            Benchmark::Mixes => Mix::all()
                .iter()
                .map(|mix| {
                    let name = format!("{}% reads", mix.reads_percent());
                    wanted("mixes on one parallel unit", name, "sequential", plan(mix))
                })
                .collect(),
            Benchmark::Units => both
                .iter()
                .map(|mix| {
                    let plan = Plan { channels: geometry.groups, pus: geometry.pus, ..plan(mix) };
                    wanted("every parallel unit alone", of(mix).to_owned(), "sequential", plan)
                })
                .collect(),
            Benchmark::IntraChannel => both.iter().flat_map(|mix| intra(geometry, mix, &plan(mix))).collect(),
            Benchmark::InterChannel => both.iter().flat_map(|mix| inter(geometry, mix, &plan(mix))).collect(),
        }
    }
}

fn wanted(group: impl Into<String>, name: String, engine: &str, plan: Plan) -> Wanted {
    Wanted { group: group.into(), name, engine: engine.to_owned(), plan }
}

fn of(mix: &Mix) -> &'static str {
    if mix.has(Kind::Write) { "writes" } else { "reads" }
}

/// 1, 2, 4 and so on, up to a number and with it.
fn doubled(most: u32) -> Vec<u32> {
    let powers = std::iter::successors(Some(1_u32), |count| count.checked_mul(2));
    let mut counts: Vec<u32> = powers.take_while(|count| *count < most).collect();
    counts.push(most);
    counts
}

fn intra(geometry: &Geometry, mix: &Mix, plan: &Plan) -> Vec<Wanted> {
    let mut runs = Vec::new();
    for (threads, alone) in [("a thread for each parallel unit", false), ("one thread", true)] {
        for pus in doubled(geometry.pus) {
            let plan = Plan { pus, threads: if alone { 1 } else { pus }, ..plan.clone() };
            let group = format!("{} on one channel, {threads}", of(mix));
            runs.push(wanted(group, format!("{pus} PU"), "round-robin", plan));
        }
    }
    runs
}

fn inter(geometry: &Geometry, mix: &Mix, plan: &Plan) -> Vec<Wanted> {
    let all = Plan { channels: geometry.groups, ..plan.clone() };
    let mut runs = Vec::new();
    for vector in doubled(geometry.groups.min(most_vector(geometry))) {
        let plan = Plan { vector, ..all.clone() };
        let group = format!("{} over all channels in turn, vectors", of(mix));
        runs.push(wanted(group, format!("{vector} pages"), "round-robin", plan));
    }
    for threads in doubled(geometry.groups) {
        let plan = Plan { threads, ..all.clone() };
        let group = format!("{} over all channels in turn, threads", of(mix));
        runs.push(wanted(group, format!("{threads} threads"), "round-robin", plan));
    }
    for channels in doubled(geometry.groups) {
        let plan = Plan { channels, threads: channels, ..all.clone() };
        let group = format!("{}, a thread for each channel", of(mix));
        runs.push(wanted(group, format!("{channels} channels"), "round-robin", plan));
    }
    let plan = Plan { pus: geometry.pus, threads: geometry.groups * geometry.pus, ..all };
    let group = format!("{}, a thread for each parallel unit of all channels", of(mix));
    runs.push(wanted(group, format!("{} threads", plan.threads), "round-robin", plan));
    runs
}
