//! A cluster with a noisy drive: its block layer knows of gets and noise, and the policy `mitt` has shorter tails than `base`.

use nandscape_apps_kv_engine::client::Order;
use nandscape_apps_kv_engine::noise::Pattern;
use nandscape_apps_kv_engine::policy::Tuning;
use nandscape_apps_kv_run::{Load, Spec, run};
use nandscape_device_ssd::Profile;
use nandscape_sim::Span;

fn spec(policy: &str) -> Spec {
    let mut profile = Profile::load("default").expect("a built-in profile");
    let small = ["capacity=256MiB", "geometry.channels=1", "geometry.dies_per_channel=2", "buffer.size=512KiB"];
    small.iter().for_each(|change| profile.set(change).expect("a valid change"));
    Spec {
        load: Load { requests: 3_000, records: 2_000, ..Load::default() },
        noise: vec![Some(Pattern::Steady { depth: 2 })],
        policy: policy.to_owned(),
        tuning: Tuning { deadline: Span::from_us(300), busy_share: None, hedge: None, clients: 1 },
        order: Order::Server(0),
        ..Spec::new(profile.resolve().expect("a possible drive"))
    }
}

#[test]
fn gets_leave_a_noisy_drive_at_once_and_its_tail_behind() {
    let [base, mitt] = ["base", "mitt"].map(|policy| run(&spec(policy)).expect("a cluster that runs"));
    let p95 = [&base, &mitt].map(|outcome| outcome.gets.quantile(0.95));
    assert!(base.busy == 0 && base.failed == 0 && mitt.failed == 0);
    assert!(mitt.busy > 300 && p95[1] < p95[0], "{p95:?} {}", mitt.busy);
}
