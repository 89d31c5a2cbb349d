//! The locks of the block layer and of the driver: what they cost, and who waits for whom.

use nandscape_drive::Completion;
use nandscape_host_path::stage;

use crate::rig::{DRIVE_US, config, host_us, rig, rig_with, stages};

fn of(completion: &Completion, stage: &str) -> u64 {
    stages(&completion.breakdown).iter().filter(|(name, _)| *name == stage).map(|(_, us)| us).sum()
}

#[test]
fn an_io_takes_four_locks_on_the_path_of_scsi_two_with_a_strategy_and_none_of_its_own_queue_pair() {
    for (path, locks) in [("nvme", 0), ("scsi", 4), ("non_blocking", 2), ("lazy", 2)] {
        let path = format!("host.path={path}");
        let mut free = rig(config(1, &[&path]));
        let mut one = rig(config(1, &[&path, "host.lock=1us", "host.lock_transfer=50us"]));
        let (free, one) = (free.reads(&[0]).remove(0), one.reads(&[0]).remove(0));
        assert_eq!(one.0, free.0 + locks, "{path}: on one core no lock moves");
        let driver = of(&one.1, stage::DRIVER) - of(&free.1, stage::DRIVER);
        assert_eq!(of(&one.1, stage::LOCK) + driver, locks, "{path}");
        assert_eq!((host_us(&one.1.breakdown), of(&free.1, stage::LOCK)), (one.0 - DRIVE_US, 0), "{path}");
    }
}

#[test]
fn a_thread_waits_for_the_lock_of_another_core_and_pays_for_moving_it() {
    // Both submit at once: the second waits for the 5 us of the block layer of the first. Its driver finds the controller's lock
    // free. On the way back its softirq waits for the 9 us of the other, which began 4 us before.
    let ended = rig(config(2, &["host.path=scsi"])).reads(&[0, 1]);
    assert_eq!(of(&ended[0].1, stage::LOCK), 0, "{:?}", stages(&ended[0].1.breakdown));
    assert_eq!(of(&ended[1].1, stage::LOCK), 5 + 5, "{:?}", stages(&ended[1].1.breakdown));
    let moved = rig(config(2, &["host.path=scsi", "host.lock_transfer=3us"])).reads(&[0, 1]);
    assert!(of(&moved[1].1, stage::LOCK) >= 10 + 3, "{:?}", stages(&moved[1].1.breakdown));
    ended.iter().chain(&moved).for_each(|(us, of)| assert_eq!(host_us(&of.breakdown), us - DRIVE_US));
}

#[test]
fn reads_of_a_port_share_its_request_queue_and_a_driver_without_work_delays_none() {
    use nandscape_sim::Executor;

    use crate::rig::rig_on;
    // The addresses of both reads are in the chunk of port 0: one request queue.
    let shared = |chunk| {
        let config = config(2, &["host.path=scsi"]);
        rig_on(config, Executor::with_spurious_polls(), (2, usize::MAX, Some(chunk))).reads(&[0, 1])
    };
    assert!(of(&shared(8)[1].1, stage::LOCK) >= 5);
    // Without the driver's work the controller's lock costs nothing.
    let strategy = ["host.path=non_blocking", "host.driver=0", "host.handler=0"];
    let ended = rig_with(config(2, &strategy), Executor::new()).reads(&[0, 1]);
    ended.iter().for_each(|(_, completion)| assert_eq!(of(completion, stage::LOCK), 0));
}
