//! The ways of a client's commands to a drive: a ring between threads, or the queues of a controller in shared memory.

use std::rc::Rc;

use anyhow::{bail, ensure};
use nandscape_host_driver::vfio_user::{Function, QueuePair, SharedMemory};
use nandscape_sim::Time;
use nandscape_transport_reactor::Handle;
use nandscape_transport_reactor::ring::{Reply, RingHost};
use nandscape_wire_nvme::{Status, SubmissionEntry};

/// Bytes of a read.
pub(crate) const READ: usize = 4_096;

/// The drive at the end of a lane.
#[derive(Copy, Clone)]
pub(crate) struct AtEnd {
    pub(crate) nsid: u32,
    pub(crate) blocks: u64,
    pub(crate) lba_bytes: u32,
}

/// A command that has ended.
pub(crate) struct Ended {
    pub(crate) slot: usize,
    pub(crate) status: Status,
    /// When the model completed it, if the lane reports that.
    pub(crate) at: Option<Time>,
}

/// A lane with [`READ`] bytes of data for each of its slots, which are as many as commands at a time.
pub(crate) trait Lane {
    /// The drive at its end.
    fn drive(&self) -> AtEnd;

    /// Puts a word at the beginning of a slot's data.
    fn put(&mut self, slot: usize, word: u64) -> anyhow::Result<()>;

    /// The word there.
    fn word(&self, slot: usize) -> anyhow::Result<u64>;

    /// Submits a command with a slot's data.
    fn submit(&mut self, slot: usize, command: SubmissionEntry) -> anyhow::Result<()>;

    /// A command that has ended, if there is one.
    fn poll(&mut self) -> anyhow::Result<Option<Ended>>;

    /// Called when no command has ended: does the work at the end of a batch.
    fn pause(&mut self) -> anyhow::Result<()>;
}

/// A ring.
pub(crate) struct RingLane {
    host: RingHost,
    buffers: Vec<Vec<u8>>,
}

impl RingLane {
    pub(crate) fn connect(handle: &Handle, export: u16, depth: usize) -> anyhow::Result<RingLane> {
        match RingHost::connect(handle, export, depth) {
            Ok(host) => Ok(RingLane { host, buffers: vec![vec![0; READ]; depth] }),
            Err(status) => bail!("the drive takes no more clients: {status}"),
        }
    }
}

impl Lane for RingLane {
    fn drive(&self) -> AtEnd {
        let info = self.host.info();
        AtEnd { nsid: info.nsid, blocks: info.blocks, lba_bytes: info.lba_bytes }
    }

    fn put(&mut self, slot: usize, word: u64) -> anyhow::Result<()> {
        self.buffers[slot][..8].copy_from_slice(&word.to_le_bytes());
        Ok(())
    }

    fn word(&self, slot: usize) -> anyhow::Result<u64> {
        let bytes = self.buffers[slot].first_chunk();
        Ok(u64::from_le_bytes(*bytes.ok_or_else(|| anyhow::anyhow!("a buffer has not come back"))?))
    }

    fn submit(&mut self, slot: usize, command: SubmissionEntry) -> anyhow::Result<()> {
        let data = std::mem::take(&mut self.buffers[slot]);
        ensure!(self.host.submit(slot as u64, command, data).is_ok(), "more in flight than the ring holds");
        Ok(())
    }

    fn poll(&mut self) -> anyhow::Result<Option<Ended>> {
        let Some(Reply { tag, status, at, data, .. }) = self.host.poll() else { return Ok(None) };
        self.buffers[tag as usize] = data;
        Ok(Some(Ended { slot: tag as usize, status, at: Some(at) }))
    }

    fn pause(&mut self) -> anyhow::Result<()> {
        ensure!(!self.host.is_disconnected(), "the drive has gone");
        Ok(())
    }
}

/// A queue pair of a PCI function.
pub(crate) struct FunctionLane {
    /// Kept connected, and asked for the messages that it sent.
    function: Function,
    pair: QueuePair,
    memory: Rc<SharedMemory>,
    /// The address of the first slot's data.
    data: u64,
    drive: AtEnd,
}

impl FunctionLane {
    /// Makes a queue pair for `depth` commands on the first namespace.
    pub(crate) fn new(mut function: Function, depth: u16) -> anyhow::Result<FunctionLane> {
        let (lba_bytes, blocks) = function.namespace(1)?;
        let pair = function.create_pair(depth)?;
        let memory = function.memory().clone();
        let data = memory.take(u64::from(depth) * READ as u64)?;
        Ok(FunctionLane { function, pair, memory, data, drive: AtEnd { nsid: 1, blocks, lba_bytes } })
    }

    /// Bytes of shared memory for a lane of this depth: entries of both queues in whole pages, and data.
    pub(crate) fn bytes(depth: u16) -> u64 {
        const PAGE: u64 = READ as u64;
        let queue = (u64::from(depth) + 1) * size_of::<SubmissionEntry>() as u64;
        2 * queue.next_multiple_of(PAGE) + u64::from(depth) * PAGE
    }

    /// Doorbells that were messages so far.
    pub(crate) fn messages(&self) -> u64 {
        self.function.doorbell_messages()
    }

    fn data(&self, slot: usize) -> u64 {
        self.data + (slot * READ) as u64
    }
}

impl Lane for FunctionLane {
    fn drive(&self) -> AtEnd {
        self.drive
    }

    fn put(&mut self, slot: usize, word: u64) -> anyhow::Result<()> {
        Ok(self.memory.write(self.data(slot), &word.to_le_bytes())?)
    }

    fn word(&self, slot: usize) -> anyhow::Result<u64> {
        let mut bytes = [0; 8];
        self.memory.read(self.data(slot), &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn submit(&mut self, slot: usize, command: SubmissionEntry) -> anyhow::Result<()> {
        let prp1 = self.data(slot).into();
        Ok(self.pair.submit(&SubmissionEntry { cid: (slot as u16).into(), prp1, ..command })?)
    }

    fn poll(&mut self) -> anyhow::Result<Option<Ended>> {
        let ended = self.pair.reap()?;
        Ok(ended.map(|entry| Ended { slot: entry.cid.get().into(), status: entry.status(), at: None }))
    }

    fn pause(&mut self) -> anyhow::Result<()> {
        Ok(self.pair.tell_head()?)
    }
}
