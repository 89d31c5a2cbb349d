//! An open-channel drive of another process, over NVMe/TCP: all commands of its host use the connection.
#![cfg(target_os = "linux")]

use std::rc::Rc;

use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Ssd};
use nandscape_host_driver::nvme_tcp::AdminQueue;
use nandscape_host_open_channel::{Means, OpenChannel, Place};
use nandscape_sim::{Executor, Seed, Sim};
use nandscape_wire_nvme::Status;
use nandscape_wire_nvme::open_channel::{CHUNK_CLOSED, CHUNK_FREE};

#[path = "../../../host/driver/tests/shared/polled.rs"]
#[allow(dead_code, reason = "each test uses a part of it")]
mod polled;
#[path = "../../../transport/nvme_tcp/tests/nvme_tcp/server.rs"]
#[allow(dead_code, reason = "the target's own tests use more of it")]
mod server;

use server::{Server, SsdExport};

const BLOCK: usize = 4_096;

fn export(sim: &Sim) -> Rc<SsdExport> {
    let mut profile = Profile::load("dfc-mlc").expect("a built-in profile");
    for change in ["geometry.blocks_per_plane=32", "geometry.pages_per_block=12", "controller.queue_pairs=8"] {
        profile.set(change).expect("a valid change");
    }
    let resolved = profile.resolve().expect("valid").without_delay();
    SsdExport::of(sim, Ssd::new(sim, &resolved, StoreKind::Ram, Seed::new(1)).expect("memory"))
}

#[test]
fn a_host_over_the_network_writes_reads_copies_and_resets_chunks() {
    let server = Server::of(None, 1 << 30, export);
    let mut executor = Executor::new();
    let sim = executor.sim();
    let drive = polled::connected(&sim, &server.address, &server.nqn);
    let ran = async {
        let admin = Rc::new(AdminQueue::of(&drive));
        let host = OpenChannel::open(&sim, admin, drive.clone(), Means::Rows).await.expect("an open-channel drive");
        let geometry = *host.geometry();
        assert_eq!((geometry.groups, geometry.pus, geometry.ws_min), (8, 4, 8));
        let chunk = |group, chunk| geometry.address(Place { group, pu: 3, chunk, sector: 0 });
        let (from, to) = (chunk(5, 2), chunk(1, 9));
        let whole = |first: u64| (first..first + u64::from(geometry.sectors)).collect::<Vec<u64>>();
        let data: Vec<u8> = (0..geometry.sectors as usize).flat_map(|sector| vec![sector as u8; BLOCK]).collect();
        host.write(&whole(from), &data).await.expect("a free chunk");
        assert_eq!(host.read(&whole(from)).await.expect("it is there"), data);
        host.copy(&whole(from), &whole(to)).await.expect("a free chunk");
        host.reset(&[from]).await.expect("a closed chunk");
        assert_eq!(host.read(&whole(to)).await.expect("it is there"), data);
        let refused = host.write(&whole(to)[..8], &data[..8 * BLOCK]).await.unwrap_err();
        assert_eq!(refused.status, Status::OUT_OF_ORDER_WRITE);
        let report = host.report().await.expect("a report");
        assert_eq!(report.len(), geometry.chunk_places().count());
        let state = |address| report.iter().find(|chunk| chunk.address == address).map(|chunk| chunk.state);
        assert_eq!((state(from), state(to)), (Some(CHUNK_FREE), Some(CHUNK_CLOSED)));
        assert!(host.notifications(0).await.expect("a log").is_empty());
        let marked = async |key| host.marked(key).await.expect("a report");
        assert_eq!(marked(7).await, 0);
        host.mark(7).await.expect("a mark");
        host.mark(7).await.expect("the same mark");
        assert_eq!((marked(7).await, marked(8).await), (1, 0));
        assert_eq!(host.mark(8).await.unwrap_err().status, Status::RESERVATION_CONFLICT);
    };
    executor.block_on(ran).expect("it ends");
}
