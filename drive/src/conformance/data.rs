//! Random commands, several at a time, against the model. A block that an outstanding command changes is touched by no other
//! outstanding command, so each command has one right answer.

use std::collections::BTreeMap;
use std::ops::Range;

use nandscape_sim::{Executor, Rng, Seed};
use nandscape_wire_nvme::io::{DEAC, DSM_DEALLOCATE, DsmRange, FUA};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};
use zerocopy::IntoBytes;

use super::host::{Ended, Host};
use super::model::Model;
use super::{Make, Subject};
use crate::mem::HostMem;

/// The size and the mix of the load.
#[derive(Copy, Clone, Debug)]
pub struct Load {
    /// Commands.
    pub steps: u64,
    /// Commands outstanding at a time.
    pub depth: usize,
    /// The most blocks of a command; the drive's own limit counts too.
    pub most_blocks: u32,
    /// Blocks in use, the first half at the beginning of the drive and the second at its end; the whole drive if it
    /// has no more.
    pub span: u64,
    /// Share of commands that read, compare or verify.
    pub reads: f64,
    /// The share of other commands that write zeros or deallocate.
    pub trims: f64,
}

impl Default for Load {
    fn default() -> Load {
        Load { steps: 1_500, depth: 16, most_blocks: 96, span: 4_096, reads: 0.4, trims: 0.25 }
    }
}

/// Checks a drive's data under random commands.
///
/// # Errors
/// The drive's fault.
pub fn data(make: Make<'_>, load: &Load, seed: u64) -> Result<(), String> {
    logged(Executor::new(), make, load, seed).map(|_| ())
}

/// As [`data`], on a given executor; every command's end.
pub(super) fn logged(executor: Executor, make: Make<'_>, load: &Load, seed: u64) -> Result<Vec<Ended>, String> {
    super::run("data", seed, executor, make, async |host, subject| {
        let mut session = Session::new(host, subject, load, seed);
        session.run().await?;
        session.sweep().await?;
        session.sweep().await?;
        Ok(host.log())
    })
}

/// A command that is outstanding.
struct Flight {
    step: u64,
    kind: Kind,
    ranges: Vec<Range<u64>>,
    mem: HostMem,
    expected: Status,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Kind {
    Read,
    Compare,
    Verify,
    Write,
    WriteZeroes,
    Deallocate,
    Hints,
    Flush,
}

impl Kind {
    fn changes(self) -> bool {
        matches!(self, Kind::Write | Kind::WriteZeroes | Kind::Deallocate)
    }
}

struct Session<'a> {
    host: &'a Host,
    load: Load,
    rng: Rng,
    model: Model,
    flights: BTreeMap<u64, Flight>,
    step: u64,
}

impl<'a> Session<'a> {
    fn new(host: &'a Host, subject: &Subject, load: &Load, seed: u64) -> Session<'a> {
        let model = Model::new(&host.info(), subject.deallocation);
        let rng = Seed::new(seed).child("data").rng();
        Session { host, load: *load, rng, model, flights: BTreeMap::new(), step: 0 }
    }

    async fn run(&mut self) -> Result<(), String> {
        while self.step < self.load.steps {
            while self.flights.len() >= self.load.depth {
                self.land().await?;
            }
            let kind = self.kind();
            let ranges = self.ranges(kind);
            while self.conflicts(kind, &ranges) {
                self.land().await?;
            }
            self.issue(kind, ranges);
        }
        self.drain().await
    }

    /// Reads all blocks in use.
    async fn sweep(&mut self) -> Result<(), String> {
        let (blocks, span) = (self.host.info().blocks, self.span());
        let most = u64::from(self.most_blocks());
        for half in [0..span / 2, blocks - (span - span / 2)..blocks] {
            for first in half.clone().step_by(most as usize) {
                let part = first..half.end.min(first + most);
                self.issue(Kind::Read, Vec::from([part]));
                while self.flights.len() >= self.load.depth {
                    self.land().await?;
                }
            }
        }
        self.drain().await
    }

    async fn drain(&mut self) -> Result<(), String> {
        while !self.flights.is_empty() {
            self.land().await?;
        }
        Ok(())
    }

    fn span(&self) -> u64 {
        self.load.span.min(self.host.info().blocks)
    }

    fn most_blocks(&self) -> u32 {
        self.load.most_blocks.min(self.host.info().max_blocks)
    }

    fn kind(&mut self) -> Kind {
        let compares = self.host.info().keeps_data;
        if self.rng.chance(self.load.reads) {
            return match self.rng.below(16) {
                0..=1 => Kind::Verify,
                2..=4 if compares => Kind::Compare,
                _ => Kind::Read,
            };
        }
        if self.rng.chance(self.load.trims) {
            return if self.rng.chance(0.5) { Kind::WriteZeroes } else { Kind::Deallocate };
        }
        match self.rng.below(64) {
            0..=1 => Kind::Hints,
            2..=3 => Kind::Flush,
            _ => Kind::Write,
        }
    }

    fn ranges(&mut self, kind: Kind) -> Vec<Range<u64>> {
        let count = match kind {
            Kind::Flush => 0,
            Kind::Deallocate | Kind::Hints => 1 + self.rng.below(8),
            _ => 1,
        };
        (0..count).map(|_| self.range()).collect()
    }

    /// Half of the ranges are aligned to units, in length too; half of the others are short.
    fn range(&mut self) -> Range<u64> {
        let info = self.host.info();
        let (span, unit) = (self.span(), u64::from(info.unit_bytes / info.lba_bytes).max(1));
        let at = self.rng.below(span);
        let mut start = if at < span / 2 { at } else { info.blocks - span + at };
        let mut most = u64::from(self.most_blocks());
        let aligned = self.rng.chance(0.5);
        if aligned {
            start -= start % unit;
        } else if self.rng.chance(0.5) {
            most = most.min(2 * unit);
        }
        let mut blocks = 1 + self.rng.below(most);
        if aligned && most >= unit {
            blocks = blocks.next_multiple_of(unit).min(most / unit * unit);
        }
        start..(start + blocks).min(info.blocks)
    }

    fn conflicts(&self, kind: Kind, ranges: &[Range<u64>]) -> bool {
        let meets = |flight: &Flight| {
            let overlap = |a: &Range<u64>| flight.ranges.iter().any(|b| a.start < b.end && b.start < a.end);
            (kind.changes() || flight.kind.changes()) && ranges.iter().any(overlap)
        };
        self.flights.values().any(meets)
    }

    fn issue(&mut self, kind: Kind, ranges: Vec<Range<u64>>) {
        let (entry, mem, expected) = self.command(kind, &ranges);
        let tag = self.host.submit(entry, mem.clone());
        self.flights.insert(tag, Flight { step: self.step, kind, ranges, mem, expected });
        self.step += 1;
    }

    /// Makes a command, and applies its change to the model.
    fn command(&mut self, kind: Kind, ranges: &[Range<u64>]) -> (SubmissionEntry, HostMem, Status) {
        let info = self.host.info();
        let blocks = |opcode, range: &Range<u64>| {
            SubmissionEntry::blocks(opcode, info.nsid, range.start, (range.end - range.start) as u32)
        };
        let bytes = |range: &Range<u64>| (range.end - range.start) as usize * info.lba_bytes as usize;
        match (kind, ranges) {
            (Kind::Read, [range]) => {
                // Old contents of the buffer must not be mistaken for data that was read.
                let mem = HostMem::from_bytes(&vec![0xa5; bytes(range)]);
                (blocks(IoOpcode::READ, range), mem, Status::SUCCESS)
            }
            (Kind::Compare, [range]) => self.compare(blocks(IoOpcode::COMPARE, range), range),
            (Kind::Verify, [range]) => (blocks(IoOpcode::VERIFY, range), HostMem::none(), Status::SUCCESS),
            (Kind::Write, [range]) => {
                let (stamp, data) = self.model.new_data(range);
                self.model.write(range, stamp);
                let entry = self.flagged(blocks(IoOpcode::WRITE, range), FUA, 0.1);
                (entry, HostMem::from_bytes(&data), Status::SUCCESS)
            }
            (Kind::WriteZeroes, [range]) => {
                self.model.clear(range);
                let entry = self.flagged(blocks(IoOpcode::WRITE_ZEROES, range), FUA, 0.1);
                (self.flagged(entry, DEAC, 0.5), HostMem::none(), Status::SUCCESS)
            }
            (Kind::Flush, _) => (SubmissionEntry::io(IoOpcode::FLUSH, info.nsid), HostMem::none(), Status::SUCCESS),
            _ => self.dataset_management(kind, ranges),
        }
    }

    fn flagged(&mut self, mut entry: SubmissionEntry, flag: u32, probability: f64) -> SubmissionEntry {
        if self.rng.chance(probability) {
            entry.cdw12 |= flag;
        }
        entry
    }

    /// Compares with the right data, or with one bit of it flipped. Blocks with unknown data are verified instead.
    fn compare(&mut self, entry: SubmissionEntry, range: &Range<u64>) -> (SubmissionEntry, HostMem, Status) {
        let Some(mut data) = self.model.data(range) else {
            let verify = SubmissionEntry { opcode: IoOpcode::VERIFY.0, ..entry };
            return (verify, HostMem::none(), Status::SUCCESS);
        };
        let mut expected = Status::SUCCESS;
        if self.rng.chance(0.5) {
            let at = self.rng.below(data.len() as u64) as usize;
            data[at] ^= 1 << self.rng.below(8);
            expected = Status::COMPARE_FAILURE;
        }
        (entry, HostMem::from_bytes(&data), expected)
    }

    fn dataset_management(&mut self, kind: Kind, ranges: &[Range<u64>]) -> (SubmissionEntry, HostMem, Status) {
        let mut entry = SubmissionEntry::deallocate(self.host.info().nsid, ranges.len() as u32);
        if kind == Kind::Deallocate {
            ranges.iter().for_each(|range| self.model.deallocate(range));
        } else {
            entry.cdw11 &= !DSM_DEALLOCATE;
        }
        let list: Vec<DsmRange> = ranges
            .iter()
            .map(|range| DsmRange {
                context_attributes: 0.into(),
                blocks: ((range.end - range.start) as u32).into(),
                slba: range.start.into(),
            })
            .collect();
        (entry, HostMem::from_bytes(list.as_bytes()), Status::SUCCESS)
    }

    /// Waits for a command to end, and checks its result.
    async fn land(&mut self) -> Result<(), String> {
        let Ended { tag, completion, .. } = self.host.next().await?;
        let Some(Flight { step, kind, ranges, mem, expected }) = self.flights.remove(&tag) else {
            return Err(format!("command {tag} ended, which is not outstanding"));
        };
        let at = |what: String| format!("step {step}, {kind:?} of {ranges:?}: {what}");
        if completion.status.meaning() != expected {
            return Err(at(format!("ended with {} instead of {expected}", completion.status)));
        }
        match (kind, &ranges[..]) {
            (Kind::Read, [range]) if self.host.info().keeps_data => self.model.check(range, &mem.to_vec()).map_err(at),
            _ => Ok(()),
        }
    }
}
