//! `nandscape inspect`: the contents of a drive image. The drive is started on the unchanged file, with all changes kept in
//! memory, so that it shows the state that a start would find. Pages and the log are shown as they are in the file,
//! before a start writes to them.
//!
//! Left out: data.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use clap::Args;
use comfy_table::Table;
use comfy_table::presets::NOTHING;
use nandscape_device_ftl_core::component::BlockState;
use nandscape_device_ftl_ox::ox_block::content;
use nandscape_device_media::durable::{Membership, Owner, PageStatus, StoreFile, StoreUse};
use nandscape_device_media::{BlockId, Geometry, Media, PageId};
use nandscape_device_ssd::{Part, PartStore, Profile, Resolved, Ssd, StoredDrive};
use nandscape_lab_report::format::size;
use nandscape_lab_run::StateFile;
use nandscape_sim::Executor;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::{inspect_age, inspect_look, inspect_state, output};

/// Show the contents of a drive's file, or what a saved state is of.
///
/// The file stays as it is. A drive that was killed is shown as a start would find it; one that runs, as it is about now.
#[derive(Args)]
#[command(after_help = "\
Examples:
  nandscape inspect drive.nand                      the drive in ten lines
  nandscape inspect drive.nand --blocks
        every block: state, pages, current units, erases
  nandscape inspect drive.nand --page 0/1/0/7/3
        a page by channel, die, plane, block and page
  nandscape inspect drive.nand --lba 4096           where a logical block is

Exit status: 0 when it was shown, 2 if the file is no store, or too damaged to start a drive on it, or a damaged state.")]
pub(crate) struct InspectArgs {
    /// The file that was given to `nandscape serve --store`, or a state that `nandscape sim --save-state` has written
    file: PathBuf,
    /// List all blocks
    #[arg(long)]
    blocks: bool,
    /// Show a page: its number, or CHANNEL/DIE/PLANE/BLOCK/PAGE
    #[arg(long, value_name = "ADDRESS", conflicts_with = "blocks")]
    page: Option<String>,
    /// Show where a logical block is, by its number
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["blocks", "page"])]
    lba: Option<u64>,
    /// List the pages of the log of an OX-Block
    #[arg(long, conflicts_with_all = ["blocks", "page", "lba"])]
    log: bool,
    /// The part to show, by name, of a drive with several FTLs
    #[arg(long, value_name = "NAME")]
    part: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// A drive that was started on a file for inspection.
pub(crate) struct Inspected {
    pub(crate) ssd: Ssd,
    /// The flash of each of its FTLs, as in the file.
    found: Vec<Media>,
    pub(crate) profile: Resolved,
    pub(crate) drive: StoredDrive,
    /// How the file was used so far.
    pub(crate) used: StoreUse,
    /// Whether another process uses it now.
    pub(crate) in_use: bool,
}

impl Inspected {
    /// Starts the drive.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Inspected> {
        let shown = path.display().to_string();
        let (file, in_use) = StoreFile::open_to_read(path).map_err(|error| anyhow!("{shown}: {error}"))?;
        let used = file.before();
        let drive = StoredDrive::of(file.spec()).map_err(|error| anyhow!("{shown}: {error}"))?;
        let profile = Profile::of_keys(&drive.profile_name, drive.keys.clone()).resolve();
        let profile = profile.with_context(|| format!("{shown}: its profile"))?;
        let mut executor = Executor::new();
        let ssd = Ssd::open(&executor.sim(), &profile, file).with_context(|| shown.clone())?;
        let (again, _) = StoreFile::open_to_read(path).map_err(|error| anyhow!("{shown}: {error}"))?;
        let found = Ssd::open_flash(&executor.sim(), &profile, again).with_context(|| shown.clone())?;
        // Tables that are in the flash are read first. It ends, for nothing else is asked of the drive.
        let started = executor.block_on(ssd.in_service());
        started.map_err(|stalled| anyhow!("{shown}: the drive does not come into service: {stalled}"))?;
        Ok(Inspected { ssd, found, profile, drive, used, in_use })
    }

    /// Each of its FTLs with its flash.
    fn views(&self) -> impl Iterator<Item = View<'_>> {
        let in_memory = self.profile.parts().iter().map(|part| part.store == PartStore::Ram);
        let in_memory = in_memory.chain(std::iter::repeat(false));
        let parts = self.ssd.parts().iter().zip(&self.found).zip(in_memory);
        parts.map(|((part, found), in_memory)| View { inspected: self, part, found, in_memory })
    }

    /// Which channels are in memory, so that the file has nothing of them.
    pub(crate) fn channels_in_memory(&self) -> Option<String> {
        let channels = |view: View<'_>| view.in_memory.then(|| view.channels());
        let all: Vec<String> = self.views().filter_map(channels).collect();
        (!all.is_empty()).then(|| all.join(","))
    }
}

/// One FTL of a drive.
pub(crate) struct View<'a> {
    pub(crate) inspected: &'a Inspected,
    pub(crate) part: &'a Part,
    /// Its flash, as in the file.
    pub(crate) found: &'a Media,
    /// Whether the file has nothing of it: it is new at each start.
    in_memory: bool,
}

impl View<'_> {
    pub(crate) fn geometry(&self) -> &Geometry {
        self.part.media().geometry()
    }

    /// Its channels, as the drive counts them, and its dies of them, if it has not all.
    fn channels(&self) -> String {
        let listed = |numbers: &[u32]| numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let media = self.part.media();
        match self.part.has_some_dies() {
            true => format!("{}, dies {}", listed(media.channels_of_drive()), listed(media.dies_of_drive())),
            false => listed(media.channels_of_drive()),
        }
    }

    /// Whether the drive has others.
    fn is_one_of_several(&self) -> bool {
        self.inspected.ssd.parts().len() > 1
    }

    fn blocks(&self) -> impl Iterator<Item = BlockId> + use<> {
        (0..self.geometry().blocks()).map(BlockId)
    }
}

/// Shows it.
pub(crate) fn run(args: &InspectArgs) -> Result<(), Failure> {
    if StateFile::begins(&args.file) {
        return run_state(args);
    }
    let inspected = Inspected::open(&args.file).map_err(Failure::Input)?;
    if inspected.in_use {
        output::note("the drive is in use: what it shows may be of different moments");
    }
    let views = views(&inspected, args.part.as_deref())?;
    if args.log {
        return inspect_look::log(only(&views, "--log")?, args.json);
    }
    if let Some(lba) = args.lba {
        return inspect_look::lba(only(&views, &format!("--lba {lba}"))?, lba, args.json);
    }
    match &args.page {
        Some(address) => {
            let view = only(&views, &format!("--page {address}"))?;
            page(view, parse_page(address, view.geometry())?, args.json)
        }
        None if args.json => {
            let mut each: Vec<Value> = views.iter().map(|view| as_json(view, args.blocks)).collect();
            let value = if each.len() == 1 { each.remove(0) } else { json!({ "schema": 1, "parts": each }) };
            output::result(&serde_json::to_string_pretty(&value).expect("plain data"))
        }
        None => {
            let mut text = String::new();
            for view in &views {
                let gap = if text.is_empty() { "" } else { "\n" };
                write!(text, "{gap}{}", overview(view)).expect("a string takes all");
                if args.blocks && !view.in_memory {
                    write!(text, "\n{}\n", block_table(view).trim_fmt()).expect("a string takes all");
                }
            }
            output::result(text.trim_end_matches('\n'))
        }
    }
}

/// Shows a saved state, which has no start to look behind.
fn run_state(args: &InspectArgs) -> Result<(), Failure> {
    let options = [
        ("--blocks", args.blocks),
        ("--page", args.page.is_some()),
        ("--lba", args.lba.is_some()),
        ("--log", args.log),
        ("--part", args.part.is_some()),
    ];
    match options.into_iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => {
            let shown = args.file.display();
            Err(Failure::Input(anyhow!("{option}: {shown} is a saved state; {option} is for the file of a drive")))
        }
        None => inspect_state::run(&args.file, args.json),
    }
}

/// The part that an option is about.
fn only<'v, 'a>(views: &'v [View<'a>], option: &str) -> Result<&'v View<'a>, Failure> {
    match views {
        [view] if view.in_memory => {
            let name = view.part.name();
            Err(Failure::Input(anyhow!("{option}: part {name} is in memory; the file has nothing of it")))
        }
        [view] => Ok(view),
        _ => Err(Failure::Input(anyhow!("{option}: the drive has several parts; --part selects one"))),
    }
}

/// The parts to show.
fn views<'a>(inspected: &'a Inspected, name: Option<&str>) -> Result<Vec<View<'a>>, Failure> {
    let Some(name) = name else { return Ok(inspected.views().collect()) };
    let found: Vec<View<'a>> = inspected.views().filter(|view| view.part.name() == name).collect();
    if found.is_empty() {
        let names: Vec<&str> = inspected.views().map(|view| view.part.name()).collect();
        return Err(Failure::Input(anyhow!("--part {name}: there is no such part; there are {}", names.join(", "))));
    }
    Ok(found)
}

fn state_name(state: BlockState) -> &'static str {
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

fn as_json(view: &View<'_>, with_blocks: bool) -> Value {
    let Inspected { profile, drive, used, in_use, .. } = view.inspected;
    let part = view.part;
    if view.in_memory {
        return json!({
            "schema": 1, "part": part.name(), "kind": part.kind(), "channels": part.media().channels_of_drive(),
            "store": "ram",
        });
    }
    let (memory, tables, stats) = (part.media().durable().expect("it is in a file"), part.tables(), part.stats());
    let blocks: serde_json::Map<String, Value> =
        STATES.iter().zip(counts(view)).map(|(state, count)| ((*state).to_owned(), count.into())).collect();
    let of =
        |owner| membership(if used.membership.owner() == Some(owner) { used.membership } else { Membership::None });
    let mut value = json!({
        "schema": 1,
        "profile": drive.profile_name,
        "identity": { "serial": drive.names.serial, "model": drive.names.model, "nqn": drive.names.nqn },
        "capacity_bytes": profile.capacity(),
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
        "map": { "on_flash": tables.on_flash, "in_buffer": tables.in_buffer, "lost_sectors": tables.lost_sectors },
        "blocks": blocks,
        "erases": { "least": stats.erases.0, "most": stats.erases.1, "sum": stats.erases.2 },
        "host_written_bytes": stats.host_bytes,
        "memory_bytes": part.memory().into_iter().map(|(name, bytes)| (name.to_owned(), bytes.into())).collect::<serde_json::Map<String, Value>>(),
    });
    if view.is_one_of_several() {
        value["part"] = part.name().into();
        value["kind"] = part.kind().into();
        value["channels"] = part.media().channels_of_drive().into();
        if part.has_some_dies() {
            value["dies"] = part.media().dies_of_drive().into();
        }
    }
    if let Some(ftl) = part.ox_block() {
        value["ox_block"] = crate::inspect_ox::as_json(ftl);
    }
    if part.media().aging().is_some() {
        value["age"] = inspect_age::as_json(part.media());
    }
    if with_blocks {
        let list = view.blocks().map(|block_id| {
            let (info, block) = (part.block(block_id), block_id);
            let mut block = json!({
                "block": block.0, "state": state_name(info.state), "pages": view.found.pages_programmed(block),
                "current_units": info.valid, "erases": info.erases, "factory_bad": part.media().is_factory_bad(block),
            });
            if let Some(content) = content_of(view, block_id) {
                block["content"] = content.into();
            }
            if let Some(health) = inspect_age::of_block(part.media(), block_id) {
                block["hours_since_program"] = health.hours.into();
                block["reads_of_each_page"] = health.reads.into();
            }
            block
        });
        value["block_list"] = list.collect();
    }
    value
}

fn overview(view: &View<'_>) -> String {
    let Inspected { profile, drive, used, .. } = view.inspected;
    let part = view.part;
    if view.in_memory {
        let channels = view.channels();
        return format!(
            "part  {}: an FTL of kind {} with channels {channels}, in memory; it is new at each start\n",
            part.name(),
            part.kind()
        );
    }
    let (geometry, counts) = (view.geometry().counts(), counts(view));
    let (memory, tables, stats) = (part.media().durable().expect("it is in a file"), part.tables(), part.stats());
    let unit = u64::from(geometry.unit_size);
    let bad = counts[STATES.len() - 1];
    let good = u64::from(view.geometry().blocks()) - bad;
    let mean = stats.erases.2 as f64 / good.max(1) as f64;
    let states = STATES.iter().zip(counts).map(|(state, count)| format!("{count} {state}"));
    let (chunks, all) = memory.snapshot_chunks();
    let changed = part.media().changed_blocks().len();
    let mut table = Table::new();
    table.load_style(NOTHING);
    let ended = if used.in_use { "not closed in order" } else { "closed in order" };
    let memory_of: Vec<String> =
        part.memory().into_iter().map(|(name, bytes)| format!("{} {}", name.replace('_', " "), size(bytes))).collect();
    let rows: [(&str, String); 11] = [
        ("drive", format!("{} ({}), {}", drive.names.serial, drive.profile_name, size(profile.capacity()))),
        ("subsystem", drive.names.nqn.clone()),
        (
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
        ),
        ("used", format!("{} starts, {} of them after a kill; {ended}", used.starts, used.unclean)),
        (
            "file",
            format!("{} with holes, {}", size(memory.file_len()), if used.syncs { "synced" } else { "not synced" }),
        ),
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
        ("blocks", states.collect::<Vec<_>>().join(", ")),
        (
            "wear",
            format!(
                "{} to {} erases a block, mean {mean:.1}{}",
                stats.erases.0,
                stats.erases.1,
                inspect_age::wear(part.media())
            ),
        ),
        ("written", format!("{} by the host; {} blocks collected", size(stats.host_bytes), stats.gc_blocks)),
        (
            "tables",
            format!(
                "snapshot {} with {chunks} of {all} chunks; since then {changed} blocks have changed and the journal has {} \
                 entries",
                memory.snapshot_epoch(),
                memory.journal_len()
            ),
        ),
    ];
    if view.is_one_of_several() {
        let what = format!("{}: an FTL of kind {} with channels {}", part.name(), part.kind(), view.channels());
        table.add_row(["part".to_owned(), what]);
    }
    table.add_rows(rows.map(|(name, value)| [name.to_owned(), value]));
    if let Some(age) = inspect_age::row(part.media()) {
        table.add_row(["age".to_owned(), age]);
    }
    if let Some(owner) = used.membership.owner() {
        table.add_row([format!("member of {owner}"), membership(used.membership).to_owned()]);
    }
    if let Some(ftl) = part.ox_block() {
        table.add_rows(crate::inspect_ox::rows(ftl).map(|(name, value)| [name.to_owned(), value]));
    }
    format!("{}\n", table.trim_fmt())
}

fn block_table(view: &View<'_>) -> Table {
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
            content_of(view, block).unwrap_or_default().to_owned(),
        ];
        if let Some(health) = inspect_age::of_block(part.media(), block) {
            row.extend([format!("{:.1}", health.hours / 24.0), format!("{:.1}", health.reads)]);
        }
        table.add_row(row);
    }
    table
}

/// What a block holds, where the FTL keeps that apart: a name.
fn content_of(view: &View<'_>, block: BlockId) -> Option<&'static str> {
    if view.part.media().holds_identifier(block) {
        return Some("identifier");
    }
    // The start may have given the block up, or taken it for something else.
    match (content(view.found, block)?, view.part.ox_block()?.content_of(block)) {
        ("data", Some("moved data")) => Some("moved data"),
        (found, _) => Some(found),
    }
}

/// CHANNEL/DIE/PLANE/BLOCK/PAGE.
pub(crate) fn page_address(geometry: &Geometry, page: PageId) -> String {
    format!("{}/{}", place(geometry, geometry.block_of(page)), geometry.page_in_block(page))
}

/// CHANNEL/DIE/PLANE/BLOCK.
fn place(geometry: &Geometry, block: BlockId) -> String {
    let plane = geometry.plane_of(block);
    let (channel, die, inside) = geometry.place(plane);
    format!("{channel}/{die}/{inside}/{}", block.0 - plane.0 * geometry.blocks_per_plane())
}

fn page(view: &View<'_>, page: PageId, json: bool) -> Result<(), Failure> {
    let (geometry, media) = (view.geometry(), view.found);
    let block = geometry.block_of(page);
    let address = page_address(geometry, page);
    let is_programmed = geometry.page_in_block(page) < media.pages_programmed(block);
    let record = media.page_record(page).filter(|_| is_programmed);
    let status = match &record {
        None if is_programmed => "unreadable: it has no record",
        None => "erased",
        Some(record) if record.status == PageStatus::Unreadable => "unreadable: its program failed or was torn",
        Some(_) if media.check_sound(page).is_err() => "programmed; data of some unit is damaged",
        Some(_) => "programmed",
    };
    let holds = view.part.ox_block().and_then(|ftl| ftl.describe(media, page)).filter(|_| is_programmed);
    let units: Vec<_> = record.iter().flat_map(|record| record.units.iter().copied()).collect();
    if json {
        let units: Vec<Value> = units
            .iter()
            .map(
                |unit| json!({ "tag": unit.tag, "number": number(&unit.oob), "bytes": unit.len, "checksum": unit.sum }),
            )
            .collect();
        let mut value = json!({ "schema": 1, "page": page.0, "address": address, "status": status, "units": units });
        if let Some(holds) = holds {
            value["holds"] = holds.into();
        }
        return output::result(&serde_json::to_string_pretty(&value).expect("plain data"));
    }
    let holds = holds.map_or_else(String::new, |holds| format!("; {holds}"));
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(["unit", "logical unit", "number of its write", "bytes", "checksum"]);
    for (index, unit) in units.iter().enumerate() {
        let tag = if unit.tag == u32::MAX { "none".to_owned() } else { unit.tag.to_string() };
        let sum = format!("{:08x}", unit.sum);
        table.add_row([index.to_string(), tag, number(&unit.oob).to_string(), unit.len.to_string(), sum]);
    }
    output::result(&format!("page {} at {address}: {status}{holds}\n{}", page.0, table.trim_fmt()))
}

/// The number of the write in an out-of-band area of the page FTL; other FTLs keep something else there.
fn number(oob: &[u8; 12]) -> u64 {
    u64::from_le_bytes(*oob.first_chunk().expect("it is as long"))
}

fn parse_page(address: &str, geometry: &Geometry) -> Result<PageId, Failure> {
    let counts = geometry.counts();
    let limits = [
        counts.channels,
        counts.dies_per_channel,
        counts.planes_per_die,
        counts.blocks_per_plane,
        counts.pages_per_block,
    ];
    let wrong = |problem: String| Failure::Input(anyhow!("--page {address}: {problem}"));
    let numbers: Option<Vec<u32>> = address.split('/').map(|part| part.parse().ok()).collect();
    match numbers.as_deref() {
        Some(&[page]) => {
            let pages = geometry.units() / geometry.units_per_page();
            if page < pages { Ok(PageId(page)) } else { Err(wrong(format!("pages go from 0 to {}", pages - 1))) }
        }
        Some(parts) if parts.len() == limits.len() => {
            let names = ["channel", "die", "plane", "block", "page"];
            for ((part, limit), name) in parts.iter().zip(limits).zip(names) {
                if *part >= limit {
                    return Err(wrong(format!("{name} {part} is not there; from 0 to {}", limit - 1)));
                }
            }
            Ok(PageId(parts.iter().zip(limits).fold(0, |flat, (part, limit)| flat * limit + part)))
        }
        _ => Err(wrong("give a number, or CHANNEL/DIE/PLANE/BLOCK/PAGE".to_owned())),
    }
}
