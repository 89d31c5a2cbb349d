//! The offloaded form: pages of 4 KiB on a drive that knows them (OX-ELEOS). The drive keeps their places, writes
//! checkpoints of the places, and cleans; the host has nothing to recover.
//!
//! Left out: pieces of pages, and pages of other lengths, which [`ChainStore`](crate::ChainStore) has.

use std::cell::Cell;
use std::rc::Rc;

use nandscape_apps_store::{AGAIN, Disk, Host, Range, StoreError};
use nandscape_drive::Drive;
use nandscape_host_eleos::{Buffer, Error, Limits, Page, PieceLimits, read};
use nandscape_wire_nvme::Status;

use crate::error::OpenError;
use crate::pages::{PageStats, PageStore, Piece, Shape};

/// Bytes of a page.
const PAGE: usize = size_of::<Page>();
/// Bytes at the beginning of a buffer or of a batch that are not for pages, as the drive receives them (OX 7.3.1).
const BUFFER_HEAD: usize = 16 << 10;
const BATCH_HEAD: usize = 4 << 10;

/// See the file.
pub struct EleosStore {
    disk: Disk,
    limits: Limits,
    flushes: Cell<u64>,
    piece_bytes: Cell<u64>,
}

impl EleosStore {
    /// The pages of a drive; `admin` is its admin queue, which reports the limit of a command.
    ///
    /// # Errors
    /// When the drive does not support pages or keeps no data, or the namespace has pages of pieces.
    pub async fn open(host: &Host, drive: Rc<dyn Drive>, admin: &dyn Drive) -> Result<EleosStore, OpenError> {
        let disk = Disk::new(host, drive);
        if !disk.info.keeps_data {
            return Err(OpenError::NoData);
        }
        let limits = Limits::ask(&disk.issuer, admin, &disk.info).await.map_err(failed)?;
        let limits = limits.ok_or(OpenError::NoPages)?;
        match PieceLimits::ask(&disk.issuer, admin, &disk.info).await {
            Ok(None) => {}
            Ok(Some(_)) | Err(Error::TooSmall { .. }) => return Err(OpenError::HasPieces),
            Err(error) => return Err(failed(error).into()),
        }
        Ok(EleosStore { disk, limits, flushes: Cell::new(0), piece_bytes: Cell::new(0) })
    }

    /// Reads one page as its logical blocks: the list of a batch alone is as long as a page. A piece is never all
    /// zeros.
    async fn read_one(&self, lpid: u64) -> Result<Vec<Vec<u8>>, StoreError> {
        let blocks = PAGE as u64 / u64::from(self.disk.info.lba_bytes);
        let mut pages = self.disk.read(&[Range { slba: lpid * blocks, blocks }]).await?;
        pages.retain(|page| page.iter().any(|byte| *byte != 0));
        Ok(pages)
    }

    async fn read_some(&self, lpids: &[u64]) -> Result<Vec<Vec<Vec<u8>>>, StoreError> {
        let disk = &self.disk;
        let bytes = BATCH_HEAD + lpids.len() * PAGE;
        let mut again = Again::default();
        loop {
            disk.commands.set(disk.commands.get() + 1);
            disk.host.commands(1).await;
            match read(&disk.issuer, &*disk.drive, &self.limits, lpids).await {
                Ok(found) => {
                    disk.read_bytes.set(disk.read_bytes.get() + bytes as u64);
                    return Ok(found
                        .into_iter()
                        .map(|page| page.map(|page| page.to_vec()).into_iter().collect())
                        .collect());
                }
                Err(error) if again.is_after(&error) => disk.host.sim().sleep(AGAIN).await,
                Err(error) => return Err(failed(error)),
            }
        }
    }
}

/// Whether a command of pages is repeated. It always is after a power cut, and a few times after a broken connection,
/// after which not all commands are sent again. A drive that is given up returns the same error at once.
#[derive(Default)]
pub(crate) struct Again {
    broken: u32,
}

impl Again {
    /// Connections that break during one command.
    const MOST_BROKEN: u32 = 8;

    pub(crate) fn is_after(&mut self, error: &Error) -> bool {
        match error {
            Error::PowerLost => true,
            Error::Failed(Status::HOST_PATHING_ERROR) => {
                self.broken += 1;
                self.broken <= Again::MOST_BROKEN
            }
            _ => false,
        }
    }
}

/// Why a drive did not serve a command.
pub(crate) fn failed(error: Error) -> StoreError {
    match error {
        Error::Failed(status) => StoreError::Drive(status),
        Error::Full => StoreError::Full,
        other => StoreError::Corrupt(other.to_string()),
    }
}

impl PageStore for EleosStore {
    fn shape(&self) -> Shape {
        let pages = self.disk.info.bytes() / PAGE as u64;
        Shape { page_bytes: PAGE, pieces: 1, flush_pieces: self.limits.buffered, pages }
    }

    fn room(&self) -> u64 {
        u64::MAX
    }

    async fn flush(&self, pieces: Vec<Piece>) -> Result<(), StoreError> {
        let disk = &self.disk;
        let mut buffer = Buffer::new(&disk.info, &self.limits);
        for Piece { lpid, bytes, .. } in &pieces {
            let mut page = [0; PAGE];
            page[..bytes.len()].copy_from_slice(bytes);
            buffer.put(*lpid, &page).map_err(|misfit| StoreError::Corrupt(misfit.to_string()))?;
            self.piece_bytes.set(self.piece_bytes.get() + bytes.len() as u64);
        }
        let bytes = BUFFER_HEAD + pieces.len() * PAGE;
        disk.host.bytes(bytes).await;
        let mut again = Again::default();
        loop {
            disk.commands.set(disk.commands.get() + 1);
            disk.host.commands(1).await;
            match buffer.flush(&disk.issuer, &*disk.drive).await {
                Ok(()) => break,
                // All of it is present or nothing; it is flushed again in both cases.
                Err(error) if again.is_after(&error) => disk.host.sim().sleep(AGAIN).await,
                Err(error) => return Err(failed(error)),
            }
        }
        self.flushes.set(self.flushes.get() + 1);
        disk.written_bytes.set(disk.written_bytes.get() + bytes as u64);
        Ok(())
    }

    async fn read(&self, lpids: &[u64]) -> Result<Vec<Vec<Vec<u8>>>, StoreError> {
        if let [lpid] = lpids {
            return Ok(vec![self.read_one(*lpid).await?]);
        }
        let mut found = Vec::with_capacity(lpids.len());
        for some in lpids.chunks(self.limits.batched) {
            found.extend(self.read_some(some).await?);
        }
        Ok(found)
    }

    fn stats(&self) -> PageStats {
        PageStats { flushes: self.flushes.get(), piece_bytes: self.piece_bytes.get(), ..PageStats::of(&self.disk) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_given_again_after_power_cuts_and_some_broken_connections() {
        let mut again = Again::default();
        let path = Error::Failed(Status::HOST_PATHING_ERROR);
        assert!((0..Again::MOST_BROKEN).all(|_| again.is_after(&path) && again.is_after(&Error::PowerLost)));
        assert!(!again.is_after(&path), "the drive is given up");
        assert!(!Again::default().is_after(&Error::Full));
        assert_eq!(failed(Error::Full), StoreError::Full, "as the log says it");
    }
}
