//! Atomic Write, a vendor command: writes blocks of several ranges. After a power cut, all of them are written, or none. The
//! layout is [`ATOMIC_WRITE`](nandscape_wire_nvme::vendor::ATOMIC_WRITE).
//!
//! Left out: blocks with metadata; more than one command transfers.

use nandscape_device_ftl_core::offers::Transactions;
use nandscape_device_ftl_core::{Extent, Ftl};
use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, HostMem, Stage};
use nandscape_wire_nvme::io::Cdw12;
use nandscape_wire_nvme::vendor::{ATOMIC_LIST, AtomicRange};
use nandscape_wire_nvme::{Parameter, Status, SubmissionEntry};
use zerocopy::IntoBytes;

use super::Nvm;
use crate::command_set::{Command, Failure};
use crate::namespace::Namespace;
use crate::refusal::Refusal;

/// A checked command.
struct Atomic {
    /// Where its blocks lie, in the order of their data.
    extents: Vec<Extent>,
    /// Bytes of the blocks.
    bytes: u64,
}

impl Namespace {
    /// The most bytes that a command moves.
    pub(super) fn max_bytes(&self) -> u64 {
        u64::from(self.max_blocks) * u64::from(self.lba_bytes)
    }

    /// Checks the list of an Atomic Write.
    fn atomic(&self, entry: &SubmissionEntry, mem: &HostMem) -> Result<Atomic, Refusal> {
        if self.format.lba().metadata != 0 {
            return Err(Status::INVALID_NAMESPACE.final_().into());
        }
        mem.must_cover(ATOMIC_LIST)?;
        let ranges = (entry.cdw10.get() & 0xff) as usize + 1;
        let (mut extents, mut bytes) = (Vec::new(), 0);
        for number in 0..ranges {
            let mut range = AtomicRange::default();
            mem.read(number * size_of::<AtomicRange>(), range.as_mut_bytes());
            let blocks = u64::from(range.blocks.get());
            if blocks == 0 || range.reserved.get() != 0 {
                return Err(Refusal::of(Status::INVALID_FIELD, Parameter::DPTR).final_());
            }
            let found = self.checked_extents(range.slba.get(), blocks);
            extents.extend(found.map_err(|status| Refusal::of(status, Parameter::DPTR))?);
            bytes += blocks * u64::from(self.lba_bytes);
        }
        if mem.has_failed() {
            return Err(Status::DATA_TRANSFER_ERROR.into());
        }
        if ATOMIC_LIST as u64 + bytes > self.max_bytes() {
            return Err(too_large());
        }
        match self.keeps_data {
            true => mem.fits(ATOMIC_LIST + bytes as usize)?,
            // Without data, the memory may hold the list alone.
            false => mem.must_cover(ATOMIC_LIST)?,
        }
        Ok(Atomic { extents, bytes })
    }
}

/// More than a command moves, or than a transaction holds. The culprit can be the number of ranges or their lengths.
pub(super) fn too_large() -> Refusal {
    Refusal::of(Status::COMMAND_SIZE_LIMIT_EXCEEDED, Parameter::at(10, 0)).final_()
}

impl<F: Ftl> Nvm<F> {
    /// Serves an Atomic Write.
    pub(super) async fn atomic_write(&self, command: &Command<'_>, breakdown: &mut Breakdown) -> Result<(), Failure> {
        self.transactions()?;
        let Atomic { extents, bytes } = command.namespace.atomic(command.entry, command.mem)?;
        let data = match command.namespace.keeps_data {
            true => command.mem.part(ATOMIC_LIST, bytes as usize),
            false => HostMem::none(),
        };
        self.write_all(command, &extents, data, ATOMIC_LIST as u64 + bytes, breakdown).await
    }

    /// The transactions of the FTL.
    ///
    /// # Errors
    /// Invalid Command Opcode of a drive without transactions.
    pub(super) fn transactions(&self) -> Result<&dyn Transactions<F::RandomWrites>, Failure> {
        Ok(self.ftl.offers().transactions.ok_or(Status::INVALID_OPCODE.final_())?)
    }

    /// Writes extents, whose data is contiguous, like a write, but accepts all of it at one instant. The command moves
    /// `moved` bytes.
    pub(super) async fn write_all(
        &self,
        command: &Command<'_>,
        extents: &[Extent],
        data: HostMem,
        moved: u64,
        breakdown: &mut Breakdown,
    ) -> Result<(), Failure> {
        let units: u64 = extents.iter().map(|extent| u64::from(extent.units(self.ftl.unit()))).sum();
        let transactions = self.transactions()?;
        if units > u64::from(transactions.most_units()) {
            return Err(too_large().into());
        }
        self.count_write();
        let begun = self.sim.now();
        let room = transactions.reserve(extents, breakdown.waits(Stage::Queue));
        let reservation = match command.stop.or_stopped(room).await {
            Ok(reservation) => reservation,
            Err(status) => {
                breakdown.waits(Stage::Queue).add(cause::HOST_WRITE, self.sim.now() - begun);
                return Err(status.into());
            }
        };
        command.link.receive(moved, breakdown).await;
        while let Some(held) = extents.iter().find(|extent| self.exclusive.holds_of(**extent)) {
            self.wait_for_exclusive(command, *held, breakdown).await?;
        }
        command.stop.check()?;
        self.check_writable()?;
        // A guest may have unmapped the memory since: better no data than zeros.
        data.cover(extents.iter().map(|extent| extent.bytes() as usize).sum())?;
        let watch = self.write_waits_for(Cdw12::of(command.entry).fua(), command.settings);
        let settling = transactions.accept(extents, Some(&data), reservation, watch);
        Ok(self.settle(command, settling.into_iter().collect(), breakdown).await?)
    }
}
