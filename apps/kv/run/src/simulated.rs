//! A cluster in simulated time.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_apps_kv_engine::noise::Noise;
use nandscape_apps_kv_engine::policy::{NAMES, Policy, Tuning, named};
use nandscape_apps_kv_engine::ring::Ring;
use nandscape_apps_kv_engine::store::{Layout, OpenError, PutError};
use nandscape_apps_kv_engine::{Client, ClientConfig, Server, Store};
use nandscape_apps_store::Cpu;
use nandscape_device_media::StoreKind;
use nandscape_drive::{Drive, Node, Role, Use};
use nandscape_host_network::Network;
use nandscape_host_network::simulated::{Joined, SimulatedNetwork};
use nandscape_lab_run::chain::Opening;
use nandscape_lab_run::{Members, Rig, RigDrive, Wanted, name_of_drive};
use nandscape_sim::signal::Signal;
use nandscape_sim::{Seed, Sim, Span, Stalled};

use crate::load::{Load, key, measure};
use crate::machines::{Machines, ServerMachine};
use crate::outcome::Outcome;
use crate::place::{halves, segment_bytes};
use crate::spec::{Processors, Spec};

/// Why a cluster cannot run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The policy does not exist.
    #[error("there is no policy {0:?}; {names} are there", names = NAMES.join(", "))]
    Policy(String),
    /// A number makes no sense.
    #[error("{0}")]
    Spec(&'static str),
    /// The drives cannot be made.
    #[error(transparent)]
    Drives(#[from] nandscape_lab_run::RunError),
    /// A store cannot be made.
    #[error("the store of server {server}: {error}")]
    Store {
        /// Which.
        server: usize,
        /// Why.
        error: OpenError,
    },
    /// What is at the top of a server's layers has no connection left.
    #[error(transparent)]
    Connection(#[from] nandscape_drive::Refused),
    /// The machine of the servers is impossible, or cannot be that of a server.
    #[error("the servers' host: {0}")]
    Host(String),
    /// The values do not fit.
    #[error("the values are not all there: {0}")]
    Load(#[from] PutError),
    /// The model is stuck.
    #[error("this is a fault of the simulator, please report it")]
    Stalled(#[from] Stalled),
}

/// Queue entries of a server.
const ENTRIES: u32 = 1_024;
/// Puts at a time while values are loaded.
const LOADERS: u64 = 64;

/// The connections of a store and of its noise.
type Jobs = [Rc<dyn Drive>; 2];

/// Runs it.
///
/// # Errors
/// When it cannot be made, or its values do not fit.
pub fn run(spec: &Spec) -> Result<Outcome, RunError> {
    check(spec)?;
    let seed = Seed::new(spec.seed);
    let (mut rig, members) = build(spec, spec.servers)?;
    let connect = |top: &Rc<dyn Node>| {
        let job = || top.connect(Use { role: Role::Any, entries: ENTRIES });
        Ok([job()?, job()?])
    };
    let drives: Vec<Jobs> = members.tops().iter().map(connect).collect::<Result<_, RunError>>()?;
    let sim = rig.sim().clone();
    rig.run(cluster(spec, &sim, (&drives, Rc::new(members)), seed))?
}

/// Whether the hosts of servers reject reads that would be late, as the policies with a deadline need it.
///
/// # Errors
/// When a server cannot be made.
pub fn rejects_late_reads(spec: &Spec) -> Result<bool, RunError> {
    Ok(build(spec, 1)?.1.offers().deadlines)
}

/// The drives of some servers, and the layers over them. Gets and noise both pass these, so a block layer knows everything that a get may
/// have to wait for.
fn build(spec: &Spec, servers: usize) -> Result<(Rig, Members), RunError> {
    let (seed, over) = (Seed::new(spec.seed), &spec.over);
    let drive = |number: usize| RigDrive {
        name: name_of_drive(number),
        profile: over.profile(&spec.drive, number).clone(),
        store: StoreKind::None,
        precondition: over.of_drives(spec.precondition),
        seed: seed.child("drives").nth(number as u64),
    };
    let mut rig = Rig::build((0..servers * over.drives_each()).map(drive).collect(), Wanted::default(), &())?;
    let sim = rig.sim().clone();
    let how = Opening { seed: seed.child("layers"), precondition: spec.precondition, ..Opening::new(&sim, "") };
    let members = rig.members(&how, &over.layers)?;
    Ok((rig, members))
}

fn check(spec: &Spec) -> Result<(), RunError> {
    let wrong = |text| Err(RunError::Spec(text));
    if spec.servers == 0 || spec.replicas == 0 || spec.replicas > spec.servers {
        return wrong("a cluster has a server at the least, and as many as replicas");
    }
    if spec.load.clients == 0 || spec.load.clients > 4_000 || spec.load.scale == 0 || spec.load.scale > 1_000 {
        return wrong("there are 1 to 4,000 clients, and 1 to 1,000 gets in a request");
    }
    if spec.load.records == 0 || spec.load.requests == 0 {
        return wrong("there is one value and one request at the least");
    }
    let known = |name: &str| NAMES.contains(&name);
    if known(&spec.policy) { Ok(()) } else { Err(RunError::Policy(spec.policy.clone())) }
}

async fn cluster(
    spec: &Spec,
    sim: &Sim,
    (drives, members): (&[Jobs], Rc<Members>),
    seed: Seed,
) -> Result<Outcome, RunError> {
    let shared = match spec.processors {
        Processors::Shared(cores) => Some(Rc::new(Cpu::new(sim, cores))),
        Processors::Each(_) | Processors::Machines(_) => None,
    };
    let net = SimulatedNetwork::new(sim, spec.servers, spec.network);
    let (mut stores, mut machines) = (Vec::new(), Machines::new(sim));
    for (number, [drive, _]) in drives.iter().enumerate() {
        let (drive, cpu, cards) = match (&shared, &spec.processors) {
            (Some(cpu), _) => (drive.clone(), cpu.clone(), Vec::new()),
            (None, Processors::Each(cores) | Processors::Shared(cores)) => {
                (drive.clone(), Rc::new(Cpu::new(sim, *cores)), Vec::new())
            }
            (None, Processors::Machines(profile)) => {
                let ServerMachine { drive, cpu, cards } = machines.add(profile, drive).map_err(RunError::Host)?;
                (drive, cpu, cards)
            }
        };
        let store = Rc::new(store(sim, number, &drive).await?);
        net.start_on(number, Rc::new(Server::new(sim, store.clone(), cpu, machines.work(spec))), cards);
        stores.push(store);
    }
    let machines = Rc::new(machines);
    fill(sim, &stores, &spec.load, spec.replicas).await?;
    for (number, pattern) in spec.noise.iter().enumerate().take(spec.servers) {
        let Some(pattern) = pattern else { continue };
        let (_, extent) = halves(&drives[number][1]);
        let noise = Noise::new(sim, drives[number][1].clone(), extent);
        sim.spawn(noise.run(pattern.clone(), seed.child("noise").nth(number as u64)));
    }
    let (clients, policies) = clients(spec, sim, &net, shared, seed);
    let watched = (machines.clone(), members.clone());
    let begin: Rc<dyn Fn()> = Rc::new(move || {
        watched.0.begin();
        watched.1.begin();
    });
    let outcome = measure(sim, clients, &policies, (&spec.load, false), (seed, begin)).await;
    Ok(Outcome { processors: machines.spent(), below: members.report(), ..outcome })
}

fn clients(
    spec: &Spec,
    sim: &Sim,
    net: &Rc<SimulatedNetwork>,
    cpu: Option<Rc<Cpu>>,
    seed: Seed,
) -> (Vec<Rc<Client>>, Vec<Rc<dyn Policy>>) {
    let cpu = cpu.unwrap_or_else(|| Rc::new(Cpu::elsewhere(sim)));
    let tuning = Tuning { clients: spec.load.clients as u32, ..spec.tuning };
    let client = |number: usize| {
        let network: Rc<dyn Network> = Rc::new(Joined(net.clone()));
        let policy = named(&spec.policy, &tuning).expect("a policy that is known");
        let config = ClientConfig {
            replicas: spec.replicas,
            order: spec.order,
            work: spec.client_work,
            number: number as u16,
            try_timeout: Span::from_s(2),
            timeout: Span::from_s(10),
            ..ClientConfig::default()
        };
        let seed = seed.child("clients").nth(number as u64);
        let client = Client::new(sim, &network, spec.servers, policy.clone(), (config, cpu.clone()), seed);
        (Rc::new(client), policy)
    };
    (0..spec.load.clients).map(client).unzip()
}

async fn store(sim: &Sim, server: usize, drive: &Rc<dyn Drive>) -> Result<Store, RunError> {
    let (extent, _) = halves(drive);
    let layout = Layout { extent, segment_bytes: segment_bytes(&extent, &drive.info()) };
    let made = Store::create(sim, drive.clone(), layout, 1 + server as u64).await;
    made.map_err(|error| RunError::Store { server, error })
}

/// Puts all values, at each server separately, and waits until the drives have nothing left to write.
///
/// # Errors
/// When a put fails.
pub async fn fill(sim: &Sim, stores: &[Rc<Store>], load: &Load, replicas: usize) -> Result<(), PutError> {
    let ring = Rc::new(Ring::new(stores.len()));
    let (left, ended) = (Rc::new(Cell::new(0)), Rc::new(Signal::new(sim)));
    let problem: Rc<RefCell<Option<PutError>>> = Rc::default();
    let value: Rc<[u8]> = vec![7; load.value_bytes].into();
    for lane in 0..LOADERS {
        left.set(left.get() + 1);
        let (left, ended, problem) = (left.clone(), ended.clone(), problem.clone());
        let (ring, stores, value, records) = (ring.clone(), stores.to_vec(), value.clone(), load.records);
        sim.spawn(async move {
            for number in (lane..records).step_by(LOADERS as usize) {
                let key = key(number);
                for server in ring.replicas(&key, replicas) {
                    if problem.borrow().is_some() {
                        break;
                    }
                    if let Err(error) = stores[server].put(&key, 1, &value).await {
                        problem.replace(Some(error));
                    }
                }
            }
            left.set(left.get() - 1);
            ended.notify();
        });
    }
    while left.get() > 0 {
        ended.changed().await;
    }
    sim.sleep(Span::from_ms(500)).await;
    problem.take().map_or(Ok(()), Err)
}
