//! The strategies of the thesis: who finishes an I/O, who issues a request that waits for a tag, and how long handlers take.

use nandscape_drive::Completion;
use nandscape_host_machine::Kind;
use nandscape_host_path::stage;
use nandscape_sim::{Executor, Span};

use crate::rig::{BEGINNING, DEADLINE_US, DRIVE_US, Rig, config, rig, rig_on, stages};

/// The first switch to the thread, the system call, the block layer and the driver.
const IN: u64 = 16 + 10 + 5 + 3;
const OUT: u64 = 10;
/// An interrupt, a look at the queue, and the handler of a completion.
const TAKE: u64 = 1 + 13 + 7;

fn time_of(completion: &Completion, stage: &str) -> u64 {
    stages(&completion.breakdown).iter().find(|(name, _)| *name == stage).map_or(0, |(_, us)| *us)
}

fn longest_us(rig: &Rig) -> u64 {
    rig.path.longest_handler().ns() / 1_000
}

#[test]
fn the_handler_finishes_an_io_unless_its_thread_does() {
    for (path, in_handler, on_thread) in [("non_blocking", 9, 0), ("lazy", 0, 9), ("cooperative", 0, 9 + 13)] {
        let mut rig = rig(config(1, &[&format!("host.path={path}")]));
        let ended = rig.reads(&[0]);
        assert_eq!(ended[0].0, IN + DRIVE_US + TAKE + in_handler + 11 + 16 + on_thread + OUT, "{path}");
        assert_eq!((longest_us(&rig), rig.path.interrupts()), (TAKE + in_handler + 11, 1), "{path}");
        assert_eq!(time_of(&ended[0].1, stage::COMPLETE), 9, "{path}");
    }
}

#[test]
fn the_handler_pays_for_data_that_is_warm_on_another_core() {
    let longest = |path: &str, cpu: usize| {
        let mut rig = rig(config(2, &[&format!("host.path={path}"), "host.queues=1", "host.cold_core=4us"]));
        rig.reads(&[cpu]);
        longest_us(&rig)
    };
    assert_eq!((longest("non_blocking", 0), longest("non_blocking", 1)), (TAKE + 9 + 11, TAKE + 9 + 11 + 4));
    assert_eq!((longest("lazy", 0), longest("lazy", 1)), (TAKE + 11, TAKE + 11));
}

/// Two threads on a drive with one tag: the second request waits in the FIFO, and the handler issues it.
#[test]
fn a_request_without_a_tag_is_issued_by_the_context_that_frees_one() {
    for (path, finish) in [("non_blocking", 9), ("lazy", 0)] {
        let config = config(2, &[&format!("host.path={path}"), "host.queues=1"]);
        let mut rig = rig_on(config, Executor::with_spurious_polls(), (1, 1, None));
        let ended = rig.reads(&[0, 1]);
        assert_eq!(time_of(&ended[0].1, stage::QUEUE), 0, "{path}");
        // Its own driver work comes once more in the handler. It submits as the first one does.
        let handler = TAKE + finish + 11 + 3;
        assert_eq!(
            time_of(&ended[1].1, stage::QUEUE),
            DRIVE_US + handler + 3,
            "{path}: {:?}",
            stages(&ended[1].1.breakdown)
        );
        assert_eq!(longest_us(&rig), handler, "{path}");
    }
}

#[test]
fn the_deadline_of_a_request_is_shorter_by_its_time_in_the_host() {
    for changes in [["host.path=nvme", "host.queues=1"], ["host.path=lazy", "host.queues=1"]] {
        let mut rig = rig_on(config(2, &changes), Executor::with_spurious_polls(), (1, 1, None));
        rig.reads(&[0, 1]);
        let deadlines = rig.deadlines.take();
        assert_eq!(deadlines.len(), 2, "{changes:?}");
        for (left, at) in &deadlines {
            assert_eq!(
                u64::from(*left),
                u64::from(DEADLINE_US) - (*at - BEGINNING).ns().div_ceil(1_000),
                "{changes:?}"
            );
        }
        // The second one has waited for the tag of the first.
        assert!(deadlines[1].0 + DRIVE_US as u32 <= deadlines[0].0, "{changes:?}: {deadlines:?}");
    }
}

#[test]
fn on_the_path_of_scsi_a_thread_issues_a_request_without_a_tag() {
    let config = config(1, &["host.path=scsi", "host.midlayer=4us"]);
    let mut rig = rig_on(config, Executor::with_spurious_polls(), (1, 1, None));
    let ended = rig.reads(&[0, 0]);
    let alone = IN + 2 + DRIVE_US + (1 + 7) + 2 + (9 + 2) + 11;
    // The processor is the queue run's first, which issues the other request.
    assert_eq!(ended[0].0, alone + (16 + 3) + 16 + OUT, "{:?}", stages(&ended[0].1.breakdown));
    let waited = time_of(&ended[1].1, stage::QUEUE);
    // The second thread begins when the first one waits, and its request is issued after a switch to the thread of queue runs at least.
    assert!(waited >= DRIVE_US - IN + 16 + 3, "{waited}: {:?}", stages(&ended[1].1.breakdown));
}

#[test]
fn a_cooperative_thread_takes_the_completions_of_others() {
    // Without interrupts, and a poll thread that comes late: the thread that submits at 100 us takes what has finished by then.
    let mut rig = rig(config(2, &["host.path=cooperative", "host.queues=1", "host.poll_thread=1ms"]));
    let (path, sim) = (rig.path.clone(), rig.sim.clone());
    let (first, second) = (rig.pinned(0), rig.pinned(1));
    let others = (path.clone(), sim.clone());
    let run = async {
        let helper = async {
            others.1.sleep(Span::from_us(200)).await;
            Rig::read(&others.0, &others.1, &second).await
        };
        let mut helper = std::pin::pin!(helper);
        let mut reading = std::pin::pin!(Rig::read(&path, &sim, &first));
        std::future::poll_fn(|context| {
            _ = helper.as_mut().poll(context);
            reading.as_mut().poll(context)
        })
        .await
    };
    let (latency, completion) = rig.executor.block_on(run).unwrap();
    assert!(latency < Span::from_us(400), "the poll thread would take 1 ms: {latency}");
    assert!(time_of(&completion, stage::POLL) > 50, "{:?}", stages(&completion.breakdown));
    assert_eq!(rig.path.interrupts(), 0);
}

#[test]
fn a_poll_thread_takes_completions_at_its_interval_and_raises_no_interrupt() {
    let latency = |interval: &str| {
        let mut rig = rig(config(2, &["host.path=lazy", &format!("host.poll_thread={interval}")]));
        let ended = rig.reads(&[1]);
        let spin = rig.path.machine().total().by(Kind::Spin);
        assert_eq!((rig.path.interrupts(), spin > Span::ZERO), (0, interval == "0"), "{interval}");
        ended[0].0
    };
    let least = IN + DRIVE_US + 7 + 11 + 16 + 9 + OUT;
    let (always, seldom) = (latency("0"), latency("2ms"));
    assert!((least..least + 60).contains(&always), "{always} {least}");
    assert!(seldom > 1_500, "{seldom}");
}

#[test]
fn a_command_goes_to_the_port_of_its_chunk_and_all_ports_share_an_interrupt() {
    let mut rig = rig_on(config(4, &["host.path=lazy", "host.ipi=0"]), Executor::new(), (3, 2, Some(8)));
    assert_eq!((rig.path.queues(), rig.path.info().blocks), (3, rig.drive.info().blocks));
    let ended = rig.reads(&[0, 1, 2, 3]);
    // All are for block 0, so for one port with two tags.
    assert_eq!(ended.iter().filter(|(_, completion)| time_of(completion, stage::QUEUE) > 0).count(), 2);
    let by_interrupts = |cpu: usize| rig.path.machine().usage(cpu).by(Kind::Interrupt);
    assert!(by_interrupts(0) > Span::ZERO);
    assert_eq!(by_interrupts(3), Span::ZERO);
}
