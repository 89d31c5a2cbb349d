//! One run: replicas on a network in simulated time, some with a tenant, and the gets of clients.

use std::rc::Rc;

use nandscape_apps_kv_engine::policy::{NAMES, Policy, Tuning, named};
use nandscape_apps_kv_engine::store::PutError;
use nandscape_apps_kv_engine::{Cancel, Client, ClientConfig, Store};
use nandscape_apps_kv_run::{Outcome, fill, key, measure};
use nandscape_apps_store::Cpu;
use nandscape_host_block::Accuracy;
use nandscape_host_block::predictor::DiskProfile;
use nandscape_host_network::simulated::{Joined, SimulatedNetwork, Times};
use nandscape_host_network::{Accepts, Network};
use nandscape_sim::{Executor, Seed, Sim, Span, Stalled};

use crate::cache;
use crate::disks;
use crate::spec::Spec;
use crate::subject::Subject;

/// Why a run was not possible.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// There is no such policy.
    #[error("there is no policy {0:?}; {names} are there", names = NAMES.join(", "))]
    Policy(String),
    /// A number makes no sense.
    #[error("{0}")]
    Spec(&'static str),
    /// A replica cannot be made.
    #[error("{0}")]
    Build(String),
    /// The values do not fit.
    #[error("the values are not all there: {0}")]
    Load(#[from] PutError),
    /// The model is stuck.
    #[error("this is a fault of the simulator, please report it")]
    Stalled(#[from] Stalled),
}

/// How long it takes to reject a request: at most 5 us for a system call and its EBUSY (Li 3.1.3).
pub(crate) const REJECT: Span = Span::from_us(5);

/// What came of a run.
#[derive(Clone)]
pub struct Run {
    /// Latencies and counts of the clients.
    pub outcome: Outcome,
    /// How right the predictions of all servers were.
    pub accuracy: Accuracy,
}

/// A server and its disturbed resource.
pub(crate) struct Replica {
    pub(crate) server: Rc<dyn Accepts>,
    pub(crate) count_anew: Box<dyn Fn()>,
    pub(crate) counted: Box<dyn Fn() -> Accuracy>,
    /// Lets a tenant come and go from now on.
    pub(crate) disturb: Box<dyn FnOnce(Seed)>,
}

/// All servers, and the stores that are to be filled.
#[derive(Default)]
pub(crate) struct Replicas {
    pub(crate) all: Vec<Replica>,
    pub(crate) stores: Vec<Rc<Store>>,
}

/// What runs of a subject have in common, measured once.
#[derive(Clone)]
pub(crate) struct Known(Option<DiskProfile>);

impl Known {
    pub(crate) fn of(subject: &Subject) -> Result<Known, RunError> {
        Ok(Known(match subject {
            // A shingled disk has the platters of another one.
            Subject::Cache(_) | Subject::Smr(_) => Some(disks::profile(cache::disk)?),
            Subject::Vm(_) | Subject::Runtime(_) => None,
        }))
    }
}

/// Runs it.
///
/// # Errors
/// When it cannot be made, or its values do not fit.
pub fn run(spec: &Spec) -> Result<Run, RunError> {
    check(spec)?;
    run_knowing(spec, &Known::of(&spec.subject)?)
}

pub(crate) fn run_knowing(spec: &Spec, known: &Known) -> Result<Run, RunError> {
    check(spec)?;
    let mut executor = Executor::new();
    let sim = executor.sim();
    executor.block_on(cluster(spec, &sim, known))?
}

fn check(spec: &Spec) -> Result<(), RunError> {
    let wrong = |text| Err(RunError::Spec(text));
    if !(1..=64).contains(&spec.servers) || spec.noisy > spec.servers {
        return wrong("1 to 64 servers are valid, and noise next to at most as many");
    }
    if spec.load.clients == 0 || spec.load.clients > 4_000 || spec.load.scale == 0 || spec.load.scale > 1_000 {
        return wrong("there are 1 to 4,000 clients, and 1 to 1,000 gets in a request");
    }
    if spec.load.records == 0 || spec.load.requests == 0 {
        return wrong("there is one value and one request at the least");
    }
    if NAMES.contains(&spec.policy.as_str()) { Ok(()) } else { Err(RunError::Policy(spec.policy.clone())) }
}

async fn cluster(spec: &Spec, sim: &Sim, known: &Known) -> Result<Run, RunError> {
    let seed = Seed::new(spec.seed);
    let replicas = match (&spec.subject, &known.0) {
        (Subject::Cache(cache), Some(profile)) => cache.build(sim, spec, profile).await?,
        (Subject::Smr(smr), Some(profile)) => smr.build(sim, spec, profile).await?,
        (Subject::Vm(vm), _) => vm.build(sim, spec, seed),
        (Subject::Runtime(runtime), _) => runtime.build(sim, spec, seed),
        (_, None) => return Err(RunError::Build("the profile of a disk is missing".to_owned())),
    };
    let net = SimulatedNetwork::new(sim, spec.servers, Times { hop: spec.hop, ..Times::default() });
    if !replicas.stores.is_empty() {
        fill(sim, &replicas.stores, &spec.load, spec.servers).await?;
        read_all(sim, &replicas.stores, spec.load.records).await?;
    }
    let mut counted = Vec::new();
    for (number, replica) in replicas.all.into_iter().enumerate() {
        net.start(number, replica.server);
        (replica.count_anew)();
        counted.push(replica.counted);
        if number < spec.noisy {
            (replica.disturb)(seed.child("noise").nth(number as u64));
        }
    }
    let (clients, policies) = clients(spec, sim, &net, seed);
    let outcome = measure(sim, clients, &policies, (&spec.load, false), (seed, Rc::new(|| ()))).await;
    let mut accuracy = Accuracy::default();
    counted.iter().for_each(|counted| accuracy.merge(&counted()));
    Ok(Run { outcome, accuracy })
}

/// Reads all values once, which fills a cache.
async fn read_all(sim: &Sim, stores: &[Rc<Store>], records: u64) -> Result<(), RunError> {
    let never = Cancel::never(sim);
    for store in stores {
        for number in 0..records {
            store.get(&key(number), 0, &never).await.map_err(|error| RunError::Build(error.to_string()))?;
        }
    }
    Ok(())
}

fn clients(spec: &Spec, sim: &Sim, net: &Rc<SimulatedNetwork>, seed: Seed) -> (Vec<Rc<Client>>, Vec<Rc<dyn Policy>>) {
    let cpu = Rc::new(Cpu::elsewhere(sim));
    let tuning = Tuning { clients: spec.load.clients as u32, ..spec.tuning };
    let client = |number: usize| {
        let network: Rc<dyn Network> = Rc::new(Joined(net.clone()));
        let policy = named(&spec.policy, &tuning).expect("a policy that is known");
        let config = ClientConfig {
            replicas: spec.servers,
            number: number as u16,
            // Slow servers are no dead ones: collections take seconds.
            try_timeout: Span::from_s(30),
            timeout: Span::from_s(100),
            ..ClientConfig::default()
        };
        let seed = seed.child("clients").nth(number as u64);
        let client = Client::new(sim, &network, spec.servers, policy.clone(), (config, cpu.clone()), seed);
        (Rc::new(client), policy)
    };
    (0..spec.load.clients).map(client).unzip()
}
