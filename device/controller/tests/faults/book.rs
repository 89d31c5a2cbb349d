//! A host that keeps what each block may hold.
//!
//! A block's content is told by a number that is written all over it. As long as nothing fails, a block holds what was
//! written last. A write that failed may have come to anything between nothing and all of it; a power cut may take back
//! what was not flushed. Then a block has several candidates, until it is read.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use nandscape_drive::conformance::Host;
use nandscape_drive::{Controller, HostMem, QueueDrive, QueueId};
use nandscape_sim::{Rng, Seed, Sim};
use nandscape_wire_nvme::io::DsmRange;
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};
use zerocopy::IntoBytes;

use crate::common::{Drive, read};

/// What a round asks for.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Load {
    Write,
    Read,
    Deallocate,
    Flush,
}

impl Load {
    pub(crate) const ALL: [Load; 4] = [Load::Write, Load::Read, Load::Deallocate, Load::Flush];
}

/// Commands of a round, each on an extent of its own.
const COMMANDS: u64 = 12;

/// What is known of a block.
#[derive(Clone, Debug)]
struct Block {
    /// What it holds: one, as long as nothing went wrong.
    now: BTreeSet<u64>,
    /// What it held, or may have held, since it was last known to be on flash.
    before: BTreeSet<u64>,
}

pub(crate) struct Book {
    drive: Drive,
    host: Host,
    rng: Rng,
    seed: u64,
    blocks: Vec<Block>,
    next: u64,
    failed: u64,
    /// Whether a power cut takes back what was not flushed.
    volatile: bool,
}

struct Asked {
    load: Load,
    slba: u64,
    count: u64,
    value: u64,
    mem: HostMem,
    tag: u64,
}

impl Book {
    pub(crate) fn new(sim: &Sim, drive: &Drive, blocks: u64) -> Book {
        let seed = std::env::var("NANDSCAPE_TEST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
        let queue: Rc<QueueDrive> = QueueDrive::new(sim, drive.clone(), QueueId(1), 32).unwrap();
        let unwritten = Block { now: BTreeSet::from([0]), before: BTreeSet::new() };
        Book {
            drive: drive.clone(),
            host: Host::new(sim, queue),
            rng: Seed::new(seed).rng(),
            seed,
            blocks: vec![unwritten; blocks as usize],
            next: 0,
            failed: 0,
            volatile: drive.info().volatile_cache,
        }
    }

    /// Commands that failed.
    pub(crate) fn failed(&self) -> u64 {
        self.failed
    }

    /// Some commands at once, and then a flush, if that is among the loads, every few rounds.
    pub(crate) async fn round(&mut self, loads: &[Load]) {
        let each = self.blocks.len() as u64 / COMMANDS;
        let mut asked = Vec::new();
        for part in 0..COMMANDS {
            let load = loads[self.rng.below(loads.len() as u64) as usize];
            let load = if load == Load::Flush { Load::Write } else { load };
            // Mostly large, so that there is something to collect; some within a mapping unit.
            let count = if self.rng.chance(0.3) { 1 + self.rng.below(7) } else { 32 + self.rng.below(224) };
            let slba = part * each + self.rng.below(each - count);
            asked.push(self.ask(load, slba, count));
        }
        self.settle(asked).await;
        if loads.contains(&Load::Flush) && self.rng.chance(0.2) {
            self.flush().await;
        }
    }

    pub(crate) async fn read_all(&mut self) {
        self.all(Load::Read).await;
    }

    pub(crate) async fn write_all(&mut self) {
        self.all(Load::Write).await;
    }

    async fn all(&mut self, load: Load) {
        for first in (0..self.blocks.len() as u64).step_by(64) {
            let asked = self.ask(load, first, 64);
            self.settle(vec![asked]).await;
        }
    }

    fn ask(&mut self, load: Load, slba: u64, count: u64) -> Asked {
        self.next += 1;
        let value = self.next;
        let bytes = count as usize * 512;
        let (entry, mem) = match load {
            Load::Read => (read(slba, count as u32), HostMem::zeroed(bytes)),
            Load::Deallocate => {
                let range = DsmRange { slba: slba.into(), blocks: (count as u32).into(), ..Default::default() };
                (SubmissionEntry::deallocate(1, 1), HostMem::from_bytes(range.as_bytes()))
            }
            _ => {
                let content: Vec<u8> = (0..bytes / 8).flat_map(|_| value.to_le_bytes()).collect();
                (SubmissionEntry::blocks(IoOpcode::WRITE, 1, slba, count as u32), HostMem::from_bytes(&content))
            }
        };
        let tag = self.host.submit(entry, mem.clone());
        Asked { load, slba, count, value, mem, tag }
    }

    /// Waits for all, and enters what they came to.
    async fn settle(&mut self, asked: Vec<Asked>) {
        let cuts = self.drive.ftl().media().power_cuts();
        let mut statuses = BTreeMap::new();
        for _ in &asked {
            let ended = self.host.next().await.unwrap_or_else(|fault| panic!("seed {}: {fault}", self.seed));
            statuses.insert(ended.tag, ended.completion.status.meaning());
        }
        let cut = self.drive.ftl().media().power_cuts() != cuts;
        for asked in asked {
            let status = statuses[&asked.tag];
            self.failed += u64::from(!status.is_success());
            self.check_status(&asked, status);
            match asked.load {
                Load::Read if status.is_success() => self.check_read(&asked),
                Load::Read => {}
                _ => self.enter(&asked, status),
            }
        }
        if cut {
            self.revert();
        }
    }

    /// Power was cut: what was not known to be on flash may have been taken back, where the buffer does not keep it.
    fn revert(&mut self) {
        for block in &mut self.blocks {
            let before = std::mem::take(&mut block.before);
            if self.volatile {
                block.now.extend(before);
            }
        }
    }

    fn check_status(&self, asked: &Asked, status: Status) {
        let valid: &[Status] = match asked.load {
            Load::Read => &[Status::SUCCESS, Status::UNRECOVERED_READ_ERROR, Status::ABORTED_POWER_LOSS],
            _ => &[Status::SUCCESS, Status::NAMESPACE_WRITE_PROTECTED, Status::WRITE_FAULT, Status::ABORTED_POWER_LOSS],
        };
        assert!(valid.contains(&status), "seed {}: {:?} ended with {status}", self.seed, asked.load);
    }

    fn check_read(&mut self, asked: &Asked) {
        let content = asked.mem.to_vec();
        for (number, bytes) in (asked.slba..).zip(content.chunks(512)) {
            let value = u64::from_le_bytes(bytes[..8].try_into().unwrap());
            assert!(
                bytes.chunks(8).all(|word| word == value.to_le_bytes()),
                "seed {}: block {number} is torn",
                self.seed
            );
            let block = &mut self.blocks[number as usize];
            assert!(block.now.contains(&value), "seed {}: block {number} holds {value}, not {block:?}", self.seed);
            block.now = BTreeSet::from([value]);
        }
    }

    fn enter(&mut self, asked: &Asked, status: Status) {
        let unit = 8;
        for number in asked.slba..asked.slba + asked.count {
            // Only whole mapping units are deallocated.
            let (first, last) = (number / unit * unit, number / unit * unit + unit);
            let whole = first >= asked.slba && last <= asked.slba + asked.count;
            let value = match asked.load {
                Load::Deallocate if whole => 0,
                Load::Deallocate => continue,
                _ => asked.value,
            };
            let block = &mut self.blocks[number as usize];
            let before = block.now.clone();
            block.before.extend(&before);
            block.now = if status.is_success() { BTreeSet::new() } else { before };
            block.now.insert(value);
        }
    }

    async fn flush(&mut self) {
        let cuts = self.drive.ftl().media().power_cuts();
        let ended = self.host.execute(SubmissionEntry::io(IoOpcode::FLUSH, 1), HostMem::none()).await.unwrap();
        let cut = self.drive.ftl().media().power_cuts() != cuts;
        if ended.status.is_success() {
            self.blocks.iter_mut().for_each(|block| block.before.clear());
        } else if cut {
            self.revert();
        }
        self.failed += u64::from(!ended.status.is_success());
    }
}
