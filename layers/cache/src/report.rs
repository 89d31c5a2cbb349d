//! A page cache in the report of a run, and its metrics.

use nandscape_drive::layer::{LayerReport, Shown};
use nandscape_sim::figures::{count, percent};
use nandscape_sim::units::Bytes;
use serde::Serialize;

use crate::cache::{Cache, Counters};

/// What a page cache has counted in the measured phase.
#[derive(Copy, Clone, PartialEq, Debug, Serialize)]
pub struct CacheReport {
    /// Memory for pages, in bytes.
    pub memory_bytes: u64,
    /// Reads whose pages were all in memory.
    pub hits: u64,
    /// Reads that waited for the node below, or were rejected.
    pub misses: u64,
    /// Hits as a share of both; null without reads.
    pub hit_ratio: Option<f64>,
    /// Pages read from the node below.
    pub loaded_pages: u64,
    /// Pages that gave way to others.
    pub evicted_pages: u64,
    /// Reads that went to the node below unchanged, since a write to their pages was under way.
    pub passed: u64,
    /// Reads rejected because of their deadlines.
    pub rejected: u64,
}

impl CacheReport {
    /// Of a cache with this memory, since it last began to count.
    pub(crate) fn of(cache: &Cache, memory_bytes: u64) -> CacheReport {
        let Counters { hits, misses, loaded, evicted, passed } = cache.counters();
        let all = hits + misses;
        CacheReport {
            memory_bytes,
            hits,
            misses,
            hit_ratio: (all > 0).then(|| hits as f64 / all as f64),
            loaded_pages: loaded,
            evicted_pages: evicted,
            passed,
            rejected: cache.counted().rejected,
        }
    }

    /// By the names of metrics.
    pub(crate) fn metrics(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("cache_hits_total", self.hits as f64),
            ("cache_misses_total", self.misses as f64),
            ("cache_loaded_pages_total", self.loaded_pages as f64),
            ("cache_evicted_pages_total", self.evicted_pages as f64),
            ("cache_reads_rejected_total", self.rejected as f64),
        ]
    }
}

impl LayerReport for CacheReport {
    fn key(&self) -> &'static str {
        "cache"
    }

    fn json(&self) -> String {
        serde_json::to_string(self).expect("plain data")
    }

    fn settings(&self) -> String {
        Bytes(self.memory_bytes).to_string()
    }

    fn shown(&self) -> Vec<Shown> {
        let ratio = self.hit_ratio.map_or("no reads".to_owned(), |ratio| format!("{} of reads hit", percent(ratio)));
        vec![Shown::Line(format!(
            "{ratio}; {} pages read, {} evicted, {} reads rejected",
            count(self.loaded_pages),
            count(self.evicted_pages),
            count(self.rejected)
        ))]
    }
}
