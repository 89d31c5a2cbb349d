//! One I/O of a thread: system call, block layer, driver, drive, completion, return.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::{Rc, Weak};
use std::task::{self, Poll};

use nandscape_drive::io::Sink;
use nandscape_drive::{Completion, DriveInfo, HostMem, Io, Token};
use nandscape_host_machine::{Context, Event, Machine, Mode, Role, ThreadSpec, Times, Waits};
use nandscape_sim::executor::TaskId;
use nandscape_sim::slots::{Key, Slots};
use nandscape_sim::{Sim, Span, Time};
use nandscape_wire_nvme::io::Cdw12;
use nandscape_wire_nvme::vendor::{Hints, NOTICE};
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};

use crate::config::{Config, ConfigError, Costs, PathKind};
use crate::locks::Locks;
use crate::notices::NoticeFigures;
use crate::policy::{self, CompletionPolicy, Notice, Submitted, Way};
use crate::queues::{Port, Queues, Stripe};
use crate::ring::Ended;
use crate::stages::{Account, Stages, stage};
use crate::vector::Vector;

/// The way from the threads of a machine to a drive.
pub struct Path {
    pub(crate) sim: Sim,
    pub(crate) machine: Machine,
    pub(crate) config: Config,
    pub(crate) policy: Box<dyn CompletionPolicy>,
    /// Queue pairs, each of one processor or several, or the ports of a controller.
    pub(crate) ports: Vec<Port>,
    stripe: Option<Stripe>,
    pub(crate) locks: Option<Locks>,
    /// The interrupts of the completion queues; one for all ports of a controller.
    pub(crate) vectors: Vec<Vector>,
    /// The softirqs of the processors.
    pub(crate) softirqs: Vec<Vector>,
    pub(crate) flights: RefCell<Slots<Flight>>,
    /// I/Os that have not ended, by the processor that submitted.
    under_way: Vec<Cell<usize>>,
    /// The interrupt of notices.
    pub(crate) announced: Vector,
    pub(crate) figures: RefCell<NoticeFigures>,
    pub(crate) window: Cell<Option<Span>>,
    pub(crate) set_window: RefCell<Option<SetWindow>>,
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

/// Gives the drive another window for its notices.
type SetWindow = Box<dyn Fn(Span)>;

/// A command in the drive, or on its way back.
pub(crate) struct Flight {
    pub(crate) notice: Notice,
    /// The completion queue whose interrupt ends it.
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
    /// Whether its completion raises an interrupt.
    pub(crate) is_armed: bool,
    /// The drive's notice, if one came.
    pub(crate) ahead: Option<Ahead>,
    /// From the notice until the thread had its processor.
    noticed: Option<Span>,
    /// The task of the thread, while it polls.
    task: Option<TaskId>,
    /// The drive's answer, and when it came.
    pub(crate) done: Option<(Time, Completion)>,
    /// Stages that have ended since.
    marks: Vec<(&'static str, Time)>,
    /// A context has woken the thread.
    pub(crate) is_woken: bool,
    pub(crate) event: Rc<Event>,
    taker: Taker,
    /// How long its thread had waited for its processor when the answer came.
    waits: Waits,
}

/// Who takes an I/O that has ended.
enum Taker {
    /// The thread that submitted.
    Thread(Key),
    Ring(Rc<Ended>),
}

impl Taker {
    fn ring(&self) -> Option<Rc<Ended>> {
        match self {
            Taker::Thread(_) => None,
            Taker::Ring(ring) => Some(ring.clone()),
        }
    }
}

/// A notice ahead of a completion.
#[derive(Copy, Clone)]
pub(crate) struct Ahead {
    /// When it came.
    pub(crate) at: Time,
    /// When the command is predicted to end.
    pub(crate) ends: Time,
    /// It has woken the thread.
    pub(crate) is_handled: bool,
}

/// What is under way.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Waiting {
    /// Commands in the drive, and completions that their threads have not taken.
    pub in_flight: usize,
    /// Completions and notices that wait for an interrupt or a softirq.
    pub posted: usize,
}

/// How long the load computes before it looks whether another thread is due. The machine preempts it before that.
const LOAD_STEP: Span = Span::from_ms(1);

impl Path {
    /// The way to a drive with submission queues, at least one and at most one a processor. Number `n` completes in completion queue
    /// `n` modulo [`Config::completion_queues`]. The load begins to compute.
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
        let machine = Machine::new(sim, config.machine.clone()).expect("it has just been checked");
        Path::on(machine, sim, config, queues, policy)
    }

    /// The same on a machine that has other paths too: the settings of the machine are its own.
    ///
    /// # Errors
    /// That the host is impossible: the key, and what would be valid.
    pub fn on(
        machine: Machine,
        sim: &Sim,
        config: Config,
        queues: impl Into<Queues>,
        policy: Box<dyn CompletionPolicy>,
    ) -> Result<Rc<Path>, ConfigError> {
        let config = Config { machine: machine.config().clone(), ..config };
        config.check()?;
        let Queues { mut drives, tags, stripe } = queues.into();
        if stripe.is_none() {
            drives.truncate(config.queue_pairs(drives.len()));
        }
        let spec = ThreadSpec { role: Role::Load, ..ThreadSpec::default() };
        let thread = |_| Rc::new(machine.thread(spec).expect("a thread of any processor"));
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
            vectors: vectors(if stripe.is_some() { 1 } else { config.completion_queues(drives.len()) }),
            softirqs: vectors(machine.cpus()),
            under_way: vec![Cell::new(0); machine.cpus()],
            locks: Locks::new(&machine, config.path, drives.len()),
            announced: Vector::default(),
            figures: RefCell::default(),
            window: Cell::new(None),
            set_window: RefCell::default(),
            queue_runs: (0..queue_runs).map(|_| Event::new(&machine)).collect(),
            poller: RefCell::default(),
            machine,
            config,
            policy,
            ports: drives.into_iter().map(|drive| Port::new(drive, tags)).collect(),
            stripe,
            flights: RefCell::default(),
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

    /// Whether the policy needs a drive that announces completions.
    pub fn asks(&self) -> bool {
        self.policy.asks()
    }

    /// For each completion queue, the processor that it interrupts and the interrupts that it has raised.
    pub fn completion_queues(&self) -> impl Iterator<Item = (usize, u64)> {
        self.vectors.iter().enumerate().map(|(number, vector)| (self.config.processor_of(number), vector.interrupts()))
    }

    /// Submission queues, or ports, in use.
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
        self.vectors.iter().chain([&self.announced]).map(Vector::interrupts).sum()
    }

    /// The time that the load has had, by kind.
    pub fn load_times(&self) -> Vec<Times> {
        self.load.iter().map(|thread| thread.times()).collect()
    }

    /// What is under way now.
    pub fn waiting(&self) -> Waiting {
        let vectors = self.vectors.iter().chain(&self.softirqs).chain([&self.announced]);
        let posted = vectors.map(Vector::waiting).sum();
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
        command: (SubmissionEntry, u32),
        mem: HostMem,
    ) -> Completion {
        self.io_of_idle(thread, (arrived, None), command, mem).await
    }

    /// The same. `idle` is the thread's account when it began to wait for an I/O, if this one found it so.
    pub(crate) async fn io_of_idle(
        &self,
        thread: &Context,
        (arrived, idle): (Time, Option<Account>),
        (command, lba_bytes): (SubmissionEntry, u32),
        mem: HostMem,
    ) -> Completion {
        let Costs { syscall, driver, user, .. } = self.config.costs;
        let mut stages = Stages::begin(&self.sim, thread, arrived, idle);
        let enter = Span::from_ns(syscall.ns() / 2);
        let copy = copy_of(&self.config, &command, lba_bytes);
        let is_to_drive = is_to_drive(IoOpcode(command.opcode));
        self.work(thread, (user, Mode::User), stage::THREAD, &mut stages).await;
        self.work(thread, (enter, Mode::Kernel), stage::SYSCALL, &mut stages).await;
        if is_to_drive {
            self.work(thread, (copy, Mode::Kernel), stage::COPY, &mut stages).await;
        }
        self.block_layer_in(thread, &command, |stage| stages.end(stage)).await;
        let (flight, mut completion);
        if let Some(strategy) = self.config.path.strategy() {
            flight = self.begin(thread, (command, lba_bytes), mem);
            completion = flight.by_strategy(thread, strategy, &mut stages).await;
        } else {
            let held = self.lock_controller(thread, &mut |stage| stages.end(stage)).await;
            self.work(thread, (driver, Mode::Kernel), stage::DRIVER, &mut stages).await;
            flight = self.begin(thread, (command, lba_bytes), mem);
            self.send_or_wait(flight.key);
            drop(held);
            completion = match flight.notice {
                Notice::Interrupt => flight.interrupted(thread, &mut stages).await,
                Notice::Poll(sleep) => flight.polled(thread, sleep, &mut stages).await,
                Notice::PollFor(span) => {
                    flight.spin(thread, Some(self.sim.now() + span)).await;
                    flight.polled_for(thread, Way::Poll, &mut stages).await
                }
                Notice::Announced(patience) => flight.announced(thread, patience, &mut stages).await,
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

    /// A command of a thread that is to be issued.
    fn begin(&self, thread: &Context, (mut command, lba_bytes): (SubmissionEntry, u32), mem: HostMem) -> InFlight<'_> {
        let cpu = thread.cpu();
        let others = self.under_way[cpu].get() + self.machine.waiting(cpu);
        let sizes = (lba_bytes, self.info().unit_bytes);
        let of = Submitted { cpu, others, ..Submitted::by(self.sim.now(), &command, sizes) };
        if self.policy.asks() && of.can_ask() {
            command.cdw2 = (command.cdw2.get() | NOTICE).into();
        }
        let notice = self.policy.notice(&of);
        let is_armed = matches!(notice, Notice::Interrupt | Notice::Announced(_));
        let (key, event) = self.insert(cpu, (notice, is_armed), Taker::Thread(thread.key()), (command, mem));
        InFlight { path: self, key, notice, event, of }
    }

    /// An I/O that is about to be issued on a processor.
    fn insert(
        &self,
        cpu: usize,
        (notice, is_armed): (Notice, bool),
        taker: Taker,
        (mut command, mem): (SubmissionEntry, HostMem),
    ) -> (Key, Rc<Event>) {
        let port = self.port_of(cpu, &mut command);
        let queue = if self.stripe.is_some() { 0 } else { cpu % self.ports.len() % self.vectors.len() };
        let under_way = &self.under_way[cpu];
        under_way.set(under_way.get() + 1);
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
            is_armed,
            ahead: None,
            noticed: None,
            task: None,
            done: None,
            marks: Vec::new(),
            is_woken: false,
            event: event.clone(),
            taker,
            waits: Waits::default(),
        };
        (self.flights.borrow_mut().insert(flight), event)
    }

    /// The same for a ring, which takes it when it has ended. Its completion raises an interrupt if it is armed.
    pub(crate) fn reserve(
        &self,
        cpu: usize,
        (taker, is_armed): (Rc<Ended>, bool),
        command: (SubmissionEntry, HostMem),
    ) -> Key {
        self.insert(cpu, (Notice::Interrupt, is_armed), Taker::Ring(taker), command).0
    }

    /// The port of a command of a processor, which then names the addresses of that port; `None` of a command for several.
    pub(crate) fn port_of(&self, cpu: usize, command: &mut SubmissionEntry) -> Option<usize> {
        match &self.stripe {
            Some(stripe) => stripe.port_of(command, self.ports.len(), self.ports[0].drive.info()),
            None => Some(cpu % self.ports.len()),
        }
    }

    /// Issues a command, or has it wait for a tag.
    pub(crate) fn send_or_wait(&self, key: Key) {
        let port = self.with_flight(key, |flight| flight.port).flatten();
        match port.map(|port| &self.ports[port]) {
            Some(port) if port.has_requests() || !port.take_tag() => port.enqueue(key),
            port => _ = self.send(key, port.is_some()),
        }
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
        let (port, is_left) = self
            .with_flight(key, |flight| (flight.port.filter(|_| std::mem::take(&mut flight.has_tag)), flight.is_left))?;
        if is_left {
            self.take_flight(key);
        }
        port.inspect(|port| self.ports[*port].release_tag())
    }

    /// Takes an I/O that has ended, and gives its tag back, on the processor of a context.
    pub(crate) fn take_ended(&self, key: Key, context: Option<&Context>) -> Taken {
        self.run_queue(self.release(key), context);
        let flight = self.take_flight(key).expect("an I/O is taken once");
        let (done, completion) = flight.done.expect("it has completed");
        let issued = flight.issued.expect("it was issued");
        Taken {
            port: flight.port,
            issued,
            done,
            marks: flight.marks,
            ahead: flight.ahead,
            noticed: flight.noticed,
            completion,
            waits: flight.waits,
        }
    }

    /// The ring that takes an I/O.
    pub(crate) fn taker(&self, key: Key) -> Option<Rc<Ended>> {
        self.with_flight(key, |flight| flight.taker.ring()).flatten()
    }

    /// An I/O that has not ended.
    pub(crate) fn with_flight<T>(&self, key: Key, look: impl FnOnce(&mut Flight) -> T) -> Option<T> {
        self.flights.borrow_mut().get_mut(key).map(look)
    }

    /// Takes an I/O out.
    fn take_flight(&self, key: Key) -> Option<Flight> {
        let flight = self.flights.borrow_mut().remove(key)?;
        let under_way = &self.under_way[flight.cpu];
        under_way.set(under_way.get() - 1);
        Some(flight)
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

/// Copying the data of a command.
pub(crate) fn copy_of(config: &Config, command: &SubmissionEntry, lba_bytes: u32) -> Span {
    let bytes = u128::from(bytes_of(command, lba_bytes));
    Span::from_ns((u128::from(config.costs.copy.ns()) * bytes / 4_096) as u64)
}

/// Whether a command takes data to the drive.
pub(crate) fn is_to_drive(opcode: IoOpcode) -> bool {
    matches!(opcode, IoOpcode::WRITE | IoOpcode::COMPARE | IoOpcode::ZONE_APPEND)
}

/// Bytes of data of a command, whose namespace has logical blocks of this size.
pub(crate) fn bytes_of(command: &SubmissionEntry, lba_bytes: u32) -> u64 {
    let opcode = IoOpcode(command.opcode);
    match is_to_drive(opcode) || opcode == IoOpcode::READ {
        true => (u64::from(Cdw12::of(command).nlb_z()) + 1) * u64::from(lba_bytes),
        false => 0,
    }
}

/// Mapping units that the data of a command touches.
pub(crate) fn units_of(command: &SubmissionEntry, lba_bytes: u32, unit_bytes: u32) -> u32 {
    let (unit, lba) = (u64::from(unit_bytes.max(1)), u64::from(lba_bytes));
    let from = command.slba().saturating_mul(lba);
    let to = from.saturating_add(bytes_of(command, lba_bytes));
    (to.div_ceil(unit) - from / unit) as u32
}

impl Sink for Path {
    fn complete(&self, tag: u64, completion: Completion) {
        let key = Key::from_bits(tag);
        let mut flights = self.flights.borrow_mut();
        let Some(flight) = flights.get_mut(key) else { return };
        flight.done = Some((self.sim.now(), completion));
        let (is_armed, is_left, queue) = (flight.is_armed, flight.is_left, flight.queue);
        let (task, taker) = (flight.task, flight.taker.ring().filter(|_| !is_armed));
        if let Taker::Thread(thread) = flight.taker
            && !is_left
        {
            flight.waits = self.machine.waits(thread);
        }
        drop(flights);
        let task = taker.map_or(task, |ring| ring.push(key));
        if self.config.path.strategy().is_some() {
            self.posted_event(queue, key);
        } else if is_armed {
            self.posted(queue, key);
        } else if is_left {
            self.run_queue(self.release(key), None);
        } else if let Some(task) = task {
            self.sim.wake(task);
        }
    }

    fn announced(&self, tag: u64, remaining: Span) {
        self.noticed(Key::from_bits(tag), remaining);
    }

    fn is_stopped(&self) -> bool {
        self.sim.is_stopped()
    }
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
    fn flight<T>(&self, look: impl FnOnce(&mut Flight) -> T) -> T {
        self.path.with_flight(self.key, look).expect("an I/O is taken once")
    }

    /// Gives the processor away until an interrupt has woken the thread.
    async fn interrupted(&self, thread: &Context, stages: &mut Stages<'_>) -> Completion {
        self.woken(thread, Way::Interrupt, stages).await
    }

    async fn woken(&self, thread: &Context, way: Way, stages: &mut Stages<'_>) -> Completion {
        while !self.flight(|flight| flight.is_woken) {
            self.event.wait(thread).await;
        }
        let Taken { marks, completion, .. } = self.take_from_drive(way, stages);
        marks.into_iter().for_each(|(stage, at)| stages.pass(stage, at));
        // What the thread has done since it submitted is to get its processor again.
        stages.end(stage::WAKEUP);
        completion
    }

    /// Sleeps for a time, then polls.
    async fn polled(&self, thread: &Context, sleep: Span, stages: &mut Stages<'_>) -> Completion {
        let wakes_at = self.path.sim.now() + sleep;
        let mut overslept = false;
        if !sleep.is_zero() {
            thread.sleep(sleep).await;
            overslept = self.is_done();
        }
        self.spin(thread, None).await;
        if !overslept {
            return self.seen(thread, Way::Poll, stages).await;
        }
        let Taken { port, done, completion, .. } = self.take_from_drive(Way::Poll, stages);
        if wakes_at > done {
            stages.pass(stage::OVERSLEEP, wakes_at);
        }
        stages.resumed();
        self.polls(thread, port, stages).await;
        completion
    }

    /// The end of a command for which the thread has polled for a time: it is there, or an interrupt is waited for.
    async fn polled_for(&self, thread: &Context, way: Way, stages: &mut Stages<'_>) -> Completion {
        if self.is_done() {
            return self.seen(thread, way, stages).await;
        }
        self.flight(|flight| flight.is_armed = true);
        stages.mark_thread();
        self.woken(thread, Way::GaveUp, stages).await
    }

    /// Gives the processor away until a notice or an interrupt has woken the thread. After a notice it polls.
    async fn announced(&self, thread: &Context, patience: Span, stages: &mut Stages<'_>) -> Completion {
        let is_noticed = || self.flight(|flight| flight.ahead.filter(|ahead| ahead.is_handled));
        while is_noticed().is_none() && !self.flight(|flight| flight.is_woken) {
            self.event.wait(thread).await;
        }
        let ahead = is_noticed().filter(|_| !self.flight(|flight| flight.is_woken));
        let Some(ahead) = ahead else { return self.woken(thread, Way::Interrupt, stages).await };
        let noticed = self.path.sim.now() - ahead.at;
        self.flight(|flight| flight.noticed = Some(noticed));
        if !self.is_done() {
            self.spin(thread, Some(ahead.ends + patience)).await;
            return self.polled_for(thread, Way::Ready, stages).await;
        }
        let Taken { port, marks, completion, .. } = self.take_from_drive(Way::Late, stages);
        marks.into_iter().for_each(|(stage, at)| stages.pass(stage, at));
        stages.resumed();
        self.polls(thread, port, stages).await;
        completion
    }

    /// Keeps the processor busy until the drive has completed the command, or until a time.
    async fn spin(&self, thread: &Context, until: Option<Time>) {
        let Some(until) = until else { return thread.spin_until(Done(self)).await };
        let mut timer = pin!(self.path.sim.sleep_until(until));
        let either = poll_fn(|context| match Pin::new(&mut Done(self)).poll(context) {
            Poll::Pending => timer.as_mut().poll(context),
            Poll::Ready(()) => Poll::Ready(()),
        });
        thread.spin_until(either).await;
    }

    /// The end of a command that the thread was polling for.
    async fn seen(&self, thread: &Context, way: Way, stages: &mut Stages<'_>) -> Completion {
        let Taken { port, completion, .. } = self.take_from_drive(way, stages);
        stages.waited();
        self.polls(thread, port, stages).await;
        completion
    }

    /// The thread finds the completion in the queue, and finishes the I/O itself.
    async fn polls(&self, thread: &Context, port: Option<usize>, stages: &mut Stages<'_>) {
        let path = self.path;
        let Costs { poll, handler, complete, .. } = path.config.costs;
        path.work(thread, (poll, Mode::Kernel), stage::POLL, stages).await;
        if path.locks.is_none() {
            return path.work(thread, (handler + complete, Mode::Kernel), stage::COMPLETE, stages).await;
        }
        let held = path.lock_controller(thread, &mut |stage| stages.end(stage)).await;
        path.work(thread, (handler, Mode::Kernel), stage::COMPLETE, stages).await;
        drop(held);
        path.block_layer_out(thread, port, |stage| stages.end(stage)).await;
    }

    fn is_done(&self) -> bool {
        self.path.flights.borrow().get(self.key).is_some_and(|flight| flight.done.is_some())
    }

    /// Takes the answer; the policy sees how long the drive took, and how the thread has learnt of it.
    fn take(&self, way: Way) -> Taken {
        let taken = self.path.take_ended(self.key, None);
        let has_count = self.path.policy.asks() && self.of.can_ask() && taken.completion.status.is_success();
        let ended = policy::Ended {
            took: taken.done - taken.issued,
            way,
            delay: self.path.sim.now() - taken.done,
            noticed: taken.noticed.or(taken.ahead.map(|ahead| self.path.sim.now() - ahead.at)),
            buffer_free: has_count.then(|| Hints(taken.completion.dw1).buffer_free().into()),
        };
        self.path.count_end(self.notice, &self.of, &ended);
        taken
    }

    /// The same, with the wait for a tag as a stage, and the drive's time.
    pub(crate) fn take_from_drive(&self, way: Way, stages: &mut Stages<'_>) -> Taken {
        let taken = self.take(way);
        stages.queued(taken.issued);
        stages.in_drive(taken.done, taken.waits);
        taken
    }
}

/// An answer of the drive.
pub(crate) struct Taken {
    pub(crate) port: Option<usize>,
    pub(crate) issued: Time,
    pub(crate) done: Time,
    /// Stages that have ended since.
    pub(crate) marks: Vec<(&'static str, Time)>,
    ahead: Option<Ahead>,
    noticed: Option<Span>,
    pub(crate) completion: Completion,
    waits: Waits,
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        let Some(has_tag) = self.path.with_flight(self.key, |flight| flight.has_tag) else { return };
        self.path.policy.dropped(&self.of);
        if !has_tag {
            self.path.take_flight(self.key);
            return;
        }
        // The tag is in use until the drive has answered, and a context has taken the answer.
        let is_over = self.flight(|flight| {
            flight.is_left = true;
            flight.done.is_some() && !flight.is_armed
        });
        if is_over && self.path.config.path.strategy().is_none() {
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
