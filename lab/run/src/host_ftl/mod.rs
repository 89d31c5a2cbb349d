//! The page-mapping FTL of the black-box drives, on the host of an open-channel drive: a [`Drive`](nandscape_drive::Drive) over a
//! `Drive`. Its code is that of the drives; the difference is the flash below it ([`RemoteArray`]), which it reaches by vector
//! commands or commands on rows.
//!
//! Garbage collection moves data through the host (a read and a write), or has the drive copy it ([`Moving`]). [`Traffic`]
//! counts what crosses the link for either.
//!
//! | file | what |
//! |---|---|
//! | `chunks` | an open-channel drive as its node shows it to the FTL above |
//! | `saved` | the state of such an FTL at rest |
//!
//! [`FtlLayer`](crate::chain::FtlLayer) is this FTL as a layer of a chain.
//!
//! Left out: out-of-band areas in the drive, hence a start from a drive with data without the saved state of its FTL: such a
//! drive is rejected; OX-Block; strips of several pages of a word line whose bytes are no power of two; notifications of the drive.

mod chunks;
mod saved;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::rc::Rc;

use nandscape_device_media::remote::Elsewhere;
use nandscape_device_media::{BlockId, Geometry, MediaError, PageId, RemoteArray, UnitId};
use nandscape_device_ssd::{Profile, ProfileError, Resolved, Ssd};
use nandscape_host_open_channel::{ChunkInfo, Error, Geometry as Shape, OpenChannel, Place};
use nandscape_sim::{Seed, Sim};
use nandscape_wire_nvme::Status;
use nandscape_wire_nvme::open_channel::{CHUNK_FREE, CHUNK_OFFLINE};

pub use chunks::{Chunks, open};
pub(crate) use saved::Saved;

/// How garbage collection moves data.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Moving {
    /// Through the host: a read and a write.
    ReadWrite,
    /// In the drive, by Vector Copy or Copy. Through the host where a source cannot be read, and in drives with MW_CUNITS.
    Copy,
}

/// Bytes that crossed the link, bytes moved in the drive, and reset chunks.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Traffic {
    /// Bytes read from the drive.
    pub read: u64,
    /// Bytes written to it.
    pub written: u64,
    /// Bytes that it copied by itself.
    pub copied: u64,
    /// Chunks reset.
    pub resets: u64,
}

impl Traffic {
    /// What was added since an earlier reading.
    #[must_use]
    pub fn since(&self, earlier: &Traffic) -> Traffic {
        Traffic {
            read: self.read - earlier.read,
            written: self.written - earlier.written,
            copied: self.copied - earlier.copied,
            resets: self.resets - earlier.resets,
        }
    }
}

/// Pages of a block with their data, the oldest first.
type Newest = VecDeque<(PageId, Vec<u8>)>;

/// The flash of an open-channel drive.
pub struct HostFlash {
    host: OpenChannel,
    geometry: Geometry,
    bad: Vec<bool>,
    moving: Moving,
    /// The newest pages of open chunks, which the drive does not read yet (MW_CUNITS).
    unread: RefCell<BTreeMap<BlockId, Newest>>,
    traffic: Cell<Traffic>,
    /// A write or a reset found the drive unreachable.
    is_out_of_reach: Cell<bool>,
}

/// Why units were not read.
fn read_error(error: &Error) -> MediaError {
    match error.status {
        Status::UNRECOVERED_READ_ERROR => MediaError::Uncorrectable,
        _ => MediaError::Failed,
    }
}

/// How many chunks are neither free nor out of use.
pub(crate) fn used_chunks(report: &[ChunkInfo]) -> usize {
    report.iter().filter(|chunk| chunk.state & (CHUNK_FREE | CHUNK_OFFLINE) == 0).count()
}

/// The profile of an FTL over a drive: `base`, with the flash of the drive, without a link, and with `changes`.
///
/// # Errors
/// When the drive's minimum write size or chunks do not fit a page and a block of a profile, or the changes are not valid.
pub fn profile(base: &str, chunks: &Shape, changes: &[&str]) -> Result<Resolved, ProfileError> {
    let mut profile = Profile::load(base)?;
    let flash = [
        format!("geometry.channels={}", chunks.groups),
        format!("geometry.dies_per_channel={}", chunks.pus),
        "geometry.planes_per_die=1".to_owned(),
        format!("geometry.blocks_per_plane={}", chunks.chunks),
        format!("geometry.pages_per_block={}", chunks.sectors / chunks.ws_min),
        format!("geometry.page_size={}", u64::from(chunks.ws_min) * 4_096),
        "geometry.factory_bad_blocks=0%".to_owned(),
        "timing.program_unit=page".to_owned(),
        "link.bandwidth=unlimited".to_owned(),
        "link.latency=0us".to_owned(),
    ];
    profile.set_all(&flash)?;
    profile.set_all(changes)?;
    profile.resolve()
}

impl HostFlash {
    /// The flash of a drive that reports these chunks, for an FTL with this profile.
    ///
    /// # Errors
    /// When chunks hold data, the drive has a volatile write cache, or the profile has another geometry.
    pub fn new(
        host: OpenChannel,
        report: &[ChunkInfo],
        profile: &Resolved,
        moving: Moving,
    ) -> io::Result<Rc<HostFlash>> {
        match used_chunks(report) {
            0 => HostFlash::with_data(host, report, profile, moving),
            used => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{used} chunks of the drive hold data; the FTL begins with chunks that are reset"),
            )),
        }
    }

    /// The same for the saved state of an FTL over these chunks, which may hold data.
    fn with_data(
        host: OpenChannel,
        report: &[ChunkInfo],
        profile: &Resolved,
        moving: Moving,
    ) -> io::Result<Rc<HostFlash>> {
        let (geometry, chunks) = (profile.geometry(), *host.geometry());
        let counts = geometry.counts();
        let here = [counts.channels, counts.dies_per_channel * counts.planes_per_die, counts.blocks_per_plane];
        let there = [chunks.groups, chunks.pus, chunks.chunks];
        let pages = [geometry.units_per_page(), geometry.units_per_block()];
        let invalid = |problem: String| io::Error::new(io::ErrorKind::InvalidInput, problem);
        if host.has_volatile_cache() {
            let problem = "the drive has a volatile write cache, and its host would have to keep what it writes; buffer.mode = \"through\" has none";
            return Err(invalid(problem.to_owned()));
        }
        if geometry.unit_size() as usize != host.block_bytes() {
            let (unit, block) = (geometry.unit_size(), host.block_bytes());
            return Err(invalid(format!(
                "the FTL maps units of {unit} bytes; the drive has logical blocks of {block}"
            )));
        }
        if here != there || pages != [chunks.ws_min, chunks.sectors] {
            return Err(invalid(format!(
                "the FTL is for {here:?} channels, dies and blocks of {pages:?} units a page and a block; the drive has {there:?} groups, \
                 parallel units and chunks of {:?}",
                [chunks.ws_min, chunks.sectors]
            )));
        }
        let bad = report.iter().map(|chunk| chunk.state & CHUNK_OFFLINE != 0).collect();
        let (unread, traffic) = (RefCell::default(), Cell::default());
        let is_out_of_reach = Cell::new(false);
        Ok(Rc::new(HostFlash { host, geometry, bad, moving, unread, traffic, is_out_of_reach }))
    }

    /// The first `pages` pages of a block hold zeros, which were not written by commands. Those that the drive does not read yet are here.
    pub(crate) fn plant(&self, block: BlockId, pages: u32) {
        let (zeros, size) =
            (self.host.geometry().mw_cunits.div_ceil(self.geometry.units_per_page()), self.geometry.page_size());
        for page in pages.saturating_sub(zeros)..pages {
            self.keep_unread(self.geometry.page_at(block, page), vec![0; size as usize]);
        }
    }

    /// What has crossed the link so far.
    pub fn traffic(&self) -> Traffic {
        self.traffic.get()
    }

    /// Why nothing was written or reset. An unreachable drive is no evidence of bad blocks.
    fn change_error(&self, error: &Error) -> MediaError {
        match error.status {
            Status::HOST_PATHING_ERROR => {
                self.is_out_of_reach.set(true);
                MediaError::Store
            }
            _ => MediaError::Failed,
        }
    }

    /// Why nothing was copied: a source that cannot be read, or as for a write.
    fn copy_error(&self, error: &Error) -> MediaError {
        match error.status {
            Status::UNRECOVERED_READ_ERROR => MediaError::Uncorrectable,
            _ => self.change_error(error),
        }
    }

    fn count(&self, count: impl FnOnce(&mut Traffic)) {
        let mut traffic = self.traffic.get();
        count(&mut traffic);
        self.traffic.set(traffic);
    }

    /// The address of a unit of a page.
    fn address(&self, page: PageId, unit: u32) -> u64 {
        let (geometry, chunks) = (&self.geometry, self.host.geometry());
        let block = geometry.block_of(page);
        let (group, pu, _) = geometry.place(geometry.plane_of(block));
        let sector = geometry.page_in_block(page) * chunks.ws_min + unit;
        chunks.address(Place { group, pu, chunk: block.0 % geometry.blocks_per_plane(), sector })
    }

    fn addresses(&self, page: PageId) -> Vec<u64> {
        (0..self.geometry.units_per_page()).map(|unit| self.address(page, unit)).collect()
    }

    fn address_of(&self, unit: UnitId) -> u64 {
        let page = self.geometry.page_of(unit);
        self.address(page, unit.0 - self.geometry.unit_at(page, 0).0)
    }

    /// Whether the drive does not read a page yet, and it is here.
    fn unread(&self, page: PageId, units: &[u32]) -> Option<Vec<u8>> {
        let (unread, size) = (self.unread.borrow(), self.geometry.unit_size() as usize);
        let (_, data) = unread.get(&self.geometry.block_of(page))?.iter().find(|(each, _)| *each == page)?;
        Some(units.iter().flat_map(|unit| &data[*unit as usize * size..][..size]).copied().collect())
    }

    /// Keeps a page that was written until the drive reads it.
    fn keep_unread(&self, page: PageId, data: Vec<u8>) {
        let pages = self.host.geometry().mw_cunits.div_ceil(self.geometry.units_per_page()) as usize;
        let (block, mut unread) = (self.geometry.block_of(page), self.unread.borrow_mut());
        if self.geometry.page_in_block(page) + 1 == self.geometry.pages_per_block() {
            unread.remove(&block);
        } else if pages > 0 {
            let newest = unread.entry(block).or_default();
            newest.push_back((page, data));
            while newest.len() > pages {
                newest.pop_front();
            }
        }
    }

    async fn write(&self, page: PageId, data: Vec<u8>) -> Result<(), MediaError> {
        self.host.write(&self.addresses(page), &data).await.map_err(|error| self.change_error(&error))?;
        self.count(|traffic| traffic.written += data.len() as u64);
        self.keep_unread(page, data);
        Ok(())
    }

    /// Copies in the drive.
    async fn copy_units(&self, from: Vec<UnitId>, to: PageId) -> Result<(), MediaError> {
        let sources: Vec<u64> = from.iter().map(|unit| self.address_of(*unit)).collect();
        self.host.copy(&sources, &self.addresses(to)).await.map_err(|error| self.copy_error(&error))?;
        self.count(|traffic| traffic.copied += u64::from(self.geometry.page_size()));
        Ok(())
    }

    async fn reset(&self, block: BlockId) -> Result<(), MediaError> {
        let chunks = self.host.geometry();
        let first = self.address(self.geometry.page_at(block, 0), 0);
        let number = chunks.chunk_number(chunks.place(first).expect("a chunk of the drive"));
        let failed = |error: Error| self.change_error(&error);
        let chunk = *self.host.report_of(number, 1).await.map_err(failed)?.first().ok_or(MediaError::Failed)?;
        self.unread.borrow_mut().remove(&block);
        let filled = self.host.empty(&chunk).await.map_err(failed)?;
        self.count(|traffic| {
            traffic.written += filled * self.host.block_bytes() as u64;
            traffic.resets += u64::from(chunk.state != CHUNK_FREE);
        });
        Ok(())
    }
}

impl RemoteArray for HostFlash {
    fn is_bad(&self, block: BlockId) -> bool {
        self.bad[block.0 as usize]
    }

    fn copies(&self) -> bool {
        // What the drive does not read yet, it does not copy either.
        self.moving == Moving::Copy && self.host.geometry().mw_cunits == 0
    }

    fn is_out_of_reach(&self) -> bool {
        self.is_out_of_reach.get()
    }

    fn read<'a>(&'a self, page: PageId, units: Vec<u32>) -> Elsewhere<'a, Vec<u8>> {
        Box::pin(async move {
            if let Some(data) = self.unread(page, &units) {
                return Ok(data);
            }
            let addresses: Vec<u64> = units.iter().map(|unit| self.address(page, *unit)).collect();
            self.count(|traffic| traffic.read += units.len() as u64 * u64::from(self.geometry.unit_size()));
            self.host.read(&addresses).await.map_err(|error| read_error(&error))
        })
    }

    fn program<'a>(&'a self, page: PageId, data: Vec<u8>) -> Elsewhere<'a, ()> {
        Box::pin(self.write(page, data))
    }

    fn copy<'a>(&'a self, from: Vec<UnitId>, to: PageId) -> Elsewhere<'a, ()> {
        Box::pin(self.copy_units(from, to))
    }

    fn erase<'a>(&'a self, block: BlockId) -> Elsewhere<'a, ()> {
        Box::pin(self.reset(block))
    }
}

/// An FTL over an open-channel drive, and the flash below it.
///
/// # Errors
/// As of [`HostFlash::new`] and [`Ssd::over_remote`].
pub fn over(
    sim: &Sim,
    (host, report): (OpenChannel, &[ChunkInfo]),
    profile: &Resolved,
    moving: Moving,
    seed: Seed,
) -> io::Result<(Rc<Ssd>, Rc<HostFlash>)> {
    let flash = HostFlash::new(host, report, profile, moving)?;
    let ssd = Ssd::over_remote(sim, profile, flash.clone(), seed, None)?;
    Ok((Rc::new(ssd), flash))
}
