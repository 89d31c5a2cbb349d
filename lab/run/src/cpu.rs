//! The host under a run: the threads in which jobs issue their requests, and the work of its processors in the measured phase.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use nandscape_drive::node::Refused;
use nandscape_drive::{Drive, DriveInfo, Node, QueueDrive, Role, Use, node};
use nandscape_host_machine::scheduler::Nice;
use nandscape_host_machine::{Affinity, ConfigError, Kind, Policy, ThreadSpec};
use nandscape_host_network::links::Side;
use nandscape_host_path::policy::PolicyKind;
use nandscape_host_path::{Clients, Path, Profile, Queues, Reactor, Ring, RingKind, Stripe, Threads};
use nandscape_lab_workload::{JobSpec, LoadKind, LoadSpec, Scheduling, Workload};
use nandscape_sim::trace::Track;
use nandscape_sim::{Sim, Span, Time};
use nandscape_wire_nvme::Status;
use serde::Serialize;

use crate::chain::Ports;
use crate::precompletion::{Asking, NEEDS_NOTICES, WokenReport};
use crate::rig::Rig;
use crate::simulation::RunError;

/// What the processors of the host did in the measured phase.
#[derive(Clone, Debug, Serialize)]
pub struct CpuReport {
    /// The host.
    pub host: String,
    /// How threads learnt of completions: the policy, or the kind of ring.
    pub completion: &'static str,
    /// How completions reached them.
    pub path: &'static str,
    /// Processors: hardware threads of all cores.
    pub processors: u64,
    /// Submission queues.
    pub queue_pairs: u64,
    /// The completion queues; left out if each submission queue has its own and interrupts the processor that submits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_queues: Option<Vec<CompletionQueueReport>>,
    /// Threads of all jobs.
    pub threads: u64,
    /// Processor time a request by kind, without the load of `host.load`; null without requests.
    pub request_us_by: Option<BTreeMap<&'static str, f64>>,
    /// The sum of these.
    pub request_us: Option<f64>,
    /// The share of the processors' time that is not idle, without the load.
    pub busy: f64,
    /// The share of the processors' time that the load of `host.load` had; left out without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<f64>,
    /// How often a processor was given to a thread, an interrupt or a softirq.
    pub decisions: u64,
    /// Interrupts of the drive a request; null without requests.
    pub interrupts_per_request: Option<f64>,
    /// The processor time of the longest handler of an interrupt of the drive; 0 without interrupts.
    pub longest_interrupt_us: f64,
    /// Links to clients on another machine; left out without them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkReport>,
    /// How the host used the drive's notices; left out unless it asks for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub woken: Option<WokenReport>,
}

/// A completion queue of the host in the measured phase.
#[derive(Copy, Clone, Debug, Serialize)]
pub struct CompletionQueueReport {
    /// The processor that it interrupts.
    pub processor: u64,
    /// Interrupts that it has raised, a request of the whole run; null without requests.
    pub interrupts_per_request: Option<f64>,
}

/// What the links to clients did in the measured phase, and the clients' machine.
#[derive(Clone, Debug, Serialize)]
pub struct NetworkReport {
    /// Links.
    pub links: u64,
    /// The share of time in which the links sent data to the host; all links as one.
    pub to_host: f64,
    /// The same to the clients.
    pub to_clients: f64,
    /// Interrupts of the host's cards a request; null without requests.
    pub interrupts_per_request: Option<f64>,
    /// The share of the time of the clients' processors that is not idle.
    pub clients_busy: f64,
}

/// The share of time from which the processors are saturated, as for the parts of a drive.
const FULL: f64 = 0.9;

impl CpuReport {
    /// The name of the processors if they bound the rate. A polling thread takes only idle time:
    /// it keeps others waiting only where threads outnumber processors.
    pub(crate) fn limits(&self) -> Option<&'static str> {
        let spin = self.request_us_by.as_ref().and_then(|by| by.get("spin")).copied().unwrap_or(0.0);
        let work = self.request_us.filter(|all| *all > 0.0).map_or(0.0, |all| self.busy * (1.0 - spin / all));
        let is_full = work >= FULL || self.busy >= FULL && self.threads > self.processors;
        is_full.then_some("host_processors")
    }
}

/// The host of a run.
pub(crate) struct Host {
    sim: Sim,
    path: Rc<Path>,
    name: String,
    threads: RefCell<Vec<Rc<Threads>>>,
    /// The machine on which the jobs run, if that is another one.
    clients: Option<Rc<Clients>>,
    /// Threads of applications with rings, and of the kernel for these.
    of_rings: Cell<u64>,
    /// Those of processors, with `host.ring=reactor`.
    reactors: RefCell<BTreeMap<usize, Rc<Reactor>>>,
    /// Applications that reactors serve.
    served: Cell<usize>,
    /// The lines of its processors in the event trace, if that has some.
    tracks: Vec<Track>,
    begun: RefCell<Account>,
}

/// The processors' time at one instant.
struct Account {
    at: Time,
    /// Of all, by kind, without the load.
    times: [Span; Kind::ALL.len()],
    load: Span,
    decisions: u64,
    /// Of all, and of each completion queue.
    interrupts: u64,
    interrupts_of: Vec<u64>,
    network: Option<NetworkAccount>,
}

/// The links' time at one instant, by side, interrupts of the host's cards, and the time of the clients' processors.
struct NetworkAccount {
    carried: [Span; 2],
    interrupts: u64,
    clients: Span,
}

/// Threads of a job whose requests come at their own times, such as those of a trace.
const MOST_OF_TIMED: u32 = 1_024;

/// Threads that issue the requests of a job, at first and at most: as many as it has outstanding. A job whose requests come at
/// their own times begins a thread when none is idle.
fn threads_of_job(job: &JobSpec) -> (u32, u32) {
    let most = if job.is_timed() { MOST_OF_TIMED.max(job.iodepth) } else { job.iodepth };
    (job.iodepth, most)
}

/// Threads of a load.
fn threads_of_load(load: &LoadSpec) -> u32 {
    match &load.kind {
        LoadKind::Filebench(spec) => spec.threads,
        LoadKind::Ycsb(spec) => spec.threads,
    }
}

impl Host {
    /// A host with queue pairs of the only drive of a rig, each under what `over` puts on it. `asking` asks that drive for notices.
    ///
    /// # Errors
    /// When the host is impossible, or the drive has no queue pair left, or gives no notices to a host that needs them.
    pub(crate) fn new(
        profile: &Profile,
        rig: &Rig,
        trace: bool,
        (asking, over): (Option<&Rc<Asking>>, impl Fn(Rc<QueueDrive>) -> Rc<dyn Drive>),
    ) -> Result<Host, RunError> {
        profile.config.check().map_err(|error| RunError::Workload(error.to_string()))?;
        let free = usize::from(rig.profile(0).max_queue_pairs()).saturating_sub(rig.pairs_in_use(0));
        let pairs = profile.config.queue_pairs(free);
        let completion_queues = profile.config.completion_queues(pairs);
        let mut queues: Vec<Rc<QueueDrive>> = Vec::new();
        for number in 0..pairs {
            queues.push(match number < completion_queues {
                true => rig.connect_to(0, 1, u32::MAX)?,
                false => rig.connect_sharing(0, &queues[number % completion_queues], u32::MAX)?,
            });
        }
        let drives = queues.into_iter().map(over).collect();
        // A strategy sees whether a tag is free; with other paths, commands beyond the queue's depth wait in the queue itself.
        let tags = match profile.config.path.strategy() {
            Some(_) => rig.profile(0).max_queue_entries() as usize - 1,
            None => usize::MAX,
        };
        let host = Host::over(rig.sim(), profile, Queues { drives, tags, stripe: None }, (asking, trace))?;
        if rig.is_recorded(0) {
            let threads = profile.config.machine.threads;
            let tracks = if trace { host.tracks.clone() } else { host.path.machine().show("processor") };
            let processors = tracks.into_iter().enumerate().map(|(number, track)| (track, number / threads));
            rig.show_processors(0, &processors.collect::<Vec<_>>());
        }
        Ok(host)
    }

    /// Puts what the processors do into their lines of the event trace, up to now.
    pub(crate) fn end_timelines(&self) {
        self.path.machine().end_timelines();
        self.clients.iter().for_each(|clients| clients.machine().end_timelines());
    }

    /// A host over the top of a chain: the ports of a controller, or as many connections as it has queue pairs.
    ///
    /// # Errors
    /// When the host is impossible, or the top has no connection left.
    pub(crate) fn over_top(profile: &Profile, sim: &Sim, top: &dyn Node, trace: bool) -> Result<Host, RunError> {
        profile.config.check().map_err(|error| RunError::Workload(error.to_string()))?;
        if profile.config.completion == PolicyKind::Precompletion {
            return Err(RunError::Workload(
                "host.completion: precompletion is not valid over a layer; valid is interrupt, poll, hybrid or adaptive"
                    .to_owned(),
            ));
        }
        let refused = |refused: Refused| RunError::Workload(refused.to_string());
        let connect = || top.connect(Use { role: Role::Any, entries: u32::MAX });
        let queues = match node::view::<Ports>(top) {
            Some(ports) => Queues {
                drives: ports.drives.iter().map(|port| port.clone() as Rc<dyn Drive>).collect(),
                tags: ports.slots as usize,
                stripe: Some(Stripe {
                    whole: connect().map_err(refused)?,
                    chunk_blocks: (ports.chunk_bytes / u64::from(top.info().lba_bytes)).max(1),
                }),
            },
            None => {
                let mut drives = vec![connect().map_err(refused)?];
                while drives.len() < profile.config.queue_pairs(usize::MAX) {
                    match connect() {
                        Ok(drive) => drives.push(drive),
                        // One of the drives below has no queue pair left.
                        Err(last) if last.status.meaning() == Status::INVALID_QUEUE_ID => break,
                        Err(other) => return Err(refused(other)),
                    }
                }
                drives.into()
            }
        };
        Host::over(sim, profile, queues, (None, trace))
    }

    /// A host over queues. `asking` asks their drive for notices.
    ///
    /// # Errors
    /// When the host is impossible, or the drive gives no notices to a host that needs them.
    fn over(
        sim: &Sim,
        profile: &Profile,
        queues: Queues,
        (asking, trace): (Option<&Rc<Asking>>, bool),
    ) -> Result<Host, RunError> {
        let path = Path::new(sim, profile.config.clone(), queues);
        let path = path.map_err(|error| RunError::Workload(error.to_string()))?;
        match asking {
            Some(asking) => {
                let asking = asking.clone();
                path.on_window(move |window| asking.set_window(window));
            }
            None if path.asks() => {
                return Err(RunError::Workload(NEEDS_NOTICES.to_owned()));
            }
            None => {}
        }
        let clients = (path.config().network.links > 0).then(|| Clients::new(&path)).transpose();
        let clients = clients.map_err(|error| RunError::Workload(error.to_string()))?;
        let mut tracks = Vec::new();
        if trace {
            tracks = path.machine().show("processor");
            clients.iter().for_each(|clients| _ = clients.machine().show("client processor"));
        }
        let begun = RefCell::new(Account::of(sim, &path, clients.as_deref()));
        let (sim, name) = (sim.clone(), profile.name.clone());
        Ok(Host {
            sim,
            path,
            name,
            threads: RefCell::default(),
            clients,
            of_rings: Cell::new(0),
            reactors: RefCell::default(),
            served: Cell::new(0),
            tracks,
            begun,
        })
    }

    /// The drive of each job and of each load of a workload: threads of the host.
    ///
    /// # Errors
    /// When the drive has no such namespace.
    pub(crate) fn connect_for(&self, workload: &Workload, rig: &Rig) -> Result<Vec<Rc<dyn Drive>>, RunError> {
        let ssd = rig.ssds().next().expect("a run has a drive");
        self.connect(workload, |nsid| ssd.controller().info_of(nsid).ok_or_else(|| no_namespace(nsid)))
    }

    /// The same over a chain, which is one namespace.
    ///
    /// # Errors
    /// When a word about its threads is not valid on this host.
    pub(crate) fn connect_over(&self, workload: &Workload) -> Result<Vec<Rc<dyn Drive>>, RunError> {
        self.connect(workload, |_| Ok(self.path.info()))
    }

    fn connect(
        &self,
        workload: &Workload,
        info: impl Fn(u32) -> Result<DriveInfo, RunError>,
    ) -> Result<Vec<Rc<dyn Drive>>, RunError> {
        let mut drives = Vec::new();
        for job in &workload.jobs {
            for number in 0..job.numjobs as usize {
                let scheduling = job.scheduling.of_clone(number);
                let application = self.application(info(job.namespace)?, threads_of_job(job), &scheduling);
                drives.push(
                    application.map_err(|problem| RunError::Workload(format!("job \"{}\": {problem}", job.name)))?,
                );
            }
        }
        for load in &workload.loads {
            let threads = threads_of_load(load);
            let application = self.application(info(1)?, (threads, threads), &Scheduling::default());
            drives.push(application.map_err(RunError::Workload)?);
        }
        Ok(drives)
    }

    /// An application: threads with one I/O each, or one thread with a ring.
    ///
    /// # Errors
    /// Which word about its threads is not valid on this host, and what would be.
    fn application(
        &self,
        info: DriveInfo,
        counts: (u32, u32),
        scheduling: &Scheduling,
    ) -> Result<Rc<dyn Drive>, String> {
        let cpus = self.path.machine().cpus();
        if let Some(missing) = scheduling.cpus.iter().find(|cpu| **cpu >= cpus) {
            let host = &self.name;
            return Err(format!("cpus_allowed: host {host} has no processor {missing}; valid are 0 to {}", cpus - 1));
        }
        let (kind, error) = (self.path.config().ring, |error: ConfigError| error.to_string());
        if kind == RingKind::Reactor {
            return self.reactor(info, scheduling);
        }
        let affinity = match &scheduling.cpus[..] {
            [] => Affinity::ALL,
            cpus => cpus.iter().copied().collect(),
        };
        let policy = Policy::Fair(Nice::new(scheduling.nice).map_err(error)?);
        let spec = ThreadSpec { policy, affinity, ..ThreadSpec::default() };
        if kind == RingKind::Off {
            return Ok(self.threads(info, counts, spec).map_err(error)?);
        }
        let ring = Ring::new(&self.path, info, kind, spec).map_err(error)?;
        self.of_rings.set(self.of_rings.get() + u64::from(ring.count()));
        Ok(ring)
    }

    /// An application of the reactor of the next processor that it may use, which begins with its first.
    fn reactor(&self, info: DriveInfo, scheduling: &Scheduling) -> Result<Rc<dyn Drive>, String> {
        if scheduling.nice != 0 {
            let nice = scheduling.nice;
            return Err(format!(
                "nice: {nice} is not valid with host.ring=reactor, whose threads serve several jobs; 0 is valid"
            ));
        }
        let served = self.served.replace(self.served.get() + 1);
        let cpu = match &scheduling.cpus[..] {
            [] => served % self.path.machine().cpus(),
            cpus => cpus[served % cpus.len()],
        };
        let mut reactors = self.reactors.borrow_mut();
        if let Some(reactor) = reactors.get(&cpu) {
            return Ok(reactor.connect(info));
        }
        let reactor = Reactor::new(&self.path, cpu).map_err(|error| error.to_string())?;
        self.of_rings.set(self.of_rings.get() + 1);
        reactors.insert(cpu, reactor.clone());
        Ok(reactor.connect(info))
    }

    fn threads(&self, info: DriveInfo, counts: (u32, u32), spec: ThreadSpec) -> Result<Rc<Threads>, ConfigError> {
        let threads = match &self.clients {
            None => Threads::new(&self.path, info, counts, spec),
            Some(clients) => Threads::of_clients(clients, info, counts, spec),
        }?;
        self.threads.borrow_mut().push(threads.clone());
        Ok(threads)
    }

    /// The measured phase begins.
    pub(crate) fn begin(&self) {
        self.begun.replace(Account::of(&self.sim, &self.path, self.clients.as_deref()));
        self.path.count_notices_anew();
        self.path.measure_handlers_anew();
    }

    /// The measured phase has ended, with `requests` requests.
    pub(crate) fn report(&self, requests: u64) -> CpuReport {
        self.end_timelines();
        let (begun, ended) = (&*self.begun.borrow(), Account::of(&self.sim, &self.path, self.clients.as_deref()));
        let config = self.path.config();
        let processors = self.path.machine().cpus() as u64;
        let elapsed = ended.at.since(begun.at).ns() as f64 * processors as f64;
        let share = |span: Span| if elapsed > 0.0 { span.ns() as f64 / elapsed } else { 0.0 };
        let kinds = Kind::ALL.into_iter().filter(|(_, kind)| *kind != Kind::Idle);
        let spent = kinds.map(|(name, kind)| (name, ended.times[kind as usize] - begun.times[kind as usize]));
        let spent: Vec<(&'static str, Span)> = spent.collect();
        let all: Span = spent.iter().map(|(_, span)| *span).sum();
        let each = |span: Span| span.ns() as f64 / requests as f64 / 1e3;
        let some = requests > 0;
        CpuReport {
            host: self.name.clone(),
            completion: if config.ring == RingKind::Off { config.completion.name() } else { config.ring.name() },
            path: config.path.name(),
            processors,
            queue_pairs: self.path.queues() as u64,
            completion_queues: self.completion_queues((begun, &ended), requests),
            threads: self.of_rings.get()
                + self.threads.borrow().iter().map(|threads| u64::from(threads.count())).sum::<u64>(),
            request_us_by: some.then(|| spent.iter().map(|(name, span)| (*name, each(*span))).collect()),
            request_us: some.then(|| each(all)),
            busy: share(all),
            load: (config.load > 0).then(|| share(ended.load - begun.load)),
            decisions: ended.decisions - begun.decisions,
            interrupts_per_request: some.then(|| (ended.interrupts - begun.interrupts) as f64 / requests as f64),
            longest_interrupt_us: self.path.longest_handler().as_us(),
            network: self.network(begun, &ended, requests),
            woken: self.path.asks().then(|| WokenReport::of(self.path.window(), &self.path.notices())),
        }
    }
}

impl Host {
    /// The completion queues between two accounts, if the settings name any.
    fn completion_queues(
        &self,
        (begun, ended): (&Account, &Account),
        requests: u64,
    ) -> Option<Vec<CompletionQueueReport>> {
        let config = self.path.config();
        let is_plain = config.completion_queues == 0 && config.affinity.is_empty();
        let raised = begun.interrupts_of.iter().zip(&ended.interrupts_of);
        let queue = |((processor, _), (before, after)): ((usize, u64), (&u64, &u64))| CompletionQueueReport {
            processor: processor as u64,
            interrupts_per_request: (requests > 0).then(|| (after - before) as f64 / requests as f64),
        };
        (!is_plain).then(|| self.path.completion_queues().zip(raised).map(queue).collect())
    }

    /// What the links did between two accounts.
    fn network(&self, begun: &Account, ended: &Account, requests: u64) -> Option<NetworkReport> {
        let (before, after) = (begun.network.as_ref()?, ended.network.as_ref()?);
        let (links, elapsed) = (self.path.config().network.links as u64, ended.at.since(begun.at).ns() as f64);
        let share = |span: Span, of: u64| if elapsed > 0.0 { span.ns() as f64 / elapsed / of as f64 } else { 0.0 };
        let carried = |side: Side| share(after.carried[side as usize] - before.carried[side as usize], links);
        Some(NetworkReport {
            links,
            to_host: carried(Side::Clients),
            to_clients: carried(Side::Server),
            interrupts_per_request: (requests > 0)
                .then(|| (after.interrupts - before.interrupts) as f64 / requests as f64),
            clients_busy: share(after.clients - before.clients, self.path.machine().cpus() as u64),
        })
    }
}

fn no_namespace(nsid: u32) -> RunError {
    RunError::Workload(format!("the drive has no namespace {nsid}"))
}

impl Account {
    fn of(sim: &Sim, path: &Path, clients: Option<&Clients>) -> Account {
        let (total, loads) = (path.machine().total(), path.load_times());
        let of_loads = |kind: Kind| -> Span { loads.iter().map(|times| times.by(kind)).sum() };
        Account {
            at: sim.now(),
            times: Kind::ALL.map(|(_, kind)| total.by(kind) - of_loads(kind)),
            load: loads.iter().map(|times| times.busy()).sum(),
            decisions: path.machine().decisions(),
            interrupts: path.interrupts(),
            interrupts_of: path.completion_queues().map(|(_, interrupts)| interrupts).collect(),
            network: clients.map(NetworkAccount::of),
        }
    }
}

impl NetworkAccount {
    fn of(clients: &Clients) -> NetworkAccount {
        NetworkAccount {
            carried: [Side::Server, Side::Clients].map(|side| clients.links().carried(side)),
            interrupts: clients.links().interrupts(Side::Server),
            clients: clients.machine().total().busy(),
        }
    }
}
