//! Watched reads. The watch is notified when a page is issued to its chip, after the wait for the chip, and when the page has arrived
//! in the controller. Only reads of tasks that request it are watched: all others take the same steps as without a watch.
//!
//! Left out: remote flash, and reads of several pages by separate tasks.

use std::rc::Rc;

use nandscape_drive::Breakdown;
use nandscape_sim::{Span, Who};

use crate::fault::{MediaError, Operation, Struck};
use crate::geometry::PageId;
use crate::media::Media;
use crate::power::Underway;
use crate::steps::Step;

/// Watches reads.
pub trait ReadWatch {
    /// Whether the read of the task that runs now is watched.
    fn wants(&self) -> bool;

    /// The read of the task that runs now is issued to a chip, which does nothing else from now on.
    fn issued(&self, chip: u32);

    /// Its page is in the controller, corrected.
    fn arrived(&self, chip: u32);
}

impl Media {
    /// Notifies `watch` of the reads that it wants. Returns whether it is the first watch; a second one is never notified.
    pub fn watch_reads(&self, watch: Rc<dyn ReadWatch>) -> bool {
        self.supply.faults.look_at_all();
        self.reads.set(watch).is_ok()
    }

    /// Marks an operation as a watched read, if it is one: a read that hangs is not watched.
    pub(crate) fn mark_watched(&self, operation: Operation, struck: &mut Option<Struck>) {
        let is_wanted = operation == Operation::Read && self.reads.get().is_some_and(|watch| watch.wants());
        if is_wanted && struck.as_ref().is_none_or(|struck| struck.hang.is_none()) {
            let struck = struck.get_or_insert_default();
            (struck.hang, struck.is_watched) = (Some(Span::ZERO), true);
        }
    }

    /// Reads a page as [`Media::read_for`] does, and notifies the watch.
    pub(crate) async fn read_watched(
        &self,
        under_way: &Underway<'_>,
        page: PageId,
        bytes: u32,
        who: Who,
        breakdown: &mut Breakdown,
    ) -> Result<(), MediaError> {
        let (plane, channel, _) = self.locate(page);
        let retries = self.retries_of(page, under_way);
        let chip = self.planes_per_lun.quotient(plane.0);
        let watch = self.reads.get().expect("a watched read has a watch");
        if self.planes_together {
            let issued = || watch.issued(chip);
            self.read_with_others(page, bytes, under_way.delay(), who, &issued, breakdown).await;
        } else {
            let mut register = self.lun(plane).sense(who, breakdown).await;
            if self.has_command_cycles() {
                self.command(channel, who, breakdown).await;
            }
            watch.issued(chip);
            let time = self.sensing(page, 0);
            register.array(time, breakdown).await;
            self.trace_array(plane, "read", time, page.0);
            if let Some(time) = under_way.delay() {
                let step = Step { name: "read", time, detail: page.0, suspend: None };
                self.delay(&mut register, plane, step, breakdown).await;
            }
            register.move_out(breakdown).await;
            self.transfer(channel, self.read_transfer(bytes), who, breakdown).await;
            drop(register);
        }
        if self.corrects() {
            self.decode(channel, bytes, who, breakdown).await;
        }
        if retries > 0 {
            self.retry(page, bytes, retries, who, breakdown).await;
        }
        watch.arrived(chip);
        self.end_read(under_way, page)
    }
}
