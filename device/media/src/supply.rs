//! Resources shared by all flash of a drive, whoever owns its channels and dies: power, the fault plan, the decoders of error
//! correction, and channels whose dies have several owners. Also the place of a group of dies in the drive.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::rc::Rc;

use nandscape_sim::trace::Track;
use nandscape_sim::{Resource, Seed, Sim};

use crate::fault::{FaultPlan, Rule};
use crate::interleave::Row;
use crate::power::Power;

/// See the file.
pub struct Supply {
    pub(crate) power: Power,
    pub(crate) faults: FaultPlan,
    pub(crate) decoders: Vec<Resource>,
    /// The channels by their numbers in the drive, with their tracks in the event trace.
    channels: RefCell<BTreeMap<u32, (Rc<Resource>, Track)>>,
    /// The rows of the channels that program in rows.
    rows: RefCell<BTreeMap<u32, Rc<Row>>>,
}

impl Supply {
    /// Power, the fault plan of `faults` for logical blocks of `lba_bytes`, and `decoders` decoders, all free.
    pub fn new(sim: &Sim, faults: &[Rule], lba_bytes: u32, decoders: u32, seed: Seed) -> Rc<Supply> {
        Rc::new(Supply {
            power: Power::new(sim),
            faults: FaultPlan::new(faults, lba_bytes, seed),
            decoders: (0..decoders).map(|_| Resource::new(sim)).collect(),
            channels: RefCell::default(),
            rows: RefCell::default(),
        })
    }

    /// The channel with a number, and whether this is the first request for it: the first owner lists the channel in
    /// reports.
    pub(crate) fn channel(&self, sim: &Sim, number: u32) -> Channel {
        let mut channels = self.channels.borrow_mut();
        let is_first = !channels.contains_key(&number);
        let new = || (Rc::new(Resource::new(sim)), sim.trace().track(format!("channel {number}")));
        let (bus, track) = channels.entry(number).or_insert_with(new).clone();
        Channel { bus, track, is_first }
    }

    /// The row of the channel with a number.
    pub(crate) fn row(&self, sim: &Sim, number: u32) -> Rc<Row> {
        self.rows.borrow_mut().entry(number).or_insert_with(|| Rc::new(Row::new(sim))).clone()
    }
}

impl fmt::Debug for Supply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Supply").finish_non_exhaustive()
    }
}

/// One owner's view of a channel.
pub(crate) struct Channel {
    pub(crate) bus: Rc<Resource>,
    pub(crate) track: Track,
    /// Whether this owner lists the channel in reports.
    pub(crate) is_first: bool,
}

/// A group of channels of a drive whose other channels, or the other dies of whose channels, belong to other flash. Each channel of
/// a group begins with a block that holds an identifier.
#[derive(Clone, Debug)]
pub struct Group {
    /// The numbers of its channels in the drive, in ascending order.
    pub channels: Rc<[u32]>,
    /// The numbers of its dies in each of these channels, in ascending order.
    pub dies: Rc<[u32]>,
    /// The bytes of the drive's address space that it holds, by which faults are placed.
    pub bytes: Range<u64>,
    /// The resources shared with the other groups.
    pub supply: Rc<Supply>,
}
