//! The offloaded form with pages of any length: bases and deltas in a namespace whose pages are chains of pieces (OX 7.2.1, second and
//! third form). The drive has the chains, their places, checkpoints and cleaning; the host has nothing to recover.
//!
//! Left out: the remaining room, which the drive reports only when none is left.

use std::cell::Cell;
use std::rc::Rc;

use nandscape_apps_store::{AGAIN, Disk, Host, StoreError};
use nandscape_drive::Drive;
use nandscape_host_eleos::{Error, PieceBuffer, PieceLimits, format_for_pieces, read_pieces};

use crate::error::OpenError;
use crate::offloaded::{Again, failed};
use crate::pages::{Kind, PageStats, PageStore, Piece, Shape};

/// Bytes of a batch that are not for pages.
const BATCH_HEAD: usize = 4 << 10;
/// Bytes of a batch in addition to each piece.
const LENGTH: usize = 4;

/// Sizes of pages in a namespace whose pages are chains of pieces.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ChainConfig {
    /// The most bytes of a page's base.
    pub page_bytes: u32,
    /// The most pieces of a page, its base included. With 1 there are no deltas, but pages still have their true
    /// lengths.
    pub pieces: u32,
}

impl Default for ChainConfig {
    /// Pages of up to 4 KiB, and up to four deltas before them.
    fn default() -> ChainConfig {
        ChainConfig { page_bytes: 4_096, pieces: 5 }
    }
}

/// See the file.
pub struct ChainStore {
    disk: Disk,
    limits: PieceLimits,
    config: ChainConfig,
    flushes: Cell<u64>,
    piece_bytes: Cell<u64>,
}

impl ChainStore {
    /// The pages of a drive; `admin` is its admin queue, which reports the limit of a command.
    ///
    /// # Errors
    /// When the namespace has no such pages ([`ChainStore::format`]), the drive keeps no data, or the sizes do not
    /// fit.
    pub async fn open(
        host: &Host,
        drive: Rc<dyn Drive>,
        admin: &dyn Drive,
        config: ChainConfig,
    ) -> Result<ChainStore, OpenError> {
        let disk = Disk::new(host, drive);
        if !disk.info.keeps_data {
            return Err(OpenError::NoData);
        }
        let limits = PieceLimits::ask(&disk.issuer, admin, &disk.info).await.map_err(not_opened)?;
        let mut limits = limits.ok_or(OpenError::NoPieces)?;
        // A chain has at most the bytes of one and a half pages.
        let chain = config.page_bytes as usize * 3 / 2;
        if config.page_bytes < 1_024 || chain > limits.page_bytes {
            let most = limits.page_bytes / 3 * 2;
            let problem = format!("pages of {} bytes; 1024 to {most} are valid on this drive", config.page_bytes);
            return Err(OpenError::Size(problem));
        }
        if !(1..=limits.pieces as u32).contains(&config.pieces) {
            let problem = format!("{} pieces of a page; 1 to {} are valid on this drive", config.pieces, limits.pieces);
            return Err(OpenError::Size(problem));
        }
        limits.expected = chain + config.pieces as usize * LENGTH;
        Ok(ChainStore { disk, limits, config, flushes: Cell::new(0), piece_bytes: Cell::new(0) })
    }

    /// Formats a namespace for such pages. **All its data is dropped.**
    ///
    /// # Errors
    /// When the drive does not support such pages, its commands are too small for them, or it does not format.
    pub async fn format(host: &Host, drive: &Rc<dyn Drive>, admin: &dyn Drive) -> Result<(), OpenError> {
        let disk = Disk::new(host, drive.clone());
        format_for_pieces(&disk.issuer, admin, &disk.info, true).await.map_err(not_opened)
    }

    /// Formats a namespace that has such pages for blocks and pages of 4 KiB again. **All its data is dropped.**
    ///
    /// # Errors
    /// When the drive knows no such pages, or does not format.
    pub async fn format_for_blocks(host: &Host, drive: &Rc<dyn Drive>, admin: &dyn Drive) -> Result<(), OpenError> {
        let disk = Disk::new(host, drive.clone());
        format_for_pieces(&disk.issuer, admin, &disk.info, false).await.map_err(not_opened)
    }

    /// Whether the namespace has no pages; `admin` is the drive's admin queue.
    ///
    /// # Errors
    /// When the drive does not answer.
    pub async fn is_empty(&self, admin: &dyn Drive) -> Result<bool, OpenError> {
        // The drive counts them from the first use on.
        self.read(&[0]).await?;
        let limits = PieceLimits::ask(&self.disk.issuer, admin, &self.disk.info).await.map_err(not_opened)?;
        Ok(limits.is_none_or(|limits| limits.pages == 0))
    }

    /// Whether a flush interrupted by a power cut or a broken connection is present: its deltas must not be flushed
    /// twice. A flush of bases alone may be. The page then has the last delta, and no more.
    async fn is_there(&self, pieces: &[Piece]) -> Result<bool, StoreError> {
        let Some(delta) = pieces.iter().rev().find(|piece| piece.kind == Kind::Delta) else { return Ok(false) };
        let found = self.read(&[delta.lpid]).await?;
        Ok(found[0].len() as u32 == delta.before + 1)
    }
}

/// Why a drive has no such pages.
fn not_opened(error: Error) -> OpenError {
    match error {
        Error::Unsupported => OpenError::NoPages,
        Error::TooSmall { .. } => OpenError::TooSmall(error),
        other => failed(other).into(),
    }
}

impl PageStore for ChainStore {
    fn shape(&self) -> Shape {
        let ChainConfig { page_bytes, pieces } = self.config;
        let fits = |count: &usize| count * page_bytes as usize <= self.limits.most_bytes(*count);
        let flush_pieces = (1..).take_while(fits).last().unwrap_or(0);
        Shape { page_bytes: page_bytes as usize, pieces, flush_pieces, pages: self.limits.lpids }
    }

    fn room(&self) -> u64 {
        u64::MAX
    }

    async fn flush(&self, pieces: Vec<Piece>) -> Result<(), StoreError> {
        let disk = &self.disk;
        let mut buffer = PieceBuffer::new(&disk.info, &self.limits);
        for Piece { lpid, kind, bytes, .. } in &pieces {
            let put = match kind {
                Kind::Base => buffer.put(*lpid, bytes),
                Kind::Delta => buffer.append(*lpid, bytes),
            };
            put.map_err(|misfit| StoreError::Corrupt(misfit.to_string()))?;
            self.piece_bytes.set(self.piece_bytes.get() + bytes.len() as u64);
        }
        let bytes = buffer.moved();
        disk.host.bytes(bytes).await;
        let mut again = Again::default();
        loop {
            disk.commands.set(disk.commands.get() + 1);
            disk.host.commands(1).await;
            match buffer.flush(&disk.issuer, &*disk.drive).await {
                Ok(()) => break,
                // All of it is present or nothing.
                Err(error) if again.is_after(&error) => {
                    disk.host.sim().sleep(AGAIN).await;
                    if self.is_there(&pieces).await? {
                        break;
                    }
                }
                Err(error) => return Err(failed(error)),
            }
        }
        self.flushes.set(self.flushes.get() + 1);
        disk.written_bytes.set(disk.written_bytes.get() + bytes as u64);
        Ok(())
    }

    async fn read(&self, lpids: &[u64]) -> Result<Vec<Vec<Vec<u8>>>, StoreError> {
        let disk = &self.disk;
        let mut again = Again::default();
        loop {
            disk.commands.set(disk.commands.get() + 1);
            disk.host.commands(1).await;
            match read_pieces(&disk.issuer, &*disk.drive, &self.limits, lpids).await {
                Ok(found) => {
                    let bytes: usize = found.iter().flatten().map(|piece| LENGTH + piece.len()).sum();
                    disk.read_bytes.set(disk.read_bytes.get() + (BATCH_HEAD + bytes) as u64);
                    return Ok(found);
                }
                Err(error) if again.is_after(&error) => disk.host.sim().sleep(AGAIN).await,
                Err(error) => return Err(failed(error)),
            }
        }
    }

    fn stats(&self) -> PageStats {
        PageStats { flushes: self.flushes.get(), piece_bytes: self.piece_bytes.get(), ..PageStats::of(&self.disk) }
    }
}
