//! An OX-Block in `nandscape inspect`: log, checkpoint, tables and their places.

use nandscape_device_ftl_ox::OxBlock;
use serde_json::{Value, json};

/// Lines for a person.
pub(super) fn rows(ftl: &OxBlock) -> [(&'static str, String); 4] {
    let shown = ftl.summary();
    let recovered = shown.recovered;
    let blocks = shown.blocks.map(|(name, count)| format!("{count} of {name}"));
    let copies: Vec<String> = shown.checkpoint_blocks.iter().map(|block| block.0.to_string()).collect();
    let held = match shown.held {
        0 => String::new(),
        held => format!("; {held} to be erased after the next checkpoint"),
    };
    let (on_flash, cached, all) = shown.map_fragments;
    let (chunks, all_chunks) = shown.block_fragments;
    [
        ("in use", format!("{}{held}", blocks.join(", "))),
        (
            "log",
            format!(
                "the start has read {} pages with {} records ({} transactions applied, {} not complete); epoch {}, next page {}",
                recovered.pages,
                recovered.records,
                recovered.committed,
                recovered.aborted,
                shown.log_epoch,
                shown.log_next
            ),
        ),
        ("checkpoint", format!("version {}, in blocks {}", shown.checkpoint, copies.join(" and "))),
        (
            "fragments",
            format!(
                "{on_flash} of {all} of the map are on flash, {cached} in memory; {chunks} of {all_chunks} of the table of blocks \
                 are on flash"
            ),
        ),
    ]
}

/// The same for programs.
pub(super) fn as_json(ftl: &OxBlock) -> Value {
    let shown = ftl.summary();
    let recovered = shown.recovered;
    let blocks: serde_json::Map<String, Value> =
        shown.blocks.iter().map(|(name, count)| (name.replace(' ', "_"), (*count).into())).collect();
    let copies: Vec<u32> = shown.checkpoint_blocks.iter().map(|block| block.0).collect();
    json!({
        "blocks_in_use": blocks,
        "held_blocks": shown.held,
        "log": {
            "pages_read": recovered.pages, "records_read": recovered.records,
            "transactions_applied": recovered.committed, "transactions_incomplete": recovered.aborted,
            "epoch": shown.log_epoch, "next_page": shown.log_next, "pages_since_checkpoint": shown.log_pages,
        },
        "checkpoint": { "version": shown.checkpoint, "blocks": copies },
        "map_fragments": { "on_flash": shown.map_fragments.0, "in_memory": shown.map_fragments.1, "all": shown.map_fragments.2 },
        "block_table_fragments": { "on_flash": shown.block_fragments.0, "all": shown.block_fragments.1 },
    })
}
