//! Vector Chunk Reset (OC 4.5), and Dataset Management that deallocates whole chunks, which resets them. The chunks of a command are
//! erased side by side.

use nandscape_drive::Breakdown;
use nandscape_wire_nvme::io::{DSM_ATTRIBUTES, DSM_DEALLOCATE, DsmRange};
use nandscape_wire_nvme::{Parameter, Status};
use zerocopy::IntoBytes;

use super::OpenChannel;
use super::addresses::{Outcome, Run, listed, runs, status_of};
use super::read::gathered;
use super::together::{Part, together};
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

    /// The chunks of blocks in a row, which are whole chunks.
    fn chunks_of(&self, mut slba: u64, blocks: u64, addresses: &mut Vec<u64>) -> Result<(), Failure> {
        let Some(end) = slba.checked_add(blocks) else { return Err(Status::LBA_OUT_OF_RANGE.final_().into()) };
        while slba < end {
            let units = u64::from(self.layout().chunk_units());
            match self.layout().place(slba) {
                None => return Err(Status::LBA_OUT_OF_RANGE.final_().into()),
                Some((_, 0)) if end - slba >= units => addresses.push(slba),
                Some(_) => {
                    let culprit = Culprit::Block(slba);
                    return Err(Failure { status: Status::INVALID_FIELD.final_(), culprit });
                }
            }
            slba += units;
        }
        Ok(())
    }

    /// Resets chunks: all of them, or none if one may not be.
    async fn reset(&self, addresses: &[u64], breakdown: &mut Breakdown) -> Outcome {
        let chunks = runs(addresses, self.layout(), 1)?;
        for (number, run) in chunks.iter().enumerate() {
            if let Err(error) = self.ftl().check_reset(run.chunk) {
                return Err(run.failed(status_of(error), self.layout()));
            }
            if chunks[..number].iter().any(|before| before.chunk == run.chunk) {
                return Err(run.failed(Status::INVALID_RESET.final_(), self.layout()));
            }
        }
        let ended = together(chunks.iter().map(|run| self.reset_chunk(*run)).collect(), breakdown).await;
        gathered(&chunks, ended)
    }

    fn reset_chunk(&self, run: Run) -> Part<'_, Result<(), Failure>> {
        Box::pin(async move {
            let mut breakdown = Breakdown::new();
            let ended = self.ftl().reset(run.chunk, &mut breakdown).await.map_err(|error| Failure {
                status: status_of(error),
                culprit: Culprit::Block(self.layout().address(run.chunk, 0)),
            });
            (ended, breakdown)
        })
    }
}
