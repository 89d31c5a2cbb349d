//! Loads whose requests depend on each other: threads on a file system, clients of a key-value store. Each thread is a
//! task that awaits its requests, in closed loop.

use std::rc::Rc;

use nandscape_sim::Seed;
use nandscape_wire_nvme::vendor::Attributes;

use crate::client::Client;
use crate::filebench::Filebench;
use crate::run::Runner;
use crate::ycsb::Ycsb;

/// One load, with its own queue pair.
#[derive(Clone, PartialEq, Debug)]
pub struct LoadSpec {
    /// What it is called.
    pub name: String,
    /// What it does.
    pub kind: LoadKind,
    /// The class and the tenant of its commands, by rules ([`Workload::assign`](crate::Workload::assign)).
    pub assigned: Attributes,
}

/// The kinds of loads.
#[derive(Clone, PartialEq, Debug)]
pub enum LoadKind {
    /// A personality of filebench on a file system.
    Filebench(Filebench),
    /// A core workload of YCSB on a key-value table.
    Ycsb(Ycsb),
}

impl LoadSpec {
    /// Checks that it can run on a drive of `capacity` bytes in logical blocks of `lba_bytes`.
    pub(crate) fn check_on(&self, capacity: u64, lba_bytes: u32) -> Result<(), String> {
        match &self.kind {
            LoadKind::Filebench(spec) => spec.check_on(capacity, lba_bytes),
            LoadKind::Ycsb(spec) => spec.check_on(capacity, lba_bytes),
        }
    }

    /// An upper bound on the time to issue this number of requests, as far as the load determines it.
    pub(crate) fn longest_s(&self, requests: u64) -> f64 {
        match &self.kind {
            LoadKind::Filebench(spec) => spec.longest_s(requests),
            LoadKind::Ycsb(_) => 0.0,
        }
    }

    /// Its description for reports.
    pub fn describe(&self) -> String {
        let what = match &self.kind {
            LoadKind::Filebench(spec) => spec.describe(),
            LoadKind::Ycsb(spec) => spec.describe(),
        };
        format!("{}: {what}", self.name)
    }

    /// Starts its threads. Returns notes on changes made to fit the drive.
    pub(crate) fn start(&self, runner: &Rc<Runner>, client: &Rc<Client>, seed: Seed) -> Vec<String> {
        match &self.kind {
            LoadKind::Filebench(spec) => spec.start(runner, client, seed),
            LoadKind::Ycsb(spec) => spec.start(runner, client, seed),
        }
    }
}
