//! Precompletion over a drive that announces: what each notice costs and saves, in time, late, early and missing.

use std::cell::RefCell;
use std::rc::Rc;

use nandscape_drive::HostMem;
use nandscape_drive::testing::INFO;
use nandscape_host_machine::Kind;
use nandscape_host_path::{Waiting, stage};
use nandscape_sim::Span;
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};

use crate::announcing::Lead;
use crate::rig::{DRIVE_US, Rig, config, host_us, rig, stages, write};

const IN: u64 = 16 + 10 + 5 + 3;
const OUT: u64 = 10;
const POLLED: u64 = 13 + 7 + 9;
/// Entry, handler, wake-up, switch: from a notice to its thread.
const WAKING: u64 = 1 + 7 + 11 + 16;

fn lead(before_us: u64) -> Lead {
    let before = Span::from_us(before_us);
    Lead { before: Some(before), predicts: before, free: 0 }
}

fn announcing(changes: &[&str], lead: Lead) -> Rig {
    let rig = rig(config(1, &[&["host.completion=precompletion"], changes].concat()));
    rig.lead.set(lead);
    rig
}

fn us(rig: &Rig, kind: Kind) -> u64 {
    rig.path.machine().total().by(kind).ns() / 1_000
}

/// A read, which took as long as its stages.
fn read(rig: &mut Rig) -> (u64, Vec<(&'static str, u64)>) {
    let (latency, completion) = rig.reads(&[0]).remove(0);
    assert_eq!(host_us(&completion.breakdown), latency - DRIVE_US);
    assert_eq!(rig.path.waiting(), Waiting::default());
    (latency, stages(&completion.breakdown))
}

#[test]
fn a_notice_in_time_has_the_latency_of_polling_and_the_spin_of_the_rest_of_the_window() {
    let mut rig = announcing(&[], lead(50));
    assert_eq!(read(&mut rig).0, IN + DRIVE_US + POLLED + OUT);
    assert_eq!([us(&rig, Kind::Spin), us(&rig, Kind::Interrupt)], [50 - WAKING, 1 + 7 + 11]);
    let notices = rig.path.notices().clone();
    assert_eq!((notices.reads, notices.ready, rig.path.interrupts()), (1, 1, 1));
    assert_eq!(notices.delay.mean_ns() as u64, 1_000 * WAKING);
}

#[test]
fn a_notice_that_is_too_late_hides_a_part_of_the_waking() {
    let mut rig = announcing(&[], lead(20));
    let (latency, stages) = read(&mut rig);
    assert_eq!(latency, IN + DRIVE_US + (WAKING - 20) + POLLED + OUT);
    assert!(stages.contains(&(stage::SWITCH, 16 + WAKING - 20)), "{stages:?}");
    assert_eq!((rig.path.notices().late, us(&rig, Kind::Spin)), (1, 0));
    // The completion comes while the handler wakes the thread.
    let mut rig = announcing(&[], lead(15));
    assert_eq!(read(&mut rig).0, IN + DRIVE_US + (WAKING - 15) + POLLED + OUT);
    assert_eq!((rig.path.notices().late, rig.path.interrupts()), (1, 1));
    // With 3 us left, the completion arrives while the handler of notices runs, and its interrupt waits for that handler.
    let mut rig = announcing(&[], lead(3));
    assert_eq!(read(&mut rig).0, IN + DRIVE_US + (1 + 7 - 3) + (1 + 7) + 9 + 11 + 16 + OUT);
    assert_eq!((rig.path.notices().missing, rig.path.interrupts()), (1, 2));
}

#[test]
fn without_a_notice_and_for_large_reads_the_interrupt_comes() {
    let interrupted = IN + DRIVE_US + (1 + 7) + 9 + 11 + 16 + OUT;
    let mut rig = announcing(&[], Lead { before: None, ..lead(50) });
    assert_eq!((read(&mut rig).0, rig.path.notices().missing), (interrupted, 1));
    rig.lead.set(lead(50));
    let large = SubmissionEntry::blocks(IoOpcode::READ, 1, 0, 16);
    const { assert!(16 * INFO.lba_bytes >= 8_192) };
    let (path, sim, thread) = (rig.path.clone(), rig.sim.clone(), rig.pinned(0));
    let run = async { path.io(&thread, sim.now(), (large, INFO.lba_bytes), HostMem::none()).await };
    let completion = rig.executor.block_on(run).unwrap();
    assert!(stages(&completion.breakdown).contains(&(stage::INTERRUPT, 8)));
    assert_eq!(rig.path.notices().reads, 1, "a large read waits for no notice");
}

#[test]
fn a_thread_that_was_woken_too_early_gives_up_and_has_the_interrupt() {
    // At 90 us before the end the drive predicts 10: the thread gives up 20 us after that.
    let mut rig = announcing(&[], Lead { predicts: Span::from_us(10), ..lead(90) });
    let (latency, _) = read(&mut rig);
    assert_eq!(latency, IN + DRIVE_US + (1 + 7) + 9 + 11 + 16 + OUT);
    assert_eq!((rig.path.notices().gave_up, rig.path.interrupts()), (1, 2));
    let mut rig = announcing(&["host.patience=200us"], Lead { predicts: Span::from_us(10), ..lead(90) });
    assert_eq!(read(&mut rig).0, IN + DRIVE_US + POLLED + OUT);
    assert_eq!(us(&rig, Kind::Spin), 90 - WAKING);
}

#[test]
fn a_write_that_finds_room_is_polled_for_and_one_that_waits_proves_the_count_wrong() {
    let written = |rig: &mut Rig| {
        let (path, sim, thread) = (rig.path.clone(), rig.sim.clone(), rig.pinned(0));
        let run = async {
            let begun = sim.now();
            path.io(&thread, begun, (write(), INFO.lba_bytes), HostMem::none()).await;
            (sim.now() - begun).ns() / 1_000
        };
        rig.executor.block_on(run).unwrap()
    };
    let interrupted = IN + DRIVE_US + (1 + 7) + 9 + 11 + 16 + OUT;
    let mut rig = announcing(&["host.patience=150us"], Lead { free: 9, ..lead(50) });
    assert_eq!(written(&mut rig), interrupted, "nothing is known of the buffer");
    assert_eq!(written(&mut rig), IN + DRIVE_US + POLLED + OUT);
    assert_eq!((rig.path.notices().hits, us(&rig, Kind::Spin)), (1, DRIVE_US));
    rig.lead.set(Lead { free: 0, ..lead(50) });
    written(&mut rig);
    assert_eq!(written(&mut rig), interrupted, "it is full");
    // A drive whose writes take longer than those with room.
    let mut rig = announcing(&["host.patience=60us"], Lead { free: 9, ..lead(50) });
    written(&mut rig);
    written(&mut rig);
    assert_eq!((rig.path.notices().hits, rig.path.notices().hits_waited), (1, 1));
    written(&mut rig);
    assert_eq!(rig.path.notices().hits, 1, "back to interrupts");
}

#[test]
fn a_window_that_adapts_is_given_to_the_drive_and_covers_the_delay() {
    let mut rig = announcing(&["host.window=adaptive"], lead(16));
    let given = Rc::new(RefCell::new(Vec::new()));
    let (of, log) = (rig.lead.clone(), given.clone());
    rig.path.on_window(move |window| {
        of.set(Lead { before: Some(window), predicts: window, ..of.get() });
        log.borrow_mut().push(window.ns() / 1_000);
    });
    let latencies: Vec<u64> = (0..40).map(|_| rig.reads(&[0]).remove(0).0).collect();
    let polled = IN + DRIVE_US + POLLED + OUT;
    assert!(latencies[0] > polled, "16 us do not cover {WAKING}");
    let in_time = latencies[20..].iter().filter(|latency| **latency == polled).count();
    assert!(in_time >= 15, "{latencies:?} {:?}", given.borrow());
    let given = given.borrow();
    assert_eq!(given[0], 16);
    assert!((30..=45).contains(given.last().unwrap()), "{given:?}");
    assert_eq!(rig.path.window().map(|window| window.ns() / 1_000), given.last().copied());
}
