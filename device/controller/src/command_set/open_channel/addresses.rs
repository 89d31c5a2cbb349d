//! The addresses of a command, checked and grouped into contiguous runs.

use nandscape_device_ftl_core::Extent;
use nandscape_device_ftl_zoned::open_channel::{ChunkError, Layout};
use nandscape_drive::HostMem;
use nandscape_wire_nvme::{Parameter, Status};
use zerocopy::IntoBytes;

use crate::command_set::{Culprit, Failure, Reply};
use crate::refusal::Refusal;

/// How a command failed, and the addresses at fault, a bit each from the first on (OC 4.2).
pub(super) struct Failed {
    pub(super) failure: Failure,
    pub(super) which: u64,
}

/// How a command on addresses ended.
pub(super) type Outcome = Result<(), Failed>;

impl<E: Into<Failure>> From<E> for Failed {
    fn from(error: E) -> Failed {
        Failed { failure: error.into(), which: 0 }
    }
}

/// The completion of a vector command: DW0 and DW1 have the bits.
pub(super) fn vectored(outcome: Outcome) -> Reply {
    match outcome {
        Ok(()) => Reply::value(0),
        Err(Failed { failure: Failure { status, culprit }, which }) => {
            Reply { status, dw0: which as u32, dw1: (which >> 32) as u32, culprit }
        }
    }
}

/// The completion of a command on contiguous blocks.
pub(super) fn in_a_row(outcome: Outcome) -> Reply {
    outcome.map_err(|failed| failed.failure).into()
}

/// The status for the reason why a chunk rejects a command (OC 5).
pub(super) fn status_of(error: ChunkError) -> Status {
    match error {
        ChunkError::Unaligned => Status::INVALID_FIELD.final_(),
        ChunkError::OutOfOrder => Status::OUT_OF_ORDER_WRITE.final_(),
        ChunkError::EarlyClose => Status::CHUNK_EARLY_CLOSE.final_(),
        ChunkError::Offline => Status::OFFLINE_CHUNK.final_(),
        ChunkError::InvalidReset => Status::INVALID_RESET.final_(),
        ChunkError::PowerLost => Status::ABORTED_POWER_LOSS,
    }
}

/// Contiguous units of one chunk, or of one page if requested.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Run {
    pub(super) chunk: u32,
    pub(super) first: u32,
    pub(super) units: u32,
    /// The number of the first among the command's addresses.
    pub(super) at: u32,
}

impl Run {
    /// The bits of its addresses.
    pub(super) fn bits(&self) -> u64 {
        let ones = if self.units < 64 { (1 << self.units) - 1 } else { u64::MAX };
        ones.checked_shl(self.at).unwrap_or(0)
    }

    /// A failure caused by this run, at its first address.
    pub(super) fn failed(&self, status: Status, layout: &Layout) -> Failed {
        let culprit = Culprit::Block(layout.address(self.chunk, self.first));
        Failed { failure: Failure { status, culprit }, which: self.bits() }
    }

    /// Its extent for the FTL.
    pub(super) fn extent(&self, layout: &Layout, sectors: u32) -> Extent {
        let start = layout.address(self.chunk, self.first) * u64::from(sectors);
        Extent { start, sectors: self.units * sectors }
    }
}

/// The list of `count` addresses that `pointer` leads to, or the one that it is.
pub(super) fn listed(mem: &HostMem, pointer: u64, count: u32, field: Parameter) -> Result<Vec<u64>, Refusal> {
    if count == 1 {
        return Ok(vec![pointer]);
    }
    let Some(list) = mem.list(pointer)? else { return Err(Refusal::of(Status::INVALID_FIELD, field).final_()) };
    let mut addresses = vec![0u64; count as usize];
    let bytes = addresses.as_mut_bytes();
    list.must_cover(bytes.len())?;
    list.read(0, bytes);
    match list.has_failed() {
        true => Err(Status::DATA_TRANSFER_ERROR.into()),
        false => Ok(addresses.into_iter().map(u64::from_le).collect()),
    }
}

/// The contiguous runs among addresses, cut at multiples of `step` units.
pub(super) fn runs(addresses: &[u64], layout: &Layout, step: u32) -> Result<Vec<Run>, Failed> {
    let mut runs: Vec<Run> = Vec::new();
    let mut missing = 0u64;
    for (address, at) in addresses.iter().zip(0u32..) {
        let Some((chunk, unit)) = layout.place(*address) else {
            missing |= 1u64.checked_shl(at).unwrap_or(0);
            continue;
        };
        match runs.last_mut() {
            Some(run) if run.chunk == chunk && run.first + run.units == unit && !unit.is_multiple_of(step) => {
                run.units += 1;
            }
            _ => runs.push(Run { chunk, first: unit, units: 1, at }),
        }
    }
    match addresses.iter().find(|address| layout.place(**address).is_none()) {
        None => Ok(runs),
        Some(address) => {
            let (status, culprit) = (Status::LBA_OUT_OF_RANGE.final_(), Culprit::Block(*address));
            Err(Failed { failure: Failure { status, culprit }, which: missing })
        }
    }
}

/// The contiguous runs among addresses to be written.
pub(super) fn writes(addresses: &[u64], layout: &Layout) -> Result<Vec<Run>, Failed> {
    runs(addresses, layout, u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUT: Layout =
        Layout { groups: 2, pus: 1, chunks: 3, planes: 1, word_line: 1, block_pages: 6, page_units: 4 };

    #[test]
    fn addresses_in_a_row_are_one_run_up_to_a_step() {
        let (a, b) = (LAYOUT.address(1, 2), LAYOUT.address(4, 8));
        let found = runs(&[a, a + 1, a + 2, b, b + 1], &LAYOUT, 4).unwrap_or_else(|_| panic!("all are there"));
        let run = |chunk, first, units, at| Run { chunk, first, units, at };
        assert_eq!(found, [run(1, 2, 2, 0), run(1, 4, 1, 2), run(4, 8, 2, 3)]);
        assert_eq!(found[2].bits(), 0b11000);
    }

    #[test]
    fn what_is_not_there_is_named() {
        let there = LAYOUT.address(1, 0);
        let hole = LAYOUT.address(1, 23) + 1;
        let failed = runs(&[there, hole, there + 1, hole], &LAYOUT, 4).err().map(|failed| failed.which);
        assert_eq!(failed, Some(0b1010));
    }
}
