//! The cost of OX-Block's checkpoints: the time of updates with a checkpoint every 30 s, every 10 s and never, and the volume of
//! the checkpoints' writes.
//!
//! Left out: time of the controller's processors. The drive here has none (`controller.processors`).

use anyhow::Result;

use crate::ox::rig::{CACHE, DATA, Drive, GEOMETRY, HOST, SCALE, SMALLER, TIMES, UNIT, WRITE_SIZE, every, never};
use nandscape_lab_ledger::claim::{Check, Claim, Kind, Paper};
use nandscape_lab_ledger::experiment::{Choice, Clock, Experiment, Parameter, Point, Run};
use nandscape_lab_ledger::figures::{Figures, Results, short};
use nandscape_lab_ledger::verdict::{Judgement, Published, Table, order};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    claim: Claim {
        id: "ox-checkpoint",
        source: &[(Paper::Ox, "Table 6.6")],
        says: "50 GB of updates: 189.13 s without, +9.39% with a checkpoint every 30 s, +32.66% every 10 s; persisted metadata at 30 s: 72.9% chunk, 26.4% map_L, 0.7% map_S",
        show: Some("none < 30 s < 10 s in time; chunk > map_L > map_S in bytes"),
        ruling: Some("as ox-gc; rule `seeds`"),
        check: Check::Order,
        kind: Kind::Result,
    },
    clock: Clock::Virtual,
    runs: 1,
    published: &[
        Published::of("time of the updates", "189.13; 9.39% more; 32.66% more").ratio(1.3266),
        Published::of("every 30 s: bytes*", "0.7, 26.4, 72.9%").ratio(104.0),
        Published::of("*bytes of each table", "chunk > map_L > map_S"),
    ],
    awaits: &[
        "one sourced set of parameters for all claims on OX-Block: processors on, writes that end when programmed, \
         every chunk above the target rate recycled, one at a time a slot",
    ],
    parameters: &[
        GEOMETRY,
        TIMES,
        CACHE,
        HOST,
        Parameter { what: "data set, updates", value: "5 GiB, 50 GiB, each a sixteenth of it", source: "OX 6.2.3" },
        Parameter {
            what: "ftl.ox_block.checkpoint_interval",
            value: "30 s and 10 s, each a sixteenth of it; 3600 s stands for never",
            source: "OX table 6.6",
        },
        Parameter { what: "ftl.ox_block.gc_target, gc_slots", value: "50%, 8", source: "OX 6.2.3" },
        Parameter { what: "ftl.ox_block.gc_threshold", value: "2%", source: "OX 6.2.2: 10 GiB, here of 512 GiB" },
        Parameter {
            what: "ftl.ox_block.map_memory",
            value: "512 MiB: all of the map",
            source: "OX table 6.4: 4,108 MB for the map of 2 TB",
        },
    ],
    choices: &[
        SMALLER,
        WRITE_SIZE,
        Choice {
            open: "which pages count",
            taken: "fragments that checkpoints have written; those that collections have moved are shown as well",
            why: "table 6.6 counts what is persisted during checkpoints",
        },
        Choice {
            open: "what a checkpoint takes from the host",
            taken: "time of planes, shared with the host's data; this is much less than published, so only the order is compared",
            why: "the thesis' checkpoints also take the controller's processors and lock tables, which this drive is set up without",
        },
    ],
    points,
    judge,
};

/// Names, intervals in seconds, and the published time, checkpoints, and megabytes of map_S, map_L and chunk_L.
const INTERVALS: [(&str, Option<f64>, [&str; 5]); 3] = [
    ("never", None, ["189.13", "", "", "", ""]),
    ("every 30 s", Some(30.0), ["206.89", "6", "2.81", "100.09", "276.75"]),
    ("every 10 s", Some(10.0), ["250.91", "18", "8.38", "313.34", "838.22"]),
];
const UPDATES: u64 = (50 << 30) / SCALE / UNIT;
const PAGE: f64 = 32_768.0;

fn points() -> Vec<Point> {
    let point = |(name, interval, _): (&'static str, Option<f64>, [&str; 5])| {
        Point::new(name, move |run| measure(interval, run)).with("checkpoint", name)
    };
    INTERVALS.into_iter().map(point).collect()
}

fn measure(interval: Option<f64>, run: &Run<'_>) -> Result<Figures> {
    let mut changes = interval.map_or_else(never, every);
    changes.extend(["ftl.ox_block.gc_threshold=2%".to_owned(), "ftl.ox_block.gc_target=50%".to_owned()]);
    let mut drive = Drive::new(&changes, run.seed)?;
    let bytes = run.effort.of(DATA / UNIT) * UNIT;
    drive.write("write", bytes, bytes / UNIT)?;
    let before = drive.stats();
    let took = drive.write("randwrite", bytes, run.effort.of(UPDATES))?;
    let counted = drive.stats().since(&before).upkeep;
    let megabytes = |pages: u64| pages as f64 * PAGE / 1e6;
    let mut figures = Figures::default();
    figures.add("time of the updates", took.as_s(), "s");
    figures.add("checkpoints", counted.checkpoints as f64, "");
    figures.add("map_S", megabytes(counted.pages.map_small), "MB");
    figures.add("map_L", megabytes(counted.pages.map), "MB");
    figures.add("chunk_L", megabytes(counted.pages.blocks), "MB");
    figures.add("log", megabytes(counted.pages.log), "MB");
    figures.add("fragments moved", megabytes(counted.pages.moved), "MB");
    Ok(figures)
}

fn judge(results: &Results) -> Result<Judgement> {
    let mut judgement = Judgement::default();
    let times: Result<Vec<(&str, Vec<f64>)>> = INTERVALS
        .iter()
        .map(|(name, _, _)| Ok((*name, vec![results.of(name)?.number("time of the updates")?])))
        .collect();
    judgement.criteria.push(order::ranked("time of the updates", &times?, "s"));
    for (name, _, _) in &INTERVALS[1..] {
        let of = results.of(name)?;
        let ranking: Result<Vec<(&str, Vec<f64>)>> =
            ["map_S", "map_L", "chunk_L"].into_iter().map(|table| Ok((table, vec![of.number(table)?]))).collect();
        judgement.criteria.push(order::ranked(format!("{name}: bytes of each table"), &ranking?, "MB"));
    }
    judgement.tables.push(table(results)?);
    judgement.reason = "Here checkpoints share only the flash with the host's data; in the thesis they also \
        take the controller's processors and lock tables"
        .to_owned();
    Ok(judgement)
}

fn table(results: &Results) -> Result<Table> {
    let mut rows = Vec::new();
    for (name, _, published) in INTERVALS {
        let of = results.of(name)?;
        let with = |value: String, published: &str| {
            if published.is_empty() { value } else { format!("{value} ({published})") }
        };
        let mut row = vec![name.to_owned()];
        let time = of.number("time of the updates")? * SCALE as f64;
        row.push(with(format!("{time:.2}"), published[0]));
        row.push(with(short(of.number("checkpoints")?), published[1]));
        for (table, published) in ["map_S", "map_L", "chunk_L"].into_iter().zip(&published[2..]) {
            row.push(with(short(of.number(table)?), published));
        }
        row.push(short(of.number("log")?));
        rows.push(row);
    }
    let head = ["checkpoint", "updates, s x 16", "checkpoints", "map_S, MB", "map_L, MB", "chunk_L, MB", "log, MB"];
    let title = "measured (published); bytes are those of the scaled drive";
    Ok(Table { title: title.to_owned(), head: head.map(str::to_owned).to_vec(), rows })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_lab_ledger::verdict::Verdict;

    fn results(times: [f64; 3], bytes: [f64; 3]) -> Results {
        let of = |time: f64| {
            let mut figures = Figures::default();
            figures.add("time of the updates", time, "s");
            for (name, value) in ["map_S", "map_L", "chunk_L"].into_iter().zip(bytes) {
                figures.add(name, value, "MB");
            }
            ["checkpoints", "log"].into_iter().for_each(|name| figures.add(name, 1.0, ""));
            figures
        };
        Results(INTERVALS.iter().zip(times).map(|((name, _, _), time)| ((*name).to_owned(), of(time))).collect())
    }

    #[test]
    fn times_and_bytes_must_be_in_order() {
        let verdict = |times, bytes| judge(&results(times, bytes)).unwrap().verdict().0;
        assert_eq!(verdict([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]), Verdict::Reproduced);
        assert_eq!(verdict([1.0, 1.0, 3.0], [1.0, 2.0, 3.0]), Verdict::Missed);
        assert_eq!(verdict([1.0, 2.0, 3.0], [1.0, 3.0, 2.0]), Verdict::Missed);
    }
}
