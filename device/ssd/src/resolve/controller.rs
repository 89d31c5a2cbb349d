//! `[controller]` and `[link]`.

use nandscape_device_controller::arbiter::ArbiterKind;
use nandscape_device_controller::{ControllerConfig, Duplex, LinkConfig, ProcessorsConfig};
use nandscape_device_media::Priority;
use nandscape_drive::Assignments;
use nandscape_sim::Span;
use nandscape_sim::units::{Bytes, Rate};

use super::Result;
use super::bounds::{need, not_too_long, not_too_slow, or, power_of_two, within, wrong};
use crate::keys::{ProcessorKeys, ProfileKeys, TimingKeys};
use crate::values::Text;

pub(super) fn controller(keys: &ProfileKeys) -> Result<ControllerConfig> {
    let given = &keys.controller;
    let max_transfer = or(&given.max_transfer, Bytes(2 << 20));
    let lba_bytes = match or(&keys.lba_size, Bytes(512)).0 {
        size @ (512 | 4_096) => size as u32,
        other => return wrong("lba_size", format!("{other} is not valid; 512 and 4096 are")),
    };
    Ok(ControllerConfig {
        firmware_time: not_too_long("controller.firmware_time", or(&given.firmware_time, Span::ZERO))?,
        processors: processors(&given.processors)?,
        command_slots: within("controller.command_slots", given.command_slots.unwrap_or(1_024).into(), 1, 1 << 16)?
            as u32,
        max_queue_pairs: within("controller.queue_pairs", given.queue_pairs.unwrap_or(64).into(), 1, 65_534)? as u16,
        max_queue_entries: within("controller.queue_entries", given.queue_entries.unwrap_or(4_096).into(), 2, 1 << 16)?
            as u32,
        // MDTS counts in powers of two of 4 KiB, and its 0 is no limit.
        max_transfer: power_of_two("controller.max_transfer", max_transfer, 8 << 10, 32 << 20)?,
        lba_bytes,
        buffer: need("buffer.mode", &keys.buffer.mode)?.0.0,
        link: LinkConfig {
            bandwidth: not_too_slow("link.bandwidth", or(&keys.link.bandwidth, Rate::UNLIMITED))?,
            duplex: keys.link.duplex.map_or(Duplex::Full, |text| text.0.0),
            packet: keys.link.packet.map(|packet| link_packet(packet.0)).transpose()?,
            latency: not_too_long("link.latency", or(&keys.link.latency, Span::ZERO))?,
        },
        arbiter: given.arbiter.map_or(ArbiterKind::RoundRobin, |text| text.0.0),
        weights: given.weights.map_or([1; 3], |text| text.0.0),
        assign: given.assign.as_ref().map_or_else(Assignments::default, |text| text.0.clone()),
        priority: given.priority.map_or(Priority::Fifo, |text| text.0.0),
        rated_erases: rated_erases(&keys.timing)?,
        windows: None,
        predictable_latency: given.predictable_latency.unwrap_or(false),
        notices: given.precompletion.window.map(|window| notice_window(window.0)).transpose()?,
        multipath: given.multipath.unwrap_or(false),
    })
}

/// Times of a core of the Dragon Fire Card; the documentation of the keys names the sources.
const COMMAND: Span = Span::from_ns(22_200);
const UNIT: Span = Span::from_ns(100);
const KIB: Span = Span::from_ns(2_800);
const PAGE: Span = Span::from_ns(100);
const FLASH: Span = Span::from_ns(22_200);
const FLASH_KIB: Span = Span::from_ns(250);
/// Maximum of processors.
const MOST_PROCESSORS: u64 = 1_024;

fn processors(keys: &ProcessorKeys) -> Result<Option<ProcessorsConfig>> {
    let time = |name: &str, given: &Option<Text<Span>>, default| {
        not_too_long(&format!("controller.processors.{name}"), or(given, default))
    };
    let config = ProcessorsConfig {
        count: within("controller.processors.count", keys.count.unwrap_or(1).into(), 1, MOST_PROCESSORS)? as u32,
        command: time("command_time", &keys.command_time, COMMAND)?,
        unit: time("unit_time", &keys.unit_time, UNIT)?,
        kib: time("kib_time", &keys.kib_time, KIB)?,
        page: time("page_time", &keys.page_time, PAGE)?,
        flash: time("flash_time", &keys.flash_time, FLASH)?,
        flash_kib: time("flash_kib_time", &keys.flash_kib_time, FLASH_KIB)?,
    };
    match keys.count {
        Some(_) => Ok(Some(config)),
        None if *keys == ProcessorKeys::default() => Ok(None),
        None => wrong("controller.processors.count", "is missing; times of the work of processors need their number"),
    }
}

/// Writes the decided values into the keys.
pub(super) fn fill_in_processors(keys: &mut ProcessorKeys, config: Option<ProcessorsConfig>) {
    let Some(ProcessorsConfig { count, command, unit, kib, page, flash, flash_kib }) = config else { return };
    *keys = ProcessorKeys {
        count: Some(count),
        command_time: Some(Text(command)),
        unit_time: Some(Text(unit)),
        kib_time: Some(Text(kib)),
        page_time: Some(Text(page)),
        flash_time: Some(Text(flash)),
        flash_kib_time: Some(Text(flash_kib)),
    };
}

fn rated_erases(keys: &TimingKeys) -> Result<u32> {
    let by_cell = need("timing.cell", &keys.cell)?.0.0.rated_erases();
    Ok(within("timing.rated_erases", keys.rated_erases.unwrap_or(by_cell).into(), 0, 1_000_000_000)? as u32)
}

fn notice_window(window: Span) -> Result<Span> {
    within("controller.precompletion.window", window.ns(), 1, 1_000_000_000)?;
    Ok(window)
}

fn link_packet(packet: Bytes) -> Result<u32> {
    power_of_two("link.packet", packet, 128, 1 << 20)
}
