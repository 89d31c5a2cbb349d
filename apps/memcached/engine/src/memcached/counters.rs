//! What a server counts, and `stats`.

use super::Server;

/// Commands and what came of them, since the server began or `stats reset`.
#[derive(Copy, Clone, Default, PartialEq, Eq, Debug)]
pub struct Counters {
    /// Clients now.
    pub connections: u64,
    /// Clients so far.
    pub all_connections: u64,
    /// Keys that were asked for, and those of them that had an item.
    pub gets: u64,
    /// See `gets`.
    pub get_hits: u64,
    /// Stores.
    pub sets: u64,
    /// Touches of keys, and of those with an item.
    pub touches: u64,
    /// See `touches`.
    pub touch_hits: u64,
    /// `flush_all`.
    pub flushes: u64,
    /// Deletes of keys with an item, and without one.
    pub delete_hits: u64,
    /// See `delete_hits`.
    pub delete_misses: u64,
    /// Counters that went up, and were not there.
    pub incr_hits: u64,
    /// See `incr_hits`.
    pub incr_misses: u64,
    /// The same of counters that went down.
    pub decr_hits: u64,
    /// See `decr_hits`.
    pub decr_misses: u64,
    /// Stores under a version: done, without an item, and of another version.
    pub cas_hits: u64,
    /// See `cas_hits`.
    pub cas_misses: u64,
    /// See `cas_hits`.
    pub cas_bad: u64,
    /// Items that were stored.
    pub stored: u64,
    /// Stores of items that are too large.
    pub too_large: u64,
    /// Keys that were asked for whose item had expired.
    pub get_expired: u64,
    /// Bytes of clients, and to them.
    pub received: u64,
    /// See `received`.
    pub sent: u64,
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

impl Server {
    /// `stats reset`.
    pub(crate) fn reset(&self) {
        self.before.set(self.engine.stats());
        self.prefixes.borrow_mut().reset();
        self.count(|counters| {
            *counters = Counters {
                connections: counters.connections,
                all_connections: counters.all_connections,
                ..Counters::default()
            };
        });
    }

    /// Names and values of `stats`.
    pub fn stats(&self) -> Vec<(&'static str, String)> {
        let (of, whole, now_s) = (self.counters(), self.engine.stats(), self.engine.now_s());
        let engine = whole.since(&self.before.get());
        let uptime = now_s - self.begun_s;
        let seconds = self.engine.host().sim().now().ns() as f64 / 1e9;
        let user: u64 = self.engine.members().iter().filter_map(|one| Some(one.disk()?.info.bytes())).sum();
        let a_day = if seconds > 0.0 { whole.written_bytes as f64 / user as f64 * 86_400.0 / seconds } else { 0.0 };
        let per_item = share(engine.index_bytes, engine.items);
        let mut stats = vec![
            ("pid", std::process::id().to_string()),
            ("uptime", uptime.to_string()),
            ("time", now_s.to_string()),
            ("version", self.version.clone()),
            ("pointer_size", usize::BITS.to_string()),
        ];
        let numbers = [
            ("curr_connections", of.connections),
            ("total_connections", of.all_connections),
            ("cmd_get", of.gets),
            ("cmd_set", of.sets),
            ("cmd_flush", of.flushes),
            ("cmd_touch", of.touches),
            ("get_hits", of.get_hits),
            ("get_misses", of.gets - of.get_hits),
            ("get_expired", of.get_expired),
            ("delete_hits", of.delete_hits),
            ("delete_misses", of.delete_misses),
            ("incr_hits", of.incr_hits),
            ("incr_misses", of.incr_misses),
            ("decr_hits", of.decr_hits),
            ("decr_misses", of.decr_misses),
            ("cas_hits", of.cas_hits),
            ("cas_misses", of.cas_misses),
            ("cas_badval", of.cas_bad),
            ("touch_hits", of.touch_hits),
            ("touch_misses", of.touches - of.touch_hits),
            ("limit_maxbytes", self.engine.config().memory),
            ("threads", 1),
            ("bytes_read", of.received),
            ("bytes_written", of.sent),
            ("bytes", engine.live_bytes + engine.waiting_bytes),
            ("curr_items", engine.items),
            ("total_items", of.stored),
            ("store_too_large", of.too_large),
            ("evictions", engine.evictions),
            ("expired_found", engine.expired),
            ("engine_drives", self.engine.drives() as u64),
            ("engine_memory_bytes", engine.memory_bytes),
            ("engine_index_bytes", engine.index_bytes),
            ("engine_waiting_bytes", engine.waiting_bytes),
            ("engine_log_bytes", engine.log_bytes),
            ("engine_live_bytes", engine.live_bytes),
            ("engine_small_items", engine.small_items),
            ("engine_buckets", engine.buckets),
            ("engine_bucket_reads", engine.bucket_reads),
            ("engine_bucket_misses", engine.bucket_misses),
            ("engine_bucket_writes", engine.folds),
            ("engine_bucket_changes", engine.folded),
            ("engine_memory_hits", engine.memory_hits),
            ("engine_drive_hits", engine.drive_hits),
            ("engine_reconstructed", engine.reconstructed),
            ("engine_hedged_reads", engine.hedged),
            ("engine_unreadable", engine.unreadable),
            ("engine_lost_drives", engine.lost_drives),
            ("engine_unreachable_drives", engine.away_drives),
            ("engine_rebuilt_drives", engine.rebuilt_drives),
            ("engine_rebuild_bytes", engine.rebuild_bytes),
            ("engine_rebuild_bytes_left", engine.rebuild_bytes_left),
            ("engine_dropped_items", engine.dropped),
            ("engine_cancelled_writes", engine.cancelled),
            ("engine_moved_items", engine.moved),
            ("engine_throttled", engine.throttled),
            ("engine_epochs", engine.epochs),
            ("engine_reads_at_tokens", engine.reads_at_tokens),
            ("engine_window_lapses", engine.window_lapses),
            ("engine_drive_bytes_read", engine.read_bytes),
            ("engine_drive_bytes_written", engine.written_bytes),
        ];
        stats.extend(numbers.map(|(name, number)| (name, number.to_string())));
        stats.extend([
            ("hit_ratio", format!("{:.4}", share(of.get_hits, of.gets))),
            ("engine_policy", self.engine.policy_name().to_owned()),
            ("engine_bytes_an_item_in_index", format!("{per_item:.1}")),
            ("engine_drive_writes_per_day", format!("{a_day:.3}")),
        ]);
        stats
    }

    /// Names and values of `stats settings`.
    pub(crate) fn settings(&self) -> Vec<(&'static str, String)> {
        let config = self.engine.config();
        vec![
            ("maxbytes", config.memory.to_string()),
            ("item_size_max", self.engine.item_limit().to_string()),
            ("evictions", "on".to_owned()),
            ("cas_enabled", "yes".to_owned()),
            ("flush_enabled", "yes".to_owned()),
            ("auth_enabled_sasl", "no".to_owned()),
            ("shutdown_command", "no".to_owned()),
            ("binding_protocol", "ascii".to_owned()),
            ("engine_policy", self.engine.policy_name().to_owned()),
            ("engine_ack", config.ack.name().to_owned()),
            ("engine_dirty", config.dirty.to_string()),
            ("engine_flush_after_ms", config.flush_after_ms.to_string()),
            ("engine_small_items_limit", config.small.to_string()),
            ("engine_segment", self.engine.segment_bytes().to_string()),
        ]
    }
}
