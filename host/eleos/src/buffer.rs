//! Pages that are flushed together.

use std::collections::BTreeMap;

use nandscape_drive::{Drive, DriveInfo, HostMem, Issuer};
use nandscape_wire_nvme::SubmissionEntry;
use nandscape_wire_nvme::lss::{Entry, Head, METADATA, PAGE};
use nandscape_wire_nvme::vendor::LSS_FLUSH;
use zerocopy::IntoBytes;

use crate::{Error, Limits, Page};

/// Force Unit Access (CDW12).
const FUA: u32 = 1 << 30;

/// Pages that are flushed together. A page that is put again takes the place of its older version.
#[derive(Clone, Debug)]
pub struct Buffer {
    nsid: u32,
    /// Pages of the drive, and of a buffer.
    pages: u64,
    most: usize,
    /// The place of each page.
    places: BTreeMap<u64, usize>,
    entries: Vec<Entry>,
    data: Vec<u8>,
}

/// Why a page cannot be part of a buffer.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Misfit {
    /// The buffer is full: flush it first.
    #[error("the buffer has {pages} pages, and is full")]
    Full {
        /// Its pages.
        pages: usize,
    },
    /// The page is beyond the drive.
    #[error("page {lpid}: the drive has {pages} pages")]
    Beyond {
        /// The page.
        lpid: u64,
        /// Pages of the drive.
        pages: u64,
    },
}

impl Buffer {
    /// An empty buffer for a drive.
    pub fn new(drive: &DriveInfo, limits: &Limits) -> Buffer {
        let pages = drive.blocks * u64::from(drive.lba_bytes) / PAGE as u64;
        let (nsid, most) = (drive.nsid, limits.buffered);
        Buffer { nsid, pages, most, places: BTreeMap::new(), entries: Vec::new(), data: vec![0; METADATA] }
    }

    /// Adds a page, or replaces its older version.
    ///
    /// # Errors
    /// Why it cannot be part of the buffer, which is as it was before.
    pub fn put(&mut self, lpid: u64, page: &Page) -> Result<(), Misfit> {
        if lpid >= self.pages {
            return Err(Misfit::Beyond { lpid, pages: self.pages });
        }
        if let Some(at) = self.places.get(&lpid) {
            self.data[*at..at + PAGE].copy_from_slice(page);
            return Ok(());
        }
        if self.is_full() {
            return Err(Misfit::Full { pages: self.most });
        }
        let offset = self.data.len();
        self.places.insert(lpid, offset);
        self.entries.push(Entry { lpid: lpid.into(), offset: (offset as u32).into(), bytes: (PAGE as u32).into() });
        self.data.extend_from_slice(page);
        Ok(())
    }

    /// A page that waits in the buffer.
    pub fn get(&self, lpid: u64) -> Option<&Page> {
        self.data[*self.places.get(&lpid)?..].first_chunk()
    }

    /// Pages in the buffer.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether it has no pages.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether it takes no further page.
    pub fn is_full(&self) -> bool {
        self.len() == self.most
    }

    /// Drops all pages.
    pub fn clear(&mut self) {
        self.places.clear();
        self.entries.clear();
        self.data.truncate(METADATA);
    }

    /// The command that flushes it, and its data; `None` of an empty one.
    fn command(&mut self) -> Option<(SubmissionEntry, HostMem)> {
        let pages = u32::try_from(self.len()).ok().filter(|pages| *pages > 0)?;
        let (head, entries) = (Head::of(pages), self.entries.as_bytes());
        self.data[..size_of::<Head>()].copy_from_slice(head.as_bytes());
        self.data[size_of::<Head>()..][..entries.len()].copy_from_slice(entries);
        let mut entry = SubmissionEntry::io(LSS_FLUSH, self.nsid);
        entry.cdw10 = ((Limits::bytes(self.len()) / PAGE) as u32 - 1).into();
        // OX-ELEOS waits until the Commit record is durable (OX 7.3.1).
        entry.cdw12 = FUA.into();
        Some((entry, HostMem::from_bytes(&self.data)))
    }

    /// Flushes it to the drive that it was made for: its pages are durable then, and it is empty. An empty one is flushed without a
    /// command.
    ///
    /// # Errors
    /// Why it was not, or is not known to be. The buffer is as it was before, and can be flushed again.
    pub async fn flush(&mut self, issuer: &Issuer, drive: &dyn Drive) -> Result<(), Error> {
        let Some((entry, mem)) = self.command() else { return Ok(()) };
        Error::of(issuer.execute(drive, entry, mem).await.status)?;
        self.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer() -> Buffer {
        let drive = DriveInfo {
            nsid: 1,
            blocks: 800,
            lba_bytes: 512,
            metadata_bytes: 0,
            max_blocks: 256,
            unit_bytes: 4_096,
            volatile_cache: true,
            keeps_data: true,
        };
        Buffer::new(&drive, &Limits { buffered: 2, batched: 1 })
    }

    #[test]
    fn metadata_comes_first_and_then_the_pages() {
        let mut buffer = buffer();
        assert!(buffer.command().is_none());
        buffer.put(99, &[1; PAGE]).unwrap();
        buffer.put(4, &[2; PAGE]).unwrap();
        buffer.put(99, &[3; PAGE]).unwrap();
        assert_eq!((buffer.len(), buffer.is_full(), buffer.get(99).unwrap()[0], buffer.get(5)), (2, true, 3, None));
        let (entry, mem) = buffer.command().unwrap();
        assert_eq!((entry.opcode, entry.cdw10.get(), entry.cdw12.get()), (0x85, 5, 1 << 30));
        let bytes = mem.to_vec();
        assert_eq!(bytes.len(), 6 * PAGE);
        assert_eq!(&bytes[..20], b"LSSB\x01\0\0\0\x02\0\0\0\0\0\0\0\x63\0\0\0");
        assert_eq!((bytes[METADATA], bytes[METADATA + PAGE]), (3, 2));
    }

    #[test]
    fn what_does_not_fit_is_refused_and_leaves_the_buffer_as_it_was() {
        let mut buffer = buffer();
        assert_eq!(buffer.put(100, &[0; PAGE]), Err(Misfit::Beyond { lpid: 100, pages: 100 }));
        assert_eq!(buffer.put(u64::MAX, &[0; PAGE]), Err(Misfit::Beyond { lpid: u64::MAX, pages: 100 }));
        assert!(buffer.is_empty());
        buffer.put(0, &[0; PAGE]).unwrap();
        buffer.put(1, &[0; PAGE]).unwrap();
        assert_eq!(buffer.put(2, &[0; PAGE]), Err(Misfit::Full { pages: 2 }));
        assert!(buffer.put(1, &[7; PAGE]).is_ok() && buffer.len() == 2);
        buffer.clear();
        assert!(buffer.is_empty() && buffer.get(1).is_none());
    }
}
