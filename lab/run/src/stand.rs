//! What a run stands on: drives in their states, the layers over them, and the way of its jobs to the top.

use std::rc::Rc;

use nandscape_drive::node::view;
use nandscape_drive::{Drive, Precondition, Progress, QueueDrive, Role, Use};
use nandscape_host_block::BlockLayer;
use nandscape_lab_workload::{JobSpec, PlacedBy, Workload};
use nandscape_sim::Seed;

use crate::chain::{self, BlockOver, Instance, Layer, Opened, Opening};
use crate::cpu::Host;
use crate::host::Moment;
use crate::precompletion::Asking;
use crate::rig::{Rig, Wanted};
use crate::saved::States;
use crate::simulation::{RunError, Simulation};
use crate::tap::{self, Tally};

/// See the file.
pub(crate) struct Stand {
    pub(crate) rig: Rig,
    /// The layers. A lone drive has none at the top: jobs use its queue pairs.
    pub(crate) opened: Rc<Opened>,
    /// What each drive sees of its commands; empty of a lone drive, which sees what its jobs do.
    pub(crate) tallies: Rc<[Rc<Tally>]>,
}

/// What lies between the jobs and the top, for as long as a run lasts.
pub(crate) struct Reach {
    pub(crate) host: Option<Rc<Host>>,
    /// The host's wish for notices of a lone drive.
    pub(crate) asking: Option<Rc<Asking>>,
}

/// A connection for each job, then one for each load.
type Connections = Vec<Rc<dyn Drive>>;

impl Stand {
    /// The drives of a run whose set-up began at `created`, new or in given states, and the layers over them.
    pub(crate) fn build(
        simulation: &Simulation,
        wanted: Wanted,
        (created, states): (Moment, Option<States>),
        progress: &dyn Progress,
    ) -> Result<Stand, RunError> {
        let States { drives: states, held } = states.unwrap_or_default();
        let first = states.first().map(|(_, history)| history.precondition);
        let mut states = states.into_iter();
        let drives = simulation.drives.iter().map(|drive| (drive.clone(), states.next())).collect();
        let planted = !chain::is_over_chunks(&simulation.layers);
        let mut rig = Rig::build_in((created, planted), drives, wanted, progress)?;
        if simulation.is_alone() {
            if simulation.workload.places_by(PlacedBy::Streams) {
                rig.enable_streams(0)?;
            }
            let opened = Rc::new(open_alone(simulation, &rig)?);
            return Ok(Stand { rig, opened, tallies: Rc::new([]) });
        }
        let tallies: Rc<[Rc<Tally>]> =
            (0..simulation.drives.len()).map(|number| Tally::of(rig.drives(), number)).collect();
        let begins = (first.unwrap_or(simulation.drives[0].precondition), &held[..]);
        let opened = Rc::new(open(simulation, &mut rig, &tallies, begins, progress)?);
        Ok(Stand { rig, opened, tallies })
    }

    /// The ways of a workload's jobs to the top, in threads of the host if the run has one.
    pub(crate) fn reach(
        &mut self,
        simulation: &Simulation,
        workload: &Workload,
    ) -> Result<(Connections, Reach), RunError> {
        let window = simulation.drives[0].profile.precompletion_window().filter(|_| simulation.is_alone());
        let asking = window.map(|window| self.rig.ask_for_notices(0, window)).transpose()?;
        let block = self.opened.layers.first().filter(|_| simulation.is_alone());
        let block = block.and_then(|layer| view::<BlockLayer>(&*layer.node));
        let over = |queue: Rc<QueueDrive>| {
            let drive = asking.as_ref().map_or(queue.clone() as Rc<dyn Drive>, |asking| asking.over(queue));
            block.as_ref().map_or(drive.clone(), |layer| layer.over(drive) as Rc<dyn Drive>)
        };
        let (rig, trace) = (&self.rig, simulation.wanted.trace);
        let host = match (&simulation.host, &self.opened.tops[..]) {
            (None, _) => None,
            (Some(profile), []) => Some(Host::new(profile, rig, trace, (asking.as_ref(), over))?),
            (Some(profile), [top]) => Some(Host::over_top(profile, rig.sim(), &**top, trace)?),
            (Some(_), tops) => {
                return Err(RunError::Workload(format!(
                    "a host runs on one drive or layer, and {} are at the top; a layer over all of them is valid, such as ahci:{}",
                    tops.len(),
                    tops.len()
                )));
            }
        };
        let connections = match &host {
            None => self.connect(workload, over)?,
            Some(host) if simulation.is_alone() => host.connect_for(workload, rig)?,
            Some(host) => host.connect_over(workload)?,
        };
        self.check_on_top(&connections, workload)?;
        Ok((connections, Reach { host: host.map(Rc::new), asking }))
    }

    /// Ways of a workload's jobs to the top, without a host. Queue pairs of a lone drive are under what `over` puts on them.
    pub(crate) fn connect(
        &self,
        workload: &Workload,
        over: impl Fn(Rc<QueueDrive>) -> Rc<dyn Drive>,
    ) -> Result<Connections, RunError> {
        let jobs =
            workload.jobs.iter().flat_map(|spec| (0..spec.numjobs).map(move |_| (spec.namespace, entries(spec))));
        let loads = workload.loads.iter().map(|_| (1, u32::MAX));
        let tops = &self.opened.tops;
        let connect = |(index, (nsid, entries)): (usize, (u32, u32))| match tops.len() {
            0 => self.rig.connect_to(0, nsid, entries).map(&over),
            count => {
                let connected = tops[index % count].connect(Use { role: Role::Any, entries });
                connected.map_err(|refused| RunError::Workload(refused.to_string()))
            }
        };
        jobs.chain(loads).enumerate().map(connect).collect()
    }

    /// Checks that a workload fits what is at the top. A lone drive was checked before.
    pub(crate) fn check_on_top(&self, connections: &[Rc<dyn Drive>], workload: &Workload) -> Result<(), RunError> {
        let mut infos = connections.iter().filter(|_| !self.opened.tops.is_empty()).map(|drive| drive.info());
        let fits = infos.try_for_each(|info| workload.check_on(info.bytes(), info.lba_bytes));
        fits.map_err(RunError::Workload)
    }
}

/// The block layer over a lone drive, if it has one.
fn open_alone(simulation: &Simulation, rig: &Rig) -> Result<Opened, RunError> {
    let open = |config: &nandscape_host_block::Config| {
        let (name, layer) = ("block", BlockOver { config: config.clone(), is_chosen: true });
        let node = layer.open(&Opening::new(rig.sim(), name), vec![Rc::new(rig.node((0, 1), None))]);
        let over = vec![simulation.drives[0].name.clone()];
        Ok(Instance { name: name.to_owned(), over, node: node.map_err(RunError::Workload)? })
    };
    let layers = simulation.block.iter().map(open).collect::<Result<_, RunError>>()?;
    Ok(Opened { layers, tops: Vec::new() })
}

/// The layers over drives, which begin in a state, or with what others held.
fn open(
    simulation: &Simulation,
    rig: &mut Rig,
    tallies: &[Rc<Tally>],
    (precondition, held): (Precondition, &[Vec<u8>]),
    progress: &dyn Progress,
) -> Result<Opened, RunError> {
    let listener = |number: usize| tallies.get(number).map(|tally| tally.clone() as Rc<dyn tap::Listener>);
    let nodes = rig.nodes(&simulation.layers, listener)?;
    let sim = rig.sim().clone();
    let seed = Seed::new(simulation.seed).child("layers");
    let how = Opening { seed, precondition, progress, ..Opening::new(&sim, "") };
    chain::open_in(&how, &simulation.layers, nodes, held).map_err(RunError::Workload)
}

/// Entries of a job's queue pair. One always stays empty; open jobs may have any number of requests outstanding.
fn entries(spec: &JobSpec) -> u32 {
    if spec.is_open() { u32::MAX } else { spec.iodepth.saturating_add(1) }
}
