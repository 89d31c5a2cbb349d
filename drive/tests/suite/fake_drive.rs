//! The fake drive itself: it serves in order or concurrently, and a client disconnects as from the real drive.

use std::cell::RefCell;
use std::rc::Rc;

use nandscape_drive::io::Sink;
use nandscape_drive::testing::{FakeDrive, INFO, Servers, Service};
use nandscape_drive::{Completion, Drive, HostMem, Io, Token};
use nandscape_sim::{Executor, Sim, Span, Time};
use nandscape_wire_nvme::{Status, SubmissionEntry};

/// When which command ended how, by its tag.
struct Ended {
    sim: Sim,
    ended: RefCell<Vec<(u64, u64, Status)>>,
}

impl Sink for Ended {
    fn complete(&self, tag: u64, completion: Completion) {
        self.ended.borrow_mut().push((self.sim.now().ns(), tag, completion.status));
    }

    fn is_stopped(&self) -> bool {
        self.sim.is_stopped()
    }
}

/// Takes 10 ns, and records its commands.
#[derive(Default)]
struct Noting(RefCell<Vec<u64>>);

impl Service for Noting {
    fn begin(&self, _: &Io) -> Span {
        Span::from_ns(10)
    }

    fn end(&self, io: &Io, begun: Time) -> Status {
        self.0.borrow_mut().push(begun.ns());
        if io.command.opcode == 0xff { Status::INVALID_OPCODE } else { Status::SUCCESS }
    }
}

fn io(ended: &Rc<Ended>, tag: u64) -> Io {
    Io { command: SubmissionEntry::default(), mem: HostMem::none(), token: Token::new(ended.clone(), tag) }
}

/// Two clients with two commands each; the first leaves at 5 ns. Returns when and how each ended, and when the served
/// ones began.
fn with_a_leaver(servers: Servers) -> (Vec<(u64, u64, Status)>, Vec<u64>) {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let drive = FakeDrive::new(&sim, INFO, servers, Noting::default());
    let ended = Rc::new(Ended { sim: sim.clone(), ended: RefCell::default() });
    let run = async {
        let (leaver, other) = (drive.connect(), drive.connect());
        for (client, tag) in [(&leaver, 1), (&leaver, 2), (&other, 3), (&other, 4)] {
            client.submit(io(&ended, tag));
        }
        sim.sleep(Span::from_ns(5)).await;
        assert_eq!(drive.connections(), 2);
        drop(leaver);
        assert_eq!(drive.connections(), 1);
        sim.sleep(Span::from_ns(100)).await;
    };
    executor.block_on(run).unwrap();
    (ended.ended.take(), drive.service().0.take())
}

#[test]
fn of_a_client_that_leaves_what_waits_is_not_done_and_what_is_served_ends() {
    let (ended, served) = with_a_leaver(Servers::One);
    let (gone, done) = (Status::ABORTED_SQ_DELETION, Status::SUCCESS);
    assert_eq!(ended, [(5, 2, gone), (10, 1, gone), (20, 3, done), (30, 4, done)]);
    assert_eq!(served, [0, 10, 20]);
}

#[test]
fn served_side_by_side_all_finish() {
    let (ended, served) = with_a_leaver(Servers::Unlimited);
    let (gone, done) = (Status::ABORTED_SQ_DELETION, Status::SUCCESS);
    assert_eq!(ended, [(10, 1, gone), (10, 2, gone), (10, 3, done), (10, 4, done)]);
    assert_eq!(served, [0; 4]);
}
