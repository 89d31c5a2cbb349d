//! A transaction, from its first write to its commit.

use nandscape_drive::{Drive, DriveInfo, HostMem, Issuer};
use nandscape_wire_nvme::vendor::{ATOMIC_LIST, ATOMIC_RANGES, ATOMIC_WRITE, AtomicRange};
use nandscape_wire_nvme::{Status, SubmissionEntry};
use zerocopy::IntoBytes;

/// Force Unit Access (CDW12).
const FUA: u32 = 1 << 30;

/// Writes that become current together.
#[derive(Clone, Debug)]
pub struct Transaction {
    nsid: u32,
    lba_bytes: u32,
    blocks: u64,
    is_forced: bool,
    ranges: Vec<AtomicRange>,
    data: Vec<u8>,
}

/// Why a write cannot be part of a transaction.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Misfit {
    /// It has no whole number of blocks.
    #[error("{bytes} bytes are no whole number of blocks of {lba_bytes} bytes")]
    Length {
        /// Its bytes.
        bytes: usize,
        /// Bytes of a block.
        lba_bytes: u32,
    },
    /// It extends beyond the drive.
    #[error("{blocks} blocks from block {slba} on: the drive has {size} blocks")]
    Beyond {
        /// Its first block.
        slba: u64,
        /// Its blocks.
        blocks: u64,
        /// Blocks of the drive.
        size: u64,
    },
    /// The transaction has as many ranges as it may have.
    #[error("a transaction has {ATOMIC_RANGES} ranges at most")]
    Ranges,
}

/// Why a transaction was not committed.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CommitError {
    /// The drive has no transactions.
    #[error("the drive has no transactions: Identify Controller says which drives have them")]
    Unsupported,
    /// It exceeds the drive's limit for transactions. None of it is stored.
    #[error("the transaction is larger than the drive takes: Identify Controller says how large it may be")]
    TooLarge,
    /// A power cut during the commit. All of it is stored or nothing: a read shows which.
    #[error("power was lost during the commit: all of the transaction is there, or nothing")]
    PowerLost,
    /// Any other status. After a host path status, it may be stored in full or not at all.
    #[error("the drive answers {0}")]
    Failed(Status),
}

impl Transaction {
    /// An empty transaction on a drive.
    pub fn new(drive: &DriveInfo) -> Transaction {
        let DriveInfo { nsid, lba_bytes, blocks, .. } = *drive;
        Transaction { nsid, lba_bytes, blocks, is_forced: false, ranges: Vec::new(), data: vec![0; ATOMIC_LIST] }
    }

    /// Adds a write of whole blocks from block `slba` on. Where ranges overlap, the later write counts.
    ///
    /// # Errors
    /// Why it cannot be part of the transaction, which is as it was before.
    pub fn write(&mut self, slba: u64, data: &[u8]) -> Result<(), Misfit> {
        let (bytes, lba_bytes) = (data.len(), self.lba_bytes);
        let blocks = bytes as u64 / u64::from(lba_bytes);
        if blocks == 0 || !(bytes as u64).is_multiple_of(u64::from(lba_bytes)) {
            return Err(Misfit::Length { bytes, lba_bytes });
        }
        let end = slba.checked_add(blocks);
        let (Ok(short), true) = (u32::try_from(blocks), end.is_some_and(|end| end <= self.blocks)) else {
            return Err(Misfit::Beyond { slba, blocks, size: self.blocks });
        };
        if self.ranges.len() == ATOMIC_RANGES {
            return Err(Misfit::Ranges);
        }
        self.ranges.push(AtomicRange { slba: slba.into(), blocks: short.into(), reserved: 0.into() });
        self.data.extend_from_slice(data);
        Ok(())
    }

    /// Has the commit end only when the transaction is durable, whatever cache the drive has.
    pub fn force(&mut self) {
        self.is_forced = true;
    }

    /// Bytes of its writes.
    pub fn bytes(&self) -> usize {
        self.data.len() - ATOMIC_LIST
    }

    /// Whether it has no writes.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The command that commits it, and its data; `None` of an empty one.
    fn command(mut self) -> Option<(SubmissionEntry, HostMem)> {
        let last = self.ranges.len().checked_sub(1)?;
        let list = self.ranges.as_bytes();
        self.data[..list.len()].copy_from_slice(list);
        let mut entry = SubmissionEntry::io(ATOMIC_WRITE, self.nsid);
        entry.cdw10 = (last as u32).into();
        entry.cdw12 = if self.is_forced { FUA } else { 0 }.into();
        Some((entry, HostMem::from_bytes(&self.data)))
    }

    /// Commits it on the drive that it was made for. An empty one is committed without a command.
    ///
    /// # Errors
    /// Why it was not, or is not known to be.
    pub async fn commit(self, issuer: &Issuer, drive: &dyn Drive) -> Result<(), CommitError> {
        let Some((entry, mem)) = self.command() else { return Ok(()) };
        match issuer.execute(drive, entry, mem).await.status.meaning() {
            Status::SUCCESS => Ok(()),
            Status::INVALID_OPCODE => Err(CommitError::Unsupported),
            Status::COMMAND_SIZE_LIMIT_EXCEEDED => Err(CommitError::TooLarge),
            Status::ABORTED_POWER_LOSS => Err(CommitError::PowerLost),
            status => Err(CommitError::Failed(status)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drive() -> DriveInfo {
        DriveInfo {
            nsid: 1,
            blocks: 1_000,
            lba_bytes: 512,
            metadata_bytes: 0,
            max_blocks: 256,
            unit_bytes: 4_096,
            volatile_cache: true,
            keeps_data: true,
        }
    }

    #[test]
    fn the_list_comes_first_and_then_the_blocks() {
        let mut transaction = Transaction::new(&drive());
        transaction.write(999, &[1; 512]).unwrap();
        transaction.write(4, &[2; 1_024]).unwrap();
        transaction.force();
        assert_eq!((transaction.bytes(), transaction.is_empty()), (1_536, false));
        let (entry, mem) = transaction.command().unwrap();
        assert_eq!((entry.opcode, entry.cdw10.get(), entry.cdw12.get()), (0x8d, 1, 1 << 30));
        let bytes = mem.to_vec();
        assert_eq!((bytes.len(), &bytes[..12]), (4_096 + 1_536, &[0xe7, 3, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0][..]));
        assert_eq!((bytes[16], bytes[24], bytes[4_096], bytes[4_608]), (4, 2, 1, 2));
    }

    #[test]
    fn what_does_not_fit_is_refused_and_leaves_the_transaction_as_it_was() {
        let mut transaction = Transaction::new(&drive());
        assert_eq!(transaction.write(0, &[0; 500]), Err(Misfit::Length { bytes: 500, lba_bytes: 512 }));
        assert_eq!(transaction.write(0, &[]), Err(Misfit::Length { bytes: 0, lba_bytes: 512 }));
        assert_eq!(transaction.write(999, &[0; 1_024]), Err(Misfit::Beyond { slba: 999, blocks: 2, size: 1_000 }));
        assert!(transaction.write(u64::MAX, &[0; 512]).is_err() && transaction.is_empty());
        for number in 0..256 {
            transaction.write(number, &[0; 512]).unwrap();
        }
        assert_eq!(transaction.write(500, &[0; 512]), Err(Misfit::Ranges));
        assert_eq!(transaction.bytes(), 256 * 512);
        assert!(Transaction::new(&drive()).command().is_none());
    }
}
