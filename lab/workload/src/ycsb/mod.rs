//! The core workloads of YCSB as loads on a drive: clients in closed loop on a small key-value table.
//!
//! | file | what |
//! |---|---|
//! | `mix` | the workloads A to F: shares of operations, and the distribution of records |
//! | `choice` | the choice of an operation's record |
//! | `table` | the positions of records, and which exist |
//! | `client` | the requests of an operation |
//! | `keys` | the table `[[ycsb]]` of a workload file |
//!
//! Shares of operations, distributions, the record of 1 KB and scans of 1 to 100 records are YCSB's own. Left out: the
//! processor's time, logs, indexes (the position of a record is computed, as in a store with its index in memory), and
//! latches: two clients may write one page at the same time.

mod choice;
mod client;
mod keys;
mod mix;
mod table;

use std::rc::Rc;

use nandscape_sim::Seed;
use nandscape_sim::units::Bytes;

use self::client::{Setting, Thread};
pub use self::table::Table;
use crate::client::Client;
use crate::run::Runner;
use crate::words::Share;

pub use choice::Chooser;
pub(crate) use keys::Keys;
pub use mix::{Choice, Mix, Operation};

/// A core workload with its parameters.
#[derive(Clone, PartialEq, Debug)]
pub struct Ycsb {
    /// The shares of operations.
    pub mix: Mix,
    /// The distribution of records.
    pub choice: Choice,
    /// Whether clients load the table, or run on a loaded one.
    pub phase: Phase,
    /// Clients, each with one operation at a time.
    pub threads: u32,
    /// Records of the loaded table; by default as many as fit in `size`.
    pub records: Option<u64>,
    /// Bytes of a record.
    pub record_size: u64,
    /// Bytes of a page, the unit of reads and writes.
    pub page_size: u64,
    /// The share of the slots that are occupied in the loaded table, above 0 up to 1.
    pub load_factor: f64,
    /// The part of the drive that the table may take, from the beginning.
    pub size: Share,
    /// Bytes of the store's cache of pages.
    pub cache: u64,
    /// The largest number of records in a scan.
    pub max_scan: u64,
    /// Whether each update and insert is made durable.
    pub sync: bool,
}

/// The two phases of YCSB.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Phase {
    /// All records are inserted, and the load ends.
    Load,
    /// Operations on a loaded table.
    Run,
}

impl Ycsb {
    /// Its description for reports.
    pub(crate) fn describe(&self) -> String {
        let shares: Vec<String> = match self.phase {
            Phase::Load => vec!["phase=load".to_owned()],
            Phase::Run => {
                let given = self.mix.shares().into_iter().filter(|(_, share)| *share > 0.0);
                given.map(|(operation, share)| format!("{}={share}%", operation.name())).collect()
            }
        };
        let records = self.records.map_or("all that fit".to_owned(), |records| records.to_string());
        let Ycsb { choice, threads, record_size, page_size, load_factor, size, cache, max_scan, sync, .. } = self;
        format!(
            "{} distribution={} threads={threads} records={records} record_size={} page_size={} \
             load_factor={load_factor} size={size} cache={} max_scan={max_scan} sync={sync}",
            shares.join(" "),
            choice.name(),
            Bytes(*record_size),
            Bytes(*page_size),
            Bytes(*cache)
        )
    }

    /// Checks that the load fits a drive.
    pub(crate) fn check_on(&self, capacity: u64, lba_bytes: u32) -> Result<(), String> {
        self.plan(capacity, lba_bytes).map(drop)
    }

    /// The numbers of records and of slots on a drive.
    fn plan(&self, capacity: u64, lba_bytes: u32) -> Result<(u64, Table), String> {
        let (page, record) = (Bytes(self.page_size), Bytes(self.record_size));
        if !self.page_size.is_multiple_of(u64::from(lba_bytes)) {
            return Err(format!("page_size = {page} is not a multiple of the drive's logical block, {lba_bytes}B"));
        }
        let room = self.size.bytes(capacity);
        if room > capacity {
            return Err(format!("size = {} is more than the drive has, {}", self.size, Bytes(capacity)));
        }
        let most = Table::slots_in(room, self.page_size, self.record_size);
        let wanted = self.records.map(|records| libm::ceil(records as f64 / self.load_factor) as u64);
        let slots = wanted.unwrap_or(most);
        if most == 0 {
            return Err(format!("size = {} of a drive of {} has no room for a record", self.size, Bytes(capacity)));
        }
        if slots > most {
            return Err(format!(
                "{} records of {record} need {slots} slots, and size = {} of a drive of {} has {most}; a larger drive, or \
                 fewer records, are needed",
                self.records.unwrap_or(0),
                self.size,
                Bytes(capacity)
            ));
        }
        let records = self.records.unwrap_or((slots as f64 * self.load_factor) as u64).max(1);
        let table_bytes = slots.saturating_mul(self.record_size.max(1));
        if self.phase == Phase::Run && self.mix.only_reads() && self.cache >= table_bytes.max(self.page_size) {
            return Err(format!(
                "cache = {} holds the whole table, {}: nothing would reach the drive",
                Bytes(self.cache),
                Bytes(table_bytes)
            ));
        }
        Ok((records, Table::new(slots, self.page_size, self.record_size)))
    }

    /// Makes the table and starts the clients.
    pub(crate) fn start(&self, runner: &Rc<Runner>, client: &Rc<Client>, seed: Seed) -> Vec<String> {
        let (records, mut table) = match self.plan(client.info().bytes(), client.info().lba_bytes) {
            Ok(plan) => plan,
            Err(problem) => {
                client.give_up(problem);
                return Vec::new();
            }
        };
        table.scatter(&mut seed.child("places").rng());
        let setting = Rc::new(Setting::new(self, client, table, records));
        for number in 0..u64::from(self.threads) {
            let thread = Thread::new(&setting, seed.child("client").nth(number));
            runner.spawn_thread(thread.work());
        }
        Vec::new()
    }
}
