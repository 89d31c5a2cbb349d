//! The log of an OX-Block, and a logical block, in `nandscape inspect`.

use std::collections::BTreeMap;

use anyhow::anyhow;
use comfy_table::Table;
use comfy_table::presets::NOTHING;
use nandscape_device_ftl_core::Located;
use nandscape_device_ftl_ox::ox_block::{ShownLogPage, log_pages};
use serde_json::{Value, json};

use super::drive::View;
use super::page::page_address;
use crate::failure::Failure;
use crate::output;

/// The pages of the log in the file, those that the start has read and older ones.
pub(super) fn log(view: &View<'_>, as_json: bool) -> Result<(), Failure> {
    if view.part.ox_block().is_none() {
        let kind = view.part.kind();
        return Err(Failure::Input(anyhow!("--log: an FTL of kind {kind} has no log; that of kind ox_block has one")));
    }
    let pages = log_pages(view.found);
    let mut all: BTreeMap<&str, u64> = BTreeMap::new();
    pages.iter().flat_map(|page| &page.kinds).for_each(|(kind, count)| *all.entry(kind).or_default() += count);
    if as_json {
        let of = |page: &ShownLogPage| {
            json!({
                "page": page.page.0, "address": page_address(view.geometry(), page.page), "number": page.number,
                "epoch": page.epoch, "first_record": page.records.0, "last_record": page.records.1, "kinds": page.kinds,
            })
        };
        let pages: Vec<Value> = pages.iter().map(of).collect();
        let value = json!({ "schema": 1, "pages": pages, "records": all });
        return output::result(&serde_json::to_string_pretty(&value).expect("plain data"));
    }
    let mut table = Table::new();
    table.load_style(NOTHING).set_header([
        "page",
        "address",
        "number",
        "epoch",
        "first record",
        "last record",
        "kinds",
    ]);
    for page in &pages {
        table.add_row([
            page.page.0.to_string(),
            page_address(view.geometry(), page.page),
            page.number.to_string(),
            page.epoch.to_string(),
            page.records.0.to_string(),
            page.records.1.to_string(),
            listed(&page.kinds),
        ]);
    }
    output::result(&format!("{} pages of the log: {}\n{}", pages.len(), listed(&all), table.trim_fmt()))
}

fn listed(kinds: &BTreeMap<&str, u64>) -> String {
    let each: Vec<String> = kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    if each.is_empty() { "no records".to_owned() } else { each.join(", ") }
}

/// Where a logical block is.
pub(super) fn lba(view: &View<'_>, lba: u64, as_json: bool) -> Result<(), Failure> {
    let profile = &view.inspected.profile;
    let part = profile.parts().iter().find(|part| part.name == view.part.name());
    let (size, capacity) = (u64::from(profile.lba_bytes()), part.map_or(profile, |part| &part.drive).capacity());
    if lba >= capacity / size {
        let most = capacity / size - 1;
        return Err(Failure::Input(anyhow!("--lba {lba}: blocks of {size} bytes go from 0 to {most}")));
    }
    let (geometry, unit_size) = (view.geometry(), u64::from(view.geometry().unit_size()));
    let lpn = (lba * size / unit_size) as u32;
    let Located { flash, is_buffered, lost_sectors } = view.part.locate(lpn);
    let place = flash.map(|unit| (geometry.page_of(unit), unit.0 % geometry.units_per_page()));
    if as_json {
        let place =
            place.map(|(page, unit)| json!({ "page": page.0, "address": page_address(geometry, page), "unit": unit }));
        let value = json!({
            "schema": 1, "lba": lba, "logical_unit": lpn, "on_flash": place, "in_buffer": is_buffered,
            "lost_sectors": lost_sectors,
        });
        return output::result(&serde_json::to_string_pretty(&value).expect("plain data"));
    }
    let on_flash =
        place.map(|(page, unit)| format!("page {} at {}, unit {unit}", page.0, page_address(geometry, page)));
    let place = match (is_buffered, on_flash) {
        (true, None) => "in the write buffer".to_owned(),
        (true, Some(older)) => format!("in the write buffer; older data in {older}"),
        (false, Some(place)) => place,
        (false, None) => "not written, or deallocated".to_owned(),
    };
    let lost = if lost_sectors == 0 { String::new() } else { format!("; {lost_sectors} of its sectors unreadable") };
    output::result(&format!("block {lba} is in logical unit {lpn}: {place}{lost}"))
}
