//! The choices of a host by name: its path, its ring, and the window of notices.

use nandscape_sim::Span;

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
    pub(super) fn parse(value: &str) -> Option<Window> {
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
