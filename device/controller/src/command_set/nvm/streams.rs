//! The streams of a drive (Base 8.1.8.3): the namespaces in which hosts enabled them, the resources allocated to a namespace,
//! and the open streams.
//!
//! A stream resource is a handle of the FTL. The first handle is for writes without a stream, so resource `n` is handle `n +
//! 1`. A stream is identified by host, namespace and the stream identifier chosen by the host. Where the specification leaves
//! the choice, a new stream takes the resource of the stream written least recently. It continues in the open block of the
//! previous stream.
//!
//! Left out: streams that hosts share. A power cut loses all stream state.

use std::cell::RefCell;

use nandscape_device_ftl_core::PlacementReport;
use nandscape_wire_nvme::Status;
use nandscape_wire_nvme::directive::Parameters;

use crate::namespace::Registrant;

/// A host in a namespace.
pub(crate) type User = (Registrant, u32);

/// See the module.
#[derive(Debug)]
pub struct Streams {
    table: RefCell<Table>,
    unit_bytes: u64,
    page_bytes: u32,
}

#[derive(Debug, Default)]
struct Table {
    enabled: Vec<User>,
    /// Resources allocated to one user.
    allocated: Vec<(User, u16)>,
    /// Open streams, by resource.
    open: Vec<Option<Open>>,
    /// Writes with a stream so far.
    writes: u64,
}

#[derive(Copy, Clone, Debug)]
struct Open {
    user: User,
    identifier: u16,
    /// The number of the last write to it.
    written: u64,
}

impl Streams {
    pub(super) fn new(report: &PlacementReport) -> Streams {
        let open = vec![None; report.handles.len() - 1];
        let table = RefCell::new(Table { open, ..Table::default() });
        Streams { table, unit_bytes: report.unit_bytes, page_bytes: report.page_bytes }
    }

    /// Whether a host has enabled streams in a namespace.
    pub(crate) fn is_enabled(&self, user: User) -> bool {
        self.table.borrow().enabled.contains(&user)
    }

    /// Enables streams of a host in a namespace, or disables and releases them.
    pub(crate) fn enable(&self, user: User, enables: bool) {
        if !enables {
            self.release(|each| *each == user);
        } else if !self.is_enabled(user) {
            self.table.borrow_mut().enabled.push(user);
        }
    }

    /// Disables streams of hosts in namespaces, and releases their resources and streams.
    pub(crate) fn release(&self, is_meant: impl Fn(&User) -> bool) {
        self.release_resources(&is_meant);
        self.table.borrow_mut().enabled.retain(|user| !is_meant(user));
    }

    /// Releases the resources and closes the streams of hosts in namespaces.
    pub(crate) fn release_resources(&self, is_meant: impl Fn(&User) -> bool) {
        self.close(|user, _| is_meant(user));
        self.table.borrow_mut().allocated.retain(|(user, _)| !is_meant(user));
    }

    /// Closes streams. Allocated resources stay allocated.
    pub(crate) fn close(&self, is_meant: impl Fn(&User, u16) -> bool) {
        let mut table = self.table.borrow_mut();
        table.open.iter_mut().for_each(|slot| *slot = slot.filter(|open| !is_meant(&open.user, open.identifier)));
    }

    /// Allocates resources to a host in a namespace: as many as it asks for, or all that are left. Streams that no longer
    /// have a resource are closed.
    pub(crate) fn allocate(&self, user: User, wanted: u16) -> Result<u16, Status> {
        let mut table = self.table.borrow_mut();
        if table.own(user) > 0 {
            return Err(Status::INVALID_FIELD);
        }
        let given = match table.available() {
            0 => return Err(Status::STREAM_RESOURCE_ALLOCATION_FAILED),
            left => wanted.min(left),
        };
        if given > 0 {
            table.allocated.push((user, given));
            table.shrink(Some(user), given);
            let left = table.available();
            table.shrink(None, left);
        }
        Ok(given)
    }

    /// The handle for a write to a stream, which is opened if it is not open.
    pub(crate) fn handle(&self, user: User, identifier: u16) -> u8 {
        let mut table = self.table.borrow_mut();
        table.writes += 1;
        let written = table.writes;
        let is_it = |open: &Open| (open.user, open.identifier) == (user, identifier);
        let place = table.open.iter().position(|slot| slot.as_ref().is_some_and(is_it));
        let Some(place) = place.or_else(|| table.room(user)) else { return 0 };
        table.open[place] = Some(Open { user, identifier, written });
        place as u8 + 1
    }

    /// The identifiers of open streams of a host in a namespace, or of all streams on unallocated resources.
    pub(crate) fn identifiers(&self, user: Option<User>) -> Vec<u16> {
        let table = self.table.borrow();
        let mut found: Vec<u16> = table.of(user).map(|(_, open)| open.identifier).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Return Parameters, of a host in a namespace with blocks of a size.
    pub(crate) fn parameters(&self, user: Option<User>, lba_bytes: u32) -> Parameters {
        let table = self.table.borrow();
        let mut all = Parameters::zeroed();
        all.most = (table.open.len() as u16).into();
        all.available = table.available().into();
        all.open = (table.of(None).count() as u16).into();
        if let Some(user) = user {
            all.write_size = (self.page_bytes / lba_bytes).max(1).into();
            let pages = self.unit_bytes / u64::from(self.page_bytes);
            all.granularity = (pages.min(u16::MAX.into()) as u16).into();
            all.allocated = table.own(user).into();
            all.namespace_open = (table.of(Some(user)).count() as u16).into();
        }
        all
    }
}

impl Table {
    /// Resources allocated to a host in a namespace.
    fn own(&self, user: User) -> u16 {
        self.allocated.iter().find(|(each, _)| *each == user).map_or(0, |(_, own)| *own)
    }

    /// Unallocated resources.
    fn available(&self) -> u16 {
        self.open.len() as u16 - self.allocated.iter().map(|(_, own)| own).sum::<u16>()
    }

    /// Open streams of a host in a namespace, or those on unallocated resources, with their places.
    fn of(&self, user: Option<User>) -> impl Iterator<Item = (usize, Open)> {
        let open = self.open.iter().enumerate().filter_map(|(place, slot)| Some((place, (*slot)?)));
        open.filter(move |(_, open)| match user {
            Some(user) => open.user == user,
            None => self.own(open.user) == 0,
        })
    }

    /// The place for a new stream, which may be taken from another one; `None` if all resources are allocated.
    fn room(&mut self, user: User) -> Option<usize> {
        let (of, most) = match self.own(user) {
            0 => (None, self.available()),
            own => (Some(user), own),
        };
        if most == 0 {
            return None;
        }
        self.shrink(of, most - 1);
        self.open.iter().position(Option::is_none)
    }

    /// Closes the least recently written streams until at most `most` are left.
    fn shrink(&mut self, of: Option<User>, most: u16) {
        while self.of(of).count() > most.into() {
            let oldest = self.of(of).min_by_key(|(_, open)| open.written).map(|(place, _)| place);
            if let Some(place) = oldest {
                self.open[place] = None;
            }
        }
    }
}
