//! A server in the loop of its drive: its commands are in the figures, with their latencies, and allocate nothing.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::mpsc::channel;

use nandscape_drive::testing::INFO;
use nandscape_drive::{CommandRef, Completion, Drive, DriveInfo, HostMem, Io, Issuer};
use nandscape_sim::{Executor, Span};
use nandscape_transport_reactor::{PollMode, Port, Reactor, Setup};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

use crate::null::{Allocations, allocates_nothing, null};
use crate::plain::build;

fn setup(executor: Executor, port: Port) -> Setup {
    let (names, log) = (vec!["only".to_owned()], Box::new(|_: &str| ()));
    Setup { timelines: vec![executor], port, names, poll: PollMode::Adaptive, log }
}

#[test]
fn commands_that_do_not_pass_the_port_are_in_the_figures() {
    let (executor, port) = build();
    let sim = executor.sim();
    let drive = port.counter(0).over(port.exports()[0].connect().unwrap());
    let (reactor, handle) = Reactor::new(setup(executor, port)).unwrap();
    let clock = sim.clone();
    sim.spawn(async move {
        let issuer = Issuer::new(&clock);
        let command =
            |opcode, slba| issuer.execute(&*drive, SubmissionEntry::blocks(opcode, 1, slba, 8), HostMem::none());
        // The address is the service time in microseconds, less 1.
        for (opcode, slba) in [(IoOpcode::READ, 9), (IoOpcode::READ, 29), (IoOpcode::WRITE, 4)] {
            assert_eq!(command(opcode, slba).await.status, Status::SUCCESS);
        }
        handle.stop();
    });
    let (_, figures) = reactor.run().unwrap();
    let [only] = &figures.exports[..] else { panic!("there is one drive") };
    let block = INFO.lba_bytes;
    assert_eq!((only.reads.latency.count(), only.reads.errors, only.reads.bytes), (2, 0, u64::from(16 * block)));
    assert_eq!((only.writes.latency.count(), only.writes.bytes), (1, u64::from(8 * block)));
    assert_eq!((only.reads.latency.sum_ns(), only.writes.latency.max()), (40_000, Span::from_us(5)));
    assert_eq!(figures.timing.release_lag.count(), 1, "only the flush at the end is of a client");
}

/// A drive that completes no command until it is cancelled.
#[derive(Default)]
struct Holding(RefCell<Vec<Io>>);

impl Drive for Holding {
    fn info(&self) -> DriveInfo {
        INFO
    }

    fn submit(&self, io: Io) {
        self.0.borrow_mut().push(io);
    }

    fn cancel(&self, command: CommandRef) -> bool {
        let found = self.0.borrow().iter().position(|io| io.token.is_of(command));
        let found = found.map(|place| self.0.borrow_mut().remove(place));
        let is_found = found.is_some();
        found.into_iter().for_each(|io| io.token.complete(Completion::of(Status::ABORT_REQUESTED)));
        is_found
    }
}

#[test]
fn a_command_that_does_not_pass_the_port_is_cancelled() {
    let (mut executor, port) = build();
    let sim = executor.sim();
    let drive = port.counter(0).over(Rc::new(Holding::default()));
    let ran = executor.block_on(async {
        let issuer = Issuer::new(&sim);
        let read = |slba| issuer.execute(&*drive, SubmissionEntry::blocks(IoOpcode::READ, 1, slba, 1), HostMem::none());
        let [first, second] = [read(1), read(2)];
        assert!(second.cancel(&*drive) && !second.cancel(&*drive));
        assert_eq!(second.await.status, Status::ABORT_REQUESTED);
        assert!(first.cancel(&*drive));
        assert_eq!(first.await.status, Status::ABORT_REQUESTED);
    });
    ran.unwrap();
}

/// Allocations of the loop while a server in it issues so many commands.
fn allocations(commands: u64) -> u64 {
    let (counted, (tell, told)) = (Allocations::default(), channel());
    let counts = counted.clone();
    let thread = std::thread::spawn(move || {
        let executor = Executor::new();
        let sim = executor.sim();
        let port = Port::new(&sim, vec![null(&sim)]);
        let drive = port.counter(0).over(port.exports()[0].connect().unwrap());
        let (reactor, handle) = Reactor::new(setup(executor, port)).unwrap();
        let clock = sim.clone();
        sim.spawn(async move {
            let issuer = Issuer::new(&clock);
            for number in 0..commands {
                let read = SubmissionEntry::blocks(IoOpcode::READ, 1, number % 1_000 * 8, 8);
                assert_eq!(issuer.execute(&*drive, read, HostMem::none()).await.status, Status::SUCCESS);
            }
            handle.stop();
        });
        tell.send(counts.of(reactor).exports[0].reads.latency.count()).unwrap();
    });
    assert_eq!(told.recv().unwrap(), commands);
    thread.join().unwrap();
    counted.count()
}

#[test]
fn commands_that_do_not_pass_the_port_allocate_nothing() {
    allocates_nothing("reads of a server in the loop", (2_000, 24_000), allocations);
}
