//! Resources behind a gate and on a network: predictions against the resources' own times, and hostile clients.

use std::cell::RefCell;
use std::rc::Rc;

use nandscape_host_block::Accuracy;
use nandscape_host_network::simulated::{Joined, SimulatedNetwork, Times};
use nandscape_host_network::{Inlet, Network};
use nandscape_host_resource::runtime::{HeapSpec, Runtime, RuntimeSpec};
use nandscape_host_resource::vm::{Core, Guest, SchedulerKind, Work};
use nandscape_host_resource::{Gate, Resource, ResourceServer};
use nandscape_sim::{Executor, Seed, Sim, Span};
use nandscape_wire_kv::{Frame, Refusal, Reply, Request};

fn seed() -> u64 {
    std::env::var("NANDSCAPE_TEST_SEED").map_or(1, |text| text.parse().expect("NANDSCAPE_TEST_SEED is a number"))
}

/// Requests at random times, with a deadline, while none is rejected.
async fn load(sim: &Sim, resource: Rc<dyn Resource>, every: Span, count: u32, deadline: Span) -> Accuracy {
    let gate = Rc::new(Gate::new(sim, resource, Span::ZERO, true));
    let mut rng = Seed::new(seed()).child("load").rng();
    for _ in 0..count {
        sim.sleep(rng.exponential(every.ns() as f64)).await;
        let gate = gate.clone();
        sim.spawn(async move { gate.pass(Some(deadline)).await.expect("none is rejected") });
    }
    sim.sleep(Span::from_s(20)).await;
    gate.counted()
}

fn described(name: &str, counted: &Accuracy) -> String {
    let Accuracy { compared, attached, false_positives, false_negatives, .. } = counted;
    format!("{name}, seed {}: {compared}, late {attached}, {false_positives} and {false_negatives} wrong", seed())
}

#[test]
fn waits_for_machines_are_predicted_under_loads_of_several_lengths_of_slices() {
    for (scheduler, slice, tenants, most) in [
        (SchedulerKind::RoundRobin, 30, 2, 0.05),
        (SchedulerKind::RoundRobin, 10, 4, 0.05),
        (SchedulerKind::RoundRobin, 5, 1, 0.05),
        (SchedulerKind::Credit, 30, 2, 0.01),
    ] {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let counted = executor
            .block_on(async {
                let core = Core::new(&sim, 1 + tenants, Span::from_ms(slice), scheduler);
                for vm in 1..=tenants {
                    let (core, clock, mut rng) = (core.clone(), sim.clone(), Seed::new(seed()).nth(vm as u64).rng());
                    sim.spawn(async move {
                        loop {
                            clock.sleep_in_background(rng.exponential(400e6)).await;
                            core.run(vm, rng.exponential(150e6)).await;
                        }
                    });
                }
                let guest = Guest::new(core, 0, Work { mean: Span::from_us(300) }, Seed::new(seed()));
                load(&sim, guest, Span::from_ms(4), 8_000, Span::from_ms(4)).await
            })
            .unwrap();
        let case = described(&format!("{scheduler:?}, {slice} ms, {tenants} tenants"), &counted);
        assert!(counted.compared == 8_000 && counted.inaccuracy() < most, "{case}");
        assert!(counted.attached > 200 || scheduler == SchedulerKind::Credit, "{case}");
    }
}

#[test]
fn a_thousand_gets_before_one_are_one_product() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    executor
        .block_on(async {
            let core = Core::new(&sim, 2, Span::from_ms(30), SchedulerKind::RoundRobin);
            let of_tenant = core.clone();
            sim.spawn(async move { of_tenant.run(1, Span::from_s(100)).await });
            let guest = Guest::new(core, 0, Work { mean: Span::from_ms(1) }, Seed::new(seed()));
            sim.sleep(Span::from_ms(10)).await;
            for _ in 0..1_000 {
                sim.spawn(guest.serve());
            }
            sim.sleep(Span::from_ns(1)).await;
            let (forecast, begun) = (guest.forecast(), sim.now());
            guest.serve().await;
            let took = (sim.now() - begun).as_s();
            // Half of the core, for a second of work: a sum of 1,000 draws.
            assert!((took - 2.0).abs() < 0.25, "seed {}: {took}", seed());
            assert!((forecast.latency.as_s() / took - 1.0).abs() < 0.12, "seed {}: {forecast:?} {took}", seed());
        })
        .unwrap();
}

#[test]
fn collections_are_predicted_under_several_heaps() {
    let mib = 1 << 20;
    let heap = HeapSpec { young: 16 * mib, old: 256 * mib, kept: 128 * mib, ..HeapSpec::default() };
    for (name, heap, most) in [
        ("16 MiB", heap.clone(), 0.04),
        ("all outlives", HeapSpec { outlives: 0.5, ..heap.clone() }, 0.04),
        ("no jitter", HeapSpec { jitter: 0.0, pause: Span::from_ms(6), ..heap }, 0.04),
    ] {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let counted = executor
            .block_on(async {
                let spec = RuntimeSpec { heap, ..RuntimeSpec::default() };
                let runtime = Runtime::new(&sim, spec, Seed::new(seed()));
                load(&sim, runtime, Span::from_us(700), 20_000, Span::from_ms(5)).await
            })
            .unwrap();
        let case = described(name, &counted);
        assert!(counted.compared == 20_000 && counted.inaccuracy() < most, "{case}");
    }
}

/// Takes frames, and whether the connection is lost.
#[derive(Default)]
struct Hears(RefCell<(Vec<Vec<u8>>, bool)>);

impl Inlet for Hears {
    fn received(&self, frame: &[u8]) {
        self.0.borrow_mut().0.push(frame.to_vec());
    }

    fn lost(&self, _: &str) {
        self.0.borrow_mut().1 = true;
    }
}

#[test]
fn puts_are_refused_gets_answered_and_what_is_no_request_ends_the_connection() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    executor
        .block_on(async {
            let core = Core::new(&sim, 1, Span::from_ms(30), SchedulerKind::RoundRobin);
            let guest = Guest::new(core, 0, Work { mean: Span::from_ms(1) }, Seed::new(seed()));
            let gate = Rc::new(Gate::new(&sim, guest, Span::from_us(5), false));
            let net = SimulatedNetwork::new(&sim, 1, Times::default());
            net.start(0, Rc::new(ResourceServer::new(&sim, gate, 100)));
            let hears = Rc::new(Hears::default());
            let outlet = Joined(net).connect(0, hears.clone());
            let get = |deadline_us| Request::Get { deadline_us, tell_begun: true, key: b"a" };
            outlet.send(get(0).to_frame(1).expect("a request"));
            outlet.send(Request::Put { version: 1, key: b"a", value: b"b" }.to_frame(2).expect("a request"));
            outlet.send(Request::Cancel.to_frame(1).expect("a request"));
            outlet.send(get(1).to_frame(3).expect("a request"));
            sim.sleep(Span::from_ms(100)).await;
            let seen = hears.0.borrow().0.clone();
            let replies: Vec<(u64, Reply<'_>)> = seen
                .iter()
                .map(|bytes| {
                    let frame = Frame::parse(bytes).expect("a frame");
                    (frame.id, Reply::parse(&frame).expect("a reply"))
                })
                .collect();
            let of = |id: u64| replies.iter().filter(move |(of, _)| *of == id).map(|(_, reply)| reply);
            assert!(of(1).any(|reply| matches!(reply, Reply::Value { value, .. } if value.len() == 100)));
            assert!(of(2).all(|reply| matches!(reply, Reply::Refused { why: Refusal::Other, .. })));
            assert!(of(3).any(|reply| matches!(reply, Reply::Busy { wait_us, .. } if *wait_us > 0)), "{replies:?}");
            assert!(of(1).any(|reply| matches!(reply, Reply::Begun)) && !hears.0.borrow().1);
            let mut bad = get(0).to_frame(4).expect("a request");
            let last = bad.len() - 1;
            bad.truncate(last);
            outlet.send(bad);
            sim.sleep(Span::from_ms(10)).await;
            assert!(hears.0.borrow().1, "the connection has ended");
        })
        .unwrap();
}
