//! RAIN (Li 3.3.2): parity stripes of units, over planes of different channels.
//!
//! | file | what |
//! |---|---|
//! | `layout` | the units of a stripe, and the places of its members |
//! | `parity` | the parity of units |
//! | `dirty` | stripes with data in the write buffer, and which is written next |
//! | `job` | a stripe on its way to flash |
//! | `plan` | the reads for its parity |
//! | `flush` | which stripes go from the buffer to flash, and when |
//! | `renew` | the new content of a stripe |
//! | `program` | the programs of its pages |
//! | `commit` | a stripe has been written |
//! | `early` | pages leave the buffer before the last of their stripe |
//! | `broken` | power was cut, or planes are out of use |
//! | `extra` | pages that are read concurrently |
//! | `rebuild` | units that are reconstructed from the others of their stripe |
//! | `read` | reads of the host that avoid a plane |
//! | `repair` | pages that were lost, and are written again |
//! | `wear` | stripes that are moved so that planes wear evenly |
//! | `scrub` | pages that collections have copied are read through the error correction |
//! | `deallocate` | deallocation |
//! | `plant` | planting of stripes |
//! | `shape`, `image` | the planted steady state: ages and contents of blocks |
//! | `check` | the invariants |
//!
//! A unit that is mapped to no page counts as zeros in the parity. The copies on flash of the members of a stripe always agree
//! with its parity: new pages of a stripe and its parity are programmed concurrently, and the map changes for all of
//! them at once when the last has ended. Data of the write buffer has no part in the parity. Any member can therefore
//! be reconstructed from the others at any time, and after a power cut. Where a collection holds up the last member, it
//! stays in the buffer, which survives power cuts, and is read from there.
//!
//! A plane out of use is no longer read. Its content is reconstructed from the others, and later writes to it are in the
//! parity alone.
//!
//! Left out: rebuilding a plane that is out of use in spare space, and a second parity.

mod broken;
mod check;
mod commit;
mod deallocate;
pub(crate) mod dirty;
mod early;
mod extra;
mod flush;
mod image;
mod job;
pub(crate) mod layout;
mod parity;
mod plan;
mod plant;
mod program;
mod read;
mod rebuild;
mod renew;
mod repair;
mod scrub;
mod shape;
#[cfg(test)]
mod tests;
mod wear;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use nandscape_device_ftl_core::address::{Location, Lpn};
use nandscape_device_ftl_core::component::BlockMetadata;
use nandscape_device_ftl_core::policy::{FlushPolicy, InOrder, ScrubPolicy, StripeWearPolicy, Suspects};
use nandscape_device_media::{Geometry, PlaneId, UnitId};
use nandscape_sim::Span;
use smallvec::SmallVec;

use super::state::State;
use dirty::Dirty;
use job::Pending;
use layout::Layout;
use scrub::Scrub;
use wear::Wear;

pub(super) use extra::Extra;
pub(super) use job::{Job, Program};
pub use layout::stripes_of;
pub(crate) use read::StripeRead;
pub(super) use scrub::ScrubJob;

/// The layout and writing of stripes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct RainConfig {
    /// Members of a stripe, the parity included: 2 to [`RainConfig::MOST_WIDTH`]. It divides the channels.
    pub width: u32,
    /// Units of the write buffer in use above which stripes are written to flash.
    pub flush_above: u32,
    /// From one block that is scrubbed to the next; zero is no scrubbing.
    pub scrub_interval: Span,
}

impl RainConfig {
    /// The most members of a stripe.
    pub const MOST_WIDTH: u32 = 32;
}

/// Policies for stripes; without a policy, stripes are written to flash in order, and stay in place.
#[derive(Default)]
pub struct StripePolicies {
    /// Which stripe is written to flash next.
    pub flush: Option<Box<dyn FlushPolicy>>,
    /// When a stripe is moved so that planes wear evenly.
    pub wear: Option<Box<dyn StripeWearPolicy>>,
    /// Which block is scrubbed next.
    pub scrub: Option<Box<dyn ScrubPolicy>>,
}

/// See the module.
pub(super) struct Rain {
    pub(super) config: RainConfig,
    pub(super) layout: Layout,
    pub(super) policy: Box<dyn FlushPolicy>,
    pub(super) dirty: Dirty,
    /// Stripes that are being written.
    jobs: BTreeMap<u32, Rc<Job>>,
    /// Programs that wait for their plane, by plane.
    waiting: Vec<VecDeque<Pending>>,
    /// The planes that have any.
    waited_for: BTreeSet<PlaneId>,
    /// The most stripes of a group that are written at a time.
    most_jobs: u32,
    wear: Wear,
    wear_policy: Option<Box<dyn StripeWearPolicy>>,
    scrub: Option<Scrub>,
}

impl Rain {
    pub(super) fn new(geometry: &Geometry, config: RainConfig, logical_units: u32, policies: StripePolicies) -> Rain {
        let layout = Layout::new(geometry, config.width, logical_units);
        Rain {
            config,
            policy: policies.flush.unwrap_or_else(|| Box::new(InOrder)),
            wear: Wear::new(geometry.planes(), layout.groups()),
            wear_policy: policies.wear,
            scrub: (!config.scrub_interval.is_zero())
                .then(|| Scrub::new(config.scrub_interval, policies.scrub.unwrap_or_else(|| Box::new(Suspects)))),
            dirty: Dirty::new(layout.groups()),
            layout,
            jobs: BTreeMap::new(),
            waiting: (0..geometry.planes()).map(|_| VecDeque::new()).collect(),
            waited_for: BTreeSet::new(),
            // Their written but uncommitted pages keep blocks from being cleaned: at most two of each plane.
            most_jobs: (geometry.pages_per_block() / 2).max(1),
        }
    }

    /// Whether a stripe is being written.
    fn is_under_way(&self, stripe: u32) -> bool {
        self.jobs.contains_key(&stripe)
    }

    /// A program waits for its plane.
    fn wait_for(&mut self, plane: PlaneId, pending: Pending) {
        self.waiting[plane.0 as usize].push_back(pending);
        self.waited_for.insert(plane);
    }

    /// The program that has waited longest for a plane.
    fn take_waiting(&mut self, plane: PlaneId) -> Option<Pending> {
        let queue = &mut self.waiting[plane.0 as usize];
        let pending = queue.pop_front();
        if queue.is_empty() {
            self.waited_for.remove(&plane);
        }
        pending
    }
}

/// The members of a stripe on flash at one time. The blocks are pinned.
#[derive(Clone, Default)]
struct Snapshot {
    /// The place of each member that has one.
    units: SmallVec<[Option<UnitId>; 8]>,
    /// Members that are zeros, a bit each.
    zeros: u32,
    /// Members whose plane is out of use and that are not zeros.
    absent: u32,
    /// The member that is held in the buffer, while the others are on flash already: a bit, or none.
    held: u32,
    /// Its content, where the drive keeps data.
    held_data: Option<Rc<[u8]>>,
    /// All members.
    all: u32,
}

impl State {
    /// The stripes, for code that knows that the drive has stripes.
    fn rain(&mut self) -> &mut Rain {
        self.rain.as_deref_mut().expect("a drive with stripes")
    }

    /// Whether a unit that is not mapped is in the parity of its stripe alone.
    pub(super) fn is_absent(&self, lpn: Lpn) -> bool {
        let Some(rain) = self.rain.as_deref() else { return false };
        if !self.collectors.is_out_of_use(rain.layout.plane_of(lpn)) {
            return false;
        }
        let (stripe, _) = rain.layout.stripe_of(lpn);
        !self.is_empty_stripe(stripe)
    }

    /// The unit of parity from which a unit without a page is reconstructed; `None` where that is impossible.
    pub(super) fn parity_of(&mut self, lpn: Lpn) -> Option<UnitId> {
        let rebuild = self.plan_rebuild(lpn)?;
        self.let_go_of(&rebuild);
        let parity = self.rain().layout.parity();
        rebuild.snapshot.units[parity as usize]
    }

    /// Whether nothing of a stripe is mapped, as far as its parity shows.
    fn is_empty_stripe(&self, stripe: u32) -> bool {
        let Some(rain) = self.rain.as_deref() else { return true };
        let parity = rain.layout.unit(stripe, rain.layout.parity()).expect("each stripe has a parity");
        self.tables.location(parity) == Location::Unmapped
            && !self.collectors.is_out_of_use(rain.layout.plane_of(parity))
    }

    /// Reads the state of a stripe's members, and pins their blocks.
    fn look_at_stripe(&mut self, stripe: u32) -> Snapshot {
        let mut snapshot = Snapshot::default();
        let is_empty = self.is_empty_stripe(stripe);
        let layout = &self.rain.as_deref().expect("a drive with stripes").layout;
        let place = layout.place(stripe);
        let held = self.held_member(stripe);
        let members: SmallVec<[Option<(Lpn, PlaneId)>; 8]> = (0..layout.width())
            .map(|member| Some((layout.unit(stripe, member)?, layout.plane_at(place, member))))
            .collect();
        for (member, unit) in members.into_iter().enumerate() {
            let bit = 1 << member;
            snapshot.all |= bit;
            if let Some((_, data)) = held.as_ref().filter(|(number, _)| *number as usize == member) {
                snapshot.units.push(None);
                (snapshot.held, snapshot.held_data) = (bit, data.clone());
                continue;
            }
            let copy = unit.map_or(Location::Unmapped, |(lpn, _)| self.flash_copy(lpn));
            let is_out = unit.is_some_and(|(_, plane)| self.collectors.is_out_of_use(plane));
            snapshot.units.push(if let Location::Flash(unit) = copy { Some(unit) } else { None });
            match copy {
                _ if is_out && !is_empty => snapshot.absent |= bit,
                Location::Flash(_) => {}
                _ => snapshot.zeros |= bit,
            }
        }
        for unit in snapshot.units.iter().flatten() {
            self.tables.blocks.pin(self.geometry.block_of(self.geometry.page_of(*unit)));
        }
        snapshot
    }

    /// Releases what [`State::look_at_stripe`] has pinned.
    fn let_go(&mut self, snapshot: &Snapshot) {
        for unit in snapshot.units.iter().flatten() {
            self.tables.blocks.unpin(self.geometry.block_of(self.geometry.page_of(*unit)));
        }
    }

    /// Changes which copy on flash of a unit is current.
    fn set_flash_copy(&mut self, lpn: Lpn, to: Location) {
        let old = match self.tables.location(lpn) {
            Location::Buffered(slot) => {
                let holder = self.holder(slot);
                std::mem::replace(&mut self.buffer.slot_mut(holder).previous, to)
            }
            _ => self.tables.remap(lpn, to),
        };
        if let Location::Flash(unit) = to {
            self.tables.blocks.validate(unit);
        }
        self.drop_copy(old);
    }
}

/// The members of a mask.
fn members_of(mask: u32) -> impl Iterator<Item = u32> {
    (0..u32::BITS).filter(move |member| mask & 1 << member != 0)
}
