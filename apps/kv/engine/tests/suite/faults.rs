//! Hostile clients, and overloaded servers.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_apps_kv_engine::ServerConfig;
use nandscape_apps_kv_engine::client::ClientConfig;
use nandscape_apps_kv_engine::policy::NAMES;
use nandscape_apps_store::Cpu;
use nandscape_host_network::simulated::{Fault, Joined};
use nandscape_host_network::{Inlet, Network};
use nandscape_lab_crash::each;
use nandscape_sim::{Executor, Span};
use nandscape_wire_kv::{Frame, Refusal, Reply, Request};

use crate::cluster::{Cluster, key, policy, value};

/// A client without any sense.
#[derive(Default)]
struct Raw {
    frames: RefCell<Vec<Vec<u8>>>,
    lost: RefCell<Option<String>>,
}

impl Inlet for Raw {
    fn received(&self, frame: &[u8]) {
        self.frames.borrow_mut().push(frame.to_vec());
    }

    fn lost(&self, reason: &str) {
        self.lost.replace(Some(reason.to_owned()));
    }
}

#[test]
fn a_client_that_breaks_the_protocol_is_cut_off_and_others_are_served() {
    each(30, |seed| {
        let mut executor = Executor::with_spurious_polls();
        let (sim, mut rng) = (executor.sim(), seed.rng());
        let run = async {
            let cluster = Cluster::new(&sim, 3).await;
            let client = cluster.client(policy("base"), ClientConfig::default());
            client.put(&key(1), &value(1, 1)).await.unwrap();
            let network = Joined(cluster.net.clone());
            for _ in 0..20 {
                let raw = Rc::new(Raw::default());
                let outlet = network.connect(0, raw.clone());
                let (name, value) = (key(1), value(1, 1));
                let mut frame = match rng.below(3) {
                    0 => Request::Get { deadline_us: 0, tell_begun: true, key: &name },
                    1 => Request::Put { version: 1, key: &name, value: &value },
                    _ => Request::Cancel,
                }
                .to_frame(7)
                .unwrap();
                let place = rng.below(frame.len() as u64) as usize;
                frame[place] ^= 1 + rng.below(255) as u8;
                outlet.send(frame.clone());
                outlet.send(frame);
                sim.sleep(Span::from_ms(3)).await;
                for frame in raw.frames.borrow().iter() {
                    Reply::parse(&Frame::parse(frame).unwrap()).unwrap();
                }
                let found = client.get(&key(1)).await.unwrap();
                assert!(found.is_some(), "another client is served");
            }
            let raw = Rc::new(Raw::default());
            network.connect(0, raw.clone()).send(vec![12, 0, 0, 0, 9, 1, 0, 0]);
            sim.sleep(Span::from_ms(1)).await;
            assert!(raw.lost.borrow().as_ref().is_some_and(|reason| reason.contains("version 9")), "{:?}", raw.lost);
        };
        executor.block_on(run).unwrap();
    });
}

#[test]
fn a_server_refuses_what_is_beyond_its_bound() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let run = async {
        let cluster = Cluster::with(&sim, 3, ServerConfig { most: 5, ..ServerConfig::default() }).await;
        let client = cluster.client(policy("base"), ClientConfig::default());
        client.put(&key(1), &value(1, 1)).await.unwrap();
        let raw = Rc::new(Raw::default());
        let outlet = Joined(cluster.net.clone()).connect(0, raw.clone());
        for id in 0..20 {
            let name = key(1);
            outlet.send(Request::Get { deadline_us: 0, tell_begun: false, key: &name }.to_frame(id).unwrap());
        }
        sim.sleep(Span::from_ms(20)).await;
        let frames = raw.frames.borrow();
        let refused = frames.iter().filter(|frame| {
            let reply = Reply::parse(&Frame::parse(frame).unwrap()).map(|reply| format!("{reply:?}"));
            reply.unwrap().contains(&format!("{:?}", Refusal::Overloaded))
        });
        assert_eq!((frames.len(), refused.count()), (20, 15));
    };
    executor.block_on(run).unwrap();
}

#[test]
fn clients_that_fill_a_server_do_not_have_another_refused() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let run = async {
        let cluster = Cluster::with(&sim, 3, ServerConfig { most: 8, ..ServerConfig::default() }).await;
        let client = cluster.client(policy("base"), ClientConfig::default());
        client.put(&key(1), &value(1, 1)).await.unwrap();
        let connected = || {
            let raw = Rc::new(Raw::default());
            (Joined(cluster.net.clone()).connect(0, raw.clone()), raw)
        };
        let is_refused = |frame: &Vec<u8>| {
            let reply = Reply::parse(&Frame::parse(frame).unwrap()).unwrap();
            matches!(reply, Reply::Refused { why: Refusal::Overloaded, .. })
        };
        let get = |id| Request::Get { deadline_us: 0, tell_begun: false, key: &key(1) }.to_frame(id).unwrap();
        let (greedy, honest) = ([connected(), connected(), connected()], connected());
        for id in 0..200 {
            greedy.iter().for_each(|(outlet, _)| (0..16).for_each(|more| outlet.send(get(id * 16 + more))));
            honest.0.send(get(id));
            while honest.1.frames.borrow().len() as u64 <= id {
                sim.sleep(Span::from_us(10)).await;
            }
        }
        assert_eq!(honest.1.frames.borrow().iter().filter(|frame| is_refused(frame)).count(), 0);
        for (_, raw) in &greedy {
            let refused = raw.frames.borrow().iter().filter(|frame| is_refused(frame)).count();
            assert!(refused > 1_000, "{refused} of a client that fills the server");
        }
    };
    executor.block_on(run).unwrap();
}

/// If all servers refuse a get, it is tried exactly as often as its budget allows, whatever the policy.
#[test]
fn a_get_that_all_refuse_ends_with_its_budget_of_tries() {
    for name in NAMES {
        for tries in [1, 2, 6] {
            let mut executor = Executor::new();
            let sim = executor.sim();
            let run = async {
                let cluster = Cluster::with(&sim, 3, ServerConfig { most: 0, ..ServerConfig::default() }).await;
                let client = cluster.client(policy(name), ClientConfig { tries, ..ClientConfig::default() });
                let begun = sim.now();
                assert!(client.get(&key(1)).await.is_err());
                let stats = client.stats();
                assert_eq!((stats.tries(), stats.failed()), (tries as u64, 1), "{name}");
                assert!(sim.now() - begun < Span::from_ms(100), "{name}: {}", sim.now() - begun);
            };
            executor.block_on(run).unwrap();
        }
    }
}

#[test]
fn puts_need_a_majority_and_a_stale_replica_is_brought_up_to_date() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let run = async {
        let cluster = Cluster::new(&sim, 3).await;
        let client = cluster.client(policy("base"), ClientConfig::default());
        client.put(&key(1), &value(1, 1)).await.unwrap();
        sim.sleep(Span::from_ms(20)).await;
        cluster.net.set_fault(0, Fault::Partition);
        client.put(&key(1), &value(1, 2)).await.unwrap();
        cluster.net.set_fault(1, Fault::Partition);
        let begun = sim.now();
        let error = client.put(&key(1), &value(1, 3)).await.unwrap_err();
        assert!(error.to_string().contains("1 of 2 replicas"), "{error}");
        assert_eq!(sim.now() - begun, Span::from_s(2), "it gives up in time");
        assert!(client.get_latest(&key(1)).await.is_err());
        cluster.net.set_fault(1, Fault::None);
        // The third put was not acknowledged: it may be stored.
        let latest = client.get_latest(&key(1)).await.unwrap().expect("a value").value;
        assert!(latest == value(1, 2) || latest == value(1, 3));
        cluster.net.set_fault(0, Fault::None);
        cluster.net.set_fault(2, Fault::Partition);
        let again = client.get_latest(&key(1)).await.unwrap().expect("a value").value;
        assert_eq!(again, latest, "two replicas have it");
        assert!(client.get(&[]).await.is_err() && client.put(&[1; 2_000], &[]).await.is_err());
    };
    executor.block_on(run).unwrap();
}

#[test]
fn twelve_threads_wait_for_eight_processors() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let (cpu, done) = (Rc::new(Cpu::new(&sim, 8)), Rc::new(Cell::new(0)));
    for _ in 0..12 {
        let (cpu, done) = (cpu.clone(), done.clone());
        sim.spawn(async move {
            cpu.work(Span::from_us(50)).await;
            done.set(done.get() + 1);
        });
    }
    let at = |us: u64| sim.sleep_until(nandscape_sim::Time::from_ns(us * 1_000));
    executor.block_on(at(60)).unwrap();
    assert_eq!(done.get(), 8);
    executor.block_on(at(110)).unwrap();
    assert_eq!(done.get(), 12);
}
