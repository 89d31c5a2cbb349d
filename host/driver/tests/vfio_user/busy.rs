//! A fast-fail read from a function's queue: its completion reports how long it would have waited.

use nandscape_host_driver::vfio_user::{Function, QueuePair};
use nandscape_transport_vfio_user::DoorbellMode;
use nandscape_wire_nvme::vendor::{BUSY, FAST_FAIL, Hints, PREDICT_ONLY};
use nandscape_wire_nvme::{CompletionEntry, IoOpcode, Status, SubmissionEntry};

use crate::server::Server;
use crate::{PATIENCE, now};

/// One plane, whose programs take half a second, and writes that end in the buffer.
const SLOW: &[&str] = &[
    "capacity=64MiB",
    "geometry.channels=1",
    "geometry.dies_per_channel=1",
    "geometry.planes_per_die=1",
    "timing.program=500ms",
    "buffer.mode=volatile",
    "controller.queue_pairs=4",
];

fn execute(pair: &mut QueuePair, command: SubmissionEntry) -> CompletionEntry {
    pair.submit(&command).unwrap();
    let begun = now();
    loop {
        if let Some(entry) = pair.reap().unwrap() {
            pair.tell_head().unwrap();
            return entry;
        }
        assert!(now().duration_since(begun) < PATIENCE, "it has not completed");
    }
}

#[test]
fn its_time_to_wait_comes_back() {
    let server = Server::timed("default", SLOW, DoorbellMode::Mapped);
    let mut function = Function::connect(&server.path(), 64 * 4_096).unwrap();
    let data = function.memory().take(4_096).unwrap();
    let mut pair = function.create_pair(4).unwrap();
    let blocks = |opcode, slba| SubmissionEntry { prp1: data.into(), ..SubmissionEntry::blocks(opcode, 1, slba, 8) };
    // The first page is on flash; a second is being programmed.
    assert_eq!(execute(&mut pair, blocks(IoOpcode::WRITE, 0)).status(), Status::SUCCESS);
    assert_eq!(execute(&mut pair, SubmissionEntry::io(IoOpcode::FLUSH, 1)).status(), Status::SUCCESS);
    let read = |attributes: u32| SubmissionEntry { cdw2: attributes.into(), ..blocks(IoOpcode::READ, 0) };
    // Its program begins a moment after the writes have ended, and may be over on a machine that was busy meanwhile.
    let begun = now();
    let rejected = loop {
        for slba in (1_024..1_280).step_by(8) {
            assert_eq!(execute(&mut pair, blocks(IoOpcode::WRITE, slba)).status(), Status::SUCCESS);
        }
        let mut answers = (0..1_000).map(|_| execute(&mut pair, read(FAST_FAIL)));
        if let Some(rejected) = answers.find(|answer| !answer.status().is_success()) {
            break rejected;
        }
        assert!(now().duration_since(begun) < PATIENCE, "no read was rejected");
    };
    let (us, hints) = (rejected.dw0.get(), Hints(rejected.dw1.get()));
    assert_eq!(rejected.status().meaning(), BUSY);
    assert!(hints.busy() && (1..=8 * 510_000).contains(&us), "{us} us of up to eight programs of half a second");
    let predicted = execute(&mut pair, read(FAST_FAIL | PREDICT_ONLY));
    assert_eq!(predicted.status(), Status::SUCCESS);
    let (dw0, hints) = (predicted.dw0.get(), Hints(predicted.dw1.get()));
    assert!(!hints.busy() || dw0 <= us, "it was served, and says for how long it has waited: {dw0} us after {us}");
}
