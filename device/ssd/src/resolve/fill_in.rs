//! Writes derived values and defaults into the keys.

use nandscape_device_ftl_core::{Interface, Isolation, RangesOwn};
use nandscape_device_ftl_page::{GcConfig, PageFtlConfig, WearConfig};
use nandscape_sim::Span;
use nandscape_sim::units::Bytes;

use super::Resolved;
use super::flash::{DEFAULT_FACTORY_BAD, DEFAULT_OVER_PROVISIONING};
use super::ftl::DEFAULT_PREEMPT_FLOOR;
use super::windows::{DEFAULT_COLLECTIONS, DEFAULT_VALID};
use crate::policies::{DEFAULT_ADMISSION, DEFAULT_ALLOCATION, DEFAULT_READ, DEFAULT_VICTIM};
use crate::values::{Choice, FtlKind, Tables, Text};

impl Resolved {
    pub(super) fn fill_in(&mut self) {
        self.keys.base = None;
        self.keys.capacity = Some(Text(Bytes(self.capacity())));
        self.fill_in_flash();
        self.fill_in_controller();
        self.fill_in_ftl();
        if let Some(aging) = &self.aging {
            super::aging::fill_in(&mut self.keys.wear, aging);
        }
        if let Some(config) = &self.ox_block {
            super::ox_block::fill_in(&mut self.keys, config, self.geometry.page_size.into());
        }
        if let Some(config) = &self.open_channel {
            super::open_channel::fill_in(&mut self.keys, config);
        }
        if let Some(config) = &self.zone {
            super::zone::fill_in(&mut self.keys, config, self.geometry.unit_size.into());
        }
        if let Some(config) = &self.lsm {
            super::lsm::fill_in(&mut self.keys, config, self.geometry.unit_size.into());
        }
    }

    fn fill_in_flash(&mut self) {
        let keys = &mut self.keys;
        keys.geometry.channels = Some(self.sizing.channels);
        keys.geometry.dies_per_channel = Some(self.sizing.dies_per_channel);
        keys.geometry.pages_per_block = Some(self.sizing.pages_per_block);
        keys.geometry.blocks_per_plane = Some(self.sizing.blocks_per_plane);
        keys.geometry.factory_bad_blocks.get_or_insert(Text(DEFAULT_FACTORY_BAD));
        keys.timing.rated_erases = Some(self.controller.rated_erases);
        keys.timing.partial_transfer = Some(self.timing.partial_transfer);
        super::features::fill_in(&mut keys.timing, &self.timing.features);
    }

    fn fill_in_controller(&mut self) {
        let (keys, decided) = (&mut self.keys, &self.controller);
        keys.lba_size = Some(Text(Bytes(decided.lba_bytes.into())));
        keys.link.bandwidth = Some(Text(decided.link.bandwidth));
        keys.link.duplex = Some(Text(Choice(decided.link.duplex)));
        keys.link.latency = Some(Text(decided.link.latency));
        let keys = &mut keys.controller;
        keys.firmware_time = Some(Text(decided.firmware_time));
        keys.command_slots = Some(decided.command_slots);
        keys.queue_pairs = Some(decided.max_queue_pairs.into());
        keys.queue_entries = Some(decided.max_queue_entries);
        keys.max_transfer = Some(Text(Bytes(decided.max_transfer.into())));
        keys.priority = Some(Text(Choice(decided.priority)));
        keys.predictable_latency = Some(decided.predictable_latency);
        super::controller::fill_in_processors(&mut keys.processors, decided.processors);
    }

    fn fill_in_ftl(&mut self) {
        let PageFtlConfig { gc, wear, firmware, placement, rain, .. } = self.ftl;
        let keys = &mut self.keys.ftl;
        keys.kind.get_or_insert(Text(Choice(FtlKind::Page)));
        let default = match self.ox_block {
            Some(_) => super::ox_block::DEFAULT_OVER_PROVISIONING,
            None => DEFAULT_OVER_PROVISIONING,
        };
        keys.over_provisioning.get_or_insert(Text(default));
        keys.mapping_unit = Some(Text(Bytes(self.geometry.unit_size.into())));
        keys.allocation.get_or_insert(Text(Choice(DEFAULT_ALLOCATION)));
        keys.deallocate_time = Some(Text(firmware.deallocate_unit));
        keys.restart_time = Some(Text(firmware.check_block));
        keys.tables.get_or_insert(Text(Choice(Tables::Saved)));
        keys.gc.victim.get_or_insert(Text(Choice(DEFAULT_VICTIM)));
        keys.gc.admission.get_or_insert(Text(Choice(DEFAULT_ADMISSION)));
        let GcConfig { scheme, owner, copyback, copyback_ecc, batch, free_blocks, preempt_above, .. } = gc;
        keys.gc.scheme = Some(Text(Choice(scheme)));
        keys.gc.owner = Some(Text(Choice(owner)));
        keys.gc.copyback = Some(copyback);
        keys.gc.copyback_ecc = Some(copyback_ecc);
        let is_asked = keys.gc.preempt_on_request.unwrap_or(false);
        keys.gc.preempt = Some(preempt_above.is_some() && !is_asked);
        keys.gc.preempt_on_request = Some(is_asked);
        keys.read.policy.get_or_insert(Text(Choice(DEFAULT_READ)));
        keys.read.fail_above.get_or_insert(Text(Span::ZERO));
        keys.gc.preempt_floor.get_or_insert(DEFAULT_PREEMPT_FLOOR);
        keys.gc.batch = Some(batch.unwrap_or(0));
        keys.gc.free_blocks = Some(free_blocks);
        let WearConfig { dynamic, static_threshold } = wear;
        keys.wear.dynamic = Some(dynamic);
        keys.wear.static_threshold = Some(static_threshold);
        super::rain::fill_in(keys, rain);
        let isolation = Some(Text(Choice(placement.isolation)));
        let (handles, streams) = match placement.interface {
            Interface::Handles => (placement.handles, 0),
            Interface::Streams => (0, placement.handles - 1),
            Interface::Ranges => (0, 0),
        };
        keys.windows.ranges.get_or_insert(0);
        keys.windows.ranges_own.get_or_insert(Text(Choice(RangesOwn::Blocks)));
        keys.windows.valid.get_or_insert(Text(DEFAULT_VALID));
        keys.windows.collections.get_or_insert(DEFAULT_COLLECTIONS);
        keys.windows.free_blocks = Some(gc.free_in_window);
        keys.windows.free_blocks_long = Some(gc.free_in_long_window);
        keys.fdp.handles = Some(handles.into());
        keys.streams.count = Some(streams.into());
        match placement.interface {
            Interface::Handles => keys.fdp.isolation = isolation,
            Interface::Streams => keys.streams.isolation = isolation,
            Interface::Ranges => {}
        }
        keys.fdp.isolation.get_or_insert(Text(Choice(Isolation::Initial)));
        keys.streams.isolation.get_or_insert(Text(Choice(Isolation::Initial)));
    }
}
