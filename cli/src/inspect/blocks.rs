//! The blocks of a drive: place, state, pages, current units, erases, content and age.

use comfy_table::Table;
use comfy_table::presets::NOTHING;
use serde_json::{Value, json};

use super::age;
use super::drive::View;
use super::overview::state_name;
use super::page::place;

/// All blocks.
pub(super) fn table(view: &View<'_>) -> Table {
    let mut table = Table::new();
    let (geometry, part) = (view.geometry(), view.part);
    let ages = part.media().aging().is_some();
    let mut header = vec!["block", "place", "state", "pages", "current units", "erases", "content"];
    header.extend(ages.then_some(["days since written", "reads of each page"]).into_iter().flatten());
    table.load_style(NOTHING).set_header(header);
    for block in view.blocks() {
        let info = part.block(block);
        let factory = part.media().is_factory_bad(block);
        let state = if part.media().holds_identifier(block) {
            "identifier"
        } else if factory {
            "bad from the factory"
        } else if part.media().is_grown_bad(block) {
            "bad before the first start"
        } else {
            state_name(info.state)
        };
        let mut row = vec![
            block.0.to_string(),
            place(geometry, block),
            state.to_owned(),
            view.found.pages_programmed(block).to_string(),
            info.valid.to_string(),
            info.erases.to_string(),
            view.content_of(block).unwrap_or_default().to_owned(),
        ];
        if let Some(health) = age::of_block(part.media(), block) {
            row.extend([format!("{:.1}", health.hours / 24.0), format!("{:.1}", health.reads)]);
        }
        table.add_row(row);
    }
    table
}

/// The same for programs.
pub(super) fn as_json(view: &View<'_>) -> Value {
    let part = view.part;
    let list = view.blocks().map(|block_id| {
        let info = part.block(block_id);
        let mut block = json!({
            "block": block_id.0, "state": state_name(info.state), "pages": view.found.pages_programmed(block_id),
            "current_units": info.valid, "erases": info.erases, "factory_bad": part.media().is_factory_bad(block_id),
        });
        if let Some(content) = view.content_of(block_id) {
            block["content"] = content.into();
        }
        if let Some(health) = age::of_block(part.media(), block_id) {
            block["hours_since_program"] = health.hours.into();
            block["reads_of_each_page"] = health.reads.into();
        }
        block
    });
    list.collect()
}
