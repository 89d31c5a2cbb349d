//! Blocks at fixed places of drives: the storage engine of the thesis (Shin 5.3) without its recovery, below its cache.
//!
//! Blocks are striped and mirrored (RAID-1+0): block `n` is at place `n / groups` of each drive of group `n % groups`. A written block waits in
//! memory, which has the authoritative copy until each drive of its group has that version. A newer version cancels the writes of an older one
//! that have not begun. Each drive takes its writes in order, while it has a token; reads go to the drives without one.
//!
//! | file | what |
//! |---|---|
//! | `mod` | what users call: read, write, close |
//! | `waiting` | versions that wait for their drives |
//! | `epochs` | tokens and writes |
//!
//! Left out: items, which the engine of logs has; recovery after a crash, parity and lost drives, as in the thesis; zones and reclaim unit
//! handles, whose use is to write in another order.

mod epochs;
mod waiting;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_apps_store::Host;
use nandscape_sim::Span;
use nandscape_sim::signal::Signal;
use nandscape_wire_nvme::vendor::Attributes;

use crate::config::PATIENCE_MS;
use crate::drives::{Given, Member, least_busy};
use crate::error::{EngineError, OpenError};
use crate::policy::{Need, Policy};
use crate::stats::Stats;
use waiting::Waiting;

/// The part of all blocks that may wait for their drives: 8 is an eighth.
const MOST_DIRTY: u64 = 8;

/// How blocks are held.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct BlocksConfig {
    /// Bytes of a block: a multiple of the unit in which the drives map their data.
    pub block: u64,
    /// The limit of unwritten bytes: at least one block, and at most an eighth of all blocks. A write above the limit waits.
    pub dirty: u64,
}

/// Why a write or a read is not possible.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BlocksError {
    /// Beyond the last block, or not inside one.
    #[error("block {block}, bytes {first} to {end}: a part of one of {blocks} blocks of {bytes} bytes is valid")]
    Outside {
        /// The block.
        block: u64,
        /// The first byte in it.
        first: u64,
        /// Its end, exclusive.
        end: u64,
        /// Blocks.
        blocks: u64,
        /// Bytes of each.
        bytes: u64,
    },
    /// Other bytes than those of a block.
    #[error("a write of {bytes} bytes: {block} bytes, a whole block, are valid")]
    Length {
        /// Bytes of the write.
        bytes: u64,
        /// Bytes of a block.
        block: u64,
    },
    /// A write after [`Blocks::close`].
    #[error("the store is closed")]
    Closed,
    /// The store does not serve any more.
    #[error(transparent)]
    Failed(#[from] EngineError),
}

/// See the file.
pub struct Blocks {
    host: Host,
    config: BlocksConfig,
    policy: Box<dyn Policy>,
    members: Vec<Rc<Member>>,
    count: u64,
    waiting: RefCell<Waiting>,
    stats: Cell<Counts>,
    /// Notified when a queue, the room or the failure changes.
    changed: Signal,
    /// Writes that wait for room.
    waiters: Cell<u64>,
    failed: RefCell<Option<EngineError>>,
    is_closing: Cell<bool>,
    /// Tasks at work on drives.
    working: Cell<usize>,
    turn: Cell<u64>,
}

/// What is counted here.
#[derive(Copy, Clone, Default)]
struct Counts {
    reads: u64,
    memory_hits: u64,
    throttled: u64,
    epochs: u64,
}

impl Blocks {
    /// Opens a store on drives, whatever is on them, and begins to serve. Its blocks fill the smallest drive.
    ///
    /// # Errors
    /// When the number of drives, the policy or the size of a block is not valid, or a drive fails.
    pub async fn open(
        host: &Host,
        drives: Vec<Given>,
        policy: Box<dyn Policy>,
        config: BlocksConfig,
    ) -> Result<Rc<Blocks>, OpenError> {
        let (count, replicas) = (drives.len(), policy.replicas());
        if count == 0 || !count.is_multiple_of(replicas) {
            return Err(OpenError::Count(count));
        }
        if matches!(policy.needs(), Need::Zones | Need::Placement(_)) {
            return Err(OpenError::InPlace(policy.name()));
        }
        let mut members = Vec::new();
        for (number, given) in drives.into_iter().enumerate() {
            let wanted = (policy.needs(), Span::from_ms(PATIENCE_MS));
            members.push(Rc::new(Member::new(host, number, Some(given), wanted).await?));
        }
        let infos = || members.iter().filter_map(|member| member.disk()).map(|disk| disk.info);
        let unit = infos().map(|info| u64::from(info.unit_bytes.max(info.lba_bytes))).max().unwrap_or(1);
        if config.block == 0 || !config.block.is_multiple_of(unit) {
            return Err(OpenError::Block { block: config.block, unit });
        }
        let of_drive = infos().map(|info| info.bytes() / config.block).min().unwrap_or(0);
        if of_drive == 0 {
            return Err(OpenError::Block { block: config.block, unit });
        }
        let all = of_drive * (count / replicas) as u64;
        // Else random writes could replace versions faster than drives take them, and no drive would be read.
        let most = (all / MOST_DIRTY).max(1) * config.block;
        if config.dirty > most {
            return Err(OpenError::Dirty { dirty: config.dirty, most });
        }
        let blocks = Rc::new(Blocks {
            host: host.clone(),
            config: BlocksConfig { dirty: config.dirty.max(config.block), ..config },
            waiting: RefCell::new(Waiting::new(count, replicas)),
            count: all,
            policy,
            members,
            stats: Cell::default(),
            changed: Signal::new(host.sim()),
            waiters: Cell::new(0),
            failed: RefCell::default(),
            is_closing: Cell::new(false),
            working: Cell::new(0),
            turn: Cell::new(0),
        });
        blocks.begin();
        Ok(blocks)
    }

    /// Blocks.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The host that it runs on.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Why it does not serve any more, if so.
    pub fn failure(&self) -> Option<EngineError> {
        self.failed.borrow().clone()
    }

    /// Closes open spans in the event trace.
    pub fn trace_open(&self) {
        self.members.iter().for_each(|member| member.trace_open());
    }

    /// Whether a block is read from memory: a version of it waits for its drives.
    pub fn is_in_memory(&self, block: u64) -> bool {
        self.waiting.borrow().newest(block).is_some()
    }

    /// Bytes of a block, `first` to `end`, for a tenant and with a class, and whether a drive was read. While a drive is written that is not
    /// kept from reads, each unit of the drive is of one version, but they may be of several. The future is polled to its end: a drive counts
    /// its reads.
    ///
    /// # Errors
    /// When there are no such bytes, or a drive has failed.
    pub async fn read(
        &self,
        block: u64,
        (first, end): (u64, u64),
        by: Attributes,
    ) -> Result<(Vec<u8>, bool), BlocksError> {
        self.check(block, (first, end))?;
        self.host.operation().await;
        let waiting = self.waiting.borrow().newest(block).cloned();
        let is_hit = waiting.is_some();
        let counts = self.stats.get();
        let memory_hits = counts.memory_hits + u64::from(is_hit);
        self.stats.set(Counts { reads: counts.reads + 1, memory_hits, ..counts });
        let bytes = match waiting {
            Some(bytes) => bytes[first as usize..end as usize].to_vec(),
            None => {
                let member = self.to_read(block);
                let place = (self.place(block) + first, (end - first) as usize);
                member.read(place, self.policy.keeps_reads_apart(), by, member.patience).await?
            }
        };
        self.host.bytes(bytes.len()).await;
        Ok((bytes, !is_hit))
    }

    /// Writes a whole block. It waits while too many bytes wait for their drives. The future is polled to its end: drives are due while it waits.
    ///
    /// # Errors
    /// When there is no such block, it has other bytes, the store is closed, or a drive has failed.
    pub async fn write(&self, block: u64, bytes: Rc<[u8]>) -> Result<(), BlocksError> {
        if bytes.len() as u64 != self.config.block {
            return Err(BlocksError::Length { bytes: bytes.len() as u64, block: self.config.block });
        }
        self.check(block, (0, self.config.block))?;
        self.host.operation().await;
        self.host.bytes(bytes.len()).await;
        if !self.has_room_for(block) {
            self.room_for(block).await;
        }
        self.failure().map_or(Ok(()), Err)?;
        // Tasks of drives may have ended.
        if self.is_closing.get() {
            return Err(BlocksError::Closed);
        }
        self.waiting.borrow_mut().put(block, self.group_of(block), bytes, self.host.sim().now());
        self.changed.notify();
        Ok(())
    }

    /// Waits until its drives have all blocks that were written, and ends. Writes that have not returned are rejected.
    ///
    /// # Errors
    /// When a drive has failed.
    pub async fn close(&self) -> Result<(), EngineError> {
        self.is_closing.set(true);
        self.changed.notify();
        while self.working.get() > 0 {
            self.changed.changed().await;
        }
        self.failure().map_or(Ok(()), Err)
    }

    /// Counters. Those of items stay 0.
    pub fn stats(&self) -> Stats {
        let counts = self.stats.get();
        let waiting = self.waiting.borrow();
        let sum = |of: fn(&Member) -> u64| self.members.iter().map(|member| of(member)).sum::<u64>();
        Stats {
            gets: counts.reads,
            memory_hits: counts.memory_hits,
            drive_hits: counts.reads - counts.memory_hits,
            waiting_bytes: waiting.blocks() * self.config.block,
            cancelled: waiting.cancelled(),
            throttled: counts.throttled,
            epochs: counts.epochs,
            read_bytes: sum(|member| member.disk().map_or(0, |disk| disk.read_bytes.get())),
            written_bytes: sum(|member| member.disk().map_or(0, |disk| disk.written_bytes.get())),
            reads_at_tokens: sum(Member::reads_at_token),
            window_lapses: sum(|member| member.windows().map_or(0, |windows| windows.lapses())),
            ..Stats::default()
        }
    }

    fn check(&self, block: u64, (first, end): (u64, u64)) -> Result<(), BlocksError> {
        let (blocks, bytes) = (self.count, self.config.block);
        match block < blocks && first < end && end <= bytes {
            true => Ok(()),
            false => Err(BlocksError::Outside { block, first, end, blocks, bytes }),
        }
    }

    fn has_room_for(&self, block: u64) -> bool {
        let waiting = self.waiting.borrow();
        waiting.newest(block).is_some() || (waiting.blocks() + 1) * self.config.block <= self.config.dirty
    }

    /// Waits for room for a block, or until no drive is written any more.
    async fn room_for(&self, block: u64) {
        let counts = self.stats.get();
        self.stats.set(Counts { throttled: counts.throttled + 1, ..counts });
        self.waiters.set(self.waiters.get() + 1);
        // Drives are due now.
        self.changed.notify();
        while !self.has_room_for(block) && self.failure().is_none() && !self.is_closing.get() {
            self.changed.changed().await;
        }
        self.waiters.set(self.waiters.get() - 1);
    }

    /// Drives with the same blocks.
    fn replicas(&self) -> usize {
        self.policy.replicas()
    }

    fn group_of(&self, block: u64) -> usize {
        (block % (self.members.len() / self.replicas()) as u64) as usize
    }

    /// Where a block begins on its drives, in bytes.
    fn place(&self, block: u64) -> u64 {
        block / (self.members.len() / self.replicas()) as u64 * self.config.block
    }

    /// The drive that a block is read from.
    fn to_read(&self, block: u64) -> &Rc<Member> {
        self.turn.set(self.turn.get() + 1);
        let first = self.group_of(block) * self.replicas();
        let group = &self.members[first..first + self.replicas()];
        let apart = self.policy.keeps_reads_apart();
        let turn = (self.turn.get() % self.replicas() as u64) as usize;
        least_busy(group, apart, None, turn).expect("no drive of these is given up")
    }
}
