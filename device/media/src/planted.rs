//! States that are constructed in no time instead of simulated: programmed pages, erased blocks, lost data.

use crate::geometry::{BlockId, PageId, UnitId};
use crate::image::PageImage;
use crate::media::Media;

impl Media {
    /// Programs a page in no time and without resources, to construct a state instead of simulating it.
    ///
    /// # Panics
    /// When it is not the next page of its block.
    pub fn plant_program(&self, page: PageId, tags: impl IntoIterator<Item = u32>) {
        let contents = &mut *self.contents.borrow_mut();
        contents.use_up_page(&self.geometry, page).unwrap_or_else(|misuse| panic!("{page:?}: {misuse}"));
        contents.plant(&self.geometry, page, tags);
    }

    /// Programs a page with an image, in no time and without resources.
    ///
    /// # Panics
    /// When it is not the next page of its block.
    pub fn plant_image(&self, page: PageId, image: &PageImage) {
        let contents = &mut *self.contents.borrow_mut();
        contents.use_up_page(&self.geometry, page).unwrap_or_else(|misuse| panic!("{page:?}: {misuse}"));
        // A file that cannot be written any more reports this when asked.
        let _ = contents.fill(&self.geometry, page, image, 0);
    }

    /// Sets the out-of-band tag of a unit that was programmed in no time.
    #[inline]
    pub fn plant_tag(&self, unit: UnitId, tag: u32) {
        self.contents.borrow_mut().set_tag(unit, tag);
    }

    /// Erases a block in no time and without resources.
    pub fn plant_erase(&self, block: BlockId) {
        // A file that cannot be written any more reports this when asked.
        let _ = self.contents.borrow_mut().erase(&self.geometry, block);
    }

    /// Makes a programmed page unreadable, as if its cells had lost their charge.
    pub fn plant_unreadable(&self, page: PageId) {
        self.contents.borrow_mut().set_unreadable(page);
    }

    /// Inverts a bit of each unit of a programmed page, which its error correction does not notice.
    pub fn plant_corrupt(&self, page: PageId) {
        self.contents.borrow_mut().corrupt(&self.geometry, page);
    }

    /// Whether a page was programmed and can be read.
    pub fn is_readable(&self, page: PageId) -> bool {
        let contents = self.contents.borrow();
        contents.check_read(&self.geometry, page).is_ok() && !contents.is_unreadable(page)
    }
}
