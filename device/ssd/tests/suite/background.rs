//! Reads that background work delays: the accuracy of the drive's estimates, and the fate of reads with attributes (TeaFA, Li
//! 3.2.1, 3.2.2).

use std::cell::RefCell;
use std::rc::Rc;

use nandscape_device_ftl_core::Plant;
use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Ssd};
use nandscape_drive::breakdown::cause;
use nandscape_drive::{Completion, HostMem, Issuer, QueueDrive, QueueId, Stage};
use nandscape_sim::{Executor, Rng, Seed, Sim, Span};
use nandscape_wire_nvme::identify::{self, cns};
use nandscape_wire_nvme::vendor::{BUSY, Capabilities, FAST_FAIL, Hints, PREDICT_ONLY, PREEMPT};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};
use zerocopy::FromBytes;

/// Units of the drive.
const UNITS: u64 = (512 << 20) / 4_096;

/// A drive in steady state.
fn drive(sim: &Sim, changes: &[&str]) -> (Ssd, Rc<QueueDrive>) {
    let mut profile = Profile::load("femu-teafa").unwrap();
    let small =
        ["capacity=512MiB", "geometry.channels=4", "geometry.dies_per_channel=4", "geometry.pages_per_block=64"];
    small.iter().chain(changes).for_each(|change| profile.set(change).unwrap());
    let ssd = Ssd::new(sim, &profile.resolve().unwrap(), StoreKind::None, Seed::new(1)).unwrap();
    ssd.plant(Plant::Steady, Seed::new(2), &mut |_| ());
    let drive = QueueDrive::new(sim, ssd.controller(), QueueId(1), 1_024).unwrap();
    (ssd, drive)
}

fn entry(opcode: IoOpcode, unit: u64, units: u32, cdw2: u32) -> SubmissionEntry {
    let blocks = units * 4_096 / 512;
    SubmissionEntry { cdw2: cdw2.into(), ..SubmissionEntry::blocks(opcode, 1, unit * 8, blocks) }
}

/// Writes units at random, `gap` after each other, until `until` have been written.
fn write_at_random(sim: &Sim, drive: &Rc<QueueDrive>, (gap, count): (Span, u32)) {
    let (inner, drive) = (sim.clone(), drive.clone());
    sim.spawn(async move {
        let mut rng = Seed::new(3).child("writes").rng();
        for _ in 0..count {
            let (issuer, drive, unit) = (Issuer::new(&inner), drive.clone(), rng.below(UNITS));
            inner.spawn(async move {
                drop(issuer.execute(&*drive, entry(IoOpcode::WRITE, unit, 1, 0), HostMem::none()).await);
            });
            inner.sleep(gap).await;
        }
    });
}

/// Runs random reads of `units` units with `cdw2` during writes; calls `each` with the end and the duration of each.
fn reads_beside_writes(
    changes: &[&str],
    (units, cdw2): (u32, u32),
    each: impl Fn(&Completion, Span) + Clone + 'static,
) -> nandscape_device_ftl_core::Stats {
    reads_beside(changes, (Span::from_us(80), 20_000), (units, cdw2), each)
}

/// The same during `count` writes, `gap` after each other.
fn reads_beside(
    changes: &[&str],
    writes: (Span, u32),
    (units, cdw2): (u32, u32),
    each: impl Fn(&Completion, Span) + Clone + 'static,
) -> nandscape_device_ftl_core::Stats {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let (ssd, drive) = drive(&sim, changes);
    let before = ssd.ftl_stats();
    write_at_random(&sim, &drive, writes);
    let run = async {
        let mut rng: Rng = Seed::new(4).child("reads").rng();
        for _ in 0..8_000 {
            sim.sleep(Span::from_us(200)).await;
            let unit = rng.below(UNITS - u64::from(units));
            let (inner, drive, each, begun) = (sim.clone(), drive.clone(), each.clone(), sim.now());
            sim.spawn(async move {
                let read = Issuer::new(&inner)
                    .execute(&*drive, entry(IoOpcode::READ, unit, units, cdw2), HostMem::none())
                    .await;
                each(&read, inner.now() - begun);
            });
        }
        sim.sleep(Span::from_ms(500)).await;
    };
    executor.block_on(run).unwrap();
    ssd.check().unwrap();
    ssd.ftl_stats().since(&before)
}

/// The predicted and the actual waits, in microseconds, of reads that background work delayed.
fn waits(changes: &[&str], gap_us: u64, causes: &'static [nandscape_sim::Cause]) -> Vec<(f64, f64)> {
    let found: Rc<RefCell<Vec<(f64, f64)>>> = Rc::default();
    let to = found.clone();
    let writes = (Span::from_us(gap_us), (1_600_000 / gap_us) as u32);
    reads_beside(changes, writes, (1, FAST_FAIL | PREDICT_ONLY), move |ended, _| {
        assert_eq!(ended.status, Status::SUCCESS);
        let waited = |stage| causes.iter().map(|cause| ended.breakdown.waited(stage, *cause)).sum::<Span>();
        let waited: Span = [Stage::Queue, Stage::DieWait, Stage::ChannelWait].into_iter().map(waited).sum();
        if ended.dw0 > 0 || !waited.is_zero() {
            to.borrow_mut().push((f64::from(ended.dw0), waited.as_us()));
        }
        assert_eq!(Hints(ended.dw1).busy(), ended.dw0 > 0);
    });
    found.take()
}

/// The share of reads whose wait and estimate differ by at most `us`, or by a tenth.
fn share_within(waits: &[(f64, f64)], us: f64) -> f64 {
    let near = waits.iter().filter(|(told, was)| (told - was).abs() <= us.max(was / 10.0)).count();
    near as f64 / waits.len() as f64
}

#[test]
fn the_wait_for_a_collection_is_known() {
    // Schemes that block one plane, where the host's writes only wait in line; and schemes that block more, where writes of
    // other planes would delay reads too, with few writes. Collections of a channel wait for each other: a read may wait for
    // some that are not in its way yet when it arrives, and not for all that are.
    const ALL: &[nandscape_sim::Cause] = &[cause::GC, cause::HOST_WRITE, cause::HOST_READ];
    type Case = (&'static [&'static str], u64, &'static [nandscape_sim::Cause], f64, f64);
    // A read moves a whole page, of which a collection needs a part.
    const WHOLE_PAGES: &[&str] = &[
        "ftl.gc.copyback=false",
        "timing.bus=400MB/s",
        "timing.partial_transfer=false",
        "geometry.page_size=16KiB",
        "ftl.gc.batch=4",
    ];
    let cases: [Case; 7] = [
        // Pages are copied within the plane: no other resource is used.
        (&[], 80, &[cause::GC], 1.0, 0.98),
        (&["ftl.gc.copyback=false", "timing.bus=400MB/s"], 80, &[cause::GC], 60.0, 0.97),
        (&["ftl.gc.copyback=false", "timing.bus=400MB/s", "ftl.gc.batch=4"], 80, &[cause::GC], 60.0, 0.98),
        (WHOLE_PAGES, 160, &[cause::GC], 60.0, 0.9),
        (&["ftl.gc.scheme=channel", "ftl.gc.copyback=false", "timing.bus=400MB/s"], 1_000, ALL, 250.0, 0.7),
        (&["ftl.gc.scheme=controller"], 1_000, ALL, 250.0, 0.75),
        (&["controller.priority=reads_first"], 80, &[cause::GC], 1.0, 0.98),
    ];
    for (changes, gap, causes, us, least) in cases {
        let waits = waits(changes, gap, causes);
        let share = share_within(&waits, us);
        let mut errors: Vec<f64> = waits.iter().map(|(told, was)| told - was).collect();
        errors.sort_by(f64::total_cmp);
        let at = |share: f64| errors[(share * (errors.len() - 1) as f64) as usize];
        let told = format!("{changes:?}: of {} reads {share:.4} within {us} us", waits.len());
        let told = format!("{told}; errors {:.1} {:.1} {:.1} us", at(0.01), at(0.5), at(0.99));
        assert!(waits.len() > 100, "{told}");
        assert!(share >= least, "{told}");
    }
}

/// Where writes end in the buffer, its programs are background work too.
#[test]
fn the_wait_for_programs_of_the_buffer_is_known() {
    let changes: &[&str] = &["buffer.mode=capacitor", "ftl.gc.scheme=none"];
    let waits = waits(changes, 80, &[cause::HOST_WRITE]);
    let share = share_within(&waits, 1.0);
    assert!(waits.len() > 100 && share >= 0.97, "of {} reads {share:.4} within 1 us", waits.len());
    // Otherwise, a read waits for the host's own programs, and does not fail because of them.
    let stats = reads_beside_writes(&["ftl.gc.scheme=none"], (1, FAST_FAIL), |ended, _| {
        assert_eq!(ended.status, Status::SUCCESS);
    });
    assert_eq!(stats.failed_fast, 0);
}

/// A read that fails does so at once, without the flash, and no read with the bit waits for a collection. One of several pages
/// fails as a whole, and as the page that would wait longest.
#[test]
fn reads_that_would_rather_fail_do_so_at_once() {
    let changes: &[&str] = &["controller.firmware_time=3us", "link.latency=1us"];
    let shares: [f64; 2] = [1, 16].map(|units| {
        let (failed, all): (Rc<RefCell<Vec<u32>>>, Rc<RefCell<u32>>) = Default::default();
        let (to, count) = (failed.clone(), all.clone());
        let stats = reads_beside_writes(changes, (units, FAST_FAIL), move |ended, took| {
            *count.borrow_mut() += 1;
            let hints = Hints(ended.dw1);
            if ended.status.is_success() {
                assert_eq!((ended.dw0, ended.dw1), (0, 0));
                let waited = |stage| ended.breakdown.waited(stage, cause::GC);
                assert_eq!(waited(Stage::DieWait) + waited(Stage::Queue), Span::ZERO);
                return;
            }
            assert_eq!((ended.status, took, hints.busy()), (BUSY, Span::from_us(4), true));
            // The longest is a fully current block: 64 pages of 240 us, and an erase.
            let expected = u64::from(ended.dw0) * 256 / (64 * 240 + 2_000);
            assert!(ended.dw0 > 0 && u64::from(hints.remaining_bucket()).abs_diff(expected) <= 1, "{ended:?}");
            to.borrow_mut().push(ended.dw0);
        });
        assert_eq!(stats.failed_fast, failed.borrow().len() as u64);
        let mean = failed.borrow().iter().map(|us| f64::from(*us)).sum::<f64>() / failed.borrow().len() as f64;
        assert!(mean > 500.0, "{mean} us");
        failed.borrow().len() as f64 / f64::from(*all.borrow())
    });
    assert!(shares[0] > 0.01 && shares[1] > 3.0 * shares[0], "{shares:?}");
}

#[test]
fn a_drive_says_what_it_honours_and_ignores_the_rest() {
    for (changes, attributes) in [
        (&[][..], FAST_FAIL | PREDICT_ONLY),
        (&["ftl.read.policy=serve"], 0),
        (&["ftl.gc.preempt_on_request=true"], FAST_FAIL | PREDICT_ONLY | PREEMPT),
    ] {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let (ssd, _) = drive(&sim, changes);
        let admin = QueueDrive::new(&sim, ssd.controller(), QueueId::ADMIN, 32).unwrap();
        let mem = HostMem::zeroed(4_096);
        let identify = SubmissionEntry::identify(cns::CONTROLLER, 0);
        let ended = executor.block_on(Issuer::new(&sim).execute(&*admin, identify, mem.clone())).unwrap();
        assert_eq!(ended.status, Status::SUCCESS);
        let controller = identify::Controller::read_from_bytes(&mem.to_vec()).unwrap();
        let honoured = Capabilities::of(&controller.vendor).unwrap();
        assert_eq!(honoured.attributes.get(), attributes, "{changes:?}");
        assert_eq!(honoured.hints.get() != 0, attributes & FAST_FAIL != 0);
    }
    let serve: &[&str] = &["ftl.read.policy=serve"];
    let stats = reads_beside_writes(serve, (1, FAST_FAIL), |ended, _| assert_eq!(ended.status, Status::SUCCESS));
    assert_eq!(stats.failed_fast, 0);
    // An answer above which they fail.
    let some: &[&str] = &["ftl.read.fail_above=4ms"];
    reads_beside_writes(some, (1, FAST_FAIL), |ended, _| assert!(ended.dw0 == 0 || ended.dw0 > 4_000));
}

/// A read with the preempt bit waits for at most one step of a collection, or less if the flash suspends it; a read without
/// the bit waits as usual.
#[test]
fn a_read_that_asks_for_it_is_let_into_a_collection() {
    let key = "ftl.gc.preempt_on_request=true";
    // The number of 8,000 reads that wait for a collection for longer than `us`.
    let longer = |changes: &[&str], cdw2, us| {
        let count = Rc::new(std::cell::Cell::new(0));
        let to = count.clone();
        reads_beside_writes(changes, (1, cdw2), move |ended, _| {
            assert_eq!(ended.status, Status::SUCCESS);
            let waited = ended.breakdown.waited(Stage::DieWait, cause::GC);
            to.set(to.get() + u32::from(waited > Span::from_us(us)));
        });
        count.get()
    };
    assert!(longer(&[key], 0, 2_240) > 200, "a read without the bit waits for a block");
    assert!(longer(&[], PREEMPT, 2_240) > 200, "the bit is ignored");
    // The rest of a copy, and an erase behind it.
    assert_eq!(longer(&[key], PREEMPT, 2_240), 0);
    // No read is let in while writes wait for the plane.
    let suspend = [key, "timing.suspend.program=20us", "timing.suspend.erase=20us"];
    let (within, beyond) = (longer(&suspend, PREEMPT, 0), longer(&suspend, PREEMPT, 100));
    assert!(within > 200 && beyond * 5 < within, "{beyond} of {within} wait for longer than suspending takes");
}
