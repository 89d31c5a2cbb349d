//! Loading the parts of tables that are not in memory. A table that is entirely in memory never misses, and has no cost.

use nandscape_device_ftl_core::component::Miss;
use nandscape_device_media::{Broken, MediaError};
use nandscape_drive::Breakdown;
use nandscape_drive::breakdown::cause;

use super::PageFtl;

impl PageFtl {
    /// Reads a missing part of a table from flash. The caller hands it to the table and asks again.
    ///
    /// In a box: a load must not enlarge every read's future.
    pub(super) async fn load(&self, miss: impl Miss, breakdown: &mut Breakdown) -> Result<(), MediaError> {
        let (page, who) = (miss.page(), self.config.priority.who(cause::METADATA));
        let read = Box::pin(self.media.read(page, miss.bytes(), who, breakdown)).await;
        read.inspect_err(|error| {
            self.state.borrow_mut().take_note(Broken { error: *error, page });
            self.pump();
        })
    }
}

#[cfg(test)]
mod tests {
    use nandscape_device_ftl_core::address::Lpn;
    use nandscape_device_ftl_core::policy::Greedy;
    use nandscape_device_media::PageId;
    use nandscape_drive::Stage;
    use nandscape_sim::{Executor, Span};

    use super::*;
    use crate::victim_test;

    /// A part of a table that is not in memory.
    #[derive(Copy, Clone)]
    struct Part(PageId);

    impl Miss for Part {
        fn page(&self) -> PageId {
            self.0
        }

        fn bytes(&self) -> u32 {
            4_096
        }
    }

    #[test]
    fn what_a_table_misses_is_read_from_flash_and_takes_time() {
        let mut executor = Executor::new();
        let ftl = victim_test::drive(&executor.sim(), 1, Box::new(Greedy));
        let reads = ftl.media.counts().reads;
        let mut breakdown = Breakdown::new();
        for lpn in [Lpn(0), Lpn(1)] {
            let unit = ftl.flash_unit(lpn).expect("the drive is full");
            let part = Part(ftl.media.geometry().page_of(unit));
            executor.block_on(ftl.load(part, &mut breakdown)).unwrap().unwrap();
        }
        assert_eq!(ftl.media.counts().reads - reads, 2);
        assert_eq!(breakdown.stage(Stage::Array), Span::from_us(80));
    }
}
