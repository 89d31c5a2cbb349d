//! One I/O of a thread: system call, block layer, driver, drive, completion, return.
//!
//! [`flight`] has the commands in the drive, [`in_flight`] how a thread waits for one, [`data`] what a command moves.

mod data;
mod flight;
mod in_flight;

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use nandscape_drive::{Completion, DriveInfo, HostMem};
use nandscape_host_machine::{Context, Event, Machine, Mode, Role, ThreadSpec, Times};
use nandscape_sim::executor::TaskId;
use nandscape_sim::slots::Slots;
use nandscape_sim::{Sim, Span, Time};
use nandscape_wire_nvme::vendor::NOTICE;
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};

pub(crate) use self::data::{bytes_of, copy_of, is_to_drive, units_of};
pub(crate) use self::flight::{Ahead, Taken};
use self::flight::{Flight, Taker};
pub(crate) use self::in_flight::InFlight;
use crate::config::{Config, ConfigError, Costs, PathKind};
use crate::locks::Locks;
use crate::notices::NoticeFigures;
use crate::policy::{CompletionPolicy, Notice, Submitted, Way};
use crate::queues::{Port, Queues, Stripe};
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
            flight = self.begin((thread, arrived), (command, lba_bytes), mem);
            completion = flight.by_strategy(thread, strategy, &mut stages).await;
        } else {
            let held = self.lock_controller(thread, &mut |stage| stages.end(stage)).await;
            self.work(thread, (driver, Mode::Kernel), stage::DRIVER, &mut stages).await;
            flight = self.begin((thread, arrived), (command, lba_bytes), mem);
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
    fn begin(
        &self,
        (thread, arrived): (&Context, Time),
        (mut command, lba_bytes): (SubmissionEntry, u32),
        mem: HostMem,
    ) -> InFlight<'_> {
        let cpu = thread.cpu();
        let others = self.under_way[cpu].get() + self.machine.waiting(cpu);
        let sizes = (lba_bytes, self.info().unit_bytes);
        let of = Submitted { cpu, others, ..Submitted::by(self.sim.now(), &command, sizes) };
        if self.policy.asks() && of.can_ask() {
            command.cdw2 = (command.cdw2.get() | NOTICE).into();
        }
        let notice = self.policy.notice(&of);
        let is_armed = matches!(notice, Notice::Interrupt | Notice::Announced(_));
        let (key, event) = self.insert((cpu, arrived), (notice, is_armed), Taker::Thread(thread.key()), (command, mem));
        InFlight { path: self, key, notice, event, of }
    }
}
