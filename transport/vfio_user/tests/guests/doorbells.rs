//! A driver's work with doorbells of each kind.

use nandscape_transport_vfio_user::DoorbellMode;
use nandscape_wire_nvme::register;

use crate::host::{Host, Pointer};
use crate::server::Server;

/// CC.SHN (Base 3.1.4.5).
const SHUTDOWN_NORMAL: u32 = 0b01 << 14;

/// Several depths, data by PRPs and by SGLs, two queue pairs; the queues wrap around.
fn work(host: &mut Host) {
    assert_eq!(host.model(), "Nandscape default");
    for round in 0..6 {
        for (id, pointer) in [(1, Pointer::Prp), (2, Pointer::Sgl)] {
            host.work(id, round * 1_000, 24, 32, pointer);
            host.work(id, round * 1_000, 1, 8, pointer);
        }
    }
}

#[test]
fn trapped() {
    let server = Server::start(1, DoorbellMode::Buffered);
    let mut host = Host::start(&server.path(0));
    work(&mut host);
    drop(host);
    let figures = server.stop();
    let export = &figures.exports[0];
    assert_eq!((export.reads.latency.count(), export.writes.latency.count()), (300, 300));
    assert_eq!(figures.outstanding, 0);
}

#[test]
fn mapped() {
    let server = Server::start(1, DoorbellMode::Mapped);
    let mut host = Host::start(&server.path(0));
    work(&mut host);
    // A doorbell of a queue of the same number, with the value that the old one had last.
    for _ in 0..3 {
        host.delete(2);
        host.create(2);
        host.work(2, 20_000, 5, 8, Pointer::Prp);
    }
    host.disable();
    host.enable();
    work(&mut host);
    server.stop();
}

#[test]
fn in_buffers_of_the_guest() {
    let modes = [DoorbellMode::Trapped, DoorbellMode::Shadow, DoorbellMode::Buffered, DoorbellMode::Mapped];
    for mode in modes {
        let server = Server::start(1, mode);
        let mut host = Host::start(&server.path(0));
        host.use_buffers();
        let before = host.rung;
        work(&mut host);
        let rung = host.rung - before;
        match mode {
            // Submissions and completions of twelve rounds of two passes each.
            DoorbellMode::Trapped => assert!(rung >= 600, "{rung} registers were written"),
            DoorbellMode::Buffered => assert!(rung < 300, "{rung} registers were written for 600 doorbells and more"),
            // One for each batch that is submitted, few for heads.
            DoorbellMode::Shadow => assert!((20..300).contains(&rung), "{rung} registers were written"),
            DoorbellMode::Mapped => {}
        }
        host.disable();
        host.enable();
        work(&mut host);
        server.stop();
    }
}

/// A driver that is removed shuts the controller down and gives the pages of the buffers back, without a reset.
#[test]
fn in_buffers_until_a_shutdown() {
    for mode in [DoorbellMode::Trapped, DoorbellMode::Shadow, DoorbellMode::Buffered, DoorbellMode::Mapped] {
        let server = Server::start(1, mode);
        let mut host = Host::start(&server.path(0));
        host.use_buffers();
        work(&mut host);
        let configuration = host.register(register::CC);
        host.set_register(register::CC, configuration | SHUTDOWN_NORMAL);
        let is_shut_down =
            |host: &mut Host| host.register(register::CSTS) & register::CSTS_SHST == register::CSTS_SHUT_DOWN;
        assert!((0..1_000_000).any(|_| is_shut_down(&mut host)), "no shutdown ended");
        let used = host.reuse_buffers();
        // The controller still checks doorbells.
        (0..10).for_each(|_| assert_eq!(host.model(), "Nandscape default"));
        assert!(host.buffer_pages() == used, "{mode:?}: a buffer was written after the shutdown");
        server.stop();
    }
}

/// Functions of one drive are controllers over one namespace; a reset of one is nothing to the other.
#[test]
fn of_two_functions_of_one_drive() {
    let server = Server::start(2, DoorbellMode::Buffered);
    let mut hosts = [0, 1].map(|function| Host::start(&server.path(function)));
    hosts[0].work(1, 0, 8, 8, Pointer::Prp);
    let [one, other] = &mut hosts;
    std::thread::scope(|scope| {
        scope.spawn(|| (0..20).for_each(|round| other.work(1, 4_000 + round * 300, 9, 8, Pointer::Prp)));
        for round in 0..5 {
            one.disable();
            one.enable();
            one.work(2, 40_000 + round * 300, 9, 8, Pointer::Sgl);
        }
    });
    server.stop();
}
