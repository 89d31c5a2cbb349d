//! `[ftl.open_channel]`.

use nandscape_device_controller::{BufferMode, ControllerConfig};
use nandscape_device_ftl_page::PageFtlConfig;
use nandscape_device_ftl_zoned::OpenChannelConfig;
use nandscape_device_ftl_zoned::open_channel::{Layout, Resets};
use nandscape_device_media::{Geometry, Timing};
use nandscape_sim::units::Bytes;

use super::bounds::{or, within, wrong};
use super::{Resolved, Result};
use crate::keys::ProfileKeys;
use crate::values::{Choice, FtlKind, Tables, Text};

/// Addresses that one vector command may name (OC 4).
const MOST_ADDRESSES: u32 = 64;

/// Whether a profile asks for an open-channel drive.
pub(crate) fn is_chosen(keys: &ProfileKeys) -> bool {
    keys.ftl.kind.is_some_and(|kind| kind.0.0 == FtlKind::OpenChannel)
}

/// The configuration, if the profile asks for one.
pub(super) fn open_channel(
    keys: &ProfileKeys,
    (geometry, timing): (&Geometry, &Timing),
    page: &PageFtlConfig,
    controller: &ControllerConfig,
) -> Result<Option<OpenChannelConfig>> {
    if !is_chosen(keys) {
        return Ok(None);
    }
    check_drive(keys)?;
    let (layout, unit) = (Layout::new(geometry, timing), u64::from(geometry.unit_size()));
    if layout.addresses() > u64::from(u32::MAX) {
        return wrong("geometry", "addresses of an open-channel drive reach 16 TiB, with what lies between its chunks");
    }
    if layout.strip_units() > MOST_ADDRESSES {
        let (strip, page) = (layout.strip_units(), Bytes(geometry.page_size().into()));
        return wrong(
            "geometry",
            format!(
                "one program writes {strip} blocks, pages of {page} on {} planes, {} of each: a vector command names at most \
                 {MOST_ADDRESSES}, so the host could not write; smaller pages, fewer planes that are programmed together, or \
                 timing.program_unit = \"page\" are valid",
                layout.planes, layout.word_line,
            ),
        );
    }
    let strip = u64::from(layout.strip_units()) * unit;
    if u64::from(controller.max_transfer) < strip {
        return wrong(
            "controller.max_transfer",
            format!("{} is less than one program writes, {}", Bytes(controller.max_transfer.into()), Bytes(strip)),
        );
    }
    if u64::from(page.buffer_units) * unit < controller.max_transfer.into() {
        return wrong(
            "buffer.size",
            format!("is less than controller.max_transfer, {}", Bytes(controller.max_transfer.into())),
        );
    }
    let given = &keys.ftl.open_channel;
    let mw_cunits = given.mw_cunits.unwrap_or(0);
    if !mw_cunits.is_multiple_of(layout.strip_units()) || mw_cunits > layout.chunk_units() {
        return wrong(
            "ftl.open_channel.mw_cunits",
            format!("{mw_cunits} is no multiple of {} up to {}", layout.strip_units(), layout.chunk_units()),
        );
    }
    Ok(Some(OpenChannelConfig {
        mw_cunits,
        resets: Resets { early: given.early_reset.unwrap_or(true), multiple: given.multiple_resets.unwrap_or(false) },
        rated_erases: controller.rated_erases,
        wear_threshold: within("ftl.open_channel.wear_threshold", given.wear_threshold.unwrap_or(0).into(), 0, 255)?
            as u8,
        buffer_units: page.buffer_units,
        priority: page.priority,
        check_block: page.firmware.check_block,
    }))
}

/// Rejects keys that an open-channel drive cannot have.
fn check_drive(keys: &ProfileKeys) -> Result<()> {
    let modes = [BufferMode::Through, BufferMode::Register];
    if keys.buffer.mode.is_some_and(|mode| !modes.contains(&mode.0.0)) {
        return wrong("buffer.mode", "ftl.kind = \"open_channel\" needs \"through\" or \"register\"");
    }
    let (lba, unit) = (or(&keys.lba_size, Bytes(512)), or(&keys.ftl.mapping_unit, Bytes(4 << 10)));
    if lba != unit {
        return wrong(
            "lba_size",
            format!("{lba} is not ftl.mapping_unit, {unit}; with ftl.kind = \"open_channel\" both are \"4KiB\""),
        );
    }
    match keys.ftl.tables {
        Some(Text(Choice(Tables::Rebuilt))) => {
            wrong("ftl.tables", "\"rebuilt\" does not go with ftl.kind = \"open_channel\"; \"saved\" is valid")
        }
        _ => Ok(()),
    }
}

impl Resolved {
    /// The configuration of an open-channel drive, if it is one.
    pub fn open_channel(&self) -> Option<OpenChannelConfig> {
        self.open_channel
    }

    /// Bytes of the namespace of an open-channel drive.
    pub(super) fn addressed_bytes(&self) -> Option<u64> {
        self.open_channel?;
        Some(Layout::new(&self.geometry(), &self.timing).addresses() * u64::from(self.geometry.unit_size))
    }
}

/// Writes the decided values into the keys.
pub(super) fn fill_in(keys: &mut ProfileKeys, config: &OpenChannelConfig) {
    let keys = &mut keys.ftl.open_channel;
    keys.mw_cunits = Some(config.mw_cunits);
    (keys.early_reset, keys.multiple_resets) = (Some(config.resets.early), Some(config.resets.multiple));
    keys.wear_threshold = Some(config.wear_threshold.into());
}
