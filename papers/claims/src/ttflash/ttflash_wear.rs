//! Wear of planes under skewed writes: with the static layout of stripes, and with stripes that are shifted within their group of
//! planes, or move to another group.
//!
//! Left out: latencies.

use std::rc::Rc;

use anyhow::{Result, anyhow, ensure};
use nandscape_device_ftl_core::Plant;
use nandscape_device_media::{BlockId, PlaneId, StoreKind};
use nandscape_device_ssd::{Profile, Ssd};
use nandscape_drive::{HostMem, Issuer, QueueDrive, QueueId};
use nandscape_sim::{Executor, Rng};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

use crate::ttflash::rig::{DRIVE, WIDTH};
use nandscape_lab_ledger::claim::{Check, Claim, Kind, Paper};
use nandscape_lab_ledger::experiment::{Choice, Clock, Experiment, Parameter, Point, Run};
use nandscape_lab_ledger::figures::{Figures, Results, short};
use nandscape_lab_ledger::verdict::{Judgement, Table, order};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    claim: Claim {
        id: "ttflash-wear",
        source: &[(Paper::Li, "6.3.1")],
        says: "static layout wears unevenly under skewed writes; horizontal shifting and vertical migration even it out",
        show: None,
        ruling: None,
        check: Check::Order,
        kind: Kind::Design,
    },
    clock: Clock::Virtual,
    runs: 1,
    published: &[],
    awaits: &[],
    parameters: &[
        DRIVE,
        WIDTH,
        Parameter {
            what: "imbalance within stripes",
            value: "one unit of a stripe is written more often than the rest: its plane and that of the parity wear out",
            source: "Li 2020, 6.3.1 (1)",
        },
        Parameter {
            what: "imbalance across stripes",
            value: "stripes of one group of planes are written more often than others",
            source: "Li 2020, 6.3.1 (2)",
        },
    ],
    choices: &[
        Choice {
            open: "drive",
            taken: "profile ttflash with 2 GiB and 85% over-provisioning, as in ttflash-tail, all of it written",
            why: "a group takes stripes of others into a quarter of its spare pages, less its free blocks. With 1 GiB and 28% that is \
                  nothing, and no stripe migrates; on the whole drive it is not. The first run was on that smaller drive, and missed \
                  migration",
        },
        Choice {
            open: "the write buffer",
            taken: "512 KiB",
            why: "it keeps what is written often: the skew of what reaches the flash is what the layout has to do with",
        },
        Choice {
            open: "the skew",
            taken: "nine of ten writes of 4 KiB go to 256 of 74,899 stripes. Within: to one and the same column of all groups, by the \
                    second unit of stripes whose parity has the same place. Across: to any unit of stripes of one group",
            why: "the paper names MSNFS for the first and gives no figures; these are the two cases that its text describes",
        },
        Choice {
            open: "when stripes are moved",
            taken: "above a difference of 2 erases of a block, on average",
            why: "the paper leaves it open; as in the documentation of the keys",
        },
        Choice {
            open: "even",
            taken: "erases of the most worn plane over the mean of all. The static layout is uneven above 2; a technique evens out if at most half \
                    of what is above 1 is left, and the standard deviation over all planes falls, too",
            why: "the paper has no measure. The least worn plane tells nothing: a tenth of the writes is spread over all, which is less than \
                  a block a plane",
        },
    ],
    points,
    judge,
};

/// The two cases.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Skew {
    Within,
    Across,
}

const SKEWS: [(Skew, &str); 2] = [(Skew::Within, "within stripes"), (Skew::Across, "across stripes")];
/// What moves stripes, and its keys.
const LINES: [(&str, &[&str]); 4] = [
    (STATIC, &[]),
    (SHIFTED, &["ftl.rain.shift_above=2"]),
    (MIGRATED, &["ftl.rain.migrate_above=2"]),
    (BOTH, &["ftl.rain.shift_above=2", "ftl.rain.migrate_above=2"]),
];
const STATIC: &str = "static";
const SHIFTED: &str = "horizontal shifting";
const MIGRATED: &str = "vertical migration";
const BOTH: &str = "both";
/// The share of the excess that may be left.
const LEFT: f64 = 0.5;

const WRITES: u64 = 1_000_000;
const HOT_SHARE: f64 = 0.9;
const HOT_STRIPES: u64 = 256;
/// Units of data in a stripe, groups of planes, and rounds of stripes over all groups after which the parity is where it was.
const UNITS: u64 = 7;
const GROUPS: u64 = 8;
const ROUNDS: u64 = 8;

fn name(skew: &str, line: &str) -> String {
    format!("{skew}, {line}")
}

fn points() -> Vec<Point> {
    let mut points = Vec::new();
    for (skew, of) in SKEWS {
        for (line, changes) in LINES {
            let point = Point::new(name(of, line), move |run| measure(skew, changes, run));
            points.push(point.with("skew", of).with("stripes", line));
        }
    }
    points
}

/// The unit that is written next, of `units`.
fn next_unit(skew: Skew, units: u64, rng: &mut Rng) -> u64 {
    if !rng.chance(HOT_SHARE) {
        return rng.below(units);
    }
    let number = rng.below(HOT_STRIPES);
    match skew {
        // All groups, in the rounds in which the parity has the first of its places.
        Skew::Within => (number / GROUPS * GROUPS * ROUNDS + number % GROUPS) * UNITS + 1,
        Skew::Across => number * GROUPS * UNITS + rng.below(UNITS),
    }
}

fn measure(skew: Skew, changes: &[&str], run: &Run<'_>) -> Result<Figures> {
    let mut profile = Profile::load("ttflash")?;
    profile.set_all(["capacity=2GiB", "ftl.over_provisioning=85%", "buffer.size=512KiB"])?;
    profile.set_all(changes)?;
    let mut executor = Executor::new();
    let sim = executor.sim();
    let ssd = Ssd::new(&sim, &profile.resolve()?, StoreKind::None, run.seed.child("drive"))?;
    ssd.plant(Plant::Full, run.seed.child("plant"), &mut |_| ());
    let drive = QueueDrive::new(&sim, ssd.controller(), QueueId(1), 64)
        .map_err(|status| anyhow!("the drive has no queue pair: {status}"))?;
    let (issuer, mut rng, writes) = (Rc::new(Issuer::new(&sim)), run.seed.child("writes").rng(), run.effort.of(WRITES));
    let info = ssd.controller().info();
    let (blocks, units) = (info.unit_bytes / info.lba_bytes, info.bytes() / u64::from(info.unit_bytes));
    let begun = erases(&ssd);
    let written: Result<()> = executor.block_on(async {
        for number in 0..writes {
            let unit = next_unit(skew, units, &mut rng);
            let command = SubmissionEntry::blocks(IoOpcode::WRITE, 1, unit * u64::from(blocks), blocks);
            let done = issuer.execute(&*drive, command, HostMem::none()).await;
            ensure!(done.status == Status::SUCCESS, "write {number} failed: {}", done.status);
            if number % 4_096 == 0 {
                (run.progress)(number as f64 / writes as f64);
            }
        }
        Ok(())
    })?;
    written?;
    ssd.check().map_err(|fault| anyhow!("the drive is inconsistent after the run: {fault}"))?;
    let worn: Vec<f64> = erases(&ssd).iter().zip(&begun).map(|(now, then)| (now - then) as f64).collect();
    let (sum, stats) = (worn.iter().sum::<f64>(), ssd.ftl_stats());
    let mean = sum / worn.len() as f64;
    let over_mean = |erases: f64| if mean > 0.0 { erases / mean } else { 1.0 };
    let mut figures = Figures::default();
    figures.add("blocks a plane", f64::from(ssd.media().geometry().blocks_per_plane()), "");
    figures.add("erases of a plane, mean", mean, "");
    figures.add("most worn", over_mean(worn.iter().copied().fold(0.0, f64::max)), "");
    figures.add("least worn", over_mean(worn.iter().copied().fold(f64::INFINITY, f64::min)), "");
    let variance = worn.iter().map(|erases| (erases - mean).powi(2)).sum::<f64>() / worn.len() as f64;
    figures.add("deviation", over_mean(variance.sqrt()), "");
    figures.add("stripes moved", stats.rain.moved_stripes as f64, "");
    figures.add("write amplification", stats.programmed_units() as f64 / writes as f64, "");
    Ok(figures)
}

/// Erases of the blocks of each plane.
fn erases(ssd: &Ssd) -> Vec<u64> {
    let media = ssd.media();
    let of = |block: BlockId| u64::from(media.erases(block));
    (0..media.geometry().planes()).map(|plane| media.geometry().blocks_of(PlaneId(plane)).map(of).sum()).collect()
}

fn judge(results: &Results) -> Result<Judgement> {
    let mut judgement = Judgement::default();
    for ((_, skew), evens) in SKEWS.iter().zip([SHIFTED, MIGRATED]) {
        let most = |line: &str| results.of(&name(skew, line))?.number("most worn");
        let deviation = |line: &str| results.of(&name(skew, line))?.number("deviation");
        let fixed = most(STATIC)?;
        for line in [evens, BOTH] {
            let most = most(line)?;
            let left = if fixed > 1.0 { (most - 1.0) / (fixed - 1.0) } else { 1.0 };
            let what = format!("{skew}: what {line} leaves of the most worn plane's excess");
            judgement.criteria.push(order::at_most(what, left, "", LEFT));
            let (all, fixed) = (deviation(line)?, deviation(STATIC)?);
            let what = format!(
                "{skew}: standard deviation over the mean of all planes, {line}, below that of the static layout"
            );
            judgement.criteria.push(order::below(what, all, "", fixed));
        }
        judgement.criteria.push(order::above(format!("{skew}: most worn plane over the mean, static"), fixed, "", 2.0));
    }
    judgement.tables.push(table(results)?);
    judgement.reason = "A stripe is moved only if it is written far more often than others, as counters tell that stripes share, and only \
        while its group has room"
        .to_owned();
    Ok(judgement)
}

/// Figures of the table, and its head.
const COLUMNS: [(&str, &str); 6] = [
    ("erases of a plane, mean", "erases of a plane, mean"),
    ("most worn", "most worn over mean"),
    ("least worn", "least worn over mean"),
    ("deviation", "standard deviation over mean"),
    ("stripes moved", "stripes moved"),
    ("write amplification", "waf"),
];

fn table(results: &Results) -> Result<Table> {
    let mut rows = Vec::new();
    for (_, skew) in SKEWS {
        for (line, _) in LINES {
            let of = results.of(&name(skew, line))?;
            let row: Result<Vec<String>> = COLUMNS.iter().map(|(figure, _)| Ok(short(of.number(figure)?))).collect();
            rows.push([vec![name(skew, line)], row?].concat());
        }
    }
    let head = std::iter::once("").chain(COLUMNS.iter().map(|(_, head)| *head));
    Ok(Table { title: "erases of 64 planes".to_owned(), head: head.map(str::to_owned).collect(), rows })
}

#[cfg(test)]
mod tests {
    use nandscape_sim::Seed;

    use super::*;
    use nandscape_lab_ledger::verdict::Verdict;

    fn verdict(odd: impl Fn(&str, &str) -> Option<f64>) -> (Verdict, String) {
        let mut points = Vec::new();
        for (_, skew) in SKEWS {
            for (line, _) in LINES {
                let mut figures = Figures::default();
                let of_wear = ["most worn", "deviation"];
                COLUMNS
                    .iter()
                    .filter(|(figure, _)| !of_wear.contains(figure))
                    .for_each(|(figure, _)| figures.add(*figure, 1.0, ""));
                let usual = if line == STATIC { 4.0 } else { 1.2 };
                figures.add("deviation", usual / 2.0, "");
                figures.add("most worn", odd(skew, line).unwrap_or(usual), "");
                points.push((name(skew, line), figures));
            }
        }
        judge(&Results(points)).unwrap().verdict()
    }

    #[test]
    fn half_of_the_excess_may_be_left() {
        assert_eq!(verdict(|_, _| None).0, Verdict::Reproduced);
        // Shifting does nothing across stripes, and need not.
        assert_eq!(
            verdict(|skew, line| (skew == "across stripes" && line == SHIFTED).then_some(4.0)).0,
            Verdict::Reproduced
        );
        for (skew, line) in [("within stripes", SHIFTED), ("across stripes", BOTH)] {
            let (missed, reason) = verdict(|of, which| (of == skew && which == line).then_some(2.6));
            assert!(missed == Verdict::Missed && reason.contains(line) && reason.contains(skew), "{reason}");
        }
        assert_eq!(verdict(|_, line| (line == STATIC).then_some(1.9)).0, Verdict::Missed);
    }

    /// By hand: hot stripes are 64 apart in each group within, and 8 apart across; the last is on the drive.
    #[test]
    fn hot_units_are_where_the_case_wants_them() {
        let mut rng = Seed::new(1).rng();
        let units = (2 << 30) / 4_096;
        let mut hot = |skew: Skew| {
            let is_hot = |unit: u64| match skew {
                Skew::Within => unit / UNITS % 64 < 8 && unit % UNITS == 1,
                Skew::Across => (unit / UNITS).is_multiple_of(8),
            };
            let drawn: Vec<u64> = (0..1_000).map(|_| next_unit(skew, units, &mut rng)).collect();
            assert!(drawn.iter().all(|unit| *unit < units), "{drawn:?}");
            drawn.into_iter().filter(|unit| is_hot(*unit)).count()
        };
        let within = hot(Skew::Within);
        let across = hot(Skew::Across);
        assert!((850..=960).contains(&within) && (850..=960).contains(&across), "{within}, {across}");
    }
}
