//! Each policy next to a noisy neighbour.

use std::rc::Rc;

use nandscape_apps_kv_engine::client::{ClientConfig, Order};
use nandscape_apps_kv_engine::policy::NAMES;
use nandscape_host_network::simulated::Fault;
use nandscape_sim::{Executor, Histogram, Span};

use crate::cluster::{Cluster, key, policy, value};

/// Three servers, the first of which is disturbed and asked first: latencies, tries and rejections of 400 gets, one after the other.
fn beside_noise(name: &str, depth: u32) -> (Histogram, u64, u64) {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let run = async {
        let cluster = Cluster::new(&sim, 3).await;
        let config = ClientConfig { order: Order::Server(0), ..ClientConfig::default() };
        let client = cluster.client(policy(name), config);
        for number in 0..50 {
            client.put(&key(number), &value(number, 1)).await.unwrap();
        }
        sim.sleep(Span::from_ms(50)).await;
        if depth > 0 {
            cluster.disturb(0, depth);
        }
        for number in 0..400 {
            let found = client.get(&key(number % 50)).await.unwrap().expect("a value");
            assert_eq!(found.value, value(number % 50, 1), "{name}");
        }
        (client.stats().latency(), client.stats().tries(), client.stats().busy())
    };
    executor.block_on(run).unwrap()
}

#[test]
fn each_evades_a_noisy_neighbour_in_its_way() {
    let quiet = beside_noise("base", 0);
    let of = |name| beside_noise(name, 2);
    let p50 = |latency: &Histogram| latency.quantile(0.5);
    assert!(p50(&quiet.0) < Span::from_us(450) && quiet.1 == 400, "two hops and a read: {:?}", p50(&quiet.0));

    let base = of("base");
    assert!(p50(&base.0) > Span::from_ms(1) && base.1 == 400, "it waits behind writes: {:?}", p50(&base.0));
    let cloned = of("cloned");
    assert!(p50(&cloned.0) < Span::from_us(500) && cloned.1 == 800, "{:?}", p50(&cloned.0));
    let hedged = of("hedged");
    assert!(
        (400..=800).contains(&hedged.1) && hedged.0.max() < Span::from_us(1_300),
        "{:?} {}",
        hedged.0.max(),
        hedged.1
    );
    assert!(p50(&hedged.0) > Span::from_us(1_100), "it has waited first: {:?}", p50(&hedged.0));
    for name in ["snitch", "c3"] {
        let (latency, tries, _) = of(name);
        assert!(p50(&latency) < Span::from_us(500) && tries == 400, "{name}: {:?}", p50(&latency));
    }
    for name in ["mitt", "mitt-wait", "hedged-mitt"] {
        let (latency, tries, busy) = of(name);
        assert!(busy > 200 && tries <= 400 + busy + 20, "{name}: {tries} {busy}");
        assert!(latency.max() < Span::from_us(1_350), "{name}: {:?}", latency.max());
        assert!(p50(&latency) < p50(&hedged.0), "{name}: {:?}", p50(&latency));
    }
    assert_eq!(of("tied").1, 800);
}

/// All replicas are disturbed.
#[test]
fn the_last_try_has_no_deadline_and_told_waits_choose_it() {
    for (name, tries) in [("mitt", 3), ("mitt-wait", 4)] {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let run = async {
            let cluster = Cluster::new(&sim, 3).await;
            let config = ClientConfig { order: Order::Server(0), ..ClientConfig::default() };
            let client = cluster.client(policy(name), config);
            client.put(&key(1), &value(1, 1)).await.unwrap();
            sim.sleep(Span::from_ms(50)).await;
            [(0, 3), (1, 8), (2, 16)].iter().for_each(|(server, depth)| cluster.disturb(*server, *depth));
            sim.sleep(Span::from_ms(5)).await;
            let begun = sim.now();
            client.get(&key(1)).await.unwrap().expect("a value");
            (client.stats().tries(), sim.now() - begun)
        };
        let (seen, took) = executor.block_on(run).unwrap();
        assert_eq!(seen, tries, "{name}");
        // The last replica has sixteen writes of a millisecond before the get, the least busy one three.
        assert_eq!(took < Span::from_ms(6), name == "mitt-wait", "{name}: {took:?}");
    }
}

#[test]
fn a_tied_get_is_cancelled_at_the_server_that_has_not_begun() {
    use nandscape_apps_kv_engine::ServerConfig;
    let mut executor = Executor::new();
    let sim = executor.sim();
    let run = async {
        // One handler: gets wait in the server.
        let cluster = Cluster::with(&sim, 3, ServerConfig { handlers: 1, ..ServerConfig::default() }).await;
        let plain = cluster.client(policy("base"), ClientConfig { order: Order::Server(0), ..ClientConfig::default() });
        for number in 0..60 {
            plain.put(&key(number), &value(number, 1)).await.unwrap();
        }
        sim.sleep(Span::from_ms(50)).await;
        let plain = Rc::new(plain);
        for number in 0..50 {
            let plain = plain.clone();
            sim.spawn(async move { drop(plain.get(&key(number)).await) });
        }
        sim.sleep(Span::from_us(200)).await;
        let config = ClientConfig { order: Order::Server(0), ..ClientConfig::default() };
        let tied = cluster.client(policy("tied"), config);
        let begun = sim.now();
        tied.get(&key(55)).await.unwrap().expect("a value");
        let took = sim.now() - begun;
        assert!(took < Span::from_ms(1), "{took:?}, though fifty gets wait at the first server");
        sim.sleep(Span::from_ms(20)).await;
        // The first server would have served it last: its client has had one answer only.
        tied.stats().tries()
    };
    assert_eq!(executor.block_on(run).unwrap(), 2);
}

#[test]
fn any_policy_has_right_values_while_one_server_fails_in_any_way() {
    for name in NAMES {
        let faults = [Fault::Partition, Fault::Hang, Fault::Slow(Span::from_ms(30)), Fault::None];
        for (number, fault) in faults.into_iter().enumerate() {
            let mut executor = Executor::new();
            let sim = executor.sim();
            let run = async {
                let cluster = Cluster::new(&sim, 4).await;
                let client = cluster.client(policy(name), ClientConfig::default());
                for number in 0..20 {
                    client.put(&key(number), &value(number, 1)).await.unwrap();
                }
                sim.sleep(Span::from_ms(20)).await;
                match fault {
                    Fault::None => cluster.kill(1, &mut nandscape_sim::Seed::new(1).rng()),
                    fault => cluster.net.set_fault(1, fault),
                }
                for number in 0..40 {
                    let found = client.get(&key(number % 20)).await.unwrap();
                    assert_eq!(found.expect("a value").value, value(number % 20, 1), "{name} {fault:?}");
                    client.put(&key(100 + number), &value(number, 2)).await.unwrap();
                }
                assert_eq!(client.get(b"nothing").await.unwrap(), None);
                cluster.net.set_fault(1, Fault::None);
                if fault == Fault::None {
                    cluster.start(1).await;
                }
                sim.sleep(Span::from_s(1)).await;
                for number in 0..40 {
                    let latest = client.get_latest(&key(100 + number)).await.unwrap().expect("a value");
                    assert_eq!(latest.value, value(number, 2));
                }
                client.stats().latency().quantile(0.5)
            };
            let p50 = executor.block_on(run).unwrap();
            assert!(p50 < Span::from_ms(2), "{name} {number}: most gets are quick: {p50:?}");
        }
    }
}

/// Two seconds of gets, one a millisecond: each replica that is not known to hang may cost a try, and after half a second another one.
#[test]
fn a_server_that_hangs_costs_few_tries() {
    for name in NAMES {
        for hangs_first in [true, false] {
            let mut executor = Executor::new();
            let sim = executor.sim();
            let run = async {
                let cluster = Cluster::new(&sim, 3).await;
                let writer = cluster.client(policy("base"), ClientConfig::default());
                for number in 0..20 {
                    writer.put(&key(number), &value(number, 1)).await.unwrap();
                }
                sim.sleep(Span::from_ms(50)).await;
                let client = cluster.client(policy(name), ClientConfig::default());
                for number in 0..2_000 {
                    if number == if hangs_first { 0 } else { 500 } {
                        cluster.net.set_fault(0, Fault::Hang);
                    }
                    client.get(&key(number % 20)).await.unwrap().expect("a value");
                    sim.sleep(Span::from_ms(1)).await;
                }
                client.stats().latency()
            };
            let latency = executor.block_on(run).unwrap();
            assert!(latency.quantile(0.99) < Span::from_ms(10), "{name} {hangs_first}: {:?}", latency.quantile(0.99));
        }
    }
}
