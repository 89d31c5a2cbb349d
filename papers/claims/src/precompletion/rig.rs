//! Runs of the experiments on precompletion: a host with its costs at, below and above their values, over the drives of the thesis.
//!
//! Left out: everything that one claim alone asks.

use nandscape_lab_ledger::experiment::{Choice, Parameter};

/// The factors at which costs are shown, and their names.
pub(crate) const FACTORS: [(f64, &str); 3] = [(1.0, "costs as given"), (0.5, "costs at half"), (2.0, "costs at twice")];

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
