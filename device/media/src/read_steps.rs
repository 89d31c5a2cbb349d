//! A read of the host with all steps that it may have. Most reads have sensing and a transfer alone, and take the short path in `media`.

use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, Stage};
use nandscape_sim::Who;

use crate::fault::MediaError;
use crate::geometry::PageId;
use crate::media::{Media, Step};
use crate::power::Underway;

impl Media {
    /// A read with all steps that it may have: those of options, and those that faults add.
    pub(crate) async fn read_in_steps(
        &self,
        under_way: &Underway<'_>,
        page: PageId,
        bytes: u32,
        who: Who,
        breakdown: &mut Breakdown,
    ) -> Result<(), MediaError> {
        under_way.tell(breakdown);
        if let Some(time) = under_way.hang() {
            if self.remote.is_some() {
                return Box::pin(self.read_elsewhere(under_way, page, breakdown)).await;
            }
            if under_way.is_watched() {
                return Box::pin(self.read_watched(under_way, page, bytes, who, breakdown)).await;
            }
            Box::pin(self.hang(page, time, who, breakdown)).await;
            return self.end_read(under_way, page);
        }
        let (plane, channel, _) = self.locate(page);
        let retries = self.retries_of(page, under_way);
        if self.planes_together {
            Box::pin(self.read_with_others(page, bytes, under_way.delay(), who, &|| (), breakdown)).await;
        } else {
            // 00h, address, 30h: the array senses the page into the data register, from where it moves on to the cache
            // register.
            let mut register = self.lun(plane).sense(who, breakdown).await;
            if self.has_command_cycles() {
                self.command(channel, who, breakdown).await;
            }
            let time = self.sensing(page, 0);
            register.array(time, breakdown).await;
            self.trace_array(plane, "read", time, page.0);
            if let Some(time) = under_way.delay() {
                let step = Step { name: "read", time, detail: page.0, suspend: None };
                Box::pin(self.delay(&mut register, plane, step, breakdown)).await;
            }
            register.move_out(breakdown).await;

            // 05h, address, E0h, data out: the channel moves the register to the controller, which corrects it.
            let time = self.read_transfer(bytes);
            self.channels[channel].occupy(time, who, breakdown.waits(Stage::ChannelWait)).await;
            self.transferred(channel, time, who, breakdown);
            drop(register);
        }
        if self.corrects() {
            self.decode(channel, bytes, who, breakdown).await;
        }
        if retries > 0 {
            Box::pin(self.retry(page, bytes, retries, who, breakdown)).await;
        }
        self.end_read(under_way, page)
    }

    /// The retries of a read, each with all steps again. Others wait for the die behind a retry then.
    pub(crate) async fn retry(&self, page: PageId, bytes: u32, retries: u32, who: Who, breakdown: &mut Breakdown) {
        let (who, mut again) = (Who { cause: cause::RETRY, ..who }, Breakdown::new());
        let (plane, channel, _) = self.locate(page);
        for attempt in 1..=retries {
            let mut register = self.lun(plane).sense(who, &mut again).await;
            if self.has_command_cycles() {
                self.command(channel, who, &mut again).await;
            }
            let time = self.sensing(page, attempt);
            register.array(time, &mut again).await;
            self.trace_array(plane, "read", time, page.0);
            register.move_out(&mut again).await;
            self.transfer(channel, self.read_transfer(bytes), who, &mut again).await;
            drop(register);
            if self.corrects() {
                self.decode(channel, bytes, who, &mut again).await;
            }
        }
        breakdown.add_behind(cause::RETRY, &again);
    }
}
