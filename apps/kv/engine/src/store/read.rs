//! Reading values, with a deadline for the drive.

use nandscape_drive::{Completion, HostMem};
use nandscape_wire_nvme::vendor::{self, BUSY};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

use super::Core;
use super::form::Record;
use super::index::Place;
use crate::cancel::Cancel;
use nandscape_sim::Time;
use nandscape_sim::race::race;

/// A value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// The version of its put.
    pub version: u64,
    /// The value; zeros if the drive keeps no data.
    pub value: Vec<u8>,
}

/// Why a get failed.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum GetError {
    /// The drive rejects the read: it would wait for so long.
    #[error("the drive is busy for {wait_us} us")]
    Busy {
        /// Microseconds, as the drive predicts.
        wait_us: u32,
    },
    /// It was cancelled.
    #[error("the get was cancelled")]
    Cancelled,
    /// The record does not agree with its checksum.
    #[error("the record at logical block {slba} does not agree with its checksum")]
    Corrupt {
        /// Its first block.
        slba: u64,
    },
    /// The drive failed.
    #[error("the drive answers {status} to a read of logical block {slba}")]
    Drive {
        /// The first block of the read.
        slba: u64,
        /// The drive's status.
        status: Status,
    },
}

impl Core {
    pub(super) async fn get(&self, key: &[u8], deadline_us: u32, cancel: &Cancel) -> Result<Option<Found>, GetError> {
        let begun = self.sim.now();
        loop {
            let Some(place) = self.index.borrow().get(key) else { return Ok(None) };
            let slba = self.shape.segment_slba(place.segment) + u64::from(place.block);
            let mem = HostMem::zeroed(place.blocks as usize * self.shape.lba_bytes as usize);
            let read = self.read_record((slba, place.blocks), (deadline_us, begun), &mem, cancel).await;
            if let Err(GetError::Busy { .. }) = read {
                self.stats.borrow_mut().busy += 1;
            }
            read?;
            if let Some(value) = self.value_of(key, &place, &mem) {
                self.stats.borrow_mut().gets += 1;
                return Ok(Some(Found { version: place.version, value }));
            }
            // Its segment was emptied and written anew meanwhile: the record is elsewhere.
            if self.index.borrow().get(key) == Some(place) {
                return Err(GetError::Corrupt { slba });
            }
        }
    }

    fn value_of(&self, key: &[u8], place: &Place, mem: &HostMem) -> Option<Vec<u8>> {
        if !self.info.keeps_data {
            return Some(vec![0; place.value_bytes as usize]);
        }
        let bytes = mem.to_vec();
        let record = Record::parse(&bytes, place.sequence).filter(|record| record.key == key)?;
        Some(record.value.to_vec())
    }

    /// Reads a record, in as many commands as the drive wants, with a deadline that counts from `begun`. If one is rejected, so is the whole.
    async fn read_record(
        &self,
        (slba, blocks): (u64, u32),
        (deadline_us, begun): (u32, Time),
        mem: &HostMem,
        cancel: &Cancel,
    ) -> Result<(), GetError> {
        let most = self.info.max_blocks;
        let parts: Vec<_> = (0..blocks.div_ceil(most))
            .map(|number| {
                let (first, len) = (number * most, most.min(blocks - number * most));
                let at = slba + u64::from(first);
                let mut entry = SubmissionEntry::blocks(IoOpcode::READ, self.info.nsid, at, len);
                entry.cdw3 = deadline_us.into();
                vendor::has_waited(&mut entry, (self.sim.now() - begun).ns());
                let lba_bytes = self.shape.lba_bytes;
                let part = mem.part((first * lba_bytes) as usize, (len * lba_bytes) as usize);
                (at, self.issuer.execute(&*self.drive, entry, part))
            })
            .collect();
        let (mut failure, mut wait_us) = (None, None);
        for (at, mut part) in parts {
            let ended = match race(&mut part, cancel.wait()).await {
                Some(ended) => ended,
                None => {
                    part.cancel(&*self.drive);
                    part.await
                }
            };
            let Completion { status, dw0, .. } = ended;
            match status.meaning() {
                Status::SUCCESS => {}
                BUSY => wait_us = wait_us.max(Some(dw0)),
                Status::ABORT_REQUESTED if cancel.is_cancelled() => failure = Some(GetError::Cancelled),
                status => failure = failure.or(Some(GetError::Drive { slba: at, status })),
            }
        }
        let busy = wait_us.map(|wait_us| GetError::Busy { wait_us });
        failure.or(busy).map_or(Ok(()), Err)
    }

    /// Reads blocks without a deadline, in as many commands as the drive wants.
    pub(super) async fn read(&self, slba: u64, blocks: u32) -> Result<Vec<u8>, (u64, Status)> {
        let mem = HostMem::zeroed(blocks as usize * self.shape.lba_bytes as usize);
        let never = Cancel::never(&self.sim);
        match self.read_record((slba, blocks), (0, self.sim.now()), &mem, &never).await {
            Ok(()) => Ok(mem.to_vec()),
            Err(GetError::Drive { slba, status }) => Err((slba, status)),
            Err(_) => Err((slba, BUSY)),
        }
    }

    /// All of a segment.
    pub(super) async fn read_segment(&self, segment: u32) -> Result<Vec<u8>, (u64, Status)> {
        self.read(self.shape.segment_slba(segment), self.shape.segment_blocks).await
    }
}
