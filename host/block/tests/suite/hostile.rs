//! Deadlines and commands that only a hostile host sends.

use std::rc::Rc;

use nandscape_device_media::Priority;
use nandscape_drive::{Drive, HostMem, Issuer};
use nandscape_sim::{Executor, Span};
use nandscape_wire_nvme::vendor::{BUSY, PREDICT_ONLY};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

use crate::rig::{fill, layer, queue, read, ssd};

#[test]
fn odd_deadlines_and_places_end_with_a_status() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    executor
        .block_on(async {
            let ssd = ssd(&sim, &[]);
            let (layer, _) = layer(&sim, &ssd, &[], Priority::ReadsFirst);
            let drive: Rc<dyn Drive> = layer.over(queue(&sim, &ssd, 1));
            fill(&sim, &*drive, 1_024).await;
            let issuer = Issuer::new(&sim);
            for (slba, deadline, status) in [
                (0, 0, Status::SUCCESS),
                (0, u32::MAX, Status::SUCCESS),
                (0, 1, BUSY),
                (u64::MAX - 3, u32::MAX, Status::LBA_OUT_OF_RANGE),
                (1 << 40, u32::MAX, Status::LBA_OUT_OF_RANGE),
            ] {
                let ended = issuer.execute(&*drive, read(slba, deadline), HostMem::zeroed(4_096)).await;
                assert_eq!(ended.status.meaning(), status, "{slba} {deadline}");
            }
            // Only reads have deadlines.
            let mut write = SubmissionEntry::blocks(IoOpcode::WRITE, 1, 0, 8);
            write.cdw3 = 1.into();
            assert!(issuer.execute(&*drive, write, HostMem::zeroed(4_096)).await.status.is_success());
            let mut flush = SubmissionEntry::io(IoOpcode::FLUSH, 1);
            flush.cdw3 = 1.into();
            assert!(issuer.execute(&*drive, flush, HostMem::none()).await.status.is_success());
            // One that asks for a prediction is served.
            let mut asks = read(512, 1);
            asks.cdw2 = PREDICT_ONLY.into();
            let ended = issuer.execute(&*drive, asks, HostMem::zeroed(4_096)).await;
            assert!(ended.status.is_success() && ended.dw0 > 0);
            assert!(layer.addrcheck(u64::MAX, u32::MAX, Span::MAX).is_ok());
            assert!(layer.addrcheck(0, 8, Span::ZERO).is_ok(), "none");
            assert!(layer.addrcheck(512, 8, Span::from_ns(1)).is_err());
        })
        .unwrap();
}

#[test]
fn only_what_waits_is_cancelled_and_only_once() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    executor
        .block_on(async {
            let ssd = ssd(&sim, &[]);
            let (layer, _) = layer(&sim, &ssd, &["block.depth=1"], Priority::ReadsFirst);
            let drive: Rc<dyn Drive> = layer.over(queue(&sim, &ssd, 1));
            fill(&sim, &*drive, 1_024).await;
            let issuer = Issuer::new(&sim);
            let first = issuer.execute(&*drive, read(0, 0), HostMem::zeroed(4_096));
            let second = issuer.execute(&*drive, read(8, 0), HostMem::zeroed(4_096));
            assert!(second.cancel(&*drive));
            assert!(!second.cancel(&*drive), "it has ended");
            assert_eq!(second.await.status.meaning(), Status::ABORT_REQUESTED);
            assert!(first.await.status.is_success());
            let third = issuer.execute(&*drive, read(8, 0), HostMem::zeroed(4_096));
            sim.sleep(Span::from_ms(5)).await;
            assert!(!third.cancel(&*drive), "it has ended");
            assert!(third.await.status.is_success());
        })
        .unwrap();
}

#[test]
fn jobs_that_go_leave_the_others_served() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    executor
        .block_on(async {
            let ssd = ssd(&sim, &[]);
            let (layer, _) = layer(&sim, &ssd, &["block.depth=1"], Priority::ReadsFirst);
            let (one, other) = (layer.over(queue(&sim, &ssd, 1)), layer.over(queue(&sim, &ssd, 2)));
            fill(&sim, &*other, 1_024).await;
            let issuer = Issuer::new(&sim);
            let first = issuer.execute(&*other, read(0, 0), HostMem::zeroed(4_096));
            let of_gone = issuer.execute(&*one, read(8, 0), HostMem::zeroed(4_096));
            let last = issuer.execute(&*other, read(16, 0), HostMem::zeroed(4_096));
            drop(one);
            assert_eq!(of_gone.await.status.meaning(), Status::ABORTED_SQ_DELETION);
            assert!(first.await.status.is_success() && last.await.status.is_success());
        })
        .unwrap();
}
