//! One request in flight: the commands it is split into, and its result when the last of them has completed.

use nandscape_drive::{Completion, DriveInfo, HostMem};
use nandscape_sim::Time;
use nandscape_wire_nvme::io::{DsmRange, FUA};
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};
use zerocopy::IntoBytes;

use crate::record::Direction;
use crate::request::Request;

/// A request with outstanding commands.
pub(crate) struct InFlight {
    pub(crate) request: Request,
    pub(crate) submitted: Time,
    pub(crate) measured: bool,
    left: u32,
    /// The completion that determines the result so far: the first failure, else the latest.
    done: Option<Completion>,
}

impl InFlight {
    /// A request split into `commands`.
    pub(crate) fn new(request: Request, submitted: Time, measured: bool, commands: &Commands<'_>) -> InFlight {
        InFlight { request, submitted, measured, left: commands.left, done: None }
    }

    /// Records the completion of a command. Returns the result of the request if it was the last.
    #[inline]
    pub(crate) fn part_done(&mut self, part: Completion) -> Option<Completion> {
        self.left -= 1;
        if self.left == 0 && self.done.is_none() {
            return Some(part);
        }
        let failed = self.done.as_ref().is_some_and(|done| !done.status.is_success());
        let last = if failed { self.done.take() } else { Some(part) };
        if self.left == 0 {
            return last;
        }
        self.done = last;
        None
    }
}

/// The commands of a request: one, or several concurrent ones if it exceeds the drive's maximum transfer. The limit
/// applies to data moved; a range to deallocate may have any length that fits its field.
pub(crate) struct Commands<'a> {
    info: &'a DriveInfo,
    direction: Direction,
    /// The next logical block, and the end (exclusive).
    block: u64,
    end: u64,
    /// The most logical blocks of one command.
    step: u64,
    left: u32,
}

impl<'a> Commands<'a> {
    #[inline(always)]
    pub(crate) fn of(request: &Request, info: &'a DriveInfo) -> Commands<'a> {
        let Request { direction, offset, bytes } = *request;
        let (block, end) = blocks_of(offset, bytes, info.lba_bytes);
        let step = if direction == Direction::Trim { u32::MAX.into() } else { u64::from(info.max_blocks) };
        // Divide only for large requests, which are few.
        let left = if end - block <= step { 1 } else { (end - block).div_ceil(step) as u32 };
        Commands { info, direction, block, end, step, left }
    }

    #[inline(always)]
    fn command(&self, blocks: u32) -> (SubmissionEntry, HostMem) {
        let (nsid, first) = (self.info.nsid, self.block);
        let mem = || match self.info.keeps_data {
            true => HostMem::zeroed((u64::from(blocks) * u64::from(self.info.lba_bytes)) as usize),
            false => HostMem::none(),
        };
        match self.direction {
            Direction::Read => (SubmissionEntry::blocks(IoOpcode::READ, nsid, first, blocks), mem()),
            Direction::Write => (SubmissionEntry::blocks(IoOpcode::WRITE, nsid, first, blocks), mem()),
            Direction::Fua => {
                let entry = SubmissionEntry::blocks(IoOpcode::WRITE, nsid, first, blocks);
                (SubmissionEntry { cdw12: (entry.cdw12.get() | FUA).into(), ..entry }, mem())
            }
            Direction::Trim => {
                let range = DsmRange { slba: first.into(), blocks: blocks.into(), ..DsmRange::default() };
                (SubmissionEntry::deallocate(nsid, 1), HostMem::from_bytes(range.as_bytes()))
            }
            Direction::Flush => (SubmissionEntry::io(IoOpcode::FLUSH, nsid), HostMem::none()),
        }
    }
}

/// The first logical block of a range of bytes, and the end (exclusive).
#[inline(always)]
fn blocks_of(offset: u64, bytes: u64, lba_bytes: u32) -> (u64, u64) {
    if !lba_bytes.is_power_of_two() {
        return blocks_of_odd(offset, bytes, lba_bytes.into());
    }
    let shift = lba_bytes.trailing_zeros();
    (offset >> shift, (offset + bytes + u64::from(lba_bytes) - 1) >> shift)
}

/// The same where blocks have another size. Two divisions take longer than the rest of a request.
#[cold]
fn blocks_of_odd(offset: u64, bytes: u64, lba_bytes: u64) -> (u64, u64) {
    (offset / lba_bytes, (offset + bytes).div_ceil(lba_bytes))
}

impl Iterator for Commands<'_> {
    type Item = (SubmissionEntry, HostMem);

    #[inline(always)]
    fn next(&mut self) -> Option<(SubmissionEntry, HostMem)> {
        self.left = self.left.checked_sub(1)?;
        let blocks = self.step.min(self.end - self.block) as u32;
        let command = self.command(blocks);
        self.block += u64::from(blocks);
        Some(command)
    }
}
