//! The latency of each policy is the sum of its costs, and so is the processors' time.

use nandscape_host_machine::{Context, Kind};
use nandscape_host_path::stage;
use nandscape_sim::Span;

use crate::rig::{DRIVE_US, Rig, config, host_us, rig, stages};

/// What all policies have in common: the first switch to the thread, the system call, block layer and driver.
const IN: u64 = 16 + 10 + 5 + 3;
const OUT: u64 = 10;

fn us(rig: &Rig, kind: Kind) -> u64 {
    rig.path.machine().total().by(kind).ns() / 1_000
}

#[test]
fn an_interrupt_costs_entry_handler_completion_wakeup_and_a_switch() {
    let mut rig = rig(config(1, &[]));
    let ended = rig.reads(&[0]);
    let (latency, completion) = &ended[0];
    let back = (1 + 7) + 9 + 11 + 16;
    assert_eq!(*latency, IN + DRIVE_US + back + OUT);
    let expected = [
        (stage::SWITCH, 32),
        (stage::SYSCALL, 20),
        (stage::SUBMIT, 5),
        (stage::DRIVER, 3),
        (stage::INTERRUPT, 8),
        (stage::COMPLETE, 9),
        (stage::WAKEUP, 11),
    ];
    let mut stages = stages(&completion.breakdown);
    stages.sort_by_key(|(name, _)| expected.iter().position(|(stage, _)| stage == name));
    assert_eq!(stages, expected);
    assert_eq!([us(&rig, Kind::Kernel), us(&rig, Kind::Interrupt), us(&rig, Kind::Switch)], [28, 28, 32]);
    assert_eq!((us(&rig, Kind::Spin), us(&rig, Kind::Softirq), rig.path.interrupts()), (0, 0, 1));
}

#[test]
fn polling_costs_no_switch_and_the_processor_for_as_long_as_the_drive_takes() {
    let mut rig = rig(config(1, &["host.completion=poll"]));
    let ended = rig.reads(&[0]);
    assert_eq!(ended[0].0, IN + DRIVE_US + 13 + (7 + 9) + OUT);
    assert_eq!([us(&rig, Kind::Kernel), us(&rig, Kind::Spin), us(&rig, Kind::Switch)], [28 + 29, DRIVE_US, 16]);
    assert_eq!((us(&rig, Kind::Interrupt), rig.path.interrupts()), (0, 0));
    assert_eq!(host_us(&ended[0].1.breakdown), ended[0].0 - DRIVE_US);
}

/// The second read of a thread, whose first one has taught the policy how long the drive takes.
fn second(rig: &mut Rig, thread: &Context) -> (u64, Vec<(&'static str, u64)>) {
    let (path, sim) = (rig.path.clone(), rig.sim.clone());
    let run = async {
        Rig::read(&path, &sim, thread).await;
        Rig::read(&path, &sim, thread).await
    };
    let (latency, completion) = rig.executor.block_on(run).unwrap();
    (latency.ns() / 1_000, stages(&completion.breakdown))
}

#[test]
fn hybrid_polling_has_the_latency_of_polling_and_half_of_its_time() {
    let mut rig = rig(config(1, &["host.completion=hybrid"]));
    let thread = rig.pinned(0);
    let (latency, stages) = second(&mut rig, &thread);
    assert_eq!(latency, IN - 16 + DRIVE_US + 13 + 16 + OUT);
    assert!(stages.iter().all(|(name, _)| *name != stage::OVERSLEEP), "{stages:?}");
    // Asleep for half of the time; the timer and the switch back take 24 us of the rest.
    assert_eq!(us(&rig, Kind::Spin), DRIVE_US + DRIVE_US - 50 - 8 - 16);
    assert_eq!((us(&rig, Kind::Interrupt), us(&rig, Kind::Switch)), (8, 32));
}

#[test]
fn a_thread_that_sleeps_for_too_long_is_late_by_the_timer_and_the_switch() {
    let mut rig = rig(config(1, &["host.completion=hybrid", "host.poll_sleep=100%"]));
    let thread = rig.pinned(0);
    let (latency, stages) = second(&mut rig, &thread);
    assert_eq!(latency, IN - 16 + DRIVE_US + (8 + 16) + 13 + 16 + OUT);
    // The drive is ready as the sleep ends: nothing is overslept, the timer's interrupt delays the thread, and it is switched to.
    assert!(stages.contains(&(stage::RUN_DELAY, 8)) && stages.contains(&(stage::SWITCH, 16)), "{stages:?}");
}

#[test]
fn each_processor_has_its_queue_and_its_interrupt() {
    let mut rig = rig(config(4, &[]));
    assert_eq!((rig.path.queues(), rig.drive.connections()), (4, 4));
    let alone = IN + DRIVE_US + (1 + 7) + 9 + 11 + 16 + OUT;
    let latencies: Vec<u64> = rig.reads(&[0, 1, 2, 3]).iter().map(|(latency, _)| *latency).collect();
    assert_eq!(latencies, [alone; 4]);
    let machine = rig.path.machine();
    (0..4).for_each(|cpu| assert_eq!(machine.usage(cpu).by(Kind::Interrupt), Span::from_us(28), "{cpu}"));
}

#[test]
fn with_fewer_queues_another_processor_finishes_in_a_softirq_of_the_submitter() {
    let mut rig = rig(config(2, &["host.queues=1"]));
    let ended = rig.reads(&[1]);
    let back = (1 + 7) + 4 + 2 + 9 + 11 + 16;
    assert_eq!(ended[0].0, IN + DRIVE_US + back + OUT);
    let stages = stages(&ended[0].1.breakdown);
    for expected in [(stage::INTERRUPT, 8), (stage::IPI, 4), (stage::SOFTIRQ, 2), (stage::COMPLETE, 9)] {
        assert!(stages.contains(&expected), "{expected:?} of {stages:?}");
    }
    let of = |cpu: usize, kind| rig.path.machine().usage(cpu).by(kind);
    assert_eq!((of(0, Kind::Interrupt), of(1, Kind::Interrupt)), (Span::from_us(8), Span::from_us(4)));
    assert_eq!(of(1, Kind::Softirq), Span::from_us(2 + 9 + 11));
}

#[test]
fn a_completion_queue_of_all_interrupts_the_processor_that_its_affinity_names() {
    for (changes, interrupted) in [
        (&["host.completion_queues=1"][..], [0, 0, 0, 0]),
        (&["host.completion_queues=1", "host.affinity=2"], [2, 2, 2, 2]),
        (&["host.completion_queues=2"], [0, 1, 0, 1]),
        (&["host.completion_queues=2", "host.affinity=3:1"], [3, 1, 3, 1]),
        (&["host.affinity=3:2:1:0"], [3, 2, 1, 0]),
    ] {
        let mut rig = rig(config(4, changes));
        assert_eq!(rig.path.queues(), 4);
        for (cpu, here) in interrupted.into_iter().enumerate() {
            let before: Vec<Span> = (0..4).map(|cpu| rig.path.machine().usage(cpu).by(Kind::Interrupt)).collect();
            let (latency, completion) = rig.reads(&[cpu]).remove(0);
            let is_there = cpu == here;
            let crossed = if is_there { 0 } else { 4 + 2 };
            assert_eq!(latency, IN + DRIVE_US + (1 + 7) + crossed + 9 + 11 + 16 + OUT, "{changes:?}, {cpu}");
            let crosses = stages(&completion.breakdown).contains(&(stage::IPI, 4));
            assert_eq!(crosses, !is_there, "{changes:?}, {cpu}");
            let spent = |at: usize| (rig.path.machine().usage(at).by(Kind::Interrupt) - before[at]).ns() / 1_000;
            assert_eq!(spent(here), if is_there { 1 + 7 + 9 + 11 } else { 1 + 7 }, "{changes:?}, {cpu}");
        }
        let mut raised = [0; 4];
        rig.path.completion_queues().for_each(|(processor, interrupts)| raised[processor] += interrupts);
        let mut expected = [0; 4];
        interrupted.iter().for_each(|cpu| expected[*cpu] += 1);
        assert_eq!((raised, rig.path.interrupts()), (expected, 4), "{changes:?}");
    }
}

#[test]
fn completions_of_several_submission_queues_share_a_handler() {
    // The first interrupt is entered; the other three completions find its handler at work.
    let mut rig = rig(config(4, &["host.completion_queues=1"]));
    rig.reads(&[0, 1, 2, 3]);
    assert_eq!(rig.path.interrupts(), 1);
    let interrupt = rig.path.machine().usage(0).by(Kind::Interrupt);
    assert_eq!(interrupt, Span::from_us(1 + 4 * 7 + 9 + 11));
}

#[test]
fn the_path_of_scsi_has_a_softirq_on_the_interrupted_processor_too() {
    let mut rig = rig(config(2, &["host.path=scsi"]));
    assert_eq!(rig.path.queues(), 1);
    let ended = rig.reads(&[0]);
    assert_eq!(ended[0].0, IN + DRIVE_US + (1 + 7) + 2 + 9 + 11 + 16 + OUT);
    assert!(!stages(&ended[0].1.breakdown).iter().any(|(name, _)| *name == stage::IPI));
}

#[test]
fn completions_that_join_share_one_interrupt() {
    let mut rig = rig(config(1, &["host.coalesce=2", "host.coalesce_time=50us"]));
    let ended = rig.reads(&[0]);
    assert_eq!(ended[0].0, IN + DRIVE_US + 50 + (1 + 7) + 9 + 11 + 16 + OUT, "alone, it waits for the timer");
    assert!(stages(&ended[0].1.breakdown).contains(&(stage::COALESCING, 50)));
    assert_eq!(rig.path.interrupts(), 1);
    let ended = rig.reads(&[0, 0]);
    assert_eq!(rig.path.interrupts(), 2);
    // The second thread submits 34 us later, within the time for which the first completion is held back.
    assert!(stages(&ended[0].1.breakdown).contains(&(stage::COALESCING, IN)), "{:?}", stages(&ended[0].1.breakdown));
    assert!(stages(&ended[1].1.breakdown).iter().all(|(name, _)| *name != stage::COALESCING));
}

#[test]
fn data_is_copied_by_its_size_and_the_application_works_first() {
    let mut rig = rig(config(1, &["host.copy=30us", "host.user=40us"]));
    let ended = rig.reads(&[0]);
    let stages = stages(&ended[0].1.breakdown);
    assert!(stages.contains(&(stage::COPY, 30)) && stages.contains(&(stage::THREAD, 40)), "{stages:?}");
    assert_eq!(us(&rig, Kind::User), 40);
}
