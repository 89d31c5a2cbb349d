//! Resets of each kind, with commands under way.

use nandscape_transport_vfio_user::DoorbellMode;
use nandscape_wire_nvme::{IoOpcode, register};
use nandscape_wire_vfio_user::Command;

use crate::host::{CONFIG, Host, Pointer};
use crate::server::Server;

/// Puts commands into work, and does not wait for them.
fn load(host: &mut Host) {
    for id in [1, 2] {
        for number in 0..24 {
            let entry = host.entry(IoOpcode::WRITE, number, 60_000 + number * 32, 32, Pointer::Prp);
            host.put(id, number as u16, entry);
        }
        host.ring(id);
    }
}

#[test]
fn the_controller() {
    for mode in [DoorbellMode::Trapped, DoorbellMode::Buffered, DoorbellMode::Mapped] {
        let server = Server::start(1, mode);
        let mut host = Host::start(&server.path(0));
        for _ in 0..5 {
            load(&mut host);
            host.disable();
            host.forget_interrupts();
            host.enable();
            host.work(1, 0, 20, 32, Pointer::Prp);
        }
        server.stop();
    }
}

/// The place of PCI Express in the configuration space, which a driver searches for.
fn express(host: &mut Host) -> u64 {
    let mut at = host.client.read(CONFIG, 0x34, 1).unwrap()[0];
    while host.client.read(CONFIG, at.into(), 1).unwrap()[0] != 0x10 {
        at = host.client.read(CONFIG, u64::from(at) + 1, 1).unwrap()[0];
    }
    at.into()
}

#[test]
fn the_function() {
    let server = Server::start(1, DoorbellMode::Buffered);
    let mut host = Host::start(&server.path(0));
    let at = express(&mut host);
    assert!(host.client.read32(CONFIG, at + 4) & 1 << 28 != 0, "function level reset");
    for by_message in [true, false, true, false] {
        host.client.write(CONFIG, 0x10, &[0, 0, 0, 0xfe]).unwrap();
        load(&mut host);
        if by_message {
            host.client.call(Command::DEVICE_RESET, &[]).unwrap();
        } else {
            host.client.write(CONFIG, at + 8, &[0, 0x80]).unwrap();
        }
        // It has ended when it is answered.
        let registers = [register::CC, register::CSTS, register::AQA, register::ASQ, register::ACQ];
        assert_eq!(registers.map(|offset| host.register(offset)), [0; 5]);
        assert_eq!((host.client.read32(CONFIG, 4) as u16, host.client.read32(CONFIG, 0x10)), (0, 4));
        assert_eq!(host.client.read(4, 0x1000, 8).unwrap(), [0; 8], "nothing is pending");
        host.forget_interrupts();
        host.enable();
        host.work(2, 0, 20, 32, Pointer::Prp);
    }
    server.stop();
}

/// The function is reset while the controller is disabled and shut down.
#[test]
fn a_function_that_was_shut_down() {
    let server = Server::start(1, DoorbellMode::Buffered);
    let mut host = Host::start(&server.path(0));
    let at = express(&mut host);
    for by_message in [true, false] {
        host.set_register(register::CC, 0b01 << 14);
        let is_shut_down = (0..1_000_000).any(|_| host.register(register::CSTS) == register::CSTS_SHUT_DOWN);
        assert!(is_shut_down, "no shutdown ended");
        if by_message {
            host.client.call(Command::DEVICE_RESET, &[]).unwrap();
        } else {
            host.client.write(CONFIG, at + 8, &[0, 0x80]).unwrap();
        }
        assert_eq!([register::CC, register::CSTS].map(|offset| host.register(offset)), [0; 2]);
    }
    host.enable();
    host.work(1, 0, 4, 8, Pointer::Prp);
    server.stop();
}

/// A function that is no bus master reaches no memory: neither queues nor data.
#[test]
fn bus_mastering() {
    let server = Server::start(1, DoorbellMode::Buffered);
    let mut host = Host::start(&server.path(0));
    host.client.write(CONFIG, 4, &[2, 0]).unwrap();
    load(&mut host);
    while host.register(register::CSTS) & register::CSTS_CFS == 0 {}
    host.disable();
    host.enable();
    host.work(1, 0, 4, 8, Pointer::Prp);
    server.stop();
}
