//! Associations whose controller is not enabled, or is shut down (Base 3.6.2).

use nandscape_wire_nvme::fabrics::SIZE_4;
use nandscape_wire_nvme::identify::cns;
use nandscape_wire_nvme::tcp::Digests;
use nandscape_wire_nvme::{AdminOpcode, IoOpcode, Status, SubmissionEntry, register};

use crate::host::Host;
use crate::server::Server;

const ENABLED: u32 = 0x0046_0001;
const NORMAL: u32 = 0b01 << 14;
const TIMEOUT_MS: u32 = 1_000;

/// A host with a Keep Alive Timeout, whose controller is not enabled.
fn with_timeout(server: &Server) -> Host {
    let mut host = Host::initialized(server, Digests::default(), 0, 0);
    let (status, controller) = host.connect(server, 0, 32, |connect, _| connect.keep_alive_ms = TIMEOUT_MS.into());
    assert_eq!(status, Status::SUCCESS);
    host.controller = controller as u16;
    host
}

fn enable(host: &mut Host) {
    assert_eq!(host.set(register::CC, ENABLED).0, Status::SUCCESS);
}

/// Shuts the controller down, and waits for the end of that.
fn shut_down(host: &mut Host) {
    assert_eq!(host.set(register::CC, ENABLED | NORMAL).0, Status::SUCCESS);
    while host.get(register::CSTS, SIZE_4).1 >> 2 & 0b11 != 0b10 {}
}

/// Three silent hosts of the same timeout: one whose controller is not enabled, one whose controller is shut down, and one
/// whose controller is enabled. The last one connected last, and leaves first.
#[test]
fn the_keep_alive_timer_runs_for_enabled_controllers_alone() {
    let server = Server::start();
    let mut never = with_timeout(&server);
    let mut reset = with_timeout(&server);
    enable(&mut reset);
    assert_eq!(reset.set(register::CC, ENABLED & !1).0, Status::SUCCESS);
    let mut shut = with_timeout(&server);
    enable(&mut shut);
    shut_down(&mut shut);
    let mut enabled = with_timeout(&server);
    enable(&mut enabled);
    assert!(enabled.try_receive().is_none(), "its time is over");
    server.until_complaint("keep alive timeout expired");
    [&mut never, &mut reset, &mut shut].into_iter().for_each(Host::is_alive);
    // With the controller the timer begins.
    enable(&mut never);
    assert!(never.try_receive().is_none(), "its time is over, too");
    [&mut reset, &mut shut].into_iter().for_each(Host::is_alive);
}

#[test]
fn a_controller_that_is_shut_down_processes_fabrics_commands_alone() {
    let server = Server::start();
    let (mut admin, mut queue) = Host::with_queue(&server);
    assert_eq!(queue.write_in_capsule(0, &[1; 4_096]), Status::SUCCESS);
    shut_down(&mut admin);
    let refused = Status::COMMAND_SEQUENCE_ERROR.final_().with_more();
    let identify = SubmissionEntry::identify(cns::CONTROLLER, 0);
    assert_eq!(admin.execute(SubmissionEntry::admin(AdminOpcode::KEEP_ALIVE)).status(), refused);
    assert_eq!(admin.read_command(identify, 4_096).0, refused);
    assert_eq!(queue.execute(SubmissionEntry::io(IoOpcode::FLUSH, 1)).status(), refused);
    assert_eq!(queue.write_in_capsule(0, &[2; 4_096]), refused);
    assert_eq!(queue.write(0, &[2; 8_192], 8_192), refused);
    assert_eq!(queue.read(0, 8), (refused, Vec::new()));
    // A queue that connects now is of no use either.
    let mut late = admin.queue(&server, 2, Digests::default());
    assert_eq!(late.read(0, 8).0, refused);
    assert_eq!(queue.execute(SubmissionEntry::disconnect()).status(), Status::SUCCESS);
    // The notification alone changes nothing; a reset does.
    assert_eq!(admin.set(register::CC, ENABLED).0, Status::SUCCESS);
    assert_eq!(admin.read_command(identify, 4_096).0, refused);
    assert_eq!(admin.set(register::CC, ENABLED & !1).0, Status::SUCCESS);
    while admin.get(register::CSTS, SIZE_4).1 & 1 != 0 {}
    assert_eq!(admin.set(register::CC, ENABLED).0, Status::SUCCESS);
    assert_eq!(admin.read_command(identify, 4_096).0, Status::SUCCESS);
    let mut queue = admin.queue(&server, 1, Digests::default());
    assert_eq!(queue.read(0, 8), (Status::SUCCESS, vec![1; 4_096]));
}

/// CSTS.SHST ends with the write that enables the controller and clears the notification.
#[test]
fn a_disabled_controller_is_shut_down_and_enabled_again() {
    let server = Server::start();
    let mut admin = Host::admin(&server, Digests::default());
    assert_eq!(admin.set(register::CC, ENABLED & !1).0, Status::SUCCESS);
    while admin.get(register::CSTS, SIZE_4).1 & 1 != 0 {}
    assert_eq!(admin.set(register::CC, ENABLED & !1 | NORMAL).0, Status::SUCCESS);
    while admin.get(register::CSTS, SIZE_4).1 >> 2 & 0b11 != 0b10 {}
    assert_eq!(admin.set(register::CC, ENABLED).0, Status::SUCCESS);
    assert_eq!(admin.get(register::CSTS, SIZE_4), (Status::SUCCESS, 1));
    assert_eq!(admin.read_command(SubmissionEntry::identify(cns::CONTROLLER, 0), 4_096).0, Status::SUCCESS);
}
