//! The experiments on open-channel drives: runs of FOX in simulated time on the built-in drives of the papers, and throughputs
//! next to the published ones.

use anyhow::{Context as _, Result, anyhow, ensure};
use nandscape_device_ssd::{Profile, Resolved};
use nandscape_papers_fox::{Engines, Kind, Mix, Plan, Report, Wanted, simulated};

use nandscape_lab_ledger::claim::{Band, BandOf};
use nandscape_lab_ledger::experiment::{Choice, Effort, Parameter, Point, Run};
use nandscape_lab_ledger::figures::{Figures, Results};
use nandscape_lab_ledger::verdict::{Criterion, Table, ratio};

/// Blocks of each parallel unit.
const BLOCKS: u64 = 64;

/// The band of all throughputs.
pub(crate) const BAND: Band = Band { of: BandOf::Published, within: &[(0.85, 1.15)] };

/// Parameters of the Dragon Fire Card.
pub(crate) const CARD: Parameter = Parameter {
    what: "drive",
    value: "dfc-mlc: 8 channels of 4 parallel units, blocks of 512 pages of 32 KiB",
    source: "OX 4.1.1, 4.4.2.2",
};
/// Parameters of the drive by CNEX.
pub(crate) const WESTLAKE: Parameter = Parameter {
    what: "drive",
    value: "cnex-westlake: 16 channels of 8 parallel units, blocks of 512 pages of 32 KiB",
    source: "OX 4.4.3",
};
/// Parameters of the pattern.
pub(crate) const PATTERN: Parameter = Parameter {
    what: "pattern",
    value: "64 blocks of each parallel unit, 512 pages each, a page a command; each thread has one command at a time",
    source: "OX table 4.1, 4.3",
};
/// Where the times of the drives are from.
pub(crate) const TIMES: Choice = Choice {
    open: "the times of the flash, of the channels and of the firmware",
    taken: "those of the profile, from the throughput of one parallel unit, that of reads of one channel, the bands of writes, and what one thread writes to \
            all channels of the card in turn",
    why: "the thesis has no others; the figures they are taken from are no test of them",
};
/// How units of a channel of the card share it.
pub(crate) const ROWS: Choice = Choice {
    open: "when a unit of the card may program again",
    taken: "when all programs of its channel have ended: timing.interleaving = \"rows\", which has no time of its own",
    why: "4.4.2.1: a thread that returns to a unit waits for the completion of all previous writes. The sentence is about one thread on \
          one channel; of several the thesis supposes overhead of the card. It is taken for all threads, after units that wait for \
          nobody were found too fast (46 MB/s for four, with 1 thread or 4): one reading, which has no time to be fitted. It is 4% low \
          to 5% high for one thread, 7 to 11% low for several",
};
/// Why figures of the card miss.
pub(crate) const FIRMWARE: &str = "The thesis puts what the card lacks of scaling down to its firmware, and tells no times. In the model, \
     firmware delays a command and keeps no other waiting; programs of a channel wait for each other in rows";

/// A throughput of a table.
pub(crate) struct Case {
    /// The point.
    pub(crate) name: &'static str,
    /// MB/s, as published.
    pub(crate) published: f64,
    /// Reads or writes.
    pub(crate) kind: Kind,
    /// Channels, parallel units of each, and threads.
    pub(crate) shape: (u32, u32, u32),
    /// Pages of a command.
    pub(crate) vector: u32,
}

/// A case without vectors.
pub(crate) const fn case(name: &'static str, published: f64, kind: Kind, shape: (u32, u32, u32)) -> Case {
    Case { name, published, kind, shape, vector: 1 }
}

/// The points of cases.
pub(crate) fn points(profile: &'static str, cases: &'static [Case]) -> Vec<Point> {
    let point = |case: &'static Case| {
        let measure = move |run: &Run<'_>| {
            let plan = plan(case.shape, Mix::only(case.kind), run.effort);
            let report = measured(profile, &[], "round-robin", Plan { vector: case.vector, ..plan }, run)?;
            let mut figures = Figures::default();
            figures.add("throughput", report.mb_s.context("no time passed")?, "MB/s");
            Ok(figures)
        };
        let (channels, pus, threads) = case.shape;
        Point::new(case.name, measure)
            .with("channels", channels)
            .with("PUs of each", pus)
            .with("threads", threads)
            .with("pages a command", case.vector)
    };
    cases.iter().map(point).collect()
}

/// The criteria of cases, and a table of them.
pub(crate) fn criteria(cases: &[Case], results: &Results) -> Result<(Vec<Criterion>, Table)> {
    let (mut criteria, mut rows) = (Vec::new(), Vec::new());
    for case in cases {
        let measured = results.of(case.name)?.number("throughput")?;
        criteria.push(ratio::in_band(case.name, measured, case.published, BAND, 0));
        rows.push(vec![case.name.to_owned(), format!("{:.2}", case.published), format!("{measured:.2}")]);
    }
    let head = ["MB/s", "published", "measured"].map(str::to_owned).to_vec();
    Ok((criteria, Table { title: "throughput".to_owned(), head, rows }))
}

/// A plan of all pages.
pub(crate) fn plan((channels, pus, threads): (u32, u32, u32), mix: Mix, effort: Effort) -> Plan {
    let blocks = effort.of(BLOCKS) as u32;
    Plan { channels, pus, threads, blocks, first_block: 0, pages: 512, vector: 1, mix }
}

/// A built-in drive with changes.
pub(crate) fn profile(name: &str, changes: &[&str]) -> Result<Resolved> {
    let mut profile = Profile::load(name)?;
    changes.iter().try_for_each(|change| profile.set(change))?;
    Ok(profile.resolve()?)
}

/// The figures of one run of a new drive.
pub(crate) fn measured(name: &str, changes: &[&str], engine: &str, plan: Plan, run: &Run<'_>) -> Result<Report> {
    let engine = Engines::built_in().find(engine).map_err(|problem| anyhow!(problem))?;
    let wanted = Wanted { group: String::new(), name: String::new(), engine: engine.name().to_owned(), plan };
    let outcome = simulated(&profile(name, changes)?, run.seed, async |at| {
        nandscape_papers_fox::run(&at.sim, &at.host, &wanted.plan, &engine).await
    });
    let outcome = outcome.map_err(|problem| anyhow!(problem))??;
    ensure!(outcome.samples.iter().all(|sample| !sample.failed), "reads failed");
    (run.progress)(1.0);
    Ok(outcome.report(&wanted))
}
