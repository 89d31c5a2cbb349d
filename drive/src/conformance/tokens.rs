//! Each command completes exactly once, at any depth, in any order, and also when the drive is dropped. After a power cut it
//! does not complete.

use nandscape_sim::{Executor, Rng, Seed, Span};
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};

use super::host::Host;
use super::{Make, SETTLE};
use crate::drive::DriveInfo;
use crate::mem::HostMem;

/// More commands than any queue between a host and a drive holds.
const FLOOD: usize = 3_000;
/// The ordinary number of power cuts.
pub const CUTS: u64 = 24;

/// An arbitrary command.
fn any(info: &DriveInfo, rng: &mut Rng) -> (SubmissionEntry, HostMem) {
    let blocks = 1 + rng.below(u64::from(info.max_blocks.min(24))) as u32;
    let slba = rng.below(info.blocks.min(2_000) - u64::from(blocks));
    let mem = || HostMem::zeroed((blocks * info.lba_bytes) as usize);
    let entry = |opcode| SubmissionEntry::blocks(opcode, info.nsid, slba, blocks);
    match rng.below(20) {
        0 => (SubmissionEntry::io(IoOpcode::FLUSH, info.nsid), HostMem::none()),
        1 => (SubmissionEntry::io(IoOpcode(0x7f), info.nsid), HostMem::none()),
        2 => (entry(IoOpcode::VERIFY), HostMem::none()),
        3 => (entry(IoOpcode::WRITE_ZEROES), HostMem::none()),
        4 => (entry(IoOpcode::COMPARE), mem()),
        5..=11 => (entry(IoOpcode::WRITE), mem()),
        _ => (entry(IoOpcode::READ), mem()),
    }
}

fn flood(host: &Host, rng: &mut Rng, count: usize) {
    for _ in 0..count {
        let (entry, mem) = any(&host.info(), rng);
        host.submit(entry, mem);
    }
}

/// Submits far more commands at once than queues are deep: each completes, once.
///
/// # Errors
/// The drive's fault.
pub fn once_each(make: Make<'_>, seed: u64) -> Result<(), String> {
    super::run("once_each", seed, Executor::new(), make, async |host, _| {
        flood(host, &mut Seed::new(seed).child("once_each").rng(), FLOOD);
        for _ in 0..FLOOD {
            host.next().await?;
        }
        let tags = host.log().iter().map(|ended| ended.tag).collect::<std::collections::BTreeSet<_>>();
        match tags.len() == FLOOD {
            true => Ok(()),
            false => Err(format!("{FLOOD} commands were submitted, and {} ended", tags.len())),
        }
    })
}

/// Cuts power while commands are outstanding, `cuts` times at different times: they do not complete.
///
/// # Errors
/// The drive's fault.
pub fn power_cut(make: Make<'_>, cuts: u64, seed: u64) -> Result<(), String> {
    for cut in 0..cuts {
        let mut rng = Seed::new(seed).child("power_cut").nth(cut).rng();
        // From the fetch of the first command to background work after the last; uniform in the logarithm.
        let after = Span::from_ns(1 << rng.below(25) | rng.below(1 << 24) >> rng.below(24));
        cut_at(make, after, &mut rng)
            .map_err(|what| format!("power_cut, seed {seed}, cut {cut} after {after:?}: {what}"))?;
    }
    Ok(())
}

fn cut_at(make: Make<'_>, after: Span, rng: &mut Rng) -> Result<(), String> {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let subject = make(&sim);
    let host = Host::new(&sim, subject.drive.clone());
    flood(&host, rng, 200);
    executor.block_on(sim.sleep(after)).map_err(|stalled| stalled.to_string())?;
    let before = host.ended();
    drop(executor);
    let stopped = host.ended();
    drop(subject);
    host.let_go();
    host.verdict()?;
    match (stopped, host.ended()) == (before, before) {
        true => Ok(()),
        false => Err(format!(
            "{before} commands had ended; {stopped} had when the executor was gone, {} when the drive was",
            host.ended()
        )),
    }
}

/// Drops the drive while commands are outstanding, with power on: every command completes.
///
/// # Errors
/// The drive's fault.
pub fn dropped_drive(make: Make<'_>, seed: u64) -> Result<(), String> {
    for round in 0..CUTS / 4 {
        let at = |what: String| format!("dropped_drive, seed {seed}, round {round}: {what}");
        let mut rng = Seed::new(seed).child("dropped_drive").nth(round).rng();
        let mut executor = Executor::new();
        let sim = executor.sim();
        let subject = make(&sim);
        let host = Host::new(&sim, subject.drive.clone());
        flood(&host, &mut rng, 200);
        executor.block_on(sim.sleep(Span::from_us(rng.below(400)))).map_err(|stalled| at(stalled.to_string()))?;
        drop(subject);
        host.let_go();
        executor.block_on(sim.sleep(SETTLE)).map_err(|stalled| at(stalled.to_string()))?;
        host.verdict().map_err(at)?;
        if host.ended() != host.submitted() {
            return Err(at(format!("of {} commands, {} ended", host.submitted(), host.ended())));
        }
    }
    Ok(())
}
