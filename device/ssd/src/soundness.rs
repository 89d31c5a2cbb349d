//! Checks a drive that was started from a file: damage found at the start, tables against each other, all records, and all
//! data against its checksums.
//!
//! Left out: data that changed together with its checksum.

use nandscape_device_media::durable::PageStatus;
use nandscape_device_media::{BlockId, UnitId};

use crate::{Part, Ssd};

impl Ssd {
    /// The problems, a sentence each, with the name of the part if the drive has several. Reads the whole file.
    pub fn problems(&self) -> Vec<String> {
        let several = self.parts().len() > 1;
        let named = |part: &Part, what| if several { format!("part {}: {what}", part.name()) } else { what };
        self.parts().iter().flat_map(|part| part.problems().into_iter().map(|what| named(part, what))).collect()
    }
}

impl Part {
    fn problems(&self) -> Vec<String> {
        let disagree = |what| format!("the tables disagree: {what}");
        let mut problems: Vec<String> = self.check().err().map(disagree).into_iter().collect();
        if self.ox_block().is_some_and(|ftl| ftl.has_failed()) {
            problems.push("the tables of OX-Block cannot be read: the drive would be out of service".to_owned());
        }
        let (media, mut stale) = (self.media(), 0);
        let geometry = *media.geometry();
        for block in (0..geometry.blocks()).map(BlockId) {
            for number in 0..media.pages_programmed(block) {
                let page = geometry.page_at(block, number);
                let is_programmed =
                    media.page_record(page).is_some_and(|record| record.status == PageStatus::Programmed);
                let units = || (0..geometry.units_per_page()).map(|unit| geometry.unit_at(page, unit));
                let damaged = units().filter(|unit| is_programmed && !self.is_unit_sound(*unit));
                // A page is moved as a whole: a damaged stale unit also affects the current ones.
                let matters = units().any(|unit| self.matters(unit));
                let (current, old): (Vec<UnitId>, Vec<UnitId>) = damaged.partition(|_| matters);
                stale += old.len();
                let of_unit = |unit: &UnitId| {
                    let place = format!("(page {}, block {})", page.0, block.0);
                    match media.tag(*unit) {
                        _ if media.holds_identifier(block) => format!("the identifier of a channel is damaged {place}"),
                        u32::MAX => format!("a page of tables is damaged {place}"),
                        lpn if self.is_current(*unit) => format!("the data of logical unit {lpn} is damaged {place}"),
                        lpn => format!("old data of logical unit {lpn} is damaged beside current data {place}"),
                    }
                };
                problems.extend(current.iter().map(of_unit));
                problems.dedup();
            }
        }
        problems.extend(media.check_file().into_iter().map(|what| format!("damaged: {what}")));
        if stale > 0 && !problems.is_empty() {
            problems.push(format!("{stale} units that are out of date are damaged too"));
        }
        problems
    }

    /// Whether the drive may still use a unit: current data of the host, pages of tables, and identifiers.
    fn matters(&self, unit: UnitId) -> bool {
        let geometry = self.media().geometry();
        let block = geometry.block_of(geometry.page_of(unit));
        self.media().holds_identifier(block)
            || self.is_current(unit)
            || self.ox_block().is_some() && self.media().tag(unit) == u32::MAX
    }

    fn is_unit_sound(&self, unit: UnitId) -> bool {
        self.media().data(unit);
        !self.media().take_read_failure()
    }
}
