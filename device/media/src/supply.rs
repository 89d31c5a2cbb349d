//! What all flash of a drive has in common, whoever owns its channels: power, the fault plan, and the decoders of error
//! correction. And the place of a group of channels in the drive.

use std::fmt;
use std::ops::Range;
use std::rc::Rc;

use nandscape_sim::{Resource, Seed, Sim};

use crate::fault::{FaultPlan, Rule};
use crate::power::Power;

/// See the file.
pub struct Supply {
    pub(crate) power: Power,
    pub(crate) faults: FaultPlan,
    pub(crate) decoders: Vec<Resource>,
}

impl Supply {
    /// Power, the fault plan of `faults` for logical blocks of `lba_bytes`, and `decoders` decoders, all free.
    pub fn new(sim: &Sim, faults: &[Rule], lba_bytes: u32, decoders: u32, seed: Seed) -> Rc<Supply> {
        Rc::new(Supply {
            power: Power::new(sim),
            faults: FaultPlan::new(faults, lba_bytes, seed),
            decoders: (0..decoders).map(|_| Resource::new(sim)).collect(),
        })
    }
}

impl fmt::Debug for Supply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Supply").finish_non_exhaustive()
    }
}

/// A group of channels of a drive whose other channels belong to other flash. Each channel of a group begins with a block that
/// holds an identifier.
#[derive(Clone, Debug)]
pub struct Group {
    /// The numbers of its channels in the drive, in ascending order.
    pub channels: Rc<[u32]>,
    /// The bytes of the drive's address space that it holds, by which faults are placed.
    pub bytes: Range<u64>,
    /// What it has in common with the other groups.
    pub supply: Rc<Supply>,
}
