//! A record at a fixed place: the data that a start needs before it knows any table (OX 6.1.1, 6.1.7.1).
//!
//! A fixed place is a block with copies of it on other planes. A new version is written to the next pages of a copy,
//! and to the next copy only when it is whole in this one. A full copy is erased first. A whole version is therefore on
//! flash at every instant. The version with the highest number counts, in whichever copy it is. The thesis has one page
//! a version, and does not define what a power cut between the erase and the program leaves.
//!
//! | bytes | what |
//! |---|---|
//! | 0..8 | magic |
//! | 8..16 | version |
//! | 16..20 | kind |
//! | 20..24 | number of the page in the record |
//! | 24..28 | pages of the record |
//! | 28..32 | bytes of the record |
//! | 32..36 | checksum of the page without this field |
//! | 64.. | the record's bytes |

const MAGIC: u64 = 0x31_58_49_46_2d_58_4f_4e;
const HEADER: usize = 64;
const SUM: std::ops::Range<usize> = 32..36;

/// A record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FixedRecord {
    /// The kind of record.
    pub kind: u32,
    /// Later ones have higher numbers.
    pub version: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// A page of a record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FixedPage {
    /// The kind of the record.
    pub kind: u32,
    /// The record's version.
    pub version: u64,
    /// Its number in the record.
    pub part: u32,
    /// Pages of the record.
    pub parts: u32,
    len: usize,
    bytes: Vec<u8>,
}

impl FixedRecord {
    /// Pages of `page_bytes` bytes that a record of `len` bytes takes.
    pub fn pages_for(len: usize, page_bytes: usize) -> u32 {
        len.div_ceil(page_bytes - HEADER).max(1) as u32
    }

    /// Its pages.
    pub fn pages(&self, page_bytes: usize) -> Vec<Vec<u8>> {
        let parts = FixedRecord::pages_for(self.bytes.len(), page_bytes);
        let payload = page_bytes - HEADER;
        let page = |part: u32| {
            let first = part as usize * payload;
            let bytes = &self.bytes[first.min(self.bytes.len())..(first + payload).min(self.bytes.len())];
            let mut page = vec![0; page_bytes];
            page[..8].copy_from_slice(&MAGIC.to_le_bytes());
            page[8..16].copy_from_slice(&self.version.to_le_bytes());
            for (place, number) in
                page[16..32].chunks_exact_mut(4).zip([self.kind, part, parts, self.bytes.len() as u32])
            {
                place.copy_from_slice(&number.to_le_bytes());
            }
            page[HEADER..HEADER + bytes.len()].copy_from_slice(bytes);
            let sum = crc32fast::hash(&page);
            page[SUM].copy_from_slice(&sum.to_le_bytes());
            page
        };
        (0..parts).map(page).collect()
    }
}

impl FixedPage {
    /// The kind of the record.
    pub fn kind(&self) -> u32 {
        self.kind
    }

    /// The page of bytes; `None` if they are none, or were changed.
    pub fn decode(bytes: &[u8]) -> Option<FixedPage> {
        let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
        let long = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        let mut unsummed = bytes.to_vec();
        unsummed[SUM].fill(0);
        if long(0) != MAGIC || number(SUM.start) != crc32fast::hash(&unsummed) {
            return None;
        }
        Some(FixedPage {
            version: long(8),
            kind: number(16),
            part: number(20),
            parts: number(24),
            len: number(28) as usize,
            bytes: bytes[HEADER..].to_vec(),
        })
    }
}

/// Puts records together from the pages of a copy, in their order.
pub struct Reassembly {
    kind: u32,
    building: Option<(FixedPage, u32)>,
    best: Option<FixedRecord>,
}

impl Reassembly {
    /// Looks for records of a kind.
    pub fn new(kind: u32) -> Reassembly {
        Reassembly { kind, building: None, best: None }
    }

    /// The next page; `None` if it cannot be read.
    pub fn push(&mut self, page: Option<FixedPage>) {
        let building = self.building.take();
        let Some(page) = page.filter(|page| page.kind == self.kind) else { return };
        let (mut whole, next) = match building {
            _ if page.part == 0 => (FixedPage { bytes: Vec::new(), ..page.clone() }, 0),
            Some((whole, next)) if whole.version == page.version => (whole, next),
            _ => return,
        };
        if page.part != next {
            return;
        }
        whole.bytes.extend(&page.bytes);
        match next + 1 == page.parts {
            true => self.complete(whole),
            false => self.building = Some((whole, next + 1)),
        }
    }

    /// The record with the highest version.
    pub fn best(self) -> Option<FixedRecord> {
        self.best
    }

    fn complete(&mut self, page: FixedPage) {
        let FixedPage { kind, version, len, mut bytes, .. } = page;
        if len <= bytes.len() && self.best.as_ref().is_none_or(|best| best.version < version) {
            bytes.truncate(len);
            self.best = Some(FixedRecord { kind, version, bytes });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pages: &[Option<Vec<u8>>]) -> Option<FixedRecord> {
        let mut reassembly = Reassembly::new(7);
        pages.iter().for_each(|page| reassembly.push(page.as_deref().and_then(FixedPage::decode)));
        reassembly.best()
    }

    #[test]
    fn the_latest_whole_record_counts() {
        let record = |version, len| FixedRecord { kind: 7, version, bytes: vec![version as u8; len] };
        let old: Vec<_> = record(3, 9_000).pages(4_096).into_iter().map(Some).collect();
        let new: Vec<_> = record(4, 9_000).pages(4_096).into_iter().map(Some).collect();
        assert_eq!(old.len(), 3);
        let all = [&old[..], &new[..]].concat();
        assert_eq!(read(&all), Some(record(4, 9_000)));
        for lost in 3..6 {
            let mut torn = all.clone();
            torn[lost] = None;
            assert_eq!(read(&torn), Some(record(3, 9_000)), "page {lost}");
            let mut changed = all.clone();
            changed[lost].as_mut().unwrap()[100] ^= 1;
            assert_eq!(read(&changed), Some(record(3, 9_000)), "page {lost}");
        }
        assert_eq!(read(&all[..5]), Some(record(3, 9_000)));
        assert_eq!(read(&[&new[..2], &new[..]].concat()), Some(record(4, 9_000)));
        let other = FixedRecord { kind: 8, ..record(9, 10) }.pages(4_096).into_iter().map(Some).collect::<Vec<_>>();
        assert_eq!(read(&[&old[..], &other[..]].concat()), Some(record(3, 9_000)));
        assert_eq!(read(&[Some(record(1, 0).pages(4_096).remove(0))]), Some(record(1, 0)));
        assert_eq!(read(&[Some(vec![0; 4_096])]), None);
    }
}
