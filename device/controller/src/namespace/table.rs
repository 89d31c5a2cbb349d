//! The namespaces of a subsystem, by number.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::layout::Run;
use super::{Identifiers, Layout, Namespace};

/// The most namespaces of a subsystem: numbers go from 1 to this one (NN and MNAN of Identify Controller).
pub(crate) const MAX_NAMESPACES: u32 = 64;

/// Runs of a namespace begin at multiples of this many of its sectors: a command that does not cross one is never cut.
pub(crate) const GRANULE_BOUNDARY: u32 = 2_048;

/// What all namespaces of a subsystem have in common.
#[derive(Clone, Debug)]
pub(crate) struct Common {
    /// Sectors of the FTL.
    pub(crate) sectors: u64,
    pub(crate) keeps_data: bool,
    /// The most bytes that one command may move.
    pub(crate) max_transfer: u32,
    /// The subsystem's NQN.
    pub(crate) nqn: String,
}

impl Common {
    /// Sectors of the pieces in which namespaces get space: a multiple of 1 MiB, of which the drive has at most 1,024.
    fn granule(&self) -> u64 {
        let boundary = u64::from(GRANULE_BOUNDARY);
        (self.sectors / 1_024).next_power_of_two().max(boundary)
    }
}

/// See the file.
pub(crate) struct Namespaces {
    common: Common,
    by_nsid: RefCell<BTreeMap<u32, Rc<Namespace>>>,
}

impl Namespaces {
    /// One namespace, number 1, that has all of the drive.
    pub(crate) fn new(common: Common, lba_bytes: u32) -> Namespaces {
        let layout = Layout::new([Run { start: 0, sectors: common.sectors }]);
        let first = Namespace {
            nsid: 1,
            blocks: common.sectors * 512 / u64::from(lba_bytes),
            lba_bytes,
            max_blocks: (common.max_transfer / lba_bytes).min(1 << 16),
            keeps_data: common.keeps_data,
            is_shared: true,
            identifiers: Identifiers::new(&common.nqn, 0),
            layout,
        };
        Namespaces { common, by_nsid: RefCell::new(BTreeMap::from([(1, Rc::new(first))])) }
    }

    /// The namespace of a number.
    pub(crate) fn get(&self, nsid: u32) -> Option<Rc<Namespace>> {
        self.by_nsid.borrow().get(&nsid).cloned()
    }

    /// All of them, by number.
    pub(crate) fn all(&self) -> Vec<Rc<Namespace>> {
        self.by_nsid.borrow().values().cloned().collect()
    }

    /// Their numbers above `nsid`, in ascending order.
    pub(crate) fn above(&self, nsid: u32) -> Vec<u32> {
        self.by_nsid.borrow().range(nsid + 1..).map(|(nsid, _)| *nsid).collect()
    }

    /// Bytes of the pieces in which namespaces get space.
    pub(crate) fn granule(&self) -> u64 {
        self.common.granule() * 512
    }

    /// Bytes of the drive.
    pub(crate) fn capacity(&self) -> u64 {
        self.common.sectors * 512
    }
}
