//! Memory without a descriptor: the server requests all accesses to it from the client.

use nandscape_transport_vfio_user::DoorbellMode;
use nandscape_wire_nvme::{AdminOpcode, IoOpcode, Status, SubmissionEntry, register};
use nandscape_wire_vfio_user::{Command, Header};
use zerocopy::IntoBytes as _;

use crate::client::Client;
use crate::host::{BASE, Host, PAGE, Pointer};
use crate::server::Server;

/// A host with parts of its memory reached by messages.
fn start(server: &Server, number: usize, remote: [bool; 2], count_bytes: usize) -> Host {
    let mut host = Host::connect(Client::agree(&server.path(number)));
    host.map_remote(remote, count_bytes);
    host.enable();
    host
}

fn asked(host: &Host) -> u32 {
    host.client.served.as_ref().unwrap().asked
}

/// Queues and lists are in the first half, data in the second.
#[test]
fn queues_lists_and_data_are_reached_by_messages() {
    for mode in [DoorbellMode::Trapped, DoorbellMode::Mapped] {
        let server = Server::start(1, mode);
        for (remote, count_bytes) in [([true; 2], 8), ([true; 2], 4), ([true, false], 8), ([false, true], 8)] {
            let mut host = start(&server, 0, remote, count_bytes);
            let before = asked(&host);
            for pointer in [Pointer::Prp, Pointer::Sgl] {
                host.work(1, 0, 16, 16, pointer);
                host.work(2, 2_000, 24, 32, pointer);
            }
            assert!(asked(&host) > before + 100, "{remote:?}");
            assert!(!host.model().is_empty());
        }
        assert_eq!(server.stop().outstanding, 0);
    }
}

/// An interrupt follows the write of the completion before it.
#[test]
fn interrupts_come_behind_completions() {
    let server = Server::start(1, DoorbellMode::Trapped);
    let mut host = start(&server, 0, [true; 2], 8);
    host.forget_interrupts();
    for cid in 0..100 {
        host.put(1, cid, SubmissionEntry::io(IoOpcode::FLUSH, 1));
        host.ring(1);
        let interrupted = (0..60_000).any(|_| {
            host.client.serve_next();
            host.take_interrupts(1) > 0
        });
        assert!(interrupted, "no interrupt after a minute");
        assert!(host.reap(1).is_some(), "an interrupt came before its completion");
    }
    server.stop();
}

#[test]
fn maps_and_resets_come_and_go() {
    let server = Server::start(1, DoorbellMode::Buffered);
    let mut host = start(&server, 0, [true; 2], 8);
    host.work(1, 0, 8, 8, Pointer::Prp);
    host.disable();
    host.enable();
    host.work(1, 300, 8, 8, Pointer::Sgl);
    host.client.call(Command::DEVICE_RESET, &[]).unwrap();
    host.enable();
    host.work(2, 600, 8, 8, Pointer::Prp);
    // Doorbells cannot be watched there.
    let pages = SubmissionEntry {
        prp1: (BASE + 9 * PAGE).into(),
        prp2: (BASE + 10 * PAGE).into(),
        ..SubmissionEntry::admin(AdminOpcode::DOORBELL_BUFFER_CONFIG)
    };
    assert_eq!(host.admin(pages).meaning(), Status::INVALID_FIELD);
    // Without memory, commands fail as they do elsewhere, and a queue without memory is fatal.
    let half = 128 * PAGE;
    host.client.unmap(0, BASE + half, half).unwrap();
    let entry = host.entry(IoOpcode::WRITE, 0, 0, 8, Pointer::Prp);
    host.put(1, 1, entry);
    host.ring(1);
    assert_eq!(host.wait(1).status().meaning(), Status::DATA_TRANSFER_ERROR);
    host.client.unmap(0, BASE, half).unwrap();
    host.ring(1);
    host.put(1, 2, SubmissionEntry::io(IoOpcode::FLUSH, 1));
    host.ring(1);
    let is_fatal = (0..1_000_000).any(|_| host.register(register::CSTS) & register::CSTS_CFS != 0);
    assert!(is_fatal, "its status is not fatal");
    host.map_remote([true; 2], 8);
    host.disable();
    host.enable();
    host.work(1, 900, 8, 8, Pointer::Prp);
    server.stop();
}

/// Clients that answer nothing, reject, or answer nonsense, next to one that works. When they leave, the next one is
/// served.
#[test]
fn a_client_that_does_not_answer_hurts_no_other() {
    #[derive(Copy, Clone, PartialEq, Debug)]
    enum Harm {
        Silence,
        Refusal,
        Nonsense,
    }
    let server = Server::start(2, DoorbellMode::Mapped);
    let mut good = Host::start(&server.path(1));
    for harm in [Harm::Silence, Harm::Refusal, Harm::Nonsense] {
        let mut host = start(&server, 0, [false, true], 8);
        let served = host.client.served.take().unwrap();
        for number in 0..24 {
            let opcode = if number % 2 == 0 { IoOpcode::READ } else { IoOpcode::WRITE };
            let entry = host.entry(opcode, number, 40_000 + number * 32, 32, Pointer::Prp);
            host.put(1 + (number % 2) as u16, number as u16, entry);
        }
        host.ring(1);
        host.ring(2);
        good.work(1, 0, 16, 16, Pointer::Prp);
        for _ in 0..if harm == Harm::Silence { 0 } else { 20 } {
            let Some((header, payload)) = host.client.receive() else { break };
            let bytes = match harm {
                Harm::Refusal => header.failure(nandscape_wire_vfio_user::Errno::EINVAL).as_bytes().to_vec(),
                _ => [header.reply(7).as_bytes(), &payload[..7]].concat(),
            };
            host.client.send_bytes(&bytes, &[]);
            let strange = Header::command(9_999, Command::DMA_READ, 0).reply(0);
            host.client.send_bytes(strange.as_bytes(), &[]);
        }
        good.work(2, 900, 16, 16, Pointer::Sgl);
        // A reset waits for no host.
        if harm == Harm::Silence {
            host.client.served = Some(served);
            host.disable();
            host.enable();
            host.work(1, 1_800, 4, 8, Pointer::Prp);
        }
        drop(host);
        good.work(1, 2_700, 8, 8, Pointer::Prp);
        Host::start(&server.path(0)).work(2, 60_000, 8, 8, Pointer::Sgl);
    }
    let figures = server.stop();
    assert_eq!((figures.clients, figures.outstanding), (0, 0));
}
