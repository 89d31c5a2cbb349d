//! Transactions of several extents, next to ordinary writes, cut at random operations. Of each transaction all is
//! present, or nothing, and transactions are present in their order.
//!
//! The first sectors are written by transactions alone. Others are written by both, and show whether a transaction and
//! an ordinary write of the same unit become current in their order.

use std::cell::RefCell;
use std::collections::BTreeMap;

use nandscape_device_ftl_core::{Extent, Ftl};

use crate::ox_block::mistakes::{Mistake, make};
use nandscape_sim::{Executor, Rng, Seed};

use super::cuts::seed;
use super::kinds::Setup;
use super::rig::{Cut, Rig, UNIT_SECTORS, units};
use super::seeds::{Watch, each};

/// Sectors that only transactions write.
const OWN: u64 = 30 * UNIT_SECTORS as u64;
/// Sectors that are written at all.
const ALL: u64 = 60 * UNIT_SECTORS as u64;
const SECTOR: usize = 512;

/// The possible content of the drive.
struct Book {
    /// Writes so far.
    steps: u32,
    /// Of each sector the steps that wrote it, the oldest that it may hold first.
    writes: Vec<Vec<u32>>,
    /// Of each transaction since the last cut, its sectors.
    transactions: BTreeMap<u32, Vec<u64>>,
    /// Transactions up to this step are durable.
    durable: u32,
}

impl Book {
    fn new() -> Book {
        Book { steps: 0, writes: vec![vec![0]; ALL as usize], transactions: BTreeMap::new(), durable: 0 }
    }

    /// A write begins. Returns its step and its bytes.
    fn write(&mut self, extents: &[Extent], is_transaction: bool) -> (u32, Vec<u8>) {
        self.steps += 1;
        let step = self.steps;
        let sectors: Vec<u64> = extents.iter().flat_map(|extent| extent.start..extent.end()).collect();
        for sector in &sectors {
            let writes = &mut self.writes[*sector as usize];
            if writes.last() != Some(&step) {
                writes.push(step);
            }
        }
        let bytes = sectors.iter().flat_map(|sector| content(*sector, step)).collect();
        if is_transaction {
            self.transactions.insert(step, sectors);
        }
        (step, bytes)
    }

    /// Everything up to a step is durable.
    fn flushed(&mut self, step: u32) {
        self.durable = self.durable.max(step);
        for writes in &mut self.writes {
            let first = writes.iter().rposition(|write| *write <= step).unwrap_or(0);
            writes.drain(..first);
        }
    }

    /// The content found after a cut is the content from now on.
    ///
    /// # Errors
    /// The contradiction.
    fn found(&mut self, contents: &[u8]) -> Result<(), String> {
        let (mut low, mut high) = (self.durable, self.steps);
        let mut versions = Vec::new();
        for (sector, bytes) in (0..).zip(contents.chunks_exact(SECTOR)) {
            let version = u32::from_le_bytes(bytes[8..12].try_into().expect("4 bytes"));
            let writes = &self.writes[sector as usize];
            let Some(at) = writes.iter().position(|write| *write == version) else {
                return Err(format!("sector {sector} holds step {version}; it may hold {writes:?}"));
            };
            if version != 0 && bytes != content(sector, version) {
                return Err(format!("sector {sector} is torn"));
            }
            if sector < OWN {
                low = low.max(version);
                high = high.min(writes.get(at + 1).map_or(self.steps, |next| next - 1));
            }
            versions.push(version);
        }
        if low > high {
            return Err(format!("transaction {low} is there, and one before {high} is not"));
        }
        for (step, sectors) in &self.transactions {
            for sector in sectors.iter().filter(|sector| **sector >= OWN) {
                let version = versions[*sector as usize];
                if version == *step && *step > high || version < *step && *step <= low {
                    return Err(format!(
                        "sector {sector} holds step {version}, but transactions up to {low}..{high} are there"
                    ));
                }
            }
        }
        self.writes = versions.into_iter().map(|version| vec![version]).collect();
        self.transactions.clear();
        self.durable = self.steps;
        Ok(())
    }
}

fn content(sector: u64, version: u32) -> Vec<u8> {
    [&sector.to_le_bytes()[..], &version.to_le_bytes(), &[0; 4]].concat().repeat(SECTOR / 16)
}

/// An extent of up to three units, aligned or not.
fn extent(rng: &mut Rng, within: std::ops::Range<u64>) -> Extent {
    let sectors = 1 + rng.below(2 * u64::from(UNIT_SECTORS));
    Extent { start: within.start + rng.below(within.end - within.start - sectors), sectors: sectors as u32 }
}

async fn step(rig: &Rig, book: &RefCell<Book>, rng: &mut Rng) -> Result<(), Cut> {
    let (forced, kind) = (rng.below(20) == 0, rng.below(20));
    if kind == 0 {
        let step = book.borrow().steps;
        rig.flush().await?;
        book.borrow_mut().flushed(step);
        return Ok(());
    }
    let is_transaction = kind < 12;
    let extents: Vec<Extent> = match is_transaction {
        true => {
            let own = (0..1 + rng.below(4)).map(|_| extent(rng, 0..OWN)).collect::<Vec<_>>();
            own.into_iter().chain(rng.chance(0.5).then(|| extent(rng, OWN..ALL))).collect()
        }
        false => vec![extent(rng, OWN..ALL)],
    };
    let (step, bytes) = book.borrow_mut().write(&extents, is_transaction);
    match is_transaction {
        true => rig.write_all(&extents, &bytes, forced).await?,
        false => rig.write(extents[0], &bytes, false, || ()).await?,
    }
    if forced && is_transaction {
        let mut book = book.borrow_mut();
        book.durable = book.durable.max(step);
    }
    Ok(())
}

/// Runs a load that is cut a few times.
fn run(setup: &Setup, seed: u64, watch: &Watch) -> Result<u32, String> {
    let mut executor = Executor::new();
    let rig = Rig::new(&executor.sim(), setup, seed, watch.begin(&executor.sim(), setup));
    let mut rng = Seed::new(seed).child("transactions").rng();
    for _ in 0..4 {
        let fault = format!("power_cut nth={}", 1 + rng.below(4_000));
        rig.media.faults().add(fault.parse().expect("a rule"));
    }
    let book = RefCell::new(Book::new());
    let work = async {
        for _ in 0..1_200 {
            if step(&rig, &book, &mut rng).await.is_ok() {
                continue;
            }
            let contents = loop {
                while !rig.try_to_recover().await {}
                rig.ftl.check()?;
                if let Ok(contents) = rig.read(Extent { start: 0, sectors: ALL as u32 }).await {
                    break contents.map_err(|error| format!("{error:?}"))?;
                }
            };
            if setup.keeps {
                let steps = book.borrow().steps;
                book.borrow_mut().flushed(steps.saturating_sub(1));
            }
            let after = |wrong| format!("after cut {}: {wrong}", rig.media.power_cuts());
            book.borrow_mut().found(&contents).map_err(after)?;
        }
        Ok(rig.media.power_cuts())
    };
    executor.block_on(work).map_err(|stalled| format!("stalled: {stalled}"))?
}

fn kinds() -> [(&'static str, Setup); 7] {
    [
        ("plain", Setup::small()),
        ("all are transactions", Setup::small().transactions()),
        ("paged", Setup::paged()),
        ("through", Setup::small().through()),
        ("capacitors", Setup::small().capacitors()),
        ("programmed", Setup::small().programmed()),
        ("appended", Setup::small().programmed().appended()),
    ]
}

#[test]
fn of_each_transaction_all_is_there_after_a_cut_or_nothing() {
    let cuts = each("of_each_transaction_all_is_there", 1..=4, &kinds(), run);
    assert!(cuts.iter().all(|cuts| *cuts > 0), "cuts of each kind: {cuts:?}");
}

#[test]
fn a_transaction_that_overtakes_older_data_is_noticed() {
    make(Some(Mistake::OlderOvertaken));
    let noticing =
        (0..40).map(|number| seed() + number).find(|seed| run(&Setup::small(), *seed, &Watch::default()).is_err());
    make(None);
    let seed = noticing.expect("a run notices it");
    run(&Setup::small(), seed, &Watch::default())
        .unwrap_or_else(|other| panic!("seed {seed}, without the mistake too: {other}"));
}

#[test]
fn a_transaction_whose_older_data_is_deallocated_becomes_current() {
    let mut executor = Executor::new();
    let rig = Rig::new(&executor.sim(), &Setup::small(), seed(), None);
    executor
        .block_on(async {
            let one = |unit| Extent { start: units(unit, 1).start, sectors: 1 };
            // Less than a page: it stays in line, and the transaction behind it.
            rig.write(one(3), &content(24, 1), false, || ()).await.expect("no cut");
            let extents = [one(3), one(5), units(9, 2)];
            rig.write_all(&extents, &vec![7; 18 * SECTOR], false).await.expect("no cut");
            rig.deallocate(units(3, 1)).await.expect("no cut");
            rig.flush().await.expect("no cut");
            for (unit, first) in [(3, 0), (5, 7), (9, 7), (10, 7)] {
                let read = rig.read(units(unit, 1)).await.expect("no cut").expect("readable");
                assert_eq!(read[0], first, "unit {unit}");
            }
            rig.ftl.check().expect("sound");
        })
        .expect("it ends");
}
