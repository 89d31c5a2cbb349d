//! Servers whose hosts have other layers over their drives than a block layer, and drives with faults.

use nandscape_apps_kv_engine::client::Order;
use nandscape_apps_kv_engine::noise::Pattern;
use nandscape_apps_kv_engine::policy::Tuning;
use nandscape_apps_kv_run::{Load, Outcome, Spec, rejects_late_reads, run};
use nandscape_device_ssd::{Profile, Resolved};
use nandscape_lab_run::MemberLayers;
use nandscape_lab_run::chain::Chain;
use nandscape_sim::Span;

fn drive(changes: &[&str]) -> Resolved {
    let mut profile = Profile::load("default").expect("a built-in profile");
    let small = ["capacity=256MiB", "geometry.channels=1", "geometry.dies_per_channel=2", "buffer.size=512KiB"];
    profile.set_all(small.iter().chain(changes)).expect("valid changes");
    profile.resolve().expect("a possible drive")
}

/// Three servers, of which the first has noise, and this many drives each.
fn over(policy: &str, words: &[&str]) -> Spec {
    let chain = Chain { layers: words.iter().map(|word| word.parse().expect("a valid layer")).collect() };
    Spec {
        load: Load { requests: 2_000, records: 2_000, ..Load::default() },
        noise: vec![Some(Pattern::Steady { depth: 2 })],
        policy: policy.to_owned(),
        tuning: Tuning { deadline: Span::from_us(300), busy_share: None, hedge: None, clients: 1 },
        order: Order::Server(0),
        over: MemberLayers { layers: chain.resolve().expect("layers"), profiles: Vec::new() },
        ..Spec::new(drive(&[]))
    }
}

fn figures(outcome: &Outcome) -> (u128, u64, u64) {
    (outcome.gets.sum_ns(), outcome.tries, outcome.busy)
}

#[test]
fn a_block_layer_below_a_cache_rejects_gets_that_would_be_late() {
    let words = ["block", "cache,memory=1MiB"];
    let mitt = run(&over("mitt", &words)).expect("a cluster that runs");
    assert!(mitt.busy > 200 && mitt.failed == 0, "{} rejected", mitt.busy);
    assert_eq!(figures(&run(&over("mitt", &words)).expect("a cluster that runs")), figures(&mitt));
    let layers: Vec<&str> = mitt.below.chain.iter().map(|one| &*one.layer).collect();
    assert_eq!(layers, ["block/0", "block/1", "block/2", "cache/0", "cache/1", "cache/2"]);
    assert!(rejects_late_reads(&over("mitt", &words)).expect("a server"));
    assert!(!rejects_late_reads(&over("mitt", &["cache"])).expect("a server"));
}

#[test]
fn without_other_layers_each_server_has_a_block_layer() {
    let [usual, given] = [over("mitt", &["block"]), Spec { over: Spec::new(drive(&[])).over, ..over("mitt", &[]) }];
    let [usual, given] = [usual, given].map(|spec| run(&spec).expect("a cluster that runs"));
    assert_eq!(figures(&usual), figures(&given));
}

#[test]
fn servers_on_arrays_serve_on_when_a_drive_vanishes_and_others_do_when_a_server_fails() {
    let dead = |spec: Spec, drives: usize| {
        let of = |number| if number == 0 { drive(&["faults=[\"dead from=600ms\"]"]) } else { drive(&[]) };
        let over = MemberLayers { profiles: (0..drives).map(of).collect(), ..spec.over.clone() };
        run(&Spec { over, noise: Vec::new(), ..spec }).expect("a cluster that runs")
    };
    let mirrors = dead(over("base", &["raid1:2"]), 6);
    assert_eq!((mirrors.failed, mirrors.gets.count()), (0, 2_000));
    assert!(mirrors.below.drives[0].faults[0].struck > 0);
    let alone = dead(over("base", &["block"]), 3);
    assert!(alone.gets.count() + alone.failed == 2_000 && alone.tries > 2_000, "{} tries", alone.tries);
}
