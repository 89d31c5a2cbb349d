//! An FTL with its flash: all of a drive, or one of several parts of it.

use std::rc::Rc;

use nandscape_device_ftl_core::component::BlockInfo;
use nandscape_device_ftl_core::offers::{Sanitize, StoredTables};
use nandscape_device_ftl_core::{
    Collections, Ftl, Inspection, Located, Occupancy, PlacementReport, Plant, PlantReport, ReadOnly, SavedFtl, Stats,
    TableSummary,
};
use nandscape_device_ftl_ox::OxBlock;
use nandscape_device_ftl_page::PageFtl;
use nandscape_device_ftl_zoned::{LsmFtl, OpenChannel, ZoneFtl};
use nandscape_device_media::{BlockId, Media, MediaError, OpCounts, PlaneId, UnitId};
use nandscape_sim::Seed;

/// See the module. Commands do not pass here: their path is compiled for each kind of FTL.
pub struct Part {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) has_some_dies: bool,
    pub(crate) media: Rc<Media>,
    pub(crate) ftl: AnyFtl,
}

/// An FTL of any kind.
pub(crate) enum AnyFtl {
    Page(Rc<PageFtl>),
    OxBlock(Rc<OxBlock>),
    Zone(Rc<ZoneFtl>),
    Lsm(Rc<LsmFtl>),
    OpenChannel(Rc<OpenChannel>),
}

/// Evaluates an expression for an FTL of any kind.
macro_rules! on {
    ($part:expr, $ftl:ident => $does:expr) => {
        match &$part.ftl {
            AnyFtl::Page($ftl) => $does,
            AnyFtl::OxBlock($ftl) => $does,
            AnyFtl::Zone($ftl) => $does,
            AnyFtl::Lsm($ftl) => $does,
            AnyFtl::OpenChannel($ftl) => $does,
        }
    };
}

impl Part {
    /// Its name; the kind of FTL if the drive has only this part.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The kind of its FTL, as profiles name it.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Whether it owns only some of the dies of its channels.
    pub fn has_some_dies(&self) -> bool {
        self.has_some_dies
    }

    /// Its flash.
    pub fn media(&self) -> &Media {
        &self.media
    }

    /// The FTL, if it is an OX-Block.
    pub fn ox_block(&self) -> Option<&Rc<OxBlock>> {
        if let AnyFtl::OxBlock(ftl) = &self.ftl { Some(ftl) } else { None }
    }

    /// The FTL, if it has zones.
    pub fn zones(&self) -> Option<&Rc<ZoneFtl>> {
        if let AnyFtl::Zone(ftl) = &self.ftl { Some(ftl) } else { None }
    }

    /// The FTL, if its units are runs.
    pub fn runs(&self) -> Option<&Rc<LsmFtl>> {
        if let AnyFtl::Lsm(ftl) = &self.ftl { Some(ftl) } else { None }
    }

    /// The flash in chunks, if the drive is an open-channel one.
    pub fn open_channel(&self) -> Option<&Rc<OpenChannel>> {
        if let AnyFtl::OpenChannel(ftl) = &self.ftl { Some(ftl) } else { None }
    }

    fn inspection(&self) -> &dyn Inspection {
        on!(self, ftl => ftl.inspection())
    }

    /// The FTL's information on a block.
    pub fn block(&self, block: BlockId) -> BlockInfo {
        self.inspection().block(block)
    }

    /// Whether a unit of the flash holds current data.
    pub fn is_current(&self, unit: UnitId) -> bool {
        self.inspection().is_current(unit)
    }

    /// Where a logical unit is.
    pub fn locate(&self, lpn: u32) -> Located {
        on!(self, ftl => ftl.locate(lpn))
    }

    /// The report of the handles by which hosts place data, if the FTL has any.
    pub fn placement(&self) -> Option<PlacementReport> {
        on!(self, ftl => ftl.offers().placement.map(|placement| placement.report()))
    }

    /// The range of logical blocks that owns this plane, if ranges own planes (`ftl.windows.ranges_own`).
    pub fn range_of(&self, plane: PlaneId) -> Option<u8> {
        if let AnyFtl::Page(ftl) = &self.ftl { ftl.range_of(plane) } else { None }
    }

    /// Garbage collection at a host's command, if the FTL takes such orders.
    pub fn collections(&self) -> Option<&dyn Collections> {
        on!(self, ftl => ftl.offers().collections)
    }

    /// Whether hosts may send it fail-fast reads.
    pub(crate) fn expect_fail_fast(&self, expected: bool) {
        on!(self, ftl => ftl.offers().delays.iter().for_each(|delays| delays.expect_fail_fast(expected)));
    }

    /// A summary of the FTL's tables.
    pub fn tables(&self) -> TableSummary {
        self.inspection().tables()
    }

    /// Checks the FTL's tables against each other and the flash.
    ///
    /// # Errors
    /// The problem, in one sentence.
    pub fn check(&self) -> Result<(), String> {
        on!(self, ftl => ftl.check())
    }

    /// Counters of the FTL.
    pub fn stats(&self) -> Stats {
        on!(self, ftl => ftl.stats())
    }

    /// Room in the write buffer.
    pub fn occupancy(&self) -> Occupancy {
        self.inspection().occupancy()
    }

    /// Counts of flash operations.
    pub fn op_counts(&self) -> OpCounts {
        self.media.counts()
    }

    /// Bytes of memory of the FTL by component.
    pub fn memory(&self) -> Vec<(&'static str, u64)> {
        self.inspection().memory()
    }

    /// Why it is read-only, if it is.
    pub fn read_only(&self) -> Option<ReadOnly> {
        on!(self, ftl => ftl.read_only())
    }

    /// Checks that the drive is usable after its life before the run: without a spare block it could hold no data, because it
    /// was never written in the run. `key` is the setting of the wear. A file-backed drive that was started before is exempt.
    pub(crate) fn check_life(&self, key: &str) -> Result<(), String> {
        let (grown, (left, new)) = (self.media.grown_bad_blocks(), self.stats().spare_blocks);
        let was_started = self.media.durable().is_some_and(|memory| memory.before().starts > 0);
        let is_fit = was_started || left > 0 && self.inspection().has_room_on_all_planes();
        if grown == 0 || is_fit {
            return Ok(());
        }
        let what = if left > 0 { ", and one of its planes has not enough left" } else { "" };
        Err(format!(
            "{key}: in such a life {grown} blocks go bad, and the drive has {new} spare ones{what}: it is at its end before the run; \
             a lower {key}, lower wear.erase_failures and wear.program_failures, or more ftl.over_provisioning is valid"
        ))
    }

    pub(crate) fn can_be_planted(&self) -> bool {
        !matches!(self.ftl, AnyFtl::Lsm(_)) && self.ox_block().is_none_or(|ftl| ftl.can_be_planted())
    }

    pub(crate) fn plant(&self, plant: Plant, seed: Seed, progress: &mut dyn FnMut(f64)) -> PlantReport {
        on!(self, ftl => ftl.plant(plant, seed, progress))
    }

    pub(crate) async fn come_to_rest(&self) {
        match &self.ftl {
            AnyFtl::Page(ftl) => ftl.come_to_rest().await,
            // An orderly stop, after which the whole state is in the flash.
            AnyFtl::OxBlock(ftl) => ftl.shut_down().await,
            AnyFtl::Zone(ftl) => ftl.come_to_rest().await,
            AnyFtl::Lsm(ftl) => ftl.come_to_rest().await,
            AnyFtl::OpenChannel(ftl) => ftl.come_to_rest().await,
        }
    }

    /// Whether data was written to it, or planted.
    pub(crate) fn holds_data(&self) -> bool {
        match &self.ftl {
            AnyFtl::Page(ftl) => ftl.may_hold_data(),
            AnyFtl::Zone(ftl) => ftl.holds_data(),
            AnyFtl::Lsm(ftl) => ftl.holds_data(),
            AnyFtl::OxBlock(_) | AnyFtl::OpenChannel(_) => !self.media.is_blank(),
        }
    }

    /// Takes the state of an FTL that is not in its flash.
    pub(crate) fn take_tables(&self) -> Result<Option<SavedFtl>, String> {
        match &self.ftl {
            AnyFtl::Page(ftl) => ftl.take_saved().map(Some),
            AnyFtl::OxBlock(_) => Ok(None),
            AnyFtl::Zone(ftl) => ftl.take_saved().map(Some),
            AnyFtl::OpenChannel(ftl) => ftl.take_saved().map(Some),
            AnyFtl::Lsm(ftl) => ftl.take_saved().map(Some),
        }
    }

    pub(crate) fn put_tables(&self, saved: Option<SavedFtl>) -> Result<(), String> {
        match (&self.ftl, saved) {
            (AnyFtl::Page(ftl), Some(saved)) => ftl.put_saved(saved),
            (AnyFtl::Zone(ftl), Some(saved)) => ftl.put_saved(saved),
            (AnyFtl::Lsm(ftl), Some(saved)) => ftl.put_saved(saved),
            (AnyFtl::OpenChannel(ftl), Some(saved)) => ftl.put_saved(saved),
            (AnyFtl::OxBlock(_), None) => Ok(()),
            (_, _) => Err("the state is of another kind of FTL".to_owned()),
        }
    }

    pub(crate) async fn in_service(&self) {
        if let Some(ftl) = self.ox_block() {
            ftl.in_service().await;
        }
    }

    /// Flushes the FTL too: hosts may have left without a Flush.
    pub(crate) async fn shut_down(&self) {
        on!(self, ftl => {
            if let Some(settling) = ftl.flush() {
                // Data that the drive can no longer write is lost to its faults.
                let _ = settling.settled().await;
            }
            if let Some(tables) = ftl.offers().stored_tables {
                tables.shut_down().await;
            }
        });
    }

    pub(crate) fn save(&self) -> Result<(), MediaError> {
        match &self.ftl {
            AnyFtl::Page(ftl) => ftl.save(),
            AnyFtl::OxBlock(ftl) => ftl.save(),
            // Not file-backed.
            AnyFtl::Zone(_) | AnyFtl::OpenChannel(_) | AnyFtl::Lsm(_) => Ok(()),
        }
    }
}
