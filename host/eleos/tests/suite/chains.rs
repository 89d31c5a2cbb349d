//! Pages of pieces on a drive, and the contents expected after power cuts. Shared by the tests.

use std::collections::BTreeMap;

use nandscape_drive::{Drive, Issuer};
use nandscape_host_eleos::{Error, PieceBuffer, PieceLimits, PieceMisfit, read_pieces};
use nandscape_sim::Rng;

type Chain = Vec<Vec<u8>>;

/// A piece of a version, with bytes that no other piece has.
pub(crate) fn piece(lpid: u64, version: u64, bytes: usize) -> Vec<u8> {
    let stamp = nandscape_sim::rng::mix(lpid << 32 ^ version).to_le_bytes();
    (0..bytes).map(|at| stamp[at % 8] ^ (at / 8) as u8).collect()
}

/// A drive and the way to it.
pub(crate) struct ChainWay<'a> {
    pub(crate) issuer: &'a Issuer,
    pub(crate) drive: &'a dyn Drive,
    pub(crate) limits: PieceLimits,
}

impl ChainWay<'_> {
    /// Reads pages, again after power cuts.
    pub(crate) async fn read(&self, lpids: &[u64]) -> Vec<Chain> {
        loop {
            match read_pieces(self.issuer, self.drive, &self.limits, lpids).await {
                Ok(found) => return found,
                Err(Error::PowerLost) => {}
                Err(error) => panic!("pages {lpids:?}: {error}"),
            }
        }
    }
}

/// The expected contents of a drive: the acknowledged pieces of each page.
pub(crate) struct KnownChains {
    /// Printed when a page is wrong: the seed, and the kind of drive.
    case: String,
    pub(crate) pages: BTreeMap<u64, Chain>,
    last: u64,
    /// Pages that are used, and the most bytes of a base.
    lpids: u64,
    longest: u64,
    /// Flushes that met a power cut, and how many of these are stored.
    pub(crate) cuts: u32,
    pub(crate) outlived: u32,
}

impl KnownChains {
    pub(crate) fn new(case: String, lpids: u64, longest: u64) -> KnownChains {
        KnownChains { case, pages: BTreeMap::new(), last: 0, lpids, longest, cuts: 0, outlived: 0 }
    }

    /// Bytes of all pieces.
    pub(crate) fn bytes(&self) -> usize {
        self.pages.values().flatten().map(Vec::len).sum()
    }

    /// Reads pages and compares them with the acknowledged ones.
    pub(crate) async fn check(&self, way: &ChainWay<'_>, lpids: &[u64]) {
        for (lpid, found) in lpids.iter().zip(way.read(lpids).await) {
            let right = self.pages.get(lpid).cloned().unwrap_or_default();
            let lengths = |chain: &Chain| chain.iter().map(Vec::len).collect::<Vec<_>>();
            assert_eq!(lengths(&found), lengths(&right), "{}: pieces of page {lpid}", self.case);
            assert!(found == right, "{}: page {lpid} is not what was flushed", self.case);
        }
    }

    /// The same for some pages at random, and for all of them.
    pub(crate) async fn check_some(&self, way: &ChainWay<'_>, rng: &mut Rng, most: u64) {
        let some: Vec<u64> = (0..1 + rng.below(most)).map(|_| rng.below(self.lpids)).collect();
        self.check(way, &some).await;
    }

    pub(crate) async fn check_all(&self, way: &ChainWay<'_>) {
        let all: Vec<u64> = (0..self.lpids).collect();
        self.check(way, &all).await;
    }

    /// Changes a page in a buffer and in a copy of the expected contents; returns whether there was
    /// room.
    fn change(&self, buffer: &mut PieceBuffer, now: &mut BTreeMap<u64, Chain>, rng: &mut Rng) -> bool {
        let lpid = rng.below(self.lpids);
        let chain = now.get(&lpid).or(self.pages.get(&lpid)).cloned().unwrap_or_default();
        let bytes = 1 + match rng.below(4) {
            0 => rng.below(self.longest),
            1 => rng.below(700),
            _ => rng.below(self.longest / 2),
        } as usize;
        let delta = piece(lpid, self.last, bytes.min(300));
        let fits = chain.len() < 32 && chain.iter().map(Vec::len).sum::<usize>() + delta.len() <= 65_536;
        let (put, chain) = match rng.below(20) {
            0 => (buffer.drop_page(lpid), Vec::new()),
            1..12 if !chain.is_empty() && fits => {
                let longer = [chain, vec![delta.clone()]].concat();
                (buffer.append(lpid, &delta), longer)
            }
            _ => {
                let base = piece(lpid, self.last, bytes);
                (buffer.put(lpid, &base), vec![base])
            }
        };
        match put {
            Ok(()) => {
                now.insert(lpid, chain);
                true
            }
            Err(PieceMisfit::Full { .. }) => false,
            // The same buffer drops it.
            Err(PieceMisfit::Dropped { .. }) => true,
            Err(misfit) => panic!("{}: {misfit}", self.case),
        }
    }

    /// Flushes a buffer of some changes. After a power cut during the flush, all of it is stored or
    /// nothing.
    pub(crate) async fn flush(&mut self, way: &ChainWay<'_>, rng: &mut Rng, most: u64) {
        let mut buffer = PieceBuffer::new(&way.drive.info(), &way.limits);
        self.last += 1;
        let mut now = BTreeMap::new();
        for _ in 0..1 + rng.below(most) {
            if !self.change(&mut buffer, &mut now, rng) {
                break;
            }
        }
        match buffer.flush(way.issuer, way.drive).await {
            Ok(()) => self.pages.extend(now),
            Err(Error::PowerLost) => {
                self.cuts += 1;
                let old = |lpid: &u64| self.pages.get(lpid).cloned().unwrap_or_default();
                let changed = now.iter().find(|(lpid, chain)| **chain != old(lpid));
                if let Some((lpid, chain)) = changed
                    && way.read(&[*lpid]).await[0] == *chain
                {
                    self.outlived += 1;
                    self.pages.extend(now.clone());
                }
                let lpids: Vec<u64> = now.keys().copied().collect();
                self.check(way, &lpids).await;
            }
            Err(error) => panic!("{}: flush {}: {error}", self.case, self.last),
        }
    }
}
