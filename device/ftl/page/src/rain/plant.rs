//! Planting of stripes.
//!
//! The buffer is simulated as well: overwrites wait in it until it is filled above its share, and a stripe's overwrites
//! share the write of its parity as they do in drive time. The buffer's content at the end is not written.

use nandscape_device_ftl_core::address::Lpn;
use nandscape_sim::Rng;

use super::super::PageFtl;
use super::super::state::State;
use super::dirty::Dirty;
use super::members_of;

impl State {
    /// Stripes of the drive.
    pub(in super::super) fn stripes(&self) -> u32 {
        self.rain.as_deref().map_or(0, |rain| rain.layout.stripes())
    }
}

impl PageFtl {
    /// Writes all stripes once, in order.
    pub(in super::super) fn plant_stripes(&self, progress: &mut dyn FnMut(f64)) {
        let stripes = self.state.borrow().stripes();
        for stripe in 0..stripes {
            self.plant_members(stripe, u32::MAX);
            if stripe.is_multiple_of(1 << 20) {
                progress(f64::from(stripe) / f64::from(stripes));
            }
        }
    }

    /// Overwrites random units.
    pub(in super::super) fn overwrite_stripes(&self, units: u64, rng: &mut Rng) {
        let logical = u64::from(self.config.logical_units);
        let mut waiting = {
            let rain = &mut *self.state.borrow_mut();
            std::mem::replace(&mut rain.rain().dirty, Dirty::new(0))
        };
        for _ in 0..units {
            let lpn = Lpn(rng.below(logical) as u32);
            let next = {
                let state = self.state.borrow();
                let rain = state.rain.as_deref().expect("a drive with stripes");
                let (stripe, member) = rain.layout.stripe_of(lpn);
                waiting.add(&rain.layout, stripe, member, true);
                let is_due = waiting.units() > rain.config.flush_above;
                let next = is_due.then(|| waiting.next(&*rain.policy, &rain.layout, |_| u32::MAX, |_, _| 0)).flatten();
                next.map(|stripe| (stripe, waiting.remove(stripe)))
            };
            if let Some((stripe, members)) = next {
                let parity = self.config.rain.map_or(0, |rain| rain.width - 1);
                self.plant_members(stripe, members | 1 << parity);
            }
        }
        self.state.borrow_mut().rain().dirty = waiting;
    }

    /// Nothing is left in the buffer after planting.
    pub(in super::super) fn forget_planted_writes(&self) {
        let state = &mut *self.state.borrow_mut();
        if let Some(rain) = state.rain.as_deref_mut() {
            rain.dirty = Dirty::new(rain.layout.groups());
        }
    }

    /// Writes members of a stripe, a bit each.
    fn plant_members(&self, stripe: u32, members: u32) {
        let width = self.config.rain.map_or(0, |rain| rain.width);
        for member in members_of(members).take_while(|member| *member < width) {
            let state = &mut *self.state.borrow_mut();
            let rain = state.rain.as_deref().expect("a drive with stripes");
            let Some(lpn) = rain.layout.unit(stripe, member) else { continue };
            let plane = rain.layout.plane_at(rain.layout.place(stripe), member);
            let before = state.counters.host_units;
            self.write_page_to(state, (plane, 0), std::iter::once(lpn));
            if member == width - 1 {
                state.counters.host_units = before;
                state.counters.rain.parity_units += 1;
            }
        }
    }
}
