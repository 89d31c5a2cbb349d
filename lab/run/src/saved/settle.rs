//! Preconditioning under a load: the drive is written full, then the load repeats in drive time until write amplification
//! settles.
//!
//! Write amplification is measured in windows of one drive write each. It has settled when two windows in a row each differ from
//! the window before by less than 1%. Windows count once as much has been programmed as the flash holds: write amplification is 1
//! until free space is used up. After 32 windows preconditioning ends in any case, and the state records that it did not settle.
//! The test specification of SNIA (Solid State Storage Performance Test Specification, 2.0.2, "steady state") similarly compares
//! five rounds, which may differ by 10% to 20% in throughput or latency. Here write amplification is known exactly, so a smaller
//! margin for noise suffices.
//!
//! Left out: faults, which begin with the run.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use nandscape_device_ftl_core::Stats;
use nandscape_device_ssd::{Profile, Resolved, Ssd};
use nandscape_drive::{Drive, Phase, Precondition, Progress};
use nandscape_lab_workload::{Direction, Hooks, Limit, Runner, Served, Workload};
use nandscape_sim::{Seed, Span};

use super::StateError;
use super::after::{Taken, take_all};
use super::history::{History, Settled};
use crate::build::DriveError;
use crate::chain::FtlNode;
use crate::host::Moment;
use crate::rig::{Rig, RigDrive, Wanted};
use crate::simulation::{RunError, Simulation};
use crate::stand::Stand;

/// Write amplification of two windows is the same when it differs by less than this share.
const SAME: f64 = 0.01;
/// Windows in a row that are the same as the one before.
const IN_A_ROW: usize = 2;
/// Windows at most.
const MOST: usize = 32;
/// Units that are written in a window at least, enough for an average.
const MIN_WINDOW: u64 = 1 << 16;
/// Requests without a write after which a load counts as one that writes nothing.
const MOST_READS: u64 = 1 << 20;

/// Runs `load` on the top of a run until the write amplification of its drives, taken together, settles.
/// Returns the states of the drives, the contents of each layer, and the history.
pub(super) fn settle(
    run: &Simulation,
    load: &Workload,
    progress: &Rc<dyn Progress>,
) -> Result<(Taken, History), RunError> {
    let drive = |drive: &RigDrive| -> Result<RigDrive, RunError> {
        let profile = without_faults(&drive.profile)?;
        Ok(RigDrive { profile, precondition: Precondition::Full, ..drive.clone() })
    };
    let drives = run.drives.iter().map(drive).collect::<Result<_, RunError>>()?;
    let settling = Simulation { drives, block: None, workload: endless(load)?, ..run.clone() };
    settling.check_given(load)?;
    let profile = &settling.drives[0].profile;
    if let Some(job) = load.jobs.iter().find(|job| job.zoned.is_some() && profile.zone().is_some()) {
        let problem = "zonemode = zbd: zones are not collected, so that nothing settles";
        return Err(RunError::Workload(format!("job \"{}\": {problem}", job.name)));
    }
    let load = &settling.workload;
    let mut stand = Stand::build(&settling, Wanted::default(), (Moment::now(), None), &Filling(progress))?;
    let drives = stand.connect(load, |queue| queue)?;
    stand.check_on_top(&drives, load)?;
    let tops = &stand.opened.tops;
    let capacity = if tops.is_empty() { profile.capacity() } else { tops.iter().map(|top| top.info().bytes()).sum() };
    // Where hosts have the FTLs, these amplify writes.
    let ftls: Vec<Rc<Ssd>> =
        stand.opened.layers.iter().filter_map(|layer| Some(layer.node.as_kind::<FtlNode>()?.ssd().clone())).collect();
    let ssds = if ftls.is_empty() { stand.rig.ssds().cloned().collect() } else { ftls };
    let windows = Windows::new(load, capacity, ssds, progress.clone());
    let settled = bring(&mut stand.rig, load, &drives, &windows, Seed::new(run.seed))?;
    drop(drives);
    let taken = take_all(&mut stand.rig, &stand.opened)?.map_err(StateError::Drive)?;
    Ok((taken, History::under_load(run.seed, settled)))
}

/// A load that does not end by itself.
fn endless(load: &Workload) -> Result<Workload, RunError> {
    if load.groups().len() > 1 {
        let problem = "precondition load: jobs with stonewall never end before it settles; choose a load without with --precondition-workload";
        return Err(RunError::Workload(problem.to_owned()));
    }
    let limit = Limit::Requests(u64::MAX / 4);
    Ok(Workload { limit, warmup: 0, ramp: Span::ZERO, ..load.clone() })
}

/// Repeats the load until write amplification settles.
fn bring(
    rig: &mut Rig,
    load: &Workload,
    drives: &[Rc<dyn Drive>],
    windows: &Rc<Windows>,
    seed: Seed,
) -> Result<Settled, RunError> {
    let (begun, progress) = (rig.sim().now(), windows.progress.clone());
    for round in 0.. {
        run(rig, load, drives, windows, seed.child("precondition-load").nth(round))?;
        if windows.is_over.get() {
            break;
        }
    }
    if progress.is_stopped() {
        return Err(RunError::Interrupted);
    }
    let virtual_s = rig.sim().now().since(begun).ns() as f64 / 1e9;
    Ok(Settled { virtual_s, ..windows.settled.borrow().clone() })
}

/// Runs the load once, to the end or until write amplification settles.
fn run(
    rig: &mut Rig,
    load: &Workload,
    drives: &[Rc<dyn Drive>],
    windows: &Rc<Windows>,
    seed: Seed,
) -> Result<(), RunError> {
    let (sim, served) = (rig.sim().clone(), windows.served.get());
    let runner = Runner::new(&sim, load, Box::new(Watch(windows.clone())));
    *windows.runner.borrow_mut() = Rc::downgrade(&runner);
    let mut each = drives.iter().cloned();
    let outcome = rig.run(runner.run(load, seed, |_, _| each.next().expect("a drive for each job")))?;
    if let Some(problem) = &outcome.broken {
        return Err(RunError::Source(problem.clone()));
    }
    if windows.is_without_writes() || windows.served.get() == served {
        return Err(RunError::Workload(format!(
            "precondition load: {} writes nothing, so that write amplification does not change; choose a load that writes with \
             --precondition-workload",
            load.name
        )));
    }
    Ok(())
}

/// Faults begin with the run.
pub(crate) fn without_faults(profile: &Resolved) -> Result<Resolved, RunError> {
    let mut keys = profile.keys.clone();
    keys.faults = None;
    let resolved = Profile::of_keys(profile.name.clone(), keys).resolve();
    resolved.map_err(|error| RunError::Drive(DriveError::State(error.to_string())))
}

/// Counters of the FTLs of all drives.
fn stats(ssds: &[Rc<Ssd>]) -> Stats {
    ssds.iter().map(|ssd| ssd.ftl_stats()).reduce(|one, other| one.plus(&other)).unwrap_or_default()
}

/// Write amplification, window by window.
struct Windows {
    ssds: Vec<Rc<Ssd>>,
    settled: RefCell<Settled>,
    /// Bytes of the host in the window so far.
    written: Cell<u64>,
    /// Requests that have completed, in all.
    served: Cell<u64>,
    /// Counters of the FTL at the beginning of the window.
    begun: Cell<Stats>,
    /// Bytes of a mapping unit.
    unit: u64,
    /// Units that the flash holds.
    flash: u64,
    /// Windows that ended before as much was programmed.
    early: Cell<usize>,
    is_over: Cell<bool>,
    runner: RefCell<Weak<Runner>>,
    progress: Rc<dyn Progress>,
}

impl Windows {
    /// Of a drive, or of layers, of `capacity` bytes.
    fn new(load: &Workload, capacity: u64, ssds: Vec<Rc<Ssd>>, progress: Rc<dyn Progress>) -> Rc<Windows> {
        let unit = u64::from(ssds[0].controller().info().unit_bytes);
        let window = capacity.max(MIN_WINDOW * unit);
        let parts = ssds.iter().flat_map(|ssd| ssd.parts());
        let flash = parts.map(|part| u64::from(part.media().geometry().units())).sum();
        Rc::new(Windows {
            begun: Cell::new(stats(&ssds)),
            ssds,
            settled: RefCell::new(Settled::new(load, window)),
            written: Cell::new(0),
            served: Cell::new(0),
            unit,
            flash,
            early: Cell::new(0),
            is_over: Cell::new(false),
            runner: RefCell::default(),
            progress,
        })
    }

    fn is_without_writes(&self) -> bool {
        self.served.get() >= MOST_READS && self.written.get() == 0 && self.settled.borrow().waf.is_empty()
    }

    fn served(&self, direction: Direction, bytes: u64) {
        self.served.set(self.served.get() + 1);
        if self.is_over.get() {
            return;
        }
        if direction.is_write() {
            self.written.set(self.written.get() + bytes);
        }
        if self.written.get() >= self.settled.borrow().window_bytes {
            self.end_window();
        } else if self.is_without_writes() {
            self.stop();
        }
    }

    fn end_window(&self) {
        self.written.set(0);
        let now = stats(&self.ssds);
        let begun = self.begun.replace(now);
        let programmed = (now.programmed_units() - begun.programmed_units()) * self.unit;
        let host = (now.host_bytes - begun.host_bytes).max(1);
        let settled = &mut *self.settled.borrow_mut();
        // Six decimals, so that a file preserves it.
        settled.waf.push((programmed as f64 / host as f64 * 1e6).round() / 1e6);
        if now.programmed_units() < self.flash {
            self.early.set(settled.waf.len());
        }
        settled.stood_still = stands_still(&settled.waf[self.early.get()..]);
        if settled.stood_still || settled.waf.len() == MOST {
            self.stop();
        }
        self.tell(settled.waf.len() as f64, settled.waf.last().copied());
    }

    fn stop(&self) {
        self.is_over.set(true);
        self.runner.borrow().upgrade().into_iter().for_each(|runner| runner.stop());
    }

    fn tell(&self, windows: f64, waf: Option<f64>) {
        self.progress.at(Phase::Preconditioning, windows / MOST as f64);
        waf.into_iter().for_each(|waf| self.progress.at_waf(waf));
    }
}

fn stands_still(waf: &[f64]) -> bool {
    let Some(last) = waf.len().checked_sub(IN_A_ROW + 1) else { return false };
    waf[last..].windows(2).all(|pair| (pair[1] - pair[0]).abs() < SAME * pair[1])
}

struct Watch(Rc<Windows>);

impl Hooks for Watch {
    fn served(&self, request: &Served<'_>) {
        self.0.served(request.direction, request.bytes);
    }

    fn progress(&self, _: f64) {
        let windows = &self.0;
        let part = windows.written.get() as f64 / windows.settled.borrow().window_bytes as f64;
        windows.tell(windows.settled.borrow().waf.len() as f64 + part, None);
    }

    fn is_stopped(&self) -> bool {
        let is_stopped = self.0.progress.is_stopped();
        if is_stopped {
            self.0.is_over.set(true);
        }
        is_stopped
    }
}

/// Writing the drive full is a small part of it, and not shown.
struct Filling<'a>(&'a Rc<dyn Progress>);

impl Progress for Filling<'_> {
    fn at(&self, phase: Phase, _: f64) {
        self.0.at(phase, 0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_windows_have_to_agree() {
        assert!(!stands_still(&[]) && !stands_still(&[2.0, 2.0]));
        assert!(stands_still(&[2.0, 2.01, 2.0]));
        assert!(!stands_still(&[2.0, 2.03, 2.03]), "only two agree");
        assert!(stands_still(&[1.0, 2.0, 2.01, 2.02]));
    }
}
