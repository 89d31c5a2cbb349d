//! An open-channel drive of another process as a PCI function: vector commands, with lists in the driver's memory,
//! and commands on rows.
#![cfg(target_os = "linux")]

use std::rc::Rc;

use nandscape_host_driver::vfio_user::FunctionDrive;
use nandscape_host_open_channel::{Means, OpenChannel, Place};
use nandscape_sim::Executor;
use nandscape_transport_vfio_user::DoorbellMode;
use nandscape_wire_nvme::Status;
use nandscape_wire_nvme::open_channel::{CHUNK_CLOSED, CHUNK_FREE};

#[path = "../../../host/driver/tests/shared/polled.rs"]
#[allow(dead_code, reason = "each test uses a part of it")]
mod polled;
#[path = "../../driver/tests/vfio_user/server.rs"]
#[allow(dead_code, reason = "the driver's own tests use more of it")]
mod server;

use server::Server;

const BLOCK: usize = 4_096;

/// Writes chunks of several groups concurrently, copies and resets them.
async fn work(host: &OpenChannel) {
    let geometry = *host.geometry();
    assert_eq!((geometry.groups, geometry.pus, geometry.ws_min), (8, 4, 8));
    let chunk = |group, chunk| geometry.address(Place { group, pu: 3, chunk, sector: 0 });
    let strips = |firsts: [u64; 2]| -> Vec<u64> {
        let strip = |number: u64| firsts.map(|first| first + 8 * number..first + 8 * (number + 1));
        (0..u64::from(geometry.sectors / 8)).flat_map(strip).flatten().collect()
    };
    let (from, to) = ([chunk(5, 2), chunk(0, 2)], [chunk(1, 9), chunk(7, 31)]);
    let data: Vec<u8> = (0..strips(from).len()).flat_map(|sector| vec![sector as u8 + 1; BLOCK]).collect();
    host.write(&strips(from), &data).await.expect("free chunks");
    assert!(host.read(&strips(from)).await.expect("it is there") == data, "as written");
    // A single block, with its address in the command.
    let one = host.read(&[from[1] + 3]).await.expect("it is there");
    assert!(one == data[(8 + 3) * BLOCK..][..BLOCK], "a block");
    host.copy(&strips(from), &strips(to)).await.expect("free chunks");
    host.reset(&from).await.expect("closed chunks");
    assert!(host.read(&strips(to)).await.expect("it is there") == data, "as copied");
    let refused = host.write(&strips(to)[..8], &data[..8 * BLOCK]).await.unwrap_err();
    assert_eq!(refused.status, Status::OUT_OF_ORDER_WRITE);
    let report = host.report().await.expect("a report");
    assert_eq!(report.len(), geometry.chunk_places().count());
    let state = |address| report.iter().find(|chunk| chunk.address == address).map(|chunk| chunk.state);
    assert_eq!(from.map(state), [Some(CHUNK_FREE); 2]);
    assert_eq!(to.map(state), [Some(CHUNK_CLOSED); 2]);
    host.reset(&to).await.expect("closed chunks");
    assert!(host.notifications(0).await.expect("a log").is_empty());
}

#[test]
fn a_host_of_a_function_writes_reads_copies_and_resets_chunks() {
    let changes = &["geometry.blocks_per_plane=32", "geometry.pages_per_block=12", "controller.queue_pairs=8"];
    for (means, depth) in [(Means::Vector, 8), (Means::Rows, 8), (Means::Vector, 1)] {
        let server = Server::of("dfc-mlc", changes, DoorbellMode::Buffered);
        let mut executor = Executor::new();
        let sim = executor.sim();
        let drives = FunctionDrive::connect_with_admin(&server.path(), &[(depth, None)], true);
        let (admin, mut drives) = drives.expect("a function");
        let (admin, drive) = (Rc::new(admin), Rc::new(drives.remove(0)));
        [&admin, &drive].into_iter().for_each(|drive| polled::poll(&sim, drive, FunctionDrive::poll));
        let ran = async {
            let host = OpenChannel::open(&sim, admin.clone(), drive.clone(), means).await;
            work(&host.expect("an open-channel drive")).await;
        };
        executor.block_on(ran).unwrap_or_else(|stalled| panic!("{means:?}, {depth}: {stalled}"));
    }
}
