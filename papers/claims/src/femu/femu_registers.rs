//! FEMU's register models and page types, through the whole drive: NVMe commands on a queue pair, mapped by the FTL, timed
//! at their completion.
//!
//! Left out: other comparisons of these models in the papers; this is their arithmetic.

use std::cell::RefCell;
use std::rc::Rc;

use anyhow::{Context as _, Result, bail, ensure};
use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Ssd};
use nandscape_drive::{HostMem, Issuer, QueueDrive, QueueId};
use nandscape_sim::{Executor, Seed, Sim, Span};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

use nandscape_lab_ledger::claim::{Check, Claim, Kind, Paper};
use nandscape_lab_ledger::experiment::{Choice, Clock, Experiment, Parameter, Point};
use nandscape_lab_ledger::figures::{Figures, Results};
use nandscape_lab_ledger::verdict::{Judgement, Published, exact};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    claim: Claim {
        id: "femu-registers",
        source: &[(Paper::Femu, "Fig. 3, 3.2.3"), (Paper::Li, "3.1.7")],
        says: "two reads of one plane: with a data and a cache register the second overlaps its array read with the first \
               one's transfer; MLC pages lower and upper in a pattern of 512 digits; 48/64 us read, 900/2400 us program",
        show: Some(
            "two 48 us reads with 60 us transfers end at 108 and 216 us with a single register, 108 and 168 us with two; the \
             512-entry page-type table; per-page latencies",
        ),
        ruling: None,
        check: Check::Exact,
        kind: Kind::Result,
    },
    clock: Clock::Virtual,
    runs: 1,
    published: &[Published::of("quickest *", "").given(), Published::of("slowest *", "").given()],
    awaits: &[],
    parameters: &[
        Parameter {
            what: "drive",
            value: "femu-ocssd: 2 channels x 4 chips x 2 planes, 512 pages of 16 KiB a block",
            source: "Li 2020, table 5.2",
        },
        Parameter { what: "read, lower and upper page", value: "48 and 64 us", source: "FEMU 3.2.3" },
        Parameter { what: "program, lower and upper page", value: "900 and 2400 us", source: "FEMU 3.2.3" },
        Parameter { what: "transfer of a page", value: "60 us", source: "Li 2020, table 5.2" },
        Parameter { what: "link, firmware", value: "no time", source: "FEMU adds none" },
    ],
    choices: &[
        Choice {
            open: "three versions of the page-type table: a pattern with five lower pages first, prose that has pages 7 and 10 \
                   upper, and a string of 512 digits",
            taken: "the string: lower 0-5 and 7-8, upper 6 and 9; 10..501 lower, lower, upper, upper; then upper 504, 505, \
                    508, 511",
            why: "only this version fills a block of 512 pages",
        },
        Choice {
            open: "the single-register formulas of FEMU 3.2.2 free the plane after the array time, which gives the result for \
                   two registers",
            taken: "Fig. 3: a single register holds the plane until the transfer ends",
            why: "the figure and its text define a single register this way",
        },
        Choice {
            open: "when a write has ended",
            taken: "when its page is programmed (buffer.mode = through), a page a write",
            why: "the program time of each page shows in the latency of its write",
        },
    ],
    points: || {
        vec![
            Point::new("two reads, single register", |_| two_reads("single")).with("timing.registers", "single"),
            Point::new("two reads, double registers", |_| two_reads("double")).with("timing.registers", "double"),
            Point::new("every page of a block of every plane", |_| pages_of_a_block()),
        ]
    },
    judge,
};

/// LBAs of a page of 16 KiB.
const PAGE: u32 = 32;
/// Pages of a block.
const PAGES: u32 = 512;
/// Planes of the drive; writes go to them in turn.
const PLANES: u32 = 16;
/// A page over the channel.
const TRANSFER_US: f64 = 60.0;
/// Kinds of page, by their digits in the published table.
const KINDS: [(char, &str); 2] = [('1', "lower"), ('2', "upper")];
/// Times of lower and upper pages, as published.
const PROGRAMS: [&str; 2] = ["900", "2400"];
const READS: [&str; 2] = ["48", "64"];

/// The published table, 512 digits.
fn page_types() -> String {
    format!("1111112112{}1122112112", "1122".repeat(123))
}

/// A host at one queue pair of a new drive.
struct Host {
    executor: Executor,
    sim: Sim,
    drive: Rc<QueueDrive>,
    issuer: Rc<Issuer>,
    ssd: Ssd,
}

impl Host {
    fn new(changes: &[&str]) -> Result<Host> {
        let mut profile = Profile::load("femu-ocssd")?;
        profile.set("buffer.mode=through")?;
        for change in changes {
            profile.set(change)?;
        }
        let executor = Executor::new();
        let sim = executor.sim();
        let ssd = Ssd::new(&sim, &profile.resolve()?, StoreKind::None, Seed::new(1))?;
        match QueueDrive::new(&sim, ssd.controller(), QueueId(1), 64) {
            Ok(drive) => Ok(Host { executor, issuer: Rc::new(Issuer::new(&sim)), drive, ssd, sim }),
            Err(status) => bail!("the drive has no queue pair: {status}"),
        }
    }

    /// One plane on one channel.
    fn one_plane(registers: &str) -> Result<Host> {
        let registers = format!("timing.registers={registers}");
        Host::new(&["geometry.channels=1", "geometry.dies_per_channel=1", "geometry.planes_per_die=1", &registers])
    }

    /// Submits commands for whole pages at one instant. Returns when each completed, in microseconds after that.
    fn together(&mut self, opcode: IoOpcode, pages: &[u32]) -> Result<Vec<f64>> {
        let ended = Rc::new(RefCell::new(vec![None; pages.len()]));
        let begun = self.sim.now();
        for (index, page) in pages.iter().enumerate() {
            let (sim, drive, issuer, ended) =
                (self.sim.clone(), self.drive.clone(), self.issuer.clone(), ended.clone());
            let command = SubmissionEntry::blocks(opcode, 1, u64::from(page * PAGE), PAGE);
            self.sim.spawn(async move {
                let done = issuer.execute(&*drive, command, HostMem::none()).await;
                ended.borrow_mut()[index] = Some((done.status, (sim.now() - begun).as_us()));
            });
        }
        let all = self.sim.sleep(Span::from_s(1));
        self.executor.block_on(all)?;
        let mut times = Vec::new();
        for end in ended.take() {
            let (status, at) = end.context("a command did not complete")?;
            ensure!(status == Status::SUCCESS, "a command failed: {status}");
            times.push(at);
        }
        Ok(times)
    }

    fn one(&mut self, opcode: IoOpcode, page: u32) -> Result<f64> {
        Ok(self.together(opcode, &[page])?[0])
    }
}

/// Fig. 3: the reads of two pages of one plane, both lower pages.
fn two_reads(registers: &str) -> Result<Figures> {
    let mut host = Host::one_plane(registers)?;
    for page in 0..2 {
        host.one(IoOpcode::WRITE, page)?;
    }
    let ends = host.together(IoOpcode::READ, &[0, 1])?;
    let mut figures = Figures::default();
    for (read, end) in ["first", "second"].iter().zip(ends) {
        figures.add(format!("the {read} read ends"), end, "us");
    }
    Ok(figures)
}

/// Every page of a block of each plane, written and read one at a time. The time of a page is its latency less the transfer.
fn pages_of_a_block() -> Result<Figures> {
    let mut host = Host::new(&[])?;
    let mut figures = Figures::default();
    for (opcode, name, published) in [(IoOpcode::WRITE, "program", PROGRAMS), (IoOpcode::READ, "read", READS)] {
        let published = published.map(|us| us.parse::<f64>().expect("a number"));
        let mut table = String::new();
        let mut spans = [(f64::INFINITY, f64::NEG_INFINITY); 2];
        for page in 0..PAGES {
            let times: Result<Vec<f64>> =
                (0..PLANES).map(|plane| Ok(host.one(opcode, page * PLANES + plane)? - TRANSFER_US)).collect();
            let times = times?;
            // The kind with the nearest time; the figure below checks the time itself, on all planes.
            let upper = times[0] > (published[0] + published[1]) / 2.0;
            table.push(KINDS[usize::from(upper)].0);
            let (low, high) = &mut spans[usize::from(upper)];
            for time in times {
                (*low, *high) = (low.min(time), high.max(time));
            }
        }
        figures.add_text(format!("page types by {name} time"), table);
        for ((_, kind), (low, high)) in KINDS.iter().zip(spans) {
            figures.add(format!("quickest {name} of {kind} pages"), low, "us");
            figures.add(format!("slowest {name} of {kind} pages"), high, "us");
        }
    }
    let programs = host.ssd.op_counts().programs;
    ensure!(programs == u64::from(PAGES * PLANES), "{programs} programs; a page a write, and nothing besides, is due");
    Ok(figures)
}

fn judge(results: &Results) -> Result<Judgement> {
    let mut judgement = Judgement::default();
    for (registers, ends) in [("single register", ["108", "216"]), ("double registers", ["108", "168"])] {
        let figures = results.of(&format!("two reads, {registers}"))?;
        for (read, end) in ["first", "second"].iter().zip(ends) {
            let measured = figures.number(&format!("the {read} read ends"))?;
            judgement.criteria.push(exact::number(format!("{registers}: the {read} read ends"), measured, "us", end));
        }
    }
    let figures = results.of("every page of a block of every plane")?;
    for (name, published) in [("program", PROGRAMS), ("read", READS)] {
        let table = format!("page types by {name} time");
        judgement.criteria.push(exact::table(table.clone(), figures.text(&table)?, &page_types()));
        for ((_, kind), published) in KINDS.iter().zip(published) {
            for end in ["quickest", "slowest"] {
                let what = format!("{end} {name} of {kind} pages");
                let measured = figures.number(&what)?;
                judgement.criteria.push(exact::number(what, measured, "us", published));
            }
        }
    }
    Ok(judgement)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_lab_ledger::verdict::Verdict;

    fn results(second: f64, types: &str) -> Results {
        let mut points = Vec::new();
        for (registers, second) in [("single register", second), ("double registers", 168.0)] {
            let mut figures = Figures::default();
            figures.add("the first read ends", 108.0, "us");
            figures.add("the second read ends", second, "us");
            points.push((format!("two reads, {registers}"), figures));
        }
        let mut figures = Figures::default();
        for (name, times) in [("program", [900.0, 2_400.0]), ("read", [48.0, 64.0])] {
            figures.add_text(format!("page types by {name} time"), types);
            for ((_, kind), time) in KINDS.iter().zip(times) {
                ["quickest", "slowest"]
                    .iter()
                    .for_each(|end| figures.add(format!("{end} {name} of {kind} pages"), time, "us"));
            }
        }
        points.push(("every page of a block of every plane".to_owned(), figures));
        Results(points)
    }

    #[test]
    fn every_figure_must_be_the_published_one() {
        let verdict = |second, types: &str| judge(&results(second, types)).unwrap().verdict();
        assert_eq!(verdict(216.0, &page_types()).0, Verdict::Reproduced);
        let (missed, reason) = verdict(168.0, &page_types());
        assert!(missed == Verdict::Missed && reason.contains("single register: the second read ends"), "{reason}");
        assert_eq!(verdict(216.0, &"1122".repeat(128)).0, Verdict::Missed);
    }

    /// The page types in words: errata of the published versions.
    #[test]
    fn the_table_has_512_entries_as_told_in_words() {
        let upper = |page: usize| match page {
            0..10 => matches!(page, 6 | 9),
            10..502 => (page - 10) % 4 >= 2,
            _ => matches!(page, 504 | 505 | 508 | 511),
        };
        let words: String = (0..512).map(|page| if upper(page) { '2' } else { '1' }).collect();
        assert_eq!(page_types(), words);
        assert_eq!(words.matches('2').count(), 252, "2 of the first ten, 246 of the middle, 4 of the last ten");
    }

    /// The figure carried on by hand: the third page is sensed when the second has left the data register, at 108 us.
    #[test]
    fn more_reads_follow_one_transfer_after_the_other() {
        for (registers, ends) in [("single", [108.0, 216.0, 324.0, 432.0]), ("double", [108.0, 168.0, 228.0, 288.0])] {
            let mut host = Host::one_plane(registers).unwrap();
            (0..4).for_each(|page| assert!(host.one(IoOpcode::WRITE, page).is_ok()));
            assert_eq!(host.together(IoOpcode::READ, &[0, 1, 2, 3]).unwrap(), ends, "{registers}");
        }
    }

    /// "a NAND page read/write in a plane can overlap with a data transfer via the channel to the plane": the second page
    /// is loaded while the first is programmed.
    #[test]
    fn two_programs_of_a_plane_overlap_likewise() {
        for (registers, ends) in [("single", [960.0, 1_920.0]), ("double", [960.0, 1_860.0])] {
            let mut host = Host::one_plane(registers).unwrap();
            assert_eq!(host.together(IoOpcode::WRITE, &[0, 1]).unwrap(), ends, "{registers}");
        }
    }

    /// The sizes of table 5.2, and the erase time, which no command of the host shows by itself.
    #[test]
    fn the_profile_is_table_5_2() {
        let keys = Profile::load("femu-ocssd").unwrap().resolve().unwrap().keys;
        let geometry = &keys.geometry;
        let planes_per_channel = geometry.dies_per_channel.unwrap() * geometry.planes_per_die.unwrap();
        assert_eq!((geometry.channels, planes_per_channel, geometry.planes_per_die), (Some(2), 8, Some(2)));
        assert_eq!((geometry.blocks_per_plane, geometry.pages_per_block), (Some(1_024), Some(512)));
        let text = Profile::load("femu-ocssd").unwrap().to_toml();
        for line in ["page_size = \"16KiB\"", "erase = \"6ms\"", "bus = \"16KiB/60us\"", "cell = \"mlc\""] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }
}
