//! A drive's limits for pages that are chains of pieces, and the format that a namespace needs for them.

use nandscape_drive::{Drive, DriveInfo, HostMem, Issuer};
use nandscape_wire_nvme::identify::{Controller, Namespace, cns};
use nandscape_wire_nvme::lss::{Head, LIST, PAGE};
use nandscape_wire_nvme::pieces::{
    Entry, FORMAT_PIECES, LEAST_BATCH, MOST_ENTRIES, MOST_PAGE_BYTES, MOST_PIECES, Report,
};
use nandscape_wire_nvme::vendor::{Capabilities, HAS_PIECES};
use nandscape_wire_nvme::{AdminOpcode, SubmissionEntry};
use zerocopy::FromBytes;

use crate::Error;

/// Bytes of a page that a batched read has room for by default.
const EXPECTED: usize = PAGE;

/// The limits of a namespace whose pages are chains of pieces.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct PieceLimits {
    /// Page numbers are below.
    pub lpids: u64,
    /// The most pieces of a page, its base included.
    pub pieces: usize,
    /// The most bytes of a page, all pieces together.
    pub page_bytes: usize,
    /// Bytes of pieces that the namespace has room for.
    pub capacity: u64,
    /// Pages stored when the drive was asked; 0 before the first use of the namespace since the drive's start.
    pub pages: u64,
    /// Bytes of a page that a batched read first has room for. The read is repeated for longer pages. Programs set it
    /// to the size that they expect.
    pub expected: usize,
    /// The most that the pieces of a buffer may sum to, each with its bytes and `entry`.
    pub(super) buffer: u64,
    pub(super) entry: u64,
    /// Bytes that a command moves, whole 4 KiB.
    pub(super) moved: usize,
}

impl PieceLimits {
    /// Asks a drive, by Identify Namespace on its admin queue; `None` if the namespace has no such pages: see
    /// [`format_for_pieces`].
    ///
    /// # Errors
    /// When the drive does not answer, or not even one page fits into a command.
    pub async fn ask(issuer: &Issuer, admin: &dyn Drive, drive: &DriveInfo) -> Result<Option<PieceLimits>, Error> {
        let namespace = identify(issuer, admin, drive.nsid).await?;
        Report::of(&namespace.vendor).map(|report| PieceLimits::of(&report, drive)).transpose()
    }

    /// The limits from a report and the transport.
    fn of(report: &Report, drive: &DriveInfo) -> Result<PieceLimits, Error> {
        let a_page = (report.page_bytes.get() as usize, usize::from(report.pieces.get()));
        let moved = moved(drive, a_page)?;
        fits(report.buffer_bytes.get(), u64::from(report.page_bytes.get()) + u64::from(report.entry_bytes.get()))?;
        Ok(PieceLimits {
            lpids: report.lpids.get(),
            pieces: usize::from(report.pieces.get()),
            page_bytes: report.page_bytes.get() as usize,
            capacity: report.capacity.get(),
            pages: report.pages.get(),
            expected: EXPECTED,
            buffer: report.buffer_bytes.get(),
            entry: report.entry_bytes.get().into(),
            moved,
        })
    }

    /// Bytes that a buffer of one piece has room for.
    pub fn room(&self) -> usize {
        self.most_bytes(1)
    }

    /// Bytes that a buffer of this number of pieces has room for.
    pub fn most_bytes(&self, pieces: usize) -> usize {
        let heads = size_of::<Head>() + pieces * size_of::<Entry>();
        let drive = self.buffer.saturating_sub(self.entry * pieces as u64);
        let is_few = pieces <= MOST_ENTRIES;
        if is_few { self.moved.saturating_sub(heads).min(usize::try_from(drive).unwrap_or(usize::MAX)) } else { 0 }
    }

    /// The drive's present pages and its counters for them.
    ///
    /// # Errors
    /// When the drive does not answer, or the namespace has no such pages.
    pub async fn report(issuer: &Issuer, admin: &dyn Drive, nsid: u32) -> Result<Report, Error> {
        let namespace = identify(issuer, admin, nsid).await?;
        Report::of(&namespace.vendor).ok_or(Error::OtherPages)
    }
}

/// Bytes that a command moves, in whole 4 KiB: enough for a batched read of the longest page, given by its bytes and
/// pieces.
fn moved(drive: &DriveInfo, (page_bytes, pieces): (usize, usize)) -> Result<usize, Error> {
    let moved = (u64::from(drive.max_blocks) * u64::from(drive.lba_bytes)).min(1 << 28) / PAGE as u64 * PAGE as u64;
    let least = LEAST_BATCH.max((LIST + page_bytes + pieces * size_of::<u32>()).next_multiple_of(PAGE));
    fits(moved, least as u64)?;
    Ok(moved as usize)
}

fn fits(bytes: u64, least: u64) -> Result<(), Error> {
    if bytes < least { Err(Error::TooSmall { bytes, least }) } else { Ok(()) }
}

async fn identify(issuer: &Issuer, admin: &dyn Drive, nsid: u32) -> Result<Namespace, Error> {
    let mem = HostMem::zeroed(size_of::<Namespace>());
    Error::of(issuer.execute(admin, SubmissionEntry::identify(cns::NAMESPACE, nsid), mem.clone()).await.status)?;
    Ok(Namespace::read_from_bytes(&mem.to_vec()).expect("memory of its size"))
}

/// Formats the namespace of a drive, through its admin queue, for pages that are chains of pieces, or again for pages
/// of 4 KiB. **All data of the namespace is dropped.**
///
/// # Errors
/// The drive does not support such pages, its commands are too small for the longest page, or why it does not format.
/// No data is dropped then.
pub async fn format_for_pieces(
    issuer: &Issuer,
    admin: &dyn Drive,
    drive: &DriveInfo,
    has_pieces: bool,
) -> Result<(), Error> {
    let mem = HostMem::zeroed(size_of::<Controller>());
    Error::of(issuer.execute(admin, SubmissionEntry::identify(cns::CONTROLLER, 0), mem.clone()).await.status)?;
    let controller = Controller::read_from_bytes(&mem.to_vec()).expect("memory of its size");
    let table = Capabilities::of(&controller.vendor).filter(|table| table.functions.get() & HAS_PIECES != 0);
    let table = table.ok_or(Error::Unsupported)?;
    if has_pieces {
        // The namespace reports no limits before it has such pages. A buffer is less than a transaction.
        moved(drive, (MOST_PAGE_BYTES, MOST_PIECES))?;
        fits(u64::from(table.atomic_units.get()) * u64::from(drive.unit_bytes), MOST_PAGE_BYTES as u64 + 1)?;
    }
    let flbas = u32::from(identify(issuer, admin, drive.nsid).await?.flbas);
    let mut entry = SubmissionEntry::admin(AdminOpcode::FORMAT_NVM);
    entry.nsid = drive.nsid.into();
    // Keeps the LBA format: its index is in bits 3:0 and 6:5 of FLBAS, and in 3:0 and 13:12 of CDW10.
    entry.cdw10 = (flbas & 0x1f | (flbas & 0x60) << 7).into();
    entry.cdw12 = if has_pieces { FORMAT_PIECES } else { 0 }.into();
    Error::of(issuer.execute(admin, entry, HostMem::none()).await.status)
}
