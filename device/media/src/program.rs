//! Programs of pages, step by step, and which pages one command programs.

use nandscape_drive::Breakdown;
use nandscape_sim::Who;
use smallvec::SmallVec;

use crate::fault::Misuse;
use crate::geometry::PageId;
use crate::image::PageImage;
use crate::interleave::Turn;
use crate::media::Media;
use crate::outcome::Broken;
use crate::steps::Step;
use crate::watch::For;

impl Media {
    /// Programs a page from the controller.
    ///
    /// # Errors
    /// When it failed. The page is still used up, unless power was off at the start or the page is not the next of its
    /// block.
    pub async fn program(
        &self,
        page: PageId,
        image: PageImage,
        who: Who,
        breakdown: &mut Breakdown,
    ) -> Result<(), Broken> {
        self.program_together(&[page], &image, who, breakdown, |_| ()).await
    }

    /// Programs pages of one LUN with one command: pages of the same number in several planes, or of a word line. `image`
    /// has the units of all pages. Calls `loaded` with the breakdown so far when all pages are in the register.
    ///
    /// # Errors
    /// When it failed. The pages are still used up, unless power was off at the start or the command breaks a rule of
    /// NAND ([`Misuse`]).
    pub async fn program_together(
        &self,
        pages: &[PageId],
        image: &PageImage,
        who: Who,
        breakdown: &mut Breakdown,
        loaded: impl FnOnce(&Breakdown),
    ) -> Result<(), Broken> {
        let under_way = self.begin_program(pages, For::new(who.cause, 0))?;
        under_way.tell(breakdown);
        let (plane, channel, _) = self.locate(pages[0]);
        if let Some(time) = under_way.hang() {
            if self.remote.is_some() {
                loaded(breakdown);
                return Box::pin(self.program_elsewhere(&under_way, pages, image, who, breakdown)).await;
            }
            Box::pin(self.hang(pages[0], time, who, breakdown)).await;
            return self.end_program(&under_way, pages, image);
        }

        let turn = match &self.rows {
            None => None,
            Some(rows) => Some(Box::pin(rows.turn(&self.sim, channel, self.lun_number(plane), who, breakdown)).await),
        };
        // 80h, address, data in, and 11h or 1Ah between pages: the channel fills the register.
        let mut register = self.lun(plane).load(who, breakdown).await;
        let _in_row = turn.map(Turn::begin);
        for _ in pages {
            self.transfer(channel, self.whole_page(), who, breakdown).await;
        }
        loaded(breakdown);

        // 10h: the array programs the content of the register.
        register.move_in(breakdown).await;
        let step = self.program_step(pages);
        self.array(&mut register, plane, step, breakdown).await;
        if let Some(time) = under_way.delay() {
            Box::pin(self.delay(&mut register, plane, Step { time, ..step }, breakdown)).await;
        }
        drop(register);
        self.end_program(&under_way, pages, image)
    }

    /// The array step of a program: the time of the slowest page.
    #[inline]
    pub(crate) fn program_step(&self, pages: &[PageId]) -> Step {
        let time = |page: &PageId| self.page_times.program(self.geometry.page_in_block(*page));
        let time = match pages {
            [page] => time(page),
            _ => pages.iter().map(time).max().expect("at least one page is programmed"),
        };
        Step { name: "program", time, detail: pages[0].0, suspend: self.timing.features.suspend.program }
    }

    /// Uses pages up for one program command: all of them, or none.
    ///
    /// # Errors
    /// The rule that the command breaks.
    #[inline]
    pub(crate) fn use_up(&self, pages: &[PageId]) -> Result<(), Broken> {
        if let [page] = *pages {
            let used = self.contents.borrow_mut().use_up_page(&self.geometry, page);
            return used.map_err(|misuse| Broken { error: misuse.into(), page });
        }
        if !self.fit_together(pages) {
            return Err(Broken { error: Misuse::NotTogether.into(), page: pages[0] });
        }
        self.contents.borrow_mut().use_up(&self.geometry, pages.iter().copied())
    }

    /// The rules of multi-plane and word-line programs: one LUN, one block of each plane, the same numbers on all of them.
    fn fit_together(&self, pages: &[PageId]) -> bool {
        let block = |page: &PageId| self.geometry.block_of(*page);
        let lun = |page| self.planes_per_lun.quotient(self.geometry.plane_of(block(page)).0);
        let numbers = |group: &[PageId]| -> SmallVec<[u32; 4]> {
            group.iter().map(|page| self.geometry.page_in_block(*page)).collect()
        };
        let mut groups = pages.chunk_by(|one, other| block(one) == block(other));
        let first = numbers(groups.next().expect("there are pages"));
        pages.iter().all(|page| lun(page) == lun(&pages[0])) && groups.all(|group| numbers(group) == first)
    }
}
