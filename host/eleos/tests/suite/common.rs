//! A store of tagged pages on a drive, and the contents expected after power cuts. Shared by the tests.

use std::collections::BTreeMap;

use nandscape_drive::{Drive, Issuer};
use nandscape_host_eleos::{Buffer, Error, Limits, Page, read};
use nandscape_sim::Rng;

/// A version of a page: its number, and which page it is.
pub(crate) fn page(lpid: u64, version: u64) -> Page {
    let mut page = [0; 4_096];
    for (number, chunk) in page.as_chunks_mut().0.iter_mut().enumerate() {
        *chunk = (version << 32 | lpid << 9 | number as u64).to_le_bytes();
    }
    page
}

/// The expected contents of a drive: the acknowledged version of each page; none if it was never written.
pub(crate) struct Known {
    /// Printed when a page is wrong: the seed, and the kind of drive.
    case: String,
    versions: BTreeMap<u64, u64>,
    last: u64,
    /// Flushes that met a power cut.
    pub(crate) cuts: u32,
}

/// A drive and the way to it.
pub(crate) struct Way<'a> {
    pub(crate) issuer: &'a Issuer,
    pub(crate) drive: &'a dyn Drive,
    pub(crate) limits: Limits,
}

impl Way<'_> {
    /// Reads pages, again after power cuts.
    pub(crate) async fn read(&self, lpids: &[u64]) -> Vec<Option<Box<Page>>> {
        loop {
            match read(self.issuer, self.drive, &self.limits, lpids).await {
                Ok(found) => return found,
                Err(Error::PowerLost) => {}
                Err(error) => panic!("pages {lpids:?}: {error}"),
            }
        }
    }
}

impl Known {
    pub(crate) fn new(case: String) -> Known {
        Known { case, versions: BTreeMap::new(), last: 0, cuts: 0 }
    }

    /// Reads pages and compares them with the acknowledged ones.
    pub(crate) async fn check(&self, way: &Way<'_>, lpids: &[u64]) {
        for (lpid, found) in lpids.iter().zip(way.read(lpids).await) {
            let version = self.versions.get(lpid);
            let right = version.map(|version| page(*lpid, *version));
            assert!(
                found.map(|found| *found) == right,
                "{}: page {lpid} is not that of version {version:?}",
                self.case
            );
        }
    }

    /// Flushes a buffer of some pages. After a power cut during the flush, all of it is stored or nothing.
    pub(crate) async fn flush(&mut self, way: &Way<'_>, rng: &mut Rng, pages: u64) {
        let mut buffer = Buffer::new(&way.drive.info(), &way.limits);
        self.last += 1;
        let mut flushed = BTreeMap::new();
        for _ in 0..1 + rng.below(way.limits.buffered as u64) {
            let lpid = rng.below(pages);
            buffer.put(lpid, &page(lpid, self.last)).expect("it fits");
            flushed.insert(lpid, self.last);
        }
        match buffer.flush(way.issuer, way.drive).await {
            Ok(()) => {
                assert!(buffer.is_empty());
                self.versions.extend(flushed);
            }
            Err(Error::PowerLost) => {
                self.cuts += 1;
                let lpids: Vec<u64> = flushed.keys().copied().collect();
                let is_new = way.read(&lpids[..1]).await[0].as_deref() == Some(&page(lpids[0], self.last));
                if is_new {
                    self.versions.extend(flushed);
                }
                self.check(way, &lpids).await;
            }
            Err(error) => panic!("{}: flush {}: {error}", self.case, self.last),
        }
    }
}
