//! Create and Delete I/O Submission and Completion Queue (Base 5.2.1 to 5.2.4): queues in the memory of the host that the
//! controller is attached to. A host in this process creates its queues by calls instead.
//!
//! Left out: queues that are not contiguous in memory, which CAP.CQR excludes.

use std::rc::Rc;

use nandscape_drive::queue_memory::DoorbellBuffers;
use nandscape_drive::{Breakdown, HostMemory, QueueId};
use nandscape_wire_nvme::command::{QUEUE_CONTIGUOUS, QUEUE_INTERRUPTS};
use nandscape_wire_nvme::{Parameter, Status, SubmissionEntry};

use super::Answer;
use crate::arbiter::Priority;
use crate::engine::NvmeController;
use crate::refusal::Refusal;

impl NvmeController {
    pub(super) fn create_completion_queue(&self, entry: &SubmissionEntry) -> Result<Answer, Refusal> {
        let host = self.host()?;
        self.check_entry_sizes()?;
        let (id, entries, base) = new_queue(&*host, entry)?;
        let flags = entry.cdw11.get();
        let vector = (flags & QUEUE_INTERRUPTS != 0).then_some((flags >> 16) as u16);
        if vector.is_some_and(|vector| vector >= host.vectors()) {
            return Err(Status::INVALID_INTERRUPT_VECTOR.into());
        }
        let memory = || host.completions(id, base, entries, vector);
        self.queues.borrow_mut().create_completion(id, entries, vector, memory)?;
        Ok(Answer::value(0))
    }

    pub(super) fn create_submission_queue(&self, entry: &SubmissionEntry) -> Result<Answer, Refusal> {
        let host = self.host()?;
        self.check_entry_sizes()?;
        let (id, entries, base) = new_queue(&*host, entry)?;
        let to = QueueId((entry.cdw11.get() >> 16) as u16);
        // Base 5.2.2, CQID: 0 or out of range is Invalid Queue Identifier; an unused identifier is Completion Queue Invalid.
        if to == QueueId::ADMIN || to.0 > self.subsystem.config.max_queue_pairs {
            return Err(Refusal::of(Status::INVALID_QUEUE_ID, Parameter::at(11, 16)));
        }
        let memory = || host.submissions(id, base, entries);
        self.queues.borrow_mut().create_submission(id, to, entries, memory)?;
        self.set_priority(id, Priority::ALL[(entry.cdw11.get() >> 1 & 0b11) as usize]);
        Ok(Answer::value(0))
    }

    pub(super) async fn delete_submission_queue(
        &self,
        entry: &SubmissionEntry,
        breakdown: &mut Breakdown,
    ) -> Result<Answer, Refusal> {
        self.host()?;
        self.delete_submission(io_queue(entry)?, breakdown).await?;
        Ok(Answer::value(0))
    }

    pub(super) fn delete_completion_queue(&self, entry: &SubmissionEntry) -> Result<Answer, Refusal> {
        self.host()?;
        let deleted = self.queues.borrow_mut().delete_completion(io_queue(entry)?)?;
        self.queue_deleted(&deleted);
        Ok(Answer::value(0))
    }

    /// Doorbell Buffer Config (Base 5.2.5): the doorbells lie in two pages of host memory, which the doorbell watcher polls.
    /// A transport of messages cannot carry them.
    pub(super) fn configure_doorbell_buffers(&self, entry: &SubmissionEntry) -> Result<Answer, Refusal> {
        let host = self.host()?;
        if !host.takes_doorbell_buffers() {
            return Err(Status::INVALID_OPCODE.into());
        }
        // The command is not allowed during a sanitize operation.
        if let Some(status) = self.subsystem.sanitizing.refuses() {
            return Err(status.into());
        }
        let (shadow, event_index) = (entry.prp1.get(), entry.prp2.get());
        for (address, field) in [(shadow, Parameter::DPTR), (event_index, Parameter::PRP2)] {
            if !address.is_multiple_of(host.page().into()) || !host.can_watch(address) {
                return Err(Refusal::of(Status::INVALID_FIELD, field));
            }
        }
        host.set_doorbell_buffers(Some(DoorbellBuffers { shadow, event_index }));
        Ok(Answer::value(0))
    }

    /// CC.IOSQES and CC.IOCQES must be set before the first I/O queue is created (Base 3.1.4.5).
    fn check_entry_sizes(&self) -> Result<(), Status> {
        match self.has_entry_sizes() {
            true => Ok(()),
            false => Err(Status::INVALID_QUEUE_SIZE),
        }
    }

    /// Whether doorbells may lie in the host's memory.
    pub(super) fn takes_doorbell_buffers(&self) -> bool {
        self.attached.borrow().as_ref().is_some_and(|host| host.takes_doorbell_buffers())
    }

    /// The host that names its queues by address.
    fn host(&self) -> Result<Rc<dyn HostMemory>, Status> {
        self.attached.borrow().clone().ok_or(Status::INVALID_OPCODE)
    }
}

/// Queue Identifier (CDW10 bits 15:0), which must not be that of the admin queues.
fn io_queue(entry: &SubmissionEntry) -> Result<QueueId, Status> {
    match entry.cdw10.get() as u16 {
        0 => Err(Status::INVALID_QUEUE_ID),
        id => Ok(QueueId(id)),
    }
}

/// Identifier, entries and address of a queue to be created.
fn new_queue(host: &dyn HostMemory, entry: &SubmissionEntry) -> Result<(QueueId, u32, u64), Refusal> {
    let id = io_queue(entry)?;
    // Queue Size (CDW10 bits 31:16), counted from zero.
    let entries = (entry.cdw10.get() >> 16) + 1;
    if entry.cdw11.get() & QUEUE_CONTIGUOUS == 0 {
        return Err(Refusal::field(11, 0));
    }
    match entry.prp1.get().is_multiple_of(u64::from(host.page())) {
        true => Ok((id, entries, entry.prp1.get())),
        false => Err(Status::PRP_OFFSET_INVALID.into()),
    }
}
