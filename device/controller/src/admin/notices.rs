//! Notices (vendor feature C2h): the queue that announces the end of a read to the host, and how long before the end. Over
//! messages this queue cannot exist: a completion belongs to a capsule.

use std::rc::Rc;

use nandscape_drive::{CompletionMemory, HostMem, QueueId, TransportModel};
use nandscape_sim::Span;
use nandscape_wire_nvme::vendor::{MAGIC, Notices};
use nandscape_wire_nvme::{CompletionEntry, Status};
use zerocopy::{FromBytes, IntoBytes};

use super::Answer;
use super::features::data;
use crate::engine::NvmeController;
use crate::notices::{Port, Tracker};

impl NvmeController {
    /// The tracker of reads, if the host can have notices.
    fn tracker(&self) -> Option<&Tracker> {
        self.subsystem.set.tracker().filter(|_| self.model != TransportModel::Message)
    }

    /// Whether the host can have notices.
    pub(super) fn has_notices(&self) -> bool {
        self.tracker().is_some()
    }

    /// Get Features: the current value with the counts of the drive, or the default.
    pub(super) fn get_notices(&self, current: bool) -> Answer {
        let port = self.admin.settings.notices().filter(|_| current);
        let port = port.filter(|port| self.queues.borrow().is_memory_of(port.queue, &port.memory));
        let (queue, window) = port.map_or((0, Span::ZERO), |port| (port.queue.0, port.window));
        let figures = self.tracker().filter(|_| current).map(Tracker::figures).unwrap_or_default();
        let value = Notices {
            asked: figures.asked.into(),
            sent: figures.sent().into(),
            early: figures.early.into(),
            late: figures.late.into(),
            missing: figures.missing.into(),
            ..Notices::new(queue, u32::try_from(window.ns()).unwrap_or(u32::MAX))
        };
        Answer::data(value.as_bytes())
    }

    /// Set Features. It takes effect at once.
    pub(super) fn set_notices(&self, mem: &HostMem) -> Result<(), Status> {
        let given = Notices::read_from_bytes(&data::<64>(mem, size_of::<Notices>())?).expect("as many bytes");
        let counts = [given.asked, given.sent, given.early, given.late, given.missing];
        let is_zero =
            given.reserved_12.get() == 0 && given.reserved_56 == [0; 8] && counts.iter().all(|count| count.get() == 0);
        let recommended = self.subsystem.config.notices.ok_or(Status::INVALID_FIELD)?;
        if given.magic != MAGIC || given.version.get() != 1 || !is_zero {
            return Err(Status::INVALID_FIELD);
        }
        let queue = QueueId(given.queue.get());
        if queue == QueueId::ADMIN {
            self.admin.settings.set_notices(None);
            return Ok(());
        }
        let memory = self.queues.borrow().lone_completions(queue).ok_or(Status::INVALID_FIELD)?;
        let window = match given.window_ns.get() {
            0 => recommended,
            ns => Span::from_ns(ns.into()),
        };
        let (weak, into) = (self.weak(), memory.clone());
        let post = move |entry| weak.upgrade().is_some_and(|controller| controller.post_notice(queue, &into, entry));
        self.admin.settings.set_notices(Some(Rc::new(Port { queue, memory, window, post: Box::new(post) })));
        Ok(())
    }

    /// Posts a notice to a queue and notifies its host, if the queue has room and is still the queue in this memory.
    fn post_notice(&self, queue: QueueId, memory: &Rc<dyn CompletionMemory>, entry: CompletionEntry) -> bool {
        let is_posted = self.queues.borrow_mut().post_notice(queue, memory, entry);
        if is_posted {
            memory.notify();
        }
        is_posted
    }
}
