//! Reads with attributes in CDW2 ([`vendor`]): fail fast on background work, report it, preempt it, announce the completion.
//! The bits have an effect if the FTL reports such work; otherwise they are ignored, as Identify shows.
//!
//! A busy bit means that the read failed, so a host need not check DW1 of other reads (TeaFA, Li 3.2.1). A served read does
//! not report its waits, unless the host asked for a prediction ([`PREDICT_ONLY`]).
//!
//! Left out: the duration of the work, which the FTL reports.

use nandscape_device_ftl_core::offers::Delay;
use nandscape_device_ftl_core::{Extent, Ftl, Reader};
use nandscape_drive::Breakdown;
use nandscape_wire_nvme::io::Cdw12;
use nandscape_wire_nvme::vendor::{self, BUSY, FAST_FAIL, Hints, NOTICE, PREDICT_ONLY, PREEMPT};
use nandscape_wire_nvme::{IoOpcode, Status};

use super::Nvm;
use super::read::failure;
use crate::command_set::{Command, Culprit, Reply};
use crate::notices::{Following, TOO_LARGE};

/// Whether a Read is served differently because of a bit: it may fail at once, preempts work, or gets a report.
#[inline(always)]
pub(super) fn is_served_otherwise(command: &Command<'_>) -> bool {
    command.entry.cdw2.get() & (PREEMPT | NOTICE | FAST_FAIL) != 0
}

/// Whether a Read is to fail fast.
#[inline(always)]
fn would_fail(command: &Command<'_>) -> bool {
    command.entry.cdw2.get() & (FAST_FAIL | PREDICT_ONLY) == FAST_FAIL
}

/// The reply to a read that background work delays.
fn busy(delay: Delay, fails: bool) -> Reply {
    let us = u32::try_from(delay.remaining.ns().div_ceil(1_000)).unwrap_or(u32::MAX);
    let hints = Hints::behind_background(delay.share);
    let status = if fails { BUSY } else { Status::SUCCESS };
    Reply { status, dw0: us, dw1: hints.0, culprit: Culprit::Unknown }
}

impl<F: Ftl> Nvm<F> {
    /// Bits of CDW2 that are honoured, and of completions that are filled.
    pub(super) fn honoured(&self) -> (u32, u32) {
        let fails = self.ftl.offers().delays.is_some_and(|delays| delays.fails_reads());
        let preempt = if self.lets_urgent_reads_in() { PREEMPT } else { 0 };
        let (notice, free) = if self.tracker.is_some() { (NOTICE, vendor::HINT_BUFFER_FREE) } else { (0, 0) };
        match fails {
            true => {
                let hints = vendor::HINT_TIME | vendor::HINT_BUSY | vendor::HINT_BUCKET;
                (FAST_FAIL | PREDICT_ONLY | preempt | notice, hints | free)
            }
            false => (preempt | notice, free),
        }
    }

    fn lets_urgent_reads_in(&self) -> bool {
        self.ftl.offers().delays.is_some_and(|delays| delays.lets_urgent_reads_in())
    }

    /// The background work in the way of a read. The read is counted if it `fails`.
    fn delay(&self, extent: Extent, fails: bool) -> Option<Delay> {
        self.ftl.offers().delays?.delay(extent, fails)
    }

    /// The reply to a Read or Write, with the room in the write buffer if the command asks for it.
    #[inline(always)]
    pub(super) fn with_buffer_free(&self, command: &Command<'_>, reply: Reply) -> Reply {
        if command.entry.cdw2.get() & NOTICE == 0 { reply } else { self.add_buffer_free(reply) }
    }

    #[cold]
    fn add_buffer_free(&self, reply: Reply) -> Reply {
        match self.tracker {
            Some(_) => {
                Reply { dw1: Hints(reply.dw1).with_buffer_free(self.ftl.inspection().occupancy().free).0, ..reply }
            }
            None => reply,
        }
    }

    /// Follows a Read that asks for a notice, if its host can have one.
    fn follow(&self, command: &Command<'_>, extent: Extent) -> Option<Following<'_>> {
        let (tracker, port) = (self.tracker.as_ref()?, command.settings.notices()?);
        if extent.bytes() >= TOO_LARGE {
            tracker.passed_over();
            return None;
        }
        // The first read that requests a notice registers the tracker with the flash.
        let _ = self.media.watch_reads(tracker.clone());
        Some(tracker.follow(command.stop.names(), port))
    }

    /// The reply to a fail-fast Read of contiguous blocks, if background work is in its way.
    fn fails_fast(&self, command: &Command<'_>, extent: Extent) -> Option<Reply> {
        if would_fail(command) { self.delay(extent, true).map(|delay| busy(delay, true)) } else { None }
    }

    /// Serves a Read of contiguous blocks that [`is_served_otherwise`].
    pub(super) async fn read_hinted(&self, command: &Command<'_>, extent: Extent, breakdown: &mut Breakdown) -> Reply {
        if let Some(busy) = self.fails_fast(command, extent) {
            return busy;
        }
        let cdw2 = command.entry.cdw2.get();
        let delay = if cdw2 & FAST_FAIL != 0 { self.delay(extent, false) } else { None };
        let to = self.to_host(command).urgently(cdw2 & PREEMPT != 0 && self.lets_urgent_reads_in());
        let following = if cdw2 & NOTICE != 0 { self.follow(command, extent) } else { None };
        let read = self.reader.read::<()>(extent, &to, breakdown).await;
        if let Some(following) = following {
            following.ended(read.is_ok());
        }
        let reply = match (read, delay) {
            (Ok(()), Some(delay)) => busy(delay, false),
            (read, _) => read.map_err(|error| failure(command.namespace, error)).into(),
        };
        self.with_buffer_free(command, reply)
    }

    /// The reply to a fail-fast Read whose blocks are scattered or have metadata: it fails as a whole if any part would.
    pub(super) fn fails_at_once(&self, command: &Command<'_>) -> Option<Reply> {
        let (entry, namespace) = (command.entry, command.namespace);
        if !would_fail(command) || IoOpcode(entry.opcode) != IoOpcode::READ {
            return None;
        }
        let extents = namespace.checked_extents(entry.slba(), u64::from(Cdw12::of(entry).nlb_z()) + 1).ok()?;
        let delays = extents.into_iter().filter_map(|extent| Some((self.delay(extent, false)?, extent)));
        let (longest, extent) = delays.max_by_key(|(delay, _)| delay.remaining)?;
        // The read is counted once.
        self.delay(extent, true);
        Some(busy(longest, true))
    }
}
