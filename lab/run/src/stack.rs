//! A workload on several drives in one simulation, with [layers](crate::chain) of the host over them. A command carries the time
//! of each layer in addition to that of the drive; together they sum to the latency.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use nandscape_drive::{Drive, Node, Role, Use};
use nandscape_lab_workload::{Direction, Hooks, JobSpec, Outcome, Runner, Served, Workload};
use nandscape_sim::{Histogram, Seed, Sim};
use nandscape_wire_nvme::Status;

use crate::build::Precondition;
use crate::chain::{self, Chain, Instance, Named, Opened, Opening, Section};
use crate::cpu::{CpuReport, Host};
use crate::damage::is_for_faults;
use crate::flow::mean_us;
use crate::host::Moment;
use crate::host_report::HostReport;
use crate::inputs::HostInputs;
use crate::percentile::Percentile;
use crate::pressure::Arrivals;
use crate::record::{HostDetails, HostRecorder};
use crate::rig::{self, DriveFinished, Placed, Rig, RigDrive, Wanted};
use crate::saved::{Begin, History, States, save_layers};
use crate::search::Measured;
use crate::simulation::{Observer, Phase, Progress, RunError};
use crate::tap::Tally;

/// Everything that a run on several drives depends on.
#[derive(Clone, Debug)]
pub struct Stack {
    /// The drives, by name; names differ.
    pub drives: Vec<RigDrive>,
    /// What lies over them, the lowest first. Where more than one drive or layer is at the top, jobs use them in turn.
    pub layers: Vec<Named>,
    /// The load on the top layer.
    pub workload: Workload,
    /// Seed of everything random in the load.
    pub seed: u64,
    /// What to record besides the figures.
    pub wanted: Wanted,
    /// Whether the drives' tables are checked afterwards.
    pub check: bool,
    /// The host in whose threads the workload runs, on one drive or layer at the top; without one, hosts take no time.
    pub host: Option<nandscape_host_path::Profile>,
}

/// What a run on several drives leaves behind.
pub struct StackFinished {
    /// The view of the workload.
    pub host: HostReport,
    /// The view of each drive: its own commands, counters and timeline.
    pub drives: Vec<DriveFinished>,
    /// What was recorded above the drives, if that was wanted.
    pub details: Option<HostDetails>,
    /// Every event, as a Chrome trace, if that was wanted.
    pub trace: Option<String>,
    /// Whether the state after the run was saved, if it was to be.
    pub saved: Result<(), RunError>,
    /// All latencies, by the number of the direction.
    latencies: Vec<Histogram>,
}

impl Measured for StackFinished {
    fn latencies(&self, direction: Direction) -> &Histogram {
        &self.latencies[direction as usize]
    }

    fn arrivals(&self) -> Option<&Arrivals> {
        self.host.arrivals.as_ref()
    }
}

impl StackFinished {
    /// Of drives that clients used.
    pub(crate) fn of_clients(host: HostReport, drives: Vec<DriveFinished>, outcome: &Outcome) -> StackFinished {
        let latencies = Direction::ALL.iter().map(|way| outcome.tally(*way).latency.clone()).collect();
        StackFinished { host, drives, details: None, trace: None, saved: Ok(()), latencies }
    }

    /// Adds percentiles to the latencies of the host.
    pub fn choose_percentiles(&mut self, chosen: &[Percentile]) {
        for direction in Direction::ALL {
            if let Some(latency) = self.host.latency_us.get_mut(direction.name()) {
                latency.choose(&self.latencies[direction as usize], chosen);
            }
        }
    }

    /// Mean latency of all requests in microseconds; `None` without any.
    pub fn mean_us(&self) -> Option<f64> {
        mean_us(self.latencies.iter())
    }

    /// Requests that failed for the sake of planned faults or of wear, and others.
    pub fn failures(&self) -> (u64, u64) {
        let damaged = self.drives.iter().filter(|drive| drive.report.damage.is_some()).count();
        // What an array makes good must not fail.
        let tolerated = self.host.array.as_ref().map_or(0, |array| array.tolerates);
        // It cannot mask a power cut: commands in progress end.
        let is_power_cut = |status: &str| damaged > 0 && status == Status::ABORTED_POWER_LOSS.to_string();
        let is_planned = |status: &str| (damaged > tolerated && is_for_faults(status)) || is_power_cut(status);
        let sum = |wanted: bool| {
            let errors = self.host.errors.iter().filter(|(status, _)| is_planned(status) == wanted);
            errors.map(|(_, count)| count).sum()
        };
        (sum(true), sum(false))
    }
}

/// What layers begin in: the state of new ones, and what others held, from which they continue.
struct Begins<'a> {
    precondition: Precondition,
    held: &'a [Vec<u8>],
}

/// Begins the measured phase on all drives at once, and passes progress on.
struct Watch {
    sim: Sim,
    drives: Rc<[Placed]>,
    tallies: Rc<[Rc<Tally>]>,
    opened: Rc<Opened>,
    host: Option<Rc<Host>>,
    recorder: Option<Rc<HostRecorder>>,
    observer: Option<Rc<dyn Observer>>,
    progress: Rc<dyn Progress>,
    measuring: Cell<bool>,
}

impl Hooks for Watch {
    fn measuring(&self) {
        assert!(!self.measuring.replace(true), "the measured phase begins once");
        self.drives.iter().for_each(|drive| drive.begin(&self.sim));
        self.tallies.iter().for_each(|tally| tally.begin(self.sim.now()));
        self.opened.layers.iter().for_each(|layer| layer.node.begin());
        self.host.iter().for_each(|host| host.begin());
        self.recorder.iter().for_each(|recorder| recorder.begin(self.sim.now()));
    }

    fn watches_requests(&self) -> bool {
        self.recorder.is_some() || self.observer.is_some()
    }

    fn served(&self, request: &Served<'_>) {
        let schedule = || self.opened.layers.iter().find_map(|layer| layer.node.schedule());
        self.recorder.iter().for_each(|recorder| recorder.served(request, schedule()));
        self.observer.iter().for_each(|observer| observer.served(request));
    }

    fn progress(&self, share: f64) {
        self.progress.at(Phase::Running, share);
    }

    fn is_stopped(&self) -> bool {
        self.progress.is_stopped()
    }
}

impl Stack {
    /// Runs it.
    ///
    /// # Errors
    /// See [`RunError`]. Commands that fail are no error: the reports count them.
    pub fn run(&self, progress: Rc<dyn Progress>) -> Result<StackFinished, RunError> {
        self.run_begun((&Begin::default(), &Chain::default()), progress, None)
    }

    /// The same, from a state that was saved, or is to be, and under the eyes of an observer. `chain` is the layers as text, which a
    /// state has.
    ///
    /// # Errors
    /// See [`Stack::run`].
    pub fn run_begun(
        &self,
        (begin, chain): (&Begin, &Chain),
        progress: Rc<dyn Progress>,
        observer: Option<Rc<dyn Observer>>,
    ) -> Result<StackFinished, RunError> {
        let created = Moment::now();
        self.check_names()?;
        self.drives.iter().try_for_each(|drive| begin.check_save_after(&drive.profile))?;
        let (states, held) = match begin.is_restored() {
            true => {
                let States { drives, held } = begin.states(self, chain, &progress)?;
                (drives.into_iter().map(Some).collect(), held)
            }
            false => (self.drives.iter().map(|_| None).collect::<Vec<_>>(), Vec::new()),
        };
        let history = states.iter().flatten().next().map(|(_, history)| history.precondition);
        let drives = self.drives.iter().cloned().zip(states).collect();
        let planted = !chain::is_over_chunks(&self.layers);
        let mut rig = Rig::build_in((created, planted), drives, self.wanted, &*progress)?;
        let tallies: Rc<[Rc<Tally>]> = (0..self.drives.len()).map(|number| Tally::of(rig.drives(), number)).collect();
        let begins = Begins { precondition: history.unwrap_or(self.drives[0].precondition), held: &held };
        let opened = Rc::new(self.open(&mut rig, &tallies, begins, &*progress)?);
        let host = self.host_over(&rig, &opened.tops)?;
        let tops = match &host {
            Some(host) => host.connect_over(&self.workload)?,
            None => self.connect_all(&opened.tops)?,
        };
        for top in &tops {
            let info = top.info();
            self.workload.check_on(info.bytes(), info.lba_bytes).map_err(RunError::Workload)?;
        }
        let (sim, drives) = (rig.sim().clone(), rig.drives().clone());
        let measuring = Cell::new(false);
        let turns = || opened.layers.iter().find_map(|layer| layer.node.turns());
        let recorder = || HostRecorder::new(rig.ssds().map(|ssd| &**ssd), turns());
        let recorder = self.wanted.details.then(|| Rc::new(recorder()));
        recorder.iter().for_each(|recorder| rig.listen(recorder.clone()));
        let (tapped, of_host) = (tallies.clone(), recorder.clone());
        let watch = Watch {
            sim: sim.clone(),
            drives,
            tallies: tapped,
            opened: opened.clone(),
            host: host.clone(),
            recorder: of_host,
            observer,
            progress,
            measuring,
        };
        let runner = Runner::new(&sim, &self.workload, Box::new(watch));
        let (seed, mut tops) = (Seed::new(self.seed).child("workload"), tops.into_iter());
        let outcome = rig.run(runner.run(&self.workload, seed, |_, _| tops.next().expect("a drive for each job")))?;
        if let Some(problem) = &outcome.broken {
            return Err(RunError::Source(problem.clone()));
        }
        if outcome.interrupted && outcome.requests() == 0 {
            return Err(RunError::Interrupted);
        }
        let finish = |(number, tally): (usize, &Rc<Tally>)| {
            rig.finish(number, &tally.outcome(&outcome), &self.workload, self.seed)
        };
        let mut drives: Vec<DriveFinished> = tallies.iter().enumerate().map(finish).collect();
        drives.iter_mut().for_each(|drive| drive.report.inputs.host = self.host.as_ref().map(HostInputs::of));
        if self.check {
            rig.check()?;
            let check = |layer: &Instance| layer.node.check().map_err(|problem| format!("{}: {problem}", layer.name));
            opened.layers.iter().try_for_each(check).map_err(RunError::Inconsistent)?;
        }
        let cpu = host.as_deref().map(|host| host.report(outcome.requests()));
        let mut host = HostReport::new(&outcome, &self.workload, self.seed);
        if self.host.is_none() {
            host.notes.extend(self.workload.note_on_threads());
        }
        host.limited_by = cpu.as_ref().and_then(CpuReport::limits);
        host.cpu = cpu;
        host.chain = opened.layers.iter().map(Section::of).collect();
        host.array = host.chain.iter().find_map(Section::array).cloned();
        if host.array.as_ref().is_some_and(|array| array.windows_refused) {
            let note = "the drives have refused the array's windows, and collect at any time: drives with ftl.kind=\"page\" have \
                        windows, and array.ranges has to be 1 or their ftl.windows.ranges";
            host.notes.push(note.to_owned());
        }
        let of_drives: Vec<_> = drives.iter().map(|drive| (&*drive.name, &drive.report.notes[..])).collect();
        host.notes.extend(notes_of_each(&of_drives));
        if let Some(array) = &host.array {
            let names: Vec<&str> = self.drives.iter().map(|drive| &*drive.name).collect();
            host.notes.extend(array.failures(&names));
            host.notes.extend(array.short_of_a_cycle(host.virtual_s));
        }
        let details = recorder.map(|recorder| recorder.finish(&outcome));
        let trace = self.wanted.trace.then(|| rig.chrome_json());
        let latencies = Direction::ALL.iter().map(|way| outcome.tally(*way).latency.clone()).collect();
        let (name, requests) = (&self.workload.name, outcome.requests());
        let history = || rig.drives()[0].history_after(self.seed, name, requests);
        let saved = begin.save_after.as_deref().map(|path| (path, history()));
        let save = |(path, history): (&Path, History)| save_layers(&mut rig, (&*opened, chain), path, &history);
        let saved = saved.map_or(Ok(()), save);
        Ok(StackFinished { host, drives, details, trace, saved, latencies })
    }

    /// New drives of it in their states of use, and the layers over them, without a load.
    pub(crate) fn idle(&self, progress: &dyn Progress) -> Result<(Rig, Opened), RunError> {
        let created = (Moment::now(), !chain::is_over_chunks(&self.layers));
        let mut rig = Rig::build_in(created, rig::new(self.drives.clone()), Wanted::default(), progress)?;
        let tallies: Vec<Rc<Tally>> = (0..self.drives.len()).map(|number| Tally::of(rig.drives(), number)).collect();
        let begins = Begins { precondition: self.drives[0].precondition, held: &[] };
        let opened = self.open(&mut rig, &tallies, begins, progress)?;
        Ok((rig, opened))
    }

    /// The layers over the drives.
    fn open(
        &self,
        rig: &mut Rig,
        tallies: &[Rc<Tally>],
        Begins { precondition, held }: Begins<'_>,
        progress: &dyn Progress,
    ) -> Result<Opened, RunError> {
        let mut nodes: Vec<(String, Rc<dyn Node>)> = Vec::new();
        for (number, (drive, tally)) in self.drives.iter().zip(tallies).enumerate() {
            let node = rig.node((number, 1), Some(tally.clone()));
            if chain::is_over_chunks(&self.layers) {
                let failed = |problem: String| RunError::Workload(format!("drive {}: {problem}", drive.name));
                rig.run(node.open_chunks())?.map_err(failed)?;
            }
            nodes.push((drive.name.clone(), Rc::new(node)));
        }
        let sim = rig.sim().clone();
        let how =
            Opening { seed: Seed::new(self.seed).child("layers"), precondition, progress, ..Opening::new(&sim, "") };
        chain::open_in(&how, &self.layers, nodes, held).map_err(RunError::Workload)
    }

    fn host_over(&self, rig: &Rig, tops: &[Rc<dyn Node>]) -> Result<Option<Rc<Host>>, RunError> {
        let Some(profile) = &self.host else { return Ok(None) };
        match tops {
            [top] => Host::over_top(profile, rig.sim(), &**top, self.wanted.trace).map(Rc::new).map(Some),
            _ => Err(RunError::Workload(format!(
                "a host runs on one drive or layer, and {} are at the top; a layer over all of them is valid, such as ahci:{}",
                tops.len(),
                tops.len()
            ))),
        }
    }

    fn check_names(&self) -> Result<(), RunError> {
        let mut seen = BTreeMap::new();
        for (number, drive) in self.drives.iter().enumerate() {
            if let Some(first) = seen.insert(&drive.name, number) {
                let problem =
                    format!("drives {first} and {number} are both called {:?}; names must differ", drive.name);
                return Err(RunError::Workload(problem));
            }
        }
        match self.drives.is_empty() {
            true => Err(RunError::Workload("a workload needs at least one drive".to_owned())),
            false => Ok(()),
        }
    }

    /// A drive for each job and each load.
    pub(crate) fn connect_all(&self, tops: &[Rc<dyn Node>]) -> Result<Vec<Rc<dyn Drive>>, RunError> {
        let jobs = self.workload.jobs.iter().flat_map(|spec| (0..spec.numjobs).map(move |_| entries(spec)));
        let loads = self.workload.loads.iter().map(|_| u32::MAX);
        let top = |(index, entries): (usize, u32)| {
            let connected = tops[index % tops.len()].connect(Use { role: Role::Any, entries });
            connected.map_err(|refused| RunError::Workload(refused.to_string()))
        };
        jobs.chain(loads).enumerate().map(top).collect()
    }
}

/// Notes of several drives by name. A note of several drives appears once, for all drives or with the names of its drives. Notes
/// of one drive stay unchanged.
pub fn notes_of_each(drives: &[(&str, &[String])]) -> Vec<String> {
    let mut told: Vec<(&String, Vec<&str>)> = Vec::new();
    for (name, notes) in drives {
        for note in *notes {
            match told.iter_mut().find(|(other, _)| *other == note) {
                Some((_, names)) => names.push(name),
                None => told.push((note, vec![name])),
            }
        }
    }
    let text = |(note, names): (&String, Vec<&str>)| match (names.len(), drives.len()) {
        (_, 1) => note.clone(),
        (of, all) if of == all => format!("each of {all} drives: {note}"),
        (1, _) => format!("drive {}: {note}", names[0]),
        _ => format!("drives {}: {note}", names.join(", ")),
    };
    told.into_iter().map(text).collect()
}

/// Entries of a job's queue pair. One always stays empty; open jobs may have any number of requests outstanding.
pub(crate) fn entries(spec: &JobSpec) -> u32 {
    if spec.is_open() { u32::MAX } else { spec.iodepth.saturating_add(1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_said_once_with_the_drives_that_it_is_of() {
        let notes = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let (both, more) = (notes(&["small"]), notes(&["small", "old"]));
        let three = notes_of_each(&[("a", &both), ("b", &more), ("c", &more)]);
        assert_eq!(three, ["each of 3 drives: small", "drives b, c: old"]);
        assert_eq!(notes_of_each(&[("a", &more), ("b", &both)]), ["each of 2 drives: small", "drive a: old"]);
        assert_eq!(notes_of_each(&[("a", &more)]), ["small", "old"]);
    }
}
