//! `[ftl.ox_block]`.

use nandscape_device_controller::BufferMode;
use nandscape_device_ftl_ox::OxBlockConfig;
use nandscape_device_ftl_ox::ox_block::{CheckpointConfig, Layout, OxGcConfig};
use nandscape_device_ftl_ox::registry::{Components, Set};
use nandscape_device_ftl_page::PageFtlConfig;
use nandscape_device_media::geometry::Counts;
use nandscape_device_media::{Geometry, ProgramUnit, Timing};
use nandscape_sim::Span;
use nandscape_sim::units::{Bytes, Ratio};

use super::bounds::{or, within, wrong};
use super::{Resolved, Result};
use crate::keys::{OxBlockKeys, ProfileKeys};
use crate::profile::ProfileError;
use crate::values::{FtlKind, ShareOrBytes, Text};

/// `ftl.over_provisioning` of an OX-Block whose profile does not give it: 30% of the flash (OX 6.1.8).
pub(super) const DEFAULT_OVER_PROVISIONING: Ratio = Ratio(0.4286);
const DEFAULT_INTERVAL: Span = Span::from_ms(10_000);
const SHORTEST_INTERVAL: Span = Span::from_us(1);
const LONGEST_INTERVAL: Span = Span::from_s(3_600);
const DEFAULT_MAP_MEMORY: Bytes = Bytes(16 << 20);
const DEFAULT_THRESHOLD: Ratio = Ratio(0.7);
const DEFAULT_TARGET: Ratio = Ratio(0.9);

/// Full blocks of the log at which a checkpoint is taken, regardless of the interval.
const LOG_BLOCKS: u64 = 2;
/// Blocks of a channel that are collected before the channel takes host data again.
const BATCH: u32 = 4;

/// The layout of the tables, if a profile asks for OX-Block or one of its rivals.
fn layout(keys: &ProfileKeys) -> Option<Layout> {
    match keys.ftl.kind?.0.0 {
        FtlKind::Page | FtlKind::Zone | FtlKind::Lsm | FtlKind::OpenChannel => None,
        FtlKind::OxBlock => Some(Layout::Log),
        FtlKind::Pblk => Some(Layout::PBLK),
        FtlKind::Spdk => Some(Layout::SPDK),
    }
}

/// Whether a profile asks for OX-Block or one of its rivals.
pub(crate) fn is_chosen(keys: &ProfileKeys) -> bool {
    layout(keys).is_some()
}

/// Whether each block ends with a list of its units.
pub(super) fn lists_units(keys: &ProfileKeys) -> bool {
    matches!(layout(keys), Some(Layout::Lines(_)))
}

/// The configuration, if the profile asks for one.
pub(super) fn ox_block(
    keys: &ProfileKeys,
    counts: &Counts,
    timing: &Timing,
    page: &PageFtlConfig,
) -> Result<Option<OxBlockConfig>> {
    let components = components(keys)?;
    let Some(layout) = layout(keys) else { return Ok(None) };
    let kind = keys.ftl.kind.map(|text| text.0.to_string()).unwrap_or_default();
    if timing.features.program_unit == ProgramUnit::WordLine {
        return wrong(
            "timing.program_unit",
            format!("\"word_line\" does not go with ftl.kind = \"{kind}\", which programs page by page"),
        );
    }
    let given = &keys.ftl.ox_block;
    let mode = keys.buffer.mode.map(|text| text.0.0);
    let slots = given.gc_slots.unwrap_or(counts.channels.div_ceil(2));
    let config = OxBlockConfig {
        logical_units: page.logical_units,
        buffer_units: page.buffer_units,
        priority: page.priority,
        firmware: page.firmware,
        transactions: given.transactions.unwrap_or(false),
        keeps_log: mode == Some(BufferMode::Capacitor),
        waits_for_log: mode == Some(BufferMode::Through),
        waits_for_commit: waits_for_commit(given.waits_for_commit, mode)?,
        map_memory: or(&given.map_memory, DEFAULT_MAP_MEMORY).0,
        checkpoint: CheckpointConfig {
            interval: interval(or(&given.checkpoint_interval, DEFAULT_INTERVAL))?,
            log_pages: log_pages(given.checkpoint_log, counts, page.logical_units)?,
        },
        gc: OxGcConfig {
            slots: within("ftl.ox_block.gc_slots", slots.into(), 1, 256)? as u32,
            threshold: threshold(or(&given.gc_threshold, ShareOrBytes::Share(DEFAULT_THRESHOLD)), counts)?,
            target: thousandths("ftl.ox_block.gc_target", or(&given.gc_target, DEFAULT_TARGET))?,
            batch: BATCH,
        },
        layout,
        components,
    };
    let geometry = Geometry::new(*counts).map_err(|error| ProfileError::new("geometry", error.to_string()))?;
    config.check(&geometry).map_err(|problem| ProfileError::new("ftl.kind", format!("\"{kind}\": {problem}")))?;
    Ok(Some(config))
}

/// Whether transactions wait for a durable Commit: not needed if writes wait for their program.
fn waits_for_commit(given: Option<bool>, mode: Option<BufferMode>) -> Result<bool> {
    match given {
        Some(false) if mode != Some(BufferMode::Programmed) => wrong(
            "ftl.ox_block.waits_for_commit",
            "false is for buffer.mode = \"programmed\"; in the other modes buffer.mode alone says what transactions wait for",
        ),
        given => Ok(given.unwrap_or(true)),
    }
}

/// The interval of checkpoints: at most an hour, which stands for never. Zero is no interval.
fn interval(given: Span) -> Result<Span> {
    match (SHORTEST_INTERVAL..=LONGEST_INTERVAL).contains(&given) {
        true => Ok(given),
        false => wrong(
            "ftl.ox_block.checkpoint_interval",
            format!("{given} is out of range; from {SHORTEST_INTERVAL} to {LONGEST_INTERVAL} is valid"),
        ),
    }
}

/// Pages of the log at which a checkpoint is taken. The log may have a quarter of the flash left after the host's data.
fn log_pages(given: Option<Text<Bytes>>, counts: &Counts, units: u32) -> Result<u64> {
    let block = LOG_BLOCKS * u64::from(counts.pages_per_block);
    let Some(Text(Bytes(bytes))) = given else { return Ok(block) };
    let page = u64::from(counts.page_size);
    let spare = flash(counts).saturating_sub(u64::from(units) * u64::from(counts.unit_size));
    let most = (spare / 4).max(block * page);
    match (page..=most).contains(&bytes) {
        true => Ok(bytes / page),
        false => wrong(
            "ftl.ox_block.checkpoint_log",
            format!("{} is out of range; from {} to {} is valid", Bytes(bytes), Bytes(page), Bytes(most)),
        ),
    }
}

/// The components that the profile names.
fn components(keys: &ProfileKeys) -> Result<Components> {
    let mut named = keys.ftl.ox.clone();
    let names: Vec<(Set, Option<String>)> = Set::ALL.iter().map(|set| (*set, named.of(*set).take())).collect();
    let name = |set| names.iter().find(|(other, _)| *other == set).and_then(|(_, name)| name.as_deref());
    Components::named(name)
        .map_err(|unknown| ProfileError::new(format!("ftl.ox.{}", unknown.set.key()), format!("{unknown}")))
}

/// `gc_threshold` in thousandths of the flash.
fn threshold(given: ShareOrBytes, counts: &Counts) -> Result<u32> {
    const KEY: &str = "ftl.ox_block.gc_threshold";
    let flash = flash(counts);
    match given {
        ShareOrBytes::Share(share) => thousandths(KEY, share),
        ShareOrBytes::Bytes(bytes) if bytes.0 < flash => thousandths(KEY, Ratio(bytes.0 as f64 / flash as f64)),
        ShareOrBytes::Bytes(bytes) => {
            wrong(KEY, format!("{bytes} is out of range; below {}, which is all of the flash, is valid", Bytes(flash)))
        }
    }
}

/// Bytes of all flash.
fn flash(counts: &Counts) -> u64 {
    let planes = u64::from(counts.channels) * u64::from(counts.dies_per_channel) * u64::from(counts.planes_per_die);
    planes * u64::from(counts.blocks_per_plane) * u64::from(counts.pages_per_block) * u64::from(counts.page_size)
}

fn thousandths(key: &str, share: Ratio) -> Result<u32> {
    if !(0.0..1.0).contains(&share.0) {
        return wrong(
            key,
            format!("{share} is out of range; from 0 to below 1, or from \"0%\" to below \"100%\", is valid"),
        );
    }
    // The whole flash is not a valid share.
    Ok((share.0 * 1_000.0).round().min(999.0) as u32)
}

impl Resolved {
    /// Checks that a buffer mode without a wait for the log has a log.
    pub(super) fn check_buffer_mode(&self) -> Result<()> {
        let has_log = |drive: &Resolved| drive.ox_block.is_some_and(|config| config.layout == Layout::Log);
        let is_right = has_log(self) || self.parts.iter().any(|part| has_log(&part.drive));
        match self.controller.buffer == BufferMode::Programmed && !is_right {
            false => Ok(()),
            true => wrong(
                "buffer.mode",
                "\"programmed\" is for ftl.kind = \"ox_block\", which has a log; without one, \"through\" is the same",
            ),
        }
    }
}

/// Writes the decided values into the keys.
pub(super) fn fill_in(keys: &mut ProfileKeys, config: &OxBlockConfig, page_size: u64) {
    let ratio = |thousandths: u32| Ratio(f64::from(thousandths) / 1_000.0);
    keys.ftl.ox_block = OxBlockKeys {
        transactions: Some(config.transactions),
        waits_for_commit: Some(config.waits_for_commit),
        checkpoint_interval: Some(Text(config.checkpoint.interval)),
        checkpoint_log: Some(Text(Bytes(config.checkpoint.log_pages * page_size))),
        map_memory: Some(Text(Bytes(config.map_memory))),
        gc_slots: Some(config.gc.slots),
        gc_threshold: Some(Text(ShareOrBytes::Share(ratio(config.gc.threshold)))),
        gc_target: Some(Text(ratio(config.gc.target))),
    };
    for set in Set::ALL {
        *keys.ftl.ox.of(*set) = Some(config.components.name(*set).to_owned());
    }
}
