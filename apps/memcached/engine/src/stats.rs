//! What an engine counts.

/// Counters.
#[derive(Copy, Clone, Default, PartialEq, Eq, Debug)]
pub struct Stats {
    /// Reads that were asked for.
    pub gets: u64,
    /// Of those, answered from memory.
    pub memory_hits: u64,
    /// Of those, answered from a drive.
    pub drive_hits: u64,
    /// Items in the index, and small ones in buckets.
    pub items: u64,
    /// Small items, in buckets or waiting for that.
    pub small_items: u64,
    /// Buckets that were written.
    pub buckets: u64,
    /// Bytes of records of items, each counted once.
    pub live_bytes: u64,
    /// Bytes of records that the drives have room for, each counted once.
    pub log_bytes: u64,
    /// Bytes of memory of the index, with the table of buckets and without copies of small items.
    pub index_bytes: u64,
    /// Bytes of memory of everything.
    pub memory_bytes: u64,
    /// Bytes of changes that wait for their drives.
    pub waiting_bytes: u64,
    /// Items that left for want of space or memory.
    pub evictions: u64,
    /// Items that had expired when they were found.
    pub expired: u64,
    /// Changes of items that a later one made void before they were written.
    pub cancelled: u64,
    /// Items that were written again because their segment was given up.
    pub moved: u64,
    /// Items that were read from all drives but their own, with parity.
    pub reconstructed: u64,
    /// Reads at drives that were silent, after which others were asked.
    pub hedged: u64,
    /// Changes that waited because too many waited for their drives.
    pub throttled: u64,
    /// Epochs.
    pub epochs: u64,
    /// Items that could not be read from any replica.
    pub unreadable: u64,
    /// Buckets that were read for clients.
    pub bucket_reads: u64,
    /// Of those, buckets without the item.
    pub bucket_misses: u64,
    /// Buckets that were written because of changes, and the changes.
    pub folds: u64,
    /// See `folds`.
    pub folded: u64,
    /// Items that were dropped when the store was opened: a newer version could be in a part of the log that is damaged.
    pub dropped: u64,
    /// Drives that are missing, have failed, or are being rebuilt.
    pub lost_drives: u64,
    /// Drives that are out of reach, and are waited for.
    pub away_drives: u64,
    /// Of those that are lost, drives that are being rebuilt.
    pub rebuilt_drives: u64,
    /// Bytes that are copied to these in all.
    pub rebuild_bytes: u64,
    /// Of those, bytes that are still to be copied.
    pub rebuild_bytes_left: u64,
    /// Bytes read from drives.
    pub read_bytes: u64,
    /// Bytes written to drives.
    pub written_bytes: u64,
    /// Reads that began at a drive with a token although the policy keeps reads apart. It stays 0.
    pub reads_at_tokens: u64,
    /// Deterministic windows that drives have ended by themselves, if the policy has windows.
    pub window_lapses: u64,
}

impl Stats {
    /// What was counted since `before`. Sizes, drives and what opening found are as they are now.
    pub fn since(&self, before: &Stats) -> Stats {
        // A drive that was replaced takes its counts with it.
        let since = |of: fn(&Stats) -> u64| of(self).saturating_sub(of(before));
        Stats {
            gets: since(|stats| stats.gets),
            memory_hits: since(|stats| stats.memory_hits),
            drive_hits: since(|stats| stats.drive_hits),
            evictions: since(|stats| stats.evictions),
            expired: since(|stats| stats.expired),
            cancelled: since(|stats| stats.cancelled),
            moved: since(|stats| stats.moved),
            reconstructed: since(|stats| stats.reconstructed),
            hedged: since(|stats| stats.hedged),
            throttled: since(|stats| stats.throttled),
            epochs: since(|stats| stats.epochs),
            unreadable: since(|stats| stats.unreadable),
            bucket_reads: since(|stats| stats.bucket_reads),
            bucket_misses: since(|stats| stats.bucket_misses),
            folds: since(|stats| stats.folds),
            folded: since(|stats| stats.folded),
            read_bytes: since(|stats| stats.read_bytes),
            written_bytes: since(|stats| stats.written_bytes),
            reads_at_tokens: since(|stats| stats.reads_at_tokens),
            window_lapses: since(|stats| stats.window_lapses),
            ..*self
        }
    }
}
