//! The kinds of drives on which [`commands`](crate::commands) and [`command_sets`](crate::command_sets) run their scripts: small
//! drives, so that a script reaches their limits.

use nandscape_device_ssd::Profile;

/// A kind of drive.
pub(crate) struct Kind {
    /// Its keys, on top of the profile `default`.
    keys: &'static str,
    /// Two namespaces of different formats replace the initial one. Some kinds support only the initial one.
    pub(crate) has_several_namespaces: bool,
    /// The namespace is formatted for pages that are chains of pieces.
    pub(crate) has_pieces: bool,
}

impl Kind {
    /// Its profile.
    pub(crate) fn profile(&self) -> Profile {
        let text = format!("version = 1\nbase = \"default\"\n{}", self.keys);
        Profile::parse("kinds.rs", &text).expect("the keys of a drive")
    }
}

/// Logical blocks, and nothing else.
pub(crate) const BLOCKS: Kind = Kind {
    keys: r#"capacity = "64MiB"
controller.queue_pairs = 4
buffer.mode = "volatile"
"#,
    has_several_namespaces: true,
    has_pieces: false,
};

/// Drives with other interfaces. A known input names one by its place: a new one goes to the end.
pub(crate) const KINDS: [Kind; 9] =
    [ZONES, OPEN_CHANNEL_THROUGH, OPEN_CHANNEL_CACHED, PLACEMENT, STREAMS, TRANSACTIONS, PARTS, WINDOWS, PIECES];

/// Windows for the drive's own work, and reads that fail fast or preempt.
const WINDOWS: Kind = Kind {
    keys: r#"capacity = "6MiB"
geometry = { channels = 2, dies_per_channel = 1, planes_per_die = 2, pages_per_block = 12, page_size = "16KiB" }
controller = { queue_pairs = 4, predictable_latency = true, priority = "fifo" }
buffer = { mode = "volatile", size = "1MiB" }
ftl = { windows.ranges = 2, gc.preempt_on_request = true }
"#,
    has_several_namespaces: false,
    has_pieces: false,
};

/// Zones with all that a zone can have, and few blocks that are left over.
const ZONES: Kind = Kind {
    keys: r#"capacity = "6MiB"
lba_size = "4KiB"
geometry = { channels = 2, dies_per_channel = 2, planes_per_die = 1, pages_per_block = 24, page_size = "4KiB" }
timing.program_unit = "word_line"
buffer.size = "192KiB"
controller = { queue_pairs = 4, max_transfer = "64KiB" }
[ftl]
kind = "zone"
over_provisioning = "50%"
[ftl.zone]
write_time = "2us"
append_time = "3us"
max_active = 4
max_open = 3
zrwa_size = "48KiB"
zrwa_granularity = "16KiB"
zrwa_zones = 2
descriptor_extension = "64B"
"#,
    has_several_namespaces: false,
    has_pieces: false,
};

/// Chunks whose writes end on flash.
const OPEN_CHANNEL_THROUGH: Kind = Kind {
    keys: r#"capacity = "6MiB"
lba_size = "4KiB"
geometry = { channels = 3, dies_per_channel = 1, planes_per_die = 2, pages_per_block = 12, page_size = "8KiB" }
timing = { program_unit = "word_line", planes = "multi_plane" }
buffer = { mode = "through", size = "256KiB" }
controller = { queue_pairs = 4, max_transfer = "256KiB" }
ftl = { kind = "open_channel", over_provisioning = "50%" }
"#,
    has_several_namespaces: false,
    has_pieces: false,
};

/// Chunks whose writes end in the registers of the flash.
const OPEN_CHANNEL_CACHED: Kind = Kind {
    keys: r#"capacity = "6MiB"
lba_size = "4KiB"
geometry = { channels = 2, dies_per_channel = 1, planes_per_die = 1, pages_per_block = 12, page_size = "16KiB" }
buffer = { mode = "register", size = "256KiB" }
controller = { queue_pairs = 4, max_transfer = "256KiB" }
ftl = { kind = "open_channel", over_provisioning = "50%" }
"#,
    has_several_namespaces: false,
    has_pieces: false,
};

/// Reclaim unit handles that are never mixed.
const PLACEMENT: Kind = Kind {
    keys: r#"capacity = "64MiB"
controller.queue_pairs = 4
buffer.mode = "volatile"
ftl.fdp = { handles = 3, isolation = "persistent" }
"#,
    has_several_namespaces: true,
    has_pieces: false,
};

/// More streams than a script opens.
const STREAMS: Kind = Kind {
    keys: r#"capacity = "64MiB"
controller.queue_pairs = 4
ftl.streams.count = 3
"#,
    has_several_namespaces: true,
    has_pieces: false,
};

/// OX-Block with transactions.
const TRANSACTIONS: Kind = Kind {
    keys: r#"capacity = "8MiB"
geometry = { channels = 2, dies_per_channel = 1, planes_per_die = 2, pages_per_block = 16 }
buffer = { mode = "volatile", size = "256KiB" }
controller = { queue_pairs = 4, max_transfer = "128KiB" }
[ftl]
kind = "ox_block"
over_provisioning = "42.86%"
ox_block = { transactions = true, checkpoint_interval = "50ms" }
"#,
    has_several_namespaces: false,
    has_pieces: false,
};

/// OX-Block with pages of any length.
const PIECES: Kind = Kind {
    keys: r#"capacity = "8MiB"
geometry = { channels = 2, dies_per_channel = 1, planes_per_die = 2, pages_per_block = 16 }
buffer = { mode = "volatile", size = "256KiB" }
controller = { queue_pairs = 4, max_transfer = "128KiB" }
[ftl]
kind = "ox_block"
over_provisioning = "42.86%"
ox_block = { checkpoint_interval = "50ms" }
"#,
    has_several_namespaces: false,
    has_pieces: true,
};

/// A page-mapped namespace next to a namespace of OX-Block.
const PARTS: Kind = Kind {
    keys: r#"capacity = "8MiB"
geometry = { channels = 2, dies_per_channel = 1, planes_per_die = 2, pages_per_block = 16 }
buffer = { mode = "volatile", size = "256KiB" }
controller = { queue_pairs = 4, max_transfer = "128KiB" }
[ftl]
over_provisioning = "42.86%"
parts = [{ channels = "0", capacity = "1MiB" }, { channels = "1", ftl = { kind = "ox_block" } }]
"#,
    has_several_namespaces: false,
    has_pieces: false,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_a_drive() {
        KINDS.iter().chain([&BLOCKS]).for_each(|kind| {
            kind.profile().resolve().unwrap_or_else(|error| panic!("{}: {error}", kind.keys));
        });
    }
}
