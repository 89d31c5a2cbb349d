//! A client with its own runs, and a plain model of them: opens, appends, edits, reads and reports at random. After a
//! power cut a command was done or not.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;

use nandscape_device_ftl_core::{ReadError, Unreadable};
use nandscape_sim::{Rng, Span};

use super::rig::{Cut, Kind, MOST, Rig, bytes, stamps};
use crate::lsm::{Edit, RunError, RunInfo, RunState};

/// The most runs of a client, and the most units of all of them.
const RUNS: usize = 7;
const UNITS: usize = 150;
/// Levels in use, and the most units of an append.
const LEVELS: u64 = 5;
const APPEND: u64 = 12;
/// Attempts to read a page that cannot be read now and then.
const ATTEMPTS: u32 = 300;

/// The expected state of a run.
struct Run {
    place: u32,
    level: u8,
    state: RunState,
    is_closed: bool,
    order: u64,
    stamps: Vec<u64>,
}

/// The state that all clients share.
pub(super) struct Shared {
    pub(super) rig: Rc<Rig>,
    pub(super) kind: Kind,
    pub(super) stamp: Cell<u64>,
    /// The highest order so far.
    pub(super) order: Cell<u64>,
    /// Clients that have not ended, commands that met a power cut, appends for which there was no room, units that were lost.
    pub(super) running: Cell<u32>,
    pub(super) cuts: Cell<u32>,
    pub(super) full: Cell<u32>,
    pub(super) lost: Cell<u32>,
}

/// See the file.
pub(super) struct Client {
    shared: Rc<Shared>,
    runs: Vec<Run>,
    rng: Rng,
}

impl Client {
    pub(super) fn new(shared: &Rc<Shared>, rng: Rng) -> Client {
        Client { shared: shared.clone(), runs: Vec::new(), rng }
    }

    /// Operations at random; then all of its runs are checked, and dropped.
    pub(super) async fn run(mut self, operations: u32) {
        for _ in 0..operations {
            self.shared.rig.until_up().await;
            match self.rng.below(10) {
                0 => self.open(),
                1..5 => self.append().await,
                5..7 => self.commit(),
                7..9 => self.read_some().await,
                _ => self.check_report(),
            }
        }
        for run in 0..self.runs.len() {
            self.read(run, 0, MOST).await;
        }
        self.check_report();
        self.shared.rig.until_up().await;
        let drops: Vec<Edit> = self.runs.drain(..).map(|run| Edit::Drop(run.place)).collect();
        self.shared.rig.ftl.commit(&drops).expect("nothing is under way");
        self.shared.running.set(self.shared.running.get() - 1);
    }

    fn pick(&mut self) -> Option<usize> {
        (!self.runs.is_empty()).then(|| self.rng.below(self.runs.len() as u64) as usize)
    }

    fn open(&mut self) {
        if self.runs.len() < RUNS {
            let level = self.rng.below(LEVELS) as u8;
            let place = self.shared.rig.ftl.open_run(level).expect("a place");
            let (state, stamps) = (RunState::New, Vec::new());
            self.runs.push(Run { place, level, state, is_closed: false, order: 0, stamps });
        }
    }

    async fn append(&mut self) {
        let Some(number) = self.pick() else { return };
        let units = 1 + self.rng.below(APPEND) as usize;
        // A lost page would hide which of two versions remains.
        let repeats = !self.shared.kind.may_lose && self.rng.chance(0.1);
        let run = &self.runs[number];
        let len = run.stamps.len();
        let at = if repeats { self.rng.below(len as u64 + 1) as usize } else { len };
        let first = self.shared.stamp.get();
        self.shared.stamp.set(first + units as u64);
        let new: Vec<u64> = (first..first + units as u64).collect();
        let (rig, place) = (self.shared.rig.clone(), run.place);
        let refused = match () {
            () if run.state == RunState::Sealed || run.is_closed => Some(RunError::Sealed),
            () if at + units > MOST as usize => Some(RunError::TooLong),
            () => None,
        };
        let ended = rig.append(place, at as u32, &bytes(&new)).await;
        let run = &mut self.runs[number];
        match (ended, refused) {
            (Ok(Err(why)), Some(right)) => assert_eq!(why, right),
            (Ok(Ok(())), None) => {
                run.stamps.truncate(at);
                run.stamps.extend(new);
            }
            (Ok(Err(RunError::Full)), None) if self.shared.kind.may_be_full => {
                self.shared.full.set(self.shared.full.get() + 1);
                self.settle(number, at, &[]).await;
            }
            (Err(Cut), _) => {
                self.shared.cuts.set(self.shared.cuts.get() + 1);
                self.settle(number, at, &new).await;
            }
            (Ok(Err(RunError::Full)), None) => {
                panic!("an append of {units} at {at} of {len} is full: {}", rig.ftl.told())
            }
            (ended, right) => panic!("an append of {units} at {at} of {len} gives {ended:?} and not {right:?}"),
        }
    }

    /// Determines the outcome of an append: the run is as before, has all of it, or, where nothing was appended, ends
    /// where it began.
    async fn settle(&mut self, number: usize, at: usize, new: &[u64]) {
        let old = self.runs[number].stamps.clone();
        let mut appended = old[..at].to_vec();
        appended.extend(new);
        let len = loop {
            self.shared.rig.until_up().await;
            let len = self.info(number).units as usize;
            if old.len() != appended.len() || at == old.len() {
                break len;
            }
            // Both have the same length: a unit decides.
            if let Ok(Ok(found)) = self.shared.rig.read(self.runs[number].place, at as u32, 1).await {
                self.runs[number].stamps = if stamps(&found)[0] == old[at] { old } else { appended };
                return;
            }
        };
        let right = [old, appended].into_iter().find(|stamps| stamps.len() == len);
        self.runs[number].stamps = right.unwrap_or_else(|| panic!("a run of {len} units, neither old nor new"));
    }

    fn info(&self, number: usize) -> RunInfo {
        let place = self.runs[number].place;
        let infos = self.shared.rig.ftl.runs(place);
        *infos.first().filter(|info| info.run == place).expect("the run is there")
    }

    /// Edits at random, some of which cannot be made.
    fn commit(&mut self) {
        let (mut edits, count) = (Vec::new(), 1 + self.rng.below(3));
        let mut gone = Vec::new();
        for _ in 0..count {
            let Some(number) = self.pick().filter(|number| !gone.contains(number)) else { continue };
            let run = &mut self.runs[number];
            let before = (run.level, run.state, run.is_closed);
            match self.rng.below(5) {
                0 if run.state != RunState::Sealed => {
                    edits.push(Edit::Publish(run.place));
                    run.state = RunState::Published;
                }
                1 if run.state != RunState::Sealed => {
                    edits.push(Edit::Seal(run.place));
                    run.state = RunState::Sealed;
                }
                2 => {
                    run.level = self.rng.below(LEVELS) as u8;
                    edits.push(Edit::Relevel(run.place, run.level));
                }
                3 if self.rng.chance(0.3) => {
                    edits.push(Edit::Close(run.place));
                    run.is_closed = true;
                }
                4 if self.rng.chance(0.4) => {
                    edits.push(Edit::Drop(run.place));
                    gone.push(number);
                }
                _ => assert_eq!(before, (run.level, run.state, run.is_closed)),
            }
        }
        let total: usize = self.runs.iter().map(|run| run.stamps.len()).sum();
        if total > UNITS
            && let Some(number) = (0..self.runs.len()).find(|number| !gone.contains(number))
        {
            edits.push(Edit::Drop(self.runs[number].place));
            gone.push(number);
        }
        self.try_wrong(&edits);
        self.shared.rig.ftl.commit(&edits).expect("edits that can be made");
        self.note_orders(&edits, &gone);
        gone.sort_unstable();
        gone.into_iter().rev().for_each(|number| drop(self.runs.swap_remove(number)));
    }

    /// The same edits and one that cannot be made: nothing changes.
    fn try_wrong(&mut self, edits: &[Edit]) {
        if self.rng.chance(0.2) {
            let (ftl, wrong) = (&self.shared.rig.ftl, Edit::Seal(super::rig::RUNS - 1));
            let before = ftl.runs(0);
            assert!(before.iter().all(|info| info.run != super::rig::RUNS - 1), "the last place is free");
            let refused = ftl.commit(&[edits, &[wrong]].concat());
            assert_eq!(refused, Err((edits.len(), RunError::NoRun)));
            assert_eq!(ftl.runs(0), before, "a commit that was refused has changed runs");
        }
    }

    /// Runs that were published or sealed have higher orders than all existing runs.
    fn note_orders(&mut self, edits: &[Edit], gone: &[usize]) {
        let counted = edits.iter().filter_map(|edit| match edit {
            Edit::Publish(place) | Edit::Seal(place) => Some(*place),
            _ => None,
        });
        for place in counted.collect::<BTreeSet<u32>>() {
            let number = (0..self.runs.len()).find(|number| self.runs[*number].place == place).expect("it was picked");
            if !gone.contains(&number) {
                let order = self.info(number).order;
                assert!(order > self.runs[number].order, "run {place} has the order {order} again");
                self.runs[number].order = order;
                self.shared.order.set(self.shared.order.get().max(order));
            }
        }
    }

    /// Checks that the report has the expected state of each run.
    fn check_report(&self) {
        for (run, number) in self.runs.iter().zip(0..) {
            let info = self.info(number);
            let found = (info.level, info.state, info.units as usize, info.order);
            assert_eq!(found, (run.level, run.state, run.stamps.len(), run.order), "run {}", run.place);
        }
        self.shared.rig.ftl_is_sound();
    }

    async fn read_some(&mut self) {
        let Some(number) = self.pick() else { return };
        let first = self.rng.below(MOST.into()) as u32;
        let units = 1 + self.rng.below(u64::from(MOST - first).min(20)) as u32;
        self.read(number, first, units).await;
    }

    /// Reads units of a run, again after power cuts and where a page cannot be read now. One that was lost stays so.
    async fn read(&mut self, number: usize, first: u32, units: u32) {
        let (run, rig) = (&self.runs[number], &self.shared.rig);
        let mut attempts = 0;
        loop {
            rig.until_up().await;
            match rig.read(run.place, first, units).await {
                Err(Cut) => {}
                Ok(Ok(found)) => {
                    let at = |unit: u32| run.stamps.get(unit as usize).copied().unwrap_or(0);
                    let right: Vec<u64> = (first..first + units).map(at).collect();
                    return assert_eq!(stamps(&found), right, "run {} from {first} on", run.place);
                }
                Ok(Err(ReadError { why: Unreadable::Lost, .. })) if self.shared.kind.may_lose => {
                    return self.shared.lost.set(self.shared.lost.get() + 1);
                }
                Ok(Err(ReadError { why: Unreadable::Media(_), .. }))
                    if self.shared.kind.may_lose && attempts < ATTEMPTS =>
                {
                    attempts += 1;
                    rig.sim.sleep(Span::from_ms(10)).await;
                }
                Ok(Err(error)) => panic!("run {} from {first} on: {error:?}", run.place),
            }
        }
    }
}
