//! Commands to a drive that survive power cuts: commands ended by a cut are repeated while the drive may return.

use std::cell::Cell;
use std::rc::Rc;

use nandscape_drive::{Completion, Drive, DriveInfo, HostMem, Issuer};
use nandscape_sim::Span;
use nandscape_wire_nvme::io::{DsmRange, FUA};
use nandscape_wire_nvme::vendor::Attributes;
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry, directive};
use zerocopy::IntoBytes;

use crate::error::StoreError;
use crate::host::Host;

/// How long the store waits before it gives a command again that a power cut ended.
pub const AGAIN: Span = Span::from_ms(1);
/// How long a drive may be without power. Drives restart within seconds; one that has failed never does.
pub const PATIENCE: Span = Span::from_ms(30_000);
/// Ranges of a command that deallocates.
const RANGES: usize = 256;
/// Bytes that are read concurrently when the whole drive is read.
const ALL_AT_ONCE: u64 = 4 << 20;
/// The interval of progress reports.
const TOLD_EVERY: Span = Span::from_ms(3_000);

/// Blocks of a drive.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Range {
    /// The first.
    pub slba: u64,
    /// How many.
    pub blocks: u64,
}

/// A drive, as a store uses it, and its traffic.
pub struct Disk {
    /// The machine that gives the commands.
    pub host: Host,
    /// The drive.
    pub drive: Rc<dyn Drive>,
    /// The issuer of commands.
    pub issuer: Issuer,
    /// The drive's properties.
    pub info: DriveInfo,
    /// Commands so far.
    pub commands: Cell<u64>,
    /// Bytes read so far.
    pub read_bytes: Cell<u64>,
    /// Bytes written so far.
    pub written_bytes: Cell<u64>,
}

impl Disk {
    /// A drive that was not used yet.
    pub fn new(host: &Host, drive: Rc<dyn Drive>) -> Disk {
        let (issuer, info) = (Issuer::new(host.sim()), drive.info());
        let [commands, read_bytes, written_bytes] = [const { Cell::new(0) }; 3];
        Disk { host: host.clone(), drive, issuer, info, commands, read_bytes, written_bytes }
    }

    /// Executes commands concurrently, and repeats those that a power cut ended for [`PATIENCE`].
    ///
    /// # Errors
    /// The first status that is neither success nor a power cut, or the power cut of a drive that does not return.
    pub async fn execute(&self, entries: Vec<(SubmissionEntry, HostMem)>) -> Result<(), Status> {
        self.execute_within(entries, PATIENCE).await
    }

    /// The same with another patience.
    ///
    /// # Errors
    /// As [`Disk::execute`].
    pub async fn execute_within(
        &self,
        mut entries: Vec<(SubmissionEntry, HostMem)>,
        patience: Span,
    ) -> Result<(), Status> {
        let until = self.host.sim().now() + patience;
        loop {
            self.commands.set(self.commands.get() + entries.len() as u64);
            self.host.commands(entries.len()).await;
            let begun: Vec<_> =
                entries.iter().map(|(entry, mem)| self.issuer.execute(&*self.drive, *entry, mem.clone())).collect();
            let mut again = Vec::new();
            for (one, given) in begun.into_iter().zip(entries) {
                let Completion { status, .. } = one.await;
                match status.meaning() {
                    Status::SUCCESS => {}
                    Status::ABORTED_POWER_LOSS if self.host.sim().now() < until => again.push(given),
                    status => return Err(status),
                }
            }
            if again.is_empty() {
                return Ok(());
            }
            entries = again;
            self.host.sim().sleep(AGAIN).await;
        }
    }

    /// The commands that move a range, and their memory.
    fn parts(&self, opcode: IoOpcode, range: Range, mem: &HostMem) -> Vec<(SubmissionEntry, HostMem)> {
        let lba = self.info.lba_bytes as usize;
        let most = u64::from(self.info.max_blocks).min(0x1_0000);
        let starts = (0..range.blocks).step_by(most as usize);
        let part = |start: u64| {
            let blocks = most.min(range.blocks - start);
            let mut entry = SubmissionEntry::blocks(opcode, self.info.nsid, range.slba + start, blocks as u32);
            if opcode == IoOpcode::WRITE {
                entry.cdw12 = (entry.cdw12.get() | FUA).into();
            }
            (entry, mem.part(start as usize * lba, blocks as usize * lba))
        };
        starts.map(part).collect()
    }

    /// Reads ranges, all at once.
    ///
    /// # Errors
    /// When the drive does not answer with them.
    pub async fn read(&self, ranges: &[Range]) -> Result<Vec<Vec<u8>>, StoreError> {
        self.read_within(ranges, PATIENCE).await
    }

    /// The same with another patience.
    ///
    /// # Errors
    /// As [`Disk::read`].
    pub async fn read_within(&self, ranges: &[Range], patience: Span) -> Result<Vec<Vec<u8>>, StoreError> {
        self.read_as_within(ranges, Attributes::default(), patience).await
    }

    /// The same for a tenant and with a class, which the commands carry.
    ///
    /// # Errors
    /// As [`Disk::read`].
    pub async fn read_as_within(
        &self,
        ranges: &[Range],
        attributes: Attributes,
        patience: Span,
    ) -> Result<Vec<Vec<u8>>, StoreError> {
        let lba = self.info.lba_bytes as usize;
        let memories: Vec<_> = ranges.iter().map(|range| HostMem::zeroed(range.blocks as usize * lba)).collect();
        let parts = ranges.iter().zip(&memories).flat_map(|(range, mem)| self.parts(IoOpcode::READ, *range, mem));
        let of = |(entry, mem)| (SubmissionEntry { cdw2: attributes.0.into(), ..entry }, mem);
        self.execute_within(parts.map(of).collect(), patience).await.map_err(StoreError::Drive)?;
        let bytes: Vec<Vec<u8>> = memories.iter().map(HostMem::to_vec).collect();
        let total: usize = bytes.iter().map(Vec::len).sum();
        self.read_bytes.set(self.read_bytes.get() + total as u64);
        Ok(bytes)
    }

    /// Writes whole blocks; they are durable afterwards.
    ///
    /// # Errors
    /// When the drive rejects them.
    pub async fn write(&self, slba: u64, bytes: &[u8]) -> Result<(), StoreError> {
        self.write_within(slba, bytes, PATIENCE).await
    }

    /// The same with another patience.
    ///
    /// # Errors
    /// As [`Disk::write`].
    pub async fn write_within(&self, slba: u64, bytes: &[u8], patience: Span) -> Result<(), StoreError> {
        self.write_placed_within(slba, bytes, None, patience).await
    }

    /// The same by a reclaim unit handle of a drive that places data.
    ///
    /// # Errors
    /// As [`Disk::write`].
    pub async fn write_placed_within(
        &self,
        slba: u64,
        bytes: &[u8],
        handle: Option<u16>,
        patience: Span,
    ) -> Result<(), StoreError> {
        let range = Range { slba, blocks: bytes.len() as u64 / u64::from(self.info.lba_bytes) };
        self.written_bytes.set(self.written_bytes.get() + bytes.len() as u64);
        let mut parts = self.parts(IoOpcode::WRITE, range, &HostMem::from_bytes(bytes));
        if let Some(handle) = handle {
            for (entry, _) in &mut parts {
                entry.cdw12 = (entry.cdw12.get() | u32::from(directive::PLACEMENT) << 20).into();
                entry.cdw13 = (u32::from(handle) << 16).into();
            }
        }
        self.execute_within(parts, patience).await.map_err(StoreError::Drive)
    }

    /// The first block that does not read as zeros; `None` for a drive without data. It reads the whole drive,
    /// because few drives report whether they hold data. `progress` receives the percentage read every few seconds.
    ///
    /// # Errors
    /// When the drive does not answer.
    pub async fn first_data(&self, progress: impl Fn(u64)) -> Result<Option<u64>, StoreError> {
        let lba = u64::from(self.info.lba_bytes);
        let step = (ALL_AT_ONCE / lba).max(1);
        let mut last = self.host.sim().now();
        for slba in (0..self.info.blocks).step_by(step as usize) {
            let range = Range { slba, blocks: step.min(self.info.blocks - slba) };
            let bytes = self.read(&[range]).await?.concat();
            if let Some(at) = bytes.iter().position(|byte| *byte != 0) {
                return Ok(Some(slba + at as u64 / lba));
            }
            let now = self.host.sim().now();
            if now - last >= TOLD_EVERY {
                last = now;
                progress((u128::from(slba) * 100 / u128::from(self.info.blocks)) as u64);
            }
        }
        Ok(None)
    }

    /// Discards all data of the drive, and ensures that its first bytes read as zeros if they were written.
    ///
    /// # Errors
    /// When the drive does not answer.
    pub async fn clear(&self, first: u64) -> Result<(), StoreError> {
        let (lba, most) = (u64::from(self.info.lba_bytes), u64::from(u32::MAX));
        let starts = (0..self.info.blocks).step_by(most as usize);
        let ranges: Vec<Range> = starts.map(|slba| Range { slba, blocks: most.min(self.info.blocks - slba) }).collect();
        self.deallocate(&ranges).await?;
        let blocks = first.div_ceil(lba).min(self.info.blocks);
        let there = self.read(&[Range { slba: 0, blocks }]).await?.concat();
        match there.iter().all(|byte| *byte == 0) {
            true => Ok(()),
            false => self.write(0, &vec![0; there.len()]).await,
        }
    }

    /// Deallocates ranges. A drive without that command is no error.
    ///
    /// # Errors
    /// When the drive returns any other status.
    pub async fn deallocate(&self, ranges: &[Range]) -> Result<(), StoreError> {
        self.deallocate_within(ranges, PATIENCE).await
    }

    /// The same with another patience.
    ///
    /// # Errors
    /// As [`Disk::deallocate`].
    pub async fn deallocate_within(&self, ranges: &[Range], patience: Span) -> Result<(), StoreError> {
        for some in ranges.chunks(RANGES) {
            let list = |range: &Range| DsmRange {
                context_attributes: 0.into(),
                blocks: (range.blocks as u32).into(),
                slba: range.slba.into(),
            };
            let list: Vec<DsmRange> = some.iter().map(list).collect();
            let entry = SubmissionEntry::deallocate(self.info.nsid, some.len() as u32);
            match self.execute_within(vec![(entry, HostMem::from_bytes(list.as_bytes()))], patience).await {
                Ok(()) | Err(Status::INVALID_OPCODE) => {}
                Err(status) => return Err(StoreError::Drive(status)),
            }
        }
        Ok(())
    }
}
