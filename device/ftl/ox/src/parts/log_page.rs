//! A page of the log: a chain pointer of 64 bytes, then records (OX 6.1.6).
//!
//! The chain pointer has the number of the page, the epoch of the chain, the pages where the next one may be, the
//! number of records that follow, and a checksum. A page belongs to a chain if its number and its epoch are those that
//! the chain expects: data of an earlier life of the block has others. The thesis has the pointers only, and does not
//! define how to distinguish the end of a chain from an old page.

use nandscape_device_ftl_core::component::{CHAIN_POINTER, POINTERS, RECORD, Record, page_from_raw, page_to_raw};
use nandscape_device_media::PageId;

/// A page of the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogPage {
    /// Its place in the chain.
    pub number: u64,
    /// Which chain: one begins at every start of the drive.
    pub epoch: u64,
    /// Where the next page may be.
    pub next: [Option<PageId>; POINTERS],
    /// Records with their timestamps.
    pub records: Vec<(u64, Record)>,
}

/// Records that fit a page of `bytes` bytes.
pub fn records_per_page(bytes: usize) -> usize {
    bytes / RECORD - 1
}

impl LogPage {
    /// The page in its bytes, padded.
    pub fn encode(&self, bytes: usize) -> Vec<u8> {
        let mut page = Vec::with_capacity(bytes);
        page.extend_from_slice(&[0; RECORD]);
        self.records.iter().for_each(|(timestamp, record)| page.extend_from_slice(&record.encode(*timestamp)));
        while page.len() < bytes {
            page.extend_from_slice(&Record::Padding.encode(0));
        }
        page[8] = CHAIN_POINTER;
        let numbers = [self.number, self.epoch, self.records.len() as u64];
        let numbers = numbers.into_iter().chain(self.next.map(page_to_raw));
        for (place, number) in page[16..].chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        let sum = crc32fast::hash(&page[16..]);
        page[..8].copy_from_slice(&u64::from(sum).to_le_bytes());
        page
    }

    /// The page of bytes; `None` if they are none, or were changed.
    pub fn decode(bytes: &[u8]) -> Option<LogPage> {
        let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        if bytes[8] != CHAIN_POINTER || number(0) != u64::from(crc32fast::hash(&bytes[16..])) {
            return None;
        }
        let count = usize::try_from(number(32)).ok().filter(|count| *count <= records_per_page(bytes.len()))?;
        let records = bytes[RECORD..].chunks_exact(RECORD).take(count).map(Record::decode);
        Some(LogPage {
            number: number(16),
            epoch: number(24),
            next: [40, 48, 56].map(|at| page_from_raw(number(at))),
            records: records.collect::<Option<_>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_device_media::BlockId;

    #[test]
    fn a_page_is_read_as_it_was_written_and_a_changed_one_is_not() {
        let records = (1..=60).map(|number| (number, Record::RecycleChunk(BlockId(number as u32)))).collect();
        let page = LogPage { number: 5, epoch: 2, next: [Some(PageId(0)), None, Some(PageId(9))], records };
        let bytes = page.encode(4_096);
        assert_eq!((bytes.len(), records_per_page(4_096)), (4_096, 63));
        assert_eq!(LogPage::decode(&bytes).as_ref(), Some(&page));
        for at in [0, 8, 16, 63, 64, 4_095] {
            let mut changed = bytes.clone();
            changed[at] ^= 4;
            assert_eq!(LogPage::decode(&changed), None, "byte {at}");
        }
        assert_eq!(LogPage::decode(&[0; 4_096]), None);
    }
}
