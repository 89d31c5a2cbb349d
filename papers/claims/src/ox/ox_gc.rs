//! Garbage collection of OX-Block by target rate: its cost to the host's updates, the data moved, the space reclaimed.
//!
//! Left out: time of the controller's processors. The drive here has none (`controller.processors`).

use anyhow::Result;
use nandscape_device_ftl_core::Stats;
use nandscape_sim::Span;

use crate::ox::rig::{CACHE, DATA, Drive, GEOMETRY, HOST, SCALE, SMALLER, TIMES, UNIT, WRITE_SIZE, every};
use nandscape_lab_ledger::claim::{Check, Claim, Kind, Paper};
use nandscape_lab_ledger::experiment::{Choice, Clock, Experiment, Parameter, Point, Run};
use nandscape_lab_ledger::figures::{Figures, Results, short};
use nandscape_lab_ledger::verdict::{Judgement, Published, Table, order};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    claim: Claim {
        id: "ox-gc",
        source: &[(Paper::Ox, "6.2.2, Fig. 6.9")],
        says: "5 GB data set, 20 GB of updates, 8 gc slots of 16 channels: 68 s without GC, 73 s at target rates 50, 75, 90, 78 and 79 s at 25 and 10; write amplification 1.016 and 1.034 (rates 90, 10) at the end of updates, 1.03 and 1.2 after GC alone; reclaimed 33.3 and 42.4%, then 62.6 and 91.3%",
        show: Some(
            "time, write amplification and reclaimed space do not fall from rate 90 to 10; 50, 75, 90 within 2% of each other in time",
        ),
        ruling: Some(
            "one sourced parameter set for all ox-* claims, processors on, `programmed` writes (6.1.9 has no \
                      write-back), every chunk above the target rate is recycled, one at a time a slot",
        ),
        check: Check::Order,
        kind: Kind::Result,
    },
    clock: Clock::Virtual,
    runs: 1,
    published: &[
        Published::of("time of the updates", "73, 73, 73, 78, 79 s").ratio(1.082),
        Published::of("write amplification at*", "1.016 (90%), 1.034 (10%)").ratio(1.0177),
        Published::of("write amplification after*", "1.03 (90%), 1.2 (10%)").ratio(1.165),
        Published::of("reclaimed at*", "33.3 (90%), 42.4 (10%)").ratio(1.273),
        Published::of("reclaimed after*", "62.6 (90%), 91.3 (10%)").ratio(1.458),
        Published::of("longest over*", "73 over 73"),
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
        Parameter { what: "data set, updates", value: "5 GiB, 20 GiB, each a sixteenth of it", source: "OX 6.2.2" },
        Parameter { what: "ftl.ox_block.gc_target", value: "10, 25, 50, 75, 90%", source: "OX 6.2.2" },
        Parameter { what: "ftl.ox_block.gc_slots", value: "8", source: "OX 6.2.2" },
        Parameter {
            what: "ftl.ox_block.gc_threshold",
            value: "2% of a channel's chunks: 10 GiB of 512 GiB; without collection 99.9%",
            source: "OX 6.2.2: twice the data set",
        },
    ],
    choices: &[
        SMALLER,
        WRITE_SIZE,
        Choice {
            open: "checkpoints",
            taken: "every 30 s of the thesis' time",
            why: "collected chunks are erased after a checkpoint; the thesis' longest interval",
        },
        Choice {
            open: "write amplification",
            taken: "units of the host's data programmed, moved ones included, over those that the host has had programmed",
            why: "the thesis counts how often data is duplicated by collection; log and tables are shown in addition",
        },
        Choice {
            open: "reclaimed space",
            taken: "garbage in chunks that were collected, over that and the garbage that is left",
            why: "a chunk that waits for a checkpoint has been collected; padding and copies that went out of date are garbage too",
        },
    ],
    points,
    judge,
};

/// Target rates in percent, from the least to the most aggressive, with the published seconds.
const RATES: [(u32, f64); 5] = [(90, 73.0), (75, 73.0), (50, 73.0), (25, 78.0), (10, 79.0)];
const NONE: &str = "no collection";
const UPDATES: u64 = (20 << 30) / SCALE / UNIT;

/// Figures that must not fall from a rate to the next lower one.
const SHOWN: [&str; 5] = [
    "time of the updates",
    "write amplification at their end",
    "write amplification after collection",
    "reclaimed at their end",
    "reclaimed after collection",
];

fn name(rate: u32) -> String {
    format!("target {rate}%")
}

fn points() -> Vec<Point> {
    let mut points = vec![Point::new(NONE, |run| measure("99.9%", "90%", run)).with("gc_threshold", "99.9%")];
    for (rate, _) in RATES {
        let target = format!("{rate}%");
        let point = Point::new(name(rate), move |run| measure("2%", &target, run));
        points.push(point.with("ftl.ox_block.gc_target", format!("{rate}%")));
    }
    points
}

fn measure(threshold: &str, target: &str, run: &Run<'_>) -> Result<Figures> {
    let mut changes = every(30.0);
    changes.push(format!("ftl.ox_block.gc_threshold={threshold}"));
    changes.push(format!("ftl.ox_block.gc_target={target}"));
    let mut drive = Drive::new(&changes, run.seed)?;
    let bytes = run.effort.of(DATA / UNIT) * UNIT;
    drive.write("write", bytes, bytes / UNIT)?;
    let (updates, before) = (run.effort.of(UPDATES), drive.stats());
    let took = drive.write("randwrite", bytes, updates)?;
    let at_end = drive.stats().since(&before);
    drive.collected()?;
    let idle = drive.stats().since(&before);
    drive.check()?;
    let mut figures = Figures::default();
    figures.add("time of the updates", took.as_s(), "s");
    figures.add("write amplification at their end", amplification(&at_end), "");
    figures.add("write amplification after collection", amplification(&idle), "");
    figures.add("reclaimed at their end", reclaimed(&at_end), "%");
    figures.add("reclaimed after collection", reclaimed(&idle), "%");
    figures.add("units of padding", idle.padding_units as f64, "");
    figures.add("chunks collected", idle.gc_blocks as f64, "");
    figures.add("units of tables and log", at_end.metadata_units as f64, "");
    Ok(figures)
}

fn amplification(stats: &Stats) -> f64 {
    (stats.host_units + stats.gc_units) as f64 / stats.host_units.max(1) as f64
}

/// The share of all garbage that was reclaimed, in percent.
fn reclaimed(stats: &Stats) -> f64 {
    let (gone, left) = (stats.upkeep.reclaimed_units as f64, stats.upkeep.garbage_units as f64);
    if gone > 0.0 { gone / (gone + left) * 100.0 } else { 0.0 }
}

impl Drive {
    /// Waits until no channel is being collected any more.
    fn collected(&mut self) -> Result<()> {
        let (sim, ssd) = (self.sim.clone(), self.ssd.clone());
        self.executor.block_on(async move {
            loop {
                // A channel that needs collection begins at once when another has ended.
                sim.sleep(Span::from_ms(20)).await;
                if ssd.ftl_stats().upkeep.channels_to_collect == 0 {
                    break;
                }
            }
        })?;
        Ok(())
    }
}

fn judge(results: &Results) -> Result<Judgement> {
    let mut judgement = Judgement::default();
    let names: Vec<String> = RATES.iter().map(|(rate, _)| format!("{rate}%")).collect();
    for figure in SHOWN {
        let values: Result<Vec<f64>> = RATES.iter().map(|(rate, _)| results.of(&name(*rate))?.number(figure)).collect();
        let ranking: Vec<(&str, Vec<f64>)> =
            names.iter().zip(values?).map(|(name, value)| (name.as_str(), vec![value])).collect();
        judgement.criteria.push(order::never_falls(figure, &ranking, ""));
    }
    let times: Result<Vec<f64>> =
        RATES[..3].iter().map(|(rate, _)| results.of(&name(*rate))?.number(SHOWN[0])).collect();
    let times = times?;
    let (low, high) = times.iter().fold((f64::MAX, 0f64), |(low, high), time| (low.min(*time), high.max(*time)));
    let apart = order::below("longest over shortest time at 90, 75 and 50%", high / low, "", 1.02);
    judgement.criteria.push(apart);
    judgement.tables.push(table(results)?);
    judgement.reason = "A channel is collected down to the threshold and not beyond: from a rate of 50% down, the threshold ends a \
        collection before the rate does, and these rates do the same; the thesis collects all chunks that a channel has targeted"
        .to_owned();
    Ok(judgement)
}

fn table(results: &Results) -> Result<Table> {
    let published = |rate: u32, end: &str| match rate {
        90 => end.split('|').next().unwrap_or_default().to_owned(),
        10 => end.split('|').nth(1).unwrap_or_default().to_owned(),
        _ => String::new(),
    };
    let mut rows = vec![vec![
        NONE.to_owned(),
        format!("{} (68)", short(results.of(NONE)?.number(SHOWN[0])? * SCALE as f64)),
        String::new(),
        String::new(),
        String::new(),
        String::new(),
    ]];
    for (rate, seconds) in RATES {
        let of = results.of(&name(rate))?;
        let cell = |figure: &str, end: &str| -> Result<String> {
            let (value, of_paper) = (of.number(figure)?, published(rate, end));
            let shown = if value < 10.0 { format!("{value:.3}") } else { format!("{value:.1}") };
            Ok(if of_paper.is_empty() { shown } else { format!("{shown} ({of_paper})") })
        };
        rows.push(vec![
            format!("{rate}%"),
            format!("{} ({seconds})", short(of.number(SHOWN[0])? * SCALE as f64)),
            cell(SHOWN[1], "1.016|1.034")?,
            cell(SHOWN[2], "1.03|1.2")?,
            cell(SHOWN[3], "33.3|42.4")?,
            cell(SHOWN[4], "62.6|91.3")?,
        ]);
    }
    let head = ["target", "updates, s x 16", "waf, end", "waf, after", "reclaimed, end, %", "reclaimed, after, %"];
    let title = "measured (published); the first columns at the end of the updates, the last when collection has ended";
    Ok(Table { title: title.to_owned(), head: head.map(str::to_owned).to_vec(), rows })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_lab_ledger::verdict::Verdict;

    fn results(change: impl Fn(u32, &str) -> Option<f64>) -> Results {
        let of = |rate: u32| {
            let mut figures = Figures::default();
            for figure in SHOWN {
                figures.add(figure, change(rate, figure).unwrap_or(5.0 - f64::from(rate) / 1e4), "");
            }
            figures
        };
        let rates = RATES.iter().map(|(rate, _)| (name(*rate), of(*rate)));
        Results(std::iter::once((NONE.to_owned(), of(100))).chain(rates).collect())
    }

    #[test]
    fn a_figure_that_falls_or_times_that_are_apart_are_a_miss() {
        let verdict = |change: &dyn Fn(u32, &str) -> Option<f64>| judge(&results(change)).unwrap().verdict();
        assert_eq!(verdict(&|_, _| None).0, Verdict::Reproduced);
        let (missed, reason) = verdict(&|rate, figure| (rate == 25 && figure == SHOWN[3]).then_some(1.0));
        assert!(missed == Verdict::Missed && reason.contains("reclaimed at their end"), "{reason}");
        let (missed, reason) = verdict(&|rate, figure| (rate > 60 && figure == SHOWN[0]).then_some(4.8));
        assert!(missed == Verdict::Missed && reason.contains("longest over shortest"), "{reason}");
    }
}
