//! Fragments of the map that stay in memory, so that several reads are looked up at one instant: a batch of pages sees all of a transaction
//! or nothing (OX 5.1.6).
//!
//! Left out: a bound. A batch may keep more of the map than `map_memory` for as long as it takes to look it up.

use std::collections::BTreeSet;
use std::rc::Rc;

use nandscape_device_ftl_core::address::{Extent, Lpn};
use nandscape_device_ftl_core::component::{CachedMapping, Mapping};
use nandscape_device_ftl_core::offers::Held;

use super::OxBlock;
use super::core::{Core, Phase};

/// See [`StoredTables::hold_map`](nandscape_device_ftl_core::offers::StoredTables::hold_map). Where all of it is in memory nothing is kept.
pub(super) async fn hold(ftl: &OxBlock, extents: &[Extent]) -> Option<Held> {
    if ftl.core().phase.get() == Phase::Starting {
        ftl.in_service().await;
    }
    let core = ftl.core();
    let fragments = core.fragments(extents);
    if core.has_all(&fragments) {
        return None;
    }
    let mut pinned = Pinned { core: core.clone(), indices: Vec::new() };
    // Loading some may evict others, so all of them are pinned.
    for lpn in fragments {
        // After a power cut the reads return the error.
        pinned.indices.push(core.pin_fragment(lpn).await.ok()?);
    }
    Some(Held::new(pinned))
}

/// Fragments that are kept.
struct Pinned {
    core: Rc<Core>,
    indices: Vec<u32>,
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let mut state = self.core.state.borrow_mut();
        self.indices.iter().for_each(|index| state.map.unpin(*index));
    }
}

impl Core {
    /// The first unit of each fragment that extents are in.
    fn fragments(&self, extents: &[Extent]) -> Vec<Lpn> {
        let state = self.state.borrow();
        let mut seen = BTreeSet::new();
        let units = extents.iter().flat_map(|extent| extent.pieces(state.unit)).map(|piece| piece.lpn);
        units.filter(|lpn| seen.insert(state.map.fragment_of(*lpn))).collect()
    }

    /// Whether fragments that units are in are in memory.
    fn has_all(&self, units: &[Lpn]) -> bool {
        let state = self.state.borrow();
        units.iter().all(|lpn| state.map.lookup(*lpn).is_ok())
    }
}
