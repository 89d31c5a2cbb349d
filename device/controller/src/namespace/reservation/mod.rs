//! Reservations of a namespace (Base 8.1.22): registered hosts with their keys, and the holder of the reservation. A host
//! registers once for all its controllers.
//!
//! | file | what |
//! |---|---|
//! | `mod` | access checks, and the report |
//! | `kind` | the types of reservation |
//! | `registrations` | registrants, keys, and the holder |
//! | `actions` | the actions of the commands |
//! | `lasting` | reservations over a loss of power |
//!
//! Left out: the commands and the notification of hosts, which belong to the controllers.

mod actions;
mod kind;
mod lasting;
mod registrations;
#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};

use nandscape_wire_nvme::Status;

pub(crate) use kind::{Access, Kind};
use registrations::Registrations;

/// A host, as reservations know it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Registrant {
    /// A host with an identifier.
    Host([u8; 16]),
    /// Without an identifier, each controller has a different host.
    Controller(u16),
    /// The hosts of a PCI function, for saved features. Reservations do not use it.
    Function(u16),
}

/// A host to be notified, and the type of the notification.
pub(crate) type Notice = (Registrant, u8);

/// See the file.
#[derive(Default)]
pub(crate) struct Reservations {
    /// Whether a reservation is held.
    is_held: Cell<bool>,
    registrations: RefCell<Registrations>,
}

/// The data of Reservation Report.
pub(crate) struct Report {
    pub(crate) generation: u32,
    /// Reservation Type; 0 is no reservation.
    pub(crate) kind: u8,
    pub(crate) persists: bool,
    /// Host, key, and whether it holds the reservation.
    pub(crate) registrants: Vec<(Registrant, u64, bool)>,
}

impl Reservations {
    /// Whether commands have to be checked.
    pub(crate) fn is_held(&self) -> bool {
        self.is_held.get()
    }

    /// Checks an access of a host to the namespace (Base 8.1.22, "Command Behavior in the Presence of a Reservation").
    ///
    /// # Errors
    /// Reservation Conflict.
    pub(crate) fn check_access(&self, host: Registrant, access: Access) -> Result<(), Status> {
        let registrations = self.registrations.borrow();
        let Some((kind, _)) = registrations.holder else { return Ok(()) };
        let is_registrant = registrations.key_of(host).is_some() && !kind.is_of_one();
        let is_open = access == Access::Read && !kind.restricts_reads();
        match is_open || is_registrant || registrations.holds(host) {
            true => Ok(()),
            false => Err(Status::RESERVATION_CONFLICT),
        }
    }

    fn change<T>(&self, change: impl FnOnce(&mut Registrations) -> T) -> T {
        let mut registrations = self.registrations.borrow_mut();
        let result = change(&mut registrations);
        self.is_held.set(registrations.holder.is_some());
        result
    }

    pub(crate) fn report(&self) -> Report {
        let registrations = self.registrations.borrow();
        Report {
            generation: registrations.generation,
            kind: registrations.holder.map_or(0, |(kind, _)| kind as u8),
            persists: registrations.persists,
            registrants: registrations
                .keys
                .iter()
                .map(|(host, key)| (*host, *key, registrations.holds(*host)))
                .collect(),
        }
    }
}
