//! The flash and the map of a drive's FTL, for a host that runs the FTL itself, as LightNVM's does.
//!
//! Left out: drives of several FTLs, and namespaces other than the first.

use std::rc::Rc;

use nandscape_device_media::{Registers, UnitId};
use nandscape_drive::flash::{FlashMap, FlashPage, FlashSheet};

use crate::ssd::Ssd;

/// The placement of a drive's data by its FTL.
pub struct ManagedFlash {
    ssd: Rc<Ssd>,
    lba_bytes: u64,
    unit_bytes: u64,
}

impl ManagedFlash {
    /// For a drive with one FTL that maps units; `None` for others.
    pub fn of(ssd: &Rc<Ssd>) -> Option<ManagedFlash> {
        let info = ssd.controller().info();
        let [part] = ssd.parts() else { return None };
        let has_map = part.open_channel().is_none() && part.zones().is_none() && part.runs().is_none();
        has_map.then(|| ManagedFlash {
            ssd: ssd.clone(),
            lba_bytes: info.lba_bytes.into(),
            unit_bytes: info.unit_bytes.into(),
        })
    }

    /// The data sheet of the flash.
    pub fn sheet(&self) -> FlashSheet {
        let media = self.ssd.media();
        let (geometry, timing) = (media.geometry(), media.timing());
        let pattern = timing.cell.pattern(geometry.pages_per_block());
        FlashSheet {
            chips: media.chips(),
            channels: geometry.channels(),
            overlaps: timing.registers == Registers::Double,
            read: pattern.iter().map(|kind| timing.read[usize::from(*kind)]).collect(),
            program: pattern.iter().map(|kind| timing.program[usize::from(*kind)]).collect(),
            erase: timing.erase,
            transfer: timing.bus.time_for(4_096),
            command: timing.features.command,
        }
    }

    fn flash(&self, lpn: u64) -> Option<UnitId> {
        let located = self.ssd.parts()[0].locate(u32::try_from(lpn).ok()?);
        if located.is_buffered { None } else { located.flash }
    }
}

impl FlashMap for ManagedFlash {
    fn pages(&self, slba: u64, blocks: u32, each: &mut dyn FnMut(FlashPage)) {
        let info = self.ssd.controller().info();
        let Some(last) = slba.checked_add(u64::from(blocks)).filter(|end| *end <= info.blocks) else { return };
        let (from, to) = (slba * self.lba_bytes, last * self.lba_bytes);
        let media = self.ssd.media();
        let mut open = None;
        for lpn in from / self.unit_bytes..to.div_ceil(self.unit_bytes) {
            let Some(unit) = self.flash(lpn) else { continue };
            let page = media.geometry().page_of(unit);
            open = match open {
                Some((at, bytes)) if at == page => Some((page, bytes + self.unit_bytes as u32)),
                other => {
                    other.into_iter().for_each(|(at, bytes)| each(media.flash_page(at, bytes)));
                    Some((page, self.unit_bytes as u32))
                }
            };
        }
        open.into_iter().for_each(|(at, bytes)| each(media.flash_page(at, bytes)));
    }
}
