//! A drive in ten lines, or as JSON: its geometry, map, blocks by state, wear, and the use of its file.

use comfy_table::Table;
use comfy_table::presets::NOTHING;
use nandscape_device_ftl_core::component::BlockState;
use nandscape_device_media::durable::{DurableMemory, Membership, Owner};
use nandscape_lab_report::format::size;
use serde_json::{Map, Value, json};

use super::drive::{OfFile, Origin, View};
use super::{age, blocks, ox};

pub(super) fn state_name(state: BlockState) -> &'static str {
    match state {
        BlockState::Bad => "bad",
        BlockState::Free => "free",
        BlockState::Open(_) => "open",
        BlockState::Full => "full",
        // In a drive that has just started: without current data, and to be erased.
        BlockState::Collecting => "collected",
        BlockState::Retiring => "retiring",
    }
}

/// Whether the drive is a member.
fn membership(of: Membership) -> &'static str {
    match of {
        Membership::None => "no",
        Membership::Member(_) => "yes",
        Membership::Strayed(Owner::Array) => "was, and was served outside of its array",
        Membership::Strayed(Owner::Engine) => "was, and was served outside of its store",
    }
}

const STATES: [&str; 6] = ["free", "open", "full", "collected", "retiring", "bad"];

/// Blocks by state.
fn counts(view: &View<'_>) -> [u64; STATES.len()] {
    let mut counts = [0; STATES.len()];
    for block in view.blocks() {
        let name = state_name(view.part.block(block).state);
        counts[STATES.iter().position(|state| *state == name).expect("all states are listed")] += 1;
    }
    counts
}

/// A view as JSON.
pub(super) fn as_json(view: &View<'_>, with_blocks: bool) -> Value {
    let (part, profile) = (view.part, &view.inspected.profile);
    if view.in_memory {
        return json!({
            "schema": 1, "part": part.name(), "kind": part.kind(), "channels": part.media().channels_of_drive(),
            "store": "ram",
        });
    }
    let (tables, stats) = (part.tables(), part.stats());
    let counted: Map<String, Value> =
        STATES.iter().zip(counts(view)).map(|(state, count)| ((*state).to_owned(), count.into())).collect();
    let memory: Map<String, Value> =
        part.memory().into_iter().map(|(name, bytes)| (name.to_owned(), bytes.into())).collect();
    let mut value = json!({
        "schema": 1,
        "profile": profile.name,
        "capacity_bytes": profile.capacity(),
        "map": { "on_flash": tables.on_flash, "in_buffer": tables.in_buffer, "lost_sectors": tables.lost_sectors },
        "blocks": counted,
        "erases": { "least": stats.erases.0, "most": stats.erases.1, "sum": stats.erases.2 },
        "memory_bytes": memory,
    });
    if let (Some(file), Some(memory)) = (view.inspected.of_file(), part.media().durable()) {
        of_file_as_json(&mut value, file, memory);
        value["host_written_bytes"] = stats.host_bytes.into();
    }
    if view.is_one_of_several() {
        value["part"] = part.name().into();
        value["kind"] = part.kind().into();
        value["channels"] = part.media().channels_of_drive().into();
        if part.has_some_dies() {
            value["dies"] = part.media().dies_of_drive().into();
        }
    }
    if let Some(ftl) = part.ox_block() {
        value["ox_block"] = ox::as_json(ftl);
    }
    if part.media().aging().is_some() {
        value["age"] = age::as_json(part.media());
    }
    if with_blocks {
        value["block_list"] = blocks::as_json(view);
    }
    value
}

/// What only the file of a drive has.
fn of_file_as_json(value: &mut Value, OfFile { drive, used, in_use }: &OfFile, memory: &DurableMemory) {
    let of =
        |owner| membership(if used.membership.owner() == Some(owner) { used.membership } else { Membership::None });
    let own = json!({
        "identity": { "serial": drive.names.serial, "model": drive.names.model, "nqn": drive.names.nqn },
        "file_bytes": memory.file_len(),
        "in_use": in_use,
        "closed_in_order": !used.in_use,
        "starts": used.starts,
        "unclean_starts": used.unclean,
        "array_member": of(Owner::Array),
        "memcached_member": of(Owner::Engine),
        "syncs": used.syncs,
        "snapshot": { "epoch": memory.snapshot_epoch(), "chunks": memory.snapshot_chunks().0 },
        "journal_entries": memory.journal_len(),
    });
    for (key, own) in own.as_object().into_iter().flatten() {
        value[key] = own.clone();
    }
}

/// A view in lines.
pub(super) fn overview(view: &View<'_>) -> String {
    let part = view.part;
    if view.in_memory {
        let channels = view.channels();
        return format!(
            "part  {}: an FTL of kind {} with channels {channels}, in memory; it is new at each start\n",
            part.name(),
            part.kind()
        );
    }
    let mut table = Table::new();
    table.load_style(NOTHING);
    if view.is_one_of_several() {
        let what = format!("{}: an FTL of kind {} with channels {}", part.name(), part.kind(), view.channels());
        table.add_row(["part".to_owned(), what]);
    }
    table.add_rows(rows(view).into_iter().map(|(name, value)| [name.to_owned(), value]));
    if let Some(age) = age::row(part.media()) {
        table.add_row(["age".to_owned(), age]);
    }
    let used = view.inspected.of_file().map(|file| file.used.membership);
    if let Some((used, owner)) = used.and_then(|used| Some((used, used.owner()?))) {
        table.add_row([format!("member of {owner}"), membership(used).to_owned()]);
    }
    if let Some(ftl) = part.ox_block() {
        table.add_rows(ox::rows(ftl).map(|(name, value)| [name.to_owned(), value]));
    }
    format!("{}\n", table.trim_fmt())
}

/// The rows of any part; a state has no counters and no file.
fn rows(view: &View<'_>) -> Vec<(&'static str, String)> {
    let (part, profile) = (view.part, &view.inspected.profile);
    let (geometry, tables, stats) = (view.geometry().counts(), part.tables(), part.stats());
    let capacity = size(profile.capacity());
    let mut rows = match &view.inspected.origin {
        Origin::State(number) => vec![("drive", format!("{number} ({}), {capacity}", profile.name))],
        Origin::File(file) => vec![
            ("drive", format!("{} ({}), {capacity}", file.drive.names.serial, profile.name)),
            ("subsystem", file.drive.names.nqn.clone()),
        ],
    };
    rows.push((
        "geometry",
        format!(
            "{} channels x {} dies x {} planes x {} blocks x {} pages of {}",
            geometry.channels,
            geometry.dies_per_channel,
            geometry.planes_per_die,
            geometry.blocks_per_plane,
            geometry.pages_per_block,
            size(geometry.page_size.into())
        ),
    ));
    let of_file = view.inspected.of_file().zip(part.media().durable());
    if let Some((OfFile { used, .. }, memory)) = of_file {
        let ended = if used.in_use { "not closed in order" } else { "closed in order" };
        let synced = if used.syncs { "synced" } else { "not synced" };
        rows.push(("used", format!("{} starts, {} of them after a kill; {ended}", used.starts, used.unclean)));
        rows.push(("file", format!("{} with holes, {synced}", size(memory.file_len()))));
    }
    let memory_of: Vec<String> =
        part.memory().into_iter().map(|(name, bytes)| format!("{} {}", name.replace('_', " "), size(bytes))).collect();
    let unit = u64::from(geometry.unit_size);
    let counts = counts(view);
    let good = u64::from(view.geometry().blocks()) - counts[STATES.len() - 1];
    let mean = stats.erases.2 as f64 / good.max(1) as f64;
    let states: Vec<String> = STATES.iter().zip(counts).map(|(state, count)| format!("{count} {state}")).collect();
    let (least, most, worn) = (stats.erases.0, stats.erases.1, age::wear(part.media()));
    rows.extend([
        ("memory of the FTL", memory_of.join(", ")),
        (
            "map",
            format!(
                "{} of data on flash, {} in the write buffer, {} sectors unreadable",
                size(tables.on_flash * unit),
                size(tables.in_buffer * unit),
                tables.lost_sectors
            ),
        ),
        ("blocks", states.join(", ")),
        ("wear", format!("{least} to {most} erases a block, mean {mean:.1}{worn}")),
    ]);
    if let Some((_, memory)) = of_file {
        let (chunks, all) = memory.snapshot_chunks();
        let changed = part.media().changed_blocks().len();
        rows.push(("written", format!("{} by the host; {} blocks collected", size(stats.host_bytes), stats.gc_blocks)));
        rows.push((
            "tables",
            format!(
                "snapshot {} with {chunks} of {all} chunks; since then {changed} blocks have changed and the journal has {} \
                 entries",
                memory.snapshot_epoch(),
                memory.journal_len()
            ),
        ));
    }
    rows
}
