//! Garbage collection at a host's command: three vendor commands (Shin 5.3.2). They act on the drive, or on one of its NVM Sets,
//! whichever controller receives them. They complete at once; the collection they start continues in the background.

use nandscape_device_ftl_core::{CollectionStatus, Collections, Watermarks};
use nandscape_sim::Span;
use nandscape_wire_nvme::vendor::{GC_RUNNING, GcStatus, MAGIC, READS_HELD_CLEAR, gc};
use nandscape_wire_nvme::{Parameter, Status, SubmissionEntry};
use zerocopy::IntoBytes;

use super::Answer;
use crate::engine::NvmeController;
use crate::refusal::Refusal;

impl NvmeController {
    /// Those of the drive; where it has several NVM Sets, those of the set of the namespace that the command names.
    fn collections(&self, entry: &SubmissionEntry) -> Result<&dyn Collections, Refusal> {
        let set = &self.subsystem.set;
        if set.collections(0).is_none() {
            return Err(Status::INVALID_OPCODE.into());
        }
        let number = match self.has_several_sets() {
            true => self.namespaces.get(entry.nsid.get()).map(|namespace| namespace.set),
            false => Some(0),
        };
        let collections = number.and_then(|number| set.collections(number));
        collections.ok_or_else(|| Refusal::of(Status::INVALID_NAMESPACE, Parameter::NSID))
    }

    /// Whether commands that concern the flash name a namespace, for its NVM Set.
    pub(super) fn has_several_sets(&self) -> bool {
        self.subsystem.set.nvm_sets().len() > 1
    }

    /// GC Control.
    pub(super) fn control_collections(&self, entry: &SubmissionEntry) -> Result<Answer, Refusal> {
        let collections = self.collections(entry)?;
        let (first, second) = (entry.cdw11.get(), entry.cdw12.get());
        let value = match entry.cdw10.get() {
            gc::RUN => u32::from(collections.run(Span::from_us(first.into()))),
            gc::SET_WATERMARKS => {
                let watermarks = Watermarks { low: first, high: second };
                collections.set_watermarks(watermarks).map_err(|_| Refusal::field(11, 0))?;
                0
            }
            _ => return Err(Refusal::field(10, 0)),
        };
        Ok(Answer { hint: collections.status().free, ..Answer::value(value) })
    }

    /// GC Status.
    pub(super) fn collection_status(&self, entry: &SubmissionEntry) -> Result<Answer, Refusal> {
        let status = self.collections(entry)?.status();
        let CollectionStatus { user_bytes, device_bytes, block_bytes, blocks, free, watermarks, .. } = status;
        let running = if status.is_collecting { GC_RUNNING } else { 0 };
        let clear = if status.is_held { READS_HELD_CLEAR } else { 0 };
        let data = GcStatus {
            magic: MAGIC,
            version: 1.into(),
            flags: (running | clear).into(),
            user_bytes: user_bytes.into(),
            device_bytes: device_bytes.into(),
            block_bytes: block_bytes.into(),
            blocks: blocks.into(),
            free: free.into(),
            low: watermarks.low.into(),
            high: watermarks.high.into(),
            ..GcStatus::default()
        };
        Ok(Answer::data(data.as_bytes()))
    }

    /// Ready for Read.
    pub(super) fn ready_for_read(&self, entry: &SubmissionEntry) -> Result<Answer, Refusal> {
        let collections = self.collections(entry)?;
        let is_ready = collections.is_ready_for_read();
        Ok(Answer { hint: collections.status().free, ..Answer::value(is_ready.into()) })
    }
}
