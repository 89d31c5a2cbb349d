//! Reservations of a namespace (Base 8.1.22): which hosts are registered with which key, and which of them holds the
//! reservation. A host registers once for all of its controllers.
//!
//! | file | what |
//! |---|---|
//! | `mod` | what is asked of reservations, and the report |
//! | `kind` | the types of reservation |
//! | `registrations` | registrants, keys, and the holder |
//! | `actions` | what the commands of hosts change |
//! | `lasting` | what outlasts a loss of power |
//!
//! Left out: the commands, and how hosts are notified; both are the controllers' business.

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
    /// One that has an identifier.
    Host([u8; 16]),
    /// One without an identifier is another host on each controller.
    Controller(u16),
    /// The hosts of a PCI function, as features are saved for them. Reservations do not know it.
    Function(u16),
}

/// A host to be notified, and of what.
pub(crate) type Notice = (Registrant, u8);

/// See the file.
#[derive(Default)]
pub(crate) struct Reservations {
    /// A reservation is held.
    is_held: Cell<bool>,
    registrations: RefCell<Registrations>,
}

/// What Reservation Report tells.
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

    /// Whether a host may use the namespace so (Base 8.1.22, "Command Behavior in the Presence of a Reservation").
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
