//! Clusters on modelled drives, in simulated time.

use nandscape_apps_kv_engine::client::Order;
use nandscape_apps_kv_engine::noise::Pattern;
use nandscape_apps_kv_engine::policy::Tuning;
use nandscape_apps_kv_run::{Load, RunError, Spec, run};
use nandscape_device_ssd::Profile;
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
