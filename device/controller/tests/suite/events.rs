//! Asynchronous events: warnings, invalid doorbells, masking until the log is read; and a host that falls silent.

use crate::common::{Drive, Pair, config, with};
use nandscape_drive::{Controller, HostMem, QueueId};
use nandscape_sim::{Sim, Span};
use nandscape_wire_nvme::log::RETAIN_EVENT;
use nandscape_wire_nvme::register::{CC, CC_EN, CSTS, CSTS_CFS, CSTS_RDY, CSTS_SHUT_DOWN};
use nandscape_wire_nvme::{AdminOpcode, Status, SubmissionEntry, feature, log};

/// Longer than any command here takes.
const LONG: Span = Span::from_ms(1);

/// Submits an admin command. Returns its status and DW0, and those of other completions.
async fn submit(sim: &Sim, admin: &Pair, entry: SubmissionEntry) -> Vec<(Status, u32)> {
    admin.put(entry, HostMem::zeroed(4_096));
    admin.ring();
    sim.sleep(LONG).await;
    reap(admin)
}

fn reap(admin: &Pair) -> Vec<(Status, u32)> {
    let posted = std::iter::from_fn(|| admin.reap());
    let posted = posted.map(|posted| (posted.entry.status().meaning(), posted.entry.dw0.get())).collect();
    admin.release();
    posted
}

fn request() -> SubmissionEntry {
    SubmissionEntry::admin(AdminOpcode::ASYNCHRONOUS_EVENT_REQUEST)
}

fn set(id: u8, value: u32) -> SubmissionEntry {
    SubmissionEntry::set_features(id, value)
}

fn read_log(id: u8, flags: u32) -> SubmissionEntry {
    let entry = SubmissionEntry::get_log_page(id, 0, 512);
    SubmissionEntry { cdw10: (entry.cdw10.get() | flags).into(), ..entry }
}

const DONE: (Status, u32) = (Status::SUCCESS, 0);
/// SMART, temperature threshold, log 02h.
const HOT: (Status, u32) = (Status::SUCCESS, 0x02_01_01);
/// Error, invalid doorbell register, log 01h; and invalid doorbell value.
const NO_DOORBELL: (Status, u32) = (Status::SUCCESS, 0x01_00_00);
const BAD_DOORBELL: (Status, u32) = (Status::SUCCESS, 0x01_01_00);

fn with_admin(test: impl AsyncFn(&Sim, &Drive, &Pair)) {
    with(config(), async |sim, drive| test(sim, drive, &Pair::new(sim, drive, 0, 32)).await);
}

#[test]
fn a_threshold_below_the_temperature_is_told_if_the_host_wants_to_know() {
    with_admin(async |sim, _, admin| {
        assert_eq!(submit(sim, admin, request()).await, []);
        let threshold = |kelvin| set(feature::TEMPERATURE_THRESHOLD, kelvin);
        assert_eq!(submit(sim, admin, threshold(300)).await, [DONE], "it was not asked for");
        assert_eq!(submit(sim, admin, set(feature::ASYNC_EVENT_CONFIG, 0b10)).await, [DONE, HOT]);
        // The warning ceases and recurs: it is reported again, after the log was read.
        assert_eq!(submit(sim, admin, request()).await, []);
        assert_eq!(submit(sim, admin, threshold(340)).await, [DONE]);
        assert_eq!(submit(sim, admin, threshold(300)).await, [DONE]);
        assert_eq!(submit(sim, admin, read_log(log::SMART, RETAIN_EVENT)).await, [DONE]);
        assert_eq!(submit(sim, admin, read_log(log::ERROR_INFORMATION, 0)).await, [DONE], "another log");
        assert_eq!(submit(sim, admin, read_log(log::SMART, 0)).await, [DONE], "the log tells of the second time");
        assert_eq!(submit(sim, admin, threshold(340)).await, [DONE]);
        assert_eq!(submit(sim, admin, threshold(300)).await, [DONE, HOT]);
    });
}

#[test]
fn doorbells_that_are_none_are_error_events() {
    with_admin(async |sim, drive, admin| {
        drive.ring_submission(QueueId(9), 1);
        drive.ring_completion(QueueId(2), 0);
        drive.ring_submission(QueueId::ADMIN, 32);
        assert_eq!(submit(sim, admin, request()).await, [NO_DOORBELL], "the same event twice is one");
        assert_eq!(submit(sim, admin, request()).await, [], "the type is masked");
        assert_eq!(submit(sim, admin, read_log(log::ERROR_INFORMATION, 0)).await, [DONE]);
        drive.ring_submission(QueueId::ADMIN, 33);
        sim.sleep(LONG).await;
        assert_eq!(reap(admin), [BAD_DOORBELL]);
    });
}

/// Base 5.1.2: reading the log before a request clears the event.
#[test]
fn a_log_that_was_read_tells_of_its_events() {
    with_admin(async |sim, drive, admin| {
        let ring = || drive.ring_submission(QueueId(9), 1);
        ring();
        assert_eq!(submit(sim, admin, read_log(log::ERROR_INFORMATION, RETAIN_EVENT)).await, [DONE]);
        assert_eq!(submit(sim, admin, read_log(log::SMART, 0)).await, [DONE], "another log");
        assert_eq!(submit(sim, admin, request()).await, [NO_DOORBELL]);
        assert_eq!(submit(sim, admin, read_log(log::ERROR_INFORMATION, 0)).await, [DONE]);
        ring();
        assert_eq!(submit(sim, admin, read_log(log::ERROR_INFORMATION, 0)).await, [DONE]);
        // Also a warning that persists.
        assert_eq!(submit(sim, admin, set(feature::ASYNC_EVENT_CONFIG, 0b10)).await, [DONE]);
        assert_eq!(submit(sim, admin, set(feature::TEMPERATURE_THRESHOLD, 300)).await, [DONE]);
        assert_eq!(submit(sim, admin, read_log(log::SMART, 0)).await, [DONE]);
        assert_eq!(submit(sim, admin, request()).await, []);
        ring();
        sim.sleep(LONG).await;
        assert_eq!(reap(admin), [NO_DOORBELL]);
    });
}

#[test]
fn requests_have_a_limit_and_a_reset_forgets_them() {
    with_admin(async |sim, drive, admin| {
        for _ in 0..4 {
            assert_eq!(submit(sim, admin, request()).await, []);
        }
        let limit = (Status::EVENT_REQUEST_LIMIT_EXCEEDED, 0);
        assert_eq!(submit(sim, admin, request()).await, [limit]);
        drive.ring_submission(QueueId(9), 1);
        sim.sleep(LONG).await;
        assert_eq!(reap(admin), [NO_DOORBELL]);
        drive.ring_submission(QueueId::ADMIN, 40);
        let cc = drive.register(CC);
        drive.set_register(CC, cc & !CC_EN);
        sim.sleep(LONG).await;
        assert_eq!(reap(admin), [], "requests are aborted without a completion");
        drive.set_register(CC, cc | CC_EN);
        let admin = Pair::new(sim, drive, 0, 32);
        assert_eq!(submit(sim, &admin, request()).await, [], "events of before are forgotten");
    });
}

/// The host may reuse the memory of the completion queue then.
#[test]
fn nothing_is_told_after_a_shutdown() {
    with_admin(async |sim, drive, admin| {
        assert_eq!(submit(sim, admin, request()).await, []);
        let cc = drive.register(CC);
        drive.set_register(CC, cc | 0b01 << 14);
        sim.sleep(LONG).await;
        assert_eq!(drive.register(CSTS), CSTS_RDY | CSTS_SHUT_DOWN);
        drive.ring_submission(QueueId(9), 1);
        sim.sleep(LONG).await;
        assert_eq!(reap(admin), []);
    });
}

/// From the start of a shutdown on, the timer is not active (Base 3.9.2).
#[test]
fn a_silent_host_may_shut_the_controller_down() {
    with_admin(async |sim, drive, admin| {
        assert_eq!(submit(sim, admin, set(feature::KEEP_ALIVE_TIMER, 500)).await, [DONE]);
        drive.set_register(CC, drive.register(CC) | 0b01 << 14);
        sim.sleep(Span::from_s(2)).await;
        assert_eq!(drive.register(CSTS), CSTS_RDY | CSTS_SHUT_DOWN);
    });
}

#[test]
fn a_silent_host_makes_the_controller_fail() {
    with_admin(async |sim, drive, admin| {
        let keep_alive = || SubmissionEntry::admin(AdminOpcode::KEEP_ALIVE);
        assert_eq!(submit(sim, admin, set(feature::KEEP_ALIVE_TIMER, 500)).await, [DONE]);
        for _ in 0..4 {
            sim.sleep(Span::from_ms(400)).await;
            assert_eq!(submit(sim, admin, keep_alive()).await, [DONE]);
        }
        // A longer timeout counts from now on.
        assert_eq!(submit(sim, admin, set(feature::KEEP_ALIVE_TIMER, 2_000)).await, [DONE]);
        sim.sleep(Span::from_ms(1_900)).await;
        assert_eq!(drive.register(CSTS) & CSTS_CFS, 0);
        sim.sleep(Span::from_ms(101)).await;
        assert_ne!(drive.register(CSTS) & CSTS_CFS, 0);
        assert_eq!(submit(sim, admin, keep_alive()).await, [], "nothing is served any more");
        let cc = drive.register(CC);
        drive.set_register(CC, cc & !CC_EN);
        sim.sleep(LONG).await;
        drive.set_register(CC, cc | CC_EN);
        let admin = Pair::new(sim, drive, 0, 32);
        sim.sleep(Span::from_s(10)).await;
        assert_eq!(submit(sim, &admin, keep_alive()).await, [DONE], "a reset has ended the timeout");
    });
}
