//! A command between its arrival at the layer and its end.

use std::rc::Weak;

use nandscape_drive::{Drive, HostMem, Token};
use nandscape_sim::{Span, Time};
use nandscape_wire_nvme::SubmissionEntry;
use nandscape_wire_nvme::vendor::FAST_FAIL;

use crate::backlog::Turn;
use crate::request::Request;
use crate::tolerance::Tolerated;

pub(crate) struct Flight {
    pub(crate) token: Token,
    pub(crate) below: Weak<dyn Drive>,
    /// The command and its memory, of one that waits in the layer or may be sent again.
    pub(crate) kept: Option<(SubmissionEntry, HostMem)>,
    pub(crate) is_sent: bool,
    /// How long it waited in the layer before it was sent.
    pub(crate) waited: Span,
    /// Whether the drive was asked how long its own work is in the way.
    pub(crate) is_asked: bool,
    pub(crate) request: Request,
    /// The prediction, with the predictor's name for the command.
    pub(crate) predicted: Option<Predicted>,
    /// Its share of a slot, if the layer keeps a backlog.
    pub(crate) turn: Option<Turn>,
    /// When it is rejected if it still waits in the layer, of a read with a deadline.
    pub(crate) last: Option<Time>,
    /// How long it may be kept, of one that waits behind a scheduler with classes.
    pub(crate) tolerated: Option<Tolerated>,
}

#[derive(Copy, Clone)]
pub(crate) struct Predicted {
    pub(crate) ticket: u64,
    pub(crate) latency: Span,
    pub(crate) wait: Span,
    /// Without the wait.
    pub(crate) takes: Span,
}

impl Flight {
    pub(crate) fn began(&self) -> Time {
        self.request.arrived
    }

    /// The command as sent to the drive, with fast-fail if `asks` is set.
    pub(crate) fn entry(&self, asks: bool) -> Option<(SubmissionEntry, HostMem)> {
        let (mut entry, mem) = self.kept.clone()?;
        if asks {
            entry.cdw2 = (entry.cdw2.get() | FAST_FAIL).into();
        }
        Some((entry, mem))
    }
}

/// Whole microseconds, rounded up, at least 1.
pub(crate) fn us(span: Span) -> u32 {
    u32::try_from(span.ns().div_ceil(1_000)).unwrap_or(u32::MAX).max(1)
}
