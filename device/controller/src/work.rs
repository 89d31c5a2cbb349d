//! The work of the controller's processors on commands and their data, accounted by cause.
//!
//! A drive without processors has no such work: `firmware_time` delays each command separately, and others do not wait. The
//! work on flash operations is in the [media](nandscape_device_media::FlashWork).
//!
//! Left out: admin commands apart from their data, and the work of the FTL apart from its flash operations: its choices, and
//! searches of its tables.

use std::rc::Rc;

use nandscape_device_ftl_core::offers::Later;
use nandscape_drive::{Breakdown, QueueId, Stage};
use nandscape_sim::processors::Turn;
use nandscape_sim::{Cause, Processors, Sim, Span};
use nandscape_wire_nvme::SubmissionEntry;

use crate::config::ProcessorsConfig;
use crate::engine::cause_of;
use crate::namespace::Namespace;

/// The processors of a controller, if it has any, and the time of their work.
pub struct Work {
    processors: Option<(Rc<Processors>, ProcessorsConfig)>,
    /// Bytes of a mapping unit.
    unit: u64,
}

impl Work {
    pub(crate) fn new(sim: &Sim, config: Option<ProcessorsConfig>, unit: u32) -> Work {
        let processors = config.map(|config| (Rc::new(Processors::new(sim, config.count as usize)), config));
        Work { processors, unit: unit.max(1).into() }
    }

    /// The processors, if any.
    pub(crate) fn processors(&self) -> Option<&Rc<Processors>> {
        self.processors.as_ref().map(|(processors, _)| processors)
    }

    /// The processors for data that crosses the link, and their time for 1 KiB; `None` if data costs no work.
    pub(crate) fn on_data(&self) -> Option<(Rc<Processors>, Span)> {
        self.processors.clone().map(|(processors, config)| (processors, config.kib)).filter(|(_, kib)| !kib.is_zero())
    }

    /// The work on a command of an I/O queue, and on the mapping units that its entry names; `None` without processors, as in most drives.
    #[inline(always)]
    pub(crate) fn on_io<'a>(
        &'a self,
        (queue, entry): (QueueId, &'a SubmissionEntry),
        namespace: Option<&'a Namespace>,
        breakdown: &'a mut Breakdown,
    ) -> Option<Later<'a, ()>> {
        let works = self.processors.is_some() && queue != QueueId::ADMIN;
        works.then(|| self.on_command_boxed(entry, namespace, breakdown))
    }

    #[cold]
    fn on_command_boxed<'a>(
        &'a self,
        entry: &'a SubmissionEntry,
        namespace: Option<&'a Namespace>,
        breakdown: &'a mut Breakdown,
    ) -> Later<'a, ()> {
        Box::pin(self.on_command(entry, namespace, breakdown))
    }

    async fn on_command(&self, entry: &SubmissionEntry, namespace: Option<&Namespace>, breakdown: &mut Breakdown) {
        let Some((processors, config)) = &self.processors else { return };
        let bytes = namespace.map_or(0, |of| u64::from(entry.blocks_named()) * u64::from(of.lba_bytes));
        let work = config.command + config.unit * bytes.div_ceil(self.unit);
        spend(processors, work, cause_of(entry.opcode), breakdown).await;
    }

    /// The work on pages of a buffer or a batch of a log-structured store, and on their mapping units.
    pub(crate) async fn on_pages(&self, pages: usize, bytes: usize, cause: Cause, breakdown: &mut Breakdown) {
        let Some((processors, config)) = &self.processors else { return };
        let work = config.page * pages as u64 + config.unit * (bytes as u64).div_ceil(self.unit);
        spend(processors, work, cause, breakdown).await;
    }
}

async fn spend(processors: &Processors, work: Span, cause: Cause, breakdown: &mut Breakdown) {
    if !work.is_zero() {
        let turn = processors.work(work, cause).await;
        note(turn, work, breakdown);
    }
}

/// Adds completed work to the breakdown of a command.
pub(crate) fn note(turn: Turn, work: Span, breakdown: &mut Breakdown) {
    breakdown.waits(Stage::Queue).add(turn.behind, turn.wait);
    breakdown.spend(Stage::Firmware, work);
}
