//! One I/O of a thread: system call, block layer, driver, drive, completion, return.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{self, Poll};

use nandscape_drive::io::Sink;
use nandscape_drive::{Completion, DriveInfo, HostMem, Io, Token};
use nandscape_host_machine::{Context, Event, Machine, Mode, ThreadSpec, Times};
use nandscape_sim::executor::TaskId;
use nandscape_sim::slots::{Key, Slots};
use nandscape_sim::{Sim, Span, Time};
use nandscape_wire_nvme::io::Cdw12;
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};

use crate::config::{Config, ConfigError, Costs, PathKind};
use crate::policy::{CompletionPolicy, Notice, Submitted};
use crate::queues::{Port, Queues, Stripe};
use crate::stages::{Stages, stage};
use crate::vector::Vector;

/// The way from the threads of a machine to a drive.
pub struct Path {
    pub(crate) sim: Sim,
    pub(crate) machine: Machine,
    pub(crate) config: Config,
    policy: Box<dyn CompletionPolicy>,
    /// Queue pairs, each of one processor or several, or the ports of a controller.
    pub(crate) ports: Vec<Port>,
    stripe: Option<Stripe>,
    /// The interrupts of the queues; one for all ports of a controller.
    pub(crate) vectors: Vec<Vector>,
    /// The softirqs of the processors.
    pub(crate) softirqs: Vec<Vector>,
    pub(crate) flights: RefCell<Slots<Flight>>,
    /// Interrupts that were raised.
    pub(crate) interrupts: Cell<u64>,
    /// The processor time of the longest handler of an interrupt of the drive.
    pub(crate) longest_handler: Cell<Span>,
    /// The threads that issue requests without a tag (path SCSI), one a processor.
    pub(crate) queue_runs: Vec<Event>,
    /// Wakes the thread that polls for all.
    pub(crate) poller: RefCell<Option<TaskId>>,
    /// The threads that compute all the time.
    load: Vec<Rc<Context>>,
    me: Weak<Path>,
}

/// A command in the drive, or on its way back.
pub(crate) struct Flight {
    notice: Notice,
    /// The queue whose interrupt ends it.
    pub(crate) queue: usize,
    /// Where it is issued; `None` of a command for several ports.
    pub(crate) port: Option<usize>,
    pub(crate) cpu: usize,
    /// The command, until it is issued.
    unsent: Option<(SubmissionEntry, HostMem)>,
    /// When it was issued.
    pub(crate) issued: Option<Time>,
    /// It holds a tag of its port.
    has_tag: bool,
    /// Its thread has left, and the tag is still in use.
    is_left: bool,
    /// The task of the thread, while it polls.
    task: Option<TaskId>,
    /// The drive's answer, and when it came.
    done: Option<(Time, Completion)>,
    /// Stages that have ended since.
    marks: Vec<(&'static str, Time)>,
    /// The thread has been woken.
    pub(crate) is_woken: bool,
    event: Rc<Event>,
}

/// What is under way.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Waiting {
    /// Commands in the drive, and completions that their threads have not taken.
    pub in_flight: usize,
    /// Completions that wait for an interrupt or a softirq.
    pub posted: usize,
}

/// How long the load computes before it looks whether another thread is due. The machine preempts it before that.
const LOAD_STEP: Span = Span::from_ms(1);

impl Path {
    /// The way to a drive with queue pairs, at least one and at most one a processor. The load begins to compute.
    ///
    /// # Errors
    /// That the host is impossible: the key, and what would be valid.
    pub fn new(sim: &Sim, config: Config, queues: impl Into<Queues>) -> Result<Rc<Path>, ConfigError> {
        let policy = config.completion.make(&config);
        Path::with_policy(sim, config, queues, policy)
    }

    /// The same with another policy than that of the settings.
    ///
    /// # Errors
    /// That the host is impossible: the key, and what would be valid.
    pub fn with_policy(
        sim: &Sim,
        config: Config,
        queues: impl Into<Queues>,
        policy: Box<dyn CompletionPolicy>,
    ) -> Result<Rc<Path>, ConfigError> {
        config.check()?;
        let Queues { mut drives, tags, stripe } = queues.into();
        if stripe.is_none() {
            drives.truncate(config.queue_pairs(drives.len()));
        }
        let machine = Machine::new(sim, config.machine.clone()).expect("it has just been checked");
        let thread = |_| Rc::new(machine.thread(ThreadSpec::default()).expect("a thread of any processor"));
        let load: Vec<Rc<Context>> = (0..config.load).map(thread).collect();
        for thread in &load {
            let thread = thread.clone();
            sim.spawn(async move {
                loop {
                    thread.work(LOAD_STEP, Mode::User).await;
                }
            });
        }
        let vectors = |count: usize| (0..count).map(|_| Vector::default()).collect();
        let has_queue_runs = config.path == PathKind::Scsi && tags < usize::MAX;
        let queue_runs = if has_queue_runs { machine.cpus() } else { 0 };
        let path = Rc::new_cyclic(|me| Path {
            sim: sim.clone(),
            vectors: vectors(if stripe.is_some() { 1 } else { drives.len() }),
            softirqs: vectors(machine.cpus()),
            queue_runs: (0..queue_runs).map(|_| Event::new(&machine)).collect(),
            poller: RefCell::default(),
            machine,
            config,
            policy,
            ports: drives.into_iter().map(|drive| Port::new(drive, tags)).collect(),
            stripe,
            flights: RefCell::default(),
            interrupts: Cell::new(0),
            longest_handler: Cell::new(Span::ZERO),
            load,
            me: me.clone(),
        });
        path.begin_threads();
        Ok(path)
    }

    /// The machine.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// The settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Queue pairs, or ports, in use.
    pub fn queues(&self) -> usize {
        self.ports.len()
    }

    /// The processor time of the longest handler of an interrupt of the drive, with entering and leaving it.
    pub fn longest_handler(&self) -> Span {
        self.longest_handler.get()
    }

    /// From now on the longest handler is another one.
    pub fn measure_handlers_anew(&self) {
        self.longest_handler.set(Span::ZERO);
    }

    /// Interrupts that the drive has raised.
    pub fn interrupts(&self) -> u64 {
        self.interrupts.get()
    }

    /// The time that the load has had, by kind.
    pub fn load_times(&self) -> Vec<Times> {
        self.load.iter().map(|thread| thread.times()).collect()
    }

    /// What is under way now.
    pub fn waiting(&self) -> Waiting {
        let posted = self.vectors.iter().chain(&self.softirqs).map(Vector::waiting).sum();
        Waiting { in_flight: self.flights.borrow().len(), posted }
    }

    /// The drive, as its first queue pair shows it, or all drives of a controller as one.
    pub fn info(&self) -> DriveInfo {
        self.stripe.as_ref().map_or_else(|| self.ports[0].drive.info(), |stripe| stripe.whole.info())
    }

    /// One I/O of a thread, which requested it at `arrived` and waits for the end. The command comes with the bytes of a logical
    /// block of its namespace. The completion has the host's stages as a layer of its breakdown.
    pub async fn io(
        &self,
        thread: &Context,
        arrived: Time,
        (command, lba_bytes): (SubmissionEntry, u32),
        mem: HostMem,
    ) -> Completion {
        let Costs { syscall, mut submit, midlayer, driver, copy, user, .. } = self.config.costs;
        let mut stages = Stages::begin(&self.sim, thread, arrived);
        let enter = Span::from_ns(syscall.ns() / 2);
        let bytes = bytes_of(&command, lba_bytes);
        let copy = Span::from_ns((u128::from(copy.ns()) * u128::from(bytes) / 4_096) as u64);
        let is_to_drive = is_to_drive(IoOpcode(command.opcode));
        if self.config.path == PathKind::Scsi {
            submit += half(midlayer);
        }
        self.work(thread, (user, Mode::User), stage::THREAD, &mut stages).await;
        self.work(thread, (enter, Mode::Kernel), stage::SYSCALL, &mut stages).await;
        if is_to_drive {
            self.work(thread, (copy, Mode::Kernel), stage::COPY, &mut stages).await;
        }
        self.work(thread, (submit, Mode::Kernel), stage::SUBMIT, &mut stages).await;
        let command_of = || Submitted { at: self.sim.now(), opcode: command.opcode, bytes };
        let (flight, mut completion);
        if let Some(strategy) = self.config.path.strategy() {
            flight = self.begin(thread.cpu(), &command_of(), command, mem);
            completion = flight.by_strategy(thread, strategy, &mut stages).await;
        } else {
            self.work(thread, (driver, Mode::Kernel), stage::DRIVER, &mut stages).await;
            flight = self.begin(thread.cpu(), &command_of(), command, mem);
            flight.send_or_wait();
            completion = match flight.notice {
                Notice::Interrupt => flight.interrupted(thread, &mut stages).await,
                Notice::Poll(sleep) => flight.polled(thread, sleep, &mut stages).await,
            };
        }
        drop(flight);
        if !is_to_drive {
            self.work(thread, (copy, Mode::Kernel), stage::COPY, &mut stages).await;
        }
        self.work(thread, (syscall - enter, Mode::Kernel), stage::SYSCALL, &mut stages).await;
        stages.charge(&mut completion.breakdown);
        completion
    }

    /// A stage of work, unless it takes no time.
    pub(crate) async fn work(
        &self,
        thread: &Context,
        (span, mode): (Span, Mode),
        stage: &'static str,
        stages: &mut Stages<'_>,
    ) {
        if !span.is_zero() {
            thread.work(span, mode).await;
            stages.end(stage);
        }
    }

    /// A command that is to be issued.
    fn begin(&self, cpu: usize, of: &Submitted, mut command: SubmissionEntry, mem: HostMem) -> InFlight<'_> {
        let notice = self.policy.notice(of);
        let port = match &self.stripe {
            Some(stripe) => stripe.port_of(&mut command, self.ports.len(), self.ports[0].drive.info()),
            None => Some(cpu % self.ports.len()),
        };
        let queue = if self.stripe.is_some() { 0 } else { cpu % self.ports.len() };
        let event = Rc::new(Event::new(&self.machine));
        let flight = Flight {
            notice,
            queue,
            port,
            cpu,
            unsent: Some((command, mem)),
            issued: None,
            has_tag: false,
            is_left: false,
            task: None,
            done: None,
            marks: Vec::new(),
            is_woken: false,
            event: event.clone(),
        };
        let key = self.flights.borrow_mut().insert(flight);
        InFlight { path: self, key, notice, event, of: *of }
    }

    /// Issues a command, with a tag that was taken for it, or none. Returns whether it was still there.
    pub(crate) fn send(&self, key: Key, has_tag: bool) -> bool {
        let mut flights = self.flights.borrow_mut();
        let unsent = flights.get_mut(key).and_then(|flight| {
            let unsent = flight.unsent.take()?;
            (flight.issued, flight.has_tag) = (Some(self.sim.now()), has_tag);
            Some((flight.port, unsent))
        });
        drop(flights);
        let Some((port, (command, mem))) = unsent else { return false };
        let drive = match (port, &self.stripe) {
            (Some(port), _) => &self.ports[port].drive,
            (None, Some(stripe)) => &stripe.whole,
            (None, None) => unreachable!("a queue pair takes any command"),
        };
        drive.submit(Io { command, mem, token: Token::new(self.me(), key.to_bits()) });
        true
    }

    /// Whether a command still waits to be issued.
    pub(crate) fn is_unsent(&self, key: Key) -> bool {
        self.flights.borrow().get(key).is_some_and(|flight| flight.unsent.is_some())
    }

    /// Gives the tag of a command back, whose port is returned. If its thread has left, the command ends.
    pub(crate) fn release(&self, key: Key) -> Option<usize> {
        let mut flights = self.flights.borrow_mut();
        let flight = flights.get_mut(key)?;
        let port = flight.port.filter(|_| std::mem::take(&mut flight.has_tag));
        if flight.is_left {
            flights.remove(key);
        }
        port.inspect(|port| self.ports[*port].release_tag())
    }

    pub(crate) fn me(&self) -> Rc<Path> {
        self.me.upgrade().expect("a path at work is alive")
    }

    /// A stage of an I/O after its completion has ended now.
    pub(crate) fn mark(&self, key: Key, stage: &'static str) {
        self.mark_until(key, stage, self.sim.now());
    }

    /// The same at an earlier time. Before the last mark, it is none.
    pub(crate) fn mark_until(&self, key: Key, stage: &'static str, at: Time) {
        let mut flights = self.flights.borrow_mut();
        let Some(flight) = flights.get_mut(key) else { return };
        let Some((done, _)) = &flight.done else { return };
        let last = flight.marks.last().map_or(*done, |(_, at)| *at);
        if at > last {
            flight.marks.push((stage, at));
        }
    }

    /// The processor that submitted an I/O, if the I/O still exists.
    pub(crate) fn submitted_on(&self, key: Key) -> Option<usize> {
        self.flights.borrow().get(key).map(|flight| flight.cpu)
    }

    /// Wakes the thread of an I/O.
    pub(crate) fn wake(&self, context: &Context, key: Key) {
        let mut flights = self.flights.borrow_mut();
        let Some(flight) = flights.get_mut(key) else { return };
        flight.is_woken = true;
        let event = flight.event.clone();
        drop(flights);
        event.notify_from(context);
    }
}

/// Whether a command takes data to the drive.
fn is_to_drive(opcode: IoOpcode) -> bool {
    matches!(opcode, IoOpcode::WRITE | IoOpcode::COMPARE | IoOpcode::ZONE_APPEND)
}

/// Bytes of data of a command, whose namespace has logical blocks of this size.
fn bytes_of(command: &SubmissionEntry, lba_bytes: u32) -> u64 {
    let opcode = IoOpcode(command.opcode);
    match is_to_drive(opcode) || opcode == IoOpcode::READ {
        true => (u64::from(Cdw12::of(command).nlb_z()) + 1) * u64::from(lba_bytes),
        false => 0,
    }
}

impl Sink for Path {
    fn complete(&self, tag: u64, completion: Completion) {
        let key = Key::from_bits(tag);
        let mut flights = self.flights.borrow_mut();
        let Some(flight) = flights.get_mut(key) else { return };
        flight.done = Some((self.sim.now(), completion));
        let (notice, queue, task, is_left) = (flight.notice, flight.queue, flight.task, flight.is_left);
        drop(flights);
        match (notice, task) {
            _ if self.config.path.strategy().is_some() => self.posted_event(queue, key),
            (Notice::Interrupt, _) => self.posted(queue, key),
            _ if is_left => self.run_queue(self.release(key), None),
            (Notice::Poll(_), Some(task)) => self.sim.wake(task),
            (Notice::Poll(_), None) => {}
        }
    }

    fn is_stopped(&self) -> bool {
        self.sim.is_stopped()
    }
}

/// Half of a cost.
pub(crate) fn half(cost: Span) -> Span {
    Span::from_ns(cost.ns() / 2)
}

/// A command in the drive. Dropped, its completion has no effect.
pub(crate) struct InFlight<'a> {
    pub(crate) path: &'a Path,
    pub(crate) key: Key,
    notice: Notice,
    pub(crate) event: Rc<Event>,
    of: Submitted,
}

impl InFlight<'_> {
    /// Issues it, or has it wait for a tag.
    fn send_or_wait(&self) {
        let InFlight { path, key, .. } = *self;
        let port = path.flights.borrow().get(key).and_then(|flight| flight.port);
        match port.map(|port| &path.ports[port]) {
            Some(port) if port.has_requests() || !port.take_tag() => port.enqueue(key),
            port => _ = path.send(key, port.is_some()),
        }
    }

    /// Gives the processor away until an interrupt has woken the thread.
    async fn interrupted(&self, thread: &Context, stages: &mut Stages<'_>) -> Completion {
        let is_woken = || self.path.flights.borrow().get(self.key).is_some_and(|flight| flight.is_woken);
        while !is_woken() {
            self.event.wait(thread).await;
        }
        let Taken { issued, done, marks, completion } = self.take();
        stages.queued(issued);
        stages.in_drive(done);
        marks.into_iter().for_each(|(stage, at)| stages.pass(stage, at));
        // What the thread has done since it submitted is to get its processor again.
        stages.end(stage::WAKEUP);
        completion
    }

    /// Sleeps for a time, then polls.
    async fn polled(&self, thread: &Context, sleep: Span, stages: &mut Stages<'_>) -> Completion {
        let Path { sim, config, .. } = self.path;
        let wakes_at = sim.now() + sleep;
        let mut overslept = false;
        if !sleep.is_zero() {
            thread.sleep(sleep).await;
            overslept = self.is_done();
        }
        thread.spin_until(Done(self)).await;
        let Taken { issued, done, completion, .. } = self.take();
        stages.queued(issued);
        stages.in_drive(done);
        if overslept {
            if wakes_at > done {
                stages.pass(stage::OVERSLEEP, wakes_at);
            }
            stages.resumed();
        } else {
            stages.pass(stage::RUN_DELAY, sim.now());
            stages.mark_thread();
        }
        let Costs { poll, handler, complete, .. } = config.costs;
        self.path.work(thread, (poll, Mode::Kernel), stage::POLL, stages).await;
        self.path.work(thread, (handler + complete, Mode::Kernel), stage::COMPLETE, stages).await;
        completion
    }

    fn is_done(&self) -> bool {
        self.path.flights.borrow().get(self.key).is_some_and(|flight| flight.done.is_some())
    }

    /// Takes the answer; the policy sees how long the drive took.
    pub(crate) fn take(&self) -> Taken {
        self.path.run_queue(self.path.release(self.key), None);
        let mut flights = self.path.flights.borrow_mut();
        let flight = flights.remove(self.key).expect("an I/O is taken once");
        let (done, completion) = flight.done.expect("it has completed");
        let issued = flight.issued.expect("it was issued");
        self.path.policy.completed(&self.of, done - issued);
        Taken { issued, done, marks: flight.marks, completion }
    }
}

/// An answer of the drive.
pub(crate) struct Taken {
    pub(crate) issued: Time,
    pub(crate) done: Time,
    /// Stages that have ended since.
    pub(crate) marks: Vec<(&'static str, Time)>,
    pub(crate) completion: Completion,
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        let mut flights = self.path.flights.borrow_mut();
        let Some(flight) = flights.get_mut(self.key) else { return };
        if !flight.has_tag {
            flights.remove(self.key);
            return;
        }
        // The tag is in use until the drive has answered, and a context has taken the answer.
        flight.is_left = true;
        let is_mine = self.path.config.path.strategy().is_none() && matches!(flight.notice, Notice::Poll(_));
        let is_over = is_mine && flight.done.is_some();
        drop(flights);
        if is_over {
            self.path.run_queue(self.path.release(self.key), None);
        }
    }
}

/// Ready when the drive has completed the command.
struct Done<'a>(&'a InFlight<'a>);

impl Future for Done<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut task::Context<'_>) -> Poll<()> {
        let InFlight { path, key, .. } = self.0;
        match path.flights.borrow_mut().get_mut(*key) {
            Some(flight) if flight.done.is_none() => {
                flight.task = Some(path.sim.current_task());
                Poll::Pending
            }
            _ => Poll::Ready(()),
        }
    }
}
