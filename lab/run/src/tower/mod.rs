//! Drives with layers of a host over them, in simulated time, for an engine of an application: it uses what is at the top.
//!
//! | file | what |
//! |---|---|
//! | `mod` | what lies below an engine, new or in a saved state, and a run of the engine on it |
//! | `gate` | the way of the engine, closed before a state is saved |
//! | `watch` | the report of the measured phase |
//! | `recorded` | the recording of its commands |
//! | `figures` | what the drives have done |
//!
//! Left out: workloads, which a [`Simulation`](crate::Simulation) runs.

mod figures;
mod gate;
mod recorded;
mod watch;

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Resolved, SavedDrive, Ssd};
use nandscape_drive::{Drive, DriveInfo, Node, Precondition, Refused, Role, Use};
use nandscape_sim::{Seed, Sim};
use nandscape_transport_reactor::recording::Tape;

use self::gate::Gate;
use self::watch::{Watch, Watching};
use crate::chain::{self, Chain, LayerSettings, Named, Opened, Opening};
use crate::host::Moment;
use crate::rig::{Rig, RigDrive, Wanted};
use crate::saved::{self, History, StateError, StateFile};
use crate::simulation::RunError;
use crate::tap::{self, Tally, Tap};
use crate::watched::LiveReport;

pub use figures::DriveFigures;
pub use recorded::Recording;
pub use watch::EngineLoad;

/// Why an engine has no drive, or its run was not saved.
#[derive(Debug, thiserror::Error)]
pub enum TowerError {
    /// The layers cannot lie over what is below them, or the engine not over the layers.
    #[error("{0}")]
    Layers(String),
    /// The drives cannot be built, are stuck, or their state cannot be saved.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The commands cannot be recorded.
    #[error("{0}")]
    Record(String),
}

impl TowerError {
    /// Whether the input is invalid, as opposed to a failed run.
    pub fn is_input(&self) -> bool {
        match self {
            TowerError::Layers(_) => true,
            TowerError::Run(error) => error.is_input(),
            TowerError::Record(_) => false,
        }
    }
}

impl From<StateError> for TowerError {
    fn from(error: StateError) -> TowerError {
        TowerError::Run(error.into())
    }
}

impl From<nandscape_sim::Stalled> for TowerError {
    fn from(stalled: nandscape_sim::Stalled) -> TowerError {
        TowerError::Run(stalled.into())
    }
}

/// What an engine needs at the top.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Needs {
    /// Blocks, and a drive that keeps their data.
    #[default]
    Blocks,
    /// The chunks of an open-channel drive, whose data is not kept.
    Chunks,
}

/// What lies below an engine, in addition to a profile.
#[derive(Clone, Debug, Default)]
pub struct Below {
    /// The layers, the lowest first.
    pub layers: Vec<Named>,
    /// The same as text, which states and recordings have.
    pub chain: Chain,
    /// The profile of each drive, where they differ; empty: all have the same.
    pub drives: Vec<Resolved>,
    /// What the engine needs.
    pub needs: Needs,
    /// What is recorded besides the figures.
    pub wanted: Wanted,
    /// The state that drives and layers begin in; new ones without it.
    pub from: Option<Arc<StateFile>>,
    /// Where the state is saved in which the measured load begins.
    pub save: Option<PathBuf>,
    /// Where the state after the run is saved.
    pub save_after: Option<PathBuf>,
    /// Where the commands of the engine are recorded.
    pub record: Option<Recording>,
}

/// What a run of an engine leaves.
pub struct Ran<T> {
    /// The figures of the engine.
    pub outcome: T,
    /// The report of the measured phase, if details were wanted.
    pub report: Option<LiveReport>,
    /// Every event, as a Chrome trace, if that was wanted.
    pub trace: Option<String>,
}

impl Below {
    /// Whether the drives hold the engine's data when a run begins.
    pub fn is_filled(&self) -> bool {
        self.from.is_some()
    }

    /// What lies below the run that brings new drives into the state in which the measured load begins, with the profile; `None` if
    /// that state is not saved. Faults begin with the measured load.
    ///
    /// # Errors
    /// When the drives have no state without faults, or their state cannot be saved.
    pub fn filling(&self, drive: &Resolved) -> Result<Option<(Below, Resolved)>, TowerError> {
        let Some(path) = self.save.clone() else { return Ok(None) };
        self.check(drive)?;
        let drives = self.drives.iter().map(saved::without_faults).collect::<Result<_, RunError>>()?;
        let wanted = Wanted::default();
        let below = Below { save_after: Some(path), save: None, record: None, wanted, drives, ..self.clone() };
        Ok(Some((below, saved::without_faults(drive)?)))
    }

    /// What lies below the run from the state that [`Below::filling`] has saved.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn filled(&self) -> Result<Below, TowerError> {
        let file = self.save.as_deref().map(StateFile::open).transpose()?;
        Ok(Below { from: file.map(Arc::new), save: None, ..self.clone() })
    }

    /// The profiles of the drives, as many as the layers need.
    fn profiles(&self, drive: &Resolved) -> Result<Vec<Resolved>, TowerError> {
        let count = chain::drives_below(&self.layers);
        match self.drives.len() {
            0 => Ok(vec![drive.clone(); count]),
            given if given == count => Ok(self.drives.clone()),
            given => {
                Err(TowerError::Layers(format!("there are profiles of {given} drives, and the layers need {count}")))
            }
        }
    }

    fn check(&self, drive: &Resolved) -> Result<(), TowerError> {
        if self.record.is_some() && self.needs == Needs::Chunks {
            return Err(RunError::Workload(
                "--record: commands on chunks name lists of addresses in the memory of their host, which a recording does not have; \
                 --chrome-trace FILE has all events"
                    .to_owned(),
            )
            .into());
        }
        let checked = match self.needs {
            _ if self.layers.is_empty() => Ok(()),
            Needs::Blocks => chain::check_over(&self.layers, drive),
            Needs::Chunks => chain::check_chunks(&self.layers),
        };
        checked.map_err(TowerError::Layers)?;
        let mut saves = self.save_after.iter().chain(&self.save);
        Ok(saves.try_for_each(|path| check_can_save(drive, path))?)
    }

    fn store(&self) -> StoreKind {
        match self.needs {
            Needs::Blocks => StoreKind::Ram,
            Needs::Chunks => StoreKind::None,
        }
    }

    /// Runs an engine on the top of drives of a profile, and saves the state after the run if `body` succeeds. `load` describes the
    /// run.
    ///
    /// # Errors
    /// Those of `body`, and a [`TowerError`].
    pub fn run<T, E, F>(
        &self,
        drive: &Resolved,
        (seed, load): (u64, &EngineLoad),
        body: impl FnOnce(Rc<Top>) -> F,
    ) -> Result<Ran<T>, E>
    where
        E: From<TowerError>,
        F: Future<Output = Result<T, E>>,
    {
        let mut tower = Tower::build(drive, self, seed)?;
        let outcome = tower.rig.run(body(tower.top.clone())).map_err(TowerError::from)??;
        let report = tower.top.watch.as_ref().and_then(|watch| watch.take_report());
        let trace = self.wanted.trace.then(|| tower.rig.chrome_json());
        if let Some((tape, recording)) = tower.top.tape.as_ref().zip(self.record.as_ref()) {
            recorded::end(tape, recording)?;
        }
        if let Some(path) = &self.save_after {
            tower.save((path, &self.chain), (seed, load))?;
        }
        Ok(Ran { outcome, report, trace })
    }
}

/// Checks before a run that the state of such a drive can be saved to a file.
fn check_can_save(drive: &Resolved, path: &Path) -> Result<(), StateError> {
    drive.check_can_be_saved().map_err(StateError::Drive)?;
    saved::check_can_write(path)
}

/// What an engine uses.
pub struct Top {
    sim: Sim,
    ssds: Vec<Rc<Ssd>>,
    node: Rc<dyn Node>,
    /// Those of its connections, which are closed before a state is saved.
    gates: RefCell<Vec<Rc<Gate>>>,
    tape: Option<Rc<Tape>>,
    watch: Option<Rc<Watch>>,
}

impl Top {
    /// The clock of the engine's host.
    pub fn sim(&self) -> &Sim {
        &self.sim
    }

    /// What is at the top.
    pub fn info(&self) -> DriveInfo {
        self.node.info()
    }

    /// A connection to the top, with so many entries at most.
    ///
    /// # Errors
    /// When there is no queue pair left.
    pub fn connect(&self, entries: u32) -> Result<Rc<dyn Drive>, Refused> {
        let connected = self.node.connect(Use { role: Role::Any, entries })?;
        let connected = self.tape.as_ref().map_or(connected.clone(), |tape| tape.over(connected));
        let gate = Gate::over(&self.sim, connected);
        self.gates.borrow_mut().push(gate.clone());
        Ok(match &self.watch {
            Some(watch) => Tap::over(&self.sim, gate, watch.clone()),
            None => gate,
        })
    }

    /// The admin queue of the top, where it has one. An array has none, and commands to one would not be recorded.
    pub fn admin(&self) -> Option<Rc<dyn Drive>> {
        self.node.connect(Use { role: Role::Admin, entries: 32 }).ok().filter(|_| self.tape.is_none())
    }

    /// The drives.
    pub fn ssds(&self) -> &[Rc<Ssd>] {
        &self.ssds
    }

    /// The measured phase begins.
    pub fn begin(&self) {
        self.watch.iter().for_each(|watch| watch.begin());
    }

    /// The measured phase, of this load, ends.
    pub fn end(&self, load: &EngineLoad) {
        self.watch.iter().for_each(|watch| watch.end(load));
    }
}

/// Drives, the layers over them, and the way to the top.
struct Tower {
    rig: Rig,
    opened: Rc<Opened>,
    top: Rc<Top>,
}

/// The states of drives with their history, and what each layer held.
type Begun = (Vec<Option<(SavedDrive, History)>>, Vec<Vec<u8>>);

impl Tower {
    /// Several drives or layers at the top are an error: an engine uses one.
    fn build(drive: &Resolved, below: &Below, seed: u64) -> Result<Tower, TowerError> {
        let created = Moment::now();
        below.check(drive)?;
        let (profiles, seed_of_all) = (below.profiles(drive)?, Seed::new(seed));
        let count = profiles.len();
        let (states, held) = begun(below, &profiles)?;
        let given = |(number, profile): (usize, Resolved)| RigDrive {
            name: if below.layers.is_empty() { profile.name.clone() } else { crate::name_of_drive(number) },
            profile,
            store: below.store(),
            precondition: Precondition::None,
            seed: if count == 1 { seed_of_all } else { seed_of_all.nth(number as u64) },
        };
        let drives = profiles.into_iter().enumerate().map(given).zip(states).collect();
        let mut rig = Rig::build_in((created, true), drives, below.wanted, &())?;
        let has_tallies = below.wanted.details && !below.layers.is_empty();
        let tallies: Vec<Rc<Tally>> = match has_tallies {
            true => (0..count).map(|number| Tally::of(rig.drives(), number)).collect(),
            false => Vec::new(),
        };
        let opened = Rc::new(open(&mut rig, below, (&tallies, &held), seed_of_all)?);
        let node = match &opened.tops[..] {
            [top] => top.clone(),
            tops => {
                let count = tops.len();
                return Err(TowerError::Layers(format!("{count} layers are at the top, and an engine uses one")));
            }
        };
        let settings = LayerSettings::of(&below.layers);
        let watching = || Watching { created, seed, tallies, opened: opened.clone(), settings };
        let watch = below.wanted.details.then(|| Watch::new(&rig, watching()));
        let (sim, ssds) = (rig.sim().clone(), rig.ssds().cloned().collect());
        let given: Vec<RigDrive> = rig.drives().iter().map(|drive| drive.given.clone()).collect();
        let tape = recorded::begin(below, (&sim, seed), &given)?;
        let top = Rc::new(Top { sim, ssds, node, gates: RefCell::default(), tape, watch });
        Ok(Tower { rig, opened, top })
    }

    /// Brings drives and layers to rest after the run of a load, and saves their state. None of them may be used afterwards.
    fn save(&mut self, (path, chain): (&Path, &Chain), (seed, load): (u64, &EngineLoad)) -> Result<(), TowerError> {
        for gate in self.top.gates.take() {
            self.rig.run(gate.close())?;
        }
        let drives = self.rig.drives().clone();
        let history = drives[0].history_with(seed, &load.name);
        let chain = (!self.opened.layers.is_empty()).then_some(chain);
        Ok(saved::save_all((&mut self.rig, &self.opened), &history, (path, chain))?)
    }
}

/// How drives of these profiles and the layers begin.
fn begun(below: &Below, profiles: &[Resolved]) -> Result<Begun, TowerError> {
    let Some(file) = &below.from else { return Ok((profiles.iter().map(|_| None).collect(), Vec::new())) };
    let all: Vec<&Resolved> = profiles.iter().collect();
    file.check_fits_layers(&below.layers, &all)?;
    let states = file.load_all()?.into_iter().map(|saved| Some((saved, file.history().clone())));
    Ok((states.collect(), file.load_held(&below.layers)?))
}

/// The layers over the drives of a rig.
fn open(
    rig: &mut Rig,
    below: &Below,
    (tallies, held): (&[Rc<Tally>], &[Vec<u8>]),
    seed: Seed,
) -> Result<Opened, TowerError> {
    let listener = |number: usize| tallies.get(number).map(|tally| tally.clone() as Rc<dyn tap::Listener>);
    let nodes = rig.nodes(&below.layers, listener)?;
    let sim = rig.sim().clone();
    let how = Opening { seed: seed.child("layers"), ..Opening::new(&sim, "") };
    chain::open_in(&how, &below.layers, nodes, held).map_err(TowerError::Layers)
}
