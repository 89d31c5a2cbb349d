//! Hosts whose memory is unreachable: their command ends with Data Transfer Error, and members are unaffected.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_drive::mem::Memory;
use nandscape_drive::{HostMem, Issuer};
use nandscape_sim::{Executor, Span};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

use crate::rig::array;

/// Memory that is unmapped after some copies.
struct Vanishing {
    bytes: RefCell<Vec<u8>>,
    copies: Cell<u32>,
    has_failed: Cell<bool>,
}

impl Vanishing {
    fn mem(bytes: Vec<u8>, copies: u32) -> HostMem {
        let (bytes, copies, has_failed) = (RefCell::new(bytes), Cell::new(copies), Cell::new(false));
        HostMem::over(Rc::new(Vanishing { bytes, copies, has_failed }))
    }

    fn is_there(&self) -> bool {
        match self.copies.get() {
            0 => self.has_failed.set(true),
            left => self.copies.set(left - 1),
        }
        !self.has_failed.get()
    }
}

impl Memory for Vanishing {
    fn max_len(&self) -> usize {
        self.bytes.max_len()
    }

    fn read(&self, start: usize, bytes: &mut [u8]) {
        match self.is_there() {
            true => self.bytes.read(start, bytes),
            false => bytes.fill(0),
        }
    }

    fn write(&self, start: usize, bytes: &[u8]) {
        if self.is_there() {
            self.bytes.write(start, bytes);
        }
    }

    fn clear(&self, start: usize, len: usize) {
        if self.is_there() {
            self.bytes.clear(start, len);
        }
    }

    fn cover(&self, bytes: usize) -> Result<(), Status> {
        self.bytes.cover(bytes)
    }

    fn has_failed(&self) -> bool {
        self.has_failed.get()
    }
}

const BLOCKS: u32 = 80;
const BYTES: usize = BLOCKS as usize * 512;

#[test]
fn memory_that_goes_away_fails_the_command_and_no_member() {
    for word in ["raid0:3", "raid1:2", "raid5:4", "raid6:5", "raid10:4"] {
        for (technique, copies) in [("base", 0), ("base", 1), ("base", 3)] {
            let mut executor = Executor::new();
            let sim = executor.sim();
            let (array, _ssds) = array(&sim, word, &[&format!("array.technique={technique}"), "array.chunk=8KiB"], &[]);
            let (issuer, what) = (Issuer::new(&sim), format!("{word}, gone after {copies} copies"));
            executor
                .block_on(async {
                    let run = async |opcode: IoOpcode, slba: u64, mem: HostMem| {
                        let entry = SubmissionEntry::blocks(opcode, 1, slba, BLOCKS);
                        issuer.execute(&*array, entry, mem).await.status.meaning()
                    };
                    let right = HostMem::from_bytes(&[7; BYTES]);
                    assert_eq!(run(IoOpcode::WRITE, 3, right.clone()).await, Status::SUCCESS, "{what}");
                    // Some copies, and the one that fails.
                    let faulty = |byte: u8| Vanishing::mem(vec![byte; BYTES], copies);
                    assert_eq!(run(IoOpcode::READ, 3, faulty(0)).await, Status::DATA_TRANSFER_ERROR, "{what}");
                    let written = run(IoOpcode::WRITE, 300, faulty(9)).await;
                    // With redundancy all data is copied at once.
                    let is_copied_once = word != "raid0:3" && copies > 0;
                    let status = if is_copied_once { Status::SUCCESS } else { Status::DATA_TRANSFER_ERROR };
                    assert_eq!(written, status, "{what}");
                    assert_eq!((array.missing(), array.is_lost()), (vec![], false), "{what}");
                    if copies == 0 {
                        let compared = run(IoOpcode::COMPARE, 3, faulty(7)).await;
                        assert_eq!(compared, Status::DATA_TRANSFER_ERROR, "{what}");
                    }
                    assert_eq!(run(IoOpcode::COMPARE, 3, right).await, Status::SUCCESS, "{what}");
                    sim.sleep(Span::from_ms(10)).await;
                    assert_eq!(array.scrub().await.mismatches, 0, "{what}");
                })
                .unwrap();
        }
    }
}
