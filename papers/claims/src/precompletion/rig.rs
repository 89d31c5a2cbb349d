//! Runs of the experiments on precompletion: a host with its costs at, below and above their values, over the drives of the thesis.
//!
//! Left out: everything that one claim alone asks.

use anyhow::{Context as _, Result, bail};
use nandscape_host_path::Profile;
use nandscape_sim::Span;

use nandscape_lab_ledger::experiment::{Choice, Parameter};

/// The factors at which costs are shown, and their names.
pub(crate) const FACTORS: [(f64, &str); 3] = [(1.0, "costs as given"), (0.5, "costs at half"), (2.0, "costs at twice")];

/// The costs of a host: its keys.
const COSTS: [&str; 14] = [
    "host.switch",
    "host.cold_cache",
    "host.cold_core",
    "host.interrupt",
    "host.softirq",
    "host.ipi",
    "host.timer",
    "host.syscall",
    "host.submit",
    "host.driver",
    "host.handler",
    "host.complete",
    "host.wake",
    "host.poll",
];

/// The thesis' machine with all costs at a factor, and changes.
///
/// # Errors
/// When a change is invalid.
pub(crate) fn host(factor: f64, changes: &[&str]) -> Result<Profile> {
    let mut profile = Profile::load("i7-4770")?;
    let settings = profile.config.settings();
    for key in COSTS {
        let given = settings.iter().find(|(name, _)| *name == key).context("a host has all costs")?;
        let Ok(cost) = given.1.parse::<Span>() else { bail!("{key} is {}, which is no time", given.1) };
        let scaled = Span::from_ns((cost.ns() as f64 * factor).round() as u64);
        profile.set_all([format!("{key}={scaled}")])?;
    }
    profile.set_all(changes)?;
    Ok(profile)
}

/// The machine.
pub(crate) const MACHINE: Parameter = Parameter {
    what: "host",
    value: "i7-4770: 4 cores with 2 threads each, 3.4 GHz, CFS",
    source: "Shin 2017, 4.4.1; Linux 3.5",
};
/// Costs.
pub(crate) const COST: Choice = Choice {
    open: "the costs of interrupts, switches, wake-ups and the rest",
    taken: "those of the host profile i7-4770 (`nandscape hosts show i7-4770`), and all of them at half and at twice",
    why: "the thesis gives none; those of the profile are published for other machines, or estimates",
};
/// The way of an I/O.
pub(crate) const PATH: Choice = Choice {
    open: "the driver",
    taken: "a queue pair and an interrupt for each processor, whose handler ends the I/O; notices have one interrupt of their own",
    why: "a driver of the author's own; the emulator's interface is similar to NVMe",
};
