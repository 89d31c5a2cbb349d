//! Single turns, on the test's own thread: the input of one turn, and that no client starves the others.

use std::cell::RefCell;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use nandscape_drive::testing::{FakeDrive, INFO, Servers, Service};
use nandscape_drive::{Drive, DriveInfo, HostMem, Io};
use nandscape_sim::Sim;
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

use super::*;
use crate::client::Intake;
use crate::export::{Connect, Export};

mod apart;
mod instant;
mod line;

/// A command takes as many nanoseconds as its address.
struct Delays;

impl Service for Delays {
    fn begin(&self, io: &Io) -> Span {
        Span::from_ns(io.command.slba())
    }
}

struct DelaysExport(Rc<FakeDrive<Delays>>);

impl Connect for DelaysExport {
    fn info(&self) -> DriveInfo {
        self.0.info()
    }

    fn connect(&self) -> Result<Rc<dyn Drive>, Status> {
        Ok(self.0.connect())
    }
}

impl Export for DelaysExport {}

/// A reactor that does not sleep: on a slow machine the time in which it would wait awake is over before a test's steps are.
fn reactor() -> (Reactor, Handle) {
    let executor = Executor::new();
    let sim = executor.sim();
    let drive = FakeDrive::new(&sim, DriveInfo { blocks: 1 << 40, ..INFO }, Servers::Unlimited, Delays);
    let port = Port::new(&sim, vec![Rc::new(DelaysExport(drive))]);
    reactor_of(executor, port)
}

/// The same of a port with one drive.
fn reactor_of(executor: Executor, port: Port) -> (Reactor, Handle) {
    let (timelines, names) = (vec![executor], vec!["only".to_owned()]);
    Reactor::new(Setup { timelines, port, names, poll: PollMode::Busy, log: Box::new(|_| {}) }).unwrap()
}

/// The only timeline of a reactor.
fn sim_of(reactor: &Reactor) -> Sim {
    reactor.timelines.executors().next().expect("it has one").sim()
}

/// Units of work that the tasks of all timelines have noted.
fn work_of(reactor: &Reactor) -> u64 {
    reactor.timelines.executors().map(Executor::work).sum()
}

/// [`Client::receive_arrivals`].
type Receive = dyn FnMut(&mut Intake<'_>) -> Result<bool, Gone>;

/// A client without a socket that submits nothing and takes everything. A test replaces the parts that it needs.
struct Double {
    socket: Option<UnixStream>,
    descriptors: Vec<UnixStream>,
    reads: bool,
    receive: Box<Receive>,
    hung_up: Box<dyn FnMut()>,
    is_deserted: Box<dyn FnMut() -> bool>,
    complete: Box<dyn FnMut(Released)>,
    is_flushed: bool,
}

impl Default for Double {
    fn default() -> Double {
        Double {
            socket: None,
            descriptors: Vec::new(),
            reads: false,
            receive: Box::new(|_| Ok(false)),
            hung_up: Box::new(|| {}),
            is_deserted: Box::new(|| false),
            complete: Box::new(|_| {}),
            is_flushed: true,
        }
    }
}

impl Client for Double {
    fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.socket.as_ref().map(AsFd::as_fd)
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.descriptors.iter().map(AsFd::as_fd).collect()
    }

    fn is_polled(&self) -> bool {
        self.socket.is_none() && self.descriptors.is_empty()
    }

    fn interest(&self) -> Interest {
        Interest { read: self.reads, write: false }
    }

    fn hung_up(&mut self) {
        (self.hung_up)();
    }

    fn is_deserted(&mut self) -> bool {
        (self.is_deserted)()
    }

    fn receive_arrivals(&mut self, intake: &mut Intake<'_>) -> Result<bool, Gone> {
        (self.receive)(intake)
    }

    fn complete(&mut self, released: Released) {
        (self.complete)(released);
    }

    fn flush(&mut self) -> Result<(), Gone> {
        Ok(())
    }

    fn is_flushed(&self) -> bool {
        self.is_flushed
    }
}

/// Connects a client; returns its counter.
fn add(handle: &Handle, make: impl FnOnce(Arc<AtomicUsize>) -> Double + Send + 'static) -> Arc<AtomicUsize> {
    add_to(handle, 0, make)
}

/// The same to one of several drives.
fn add_to(
    handle: &Handle,
    export: u16,
    make: impl FnOnce(Arc<AtomicUsize>) -> Double + Send + 'static,
) -> Arc<AtomicUsize> {
    let count = Arc::new(AtomicUsize::new(0));
    let given = count.clone();
    handle.connect(export, Box::new(move |_, _| Box::new(make(given))));
    count
}

/// Adds one to a count at each look.
fn counts(looks: Arc<AtomicUsize>, outcome: fn() -> Result<bool, Gone>) -> Box<Receive> {
    Box::new(move |_| {
        looks.fetch_add(1, Ordering::Relaxed);
        outcome()
    })
}

/// A client of which the looks are counted; it stays, or leaves at once.
fn connect(handle: &Handle, leaves: bool) -> Arc<AtomicUsize> {
    let outcome: fn() -> Result<bool, Gone> = if leaves { || Err(Gone::quietly()) } else { || Ok(false) };
    add(handle, move |looks| Double { receive: counts(looks, outcome), ..Double::default() })
}

#[test]
fn clients_that_come_and_go_without_end_cost_the_others_a_bounded_part_of_a_turn() {
    let (mut reactor, handle) = reactor();
    let victim = connect(&handle, false);
    assert!(reactor.turn());
    let churn: Vec<_> = (0..1_000).map(|_| connect(&handle, true)).collect();
    let came = || churn.iter().map(|looks| looks.load(Ordering::Relaxed)).sum::<usize>();
    for turn in 1..=1_000 / MESSAGES_A_TURN as usize {
        assert!(reactor.turn(), "there are more: it does not rest");
        assert_eq!(victim.load(Ordering::Relaxed), 1 + turn, "the one before them has its turn each time");
        assert_eq!(came(), turn * MESSAGES_A_TURN as usize);
        assert_eq!(reactor.clients.len(), 1, "who has left is gone before the next ones come");
    }
    reactor.turn();
    assert!(came() == 1_000 && !reactor.turn());
}

/// A hang-up persists: reported repeatedly, it would end every wait.
#[test]
fn a_hang_up_is_reported_once_even_to_a_client_that_reads_nothing() {
    for half in [false, true] {
        let (mut reactor, handle) = reactor();
        let (near, far) = UnixStream::pair().unwrap();
        let reports = add(&handle, |reports| {
            let hung_up = Box::new(move || {
                reports.fetch_add(1, Ordering::Relaxed);
            });
            Double { socket: Some(far), hung_up, ..Double::default() }
        });
        (0..5).for_each(|_| reactor.step().unwrap());
        assert_eq!(reports.load(Ordering::Relaxed), 0);
        near.shutdown(std::net::Shutdown::Write).unwrap();
        let near = half.then_some(near);
        (0..10).for_each(|_| reactor.step().unwrap());
        assert_eq!(reports.load(Ordering::Relaxed), 1);
        assert!(!reactor.has_work(), "nothing keeps it from sleep");
        drop(near);
    }
}

#[test]
fn a_client_that_is_always_busy_does_not_keep_the_loop_from_sockets() {
    use std::io::Write as _;
    let (mut reactor, handle) = reactor();
    // One without a socket, with an arrival at every look.
    add(&handle, |looks| Double { receive: counts(looks, || Ok(true)), ..Double::default() });
    let (mut near, far) = UnixStream::pair().unwrap();
    let looks = add(&handle, |looks| Double {
        socket: Some(far),
        reads: true,
        receive: counts(looks, || Ok(false)),
        ..Double::default()
    });
    (0..5).for_each(|_| reactor.step().unwrap());
    let before = looks.load(Ordering::Relaxed);
    assert_eq!(before, 1, "nothing has come but itself");
    near.write_all(b"x").unwrap();
    (0..3).for_each(|_| reactor.step().unwrap());
    assert!(looks.load(Ordering::Relaxed) > before);
}

#[test]
fn a_client_is_looked_after_when_any_of_its_descriptors_has_something() {
    use std::io::{Read as _, Write as _};
    let (mut reactor, handle) = reactor();
    let pairs = [(); 2].map(|()| UnixStream::pair().unwrap());
    let [mut first, mut second] = pairs.each_ref().map(|(near, _)| near.try_clone().unwrap());
    let descriptors = pairs.map(|(_, far)| {
        far.set_nonblocking(true).unwrap();
        far
    });
    let read = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
    let sockets = descriptors.each_ref().map(|descriptor| descriptor.try_clone().unwrap());
    let counted = read.clone();
    let looks = add(&handle, |looks| {
        let receive = Box::new(move |_: &mut Intake<'_>| {
            looks.fetch_add(1, Ordering::Relaxed);
            for (mut socket, read) in sockets.iter().zip(&*counted) {
                read.fetch_add(socket.read(&mut [0; 16]).unwrap_or(0), Ordering::Relaxed);
            }
            Ok(false)
        });
        Double { descriptors: descriptors.into(), receive, ..Double::default() }
    });
    (0..3).for_each(|_| reactor.step().unwrap());
    let before = looks.load(Ordering::Relaxed);
    (0..3).for_each(|_| reactor.step().unwrap());
    assert_eq!(looks.load(Ordering::Relaxed), before, "nothing has come");
    let read = || [0, 1].map(|number: usize| read[number].load(Ordering::Relaxed));
    second.write_all(b"xyz").unwrap();
    (0..3).for_each(|_| reactor.step().unwrap());
    assert_eq!(read(), [0, 3]);
    first.write_all(b"x").unwrap();
    (0..3).for_each(|_| reactor.step().unwrap());
    assert_eq!(read(), [1, 3]);
}

/// A task that has something to do every nanosecond: no machine keeps up with it.
fn overload(sim: &Sim) {
    let inner = sim.clone();
    sim.spawn(async move {
        loop {
            inner.sleep(Span::from_ns(1)).await;
        }
    });
}

#[test]
fn a_model_that_cannot_keep_up_lets_the_others_have_their_turn() {
    let (mut reactor, handle) = reactor();
    overload(&sim_of(&reactor));
    let client = connect(&handle, false);
    let mut last = Time::ZERO;
    for turn in 1..=20 {
        // So far behind that it cannot catch up in a turn.
        while reactor.clock.now().since(last) < MODEL_A_TURN * 4 {}
        let clock = reactor.clock.now();
        reactor.turn();
        assert!(reactor.turn < clock, "turn {turn} ended at {:?}, with the clock at {clock:?}", reactor.turn);
        assert!(reactor.turn > last && reactor.turn == reactor.timelines.now());
        assert!(reactor.timelines.next_due().is_some_and(|due| due > reactor.turn), "the events of its time have run");
        assert_eq!(client.load(Ordering::Relaxed), turn);
        last = reactor.turn;
    }
    assert!(reactor.timing.behind_max >= MODEL_A_TURN, "and it is told: {:?}", reactor.timing.behind_max);
}

/// A task that notes the work of a part of a long command each microsecond, and has little to do.
fn parts(sim: &Sim) {
    let inner = sim.clone();
    sim.spawn(async move {
        loop {
            inner.sleep(Span::from_us(1)).await;
            inner.note_work(WORK_A_TURN);
        }
    });
}

#[test]
fn a_turn_ends_after_a_part_of_a_long_command_however_fast_the_machine_is() {
    let (mut reactor, handle) = reactor();
    parts(&sim_of(&reactor));
    let client = connect(&handle, false);
    reactor.clock.stop_at(Time::ZERO + Span::from_ms(1));
    for turn in 1..=100 {
        reactor.turn();
        assert_eq!(work_of(&reactor), turn * WORK_A_TURN, "turn {turn}");
        assert_eq!(client.load(Ordering::Relaxed) as u64, turn, "others have their turn");
    }
    assert_eq!(reactor.timing.work_max, WORK_A_TURN);
}

/// It need not have many events to be late with: one is enough.
#[test]
fn an_event_that_is_run_late_counts_as_behind() {
    let (mut reactor, _handle) = reactor();
    let sim = sim_of(&reactor);
    sim.clone().spawn(async move { sim.sleep(Span::from_ns(1)).await });
    reactor.clock.stop_at(Time::ZERO + Span::from_ms(3));
    reactor.turn();
    assert!(reactor.timing.behind_max >= Span::from_ms(2), "{:?}", reactor.timing.behind_max);
}

/// A client that sends commands once, each of which takes `takes`, and counts those that succeed. A `deaf` client
/// never has all of its replies.
fn sends(handle: &Handle, mut commands: u64, takes: Span, deaf: bool) -> Arc<AtomicUsize> {
    let receive = move |intake: &mut Intake<'_>| {
        for tag in 0..std::mem::take(&mut commands) {
            intake.submit(tag, SubmissionEntry::blocks(IoOpcode::READ, 1, takes.ns(), 1), HostMem::none());
        }
        Ok(false)
    };
    add(handle, move |answered| {
        let complete = Box::new(move |released: Released| {
            answered.fetch_add(released.completion.status.is_success().into(), Ordering::Relaxed);
        });
        Double { receive: Box::new(receive), complete, is_flushed: !deaf, ..Double::default() }
    })
}

/// The time is not waited for: the clock is put forward.
#[test]
fn the_end_waits_for_the_drive_as_long_as_it_takes_and_then_a_while_for_clients() {
    let (mut reactor, handle) = reactor();
    let told = Rc::new(RefCell::new(Vec::new()));
    let tells = told.clone();
    reactor.log = Box::new(move |line| tells.borrow_mut().push(line.to_owned()));
    let answered = sends(&handle, 3, DRAIN_TIME * 4, true);
    reactor.turn();
    handle.stop();
    for _ in 0..3 {
        reactor.turn();
        assert!(!reactor.is_finished(), "the drive is at work");
        assert_eq!((reactor.port.outstanding(), answered.load(Ordering::Relaxed)), (3, 0));
        reactor.clock.put_forward(DRAIN_TIME + Span::from_ms(1));
    }
    reactor.clock.put_forward(DRAIN_TIME);
    assert!(!reactor.is_finished());
    reactor.turn();
    assert_eq!((reactor.port.outstanding(), answered.load(Ordering::Relaxed)), (0, 3), "everything was done");
    assert!(!reactor.is_finished() && told.borrow().is_empty(), "the client may still take its replies");
    reactor.clock.put_forward(DRAIN_TIME + Span::from_ms(1));
    assert!(reactor.is_finished());
    assert_eq!(*told.borrow(), ["client 0: did not take its last replies within 5 s"]);
}

/// A turn, and a poll of the sockets without waiting.
fn awake(reactor: &mut Reactor) {
    reactor.turn();
    reactor.waiter.wait(Wait::None, &mut reactor.events).unwrap();
}

/// Its commands would take a day.
#[test]
fn the_end_does_not_wait_for_a_client_that_has_hung_up() {
    for stopped_first in [false, true] {
        let (mut reactor, handle) = reactor();
        let (near, far) = UnixStream::pair().unwrap();
        add(&handle, move |_| {
            let (noted, mut commands) = (Arc::new(AtomicUsize::new(0)), 3);
            let deserted = noted.clone();
            let receive = move |intake: &mut Intake<'_>| {
                for tag in 0..std::mem::take(&mut commands) {
                    let takes = Span::from_s(86_400).ns();
                    intake.submit(tag, SubmissionEntry::blocks(IoOpcode::READ, 1, takes, 1), HostMem::none());
                }
                Ok(false)
            };
            Double {
                socket: Some(far),
                receive: Box::new(receive),
                hung_up: Box::new(move || noted.store(1, Ordering::Relaxed)),
                is_deserted: Box::new(move || deserted.load(Ordering::Relaxed) > 0),
                ..Double::default()
            }
        });
        (0..3).for_each(|_| awake(&mut reactor));
        assert_eq!(reactor.port.outstanding(), 3);
        let mut near = Some(near);
        if !stopped_first {
            near = None;
            (0..3).for_each(|_| awake(&mut reactor));
        }
        handle.stop();
        (0..3).for_each(|_| awake(&mut reactor));
        assert_eq!(reactor.clients.len(), usize::from(stopped_first));
        drop(near);
        (0..3).for_each(|_| awake(&mut reactor));
        assert_eq!(reactor.clients.len(), 0);
    }
}

#[test]
fn a_drive_that_stops_with_work_left_does_not_make_the_end_wait_for_ever() {
    let (mut reactor, handle) = reactor();
    sends(&handle, 1, Span::from_ms(1), false);
    reactor.turn();
    reactor.turn();
    handle.stop();
    // A power cut also ends the task that would have completed the command.
    reactor.timelines = Timelines::new(vec![Executor::new()]);
    let error = reactor.run().err().expect("it tells of it").to_string();
    assert!(error.contains("commands are left"), "{error}");
}

/// Copies are distinguished by their address.
#[test]
fn all_who_ask_for_figures_during_a_turn_share_one_copy() {
    let (mut reactor, handle) = reactor();
    reactor.clock.stop_at(Time::ZERO + Span::from_s(1));
    let ask = |not_before| {
        let (reply, answer) = std::sync::mpsc::channel();
        handle.ask(not_before, reply);
        answer
    };
    let told = |reactor: &mut Reactor, ages: &[Span]| {
        let now = reactor.clock.now();
        let answers: Vec<_> =
            ages.iter().map(|age| ask(Time::ZERO + now.since(Time::ZERO).saturating_sub(*age))).collect();
        reactor.turn();
        let mut told: Vec<Arc<Figures>> = answers.iter().map(|answer| answer.try_recv().unwrap()).collect();
        assert!(told.iter().all(|one| Arc::ptr_eq(one, &told[0])), "one copy for all of them");
        told.remove(0)
    };
    let first = told(&mut reactor, &[Span::ZERO; 10]);
    let recent = told(&mut reactor, &[crate::handle::RECENT; 10]);
    assert!(Arc::ptr_eq(&first, &recent), "recent enough");
    reactor.clock.put_forward(Span::from_ns(1));
    let fresh = told(&mut reactor, &[crate::handle::RECENT, Span::ZERO]);
    assert!(!Arc::ptr_eq(&first, &fresh) && fresh.timing.turns > first.timing.turns);
    reactor.clock.put_forward(crate::handle::RECENT + Span::from_ns(1));
    let later = told(&mut reactor, &[crate::handle::RECENT]);
    assert!(!Arc::ptr_eq(&fresh, &later), "no longer recent");
}
