//! Keys in order, a leaf at a time. Leaves that are not in memory are loaded together with the next ones that the
//! scan will need.

use super::{Core, ROOT};
use crate::error::Error;
use crate::page::number;
use crate::pages::PageStore;

use super::Record;

/// Leaves that are loaded at once.
const AHEAD: usize = 16;
/// Entries of a leaf, until the scan has seen one.
const GUESS: usize = 4;

/// The continuation of a scan.
enum Step {
    /// These records, and those from this key on.
    Found(Vec<Record>, Option<Vec<u8>>),
    /// These pages are not in memory.
    Missing(Vec<u64>),
}

impl<P: PageStore> Core<P> {
    /// See [`BwTree::scan`](super::BwTree::scan).
    pub(super) async fn scan(&self, from: &[u8], most: usize) -> Result<Vec<Record>, Error> {
        self.count(|stats| stats.operations += 1);
        self.host.operation().await;
        let (mut found, mut from, mut leaf): (Vec<Record>, _, _) = (Vec::new(), from.to_vec(), GUESS);
        while found.len() < most {
            self.check()?;
            let left = most - found.len();
            let step = self.step(&from, left, left.div_ceil(leaf).min(AHEAD));
            match step {
                Step::Missing(lpids) => self.load(&lpids).await?,
                Step::Found(records, next) => {
                    leaf = records.len().max(1);
                    found.extend(records);
                    match next {
                        Some(key) => from = key,
                        None => break,
                    }
                    self.host.operation().await;
                }
            }
        }
        Ok(found)
    }

    /// Visits the leaf with a key.
    fn step(&self, from: &[u8], most: usize, ahead: usize) -> Step {
        let mut cache = self.cache.borrow_mut();
        let mut lpid = ROOT;
        loop {
            // The root is always in memory, and so is a page whose child is searched.
            let page = cache.page(lpid).expect("a page that is in memory");
            if page.level == 0 {
                let entries = page.entries().into_iter().filter(|(key, _)| **key >= *from).take(most);
                let records = entries.map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
                return Step::Found(records, page.high.as_ref().map(|key| key.to_vec()));
            }
            let (child, is_last) = (page.child(from), page.level == 1);
            if cache.has(child) {
                lpid = child;
                continue;
            }
            let entries = cache.page(lpid).map(|page| page.entries()).unwrap_or_default();
            let children = entries.iter().map(|(_, value)| number(value)).skip_while(|lpid| *lpid != child);
            let wanted = children.take(if is_last { ahead } else { 1 });
            return Step::Missing(wanted.filter(|lpid| !cache.has(*lpid)).collect());
        }
    }
}
