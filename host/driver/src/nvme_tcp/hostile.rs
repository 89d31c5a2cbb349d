//! Targets that break rules: each violation ends the connection.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use nandscape_drive::HostMem;
use nandscape_sim::Time;
use nandscape_wire_nvme::tcp::{Data, Digests, Initialize, PduType};
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};
use zerocopy::IntoBytes;

use super::establish::{Link, establish};
use super::queue::{Queue, Request};
use super::target::Target;

/// A test that waits longer than this has failed.
const HANGS: Duration = Duration::from_secs(60);

/// A PDU of the target: its header, which announces `len` bytes of data from `offset` on, and data.
fn pdu(kind: PduType, cid: u16, offset: u32, len: u32, data: &[u8]) -> Vec<u8> {
    let common = Digests::default().common(kind, 0, size_of::<Data>(), data.len(), 4);
    let (tag, reserved_20) = (1.into(), [0; 4]);
    let header = Data { common, cid: cid.into(), tag, offset: offset.into(), len: len.into(), reserved_20 };
    [header.as_bytes(), data].concat()
}

/// The error of a queue with one command of 8 KiB when a target sends these PDUs.
fn queue_told(opcode: IoOpcode, sent: &[Vec<u8>]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    stream.set_read_timeout(Some(HANGS)).unwrap();
    let (mut target, _) = listener.accept().unwrap();
    let link = Link { stream, digests: Digests::default(), align: 4, max_data: 8_192, in_capsule: 4_096, depth: 1 };
    let mut queue = Queue::new(link, Time::ZERO);
    let len = 8_192;
    queue.send(Request::new(SubmissionEntry::blocks(opcode, 1, 0, 16), HostMem::from_bytes(&[0; 8_192]), None, len));
    // All at once: the target does not wait for the data that it requests.
    target.write_all(&sent.concat()).unwrap();
    drop(target);
    let mut done = Vec::new();
    loop {
        match queue.receive(&mut done, Time::ZERO) {
            Ok(_) => {}
            Err(problem) => return problem,
        }
    }
}

#[test]
fn a_command_has_one_request_for_data_at_a_time() {
    let ask = |offset, len| pdu(PduType::R2T, 0, offset, len, &[]);
    let closed = "the target has closed the connection";
    assert_eq!(queue_told(IoOpcode::WRITE, &[ask(0, 8_192)]), closed);
    assert!(queue_told(IoOpcode::WRITE, &[ask(0, 4_096), ask(4_096, 4_096)]).contains("before it has what"));
    assert!(queue_told(IoOpcode::WRITE, &[ask(0, 4_096), ask(0, 8_192)]).contains("twice"));
    assert!(queue_told(IoOpcode::WRITE, &[ask(4_096, 8_192)]).contains("does not have"));
    assert!(queue_told(IoOpcode::READ, &[ask(0, 512)]).contains("does not have"));
}

#[test]
fn a_read_gets_no_more_than_its_length() {
    let data = |offset, len: usize| pdu(PduType::C2H_DATA, 0, offset, len as u32, &vec![1; len]);
    assert!(queue_told(IoOpcode::READ, &[data(0, 8_196)]).contains("not asked for"));
    assert!(queue_told(IoOpcode::READ, &[data(0, 4_096), data(4_096, 8_192)]).contains("not asked for"));
}

/// A target that answers Connect with data without end.
#[test]
fn connecting_takes_no_data_that_was_not_asked_for() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = Target::new(listener.local_addr().unwrap().to_string(), "nqn.x");
    let thread = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(HANGS)).unwrap();
        stream.read_exact(&mut [0; 128]).unwrap();
        stream.write_all(Initialize::new(PduType::IC_RESP, 8_192).as_bytes()).unwrap();
        let mut connect = vec![0; 72 + 1_024];
        stream.read_exact(&mut connect).unwrap();
        let mut sent = 0;
        while stream.write_all(&pdu(PduType::C2H_DATA, 0, sent, 4_096, &[0; 4_096])).is_ok() {
            sent += 4_096;
            assert!(sent < 1 << 30, "it takes everything");
        }
    });
    let problem = establish(&target).err().expect("it is no drive").to_string();
    assert_eq!(problem, "the target sends data that was not asked for");
    thread.join().unwrap();
}
