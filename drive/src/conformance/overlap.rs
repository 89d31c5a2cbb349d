//! Writes of the same blocks at the same time. The drive may apply them in any order, but each logical block must hold the
//! whole data of one of them (NVM 2.1.4, "Atomic Operations": a logical block is the least atomic unit).

use std::ops::Range;

use nandscape_sim::{Executor, Seed};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

use super::Make;
use super::host::Host;
use super::model::{Deallocation, Model};
use crate::mem::HostMem;

const ROUNDS: u32 = 60;
/// The blocks that are written.
const WINDOW: u64 = 40;

/// Checks a drive under overlapping writes, with reads among them.
///
/// # Errors
/// The drive's fault.
pub fn overlap(make: Make<'_>, seed: u64) -> Result<(), String> {
    super::run("overlap", seed, Executor::new(), make, async |host, _| {
        if !host.info().keeps_data {
            return Ok(());
        }
        let mut rng = Seed::new(seed).child("overlap").rng();
        let mut model = Model::new(&host.info(), Deallocation::OldOrZeros);
        // The contents of each block before the round: the stamp of a write, 0 for zeros.
        let mut before = vec![0; WINDOW as usize];
        for round in 0..ROUNDS {
            let most = u64::from(host.info().max_blocks);
            let range = |first: u64, last: u64| first.min(last)..(first.max(last) + 1).min(first.min(last) + most);
            let mut round = Round { number: round, host, before, writes: Vec::new(), reads: Vec::new() };
            for _ in 0..2 + rng.below(5) {
                let range = range(rng.below(WINDOW), rng.below(WINDOW));
                match rng.chance(0.3) {
                    true => round.read(&range),
                    false => round.write(&mut model, &range),
                }
            }
            before = round.settle(&model).await?;
        }
        Ok(())
    })
}

struct Round<'a> {
    number: u32,
    host: &'a Host,
    before: Vec<u64>,
    writes: Vec<(Range<u64>, u64)>,
    reads: Vec<(Range<u64>, HostMem)>,
}

impl Round<'_> {
    fn submit(&self, opcode: IoOpcode, range: &Range<u64>, mem: HostMem) {
        let blocks = (range.end - range.start) as u32;
        self.host.submit(SubmissionEntry::blocks(opcode, self.host.info().nsid, range.start, blocks), mem);
    }

    fn write(&mut self, model: &mut Model, range: &Range<u64>) {
        let (stamp, data) = model.new_data(range);
        self.submit(IoOpcode::WRITE, range, HostMem::from_bytes(&data));
        self.writes.push((range.clone(), stamp));
    }

    fn read(&mut self, range: &Range<u64>) {
        let mem = HostMem::zeroed((range.end - range.start) as usize * self.host.info().lba_bytes as usize);
        self.submit(IoOpcode::READ, range, mem.clone());
        self.reads.push((range.clone(), mem));
    }

    async fn next(&self) -> Result<(), String> {
        match self.host.next().await?.completion.status {
            Status::SUCCESS => Ok(()),
            status => Err(format!("round {}: a command ended with {status}", self.number)),
        }
    }

    /// Waits for all commands and checks them; the contents of each block.
    async fn settle(mut self, model: &Model) -> Result<Vec<u64>, String> {
        for _ in 0..self.writes.len() + self.reads.len() {
            self.next().await?;
        }
        for (range, mem) in &self.reads {
            self.stamps(model, range, mem, true)?;
        }
        self.reads.clear();
        let mut now = Vec::new();
        for first in (0..WINDOW).step_by(self.host.info().max_blocks.min(WINDOW as u32) as usize) {
            let part = first..WINDOW.min(first + u64::from(self.host.info().max_blocks));
            self.read(&part);
            self.next().await?;
            let (_, mem) = self.reads.pop().expect("just submitted");
            now.extend(self.stamps(model, &part, &mem, false)?);
        }
        Ok(now)
    }

    /// The write whose data each block holds; `old` is whether it may still hold its data from before the round.
    fn stamps(&self, model: &Model, range: &Range<u64>, mem: &HostMem, old: bool) -> Result<Vec<u64>, String> {
        let data = mem.to_vec();
        let blocks = range.clone().zip(data.chunks_exact(self.host.info().lba_bytes as usize));
        blocks.map(|(lba, bytes)| self.stamp(model, lba, bytes, old)).collect()
    }

    fn stamp(&self, model: &Model, lba: u64, bytes: &[u8], old: bool) -> Result<u64, String> {
        let writes = self.writes.iter().filter(|(range, _)| range.contains(&lba));
        let mut stamps: Vec<u64> = writes.map(|(_, stamp)| *stamp).collect();
        if old || stamps.is_empty() {
            stamps.push(self.before[lba as usize]);
        }
        let holds = |stamp: &u64| match stamp {
            0 => bytes.iter().all(|byte| *byte == 0),
            stamp => bytes.iter().copied().eq(model.pattern(*stamp, lba)),
        };
        stamps.iter().copied().find(holds).ok_or_else(|| {
            let found = model.describe(lba, bytes);
            format!("round {}: block {lba} may hold one of the writes {stamps:?} and holds {found}", self.number)
        })
    }
}
