//! Records of the log as entries of a journal, for a log whose memory is in a file (OX 6.1.6: a log in persistent memory).
//!
//! A record takes two entries, the second directly behind the first. Bytes of an entry: 0, which of the two it is; 1..24, half
//! of timestamp (8 bytes), kind (1 byte) and the four numbers of the record (32 bytes). A kill may leave a first entry without
//! its second: such a record was not kept, and nothing that it would have made durable was acknowledged.

use nandscape_device_ftl_core::component::{RECORD, Record};
use nandscape_device_media::durable::JOURNAL_ENTRY;

/// An entry of the journal.
pub type JournalEntry = [u8; JOURNAL_ENTRY];

/// The parts of a record's 64 bytes that are not always zero.
const PARTS: [std::ops::Range<usize>; 2] = [0..9, 16..48];
const PACKED: usize = 41;
const HALF: usize = JOURNAL_ENTRY - 1;
const FIRST: u8 = 1;
const SECOND: u8 = 2;

/// The entries of a record.
pub fn to_entries(timestamp: u64, record: &Record) -> [JournalEntry; 2] {
    let (bytes, [head, numbers]) = (record.encode(timestamp), PARTS);
    let mut packed = [0; 2 * HALF];
    packed[..head.len()].copy_from_slice(&bytes[head.clone()]);
    packed[head.len()..PACKED].copy_from_slice(&bytes[numbers]);
    let entry = |which: u8, half: &[u8]| {
        let mut entry = [0; JOURNAL_ENTRY];
        entry[0] = which;
        entry[1..].copy_from_slice(half);
        entry
    };
    [entry(FIRST, &packed[..HALF]), entry(SECOND, &packed[HALF..])]
}

/// Puts records together again from the entries of a journal.
#[derive(Default)]
pub struct KeptRecords {
    first: Option<JournalEntry>,
    /// With their timestamps.
    pub records: Vec<(u64, Record)>,
}

impl KeptRecords {
    /// The next entry. Entries that are parts of no record are left out.
    pub fn push(&mut self, entry: &JournalEntry) {
        match entry[0] {
            FIRST => self.first = Some(*entry),
            SECOND => {
                let whole = self.first.take().and_then(|first| Record::decode(&unpacked(&first, entry)));
                self.records.extend(whole);
            }
            _ => self.first = None,
        }
    }
}

fn unpacked(first: &JournalEntry, second: &JournalEntry) -> [u8; RECORD] {
    let [head, numbers] = PARTS;
    let packed: Vec<u8> = first[1..].iter().chain(&second[1..]).copied().collect();
    let mut bytes = [0; RECORD];
    bytes[head.clone()].copy_from_slice(&packed[..head.len()]);
    bytes[numbers].copy_from_slice(&packed[head.len()..PACKED]);
    bytes
}

#[cfg(test)]
mod tests {
    use nandscape_device_ftl_core::component::{Entry, Remap};

    use super::*;
    use nandscape_device_media::{BlockId, UnitId};

    #[test]
    fn records_are_read_as_they_were_written_and_halves_are_left_out() {
        let remap =
            Remap { lpn: u32::MAX, old: Entry::LOST, new: Entry::new(Some(UnitId(9)), 3), transaction: u64::MAX };
        let all = [
            (u64::MAX, Record::UserWrite(remap)),
            (7, Record::Commit { transaction: 1 << 60, records: 1 << 40 }),
            (8, Record::RecycleChunk(BlockId(6))),
        ];
        let entries: Vec<JournalEntry> = all.iter().flat_map(|(at, record)| to_entries(*at, record)).collect();
        let read = |entries: &[JournalEntry]| {
            let mut kept = KeptRecords::default();
            entries.iter().for_each(|entry| kept.push(entry));
            kept.records
        };
        assert_eq!(read(&entries), all);
        assert_eq!(read(&entries[..5]), all[..2]);
        assert_eq!(read(&[&entries[..1], &entries[2..]].concat()), all[1..]);
        assert_eq!(read(&[[0xff; JOURNAL_ENTRY], entries[1]]), []);
    }
}
