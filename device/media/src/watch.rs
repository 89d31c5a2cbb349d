//! A host that manages the flash itself is notified of each operation when it is sent, and of its end ([`FlashWatch`]).
//!
//! Left out: the steps of an operation in between, which are internal to the flash.

use std::rc::Rc;

use nandscape_drive::breakdown::cause;
use nandscape_drive::flash::{FlashKind, FlashOp, FlashPage, FlashWatch};
use nandscape_sim::{Cause, Span};

use crate::fault::Operation;
use crate::geometry::{BlockId, PageId, PlaneId};
use crate::media::Media;
use crate::seized::Holding;

/// An operation of which the watch is notified when this is dropped: it has ended.
pub(crate) struct Watched {
    watch: Rc<dyn FlashWatch>,
    ticket: u64,
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.watch.ended(self.ticket);
    }
}

/// The purpose of an operation.
#[derive(Copy, Clone)]
pub(crate) struct For {
    pub(crate) cause: Cause,
    /// Bytes that a read is to move.
    pub(crate) bytes: u32,
    /// Whether its chip is kept for it.
    pub(crate) is_held: bool,
}

impl For {
    /// An operation that waits for its chip.
    pub(crate) fn new(cause: Cause, bytes: u32) -> For {
        For { cause, bytes, is_held: false }
    }
}

impl Media {
    /// Notifies `watch` of every operation from now on. Returns whether it was the first watch; a second one is
    /// ignored.
    pub fn watch(&self, watch: Rc<dyn FlashWatch>) -> bool {
        self.watch.set(watch).is_ok()
    }

    /// Whether a host is notified of operations.
    #[inline]
    pub fn is_watched(&self) -> bool {
        self.watch.get().is_some()
    }

    /// Chips: planes that work independently, or dies.
    pub fn chips(&self) -> u32 {
        self.luns.len() as u32
    }

    /// The place of a page, and the bytes that a read of `bytes` of it transfers over the channel.
    pub fn flash_page(&self, page: PageId, bytes: u32) -> FlashPage {
        let (plane, channel, number) = self.locate(page);
        let bytes = if self.timing.partial_transfer { bytes } else { self.geometry.page_size() };
        FlashPage { chip: self.chip(plane), channel: channel as u32, page: number, bytes }
    }

    fn chip(&self, plane: PlaneId) -> u32 {
        self.planes_per_lun.quotient(plane.0)
    }

    /// Notifies the watch that a chip, and perhaps its channel, will be held for a time.
    #[inline]
    pub(crate) fn tell_of_hold(&self, plane: PlaneId, holding: Holding, cause: Cause, hold: Span) -> Option<Watched> {
        let watch = self.watch.get()?;
        let (chip, channel) = (self.chip(plane), self.geometry.channel_of(plane));
        let for_host_read = cause == cause::HOST_READ;
        let (page, last_page, pages, bytes) = (0, 0, 1, 0);
        let kind = FlashKind::Hold;
        let holds_channel = holding >= Holding::Channel;
        let is_held = false;
        let op =
            FlashOp { kind, chip, channel, page, last_page, pages, bytes, hold, holds_channel, is_held, for_host_read };
        Some(Watched { watch: watch.clone(), ticket: watch.began(&op) })
    }

    /// Notifies the watch of an operation that begins.
    #[cold]
    pub(crate) fn tell_watch(
        &self,
        watch: &Rc<dyn FlashWatch>,
        operation: Operation,
        pages: impl Iterator<Item = PageId>,
        block: BlockId,
        of: For,
    ) -> Watched {
        let plane = self.geometry.plane_of(block);
        let (mut first, mut last, mut count) = (u32::MAX, 0, 0);
        pages.for_each(|page| {
            let number = self.geometry.page_in_block(page);
            (first, last, count) = (first.min(number), last.max(number), count + 1);
        });
        let (kind, bytes) = match operation {
            Operation::Read => {
                (FlashKind::Read, if self.timing.partial_transfer { of.bytes } else { self.geometry.page_size() })
            }
            Operation::Program => (FlashKind::Program, self.geometry.page_size() * count),
            Operation::Erase => (FlashKind::Erase, 0),
        };
        let op = FlashOp {
            kind,
            chip: self.chip(plane),
            channel: self.geometry.channel_of(plane),
            page: first.min(last),
            last_page: last,
            pages: count.max(1),
            bytes,
            hold: Span::ZERO,
            holds_channel: false,
            is_held: of.is_held,
            for_host_read: of.cause == cause::HOST_READ,
        };
        Watched { watch: watch.clone(), ticket: watch.began(&op) }
    }
}
