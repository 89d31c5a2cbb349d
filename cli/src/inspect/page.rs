//! A page of a drive, and addresses of pages and blocks.

use anyhow::anyhow;
use comfy_table::Table;
use comfy_table::presets::NOTHING;
use nandscape_device_media::durable::{PageStatus, UnitRecord};
use nandscape_device_media::{BlockId, Geometry, PageId};
use serde_json::{Value, json};

use super::drive::View;
use crate::failure::Failure;
use crate::output;

/// CHANNEL/DIE/PLANE/BLOCK/PAGE.
pub(super) fn page_address(geometry: &Geometry, page: PageId) -> String {
    format!("{}/{}", place(geometry, geometry.block_of(page)), geometry.page_in_block(page))
}

/// CHANNEL/DIE/PLANE/BLOCK.
pub(super) fn place(geometry: &Geometry, block: BlockId) -> String {
    let plane = geometry.plane_of(block);
    let (channel, die, inside) = geometry.place(plane);
    format!("{channel}/{die}/{inside}/{}", block.0 - plane.0 * geometry.blocks_per_plane())
}

/// Shows a page as it was before the start.
pub(super) fn show(view: &View<'_>, page: PageId, json: bool) -> Result<(), Failure> {
    let (geometry, media) = (view.geometry(), view.found);
    let block = geometry.block_of(page);
    let address = page_address(geometry, page);
    let is_programmed = geometry.page_in_block(page) < media.pages_programmed(block);
    let record = media.page_record(page).filter(|_| is_programmed);
    let status = match (&record, view.inspected.of_file()) {
        _ if !is_programmed => "erased",
        (None, None) if media.is_page_unreadable(page) => "unreadable: its program failed or was torn",
        (None, None) => "programmed",
        (None, Some(_)) => "unreadable: it has no record",
        (Some(record), _) if record.status == PageStatus::Unreadable => "unreadable: its program failed or was torn",
        (Some(_), _) if media.check_sound(page).is_err() => "programmed; data of some unit is damaged",
        (Some(_), _) => "programmed",
    };
    let holds = view.part.ox_block().and_then(|ftl| ftl.describe(media, page)).filter(|_| is_programmed);
    let units: Vec<Unit> = match (&record, view.inspected.of_file()) {
        (Some(record), _) => record.units.iter().map(Unit::of_record).collect(),
        (None, None) if is_programmed => {
            let units = (0..geometry.units_per_page()).map(|number| geometry.unit_at(page, number));
            units.map(|unit| Unit { tag: media.tag(unit), written: None }).collect()
        }
        (None, _) => Vec::new(),
    };
    if json {
        let units: Vec<Value> = units.iter().map(Unit::as_json).collect();
        let mut value = json!({ "schema": 1, "page": page.0, "address": address, "status": status, "units": units });
        if let Some(holds) = holds {
            value["holds"] = holds.into();
        }
        return output::result(&serde_json::to_string_pretty(&value).expect("plain data"));
    }
    let holds = holds.map_or_else(String::new, |holds| format!("; {holds}"));
    let mut table = Table::new();
    let columns = ["unit", "logical unit", "number of its write", "bytes", "checksum"];
    let shown = if record.is_some() || units.is_empty() { columns.len() } else { 2 };
    table.load_style(NOTHING).set_header(&columns[..shown]);
    for (index, unit) in units.iter().enumerate() {
        table.add_row([vec![index.to_string()], unit.cells()].concat());
    }
    output::result(&format!("page {} at {address}: {status}{holds}\n{}", page.0, table.trim_fmt()))
}

/// A unit of a page.
struct Unit {
    tag: u32,
    /// The number of its write, its bytes and their checksum, which only the file of a drive has.
    written: Option<(u64, u32, u32)>,
}

impl Unit {
    fn of_record(unit: &UnitRecord) -> Unit {
        Unit { tag: unit.tag, written: Some((number(&unit.oob), unit.len, unit.sum)) }
    }

    fn as_json(&self) -> Value {
        match self.written {
            Some((number, len, sum)) => json!({ "tag": self.tag, "number": number, "bytes": len, "checksum": sum }),
            None => json!({ "tag": self.tag }),
        }
    }

    fn cells(&self) -> Vec<String> {
        let tag = if self.tag == u32::MAX { "none".to_owned() } else { self.tag.to_string() };
        let written =
            self.written.map(|(number, len, sum)| [number.to_string(), len.to_string(), format!("{sum:08x}")]);
        std::iter::once(tag).chain(written.into_iter().flatten()).collect()
    }
}

/// The number of the write in an out-of-band area of the page FTL; other FTLs keep something else there.
fn number(oob: &[u8; 12]) -> u64 {
    u64::from_le_bytes(*oob.first_chunk().expect("it is as long"))
}

/// The page of an address.
pub(super) fn parse(address: &str, geometry: &Geometry) -> Result<PageId, Failure> {
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
