//! Counters that outlast power. They are written whenever the host's data begins a block, and at an orderly stop, so that a kill
//! loses what was counted since.

use super::super::state::State;
use crate::ftl::Stats;

impl State {
    /// Writes the counters.
    pub(in super::super) fn save_counters(&self) {
        if let Some(memory) = &self.memory {
            let bytes: Vec<u8> = fields(&self.counters).into_iter().flat_map(u64::to_le_bytes).collect();
            // A file that fails makes the drive read-only, which is told elsewhere.
            let _ = memory.durable.set_counters(&bytes);
        }
    }

    /// The counters as they were written.
    pub(super) fn recall_counters(&mut self) -> std::io::Result<()> {
        let Some(memory) = &self.memory else { return Ok(()) };
        let Some(bytes) = memory.durable.counters()? else { return Ok(()) };
        let mut words = bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")));
        let mut next = || words.next().unwrap_or_default();
        self.counters = Stats {
            host_bytes: next(),
            host_units: next(),
            gc_units: next(),
            wear_units: next(),
            padding_units: next(),
            gc_blocks: next(),
            wear_blocks: next(),
            read_modify_writes: next(),
            buffer_merges: next(),
            retired_blocks: next(),
            lost_units: next(),
            dropped_units: next(),
            ..Stats::default()
        };
        Ok(())
    }
}

fn fields(stats: &Stats) -> [u64; 12] {
    [
        stats.host_bytes,
        stats.host_units,
        stats.gc_units,
        stats.wear_units,
        stats.padding_units,
        stats.gc_blocks,
        stats.wear_blocks,
        stats.read_modify_writes,
        stats.buffer_merges,
        stats.retired_blocks,
        stats.lost_units,
        stats.dropped_units,
    ]
}
