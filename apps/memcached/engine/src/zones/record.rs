//! The record of the store on a drive with zones, and the zone in repair, if a crash interrupted a repair.

use nandscape_apps_store::bytes::{Put as _, Reader, is_sealed, seal};

use super::{ASIDE, Appended, BLOCK};
use crate::drives::Member;
use crate::error::EngineError;
use crate::shape::SUPER;

/// Bytes of the record of the store, and of it with what follows: a checksum, its number, and the zone that is to get new contents.
const RECORD: usize = SUPER;
const HEAD: usize = RECORD + 32;

/// What the first zones hold.
#[derive(Clone, Default)]
pub(super) struct Head {
    /// The record of the store; `None` if there is none.
    record: Option<Vec<u8>>,
    /// Its number: the greatest counts.
    number: u64,
    /// The zone that gets new contents, and their bytes.
    pub(super) renewed: Option<(usize, u64)>,
}

impl Head {
    fn of(block: &[u8]) -> Option<Head> {
        let head = block.get(..HEAD).filter(|head| is_sealed(head, RECORD))?;
        let mut reader = Reader(&head[RECORD + 8..]);
        let (number, zone, bytes) = (reader.u64()?, reader.u64()?, reader.u64()?);
        let renewed = (zone != u64::MAX).then_some((zone as usize, bytes));
        Some(Head { record: Some(head[..RECORD].to_vec()), number, renewed })
    }

    fn to_block(&self, len: usize) -> Option<Vec<u8>> {
        let mut block = self.record.clone()?;
        let (zone, bytes) = self.renewed.map_or((u64::MAX, 0), |(zone, bytes)| (zone as u64, bytes));
        block.u64(0);
        [self.number, zone, bytes].into_iter().for_each(|number| block.u64(number));
        seal(&mut block, RECORD);
        block.resize(len, 0);
        Some(block)
    }
}

impl Member {
    /// Reads the record of the store, and ends what a crash has interrupted.
    pub(crate) async fn open_zones(&self) -> Result<(), EngineError> {
        let Some(zoned) = self.zoned() else { return Ok(()) };
        let mut newest = Head::default();
        for zone in 0..ASIDE {
            let block = self.read_what_is_left(zone as u64 * zoned.size(), self.head_bytes(), BLOCK).await?;
            match Head::of(&block) {
                Some(head) if head.number > newest.number => newest = head,
                None if newest.record.is_none() && block.iter().any(|byte| *byte != 0) => newest.record = Some(block),
                _ => {}
            }
        }
        zoned.head.replace(newest.clone());
        match newest.renewed {
            Some((zone, bytes)) => self.renew(zone, bytes).await,
            None => Ok(()),
        }
    }

    fn head_bytes(&self) -> usize {
        self.disk().map_or(BLOCK, |disk| (disk.info.lba_bytes as usize).max(BLOCK))
    }

    /// The first bytes of a drive, which are the record of a store if it has one.
    pub(crate) async fn read_record(&self, len: usize) -> Result<Vec<u8>, EngineError> {
        match self.zoned() {
            Some(zoned) => {
                let mut record = zoned.head.borrow().record.clone().unwrap_or_default();
                record.resize(len, 0);
                Ok(record)
            }
            None => self.read_background(0, len).await,
        }
    }

    /// Writes the record of the store.
    pub(crate) async fn write_record(&self, record: &[u8]) -> Result<(), EngineError> {
        let mut block = record.to_vec();
        block.resize(block.len().next_multiple_of(self.head_bytes()), 0);
        match self.zoned() {
            Some(_) => self.write_head(|head| head.record = Some(block[..RECORD].to_vec())).await,
            None => self.write(0, &block).await,
        }
    }

    /// Changes what the first zones hold. The zone with the older record is written.
    pub(super) async fn write_head(&self, change: impl FnOnce(&mut Head)) -> Result<(), EngineError> {
        let Some(zoned) = self.zoned() else { return Ok(()) };
        let _locked = zoned.heads.lock().await;
        let mut head = zoned.head.borrow().clone();
        change(&mut head);
        head.number += 1;
        if let Some(block) = head.to_block(self.head_bytes()) {
            let zone = (head.number % ASIDE as u64) as usize;
            self.reset(zone).await?;
            while self.try_append(zone, &block).await? != Appended::Whole {
                self.reset(zone).await?;
            }
        }
        zoned.head.replace(head);
        Ok(())
    }
}
