//! Requests for connections without a free queue pair: granted in order as pairs are released, and refused if none
//! can be.

use std::cell::Cell;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use super::*;
use crate::export::{Connect, Export, Pairs};
use crate::handle::{Refused, Reservation};

/// A drive with three pairs, which the test releases.
struct Few {
    drive: Rc<FakeDrive<Delays>>,
    free: Rc<Cell<usize>>,
}

const PAIRS: usize = 3;

impl Connect for Few {
    fn info(&self) -> DriveInfo {
        self.drive.info()
    }

    fn connect(&self) -> Result<Rc<dyn Drive>, Status> {
        self.free.set(self.free.get().checked_sub(1).ok_or(Status::INVALID_QUEUE_ID)?);
        Ok(self.drive.connect())
    }

    fn pairs(&self) -> Option<Pairs> {
        Some(Pairs { free: self.free.get(), all: PAIRS })
    }
}

impl Export for Few {}

type Answer = Receiver<Result<Reservation, Refused>>;

/// A reactor with such a drive, all of whose pairs are free. It never sleeps, so that a step always returns.
fn few() -> (Reactor, Handle, Rc<Cell<usize>>) {
    let executor = Executor::new();
    let sim = executor.sim();
    let drive = FakeDrive::new(&sim, INFO, Servers::Unlimited, Delays);
    let free = Rc::new(Cell::new(PAIRS));
    let port = Port::new(&sim, vec![Rc::new(Few { drive, free: free.clone() })]);
    let names = vec!["only".to_owned()];
    let setup = Setup { timelines: vec![executor], port, names, poll: PollMode::Busy, log: Box::new(|_| {}) };
    let (reactor, handle) = Reactor::new(setup).unwrap();
    (reactor, handle, free)
}

fn ask(reactor: &mut Reactor, handle: &Handle) -> Answer {
    let (reply, answer) = channel();
    handle.send(Message::Reserve { export: 0, nsid: None, reply });
    // The request is read; then the sockets are polled; then it is decided.
    (0..4).for_each(|_| reactor.step().unwrap());
    answer
}

fn granted(answer: &Answer) -> Reservation {
    answer.try_recv().expect("an answer").unwrap_or_else(|refused| panic!("{refused}"))
}

fn refused(answer: &Answer) -> Refused {
    answer.try_recv().expect("an answer").err().expect("a refusal")
}

/// A namespace may be formatted with metadata while no client is connected.
#[test]
fn clients_of_single_commands_are_refused_where_blocks_have_metadata() {
    let executor = Executor::new();
    let sim = executor.sim();
    let drive = FakeDrive::new(&sim, DriveInfo { metadata_bytes: 8, ..INFO }, Servers::Unlimited, Delays);
    let port = Port::new(&sim, vec![Rc::new(Few { drive, free: Rc::new(Cell::new(PAIRS)) })]);
    let names = vec!["only".to_owned()];
    let setup = Setup { timelines: vec![executor], port, names, poll: PollMode::Busy, log: Box::new(|_| {}) };
    let (mut reactor, handle) = Reactor::new(setup).unwrap();
    let refused = refused(&ask(&mut reactor, &handle));
    assert_eq!(refused, Refused::Metadata(8));
    assert!(refused.to_string().contains("8 bytes of metadata"), "{refused}");
}

#[test]
fn requests_wait_for_pairs_whose_clients_have_left() {
    let (mut reactor, handle, free) = few();
    let mut held: Vec<Reservation> = (0..PAIRS).map(|_| granted(&ask(&mut reactor, &handle))).collect();
    assert_eq!(refused(&ask(&mut reactor, &handle)), Refused::Taken { pairs: PAIRS });
    // Two leave; their commands have not ended.
    held.truncate(1);
    let [first, second, third] = [(); 3].map(|()| ask(&mut reactor, &handle));
    assert_eq!(refused(&third), Refused::Taken { pairs: PAIRS }, "both are promised");
    assert!(first.try_recv().is_err() && second.try_recv().is_err() && !reactor.has_work(), "it may sleep");
    free.set(1);
    reactor.turn();
    held.push(granted(&first));
    assert!(second.try_recv().is_err());
    free.set(1);
    reactor.turn();
    held.push(granted(&second));
    assert_eq!(reactor.port.drives(0), PAIRS);
}

/// Its promised queue pair is given to the next request.
#[test]
fn a_request_that_is_given_up_keeps_no_pair() {
    let (mut reactor, handle, free) = few();
    let held: Vec<Reservation> = (0..PAIRS).map(|_| granted(&ask(&mut reactor, &handle))).collect();
    drop(held);
    drop(ask(&mut reactor, &handle));
    free.set(1);
    (0..3).for_each(|_| reactor.step().unwrap());
    assert_eq!((reactor.port.drives(0), reactor.reserved.len()), (0, 0), "closed again");
    assert_eq!(handle.reserve(0, Duration::ZERO).err(), Some(Refused::Late(Duration::ZERO)));
}

#[test]
fn requests_that_wait_at_the_end_are_refused() {
    let (mut reactor, handle, free) = few();
    drop((0..PAIRS).map(|_| granted(&ask(&mut reactor, &handle))).collect::<Vec<_>>());
    let waits = ask(&mut reactor, &handle);
    assert!(waits.try_recv().is_err());
    handle.stop();
    reactor.turn();
    assert_eq!(refused(&waits), Refused::Ending);
    free.set(PAIRS);
    assert_eq!(refused(&ask(&mut reactor, &handle)), Refused::Ending);
}
