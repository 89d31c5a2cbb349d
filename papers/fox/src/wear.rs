//! uOC-1: one block is erased, written and read until an erase fails, or for a number of cycles (Picoli 2019, 4.2.1). Reads
//! and writes that fail are counted. The block is worn afterwards.

use std::rc::Rc;

use nandscape_drive::HostMem;
use nandscape_host_open_channel::{OpenChannel, Place};
use nandscape_sim::{Sim, Span};
use serde::Serialize;

use crate::blocks::{chunks_of, erase};
use crate::layout::Unit;
use crate::plan::{BadPlan, pages_of};
use crate::run::RunError;

/// What to wear out, and how to report it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WearPlan {
    /// The parallel unit.
    pub unit: Unit,
    /// The block.
    pub block: u32,
    /// The most cycles.
    pub cycles: u64,
    /// Cycles that a point of the report sums up.
    pub every: u64,
    /// Pages that are written and read in each cycle.
    pub pages: u32,
}

/// Some cycles in a row.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct WearPoint {
    /// Erases of the block by this run when the last of these cycles ended. The very last one of a run may have failed.
    pub erases: u64,
    /// Mean time of an erase.
    pub erase_us: Option<f64>,
    /// Mean time of a write of a page.
    pub write_us: Option<f64>,
    /// Mean time of a read of a page, of those that did not fail.
    pub read_us: Option<f64>,
    /// Reads.
    pub reads: u64,
    /// Reads that failed.
    pub failed_reads: u64,
    /// Writes that failed.
    pub failed_writes: u64,
}

/// What uOC-1 found.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct WearReport {
    /// The channel.
    pub channel: u32,
    /// The parallel unit on it.
    pub pu: u32,
    /// The block.
    pub block: u32,
    /// Over time.
    pub points: Vec<WearPoint>,
    /// Erases before the first read that failed.
    pub first_failed_read: Option<u64>,
    /// Erases before the first write that failed.
    pub first_failed_write: Option<u64>,
    /// Erases when a tenth of the reads failed for the first time, of those of a cycle, or of as many cycles as have 100 reads.
    pub tenth_of_reads_failed: Option<u64>,
    /// Why it ended before all cycles, if it did.
    pub ended: Option<String>,
    /// Whether that was on request.
    pub interrupted: bool,
}

/// Sums of a point in progress.
#[derive(Default)]
struct Sums {
    erase: (u64, Span),
    write: (u64, Span),
    read: (u64, Span),
    failed_reads: u64,
    failed_writes: u64,
    /// The reads of the last cycles, and those that failed.
    latest: (u64, u64),
}

/// The fewest reads from which a failed tenth can be determined.
const SAMPLE: u64 = 100;

fn add(sum: &mut (u64, Span), span: Span) {
    *sum = (sum.0 + 1, sum.1 + span);
}

impl Sums {
    fn point(&self, erases: u64) -> WearPoint {
        let mean = |(count, sum): (u64, Span)| (count > 0).then(|| sum.as_us() / count as f64);
        WearPoint {
            erases,
            erase_us: mean(self.erase),
            write_us: mean(self.write),
            read_us: mean(self.read),
            reads: self.read.0 + self.failed_reads,
            failed_reads: self.failed_reads,
            failed_writes: self.failed_writes,
        }
    }
}

/// Wears a block. Calls `goes_on` with the share of the cycles after each of them; it returns whether to do another
/// one.
///
/// # Errors
/// When the plan does not fit the drive, or the block cannot be erased at the beginning.
pub async fn wear(
    sim: &Sim,
    host: &Rc<OpenChannel>,
    plan: &WearPlan,
    goes_on: &dyn Fn(f64) -> bool,
) -> Result<WearReport, RunError> {
    check(host, plan)?;
    let WearPlan { unit, block, .. } = *plan;
    let place = Place { group: unit.channel, pu: unit.pu, chunk: block, sector: 0 };
    let report = chunks_of(host, unit).await?;
    erase(host, place, &report[block as usize]).await?;
    let mut found = WearReport {
        channel: unit.channel,
        pu: unit.pu,
        block,
        points: Vec::new(),
        first_failed_read: None,
        first_failed_write: None,
        tenth_of_reads_failed: None,
        ended: None,
        interrupted: false,
    };
    let (mut sums, mut erases) = (Sums::default(), 0);
    while erases < plan.cycles && found.ended.is_none() {
        let broken = cycle(sim, host, plan, place, (&mut sums, &mut found, erases)).await;
        let begun = sim.now();
        match host.reset(&[host.geometry().address(place)]).await {
            Ok(()) => add(&mut sums.erase, sim.now().since(begun)),
            Err(error) => found.ended = Some(format!("erase {} failed{broken}: {}", erases + 1, error.status)),
        }
        erases += 1;
        if !goes_on(erases as f64 / plan.cycles as f64) && found.ended.is_none() && erases < plan.cycles {
            found.interrupted = true;
            found.ended = Some(format!("interrupted after {erases} of {} cycles", plan.cycles));
        }
        if erases % plan.every == 0 || erases == plan.cycles || found.ended.is_some() {
            found.points.push(sums.point(erases));
            sums = Sums { latest: sums.latest, ..Sums::default() };
        }
    }
    Ok(found)
}

fn check(host: &OpenChannel, plan: &WearPlan) -> Result<(), RunError> {
    let geometry = host.geometry();
    let Unit { channel, pu } = plan.unit;
    for (what, given, count) in
        [("channel", channel, geometry.groups), ("PU", pu, geometry.pus), ("block", plan.block, geometry.chunks)]
    {
        if given >= count {
            return Err(
                BadPlan(format!("{what} {given}: there are {count} in this drive; give 0 to {}", count - 1)).into()
            );
        }
    }
    let pages = pages_of(geometry);
    if plan.pages == 0 || plan.pages > pages {
        return Err(BadPlan(format!("{} pages of a block: there are {pages}; give 1 to {pages}", plan.pages)).into());
    }
    if plan.cycles == 0 || plan.every == 0 {
        let option = if plan.cycles == 0 { "cycles" } else { "cycles between two readings (--every)" };
        return Err(BadPlan(format!("0 {option}: give 1 or more")).into());
    }
    Ok(())
}

/// Writes the pages, then reads them. Returns which write failed, if any, and why.
async fn cycle(
    sim: &Sim,
    host: &OpenChannel,
    plan: &WearPlan,
    place: Place,
    (sums, found, erases): (&mut Sums, &mut WearReport, u64),
) -> String {
    let geometry = host.geometry();
    let page = geometry.ws_min;
    let addresses = |number: u32| -> Vec<u64> {
        let first = geometry.address(Place { sector: number * page, ..place });
        (first..first + u64::from(page)).collect()
    };
    let (mut written, mut broken) = (0, None);
    // Pages beyond the wanted ones are written as well, unmeasured: only a full block can be erased.
    for number in 0..pages_of(geometry) {
        let begun = sim.now();
        if let Err(error) = host.write_from(&addresses(number), &HostMem::none()).await {
            sums.failed_writes += 1;
            found.first_failed_write.get_or_insert(erases);
            // It takes no more pages. A drive may refuse to erase it, too.
            broken = Some(format!(" after the write of page {number} had failed ({})", error.status));
            break;
        }
        written += 1;
        if number < plan.pages {
            add(&mut sums.write, sim.now().since(begun));
        }
    }
    let (reads, mut failed) = (plan.pages.min(written), 0u32);
    for number in 0..reads {
        let begun = sim.now();
        match host.read_into(&addresses(number), &HostMem::none()).await {
            Ok(()) => add(&mut sums.read, sim.now().since(begun)),
            Err(_) => failed += 1,
        }
    }
    sums.failed_reads += u64::from(failed);
    if failed > 0 {
        found.first_failed_read.get_or_insert(erases);
    }
    sums.latest = (sums.latest.0 + u64::from(reads), sums.latest.1 + u64::from(failed));
    if sums.latest.0 >= SAMPLE {
        let (all, failed) = std::mem::take(&mut sums.latest);
        if failed * 10 >= all {
            found.tenth_of_reads_failed.get_or_insert(erases);
        }
    }
    broken.unwrap_or_default()
}
