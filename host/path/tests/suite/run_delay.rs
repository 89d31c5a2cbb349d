//! The wait for a processor by who has it.

use std::collections::BTreeMap;

use nandscape_host_path::stage;
use nandscape_sim::Span;

use crate::rig::{Rig, config, delays, rig, stages};

/// Reads of a thread, one after the other: the sums of stages and of waits by holder, in microseconds.
fn reads(changes: &[&str], count: u32) -> (BTreeMap<&'static str, u64>, BTreeMap<&'static str, u64>) {
    let mut rig = rig(config(1, changes));
    let (path, sim, thread) = (rig.path.clone(), rig.sim.clone(), rig.pinned(0));
    let run = async {
        let (mut spent, mut behind) = (BTreeMap::new(), BTreeMap::new());
        for _ in 0..count {
            let (_, completion) = Rig::read(&path, &sim, &thread).await;
            stages(&completion.breakdown).into_iter().for_each(|(stage, us)| *spent.entry(stage).or_default() += us);
            delays(&completion.breakdown).into_iter().for_each(|(holder, us)| *behind.entry(holder).or_default() += us);
        }
        (spent, behind)
    };
    rig.executor.block_on(run).unwrap()
}

#[test]
fn a_thread_next_to_two_that_compute_waits_for_twice_its_work() {
    for sched in ["host.sched=cfs", "host.sched=eevdf"] {
        let slices = ["host.slice=100us", "host.latency=100us", "host.wakeup=0", "host.switch=0"];
        let changes = [&slices[..], &["host.load=2", "host.user=10ms", sched]].concat();
        let (spent, behind) = reads(&changes, 20);
        // Each of three threads has a third of the processor.
        let ratio = behind["load"] as f64 / spent[stage::THREAD] as f64;
        assert!((ratio / 2.0 - 1.0).abs() < 0.03, "{sched}: {ratio}");
        assert_eq!(behind.values().sum::<u64>(), spent[stage::RUN_DELAY]);
        assert!(["application", "polling", "kernel"].iter().all(|holder| !behind.contains_key(holder)), "{behind:?}");
    }
}

#[test]
fn a_thread_that_waits_for_none_but_its_timer_waits_behind_the_interrupt() {
    let (spent, behind) = reads(&["host.completion=hybrid", "host.poll_sleep=100%"], 2);
    assert_eq!((spent[stage::RUN_DELAY], &behind), (8, &BTreeMap::from([("interrupt", 8)])));
}

#[test]
fn threads_that_poll_on_one_processor_wait_behind_each_other() {
    let mut rig = rig(config(1, &["host.completion=poll", "host.slice=100us"]));
    let ended = rig.reads(&[0, 0, 0]);
    let mut polled = Span::ZERO;
    for (latency, completion) in &ended {
        let behind = delays(&completion.breakdown);
        let all: u64 = stages(&completion.breakdown).iter().map(|(_, us)| us).sum();
        assert_eq!(*latency, all + crate::rig::DRIVE_US);
        assert!(behind.keys().all(|holder| ["polling", "application"].contains(holder)), "{behind:?}");
        polled += Span::from_us(behind.get("polling").copied().unwrap_or(0));
    }
    assert!(!polled.is_zero());
}
