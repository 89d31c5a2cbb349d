//! The namespaces of a subsystem, by number.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use nandscape_drive::BlockSizes;
use nandscape_wire_nvme::Status;

use super::space::Space;
use super::{Format, Identifiers, Layout, LbaFormat, Namespace, Reservations, lba_formats};

/// The maximum of namespaces in a subsystem: numbers are 1 to this (NN and MNAN of Identify Controller).
pub const MAX_NAMESPACES: u32 = 64;

/// Runs of a namespace begin at multiples of this many of its sectors: a command that crosses no multiple is never split.
pub(crate) const GRANULE_BOUNDARY: u32 = 2_048;

/// The common properties of a subsystem's namespaces.
#[derive(Clone, Debug)]
pub(crate) struct Common {
    /// Sectors of the FTL of each NVM Set.
    pub(crate) sets: Vec<u64>,
    pub(crate) keeps_data: bool,
    pub(crate) keeps_metadata: bool,
    /// The most bytes that one command may move.
    pub(crate) max_transfer: u32,
    /// The subsystem's NQN.
    pub(crate) nqn: String,
}

impl Common {
    /// Sectors of the drive.
    fn sectors(&self) -> u64 {
        self.sets.iter().sum()
    }

    /// The sectors of each set, all free.
    pub(super) fn spaces(&self) -> Vec<Space> {
        self.sets.iter().map(|sectors| Space::new(*sectors, self.granule())).collect()
    }

    /// Sectors of a granule of allocation: a multiple of 1 MiB. The drive has at most 1,024 granules.
    pub(super) fn granule(&self) -> u64 {
        let boundary = u64::from(GRANULE_BOUNDARY);
        (self.sectors() / 1_024).next_power_of_two().max(boundary)
    }
}

/// A namespace to be created.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct NewNamespace {
    /// Its size in logical blocks.
    pub(crate) blocks: u64,
    pub(crate) format: Format,
    /// Whether several controllers may have it attached.
    pub(crate) is_shared: bool,
    /// Its NVM Set, counted from zero; `None` is the first with room.
    pub(crate) set: Option<usize>,
}

/// See the file.
pub(crate) struct Namespaces {
    pub(super) common: Common,
    pub(super) table: RefCell<Table>,
    /// Bytes of their logical blocks, for counting.
    block_sizes: Rc<BlockSizes>,
}

pub(super) struct Table {
    pub(super) by_nsid: BTreeMap<u32, Entry>,
    /// Of each NVM Set.
    pub(super) spaces: Vec<Space>,
    /// Namespaces that were created so far.
    pub(super) created: u64,
}

pub(super) struct Entry {
    pub(super) namespace: Rc<Namespace>,
    /// Whether new controllers have it attached.
    pub(super) is_in_use: bool,
    /// Namespaces that were created before it.
    pub(super) number: u64,
}

impl Table {
    /// Takes sectors of a set, or of the first set with enough.
    fn take(&mut self, set: Option<usize>, sectors: u64) -> Option<(usize, Layout)> {
        let mut sets = self.spaces.iter_mut().enumerate().filter(|(number, _)| set.is_none_or(|set| set == *number));
        sets.find_map(|(number, space)| Some((number, space.take(sectors)?)))
    }
}

impl Namespaces {
    /// One namespace for all of each NVM Set; number 1 is in the first set.
    pub(crate) fn new(common: Common, format: Format) -> Namespaces {
        let table = Table { by_nsid: BTreeMap::new(), spaces: common.spaces(), created: 0 };
        let block_sizes = Rc::new(BlockSizes::new(MAX_NAMESPACES));
        let namespaces = Namespaces { common, table: RefCell::new(table), block_sizes };
        for (set, sectors) in namespaces.common.sets.iter().enumerate() {
            let blocks = sectors / u64::from(format.lba().sectors());
            let nsid = namespaces.create(NewNamespace { blocks, format, is_shared: true, set: Some(set) });
            namespaces.set_in_use(nsid.expect("all of the drive is free"), true);
        }
        namespaces
    }

    /// Creates a namespace under the lowest free number.
    ///
    /// # Errors
    /// Namespace Identifier Unavailable, Namespace Insufficient Capacity.
    pub(crate) fn create(&self, new: NewNamespace) -> Result<u32, Status> {
        let mut table = self.table.borrow_mut();
        let nsid = (1..=MAX_NAMESPACES).find(|nsid| !table.by_nsid.contains_key(nsid));
        let nsid = nsid.ok_or(Status::NAMESPACE_ID_UNAVAILABLE)?;
        let sectors = new.blocks.checked_mul(new.format.lba().sectors().into());
        let sectors = sectors.ok_or(Status::NAMESPACE_INSUFFICIENT_CAPACITY)?;
        let place = table.take(new.set, sectors).ok_or(Status::NAMESPACE_INSUFFICIENT_CAPACITY)?;
        let number = table.created;
        let identifiers = Identifiers::new(&self.common.nqn, number);
        table.created += 1;
        let namespace = Rc::new(self.build(nsid, new, identifiers, place, Rc::default()));
        self.block_sizes.set(nsid, namespace.lba_bytes);
        table.by_nsid.insert(nsid, Entry { namespace, is_in_use: false, number });
        Ok(nsid)
    }

    pub(super) fn build(
        &self,
        nsid: u32,
        new: NewNamespace,
        identifiers: Identifiers,
        place: (usize, Layout),
        reservations: Rc<Reservations>,
    ) -> Namespace {
        let NewNamespace { blocks, format, is_shared, set: _ } = new;
        let max_blocks = (self.common.max_transfer / format.lba().data).min(1 << 16);
        let keeps_data = self.common.keeps_data;
        Namespace::new(nsid, (blocks, format, max_blocks), keeps_data, is_shared, identifiers, place, reservations)
    }

    /// Replaces a namespace by one of the same size and place, with another format and without commands.
    ///
    /// # Panics
    /// If the number has no namespace.
    pub(crate) fn replace(&self, nsid: u32, format: Format) -> (Rc<Namespace>, Rc<Namespace>) {
        let mut table = self.table.borrow_mut();
        let entry = table.by_nsid.get_mut(&nsid).expect("it exists");
        let old = entry.namespace.clone();
        let blocks = old.blocks * old.lba_sectors() / u64::from(format.lba().sectors());
        let new = NewNamespace { blocks, format, is_shared: old.is_shared, set: Some(old.set) };
        let (place, reservations) = ((old.set, old.layout.clone()), old.reservations.clone());
        let mut new = self.build(nsid, new, old.identifiers, place, reservations);
        new.share_write_protection(&old);
        new.set_sanitizing(old.sanitizing());
        self.block_sizes.set(nsid, new.lba_bytes);
        entry.namespace = Rc::new(new);
        (old, entry.namespace.clone())
    }

    /// Takes a namespace out of the table. Its space stays taken.
    pub(crate) fn remove(&self, nsid: u32) -> Option<Rc<Namespace>> {
        let removed = self.table.borrow_mut().by_nsid.remove(&nsid)?.namespace;
        self.block_sizes.set(nsid, 0);
        Some(removed)
    }

    /// Frees the space of a namespace that is no longer in the table.
    pub(crate) fn give_back(&self, namespace: &Namespace) {
        self.table.borrow_mut().spaces[namespace.set].give_back(&namespace.layout);
    }

    /// Whether new controllers have a namespace attached.
    pub(crate) fn set_in_use(&self, nsid: u32, is_in_use: bool) {
        if let Some(entry) = self.table.borrow_mut().by_nsid.get_mut(&nsid) {
            entry.is_in_use = is_in_use;
        }
    }

    /// The namespaces that new controllers have attached.
    pub(crate) fn in_use(&self) -> Vec<Rc<Namespace>> {
        let table = self.table.borrow();
        let in_use = table.by_nsid.values().filter(|entry| entry.is_in_use);
        in_use.map(|entry| entry.namespace.clone()).collect()
    }

    /// The namespace of a number.
    pub(crate) fn get(&self, nsid: u32) -> Option<Rc<Namespace>> {
        self.table.borrow().by_nsid.get(&nsid).map(|entry| entry.namespace.clone())
    }

    /// All of them, by number.
    pub(crate) fn all(&self) -> Vec<Rc<Namespace>> {
        self.table.borrow().by_nsid.values().map(|entry| entry.namespace.clone()).collect()
    }

    /// Their numbers above `nsid`, in ascending order.
    pub(crate) fn above(&self, nsid: u32) -> Vec<u32> {
        self.table.borrow().by_nsid.range(nsid + 1..).map(|(nsid, _)| *nsid).collect()
    }

    /// The current bytes of a logical block of each.
    pub(crate) fn block_sizes(&self) -> &Rc<BlockSizes> {
        &self.block_sizes
    }

    /// Notes the bytes of a logical block of all of them.
    pub(super) fn note_block_sizes(&self) {
        let table = self.table.borrow();
        let bytes_of = |nsid: u32| table.by_nsid.get(&nsid).map_or(0, |entry| entry.namespace.lba_bytes);
        (1..=MAX_NAMESPACES).for_each(|nsid| self.block_sizes.set(nsid, bytes_of(nsid)));
    }

    /// The formats that a namespace may have.
    pub(crate) fn formats(&self) -> &'static [LbaFormat] {
        lba_formats(self.common.keeps_metadata)
    }

    /// Bytes of a granule of allocation.
    pub(crate) fn granule(&self) -> u64 {
        self.common.granule() * 512
    }

    /// Bytes of the drive.
    pub(crate) fn capacity(&self) -> u64 {
        self.common.sectors() * 512
    }

    /// Unallocated bytes.
    pub(crate) fn unallocated(&self) -> u64 {
        self.table.borrow().spaces.iter().map(Space::free).sum::<u64>() * 512
    }

    /// NVM Sets of the drive: more than one if its channels belong to several FTLs.
    pub(crate) fn sets(&self) -> usize {
        self.common.sets.len()
    }

    /// Bytes of an NVM Set, and its unallocated bytes.
    pub(crate) fn capacity_of_set(&self, set: usize) -> (u64, u64) {
        (self.common.sets[set] * 512, self.table.borrow().spaces[set].free() * 512)
    }
}
