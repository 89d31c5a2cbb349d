//! Segments with unreadable blocks. Their readable records are found and moved. Unreadable ones are counted, and
//! other replicas have them. A segment with an unreadable current record is not cleaned.
//!
//! Left out: read retries of a block, which the drive performs.

use nandscape_wire_nvme::Status;

use super::Core;
use super::form::{self, Record};

/// A segment as far as it can be read.
pub(super) struct Salvage {
    /// The whole segment, with zeros for unreadable blocks.
    pub(super) bytes: Vec<u8>,
    /// The blocks that cannot be read, in their order.
    pub(super) lost: Vec<u32>,
}

impl Core {
    /// All of a segment, block by block if it cannot be read in one piece.
    pub(super) async fn salvage(&self, segment: u32) -> Result<Salvage, (u64, Status)> {
        match self.read_segment(segment).await {
            Ok(bytes) => return Ok(Salvage { bytes, lost: Vec::new() }),
            Err((_, Status::UNRECOVERED_READ_ERROR)) => {}
            Err(other) => return Err(other),
        }
        let (first, lba_bytes) = (self.shape.segment_slba(segment), self.shape.lba_bytes as usize);
        let mut salvage = Salvage { bytes: Vec::new(), lost: Vec::new() };
        for block in 0..self.shape.segment_blocks {
            match self.read(first + u64::from(block), 1).await {
                Ok(bytes) => salvage.bytes.extend(bytes),
                Err((_, Status::UNRECOVERED_READ_ERROR)) => {
                    salvage.bytes.resize(salvage.bytes.len() + lba_bytes, 0);
                    salvage.lost.push(block);
                }
                Err(other) => return Err(other),
            }
        }
        self.stats.borrow_mut().unreadable += salvage.lost.len() as u64;
        Ok(salvage)
    }
}

impl Salvage {
    /// The block's bytes and all behind them.
    pub(super) fn from(&self, block: u32, lba_bytes: usize) -> &[u8] {
        self.bytes.get(block as usize * lba_bytes..).unwrap_or_default()
    }

    /// The sequence number of the segment, of its first record if its first block cannot be read.
    pub(super) fn sequence(&self, store: u64, lba_bytes: usize) -> Option<u64> {
        if self.lost.first() != Some(&0) {
            return form::segment_of(&self.bytes, store);
        }
        let blocks = (self.bytes.len() / lba_bytes) as u32;
        (1..blocks).find_map(|block| {
            let bytes = self.from(block, lba_bytes);
            let sequence = form::record_segment(bytes)?;
            Record::parse(bytes, sequence).map(|_| sequence)
        })
    }

    /// The records, each with its block. After an unreadable block they continue at the next block that begins one.
    pub(super) fn records(&self, sequence: u64, lba_bytes: usize) -> Vec<(u32, Record<'_>)> {
        let (mut block, mut found) = (1, Vec::new());
        while (block as usize * lba_bytes) < self.bytes.len() {
            match Record::parse(self.from(block, lba_bytes), sequence) {
                Some(record) => {
                    let bytes = form::record_bytes(record.key.len(), record.value.len());
                    found.push((block, record));
                    block += bytes.div_ceil(lba_bytes) as u32;
                }
                // The end, unless an unreadable block is the cause, or is between here and the previous record.
                None if self.lost.is_empty() => break,
                None => block += 1,
            }
        }
        found
    }
}
