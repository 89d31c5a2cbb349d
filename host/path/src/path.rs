//! One I/O of a thread: system call, block layer, driver, drive, completion, return.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{self, Poll};

use nandscape_drive::io::Sink;
use nandscape_drive::{Completion, Drive, DriveInfo, HostMem, Io, Token};
use nandscape_host_machine::{Context, Event, Machine, Mode, ThreadSpec, Times};
use nandscape_sim::executor::TaskId;
use nandscape_sim::slots::{Key, Slots};
use nandscape_sim::{Sim, Span, Time};
use nandscape_wire_nvme::io::Cdw12;
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};

use crate::config::{Config, ConfigError, Costs};
use crate::policy::{CompletionPolicy, Notice, Submitted};
use crate::stages::{Stages, stage};
use crate::vector::Vector;

/// The way from the threads of a machine to a drive.
pub struct Path {
    pub(crate) sim: Sim,
    pub(crate) machine: Machine,
    pub(crate) config: Config,
    policy: Box<dyn CompletionPolicy>,
    /// Queue pairs, each of one processor or several.
    queues: Vec<Rc<dyn Drive>>,
    /// The interrupts of the queues.
    pub(crate) vectors: Vec<Vector>,
    /// The softirqs of the processors.
    pub(crate) softirqs: Vec<Vector>,
    flights: RefCell<Slots<Flight>>,
    /// Interrupts that were raised.
    pub(crate) interrupts: Cell<u64>,
    /// The threads that compute all the time.
    load: Vec<Rc<Context>>,
    me: Weak<Path>,
}

/// A command in the drive, or on its way back.
struct Flight {
    notice: Notice,
    queue: usize,
    cpu: usize,
    /// The task of the thread, while it polls.
    task: Option<TaskId>,
    /// The drive's answer, and when it came.
    done: Option<(Time, Completion)>,
    /// Stages that have ended since.
    marks: Vec<(&'static str, Time)>,
    /// The thread has been woken.
    is_woken: bool,
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
        mut queues: Vec<Rc<dyn Drive>>,
        policy: Box<dyn CompletionPolicy>,
    ) -> Result<Rc<Path>, ConfigError> {
        config.check()?;
        queues.truncate(config.queue_pairs(queues.len()));
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
        Ok(Rc::new_cyclic(|me| Path {
            sim: sim.clone(),
            vectors: vectors(queues.len()),
            softirqs: vectors(machine.cpus()),
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
        let posted = self.vectors.iter().chain(&self.softirqs).map(Vector::waiting).sum();
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
        (command, lba_bytes): (SubmissionEntry, u32),
        mem: HostMem,
    ) -> Completion {
        let Costs { syscall, submit, driver, copy, user, .. } = self.config.costs;
        let mut stages = Stages::begin(&self.sim, thread, arrived);
        let enter = Span::from_ns(syscall.ns() / 2);
        let bytes = bytes_of(&command, lba_bytes);
        let copy = Span::from_ns((u128::from(copy.ns()) * u128::from(bytes) / 4_096) as u64);
        let is_to_drive = is_to_drive(IoOpcode(command.opcode));
        self.work(thread, (user, Mode::User), stage::THREAD, &mut stages).await;
        self.work(thread, (enter, Mode::Kernel), stage::SYSCALL, &mut stages).await;
        if is_to_drive {
            self.work(thread, (copy, Mode::Kernel), stage::COPY, &mut stages).await;
        }
        self.work(thread, (submit, Mode::Kernel), stage::SUBMIT, &mut stages).await;
        self.work(thread, (driver, Mode::Kernel), stage::DRIVER, &mut stages).await;
        let command_of = Submitted { at: self.sim.now(), opcode: command.opcode, bytes };
        let flight = self.submit(thread.cpu(), &command_of, command, mem);
        let mut completion = match flight.notice {
            Notice::Interrupt => flight.interrupted(thread, &mut stages).await,
            Notice::Poll(sleep) => flight.polled(thread, sleep, &mut stages).await,
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

    fn submit(&self, cpu: usize, of: &Submitted, command: SubmissionEntry, mem: HostMem) -> InFlight<'_> {
        let (notice, queue) = (self.policy.notice(of), cpu % self.queues.len());
        let event = Rc::new(Event::new(&self.machine));
        let marks = Vec::new();
        let flight =
            Flight { notice, queue, cpu, task: None, done: None, marks, is_woken: false, event: event.clone() };
        let key = self.flights.borrow_mut().insert(flight);
        let in_flight = InFlight { path: self, key, notice, event, of: *of };
        self.queues[queue].submit(Io { command, mem, token: Token::new(self.me(), key.to_bits()) });
        in_flight
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
        let (notice, queue, task) = (flight.notice, flight.queue, flight.task);
        drop(flights);
        match (notice, task) {
            (Notice::Interrupt, _) => self.posted(queue, key),
            (Notice::Poll(_), Some(task)) => self.sim.wake(task),
            (Notice::Poll(_), None) => {}
        }
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
    /// Gives the processor away until an interrupt has woken the thread.
    async fn interrupted(&self, thread: &Context, stages: &mut Stages<'_>) -> Completion {
        let is_woken = || self.path.flights.borrow().get(self.key).is_some_and(|flight| flight.is_woken);
        while !is_woken() {
            self.event.wait(thread).await;
        }
        let (done, marks, completion) = self.take();
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
        let (done, _, completion) = self.take();
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
    fn take(&self) -> (Time, Vec<(&'static str, Time)>, Completion) {
        let mut flights = self.path.flights.borrow_mut();
        let flight = flights.remove(self.key).expect("an I/O is taken once");
        let (done, completion) = flight.done.expect("it has completed");
        self.path.policy.completed(&self.of, done - self.of.at);
        (done, flight.marks, completion)
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.path.flights.borrow_mut().remove(self.key);
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
