//! The streams of a drive (Base 8.1.8.3): in which namespaces a host has enabled them, which resources are a namespace's own,
//! and which streams are open.
//!
//! A stream resource is a handle of the FTL. The first handle is for writes without a stream, so resource `n` is handle
//! `n + 1`. A stream is named by its host, its namespace and the identifier that the host has chosen. Where the
//! specification leaves the choice, the stream that was written least recently gives its resource to a new one. A new stream
//! goes on in the open block of the one that had its resource before.
//!
//! Left out: streams that hosts share. Nothing of this is kept over a power cut.

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
    /// Resources of their own.
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

    /// Disables streams of hosts in namespaces, and releases all that they have.
    pub(crate) fn release(&self, is_meant: impl Fn(&User) -> bool) {
        self.release_resources(&is_meant);
        self.table.borrow_mut().enabled.retain(|user| !is_meant(user));
    }

    /// Releases the resources and closes the streams of hosts in namespaces.
    pub(crate) fn release_resources(&self, is_meant: impl Fn(&User) -> bool) {
        self.close(|user, _| is_meant(user));
        self.table.borrow_mut().allocated.retain(|(user, _)| !is_meant(user));
    }

    /// Closes streams. Resources of a namespace remain its own.
    pub(crate) fn close(&self, is_meant: impl Fn(&User, u16) -> bool) {
        let mut table = self.table.borrow_mut();
        table.open.iter_mut().for_each(|slot| *slot = slot.filter(|open| !is_meant(&open.user, open.identifier)));
    }

    /// Gives a host resources of its own in a namespace: as many as it asks for, or all that are left. Streams that are open
    /// beyond what is left for them are closed.
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

    /// The identifiers of open streams of a host in a namespace, or of all that use no resources of a namespace's own.
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
    /// Resources of a host's own in a namespace.
    fn own(&self, user: User) -> u16 {
        self.allocated.iter().find(|(each, _)| *each == user).map_or(0, |(_, own)| *own)
    }

    /// Resources that are nobody's own.
    fn available(&self) -> u16 {
        self.open.len() as u16 - self.allocated.iter().map(|(_, own)| own).sum::<u16>()
    }

    /// Open streams of a host in a namespace, or those that use resources that are nobody's own, with their places.
    fn of(&self, user: Option<User>) -> impl Iterator<Item = (usize, Open)> {
        let open = self.open.iter().enumerate().filter_map(|(place, slot)| Some((place, (*slot)?)));
        open.filter(move |(_, open)| match user {
            Some(user) => open.user == user,
            None => self.own(open.user) == 0,
        })
    }

    /// The place for a new stream, which may be that of another one; `None` if all resources are somebody's own.
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

    /// Closes the streams that were written least recently until there are no more than `most`.
    fn shrink(&mut self, of: Option<User>, most: u16) {
        while self.of(of).count() > most.into() {
            let oldest = self.of(of).min_by_key(|(_, open)| open.written).map(|(place, _)| place);
            if let Some(place) = oldest {
                self.open[place] = None;
            }
        }
    }
}
