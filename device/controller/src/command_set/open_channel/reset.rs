//! Vector Chunk Reset (OC 4.5), and Dataset Management that deallocates whole chunks, which resets them. Parallel units erase
//! chunks concurrently, each one chunk after another. One command may name all chunks of a drive; this bounds the futures
//! polled at each step by the number of parallel units.

use std::collections::{BTreeMap, BTreeSet};

use nandscape_device_ftl_zoned::open_channel::{ChunkError, Layout};
use nandscape_drive::Breakdown;
use nandscape_wire_nvme::io::{DSM_ATTRIBUTES, DSM_DEALLOCATE, DsmRange};
use nandscape_wire_nvme::{Parameter, Status};
use zerocopy::IntoBytes;

use super::OpenChannel;
use super::addresses::{Outcome, Run, listed, runs, status_of};
use super::read::gathered;
use crate::command_set::together::{Part, together};
use crate::command_set::{Command, Culprit, Failure};
use crate::refusal::Refusal;

impl OpenChannel {
    /// Serves Vector Chunk Reset. An address stands for its chunk.
    pub(super) async fn vector_reset(&self, command: &Command<'_>, breakdown: &mut Breakdown) -> Outcome {
        command.namespace.check_flags(command.entry)?;
        let count = command.entry.vector_z() + 1;
        let addresses = listed(command.mem, command.entry.slba(), count, Parameter::at(10, 0))?;
        self.reset(&addresses, breakdown).await
    }

    /// Serves Dataset Management.
    pub(super) async fn dataset_management(&self, command: &Command<'_>, breakdown: &mut Breakdown) -> Outcome {
        let (entry, mem) = (command.entry, command.mem);
        command.namespace.check_flags(entry)?;
        let (ranges, attributes) = ((entry.cdw10.get() & 0xff) as usize + 1, entry.cdw11.get());
        if attributes & !DSM_ATTRIBUTES != 0 {
            return Err(Refusal::field(11, (attributes & !DSM_ATTRIBUTES).trailing_zeros() as u16).final_().into());
        }
        let bytes = ranges * size_of::<DsmRange>();
        mem.must_cover(bytes)?;
        let mut list = vec![DsmRange::default(); ranges];
        mem.read(0, list.as_mut_bytes());
        if mem.has_failed() {
            return Err(Status::DATA_TRANSFER_ERROR.into());
        }
        command.link.receive(bytes as u64, breakdown).await;
        if attributes & DSM_DEALLOCATE == 0 {
            return Ok(());
        }
        let mut addresses = Vec::new();
        for range in &list {
            self.chunks_of(range.slba.get(), range.blocks.get().into(), &mut addresses)?;
        }
        self.reset(&addresses, breakdown).await
    }

    /// The chunks of contiguous blocks, which must be whole chunks. Unused addresses between chunks may be included.
    fn chunks_of(&self, mut slba: u64, blocks: u64, addresses: &mut Vec<u64>) -> Result<(), Failure> {
        let layout = self.layout();
        let Some(end) = slba.checked_add(blocks).filter(|end| *end <= layout.addresses()) else {
            return Err(Status::LBA_OUT_OF_RANGE.final_().into());
        };
        let units = u64::from(layout.chunk_units());
        while slba < end {
            let chunk = match layout.place(slba) {
                None => return Err(Status::LBA_OUT_OF_RANGE.final_().into()),
                Some((chunk, 0)) if end - slba >= units => chunk,
                Some(_) => return Err(failed_at(Status::INVALID_FIELD.final_(), slba)),
            };
            // A longer list names a chunk twice.
            if addresses.len() == layout.all_chunks() as usize {
                return Err(failed_at(Status::INVALID_RESET.final_(), slba));
            }
            addresses.push(slba);
            slba = if chunk + 1 < layout.all_chunks() { layout.address(chunk + 1, 0) } else { end };
        }
        Ok(())
    }

    /// Resets chunks: all of them, or none if one must not be reset.
    async fn reset(&self, addresses: &[u64], breakdown: &mut Breakdown) -> Outcome {
        let chunks = runs(addresses, self.layout(), 1)?;
        let mut named = BTreeSet::new();
        for run in &chunks {
            if let Err(error) = self.ftl().check_reset(run.chunk) {
                return Err(run.failed(status_of(error), self.layout()));
            }
            if !named.insert(run.chunk) {
                return Err(run.failed(Status::INVALID_RESET.final_(), self.layout()));
            }
        }
        let parts = by_unit(&chunks, self.layout()).into_values().map(|runs| self.reset_in_turn(runs)).collect();
        let mut ended: Vec<(u32, Result<(), Failure>)> =
            together(parts, breakdown).await.into_iter().flatten().collect();
        ended.sort_by_key(|(at, _)| *at);
        gathered(&chunks, ended.into_iter().map(|(_, ended)| ended).collect())
    }

    /// Each result has the number of its address.
    fn reset_in_turn(&self, runs: Vec<Run>) -> Part<'_, Vec<(u32, Result<(), Failure>)>> {
        Box::pin(async move {
            let (mut ended, mut breakdown) = (Vec::with_capacity(runs.len()), Breakdown::new());
            let mut before = Ok(());
            for run in runs {
                // After a power cut, no further reset begins.
                if before != Err(ChunkError::PowerLost) {
                    before = self.ftl().reset(run.chunk, &mut breakdown).await;
                }
                let failure = |error| failed_at(status_of(error), self.layout().address(run.chunk, 0));
                ended.push((run.at, before.map_err(failure)));
            }
            (ended, breakdown)
        })
    }
}

/// A failure at a block.
fn failed_at(status: Status, slba: u64) -> Failure {
    Failure { status, culprit: Culprit::Block(slba) }
}

/// The chunks to reset, by parallel unit.
fn by_unit(runs: &[Run], layout: &Layout) -> BTreeMap<u32, Vec<Run>> {
    let mut units: BTreeMap<u32, Vec<Run>> = BTreeMap::new();
    runs.iter().for_each(|run| units.entry(run.chunk / layout.chunks).or_default().push(*run));
    units
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reset_of_all_chunks_has_a_part_for_each_parallel_unit() {
        let layout =
            Layout { groups: 2, pus: 3, chunks: 1_000, planes: 1, word_line: 1, block_pages: 6, page_units: 4 };
        let addresses: Vec<u64> = (0..layout.all_chunks()).rev().map(|chunk| layout.address(chunk, 0)).collect();
        let runs = runs(&addresses, &layout, 1).unwrap_or_else(|_| panic!("all are there"));
        let units = by_unit(&runs, &layout);
        assert_eq!((units.len(), units.values().map(Vec::len).collect::<BTreeSet<_>>()), (6, BTreeSet::from([1_000])));
        assert!(units.iter().all(|(unit, runs)| runs.iter().all(|run| run.chunk / 1_000 == *unit)));
        assert!(units[&0].is_sorted_by_key(|run| run.at));
    }
}
