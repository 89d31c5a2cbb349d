//! A host of a drive with failing flash, which tracks the possible contents of each block.
//!
//! Each write fills its blocks with one number. Without failures, a block holds the number of its last write. A
//! failed write may have written none, some or all of its blocks, and a power cut may lose the contents of a volatile
//! cache. A block then has several possible numbers, until it is read. Reads may fail, but the data that they return
//! must be right.
//!
//! Left out: which reads may fail, and silent corruption.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use nandscape_sim::{Rng, Seed, Sim};
use nandscape_wire_nvme::io::{DEAC, DsmRange};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};
use zerocopy::IntoBytes;

use super::Host;
use crate::drive::{Drive, DriveInfo};
use crate::mem::HostMem;

/// Commands of a round, each on a separate extent.
const COMMANDS: u64 = 12;

/// The commands of a round.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Ask {
    /// Writes.
    Write,
    /// Reads, which are checked.
    Read,
    /// Deallocations.
    Deallocate,
    /// Write Zeroes that deallocates.
    Zeroes,
    /// A flush after some of the rounds.
    Flush,
}

impl Ask {
    /// All of it.
    pub const ALL: [Ask; 5] = [Ask::Write, Ask::Read, Ask::Deallocate, Ask::Zeroes, Ask::Flush];
}

/// The possible contents of a block.
#[derive(Clone, Debug)]
struct Block {
    /// Its possible numbers: exactly one while no command has failed.
    now: BTreeSet<u64>,
    /// Its numbers, certain or possible, since it was last known to be on flash.
    before: BTreeSet<u64>,
}

/// The host and its records.
pub struct Damaged {
    host: Host,
    info: DriveInfo,
    /// Power cuts so far.
    cuts: Box<dyn Fn() -> u32>,
    rng: Rng,
    seed: u64,
    blocks: Vec<Block>,
    next: u64,
    failed: u64,
    /// Whether the drive has reported that it cannot write data that it had accepted.
    cannot_write: bool,
}

struct Asked {
    ask: Ask,
    slba: u64,
    count: u64,
    value: u64,
    mem: HostMem,
    tag: u64,
}

/// The error, in one sentence.
type Verdict = Result<(), String>;

impl Damaged {
    /// A host of a drive on which deallocated mapping units, and at first all blocks, read as zeros.
    pub fn new(sim: &Sim, drive: Rc<dyn Drive>, cuts: impl Fn() -> u32 + 'static, seed: u64) -> Damaged {
        let info = drive.info();
        let zeros = Block { now: BTreeSet::from([0]), before: BTreeSet::new() };
        Damaged {
            host: Host::new(sim, drive),
            info,
            cuts: Box::new(cuts),
            rng: Seed::new(seed).rng(),
            seed,
            blocks: vec![zeros; info.blocks as usize],
            next: 0,
            failed: 0,
            cannot_write: false,
        }
    }

    /// Commands that failed.
    pub fn failed(&self) -> u64 {
        self.failed
    }

    /// Runs some commands at once, at times followed by a flush.
    ///
    /// # Errors
    /// The drive's fault.
    pub async fn round(&mut self, asks: &[Ask]) -> Verdict {
        let each = self.blocks.len() as u64 / COMMANDS;
        let large = u64::from(self.info.max_blocks).min(each / 2);
        let small = u64::from(self.info.unit_bytes / self.info.lba_bytes).min(large);
        let mut asked = Vec::new();
        for part in 0..COMMANDS {
            let ask = asks[self.rng.below(asks.len() as u64) as usize];
            let ask = if ask == Ask::Flush { Ask::Write } else { ask };
            // Mostly large, so that there is garbage to collect; some within a mapping unit.
            let most = if self.rng.chance(0.3) { small } else { large };
            let count = 1 + self.rng.below(most);
            let slba = part * each + self.rng.below(each - count);
            asked.push(self.ask(ask, slba, count));
        }
        self.settle(asked).await?;
        if asks.contains(&Ask::Flush) && self.rng.chance(0.2) {
            self.flush().await?;
        }
        Ok(())
    }

    /// Reads every block.
    ///
    /// # Errors
    /// The drive's fault.
    pub async fn read_all(&mut self) -> Verdict {
        self.all(Ask::Read).await
    }

    /// Writes every block.
    ///
    /// # Errors
    /// The drive's fault.
    pub async fn write_all(&mut self) -> Verdict {
        self.all(Ask::Write).await
    }

    async fn all(&mut self, ask: Ask) -> Verdict {
        let (blocks, step) = (self.blocks.len() as u64, u64::from(self.info.max_blocks).min(64));
        for first in (0..blocks).step_by(step as usize) {
            let asked = self.ask(ask, first, step.min(blocks - first));
            self.settle(vec![asked]).await?;
        }
        Ok(())
    }

    fn ask(&mut self, ask: Ask, slba: u64, count: u64) -> Asked {
        self.next += 1;
        let value = self.next;
        let bytes = count as usize * self.info.lba_bytes as usize;
        let (nsid, blocks) = (self.info.nsid, count as u32);
        let (entry, mem) = match ask {
            Ask::Read => (SubmissionEntry::blocks(IoOpcode::READ, nsid, slba, blocks), HostMem::zeroed(bytes)),
            Ask::Deallocate => {
                let range = DsmRange { slba: slba.into(), blocks: blocks.into(), ..Default::default() };
                (SubmissionEntry::deallocate(nsid, 1), HostMem::from_bytes(range.as_bytes()))
            }
            Ask::Zeroes => {
                let mut entry = SubmissionEntry::blocks(IoOpcode::WRITE_ZEROES, nsid, slba, blocks);
                entry.cdw12 = (entry.cdw12.get() | DEAC).into();
                (entry, HostMem::none())
            }
            Ask::Write | Ask::Flush => {
                let content: Vec<u8> = (0..bytes / 8).flat_map(|_| value.to_le_bytes()).collect();
                (SubmissionEntry::blocks(IoOpcode::WRITE, nsid, slba, blocks), HostMem::from_bytes(&content))
            }
        };
        let tag = self.host.submit(entry, mem.clone());
        Asked { ask, slba, count, value, mem, tag }
    }

    /// Waits for all commands, and records their statuses.
    async fn settle(&mut self, asked: Vec<Asked>) -> Verdict {
        let cuts = (self.cuts)();
        let mut statuses = BTreeMap::new();
        for _ in &asked {
            let ended = self.host.next().await?;
            statuses.insert(ended.tag, ended.completion.status.meaning());
        }
        self.cannot_write |= statuses.values().any(|status| *status == Status::WRITE_FAULT);
        // A cut may also revert writes of the same round, before it or after it.
        let cut = (self.cuts)() != cuts;
        if cut {
            self.revert();
        }
        for asked in asked {
            let status = statuses[&asked.tag];
            self.failed += u64::from(!status.is_success());
            self.check_status(&asked, status)?;
            match asked.ask {
                Ask::Read if status.is_success() => self.check_read(&asked)?,
                Ask::Read => {}
                _ => self.enter(&asked, status),
            }
        }
        if cut {
            self.revert();
        }
        Ok(())
    }

    /// Power was cut: with a volatile cache, data not known to be on flash may be lost. The same holds for any drive that
    /// has reported that it cannot write.
    fn revert(&mut self) {
        if self.info.volatile_cache || self.cannot_write {
            self.blocks.iter_mut().for_each(|block| block.now.extend(&block.before));
        }
    }

    fn check_status(&self, asked: &Asked, status: Status) -> Verdict {
        let valid: &[Status] = match asked.ask {
            Ask::Read => &[Status::SUCCESS, Status::UNRECOVERED_READ_ERROR, Status::ABORTED_POWER_LOSS],
            _ => &[Status::SUCCESS, Status::READ_ONLY_RANGE, Status::WRITE_FAULT, Status::ABORTED_POWER_LOSS],
        };
        match valid.contains(&status) {
            true => Ok(()),
            false => Err(format!("seed {}: {:?} of block {} ended with {status}", self.seed, asked.ask, asked.slba)),
        }
    }

    fn check_read(&mut self, asked: &Asked) -> Verdict {
        let content = asked.mem.to_vec();
        for (number, bytes) in (asked.slba..).zip(content.chunks(self.info.lba_bytes as usize)) {
            let value = u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes"));
            let block = &mut self.blocks[number as usize];
            if !bytes.chunks(8).all(|word| word == value.to_le_bytes()) {
                return Err(format!("seed {}: block {number} is torn", self.seed));
            }
            if !block.now.contains(&value) {
                return Err(format!("seed {}: block {number} holds {value}, not one of {:?}", self.seed, block.now));
            }
            block.now = BTreeSet::from([value]);
        }
        Ok(())
    }

    fn enter(&mut self, asked: &Asked, status: Status) {
        let unit = u64::from(self.info.unit_bytes / self.info.lba_bytes);
        for number in asked.slba..asked.slba + asked.count {
            let first = number / unit * unit;
            let is_whole = first >= asked.slba && first + unit <= asked.slba + asked.count;
            let value = match asked.ask {
                Ask::Deallocate if is_whole => 0,
                Ask::Deallocate => continue,
                Ask::Zeroes => 0,
                _ => asked.value,
            };
            let block = &mut self.blocks[number as usize];
            let before = block.now.clone();
            block.before.extend(&before);
            block.now = if status.is_success() { BTreeSet::new() } else { before };
            block.now.insert(value);
        }
    }

    async fn flush(&mut self) -> Verdict {
        let cuts = (self.cuts)();
        let flush = SubmissionEntry::io(IoOpcode::FLUSH, self.info.nsid);
        let ended = self.host.execute(flush, HostMem::none()).await?;
        if ended.status.is_success() && !self.cannot_write {
            self.blocks.iter_mut().for_each(|block| block.before.clear());
        } else if (self.cuts)() != cuts {
            self.revert();
        }
        self.failed += u64::from(!ended.status.is_success());
        Ok(())
    }
}
