//! `[controller]` and `[link]`.

use nandscape_device_controller::{ControllerConfig, Duplex, LinkConfig};
use nandscape_device_media::Priority;
use nandscape_sim::Span;
use nandscape_sim::units::{Bytes, Rate};

use super::Result;
use super::bounds::{need, not_too_long, not_too_slow, or, power_of_two, within, wrong};
use crate::keys::{ProfileKeys, TimingKeys};

pub(super) fn controller(keys: &ProfileKeys) -> Result<ControllerConfig> {
    let given = &keys.controller;
    let max_transfer = or(&given.max_transfer, Bytes(2 << 20));
    let lba_bytes = match or(&keys.lba_size, Bytes(512)).0 {
        size @ (512 | 4_096) => size as u32,
        other => return wrong("lba_size", format!("{other} is not valid; 512 and 4096 are")),
    };
    Ok(ControllerConfig {
        firmware_time: not_too_long("controller.firmware_time", or(&given.firmware_time, Span::ZERO))?,
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
        priority: given.priority.map_or(Priority::Fifo, |text| text.0.0),
        rated_erases: rated_erases(&keys.timing)?,
        windows: None,
        predictable_latency: given.predictable_latency.unwrap_or(false),
    })
}

fn rated_erases(keys: &TimingKeys) -> Result<u32> {
    let by_cell = need("timing.cell", &keys.cell)?.0.0.rated_erases();
    Ok(within("timing.rated_erases", keys.rated_erases.unwrap_or(by_cell).into(), 0, 1_000_000_000)? as u32)
}

fn link_packet(packet: Bytes) -> Result<u32> {
    power_of_two("link.packet", packet, 128, 1 << 20)
}
