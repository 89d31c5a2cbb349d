//! Other contents for a zone: by the zone for new contents, so that a power cut at any step loses nothing.

use super::{ASIDE, Appended, BLOCK, PIECE};
use crate::drives::Member;
use crate::error::EngineError;

impl Member {
    /// Gives a zone other contents: its own before a byte, some there, and its own behind these up to `end`.
    pub(crate) async fn rewrite(&self, zone: usize, patch: (u64, &[u8]), end: u64) -> Result<(), EngineError> {
        let Some(zoned) = self.zoned() else { return Ok(()) };
        let _locked = zoned.aside.lock().await;
        let bytes = end.max(patch.0 + patch.1.len() as u64);
        loop {
            self.reset(ASIDE).await?;
            if self.copy_zone((zone, ASIDE), bytes, patch).await? {
                break;
            }
        }
        self.write_head(|head| head.renewed = Some((zone, bytes))).await?;
        self.renew(zone, bytes).await
    }

    /// The same of a place on the drive.
    pub(crate) async fn rewrite_at(&self, start: u64, bytes: &[u8], end: u64) -> Result<(), EngineError> {
        let Some(zoned) = self.zoned() else { return Ok(()) };
        let (zone, at) = zoned.place(start);
        self.rewrite(zone, (at, bytes), end - zone as u64 * zoned.size()).await
    }

    /// A zone gets the contents that were written for it.
    pub(super) async fn renew(&self, zone: usize, bytes: u64) -> Result<(), EngineError> {
        let Some(zoned) = self.zoned() else { return Ok(()) };
        zoned.hold_reads().await;
        let renewed = self.fetch_aside(zone, bytes).await;
        zoned.release_reads();
        renewed?;
        self.write_head(|head| head.renewed = None).await?;
        self.reset(ASIDE).await
    }

    async fn fetch_aside(&self, zone: usize, bytes: u64) -> Result<(), EngineError> {
        loop {
            self.reset(zone).await?;
            if self.copy_zone((ASIDE, zone), bytes, (0, &[])).await? {
                return Ok(());
            }
        }
    }

    /// Copies the first bytes of a zone to an empty one, and puts others in the place of some. Whether no power cut tore them.
    async fn copy_zone(
        &self,
        (from, to): (usize, usize),
        bytes: u64,
        (at, patch): (u64, &[u8]),
    ) -> Result<bool, EngineError> {
        let Some(zoned) = self.zoned() else { return Ok(true) };
        for start in (0..bytes).step_by(PIECE as usize) {
            let len = PIECE.min(bytes - start);
            let mut piece = self.read_left_now(from as u64 * zoned.size() + start, len as usize, BLOCK).await?;
            let (first, last) = (at.max(start), (at + patch.len() as u64).min(start + len));
            if first < last {
                let patch = &patch[(first - at) as usize..(last - at) as usize];
                piece[(first - start) as usize..(last - start) as usize].copy_from_slice(patch);
            }
            if self.try_append(to, &piece).await? != Appended::Whole {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
