//! One I/O of a thread: system call, block layer, driver, drive, completion, return.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::{Rc, Weak};
use std::task::{self, Poll};

use nandscape_drive::io::Sink;
use nandscape_drive::{Completion, Drive, DriveInfo, HostMem, Io, Token};
use nandscape_host_machine::{Context, Event, Machine, Mode, ThreadSpec, Times};
use nandscape_sim::executor::TaskId;
use nandscape_sim::slots::{Key, Slots};
use nandscape_sim::{Sim, Span, Time};
use nandscape_wire_nvme::io::Cdw12;
use nandscape_wire_nvme::vendor::{Hints, NOTICE};
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};

use crate::config::{Config, ConfigError, Costs};
use crate::notices::NoticeFigures;
use crate::policy::{self, CompletionPolicy, Notice, Submitted, Way};
use crate::ring::Ended;
use crate::stages::{Stages, stage};
use crate::vector::Vector;

/// The way from the threads of a machine to a drive.
pub struct Path {
    pub(crate) sim: Sim,
    pub(crate) machine: Machine,
    pub(crate) config: Config,
    pub(crate) policy: Box<dyn CompletionPolicy>,
    /// Queue pairs, each of one processor or several.
    queues: Vec<Rc<dyn Drive>>,
    /// The interrupts of the queues.
    pub(crate) vectors: Vec<Vector>,
    /// The softirqs of the processors.
    pub(crate) softirqs: Vec<Vector>,
    flights: RefCell<Slots<Flight>>,
    /// I/Os that have not ended, by the processor that submitted.
    under_way: Vec<Cell<usize>>,
    /// The interrupt of notices.
    pub(crate) announced: Vector,
    pub(crate) figures: RefCell<NoticeFigures>,
    pub(crate) window: Cell<Option<Span>>,
    pub(crate) set_window: RefCell<Option<SetWindow>>,
    /// Interrupts that were raised.
    pub(crate) interrupts: Cell<u64>,
    /// The threads that compute all the time.
    load: Vec<Rc<Context>>,
    me: Weak<Path>,
}

/// Gives the drive another window for its notices.
type SetWindow = Box<dyn Fn(Span)>;

/// A command in the drive, or on its way back.
pub(crate) struct Flight {
    pub(crate) notice: Notice,
    queue: usize,
    cpu: usize,
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
    /// The interrupt has woken the thread.
    pub(crate) is_woken: bool,
    pub(crate) event: Rc<Event>,
    /// The ring that takes it; `None` is the thread that submitted.
    taker: Option<Rc<Ended>>,
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
    /// The way to a drive with queue pairs, at least one and at most one a processor. The load begins to compute.
    ///
    /// # Errors
    /// That the host is impossible: the key, and what would be valid.
    pub fn new(sim: &Sim, config: Config, queues: Vec<Rc<dyn Drive>>) -> Result<Rc<Path>, ConfigError> {
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
        queues: Vec<Rc<dyn Drive>>,
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
        mut queues: Vec<Rc<dyn Drive>>,
        policy: Box<dyn CompletionPolicy>,
    ) -> Result<Rc<Path>, ConfigError> {
        let config = Config { machine: machine.config().clone(), ..config };
        config.check()?;
        queues.truncate(config.queue_pairs(queues.len()));
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
        Ok(Rc::new_cyclic(|me| Path {
            sim: sim.clone(),
            vectors: vectors(queues.len()),
            softirqs: vectors(machine.cpus()),
            under_way: vec![Cell::new(0); machine.cpus()],
            announced: Vector::default(),
            figures: RefCell::default(),
            window: Cell::new(None),
            set_window: RefCell::default(),
            machine,
            config,
            policy,
            queues,
            flights: RefCell::default(),
            interrupts: Cell::new(0),
            load,
            me: me.clone(),
        }))
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

    /// Queue pairs in use.
    pub fn queues(&self) -> usize {
        self.queues.len()
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
        let vectors = self.vectors.iter().chain(&self.softirqs).chain([&self.announced]);
        let posted = vectors.map(Vector::waiting).sum();
        Waiting { in_flight: self.flights.borrow().len(), posted }
    }

    /// The drive, as its first queue pair shows it.
    pub fn info(&self) -> DriveInfo {
        self.queues[0].info()
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

    /// The same. `idle` is the thread's time when it began to wait for an I/O, if this one found it so.
    pub(crate) async fn io_of_idle(
        &self,
        thread: &Context,
        (arrived, idle): (Time, Option<Times>),
        (command, lba_bytes): (SubmissionEntry, u32),
        mem: HostMem,
    ) -> Completion {
        let Costs { syscall, submit, driver, user, .. } = self.config.costs;
        let mut stages = Stages::begin(&self.sim, thread, arrived, idle);
        let enter = Span::from_ns(syscall.ns() / 2);
        let copy = copy_of(&self.config, &command, lba_bytes);
        let is_to_drive = is_to_drive(IoOpcode(command.opcode));
        self.work(thread, (user, Mode::User), stage::THREAD, &mut stages).await;
        self.work(thread, (enter, Mode::Kernel), stage::SYSCALL, &mut stages).await;
        if is_to_drive {
            self.work(thread, (copy, Mode::Kernel), stage::COPY, &mut stages).await;
        }
        self.work(thread, (submit, Mode::Kernel), stage::SUBMIT, &mut stages).await;
        self.work(thread, (driver, Mode::Kernel), stage::DRIVER, &mut stages).await;
        let flight = self.submit(thread.cpu(), (command, lba_bytes), mem);
        let mut completion = match flight.notice {
            Notice::Interrupt => flight.interrupted(thread, &mut stages).await,
            Notice::Poll(sleep) => flight.polled(thread, sleep, &mut stages).await,
            Notice::PollFor(span) => {
                flight.spin(thread, Some(self.sim.now() + span)).await;
                flight.polled_for(thread, Way::Poll, &mut stages).await
            }
            Notice::Announced(patience) => flight.announced(thread, patience, &mut stages).await,
        };
        drop(flight);
        if !is_to_drive {
            self.work(thread, (copy, Mode::Kernel), stage::COPY, &mut stages).await;
        }
        self.work(thread, (syscall - enter, Mode::Kernel), stage::SYSCALL, &mut stages).await;
        stages.charge(&mut completion.breakdown);
        completion
    }

    /// A stage of work, unless it takes no time.
    async fn work(&self, thread: &Context, (span, mode): (Span, Mode), stage: &'static str, stages: &mut Stages<'_>) {
        if !span.is_zero() {
            thread.work(span, mode).await;
            stages.end(stage);
        }
    }

    fn submit(&self, cpu: usize, (mut command, lba_bytes): (SubmissionEntry, u32), mem: HostMem) -> InFlight<'_> {
        let of = Submitted {
            at: self.sim.now(),
            opcode: command.opcode,
            bytes: bytes_of(&command, lba_bytes),
            units: units_of(&command, lba_bytes, self.info().unit_bytes),
            cpu,
            others: self.under_way[cpu].get() + self.machine.waiting(cpu),
        };
        if self.policy.asks() && can_ask(command.opcode) {
            command.cdw2 = (command.cdw2.get() | NOTICE).into();
        }
        let notice = self.policy.notice(&of);
        let is_armed = matches!(notice, Notice::Interrupt | Notice::Announced(_));
        let (key, event) = self.insert(cpu, (notice, is_armed), None);
        let in_flight = InFlight { path: self, key, notice, event, of };
        self.launch(key, command, mem);
        in_flight
    }

    /// An I/O that is about to be submitted on a processor.
    fn insert(&self, cpu: usize, (notice, is_armed): (Notice, bool), taker: Option<Rc<Ended>>) -> (Key, Rc<Event>) {
        let (queue, under_way) = (cpu % self.queues.len(), &self.under_way[cpu]);
        under_way.set(under_way.get() + 1);
        let event = Rc::new(Event::new(&self.machine));
        let flight = Flight {
            notice,
            queue,
            cpu,
            is_armed,
            ahead: None,
            noticed: None,
            task: None,
            done: None,
            marks: Vec::new(),
            is_woken: false,
            event: event.clone(),
            taker,
        };
        (self.flights.borrow_mut().insert(flight), event)
    }

    /// The same for a ring, which takes it when it has ended. Its completion raises an interrupt if it is armed.
    pub(crate) fn reserve(&self, cpu: usize, taker: Rc<Ended>, is_armed: bool) -> Key {
        self.insert(cpu, (Notice::Interrupt, is_armed), Some(taker)).0
    }

    /// Gives the command of an I/O to the drive.
    pub(crate) fn launch(&self, key: Key, command: SubmissionEntry, mem: HostMem) {
        let queue = self.with_flight(key, |flight| flight.queue).expect("it has been inserted");
        self.queues[queue].submit(Io { command, mem, token: Token::new(self.me(), key.to_bits()) });
    }

    /// The end of an I/O of a ring: when its completion came, the stages since, and the completion.
    pub(crate) fn take_ended(&self, key: Key) -> (Time, Vec<(&'static str, Time)>, Completion) {
        let flight = self.take_flight(key).expect("an I/O is taken once");
        let (done, completion) = flight.done.expect("it has completed");
        (done, flight.marks, completion)
    }

    /// The ring that takes an I/O.
    pub(crate) fn taker(&self, key: Key) -> Option<Rc<Ended>> {
        self.with_flight(key, |flight| flight.taker.clone()).flatten()
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

/// Whether a command can ask for a notice and for the free space of the write buffer.
fn can_ask(opcode: u8) -> bool {
    matches!(IoOpcode(opcode), IoOpcode::READ | IoOpcode::WRITE)
}

/// Bytes of data of a command, whose namespace has logical blocks of this size.
fn bytes_of(command: &SubmissionEntry, lba_bytes: u32) -> u64 {
    let opcode = IoOpcode(command.opcode);
    match is_to_drive(opcode) || opcode == IoOpcode::READ {
        true => (u64::from(Cdw12::of(command).nlb_z()) + 1) * u64::from(lba_bytes),
        false => 0,
    }
}

/// Mapping units that the data of a command touches.
fn units_of(command: &SubmissionEntry, lba_bytes: u32, unit_bytes: u32) -> u32 {
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
        let (is_armed, queue) = (flight.is_armed, flight.queue);
        let (task, taker) = (flight.task, flight.taker.clone().filter(|_| !is_armed));
        drop(flights);
        let task = taker.map_or(task, |ring| ring.push(key));
        if is_armed {
            self.posted(queue, key);
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
struct InFlight<'a> {
    path: &'a Path,
    key: Key,
    notice: Notice,
    event: Rc<Event>,
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
        let (done, marks, completion) = self.take(way);
        stages.in_drive(done);
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
        let (done, _, completion) = self.take(Way::Poll);
        stages.in_drive(done);
        if wakes_at > done {
            stages.pass(stage::OVERSLEEP, wakes_at);
        }
        stages.resumed();
        self.polls(thread, stages).await;
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
        let (done, marks, completion) = self.take(Way::Late);
        stages.in_drive(done);
        marks.into_iter().for_each(|(stage, at)| stages.pass(stage, at));
        stages.resumed();
        self.polls(thread, stages).await;
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
        let (done, _, completion) = self.take(way);
        stages.in_drive(done);
        stages.pass(stage::RUN_DELAY, self.path.sim.now());
        stages.mark_thread();
        self.polls(thread, stages).await;
        completion
    }

    /// The thread finds the completion in the queue, and finishes the I/O itself.
    async fn polls(&self, thread: &Context, stages: &mut Stages<'_>) {
        let Costs { poll, handler, complete, .. } = self.path.config.costs;
        self.path.work(thread, (poll, Mode::Kernel), stage::POLL, stages).await;
        self.path.work(thread, (handler + complete, Mode::Kernel), stage::COMPLETE, stages).await;
    }

    fn is_done(&self) -> bool {
        self.path.flights.borrow().get(self.key).is_some_and(|flight| flight.done.is_some())
    }

    /// Takes the answer; the policy sees how long the drive took, and how the thread has learnt of it.
    fn take(&self, way: Way) -> (Time, Vec<(&'static str, Time)>, Completion) {
        let flight = self.path.take_flight(self.key).expect("an I/O is taken once");
        let (done, completion) = flight.done.expect("it has completed");
        let has_count = self.path.policy.asks() && can_ask(self.of.opcode) && completion.status.is_success();
        let ended = policy::Ended {
            took: done - self.of.at,
            way,
            delay: self.path.sim.now() - done,
            noticed: flight.noticed.or(flight.ahead.map(|ahead| self.path.sim.now() - ahead.at)),
            buffer_free: has_count.then(|| Hints(completion.dw1).buffer_free().into()),
        };
        self.path.count_end(self.notice, &self.of, &ended);
        (done, flight.marks, completion)
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        if self.path.take_flight(self.key).is_some() {
            self.path.policy.dropped(&self.of);
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
