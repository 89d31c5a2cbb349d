//! The effect of garbage collection on reads of one drive and on stripes over four: the two experiments that motivate
//! ttFlash and TeaFA.
//!
//! Left out: the values. The drives were commercial, without published data for a model; the order is compared, on
//! the drive that the same thesis gives for its own simulations.

mod array;

use anyhow::Result;
use nandscape_device_ssd::Profile;
use nandscape_wire_nvme::IoOpcode;

use self::array::{Array, Noise, SubIo};
use nandscape_lab_ledger::claim::{Check, Claim, Kind, Paper};
use nandscape_lab_ledger::experiment::{Choice, Clock, Experiment, Parameter, Point, Run};
use nandscape_lab_ledger::figures::{Figures, Results, short};
use nandscape_lab_ledger::verdict::{Judgement, Published, Table, order};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    claim: Claim {
        id: "gc-tail-motivation",
        source: &[(Paper::Li, "2.4, Fig. 2.5; 2.5, Fig. 2.6")],
        says: "reads behind 1, 2.5, 5 K writes/s: the more GC the longer the tail (15x, 19x, 96x at p90, p95, p99 with 5 K/s); \
               larger reads hit GC more often (64 KB is 4x slower than 32 KB at p85); in a 4-drive array the latest sub-I/O is \
               13x slow at p97 (100 K writes/s) and 23x at p98 (800 K), the second-latest over 6x only 3% of the time when the \
               latest is 14%",
        show: Some(
            "p99 grows with write rate; the share of reads slowed grows with read size; the second-latest sub-I/O's tail at \
             least 2x rarer than the latest's",
        ),
        ruling: None,
        check: Check::Order,
        kind: Kind::Result,
    },
    clock: Clock::Virtual,
    runs: RUNS,
    published: &[
        Published::of("p99 of 16 KiB*", "96x without GC, with 5 K/s"),
        Published::of("share of reads*", "64 KB 4x slower than 32 KB at p85"),
        Published::of("*over 6x", "second latest 3%, latest 14%"),
    ],
    awaits: &[],
    parameters: &[
        Parameter {
            what: "one drive",
            value: "one thread of 16 KiB random reads; 4 KiB random writes, 1,000, 2,500, 5,000 a second",
            source: "Li 2020, 2.4",
        },
        Parameter {
            what: "sizes of reads",
            value: "8, 16, 32, 64, 128 KiB, with 5,000 writes a second",
            source: "Li 2020, 2.4",
        },
        Parameter {
            what: "no garbage collection",
            value: "as many random reads of 4 KiB instead of the writes",
            source: "Li 2020, 2.4, 2.5",
        },
        Parameter {
            what: "four drives",
            value: "RAID-0, chunks of 4 KiB; one thread of full-stripe reads; 4 KiB random writes, 1 : 2 : 4 : 8",
            source: "Li 2020, 2.5",
        },
        Parameter {
            what: "slowdown of a stripe",
            value: "its latest sub-I/O over the second earliest, S; the second latest over the second earliest, S2",
            source: "Li 2020, 2.5: with 4 drives the 2nd earliest is taken as the median",
        },
    ],
    choices: &[
        Choice {
            open: "the drives",
            taken: "ttflash-256g: 8 x 8 planes, 40/800 us, 2 ms, 100 us a page; a collection blocks its channel for a whole block; \
                    1 GiB with all channels and planes",
            why: "those of the paper were bought (SM951, four data centre drives). This is the thesis' own, and 2.3 suspects \
                  channel blocking in them",
        },
        Choice {
            open: "over-provisioning",
            taken: "85%, in steady state",
            why: "3.3.1 has victims with 25% valid pages, which take (v - 1) / ln v = 1 / 1.85 of the flash for data under \
                  uniform writes and blocks cleaned in turn; and the drive must sustain far more than 5,000 writes a \
                  second. The table has the valid pages of greedy victims",
        },
        Choice {
            open: "the rates on four drives",
            taken: "2,500, 5,000, 10,000, 20,000 a second over all, a fortieth of the paper's 100 to 800 K",
            why: "at most the 5,000 a drive of the first part; the paper's drives take 200,000 each, these no more than some \
                  27,000",
        },
        Choice {
            open: "arrivals of the background load",
            taken: "Poisson, independent for each of the four drives",
            why: "random writes over a stripe go to drives at random",
        },
        Choice {
            open: "the criterion for a slowed read",
            taken: "one of its pages waited for a collection, which the model reports for each request",
            why: "the paper shows curves, and says that larger reads hit collections more often. Reads over twice the \
                median of their size without collection are also shown: here these mostly wait for a program, whose \
                0.8 ms are over twice a read of 8 KiB but not of 128",
        },
        Choice {
            open: "the tail of a sub-I/O",
            taken: "stripes where it takes over 6 times the second earliest; judged at every rate",
            why: "6x is where the paper compares the latest (14%) with the second latest (3%)",
        },
        Choice {
            open: "how often",
            taken: "three runs of each with different seeds, 30,000 reads or stripes each; every run counts",
            why: "a tail consists of few reads, so the spread between seeds must not decide",
        },
    ],
    points,
    judge,
};

/// Writes a second on one drive.
const RATES: [f64; 3] = [1_000.0, 2_500.0, 5_000.0];
/// KiB of a read; with the first rates it is [`SIZE`], with other sizes the rate is the last.
const SIZES: [u32; 5] = [8, 16, 32, 64, 128];
const SIZE: u32 = 16;
/// Writes a second on four drives.
const ARRAY_RATES: [f64; 4] = [2_500.0, 5_000.0, 10_000.0, 20_000.0];
const DRIVES: usize = 4;
/// KiB of a chunk.
const CHUNK: u32 = 4;
/// Runs of each.
const RUNS: u32 = 3;
/// A sub-I/O that takes more than this multiple of the second earliest is in the tail.
const TAIL: f64 = 6.0;
const QUANTILES: [(f64, &str); 4] = [(0.5, "p50"), (0.9, "p90"), (0.95, "p95"), (0.99, "p99")];

fn one_name(size: u32, rate: f64, number: u32) -> String {
    format!("one drive, {size} KiB, {rate} a second, run {number}")
}

fn array_name(rate: f64, number: u32) -> String {
    format!("four drives, {rate} a second, run {number}")
}

/// Sizes and rates on one drive.
fn one_drive() -> Vec<(u32, f64)> {
    let [lower @ .., last] = RATES;
    let rates = lower.map(|rate| (SIZE, rate));
    rates.into_iter().chain(SIZES.map(|size| (size, last))).collect()
}

fn points() -> Vec<Point> {
    let mut points = Vec::new();
    for (size, rate) in one_drive() {
        for number in 1..=RUNS {
            let point = Point::new(one_name(size, rate, number), move |run| measure_one(size, rate, run));
            points.push(point.with("KiB of a read", size).with("writes a second", rate));
        }
    }
    for rate in ARRAY_RATES {
        for number in 1..=RUNS {
            let point = Point::new(array_name(rate, number), move |run| measure_array(rate, run));
            points.push(point.with("drives", DRIVES).with("writes a second", rate));
        }
    }
    points
}

/// Changes of the drive, and its size; in a run of a moment it has a quarter of the pages.
const CHANGES: [&str; 2] = ["ftl.over_provisioning=85%", "ftl.gc.scheme=channel"];
const WHOLE: &[&str] = &["capacity=1GiB"];
const OF_A_MOMENT: &[&str] = &["capacity=256MiB", "geometry.pages_per_block=64"];

fn profile(size: &[&str]) -> Result<Profile> {
    let mut profile = Profile::load("ttflash-256g")?;
    profile.set_all(size.iter().chain(&CHANGES))?;
    Ok(profile)
}

/// Stripes read without and with garbage collection: among reads, then among the same number of writes.
fn both(drives: usize, kib: u32, rate: f64, run: &Run<'_>, figures: &mut Figures) -> Result<[Vec<Vec<SubIo>>; 2]> {
    let stripes = run.effort.of(30_000);
    let size = if run.effort.is_a_moment() { OF_A_MOMENT } else { WHOLE };
    let mut array = Array::new(&profile(size)?, drives, run.seed)?;
    let mut read = |opcode: IoOpcode, seed: &str| {
        let noise = Noise { opcode, per_drive: rate / drives as f64 };
        array.read_stripes(kib << 10, stripes, noise, run.seed.child(seed))
    };
    let both = [read(IoOpcode::READ, "without GC")?, read(IoOpcode::WRITE, "with GC")?];
    figures.add("stripes", stripes as f64, "");
    figures.add("blocks cleaned", array.blocks_cleaned() as f64, "");
    figures.add("pages moved for each", array.moved_per_block(), "");
    Ok(both)
}

fn measure_one(size: u32, rate: f64, run: &Run<'_>) -> Result<Figures> {
    let mut figures = Figures::default();
    let [quiet, busy] = both(1, size, rate, run, &mut figures)?.map(|stripes| stripes.concat());
    let met_gc = busy.iter().filter(|read| read.met_gc).count() as f64 / busy.len() as f64;
    let [quiet, busy] = [quiet, busy].map(|reads| sorted(reads.iter().map(|read| read.us).collect()));
    for (quantile, name) in QUANTILES {
        figures.add(format!("{name} without GC"), at(&quiet, quantile), "us");
        figures.add(name, at(&busy, quantile), "us");
    }
    figures.add("slowed by GC", 100.0 * met_gc, "%");
    figures.add("over twice the median", 100.0 * share_above(&busy, 2.0 * at(&quiet, 0.5)), "%");
    Ok(figures)
}

fn measure_array(rate: f64, run: &Run<'_>) -> Result<Figures> {
    let mut figures = Figures::default();
    let [quiet, busy] = both(DRIVES, CHUNK, rate, run, &mut figures)?;
    for (stripes, of) in [(quiet, " without GC"), (busy, "")] {
        let (latest, second): (Vec<f64>, Vec<f64>) = stripes.into_iter().map(slowdowns).unzip();
        let (latest, second) = (sorted(latest), sorted(second));
        figures.add(format!("latest at p97{of}"), at(&latest, 0.97), "");
        figures.add(format!("latest at p98{of}"), at(&latest, 0.98), "");
        figures.add(format!("latest in the tail{of}"), 100.0 * share_above(&latest, TAIL), "%");
        figures.add(format!("second latest in the tail{of}"), 100.0 * share_above(&second, TAIL), "%");
    }
    Ok(figures)
}

/// S and S2: the latest sub-I/O, and the second latest, over the second earliest.
fn slowdowns(stripe: Vec<SubIo>) -> (f64, f64) {
    let stripe = sorted(stripe.iter().map(|sub_io| sub_io.us).collect());
    let median = stripe[1];
    (stripe[stripe.len() - 1] / median, stripe[stripe.len() - 2] / median)
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

/// The smallest value that this share of all values does not exceed.
fn at(sorted: &[f64], quantile: f64) -> f64 {
    let rank = libm::ceil(quantile * sorted.len() as f64) as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}

fn share_above(sorted: &[f64], bound: f64) -> f64 {
    let above = sorted.len() - sorted.partition_point(|value| *value <= bound);
    above as f64 / sorted.len() as f64
}

fn runs(results: &Results, name: impl Fn(u32) -> String, figure: &str) -> Result<Vec<f64>> {
    (1..=RUNS).map(|number| results.of(&name(number))?.number(figure)).collect()
}

fn judge(results: &Results) -> Result<Judgement> {
    let mut judgement = Judgement::default();
    let one = |size: u32, rate: f64, figure: &str| runs(results, |number| one_name(size, rate, number), figure);
    let [.., last] = RATES;
    let rates = ["1 K writes/s", "2.5 K writes/s", "5 K writes/s"];
    let p99: Result<Vec<_>> =
        rates.into_iter().zip(RATES).map(|(name, rate)| Ok((name, one(SIZE, rate, "p99")?))).collect();
    judgement.criteria.push(order::ranked("p99 of 16 KiB reads", &p99?, "us"));
    let sizes = ["8 KiB", "16", "32", "64", "128"];
    let slowed: Result<Vec<_>> =
        sizes.into_iter().zip(SIZES).map(|(name, size)| Ok((name, one(size, last, "slowed by GC")?))).collect();
    judgement.criteria.push(order::ranked("share of reads slowed by GC, 5 K writes/s", &slowed?, "%"));
    for rate in ARRAY_RATES {
        let of = |figure: &str| runs(results, |number| array_name(rate, number), figure);
        let twice = of("second latest in the tail")?.iter().map(|share| 2.0 * share).collect();
        judgement.criteria.push(order::ranked(
            format!("four drives, {rate} writes/s: share of stripes over {TAIL}x"),
            &[("2 x the second latest", twice), ("the latest", of("latest in the tail")?)],
            "%",
        ));
    }
    for (name, rate) in rates.into_iter().zip(RATES) {
        let most = one(SIZE, rate, "slowed by GC")?.into_iter().fold(0.0, f64::max);
        if most < 1.0 {
            judgement.notes.push(format!(
                "{name}: at most {most:.2}% of the reads meet a collection, so p99 is determined by reads that wait \
                 for a program of 0.8 ms"
            ));
        }
    }
    judgement.tables = vec![one_table(results)?, array_table(results)?];
    judgement.reason = "In a short run few reads meet a collection, and the spread between seeds decides".to_owned();
    Ok(judgement)
}

/// Figures of the runs, from the lowest to the highest.
fn spans(results: &Results, name: impl Fn(u32) -> String, figures: &[&str]) -> Result<Vec<String>> {
    let span = |figure: &&str| {
        let runs = sorted(runs(results, &name, figure)?);
        let (low, high) = (short(runs[0]), short(runs[runs.len() - 1]));
        Ok(if low == high { low } else { format!("{low} to {high}") })
    };
    figures.iter().map(span).collect()
}

fn one_table(results: &Results) -> Result<Table> {
    let mut rows = Vec::new();
    for (size, rate) in one_drive() {
        let name = |number| one_name(size, rate, number);
        let mut row = vec![format!("{size} KiB, {rate} writes/s")];
        row.extend(spans(results, name, &["blocks cleaned", "pages moved for each", "p50 without GC", "p50"])?);
        for (_, quantile) in &QUANTILES[1..] {
            let [with, without] = [quantile.to_string(), format!("{quantile} without GC")];
            let ratios = runs(results, name, &with)?.into_iter().zip(runs(results, name, &without)?);
            let ratios = sorted(ratios.map(|(with, without)| with / without).collect());
            row.push(format!(
                "{} ({}x to {}x)",
                spans(results, name, &[&with])?[0],
                short(ratios[0]),
                short(ratios[2])
            ));
        }
        row.extend(spans(results, name, &["slowed by GC", "over twice the median"])?);
        rows.push(row);
    }
    let head = [
        "",
        "blocks cleaned",
        "pages moved for each",
        "p50 without GC",
        "p50",
        "p90",
        "p95",
        "p99",
        "slowed by GC, %",
        "over twice p50, %",
    ];
    let title =
        "one drive: reads in us (and times those without GC), the lowest to the highest of three runs".to_owned();
    Ok(Table { title, head: head.map(str::to_owned).to_vec(), rows })
}

fn array_table(results: &Results) -> Result<Table> {
    let mut rows = Vec::new();
    for (of, writes) in [("", "writes"), (" without GC", "reads instead")] {
        for rate in ARRAY_RATES {
            let figures = ["latest at p97", "latest at p98", "latest in the tail", "second latest in the tail"];
            let figures = figures.map(|figure| format!("{figure}{of}"));
            let figures: Vec<&str> = figures.iter().map(String::as_str).collect();
            let row = spans(results, |number| array_name(rate, number), &figures)?;
            rows.push([vec![format!("{rate} {writes} a second")], row].concat());
        }
    }
    let head = ["", "S at p97", "S at p98", "S over 6, %", "S2 over 6, %"];
    let title = "four drives: slowdown of stripes, the lowest to the highest of three runs".to_owned();
    Ok(Table { title, head: head.map(str::to_owned).to_vec(), rows })
}

#[cfg(test)]
mod tests {
    use nandscape_sim::Seed;

    use super::*;
    use nandscape_lab_ledger::verdict::Verdict;

    /// Figures that grow with rate and size, and what a case changes.
    fn verdict(odd: impl Fn(&str, &str) -> Option<f64>) -> (Verdict, String) {
        let mut points = Vec::new();
        let mut add = |name: String, figures: &[(&str, f64)]| {
            let mut given = Figures::default();
            for (figure, value) in figures {
                given.add(*figure, odd(&name, figure).unwrap_or(*value), "");
            }
            points.push((name, given));
        };
        for number in 1..=RUNS {
            for (size, rate) in one_drive() {
                let (quiet, busy) = (f64::from(size), f64::from(size) + rate);
                let mut figures = vec![
                    ("blocks cleaned", 1.0),
                    ("pages moved for each", 64.0),
                    ("slowed by GC", quiet),
                    ("over twice the median", 1.0),
                ];
                for (with, without) in [
                    ("p50", "p50 without GC"),
                    ("p90", "p90 without GC"),
                    ("p95", "p95 without GC"),
                    ("p99", "p99 without GC"),
                ] {
                    figures.extend([(without, quiet), (with, busy)]);
                }
                add(one_name(size, rate, number), &figures);
            }
            for rate in ARRAY_RATES {
                add(
                    array_name(rate, number),
                    &[
                        ("latest at p97", 13.0),
                        ("latest at p98", 23.0),
                        ("latest in the tail", 14.0),
                        ("second latest in the tail", 3.0),
                        ("latest at p97 without GC", 1.0),
                        ("latest at p98 without GC", 1.0),
                        ("latest in the tail without GC", 0.0),
                        ("second latest in the tail without GC", 0.0),
                    ],
                );
            }
        }
        judge(&Results(points)).unwrap().verdict()
    }

    #[test]
    fn tails_must_grow_with_rate_and_size_and_two_be_rarer_than_one() {
        assert_eq!(verdict(|_, _| None).0, Verdict::Reproduced);
        let odd = |point: String, figure: &'static str, value: f64| {
            verdict(move |of, which| (of == point && which == figure).then_some(value))
        };
        let (missed, reason) = odd(one_name(16, 2_500.0, 2), "p99", 10.0);
        assert!(
            missed == Verdict::NotToldApart && reason.starts_with("not told apart: p99 of 16 KiB reads."),
            "{reason}"
        );
        let (missed, reason) = odd(one_name(64, 5_000.0, 3), "slowed by GC", 129.0);
        assert!(
            missed == Verdict::NotToldApart && reason.starts_with("not told apart: share of reads slowed by GC"),
            "{reason}"
        );
        let (missed, reason) = odd(array_name(20_000.0, 1), "second latest in the tail", 7.1);
        assert!(
            missed == Verdict::NotToldApart && reason.starts_with("not told apart: four drives, 20000 writes/s"),
            "{reason}"
        );
    }

    #[test]
    fn slowdowns_are_over_the_second_earliest() {
        let stripe = |us: [f64; 4]| us.map(|us| SubIo { us, met_gc: false }).to_vec();
        assert_eq!(slowdowns(stripe([600.0, 100.0, 140.0, 280.0])), (600.0 / 140.0, 2.0));
        assert_eq!(slowdowns(stripe([140.0; 4])), (1.0, 1.0));
    }

    #[test]
    fn quantiles_and_shares_count_from_the_lowest() {
        let values: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!((at(&values, 0.5), at(&values, 0.99), at(&values, 1.0), at(&[7.0], 0.01)), (50.0, 99.0, 100.0, 7.0));
        assert_eq!(
            (share_above(&values, 98.0), share_above(&values, 100.0), share_above(&values, 0.0)),
            (0.02, 0.0, 1.0)
        );
    }

    /// Blocks of the drive's own size, and the thesis' 25% by its own formula.
    #[test]
    fn the_drive_is_the_thesis_own() {
        let resolved = profile(WHOLE).unwrap().resolve().unwrap();
        assert_eq!(resolved.keys.geometry.pages_per_block, Some(256));
        let valid = 0.25_f64;
        assert!(((valid - 1.0) / libm::log(valid) * 1.85 - 1.0).abs() < 0.005);
    }

    /// With negligible background load a page takes 40 us, and 100 us to cross the channel.
    #[test]
    fn a_stripe_of_quiet_drives_takes_a_read() {
        let mut array = Array::new(&profile(WHOLE).unwrap(), DRIVES, Seed::new(1)).unwrap();
        let noise = Noise { opcode: IoOpcode::READ, per_drive: 1e-6 };
        let stripes = array.read_stripes(4_096, 20, noise, Seed::new(2)).unwrap();
        assert_eq!(stripes, vec![vec![SubIo { us: 140.0, met_gc: false }; DRIVES]; 20]);
        assert_eq!(array.blocks_cleaned(), 0);
    }
}
