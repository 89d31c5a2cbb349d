//! The invariants: each block of a zone belongs to it alone, and holds the units of the layout.

use nandscape_device_media::{BlockId, Media};

use super::body::Found;
use super::state::State;
use super::table::ZoneState;
use super::write::NO_LPN;
use super::{Use, ZoneConfig};

impl State {
    /// Checks tables and flash against each other.
    pub(super) fn check(&self, config: &ZoneConfig, media: &Media) -> Result<(), String> {
        self.check_counts(config)?;
        let mut owner = vec![None; self.geometry.blocks() as usize];
        for (body, zone) in self.bodies.iter().zip(0u32..) {
            for block in body.blocks() {
                if let Some(other) = owner[block.0 as usize].replace(zone) {
                    return Err(format!("block {} is in zone {other} and in zone {zone}", block.0));
                }
            }
            self.check_zone(zone, config, media)?;
        }
        for (owner, block) in owner.iter().zip(0..) {
            let used = self.blocks.get(BlockId(block)).used;
            if owner.is_some() != (used == Use::InZone) {
                return Err(format!("block {block} is {used:?}, and its zone is {owner:?}"));
            }
            if used == Use::Free && media.pages_programmed(BlockId(block)) > 0 {
                return Err(format!("block {block} is free and has been written"));
            }
        }
        Ok(())
    }

    fn check_counts(&self, config: &ZoneConfig) -> Result<(), String> {
        let count = |is: fn(ZoneState) -> bool| self.table.zones().iter().filter(|zone| is(zone.state)).count() as u32;
        let counted = (count(ZoneState::is_active), count(ZoneState::is_open));
        let with_zrwa = self.table.zones().iter().filter(|zone| zone.has_zrwa).count() as u32;
        if with_zrwa != self.table.with_zrwa() || with_zrwa > config.zrwa.zones {
            return Err(format!("{with_zrwa} zones have a random write area, {} were counted", self.table.with_zrwa()));
        }
        match counted == self.table.counts() && counted.0 <= config.max_active && counted.1 <= config.max_open {
            true => Ok(()),
            false => Err(format!("{counted:?} zones are active and open, {:?} were counted", self.table.counts())),
        }
    }

    fn check_zone(&self, zone: u32, config: &ZoneConfig, media: &Media) -> Result<(), String> {
        let (of_zone, body) = (self.table.zone(zone), &self.bodies[zone as usize]);
        if of_zone.state == ZoneState::Empty && (of_zone.written > 0 || body.begun > 0 || !body.is_empty()) {
            return Err(format!("zone {zone} is empty and has data"));
        }
        if of_zone.has_zrwa && body.end(&self.layout) > of_zone.written + config.zrwa.size {
            return Err(format!("zone {zone} has data beyond its random write area"));
        }
        // The first and the last unit of each strip show whether the strip is where it belongs.
        let strip = self.layout.strip_units() as usize;
        for unit in (0..of_zone.written).step_by(strip).chain((strip as u32 - 1..of_zone.written).step_by(strip)) {
            if let Found::Flash(page, number) = self.find(zone, unit) {
                let (tag, expected) = (media.tag(self.geometry.unit_at(page, number)), zone * config.size + unit);
                if tag != expected && tag != NO_LPN {
                    return Err(format!("unit {unit} of zone {zone} is {expected}, and the flash has {tag}"));
                }
            }
        }
        Ok(())
    }
}
