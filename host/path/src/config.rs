//! The settings of a host, the keys by which users give them, and which hosts are impossible.

use nandscape_host_machine::Config as MachineConfig;
use nandscape_host_network::links::LinkConfig;
use nandscape_sim::Span;
use nandscape_sim::units::Rate;

use crate::policy::PolicyKind;
use crate::strategy::Strategy;

/// How completions reach the thread that submitted.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum PathKind {
    /// A queue pair a processor; the interrupt of each finishes I/Os, or hands them to the processor that submitted.
    Nvme,
    /// One queue with one interrupt; a softirq on the processor that submitted finishes I/Os.
    Scsi,
    /// The [strategy](crate::strategy) whose interrupt finishes I/Os and issues those that wait for a tag (Shin 3.3.3).
    NonBlocking,
    /// The same, but each thread finishes its own I/O.
    Lazy,
    /// The same, and threads take completions and issue requests of others.
    Cooperative,
}

impl PathKind {
    /// All, by the names that users give them.
    pub const ALL: [(&str, PathKind); 5] = [
        ("nvme", PathKind::Nvme),
        ("scsi", PathKind::Scsi),
        ("non_blocking", PathKind::NonBlocking),
        ("lazy", PathKind::Lazy),
        ("cooperative", PathKind::Cooperative),
    ];

    /// The name.
    pub fn name(self) -> &'static str {
        PathKind::ALL[self as usize].0
    }

    /// The switches of a strategy; `None` of other paths.
    pub fn strategy(self) -> Option<Strategy> {
        match self {
            PathKind::Nvme | PathKind::Scsi => None,
            PathKind::NonBlocking => Some(Strategy { lazy: false, cooperative: false }),
            PathKind::Lazy => Some(Strategy { lazy: true, cooperative: false }),
            PathKind::Cooperative => Some(Strategy { lazy: true, cooperative: true }),
        }
    }
}

/// How an application submits many I/Os at a time.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum RingKind {
    /// It does not: each I/O has a thread.
    Off,
    /// One thread submits and reaps in its system call (`IORING_SETUP_DEFER_TASKRUN`).
    DeferTaskrun,
    /// The same, and polls in it (`IORING_SETUP_IOPOLL`).
    Iopoll,
    /// A thread of the kernel submits (`IORING_SETUP_SQPOLL`).
    Sqpoll,
    /// No io_uring: a thread a processor submits and polls outside the kernel ([`Reactor`](crate::Reactor)).
    Reactor,
}

impl RingKind {
    /// All, by the names that users give them.
    pub const ALL: [(&str, RingKind); 5] = [
        ("off", RingKind::Off),
        ("defer_taskrun", RingKind::DeferTaskrun),
        ("iopoll", RingKind::Iopoll),
        ("sqpoll", RingKind::Sqpoll),
        ("reactor", RingKind::Reactor),
    ];

    /// The name.
    pub fn name(self) -> &'static str {
        RingKind::ALL[self as usize].0
    }
}

/// The window of the drive's notices.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Window {
    /// As the drive recommends.
    Drive,
    /// One that follows the measured scheduling delay.
    Adaptive,
    /// This one.
    Fixed(Span),
}

impl Window {
    fn parse(value: &str) -> Option<Window> {
        match value {
            "drive" => Some(Window::Drive),
            "adaptive" => Some(Window::Adaptive),
            _ => value.parse().ok().map(Window::Fixed),
        }
    }
}

impl std::fmt::Display for Window {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Window::Drive => f.write_str("drive"),
            Window::Adaptive => f.write_str("adaptive"),
            Window::Fixed(window) => window.fmt(f),
        }
    }
}

/// Work of the kernel for one I/O, on a core of speed 1.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Costs {
    /// Entering and leaving the kernel, with the call itself.
    pub syscall: Span,
    /// The block layer, on the way to the drive.
    pub submit: Span,
    /// The SCSI layers (path SCSI): half of it on the way to the drive, half on the way back.
    pub midlayer: Span,
    /// The driver, on the way to the drive.
    pub driver: Span,
    /// The driver's handler, a completion.
    pub handler: Span,
    /// The end of an I/O in the block layer.
    pub complete: Span,
    /// Waking a thread.
    pub wake: Span,
    /// A look at the queue that finds a completion.
    pub poll: Span,
    /// Copying 4 KiB to or from the application.
    pub copy: Span,
    /// What the application does for an I/O.
    pub user: Span,
    /// An entry of a ring, by the application and by the kernel.
    pub ring_entry: Span,
}

/// See the file.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// The machine.
    pub machine: MachineConfig,
    /// How a thread learns of a completion.
    pub completion: PolicyKind,
    /// How completions reach the thread.
    pub path: PathKind,
    /// How often a thread looks for completions instead of interrupts (strategies); zero is all the time. `None`: interrupts.
    pub poll_thread: Option<Span>,
    /// Submission queues; 0 is one a processor, or as many as the drive has.
    pub queues: usize,
    /// Completion queues, which submission queues use in turn; 0 is one for each submission queue.
    pub completion_queues: usize,
    /// The processors that the completion queues interrupt, in turn. Empty: each interrupts the first processor that submits to it.
    pub affinity: Vec<usize>,
    /// The part of the mean that `hybrid` sleeps before it polls.
    pub poll_sleep: f64,
    /// The part of the latency that polling has to save so that `adaptive` polls.
    pub poll_gain: f64,
    /// How long before the end of a read `precompletion` has the drive announce it.
    pub window: Window,
    /// How long beyond the expected end `precompletion` polls.
    pub patience: Span,
    /// Whether applications use io_uring.
    pub ring: RingKind,
    /// How long the kernel's thread looks for entries before it sleeps.
    pub sqpoll_idle: Span,
    /// Completions that the drive gathers before it interrupts, or until `coalesce_time` has passed.
    pub coalesce: u32,
    /// The longest time for which it does.
    pub coalesce_time: Span,
    /// Threads that compute all the time, next to the application.
    pub load: usize,
    /// What an I/O costs.
    pub costs: Costs,
    /// The links to a machine like this one, whose clients request the I/Os; without links they are requested here.
    pub network: LinkConfig,
}

/// No link. Where there is one, it has 1 Gb/s and the costs of Linux on a core of speed 1; `docs/techniques/host-path.md` has their sources.
const NETWORK: LinkConfig = LinkConfig {
    links: 0,
    rate: Rate::new(125_000_000, Span::from_s(1)),
    delay: Span::from_us(2),
    interval: Span::from_us(50),
    packet_in: Span::from_ns(924),
    message_in: Span::from_ns(176),
    message_out: Span::from_ns(1_093),
    // That of an I/O, which takes its place.
    wake: Span::ZERO,
};

impl Costs {
    /// Nothing takes time.
    pub const FREE: Costs = Costs {
        syscall: Span::ZERO,
        submit: Span::ZERO,
        midlayer: Span::ZERO,
        driver: Span::ZERO,
        handler: Span::ZERO,
        complete: Span::ZERO,
        wake: Span::ZERO,
        poll: Span::ZERO,
        copy: Span::ZERO,
        user: Span::ZERO,
        ring_entry: Span::ZERO,
    };
}

impl Default for Config {
    /// The default machine with the path of NVMe and interrupts. `profiles/server.toml` has the source of each cost.
    fn default() -> Config {
        Config {
            costs: Costs {
                syscall: Span::from_ns(550),
                submit: Span::from_ns(379),
                driver: Span::from_ns(113),
                handler: Span::from_ns(100),
                complete: Span::from_ns(200),
                wake: Span::from_ns(300),
                poll: Span::from_ns(100),
                ring_entry: Span::from_ns(50),
                ..Costs::FREE
            },
            ..Config::free(MachineConfig::default())
        }
    }
}

/// Why a setting is not valid.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{key}: {problem}")]
pub struct ConfigError {
    key: String,
    problem: String,
}

impl ConfigError {
    fn new(key: &str, problem: String) -> ConfigError {
        ConfigError { key: key.to_owned(), problem }
    }
}

/// The keys, with a line on each; those of the machine follow.
pub const KEYS: [(&str, &str); 33] = [
    ("host.completion", "how a thread learns of a completion: interrupt, poll, hybrid, adaptive or precompletion"),
    (
        "host.path",
        "nvme: a queue pair and an interrupt a processor; scsi: one of each, and softirqs; non_blocking, lazy, cooperative",
    ),
    (
        "host.poll_thread",
        "interval at which a thread polls instead of interrupts, such as 16us; off (non_blocking and further)",
    ),
    ("host.queues", "submission queues of path nvme; 0 is one a processor, or as many as the drive has"),
    (
        "host.completion_queues",
        "completion queues, which submission queues use in turn; 0 is one for each submission queue",
    ),
    (
        "host.affinity",
        "processors that the completion queues interrupt, in turn, such as 0:2; auto is the first that submits",
    ),
    ("host.poll_sleep", "part of the mean that hybrid sleeps before it polls, such as 50%"),
    ("host.poll_gain", "part of the latency that polling has to save so that adaptive polls, such as 5%"),
    ("host.window", "how long ahead precompletion is notified: drive, adaptive, or a time such as 16us"),
    ("host.patience", "how long precompletion polls beyond the expected end, such as 20us"),
    (
        "host.ring",
        "whether applications use io_uring: off, defer_taskrun, iopoll or sqpoll; or a polling thread a processor: reactor",
    ),
    ("host.sqpoll_idle", "how long the kernel's thread looks for entries before it sleeps, such as 1ms"),
    ("host.coalesce", "completions that the drive gathers before an interrupt, 1 to 256"),
    ("host.coalesce_time", "longest time for which it gathers them, such as 100us"),
    ("host.load", "threads that compute all the time next to the jobs"),
    ("host.syscall", "cost of entering and leaving the kernel for an I/O, such as 550ns"),
    ("host.submit", "cost of the block layer on the way to the drive, such as 379ns"),
    ("host.midlayer", "cost of the SCSI layers for an I/O, half of it on the way back (path scsi), such as 4us"),
    ("host.driver", "cost of the driver on the way to the drive, such as 113ns"),
    ("host.handler", "cost of the driver's handler for a completion, such as 100ns"),
    ("host.complete", "cost of the end of an I/O in the block layer, such as 200ns"),
    ("host.wake", "cost of waking a thread, such as 300ns"),
    ("host.poll", "cost of a look at the queue that finds a completion, such as 100ns"),
    ("host.copy", "cost of copying 4 KiB to or from the application; 0 is direct I/O"),
    ("host.user", "what the application does for an I/O, such as 500ns"),
    ("host.ring_entry", "cost of an entry of io_uring, by application and kernel, such as 50ns"),
    ("host.links", "links to a machine like this one, whose clients request the I/Os; 0: they are requested here"),
    ("host.link_rate", "data rate of each link, such as 125MB/s, or unlimited"),
    ("host.link_delay", "time of a packet between the wire and the interrupt of the card, such as 2us"),
    ("host.link_interval", "least time between two interrupts of a card, such as 50us"),
    ("host.packet_in", "cost of the protocols for a packet that is received, such as 924ns"),
    ("host.message_in", "cost of handing a received message to its thread, such as 176ns"),
    ("host.message_out", "cost of the protocols and the copy for a message that is sent, such as 1093ns"),
];

/// The keys of costs, each of which has a source or none: [`crate::Profile::source_of`].
pub const COSTS: [&str; 26] = [
    "host.syscall",
    "host.submit",
    "host.midlayer",
    "host.driver",
    "host.handler",
    "host.complete",
    "host.wake",
    "host.poll",
    "host.copy",
    "host.user",
    "host.ring_entry",
    "host.link_delay",
    "host.link_interval",
    "host.packet_in",
    "host.message_in",
    "host.message_out",
    "host.switch",
    "host.cold_cache",
    "host.cold_core",
    "host.interrupt",
    "host.softirq",
    "host.ipi",
    "host.timer",
    "host.lock",
    "host.lock_transfer",
    "host.idle_exit",
];

/// Interrupts are raised where the first processor of a queue submits.
const AUTO: &str = "auto";
/// No thread polls.
const OFF: &str = "off";
/// The longest cost.
const LONGEST: Span = Span::from_s(1);
/// The most threads of the load.
const MOST_LOAD: usize = 1_024;
/// The most links.
const MOST_LINKS: usize = 64;

impl Config {
    /// A machine on which I/Os cost nothing but what the machine and messages cost.
    pub const fn free(machine: MachineConfig) -> Config {
        Config {
            machine,
            completion: PolicyKind::Interrupt,
            path: PathKind::Nvme,
            poll_thread: None,
            queues: 0,
            completion_queues: 0,
            affinity: Vec::new(),
            poll_sleep: 0.5,
            poll_gain: 0.05,
            window: Window::Drive,
            patience: Span::from_us(20),
            ring: RingKind::Off,
            sqpoll_idle: Span::from_ms(1),
            coalesce: 1,
            coalesce_time: Span::from_us(100),
            load: 0,
            costs: Costs::FREE,
            network: NETWORK,
        }
    }

    /// All keys with a line on each, those of the machine last.
    pub fn keys() -> impl Iterator<Item = (&'static str, &'static str)> {
        KEYS.into_iter().chain(MachineConfig::KEYS)
    }

    /// Whether a change is one of a host.
    pub fn is_key(change: &str) -> bool {
        MachineConfig::is_key(change)
    }

    /// Changes a setting: `host.completion=poll`.
    ///
    /// # Errors
    /// What is wrong with it, and what would be valid.
    pub fn set(&mut self, change: &str) -> Result<(), ConfigError> {
        let Some((key, value)) = change.split_once('=') else {
            return Err(ConfigError::new(change, "the value is missing; KEY=VALUE is valid".to_owned()));
        };
        let (key, value) = (key.trim(), value.trim());
        let wrong = |valid: &str| ConfigError::new(key, format!("{value:?} is not valid; valid is {valid}"));
        let whole = || value.parse().map_err(|_| wrong("a whole number such as 4"));
        match key {
            "host.completion" => self.completion = named(&PolicyKind::ALL, value).map_err(|valid| wrong(&valid))?,
            "host.path" => self.path = named(&PathKind::ALL, value).map_err(|valid| wrong(&valid))?,
            "host.ring" => self.ring = named(&RingKind::ALL, value).map_err(|valid| wrong(&valid))?,
            "host.poll_thread" if value == OFF => self.poll_thread = None,
            "host.poll_thread" => {
                self.poll_thread = Some(time(value).ok_or_else(|| wrong("off, 0, or a time such as 16us"))?);
            }
            "host.queues" => self.queues = whole()?,
            "host.completion_queues" => self.completion_queues = whole()?,
            "host.affinity" if value == AUTO => self.affinity.clear(),
            "host.affinity" => {
                let numbers = value.split(':').map(|number| number.trim().parse().ok());
                let valid = "auto, or processors such as 0:2";
                self.affinity = numbers.collect::<Option<_>>().ok_or_else(|| wrong(valid))?;
            }
            "host.links" => self.network.links = whole()?,
            "host.link_rate" => {
                self.network.rate = value.parse().map_err(|_| wrong("a rate such as 125MB/s, or unlimited"))?;
            }
            "host.load" => self.load = whole()?,
            "host.coalesce" => self.coalesce = value.parse().map_err(|_| wrong("a whole number from 1 to 256"))?,
            "host.poll_sleep" => self.poll_sleep = part(value).ok_or_else(|| wrong("a percentage such as 50%"))?,
            "host.poll_gain" => self.poll_gain = part(value).ok_or_else(|| wrong("a percentage such as 5%"))?,
            "host.window" => {
                self.window = Window::parse(value).ok_or_else(|| wrong("drive, adaptive, or a time such as 16us"))?;
            }
            _ if let Some(span) = self.span_mut(key) => {
                *span = time(value).ok_or_else(|| wrong("0, or a time such as 500ns"))?;
            }
            _ if MachineConfig::KEYS.iter().any(|(of_machine, _)| *of_machine == key) => {
                self.machine.set(change).map_err(|error| of_machine(&error))?;
            }
            _ => {
                let all: Vec<&str> = Config::keys().map(|(key, _)| key).collect();
                return Err(ConfigError::new(key, format!("no such key exists; valid are {}", all.join(", "))));
            }
        }
        Ok(())
    }

    /// All settings as users give them: key and value, those of the machine last.
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        let mut copy = self.clone();
        let value = |(key, _): (&'static str, _)| {
            let text = match key {
                "host.completion" => self.completion.name().to_owned(),
                "host.path" => self.path.name().to_owned(),
                "host.ring" => self.ring.name().to_owned(),
                "host.poll_thread" => self.poll_thread.map_or_else(|| OFF.to_owned(), |span| span.to_string()),
                "host.queues" => self.queues.to_string(),
                "host.completion_queues" => self.completion_queues.to_string(),
                "host.affinity" if self.affinity.is_empty() => AUTO.to_owned(),
                "host.affinity" => self.affinity.iter().map(usize::to_string).collect::<Vec<_>>().join(":"),
                "host.links" => self.network.links.to_string(),
                "host.link_rate" => self.network.rate.to_string(),
                "host.poll_sleep" => percentage(self.poll_sleep),
                "host.poll_gain" => percentage(self.poll_gain),
                "host.window" => self.window.to_string(),
                "host.coalesce" => self.coalesce.to_string(),
                "host.load" => self.load.to_string(),
                _ => copy.span_mut(key).map_or_else(String::new, |span| span.to_string()),
            };
            (key, text)
        };
        KEYS.into_iter().map(value).chain(self.machine.settings()).collect()
    }

    /// The setting of a key whose value is a time.
    fn span_mut(&mut self, key: &str) -> Option<&mut Span> {
        let (costs, network) = (&mut self.costs, &mut self.network);
        Some(match key {
            "host.link_delay" => &mut network.delay,
            "host.link_interval" => &mut network.interval,
            "host.packet_in" => &mut network.packet_in,
            "host.message_in" => &mut network.message_in,
            "host.message_out" => &mut network.message_out,
            "host.coalesce_time" => &mut self.coalesce_time,
            "host.patience" => &mut self.patience,
            "host.sqpoll_idle" => &mut self.sqpoll_idle,
            "host.ring_entry" => &mut costs.ring_entry,
            "host.syscall" => &mut costs.syscall,
            "host.submit" => &mut costs.submit,
            "host.midlayer" => &mut costs.midlayer,
            "host.driver" => &mut costs.driver,
            "host.handler" => &mut costs.handler,
            "host.complete" => &mut costs.complete,
            "host.wake" => &mut costs.wake,
            "host.poll" => &mut costs.poll,
            "host.copy" => &mut costs.copy,
            "host.user" => &mut costs.user,
            _ => return None,
        })
    }

    /// Whether such a host is possible.
    ///
    /// # Errors
    /// Which setting is not, and what would be valid.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.machine.check().map_err(|error| of_machine(&error))?;
        let bad = |key: &str, is: String, valid: String| {
            Err(ConfigError::new(key, format!("{is} is not valid; valid is {valid}")))
        };
        let cpus = self.machine.cpus();
        if self.queues > cpus {
            let valid = format!("0 to {cpus}, which is one for each processor");
            return bad("host.queues", self.queues.to_string(), valid);
        }
        if self.path == PathKind::Scsi && self.queues > 1 {
            return bad("host.queues", self.queues.to_string(), "0 or 1 with host.path=scsi".to_owned());
        }
        let most = self.queue_pairs(cpus);
        if self.completion_queues > most {
            let valid = format!("0 to {most}, which is one for each submission queue");
            return bad("host.completion_queues", self.completion_queues.to_string(), valid);
        }
        if let Some(cpu) = self.affinity.iter().find(|cpu| **cpu >= cpus) {
            let valid = format!("auto, or processors from 0 to {}", cpus - 1);
            return bad("host.affinity", format!("processor {cpu}"), valid);
        }
        for (key, part) in [("host.poll_sleep", self.poll_sleep), ("host.poll_gain", self.poll_gain)] {
            if !(0.0..=1.0).contains(&part) {
                return bad(key, format!("{}%", 100.0 * part), "a part from 0% to 100%".to_owned());
            }
        }
        if let Window::Fixed(window) = self.window
            && !(Span::from_ns(1)..=LONGEST).contains(&window)
        {
            return bad("host.window", window.to_string(), format!("a time from 1ns to {LONGEST}"));
        }
        if self.ring != RingKind::Off && self.completion != PolicyKind::Interrupt {
            let valid = format!("interrupt with host.ring={}, which decides by itself", self.ring.name());
            return bad("host.completion", self.completion.name().to_owned(), valid);
        }
        if self.ring == RingKind::Reactor && self.path == PathKind::Scsi {
            let valid = "off, defer_taskrun, iopoll or sqpoll with host.path=scsi";
            return bad("host.ring", self.ring.name().to_owned(), valid.to_owned());
        }
        if !(1..=256).contains(&self.coalesce) {
            return bad("host.coalesce", self.coalesce.to_string(), "1, which is none, to 256".to_owned());
        }
        if self.load > MOST_LOAD {
            return bad("host.load", self.load.to_string(), format!("0 to {MOST_LOAD}"));
        }
        if self.network.links > MOST_LINKS {
            let valid = format!("0, with which the workload runs on the host itself, to {MOST_LINKS}");
            return bad("host.links", self.network.links.to_string(), valid);
        }
        if self.network.links > 0 && self.ring != RingKind::Off {
            return bad("host.ring", self.ring.name().to_owned(), "off with host.links".to_owned());
        }
        let path = self.path.name();
        if self.path.strategy().is_some() {
            if self.ring != RingKind::Off {
                return bad("host.ring", self.ring.name().to_owned(), format!("off with host.path={path}"));
            }
            if self.completion != PolicyKind::Interrupt {
                return bad(
                    "host.completion",
                    self.completion.name().to_owned(),
                    format!("interrupt with host.path={path}"),
                );
            }
            if self.coalesce > 1 {
                return bad("host.coalesce", self.coalesce.to_string(), format!("1 with host.path={path}"));
            }
        }
        if let Some(interval) = self.poll_thread {
            if self.path.strategy().is_none() {
                return bad("host.poll_thread", interval.to_string(), format!("off with host.path={path}"));
            }
            if interval > LONGEST {
                return bad("host.poll_thread", interval.to_string(), format!("off, or a time from 0ns to {LONGEST}"));
            }
        }
        let mut copy = self.clone();
        for (key, _) in KEYS {
            if let Some(span) = copy.span_mut(key).filter(|span| **span > LONGEST) {
                return bad(key, span.to_string(), format!("a time from 0ns to {LONGEST}"));
            }
        }
        Ok(())
    }

    /// On the way to the drive: the block layer, and then its part of the SCSI layers.
    pub(crate) fn submit_costs(&self) -> (Span, Span) {
        (self.costs.submit, half(self.midlayer()))
    }

    /// The end of an I/O: the other part of the SCSI layers, and then the block layer.
    pub(crate) fn complete_costs(&self) -> (Span, Span) {
        (self.midlayer() - half(self.midlayer()), self.costs.complete)
    }

    fn midlayer(&self) -> Span {
        if self.path == PathKind::Scsi { self.costs.midlayer } else { Span::ZERO }
    }

    /// The number of completion queues, given that of submission queues.
    pub fn completion_queues(&self, submission: usize) -> usize {
        if self.completion_queues == 0 { submission } else { self.completion_queues.min(submission) }
    }

    /// The processor that completion queue `number` interrupts.
    pub fn processor_of(&self, number: usize) -> usize {
        match self.affinity.len() {
            0 => number,
            count => self.affinity[number % count],
        }
    }

    /// Submission queues on a drive that has room for `most`.
    pub fn queue_pairs(&self, most: usize) -> usize {
        let wanted = match (self.path, self.queues) {
            (PathKind::Scsi, _) => 1,
            (_, 0) => self.machine.cpus(),
            (_, given) => given,
        };
        wanted.min(most.max(1))
    }
}

/// Half of a cost.
pub(crate) fn half(cost: Span) -> Span {
    Span::from_ns(cost.ns() / 2)
}

fn of_machine(error: &nandscape_host_machine::ConfigError) -> ConfigError {
    let text = error.to_string();
    let (key, problem) = text.split_once(": ").unwrap_or(("host", &text));
    ConfigError::new(key, problem.to_owned())
}

/// The value of a name; the error lists the names.
fn named<T: Copy>(all: &[(&str, T)], value: &str) -> Result<T, String> {
    let found = all.iter().find(|(name, _)| *name == value).map(|(_, of)| *of);
    found.ok_or_else(|| all.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(" or "))
}

fn time(value: &str) -> Option<Span> {
    if value == "0" { Some(Span::ZERO) } else { value.parse().ok() }
}

/// A part as a percentage, to a millionth of it.
fn percentage(part: f64) -> String {
    format!("{}%", (part * 1e8).round() / 1e6)
}

/// A percentage, or a part of one.
fn part(value: &str) -> Option<f64> {
    let (digits, by) = value.strip_suffix('%').map_or((value, 1.0), |digits| (digits.trim(), 100.0));
    let is_decimal = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    is_decimal.then(|| digits.parse::<f64>().ok()).flatten().map(|value| value / by)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_set_and_checked() {
        let mut config = Config::default();
        assert_eq!(config.check(), Ok(()));
        for (key, _) in KEYS {
            let value = match key {
                "host.completion" => "hybrid",
                "host.path" => "scsi",
                "host.queues" | "host.completion_queues" => "1",
                "host.affinity" => "1:0",
                "host.links" => "0",
                "host.link_rate" => "1GB/s",
                "host.poll_sleep" => "25%",
                "host.poll_gain" => "10%",
                "host.window" => "adaptive",
                "host.ring" => "off",
                "host.poll_thread" => "off",
                "host.coalesce" | "host.load" => "8",
                _ => "3us",
            };
            config.set(&format!("{key}={value}")).unwrap();
            assert!(Config::is_key(key));
        }
        let keys: std::collections::BTreeSet<&str> = Config::keys().map(|(key, _)| key).collect();
        assert_eq!(keys.len(), Config::keys().count(), "no key of a path is one of the machine");
        config.set("host.cores=2").unwrap();
        config.set("host.syscall=0").unwrap();
        assert_eq!((config.completion.name(), config.path.name(), config.poll_sleep), ("hybrid", "scsi", 0.25));
        assert_eq!((config.costs.user, config.costs.syscall), (Span::from_us(3), Span::ZERO));
        assert_eq!((config.machine.cores, config.check()), (2, Ok(())));
        let mut again = Config::default();
        config.settings().iter().for_each(|(key, value)| again.set(&format!("{key}={value}")).unwrap());
        assert_eq!(again, config, "settings are read as they are shown");
    }

    #[test]
    fn queue_pairs_are_one_a_processor_as_far_as_the_drive_has_them() {
        let pairs = |change: &str, most| {
            let mut config = Config::default();
            config.set(change).unwrap();
            config.queue_pairs(most)
        };
        assert_eq!((pairs("host.cores=8", 64), pairs("host.cores=8", 3), pairs("host.queues=2", 64)), (8, 3, 2));
        assert_eq!(pairs("host.path=scsi", 64), 1);
    }

    #[test]
    fn impossible_hosts_are_refused_with_the_key_and_what_is_valid() {
        for (change, problem) in [
            ("host.completion=guess", "interrupt or poll or hybrid or adaptive or precompletion"),
            ("host.window=wide", "drive, adaptive, or a time such as 16us"),
            ("host.ring=aio", "off or defer_taskrun or iopoll or sqpoll or reactor"),
            ("host.poll_gain=much", "a percentage such as 5%"),
            ("host.path=ahci", "nvme or scsi"),
            ("host.syscall=-1us", "a time such as 500ns"),
            ("host.poll_sleep=half", "a percentage such as 50%"),
            ("host.coalesce=-1", "from 1 to 256"),
            ("host.load=-1", "a whole number"),
            ("host.completion_queues=all", "a whole number"),
            ("host.affinity=0:x", "auto, or processors such as 0:2"),
            ("host.affinity=", "auto, or processors such as 0:2"),
            ("host.links=two", "a whole number"),
            ("host.link_rate=fast", "a rate such as 125MB/s"),
            ("host.cores=none", "a number such as 4"),
            ("host.colour=red", "valid are host.completion"),
            ("host.syscall", "KEY=VALUE"),
        ] {
            let error = Config::default().set(change).unwrap_err().to_string();
            assert!(error.contains(problem) && error.starts_with("host."), "{error}");
        }
        for (change, problem) in [
            ("host.cores=0", "1 to 1024 cores"),
            ("host.queues=5", "0 to 4"),
            ("host.completion_queues=5", "0 to 4, which is one for each submission queue"),
            ("host.affinity=0:4", "host.affinity: processor 4 is not valid; valid is auto, or processors from 0 to 3"),
            ("host.poll_sleep=101%", "0% to 100%"),
            ("host.poll_gain=101%", "0% to 100%"),
            ("host.window=0ns", "1ns to 1s"),
            ("host.patience=2s", "0ns to 1s"),
            ("host.coalesce=0", "1, which is none, to 256"),
            ("host.poll_thread=16us", "off with host.path=nvme"),
            ("host.load=1025", "0 to 1024"),
            ("host.copy=2s", "from 0ns to 1s"),
            ("host.packet_in=2s", "from 0ns to 1s"),
            ("host.links=65", "0, with which the workload runs on the host itself, to 64"),
        ] {
            let mut config = Config::default();
            config.set(change).unwrap();
            let error = config.check().unwrap_err().to_string();
            assert!(error.contains(problem) && error.starts_with("host."), "{error}");
        }
        let mut config = Config::default();
        ["host.path=scsi", "host.queues=2"].iter().for_each(|change| config.set(change).unwrap());
        assert!(config.check().unwrap_err().to_string().contains("0 or 1 with host.path=scsi"));
        let mut config = Config::default();
        ["host.queues=2", "host.completion_queues=3"].iter().for_each(|change| config.set(change).unwrap());
        assert!(config.check().unwrap_err().to_string().contains("3 is not valid; valid is 0 to 2"));
        let mut config = Config::default();
        ["host.ring=reactor", "host.path=scsi"].iter().for_each(|change| config.set(change).unwrap());
        assert!(config.check().unwrap_err().to_string().contains("reactor is not valid; valid is off, defer_taskrun"));
        let mut config = Config::default();
        ["host.ring=iopoll", "host.completion=poll"].iter().for_each(|change| config.set(change).unwrap());
        assert!(config.check().unwrap_err().to_string().contains("interrupt with host.ring=iopoll"));
        let mut config = Config::default();
        ["host.ring=iopoll", "host.links=1"].iter().for_each(|change| config.set(change).unwrap());
        assert!(
            config
                .check()
                .unwrap_err()
                .to_string()
                .contains("host.ring: iopoll is not valid; valid is off with host.links")
        );
        for (change, problem) in [
            ("host.completion=poll", "host.completion: poll is not valid; valid is interrupt with host.path=lazy"),
            ("host.completion=adaptive", "adaptive is not valid; valid is interrupt with host.path=lazy"),
            ("host.completion=precompletion", "precompletion is not valid; valid is interrupt with host.path=lazy"),
            ("host.ring=sqpoll", "host.ring: sqpoll is not valid; valid is off with host.path=lazy"),
            ("host.coalesce=2", "1 with host.path=lazy"),
            ("host.poll_thread=2s", "off, or a time from 0ns to 1s"),
        ] {
            let mut config = Config::default();
            ["host.path=lazy", change].iter().for_each(|change| config.set(change).unwrap());
            assert!(config.check().unwrap_err().to_string().contains(problem), "{change}");
        }
    }
}
