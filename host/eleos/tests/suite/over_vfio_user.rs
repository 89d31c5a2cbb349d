//! To a drive of another process as a PCI function, with lists and buffers in the driver's memory.

use std::rc::Rc;

use nandscape_drive::{Drive, Issuer};
use nandscape_host_driver::vfio_user::FunctionDrive;
use nandscape_host_eleos::{Limits, PieceLimits, format_for_pieces};
use nandscape_sim::{Executor, Seed};
use nandscape_transport_vfio_user::DoorbellMode;

use crate::chains::{ChainWay, KnownChains};
use crate::common::{Known, Way};
use crate::polled;

#[path = "../../../driver/tests/vfio_user/server.rs"]
#[allow(dead_code, reason = "the driver's own tests use more of it")]
mod server;

use server::Server;

/// Pages that are used.
const PAGES: u64 = 2_048;

#[test]
fn buffers_and_batches_go_to_a_function() {
    let changes = &["ftl.kind=ox_block", "capacity=64MiB", "buffer.mode=volatile", "controller.queue_pairs=4"];
    let server = Server::of("default", changes, DoorbellMode::Buffered);
    let mut executor = Executor::new();
    let sim = executor.sim();
    let drives = FunctionDrive::connect_with_admin(&server.path(), &[(4, None)], true);
    let (admin, mut drives) = drives.expect("a function");
    let (admin, drive, issuer) = (Rc::new(admin), Rc::new(drives.remove(0)), Issuer::new(&sim));
    [&admin, &drive].into_iter().for_each(|drive| polled::poll(&sim, drive, FunctionDrive::poll));
    let ran = executor.block_on(async {
        let limits = Limits::ask(&issuer, &*admin, &drive.info()).await.expect("it answers").expect("it knows buffers");
        // A command over this driver moves 1 MiB.
        assert_eq!(limits, Limits { buffered: 252, batched: 255 });
        let way = Way { issuer: &issuer, drive: &*drive, limits };
        let (mut known, mut rng) = (Known::new("seed 1".to_owned()), Seed::new(1).child("pages").rng());
        for _ in 0..100 {
            known.flush(&way, &mut rng, PAGES).await;
            let some: Vec<u64> = (0..1 + rng.below(600)).map(|_| rng.below(PAGES)).collect();
            known.check(&way, &some).await;
        }
    });
    ran.unwrap_or_else(|stalled| panic!("{stalled}"));
}

#[test]
fn pages_of_pieces_go_to_a_function() {
    let changes = &["ftl.kind=ox_block", "capacity=64MiB", "buffer.mode=volatile", "controller.queue_pairs=4"];
    let server = Server::of("default", changes, DoorbellMode::Buffered);
    let mut executor = Executor::new();
    let sim = executor.sim();
    let drives = FunctionDrive::connect_with_admin(&server.path(), &[(4, None)], true);
    let (admin, mut drives) = drives.expect("a function");
    let (admin, drive, issuer) = (Rc::new(admin), Rc::new(drives.remove(0)), Issuer::new(&sim));
    [&admin, &drive].into_iter().for_each(|drive| polled::poll(&sim, drive, FunctionDrive::poll));
    let ran = executor.block_on(async {
        let info = drive.info();
        format_for_pieces(&issuer, &*admin, &info, true).await.expect("it can be formatted");
        let limits = PieceLimits::ask(&issuer, &*admin, &info).await.expect("it answers").expect("it has pieces");
        let way = ChainWay { issuer: &issuer, drive: &*drive, limits };
        let (mut known, mut rng) =
            (KnownChains::new("seed 1".to_owned(), PAGES, 6_000), Seed::new(1).child("pieces").rng());
        for _ in 0..100 {
            known.flush(&way, &mut rng, 60).await;
            known.check_some(&way, &mut rng, 60).await;
        }
        known.check_all(&way).await;
    });
    ran.unwrap_or_else(|stalled| panic!("{stalled}"));
}
