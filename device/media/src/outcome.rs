//! The end of operations, and their effect on the cells: applies the fault model.

use nandscape_drive::Breakdown;
use nandscape_drive::breakdown::cause;
use nandscape_sim::{Span, Who};
use smallvec::SmallVec;

use crate::aging::Begun;
use crate::contents::Contents;
use crate::fault::{MediaError, Operation, Struck};
use crate::geometry::{BlockId, PageId};
use crate::image::PageImage;
use crate::media::Media;
use crate::power::Underway;
use crate::watch::For;

/// An operation on a page that failed.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Broken {
    /// The reason.
    pub error: MediaError,
    /// The page; of several programmed together, the one that caused the failure.
    pub page: PageId,
}

impl Media {
    /// The faults of an operation that begins now. A power cut among them takes effect now.
    #[cold]
    pub(crate) fn strike(
        &self,
        operation: Operation,
        pages: impl Iterator<Item = PageId>,
        block: BlockId,
    ) -> Option<Box<Struck>> {
        if self.remote.is_some() {
            return Some(Box::new(Struck { hang: Some(Span::ZERO), ..Struck::default() }));
        }
        let pages: SmallVec<[PageId; 8]> = pages.collect();
        let holds = |page, first, last| {
            let contents = self.contents.borrow();
            let units = (0..self.geometry.units_per_page()).map(|unit| self.geometry.unit_at(page, unit));
            units.into_iter().any(|unit| (first..=last).contains(&u64::from(contents.tag(unit))))
        };
        let now = self.sim.now();
        let mut struck = self.supply.faults.strike(&self.place(), now, operation, &pages, block, holds);
        if let Some(cells) = &self.aging {
            let (erases, erase) = (self.contents.borrow().erases(block), self.timing.erase);
            let begun = Begun { operation, now, pages: &pages, block, erases, erase };
            struck = cells.strike(&begun, &self.geometry, struck);
            if operation == Operation::Read {
                cells.look(block, |block| self.contents.borrow().erases(block), now, &self.geometry);
            }
            if cells.is_keeping_due(now) {
                // A file that can no longer be written reports this later.
                let _ = self.keep_changed_ages(now);
            }
        }
        self.mark_watched(operation, &mut struck);
        let struck = struck?;
        if let Some((off, torn)) = struck.cut {
            self.cut_power_and_tear(off, torn);
        }
        Some(Box::new(struck))
    }

    /// Begins to program pages, which uses them up.
    ///
    /// # Errors
    /// Without power, or if the command breaks a rule of NAND; nothing is used up then.
    #[inline]
    pub(crate) fn begin_program(&self, pages: &[PageId], of: For) -> Result<Underway<'_>, Broken> {
        let page = pages[0];
        if self.is_powered() {
            self.use_up(pages)?;
        }
        let block = self.geometry.block_of(page);
        let under_way = self.begin(Operation::Program, pages.iter().copied(), block, of);
        under_way.map_err(|error| Broken { error, page })
    }

    /// Ends a read after its time.
    #[inline(always)]
    pub(crate) fn end_read(&self, under_way: &Underway<'_>, page: PageId) -> Result<(), MediaError> {
        let mut contents = self.contents.borrow_mut();
        contents.counts.reads += 1;
        self.sensed_in(&mut contents, under_way, page)
    }

    /// The result of sensing a page.
    #[inline]
    pub(crate) fn sensed(&self, under_way: &Underway<'_>, page: PageId) -> Result<(), MediaError> {
        self.sensed_in(&mut self.contents.borrow_mut(), under_way, page)
    }

    #[inline]
    fn sensed_in(&self, contents: &mut Contents, under_way: &Underway<'_>, page: PageId) -> Result<(), MediaError> {
        under_way.end()?;
        contents.check_read(&self.geometry, page)?;
        if contents.is_unreadable(page) {
            return Err(MediaError::Uncorrectable);
        }
        if under_way.corrupts().is_some() {
            contents.corrupt(&self.geometry, page);
        }
        Ok(())
    }

    /// Ends a program after its time. `image` has the units of all its pages.
    #[inline]
    pub(crate) fn end_program(
        &self,
        under_way: &Underway<'_>,
        pages: &[PageId],
        image: &PageImage,
    ) -> Result<(), Broken> {
        let mut contents = self.contents.borrow_mut();
        let per_page = self.geometry.units_per_page() as usize;
        assert_eq!(image.len(), pages.len() * per_page, "a page is programmed whole");
        if let Err(error) = under_way.end() {
            for (number, page) in pages.iter().enumerate() {
                match error {
                    MediaError::PowerLost => self.tear_program(&mut contents, *page, image, number * per_page),
                    _ => contents.set_unreadable(*page),
                }
            }
            return Err(Broken { error, page: pages[under_way.page()] });
        }
        for (number, page) in pages.iter().enumerate() {
            let filled = contents.fill(&self.geometry, *page, image, number * per_page);
            filled.map_err(|error| Broken { error, page: *page })?;
        }
        if let Some(page) = under_way.corrupts() {
            contents.corrupt(&self.geometry, pages[page]);
        }
        Ok(())
    }

    /// Ends an erase after its time.
    pub(crate) fn end_erase(&self, under_way: &Underway<'_>, block: BlockId) -> Result<(), MediaError> {
        let mut contents = self.contents.borrow_mut();
        match under_way.end() {
            Ok(()) => contents.erase(&self.geometry, block)?,
            Err(MediaError::PowerLost) => self.tear_erase(&mut contents, block),
            Err(_) => {}
        }
        under_way.end()
    }

    /// Keeps the LUN busy for `time` without an effect, as one that hangs until it is reset (FFh).
    pub(crate) async fn hang(&self, page: PageId, time: Span, who: Who, breakdown: &mut Breakdown) {
        let (plane, channel, _) = self.locate(page);
        let (who, mut hanging) = (Who { cause: cause::FAULT, ..who }, Breakdown::new());
        let mut register = self.lun(plane).erase(who, breakdown).await;
        if self.has_command_cycles() {
            self.command(channel, who, breakdown).await;
        }
        register.array(time, &mut hanging).await;
        breakdown.add_behind(cause::FAULT, &hanging);
        self.trace_array(plane, "no answer", time, page.0);
    }

    /// Pages programmed in a block since its erase, including programs that failed.
    pub fn pages_programmed(&self, block: BlockId) -> u32 {
        self.contents.borrow().programmed(block)
    }
}
