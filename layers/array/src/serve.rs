//! A host command with a task, to its end.

use std::cell::RefCell;
use std::rc::Rc;

use nandscape_drive::command::{Command, Extent};
use nandscape_drive::{Breakdown, Completion, HostMem, Io};
use nandscape_sim::Time;
use nandscape_wire_nvme::io::{Cdw12, DEAC, FUA};
use nandscape_wire_nvme::vendor::Attributes;
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

use crate::array::{Core, Job, Paths};
use crate::flight::{Flight, Sent, all, longer};
use crate::geometry::Segments;
use crate::member::Answer;
use crate::write::Source;

/// The layer's default name in breakdowns.
pub const LAYER: &str = "array";
/// The cause of the time that a command waits for others of the same stripe.
pub(crate) const LOCK: &str = "stripe_lock";
/// The cause of its time in which a write waits for the journal.
pub(crate) const JOURNAL: &str = "journal";
/// The attributes of a command that are passed to its sub-I/Os: workload class and tenant.
pub(crate) const PASSED: u32 = 0xffff;
/// The attributes of sub-I/Os that no host command waits for: the idle class.
pub(crate) const BACKGROUND: u32 = Attributes::of(15, 0).0;

/// How a part of a command ended.
pub(crate) type Ended = Result<Breakdown, Status>;

/// The result of a command, combined from its parts.
pub(crate) fn join(parts: impl IntoIterator<Item = Ended>) -> Ended {
    parts.into_iter().try_fold(Breakdown::new(), |sum, part| Ok(longer(sum, part?)))
}

impl Core {
    pub(crate) async fn serve(self: Rc<Self>, job: &mut Job) {
        let Some(io) = job.io.take() else { return };
        self.in_work.set(self.in_work.get() + 1);
        let ended = match Command::parse(&io, &self.info) {
            Ok(parsed) => self.execute(&job.paths, parsed, &io, job.answer.take()).await,
            Err(status) => Err(status),
        };
        self.in_work.set(self.in_work.get() - 1);
        self.end(io, job.begun, ended);
    }

    /// Completes a command that arrived at `begun`.
    pub(crate) fn end(&self, io: Io, begun: Time, ended: Ended) {
        let mut completion = match ended {
            Ok(breakdown) => Completion { breakdown, ..Completion::of(Status::SUCCESS) },
            Err(status) => Completion::of(status),
        };
        if io.mem.has_failed() && completion.status.is_success() {
            completion.status = Status::DATA_TRANSFER_ERROR;
        }
        let taken = self.sim.now() - begun;
        if !taken.is_zero() {
            completion.breakdown.charge_rest(self.config.layer, taken);
        }
        io.token.complete(completion);
    }

    /// Reads use the job's queue pairs, everything else the array's own: commands that a busy drive keeps waiting fill
    /// only those.
    async fn execute(
        self: &Rc<Self>,
        paths: &Paths,
        command: Command,
        io: &Io,
        answer: Option<(Sent, Completion)>,
    ) -> Ended {
        let (entry, mem) = (&io.command, &io.mem);
        let attributes = entry.cdw2.get() & PASSED;
        let fua = entry.cdw12.get() & FUA;
        match command {
            Command::Read(extent) => match answer {
                Some(answer) => self.read_on(paths, extent, mem, attributes, answer).await,
                None => self.read(paths, extent, mem, attributes).await,
            },
            Command::Verify(extent) => self.verify(paths, extent, attributes).await,
            Command::Compare(extent) => self.compare(paths, extent, mem, attributes).await,
            Command::Write(extent) => {
                let source = Source::Data(self.of_one_moment(mem, extent)?);
                self.write(&self.paths, extent, &source, fua, attributes).await
            }
            Command::Zeroes(extent) => {
                let deac = if Cdw12::of(entry).deac() { DEAC } else { 0 };
                self.write(&self.paths, extent, &Source::Zeros { deac }, fua, attributes).await
            }
            Command::Deallocate(ranges) => self.deallocate(&self.paths, &ranges, attributes).await,
            Command::Hints => Ok(Breakdown::new()),
            Command::Flush => self.flush(&self.paths, attributes).await,
        }
    }

    /// Continues with a read within one chunk, from the answer of a member.
    async fn read_on(
        self: &Rc<Self>,
        paths: &Paths,
        extent: Extent,
        mem: &HostMem,
        attributes: u32,
        answer: (Sent, Completion),
    ) -> Ended {
        let within = self.geometry.within_chunk(extent.slba, extent.blocks);
        let (stripe, segment) = within.expect("only a read within a chunk is passed on");
        self.read_stripe(paths, stripe, &[segment], mem, attributes, Some(answer)).await
    }

    pub(crate) async fn read(self: &Rc<Self>, paths: &Paths, extent: Extent, mem: &HostMem, attributes: u32) -> Ended {
        let mut pieces = self.geometry.pieces(extent.slba, extent.blocks);
        if pieces.len() == 1 {
            let (stripe, segments) = pieces.remove(0);
            return self.read_stripe(paths, stripe, &segments, mem, attributes, None).await;
        }
        let one = |(stripe, segments): (u64, Segments)| async move {
            self.read_stripe(paths, stripe, &segments, mem, attributes, None).await
        };
        join(all(pieces.into_iter().map(one).collect()).await)
    }

    /// Reads, into separate memory.
    async fn verify(self: &Rc<Self>, paths: &Paths, extent: Extent, attributes: u32) -> Ended {
        let mut at = extent;
        let mut sum = Breakdown::new();
        while at.blocks > 0 {
            let blocks = at.blocks.min(self.info.max_blocks);
            let mem = self.scratch(blocks);
            sum += &self.read(paths, Extent { slba: at.slba, blocks }, &mem, attributes).await?;
            at = Extent { slba: at.slba + u64::from(blocks), blocks: at.blocks - blocks };
        }
        Ok(sum)
    }

    async fn compare(self: &Rc<Self>, paths: &Paths, extent: Extent, mem: &HostMem, attributes: u32) -> Ended {
        let found = self.scratch(extent.blocks);
        let read = self.read(paths, extent, &found, attributes).await?;
        let bytes = self.geometry.bytes(extent.blocks);
        let is_equal = mem.part(0, bytes).to_vec() == found.to_vec();
        match is_equal {
            _ if mem.has_failed() => Err(Status::DATA_TRANSFER_ERROR),
            true => Ok(read),
            false => Err(Status::COMPARE_FAILURE),
        }
    }

    /// The data that a host writes. With redundancy it is copied once: parity and copies are of the same data, although
    /// the host's memory may change or vanish while members take theirs.
    ///
    /// # Errors
    /// Data Transfer Error if the host's memory cannot be reached.
    fn of_one_moment(&self, mem: &HostMem, extent: Extent) -> Result<HostMem, Status> {
        if self.level.tolerates() == 0 || !self.info.keeps_data || mem.is_none() {
            return Ok(mem.clone());
        }
        let bytes = mem.part(0, self.geometry.bytes(extent.blocks)).to_vec();
        match mem.has_failed() {
            true => Err(Status::DATA_TRANSFER_ERROR),
            false => Ok(HostMem::whole(&Rc::new(RefCell::new(bytes)))),
        }
    }

    /// Memory for a number of blocks; none where members keep no data.
    pub(crate) fn scratch(&self, blocks: u32) -> HostMem {
        if self.info.keeps_data { HostMem::zeroed(self.geometry.bytes(blocks)) } else { HostMem::none() }
    }

    pub(crate) async fn write(
        self: &Rc<Self>,
        paths: &Paths,
        extent: Extent,
        source: &Source,
        fua: u32,
        attributes: u32,
    ) -> Ended {
        let mut pieces = self.geometry.pieces(extent.slba, extent.blocks);
        if pieces.len() == 1 {
            let (stripe, segments) = pieces.remove(0);
            return self.write_stripe(paths, stripe, &segments, source, fua, attributes).await;
        }
        let one = |(stripe, segments): (u64, Segments)| async move {
            self.write_stripe(paths, stripe, &segments, source, fua, attributes).await
        };
        join(all(pieces.into_iter().map(one).collect()).await)
    }

    /// Levels without redundancy pass ranges on unchanged. With redundancy the members' contents must agree afterwards,
    /// so whole units become zeros, and the rest is unchanged.
    async fn deallocate(self: &Rc<Self>, paths: &Paths, ranges: &[(u64, u32)], attributes: u32) -> Ended {
        let unit = match self.level.checks() {
            0 => u64::from(self.geometry.unit_blocks),
            _ => self.geometry.stripe_blocks(),
        };
        let mut sum = Breakdown::new();
        for (slba, blocks) in ranges {
            let end = (slba + u64::from(*blocks)) / unit * unit;
            let mut at = slba.next_multiple_of(unit);
            while at < end {
                let most = (1 << 16) / unit * unit;
                let part = (end - at).min(most.max(unit));
                let extent = Extent { slba: at, blocks: part as u32 };
                sum += &self.write(paths, extent, &Source::Zeros { deac: DEAC }, 0, attributes).await?;
                at += part;
            }
        }
        Ok(sum)
    }

    /// Makes every member flush.
    pub(crate) async fn flush(self: &Rc<Self>, paths: &Paths, attributes: u32) -> Ended {
        let mut flight = Flight::new(&self.sim, &self.issuer);
        let failed = self.failed.get();
        for member in (0..self.level.members()).filter(|member| failed & 1 << member == 0) {
            let drive = self.drive(paths, member);
            let mut entry = SubmissionEntry::io(IoOpcode::FLUSH, drive.info().nsid);
            entry.cdw2 = attributes.into();
            self.stats.borrow_mut().members[member].writes += 1;
            flight.send(self.sent(member), drive, entry, HostMem::none());
        }
        let (mut sum, mut interrupted) = (Breakdown::new(), false);
        while !flight.is_empty() {
            let Some((sent, ended)) = flight.next(None).await else { continue };
            match Answer::of(&ended) {
                Answer::Success => sum = longer(sum, ended.breakdown),
                Answer::Interrupted => interrupted = true,
                _ => self.fail_drive(sent),
            }
        }
        self.until_recorded().await;
        if interrupted {
            self.was_interrupted();
            return Err(Status::ABORTED_POWER_LOSS);
        }
        // Unflushed data of a failed member is lost.
        if self.is_lost.get() { Err(Status::WRITE_FAULT.final_()) } else { Ok(sum) }
    }
}
