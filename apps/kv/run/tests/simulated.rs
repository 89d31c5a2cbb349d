//! Clusters on modelled drives, in simulated time.

use nandscape_apps_kv_engine::client::Order;
use nandscape_apps_kv_engine::noise::Pattern;
use nandscape_apps_kv_engine::policy::Tuning;
use nandscape_apps_kv_run::{Load, Outcome, Processors, RunError, Spec, run};
use nandscape_device_ssd::Profile;
use nandscape_host_machine::Config as MachineConfig;
use nandscape_host_path::{Config as HostConfig, Profile as Host};
use nandscape_sim::Span;

fn spec(policy: &str) -> Spec {
    let mut profile = Profile::load("default").unwrap();
    profile
        .set_all(["capacity=1GiB", "geometry.channels=2", "geometry.dies_per_channel=4", "buffer.size=1MiB"])
        .unwrap();
    Spec {
        load: Load { records: 2_000, requests: 2_000, ..Load::default() },
        order: Order::Server(0),
        policy: policy.to_owned(),
        tuning: Tuning { deadline: Span::from_us(100), busy_share: None, hedge: None, clients: 1 },
        ..Spec::new(profile.resolve().unwrap())
    }
}

#[test]
fn a_deadline_evades_a_noisy_neighbour_and_runs_repeat_themselves() {
    let noise = vec![Some(Pattern::Steady { depth: 4 })];
    let quiet = run(&spec("base")).unwrap();
    let base = run(&Spec { noise: noise.clone(), ..spec("base") }).unwrap();
    let mitt = run(&Spec { noise: noise.clone(), ..spec("mitt") }).unwrap();
    let p99 = [&quiet, &mitt, &base].map(|outcome| outcome.gets.quantile(0.99));
    assert!(p99[0] < p99[1] && p99[1] < p99[2], "{p99:?}");
    assert!(mitt.busy > 100 && base.busy == 0 && mitt.failed + base.failed == 0, "{} rejected", mitt.busy);
    let again = run(&Spec { noise, ..spec("mitt") }).unwrap();
    let figures = |outcome: &nandscape_apps_kv_run::Outcome| (outcome.gets.sum_ns(), outcome.tries, outcome.busy);
    assert_eq!(figures(&again), figures(&mitt));
}

#[test]
fn what_cannot_be_is_told() {
    let failed = |spec: Spec| run(&spec).err().expect("an error").to_string();
    assert!(failed(spec("fast")).contains("mitt-wait"));
    assert!(failed(Spec { replicas: 4, ..spec("base") }).contains("as many as replicas"));
    let many = Load { records: 1_000_000, ..Load::default() };
    assert!(failed(Spec { load: many, ..spec("base") }).contains("the store is full"));
    assert!(matches!(
        run(&Spec { load: Load { scale: 0, ..Load::default() }, ..spec("base") }),
        Err(RunError::Spec(_))
    ));
}

/// One client's gets, one after the other, from servers with this machine.
fn on_machines(changes: &[&str]) -> Result<Outcome, RunError> {
    let mut host = Host::load("server").unwrap();
    host.config = HostConfig::free(MachineConfig::free(4));
    let free = ["host.packet_in=0", "host.message_in=0", "host.message_out=0", "host.link_interval=0"];
    host.set_all(free.iter().chain(changes)).unwrap();
    let load = Load { records: 500, requests: 500, ..Load::default() };
    run(&Spec { load, processors: Processors::Machines(Box::new(host)), ..spec("base") })
}

#[test]
fn each_cost_of_a_servers_machine_adds_to_an_undisturbed_get_as_often_as_it_comes() {
    let mean = |outcome: &Outcome| outcome.gets.sum_ns() / 500;
    let free = on_machines(&[]).unwrap();
    let spec = Spec { load: Load { records: 500, requests: 500, ..Load::default() }, ..spec("base") };
    let elsewhere = run(&spec).unwrap();
    // Headers on the wire of the answer, and a wire of 1 Gb/s instead of 10.
    let wire = mean(&free) - mean(&elsewhere);
    assert!((8_000..8_500).contains(&wire), "{wire} ns");
    let costs = [
        ("host.packet_in", 1),
        ("host.message_in", 1),
        ("host.message_out", 1),
        ("host.softirq", 1),
        // Of the card and of the drive.
        ("host.interrupt", 2),
        // For the thread of I/Os, and for the message.
        ("host.wake", 2),
        // The work before, that of the I/O with its completion, and the work after.
        ("host.switch", 4),
        // To receive, to read and to send.
        ("host.syscall", 3),
    ];
    for (key, times) in costs {
        let outcome = on_machines(&[&format!("{key}=10us")]).unwrap();
        let more = mean(&outcome) - mean(&free);
        // A get in a hundred meets other work of the drive, which later I/Os miss or meet too.
        assert!((times * 9_500..=times * 10_500).contains(&more), "{key}: {more} ns");
        let spent = outcome.processors.unwrap().request_us_by(500);
        if key.starts_with("host.message") {
            assert!((spent["kernel"] - 10.0).abs() < 0.1, "{key}: {spent:?}");
        }
        let spent: f64 =
            spent.values().sum::<f64>() - free.processors.unwrap().request_us_by(500).values().sum::<f64>();
        assert!((spent - 10.0 * times as f64).abs() < 0.1, "{key}: {spent} us of the processors");
    }
}

#[test]
fn a_machine_that_no_server_can_have_is_refused() {
    let failed = |change: &str| on_machines(&[change]).err().expect("an error").to_string();
    assert_eq!(
        failed("host.ring=iopoll"),
        "the servers' host: host.ring: iopoll is not valid for servers; valid is off"
    );
    assert!(failed("host.completion=precompletion").contains("valid is interrupt, poll, hybrid or adaptive"));
}
