//! The invariants of stripes: each member lies in its plane, the copies on flash agree with the parity, and the stripes with data in
//! the write buffer are listed. For tests and `--check`.

use std::collections::BTreeMap;

use nandscape_device_ftl_core::address::{Location, Lpn};
use nandscape_device_media::Media;

use super::super::buffer::SlotState;
use super::super::state::State;
use super::{Rain, parity};

impl State {
    /// Checks all stripes.
    pub(in super::super) fn check_stripes(&self, media: &Media) -> Result<(), String> {
        let Some(rain) = self.rain.as_deref() else { return Ok(()) };
        (0..rain.layout.stripes()).try_for_each(|stripe| self.check_stripe(media, rain, stripe))?;
        let mut waiting: BTreeMap<u32, u32> = BTreeMap::new();
        for slot in self.buffer.occupied().map(|id| self.buffer.slot(id)) {
            if matches!(slot.state, SlotState::Ready | SlotState::Partial) {
                let (stripe, member) = rain.layout.stripe_of(slot.lpn);
                *waiting.entry(stripe).or_default() |= 1 << member;
            }
        }
        rain.dirty.check(&waiting)
    }

    fn check_stripe(&self, media: &Media, rain: &Rain, stripe: u32) -> Result<(), String> {
        let place = rain.layout.place(stripe);
        let mut sum = Vec::new();
        let mut is_known = self.keeps_data;
        let held = self.held_member(stripe);
        for member in 0..rain.layout.width() {
            let Some(lpn) = rain.layout.unit(stripe, member) else { continue };
            let plane = rain.layout.plane_at(place, member);
            is_known &= !self.collectors.is_out_of_use(plane);
            if let Some((_, data)) = held.as_ref().filter(|(number, _)| *number == member) {
                data.iter().for_each(|data| parity::add(&mut sum, data));
                continue;
            }
            let Location::Flash(unit) = self.flash_copy(lpn) else { continue };
            let page = self.geometry.page_of(unit);
            if self.geometry.plane_of(self.geometry.block_of(page)) != plane {
                return Err(format!("{lpn:?} of stripe {stripe} is at {unit:?}, and belongs in {plane:?}"));
            }
            is_known &= media.is_readable(page);
            if is_known && let Some(data) = media.data(unit) {
                parity::add(&mut sum, &data);
            }
        }
        match is_known && sum.iter().any(|byte| *byte != 0) {
            true => {
                Err(format!("stripe {stripe} does not agree with its parity: {}", self.stripe_in_words(rain, stripe)))
            }
            false => Ok(()),
        }
    }

    fn stripe_in_words(&self, rain: &Rain, stripe: u32) -> String {
        let units = (0..rain.layout.width()).filter_map(|member| rain.layout.unit(stripe, member));
        let words: Vec<String> = units
            .map(|lpn: Lpn| format!("{lpn:?} at {:?}, {:?}", self.flash_copy(lpn), self.tables.location(lpn)))
            .collect();
        words.join("; ")
    }
}
