//! Loading of pages from the store. A page is loaded once, however many operations wait for it.

use std::rc::Rc;

use nandscape_sim::signal::Signal;

use super::Core;
use crate::codec::decode;
use crate::error::Error;
use crate::pages::PageStore;

/// Pages that are being loaded. Dropping it ends the load, and the waiters check again.
struct Loading<'a, P> {
    core: &'a Core<P>,
    lpids: Vec<u64>,
    signal: Rc<Signal>,
}

impl<P> Drop for Loading<'_, P> {
    fn drop(&mut self) {
        let mut loading = self.core.loading.borrow_mut();
        self.lpids.iter().for_each(|lpid| drop(loading.remove(lpid)));
        if !self.core.host.sim().is_stopped() {
            self.signal.notify();
        }
    }
}

impl<P: PageStore> Core<P> {
    /// Loads pages. Afterwards they were in memory, and may have been evicted again.
    pub(super) async fn load(&self, lpids: &[u64]) -> Result<(), Error> {
        let mine: Vec<u64> = {
            let (cache, loading) = (self.cache.borrow(), self.loading.borrow());
            lpids.iter().copied().filter(|lpid| !cache.has(*lpid) && !loading.contains_key(lpid)).collect()
        };
        if mine.is_empty() {
            let other = lpids.iter().find_map(|lpid| self.loading.borrow().get(lpid).cloned());
            if let Some(signal) = other {
                signal.changed().await;
            }
            return Ok(());
        }
        let signal = Rc::new(Signal::new(self.host.sim()));
        mine.iter().for_each(|lpid| drop(self.loading.borrow_mut().insert(*lpid, signal.clone())));
        let loading = Loading { core: self, lpids: mine, signal };
        let found = self.store.read(&loading.lpids).await?;
        let bytes = found.iter().flatten().map(Vec::len).sum();
        self.host.bytes(bytes).await;
        for (lpid, pieces) in loading.lpids.iter().zip(found) {
            let page = decode(*lpid, &pieces)?;
            self.cache.borrow_mut().install(*lpid, page);
        }
        self.count(|stats| stats.loads += loading.lpids.len() as u64);
        self.trim();
        Ok(())
    }
}
