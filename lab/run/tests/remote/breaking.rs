//! The network between the two servers breaks, for a moment and for good.

use nandscape_drive::HostMem;
use nandscape_host_driver::nvme_tcp::Target;
use nandscape_lab_run::{RemoteError, RemoteSpec};
use nandscape_sim::{Seed, Span};
use nandscape_wire_nvme::{IoOpcode, Status};

use crate::proxy::{Fate, Proxy};
use crate::served::{Rig, served_again};
use crate::server::Server;

/// Blocks of a slot.
const SLOT: u64 = 128;
const SLOTS: u64 = 64;

/// Writes and reads at depth while the connection between the servers is cut again and again: all of them succeed, and the
/// first server has the data.
#[test]
fn nothing_is_lost_when_the_network_between_two_servers_breaks() {
    let first = Server::start();
    let proxy = Proxy::start(&first.address);
    let second = served_again(Target { queues: 2, depth: 16, ..Target::new(&proxy.address, &first.nqn) });
    let rig = Rig::new(Target { depth: 64, ..Target::new(&second.address, &second.nqn) });
    let mut rng = Seed::new(11).child("remote").rng();
    let mut model = vec![0u8; SLOTS as usize];
    for round in 0..30u64 {
        let before = rig.count();
        let written: Vec<u64> = (0..SLOTS).filter(|_| rng.below(2) == 0).collect();
        for slot in &written {
            let value = rng.below(255) as u8 + 1;
            model[*slot as usize] = value;
            rig.submit(*slot, IoOpcode::WRITE, slot * SLOT, HostMem::from_bytes(&vec![value; 64 << 10]));
        }
        if round % 3 == 0 {
            rig.until(before + written.len() / 3);
            proxy.cut();
        }
        rig.until(before + written.len());
        let (slot, mem) = (rng.below(SLOTS), HostMem::zeroed(64 << 10));
        rig.submit(1_000, IoOpcode::READ, slot * SLOT, mem.clone());
        rig.until(before + written.len() + 1);
        assert!(mem.to_vec().iter().all(|byte| *byte == model[slot as usize]), "slot {slot} in round {round}");
    }
    rig.submit(2_000, IoOpcode::FLUSH, 0, HostMem::none());
    rig.until(rig.count() + 1);
    assert!(rig.ended.statuses.borrow().iter().all(|(_, status)| status.is_success()));
    second.until_complaint("drive drive: the connection to nvme-tcp://");
    second.until_complaint("drive drive: connected to nvme-tcp://");
    let figures = second.stop();
    assert!(figures.exports[0].counters["remote_connections_lost_total"] >= 10.0, "{:?}", figures.exports[0].counters);
    assert_eq!(figures.flush_problem, None);
    // The first server, asked directly.
    let direct = Rig::new(Target::new(&first.address, &first.nqn));
    for slot in 0..SLOTS {
        let mem = HostMem::zeroed(64 << 10);
        direct.submit(slot, IoOpcode::READ, slot * SLOT, mem.clone());
        direct.until(slot as usize + 1);
        assert!(mem.to_vec().iter().all(|byte| *byte == model[slot as usize]), "slot {slot} at the first server");
    }
}

/// A drive that stays unreachable: commands fail with the status of a path behind the controller. The server
/// ends although it cannot flush, and reports this.
#[test]
fn a_drive_out_of_reach_is_told_and_does_not_hold_up_the_end() {
    let first = Server::start();
    let proxy = Proxy::start(&first.address);
    let target = Target { patience: Span::from_ms(300), ..Target::new(&proxy.address, &first.nqn) };
    let second = served_again(target);
    let rig = Rig::new(Target::new(&second.address, &second.nqn));
    rig.submit(0, IoOpcode::WRITE, 0, HostMem::from_bytes(&[1; 4_096]));
    rig.until(1);
    proxy.close();
    for tag in 1..9 {
        rig.submit(tag, IoOpcode::READ, 0, HostMem::zeroed(4_096));
    }
    rig.until(9);
    let statuses: Vec<Status> = rig.ended.statuses.borrow()[1..].iter().map(|(_, status)| status.meaning()).collect();
    assert_eq!(statuses, [Status::CONTROLLER_PATHING_ERROR; 8]);
    let figures = second.stop();
    assert_eq!(figures.exports[0].counters["remote_connected"], 0.0);
    let problem = figures.flush_problem.expect("it could not be flushed");
    assert!(problem.contains("was not flushed at the end: Controller Pathing Error"), "{problem}");
}

/// The I/O queue's connection stays, and nothing passes: a server that ends does not wait for its patience of ten minutes.
#[test]
fn a_silent_drive_does_not_hold_up_the_end() {
    let first = Server::start();
    let proxy = Proxy::start(&first.address);
    let second = served_again(Target::new(&proxy.address, &first.nqn));
    let rig = Rig::new(Target::new(&second.address, &second.nqn));
    rig.submit(0, IoOpcode::WRITE, 0, HostMem::from_bytes(&[1; 4_096]));
    rig.until(1);
    proxy.set(|at| if at.connection % 2 == 1 { Fate::Lost } else { Fate::Arrives });
    rig.submit(1, IoOpcode::READ, 0, HostMem::zeroed(4_096));
    let _ = nandscape_host_driver::Remote::poll(&rig.drive);
    second.until(|figures| figures.outstanding == 1);
    let figures = second.stop();
    assert_eq!(figures.exports[0].counters["remote_connected"], 0.0);
    let problem = figures.flush_problem.expect("it could not be flushed");
    assert!(problem.contains("was not flushed at the end: Controller Pathing Error"), "{problem}");
}

/// A command that is aborted, and a host that leaves, while the drive is out of reach: neither waits for it.
#[test]
fn hosts_come_and_go_while_the_drive_is_out_of_reach() {
    let first = Server::start();
    let proxy = Proxy::start(&first.address);
    let second = served_again(Target { depth: 4, ..Target::new(&proxy.address, &first.nqn) });
    let rig = Rig::new(Target::new(&second.address, &second.nqn));
    proxy.close();
    for tag in 0..8 {
        rig.submit(tag, IoOpcode::WRITE, tag * 8, HostMem::from_bytes(&[1; 4_096]));
    }
    // The server has them when it has noticed that the drive is gone.
    let _ = nandscape_host_driver::Remote::poll(&rig.drive);
    second.until_complaint("is lost");
    drop(rig);
    second.until(|figures| figures.clients == 0 && figures.outstanding == 0);
    let next = Rig::new(Target::new(&second.address, &second.nqn));
    next.submit(0, IoOpcode::READ, 1 << 40, HostMem::zeroed(512));
    next.until(1);
    assert_eq!(next.last().meaning(), Status::LBA_OUT_OF_RANGE);
}

#[test]
fn a_target_that_cannot_be_reached_is_named() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let spec =
        RemoteSpec { name: "far".to_owned(), target: Target::new(&closed, "nqn.2026-11.org.nandscape:x"), seed: 1 };
    let error = spec.connect(&nandscape_sim::Executor::new().sim()).err().unwrap();
    assert!(matches!(error, RemoteError::OutOfReach(_)), "{error:?}");
    let error = error.to_string();
    assert!(error.starts_with(&format!("nvme-tcp://{closed}/nqn.2026-11.org.nandscape:x: ")), "{error}");
    assert!(error.contains("refused"), "{error}");
}
