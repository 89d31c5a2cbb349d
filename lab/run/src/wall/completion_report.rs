//! How the thread of a run has learnt of completions, and what that cost.

use std::collections::BTreeMap;

use nandscape_sim::Span;
use serde::Serialize;

use super::completions::Completions;
use super::idle::Idle;

/// How the thread has learnt of a completion.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Learnt {
    /// It waited in the system, and an event descriptor or a socket woke it.
    Woken,
    /// It was to wait, and found the completion before.
    AtOnce,
    /// It polled.
    Polled,
    /// A notice woke it, and it polled until the completion came.
    Ready,
    /// A notice woke it, and the completion was there already.
    Late,
    /// It waited for a notice, and the completion came first.
    Missing,
    /// It polled for nothing, and waited then.
    GaveUp,
}

impl Learnt {
    /// All, by their names in reports.
    pub(super) const ALL: [(&str, Learnt); 7] = [
        ("woken", Learnt::Woken),
        ("at_once", Learnt::AtOnce),
        ("polled", Learnt::Polled),
        ("ready", Learnt::Ready),
        ("late", Learnt::Late),
        ("no_notice", Learnt::Missing),
        ("gave_up", Learnt::GaveUp),
    ];
}

/// A policy on completions at the wall clock. Field names carry their unit.
#[derive(Clone, Debug, Serialize)]
pub struct CompletionReport {
    /// `host.completion`.
    pub policy: &'static str,
    /// Processor time of the thread, a request; null without requests.
    pub thread_cpu_us: Option<f64>,
    /// Processor time of the drive, a request: of the other threads of this process, or of its server; null where nothing reports it.
    pub drive_cpu_us: Option<f64>,
    /// Commands by how the thread has learnt of their ends.
    pub learnt: BTreeMap<&'static str, u64>,
    /// Waits in the system for completions.
    pub waits: u64,
    /// Sleeps that no completion ends.
    pub sleeps: u64,
    /// Looks for completions that found none, with the processor kept.
    pub looks: u64,
    /// The window of notices that an adaptive policy has given the drive last; left out of others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_us: Option<f64>,
    /// Wake-ups without any drive, before the run.
    pub control: ControlReport,
    /// The same set-up without commands, before the run.
    pub idle: IdleReport,
}

/// The processor time of a set-up that is connected and waits by its policy, without commands.
#[derive(Clone, Debug, Serialize)]
pub struct IdleReport {
    /// How long.
    pub s: f64,
    /// The part of this time in which the thread had a processor.
    pub thread_cpu: f64,
    /// The same of the drive's threads, together; null where nothing reports it.
    pub drive_cpu: Option<f64>,
}

impl IdleReport {
    fn of(idle: Idle) -> IdleReport {
        let share = |spent: Span| spent.as_s() / idle.lasted.as_s();
        IdleReport { s: idle.lasted.as_s(), thread_cpu: share(idle.thread), drive_cpu: idle.drive.map(share) }
    }
}

/// How long a signal of another thread takes to wake this one, without any drive.
#[derive(Clone, Debug, Serialize)]
pub struct ControlReport {
    /// Wake-ups.
    pub wakes: u64,
    /// Median of the time from the signal until the thread runs.
    pub p50_us: f64,
    /// Its 99th percentile.
    pub p99_us: f64,
    /// Processor time of the thread, a wake-up.
    pub cpu_us: f64,
}

impl CompletionReport {
    /// Of a measured phase with `requests` requests, in which the drive had the processor time `drive`.
    pub(super) fn new(
        completions: &Completions,
        requests: u64,
        (idle, drive): (Idle, Option<Span>),
    ) -> CompletionReport {
        let of_request = |spent: Span| (requests > 0).then(|| spent.as_us() / requests as f64);
        let (counts, control) = (completions.counts(), completions.control());
        CompletionReport {
            policy: completions.kind().name(),
            thread_cpu_us: of_request(completions.cpu()),
            drive_cpu_us: drive.and_then(of_request),
            learnt: Learnt::ALL.iter().map(|(name, learnt)| (*name, counts.learnt[*learnt as usize])).collect(),
            waits: counts.waits,
            sleeps: counts.sleeps,
            looks: counts.looks,
            window_us: completions.window().map(Span::as_us),
            control: ControlReport {
                wakes: control.count(),
                p50_us: control.median().as_us(),
                p99_us: control.at(0.99).as_us(),
                cpu_us: control.cpu.as_us(),
            },
            idle: IdleReport::of(idle),
        }
    }
}
