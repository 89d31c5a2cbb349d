//! Restart after a power cut. Outside of flash, the write cache and the log's records survive if capacitors keep them.
//! Counters survive as well; they serve observers and decide nothing.

use nandscape_device_ftl_core::component::{ChainedLog, Record};
use nandscape_device_ftl_core::ftl::{Stats, Unwritable};

use super::OxBlock;
use super::cache::WriteCache;
use super::core::{Core, Phase};
use super::mistakes::{self, Mistake};

/// The memory that survives a power cut.
#[derive(Default)]
pub(super) struct Kept {
    pub(super) cache: Option<WriteCache>,
    pub(super) records: Vec<(u64, Record)>,
    pub(super) counters: Stats,
}

/// See [`Ftl::restart`](nandscape_device_ftl_core::Ftl::restart).
pub(super) async fn restart(ftl: &OxBlock, keeps_buffer: bool) {
    let old = ftl.core();
    old.wake_all();
    if ftl.kept.borrow().is_none() {
        let kept = ftl.take_over(&old, keeps_buffer);
        *ftl.kept.borrow_mut() = Some(kept);
    }
    drop(old);
    let core = Core::new(&ftl.sim, &ftl.media, ftl.config, &ftl.shared);
    if let Some(kept) = &*ftl.kept.borrow() {
        core.kept_records.borrow_mut().clone_from(&kept.records);
        core.state.borrow_mut().counters = kept.counters;
    }
    *ftl.core.borrow_mut() = core.clone();
    let visit = core.visitors.begin();
    // If power was cut meanwhile, the restart starts over.
    if core.start().await.is_err() {
        if let Some(kept) = &mut *ftl.kept.borrow_mut() {
            kept.counters = core.state.borrow().total_counters();
        }
        return;
    }
    core.take_back_cache(ftl.kept.take().and_then(|kept| kept.cache));
    let postponed = ftl.postponed.take();
    for extent in postponed {
        if core.deallocate_units(extent).await.is_err() {
            return;
        }
    }
    if core.phase.get() != Phase::Failed {
        core.pump();
        core.log_grew();
    }
    drop(visit);
    ftl.shared.ready.notify();
}

impl Core {
    /// The drive is in service: the write cache has survived, and records are not needed any more.
    pub(super) fn take_back_cache(&self, cache: Option<WriteCache>) {
        if let Some(cache) = cache {
            let mut state = self.state.borrow_mut();
            let last = cache.transactions.iter().map(|transaction| transaction.id).max().unwrap_or(0);
            state.next_transaction = state.next_transaction.max(last + 1);
            state.cache = cache;
        }
        self.kept_records.borrow_mut().clear();
    }
}

impl OxBlock {
    fn take_over(&self, old: &Core, keeps_buffer: bool) -> Kept {
        if old.phase.get() == Phase::Starting {
            // The first start has not ended: the file still has its earlier state.
            let (cache, records) = (old.kept_cache.take(), old.kept_records.take());
            let counters = old.state.borrow().total_counters();
            return Kept { cache, records, counters };
        }
        let mut state = old.state.borrow_mut();
        let mut told = state.cache.give_up_watchers();
        told.extend(state.waiting.drain(..).map(|(_, settling)| settling));
        let records =
            if keeps_buffer && !mistakes::is_made(Mistake::KeptIgnored) { state.log.kept() } else { Vec::new() };
        let empty = WriteCache::new(self.config.buffer_units, self.unit, self.media.keeps_data());
        let mut cache = std::mem::replace(&mut state.cache, empty);
        let used = cache.used();
        if !keeps_buffer {
            state.counters.dropped_units += u64::from(used);
        }
        let counters = state.total_counters();
        drop(state);
        told.iter().for_each(|settling| settling.give_up(1, Unwritable::PowerLost));
        if !keeps_buffer {
            self.shared.free_slots.give(used as usize);
            return Kept { cache: None, records, counters };
        }
        cache.line_up_again();
        Kept { cache: Some(cache), records, counters }
    }
}
