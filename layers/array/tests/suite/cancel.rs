//! Cancelled commands to an array: a read that waits in a member ends there; all others continue.

use std::cell::RefCell;
use std::rc::Rc;

use nandscape_drive::testing::INFO;
use nandscape_drive::{CommandRef, Completion, Drive, DriveInfo, HostMem, Io, Issuer};
use nandscape_layers_array::{Array, Member};
use nandscape_sim::{Executor, Sim, Span};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

use crate::rig::{config, shape};

/// A member in whose queue commands wait for a millisecond, and can be cancelled until then.
struct Slow {
    sim: Sim,
    waiting: Rc<RefCell<Vec<Io>>>,
}

impl Drive for Slow {
    fn info(&self) -> DriveInfo {
        INFO
    }

    fn submit(&self, io: Io) {
        self.waiting.borrow_mut().push(io);
        let (sim, waiting) = (self.sim.clone(), self.waiting.clone());
        self.sim.spawn(async move {
            sim.sleep(Span::from_ms(1)).await;
            let first = if waiting.borrow().is_empty() { None } else { Some(waiting.borrow_mut().remove(0)) };
            first.into_iter().for_each(|io| io.token.complete(Completion::of(Status::SUCCESS)));
        });
    }

    fn cancel(&self, command: CommandRef) -> bool {
        let at = self.waiting.borrow().iter().position(|io| io.token.is_of(command));
        let Some(at) = at else { return false };
        let io = self.waiting.borrow_mut().remove(at);
        io.token.complete(Completion::of(Status::ABORT_REQUESTED));
        true
    }
}

#[test]
fn a_read_that_waits_in_a_member_is_cancelled_and_nothing_else() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let slow = || Rc::new(Slow { sim: sim.clone(), waiting: Rc::default() });
    let members = (0..4).map(|_| Member { io: slow(), reads: None, admin: None }).collect();
    let array = Array::new(&sim, shape("raid5:4"), config(&["array.technique=tea2"]), members).unwrap();
    let issuer = Issuer::new(&sim);
    executor
        .block_on(async {
            let one = u32::try_from(array.config().chunk).unwrap() / INFO.lba_bytes;
            let run = |opcode, blocks| {
                issuer.execute(&*array, SubmissionEntry::blocks(opcode, 1, 0, blocks), HostMem::none())
            };
            // Within a chunk, over two chunks, and a write.
            for (opcode, blocks, is_cancelled) in
                [(IoOpcode::READ, one, true), (IoOpcode::READ, 2 * one, false), (IoOpcode::WRITE, one, false)]
            {
                let command = run(opcode, blocks);
                sim.sleep(Span::from_us(10)).await;
                assert_eq!(command.cancel(&*array), is_cancelled);
                assert!(!command.cancel(&*array), "once");
                let status = command.await.status;
                assert_eq!(status, if is_cancelled { Status::ABORT_REQUESTED } else { Status::SUCCESS });
                sim.sleep(Span::from_ms(10)).await;
            }
            // One that has ended.
            let command = run(IoOpcode::READ, one);
            sim.sleep(Span::from_ms(10)).await;
            assert!(!command.cancel(&*array));
            assert_eq!(command.await.status, Status::SUCCESS);
            assert_eq!(array.missing(), [0usize; 0], "no member failed for it");
        })
        .unwrap();
}
