//! FEMU's distributed example: a word count on a cluster, with collectors that block a channel or a plane.
//!
//! Left out: the published times. The figure's cluster, its drives and its job are not given, so the order is compared.

mod job;

use anyhow::Result;
use nandscape_device_ssd::Profile;

use self::job::Job;
use nandscape_lab_ledger::claim::{Check, Claim, Kind, Paper};
use nandscape_lab_ledger::experiment::{Choice, Clock, Experiment, Parameter, Point, Run};
use nandscape_lab_ledger::figures::{Figures, Results};
use nandscape_lab_ledger::verdict::{Judgement, Published, Table, order};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    claim: Claim {
        id: "femu-cluster",
        source: &[(Paper::Femu, "Fig. 6b")],
        says: "word count on a cluster whose nodes store on emulated drives: with large striped I/O the gap between channel and plane \
               blocking nearly closes",
        show: Some(
            "(channel - plane) / plane of job time with large striped I/O below that at 4 KiB I/O; number of drives and stripe size stated",
        ),
        ruling: Some("rules `seeds` and `depends`: the job's sizes decide the sign, so the verdict names them"),
        check: Check::Order,
        kind: Kind::Result,
    },
    clock: Clock::Virtual,
    runs: RUNS,
    published: &[Published::of("*", "nearly closes")],
    awaits: &["jobs of other sizes, as these decide which gap is the smaller one"],
    parameters: &[
        Parameter {
            what: "cluster",
            value: "4 nodes, each with one drive",
            source: "FEMU 3.3: a cluster of machines, of which it gives no number",
        },
        Parameter {
            what: "drive",
            value: "ttflash-256g: 8 x 8 planes of 4 KiB pages, 40/800 us, 2 ms, 100 us a page; 1 GiB with all channels and planes",
            source: "Li 2020, table 3.2, of the project that FEMU 3.3 cites for these schemes",
        },
        Parameter {
            what: "ftl.gc.scheme",
            value: "channel, plane; none: collection takes no time",
            source: "FEMU, Fig. 6",
        },
        Parameter {
            what: "I/O",
            value: "4 KiB; 1 MiB, which is 4 pages of each plane of a drive: a stripe over all of them",
            source: "FEMU 3.3: large I/Os, striped across many channels and planes",
        },
    ],
    choices: &[
        Choice {
            open: "the job",
            taken: "4 map and 4 reduce tasks a node. A map reads 128 MiB and spills an eighth of that, as its counts are combined; each \
                    reduce fetches its share of all spills, and writes an eighth of what it fetched to 3 nodes",
            why: "the order of phases of Hadoop's word count, which has a combiner; the block size and the replicas of HDFS. How far \
                  counts combine depends on the text. Where nothing combines, tasks that count 400 MB/s write as much as they read: \
                  collection bounds the drives, and the gap is 73 to 104% at 1 MiB, 53 to 87% at 4 KiB",
        },
        Choice {
            open: "processors and network",
            taken: "a task counts or merges 50 MB/s, and fetches 1.25 GB/s",
            why: "tokenizing and hashing words on one processor; 10 Gb/s Ethernet",
        },
        Choice {
            open: "what collects",
            taken: "the job's own writes, on drives in steady state with 28% over-provisioning",
            why: "the profile's; nothing else writes in the paper either, as far as it reports",
        },
        Choice {
            open: "how often",
            taken: "three runs of each with different seeds; the gaps with large I/O are below those at 4 KiB by more than their spread",
            why: "the spread between seeds must not decide",
        },
    ],
    points,
    judge,
};

/// Bytes of an I/O, by name.
const SIZES: [(&str, u32); 2] = [("4 KiB", 4 << 10), ("1 MiB", 1 << 20)];
const SCHEMES: [&str; 3] = ["none", "plane", "channel"];
/// Runs of each.
const RUNS: u32 = 3;

fn name(size: &str, scheme: &str, number: u32) -> String {
    format!("{size}, {scheme}, run {number}")
}

fn points() -> Vec<Point> {
    let mut points = Vec::new();
    for (size, bytes) in SIZES {
        for scheme in SCHEMES {
            for number in 1..=RUNS {
                let point = Point::new(name(size, scheme, number), move |run| measure(bytes, scheme, run));
                points.push(point.with("I/O", size).with("ftl.gc.scheme", scheme));
            }
        }
    }
    points
}

fn measure(io: u32, scheme: &str, run: &Run<'_>) -> Result<Figures> {
    let mut profile = Profile::load("ttflash-256g")?;
    profile.set_all(["capacity=1GiB", &format!("ftl.gc.scheme={scheme}")])?;
    // A spill has a share for each of 16 reduce tasks.
    let split = run.effort.of(8).max(1) * (16 << 20);
    let (spill, result) = (split / 8, (split / 64).max(1 << 20));
    let job = Job { nodes: 4, tasks: 4, split, spill, io, result, replicas: 3, rate: 50e6, network: 1.25e9 };
    let taken = job.run(&profile, run.seed)?;
    let mut figures = Figures::default();
    figures.add("job time", taken.seconds, "s");
    figures.add("blocks cleaned", taken.cleaned as f64, "");
    Ok(figures)
}

/// By how much channel blocking is slower than plane blocking, by run.
fn gaps(results: &Results, size: &str) -> Result<Vec<f64>> {
    let time = |scheme: &str, number| results.of(&name(size, scheme, number))?.number("job time");
    (1..=RUNS).map(|number| Ok(time("channel", number)? / time("plane", number)? - 1.0)).collect()
}

fn judge(results: &Results) -> Result<Judgement> {
    let mut judgement = Judgement::default();
    let [small, large] = [gaps(results, SIZES[0].0)?, gaps(results, SIZES[1].0)?];
    let percent = |gaps: &[f64]| gaps.iter().map(|gap| gap * 100.0).collect();
    judgement.criteria.push(order::ranked(
        "(channel - plane) / plane of job time",
        &[(SIZES[1].0, percent(&large)), (SIZES[0].0, percent(&small))],
        "%",
    ));
    let mean = |gaps: &[f64]| gaps.iter().sum::<f64>() / gaps.len() as f64 * 100.0;
    judgement.notes.push(format!(
        "the gap is {:.1}% in the mean at 4 KiB and {:.1}% at 1 MiB: smaller, not closed",
        mean(&small),
        mean(&large)
    ));
    let mut rows = Vec::new();
    for (size, _) in SIZES {
        for scheme in SCHEMES {
            let of = |figure: &str| -> Result<Vec<f64>> {
                (1..=RUNS).map(|number| results.of(&name(size, scheme, number))?.number(figure)).collect()
            };
            let (times, cleaned) = (of("job time")?, of("blocks cleaned")?);
            let told = |numbers: &[f64], digits: usize| {
                numbers.iter().map(|number| format!("{number:.digits$}")).collect::<Vec<_>>().join(", ")
            };
            rows.push(vec![size.to_owned(), scheme.to_owned(), told(&times, 3), told(&cleaned, 0)]);
        }
    }
    let head = ["I/O", "scheme", "job time of each run, s", "blocks cleaned"].map(str::to_owned).to_vec();
    judgement.tables.push(Table { title: "jobs".to_owned(), head, rows });
    judgement.reason =
        "Large I/Os meet a blocked channel as well as a blocked plane, as one of their parts is there in either case"
            .to_owned();
    Ok(judgement)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_lab_ledger::verdict::Verdict;

    #[test]
    fn the_gap_has_to_be_smaller_by_more_than_the_spread() {
        let results = |large: f64| {
            let of = |size: &str, scheme: &str, number: u32| {
                let mut figures = Figures::default();
                let last = if number == RUNS { large } else { 1.1 };
                let factor = match (size, scheme) {
                    (_, "none" | "plane") => 1.0,
                    ("4 KiB", _) => 1.4,
                    _ => last,
                };
                figures.add("job time", 10.0 * factor, "s");
                figures.add("blocks cleaned", 5.0, "");
                (name(size, scheme, number), figures)
            };
            let all = SIZES.iter().flat_map(|(size, _)| {
                SCHEMES.iter().flat_map(move |scheme| (1..=RUNS).map(move |number| of(size, scheme, number)))
            });
            Results(all.collect())
        };
        assert_eq!(judge(&results(1.1)).unwrap().verdict().0, Verdict::Reproduced);
        assert_eq!(judge(&results(1.5)).unwrap().verdict().0, Verdict::NotToldApart);
    }
}
