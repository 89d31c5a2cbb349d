//! The actions of the reservation commands (Base 7.5 to 7.8).

use nandscape_wire_nvme::Status;
use nandscape_wire_nvme::reservation::{REGISTRATION_PREEMPTED, RESERVATION_PREEMPTED, RESERVATION_RELEASED};

use super::registrations::Registrations;
use super::{Kind, Notice, Registrant, Reservations};
use crate::subsystem::MAX_CONTROLLERS;

/// The maximum of registered hosts. It is bounded because registrations outlast connections. It exceeds the number of
/// controllers, so with all places taken, at least one registered host has no controller.
pub(super) const MOST_REGISTRANTS: usize = 256;
const _: () = assert!(MOST_REGISTRANTS > MAX_CONTROLLERS as usize + 1);

impl Reservations {
    /// Registers a host. No host is rejected for lack of room (Base 8.1.22). With all places taken, the oldest registration
    /// is removed of a host without a controller (`is_here` is false) that is not the only holder of the reservation.
    pub(crate) fn register(
        &self,
        host: Registrant,
        key: u64,
        is_here: impl Fn(Registrant) -> bool,
    ) -> Result<(), Status> {
        self.change(|registrations| {
            match registrations.key_of(host) {
                Some(registered) if registered != key => return Err(Status::RESERVATION_CONFLICT),
                Some(_) => {}
                None => registrations.add(host, key, is_here),
            }
            registrations.bump();
            Ok(())
        })
    }

    /// Unregisters a host. Without a key, the key is not checked.
    pub(crate) fn unregister(&self, host: Registrant, key: Option<u64>) -> Result<Vec<Notice>, Status> {
        self.change(|registrations| {
            let registered = registrations.key_of(host).ok_or(Status::RESERVATION_CONFLICT)?;
            registrations.check(host, key.unwrap_or(registered))?;
            registrations.bump();
            Ok(registrations.remove(host))
        })
    }

    /// Replaces the key of a host. Without an old key, no key is checked, and an unregistered host is registered as by
    /// [`Reservations::register`] (Base 8.1.22.3).
    pub(crate) fn replace(
        &self,
        host: Registrant,
        key: Option<u64>,
        new: u64,
        is_here: impl Fn(Registrant) -> bool,
    ) -> Result<(), Status> {
        self.change(|registrations| {
            if let Some(key) = key {
                registrations.check(host, key)?;
            }
            match registrations.keys.iter_mut().find(|(each, _)| *each == host) {
                Some((_, key)) => *key = new,
                None => registrations.add(host, new, is_here),
            }
            registrations.bump();
            Ok(())
        })
    }

    /// Acquires a reservation.
    pub(crate) fn acquire(&self, host: Registrant, key: u64, kind: Kind) -> Result<(), Status> {
        self.change(|registrations| {
            registrations.check(host, key)?;
            match registrations.holder {
                Some((held, _)) if held != kind || !registrations.holds(host) => Err(Status::RESERVATION_CONFLICT),
                Some(_) => Ok(()),
                None => {
                    registrations.holder = Some((kind, host));
                    Ok(())
                }
            }
        })
    }

    /// Unregisters the hosts whose key is `victim`, and takes over their reservation. Returns the unregistered hosts and the
    /// notifications.
    pub(crate) fn preempt(
        &self,
        host: Registrant,
        key: u64,
        victim: u64,
        kind: Kind,
    ) -> Result<(Vec<Registrant>, Vec<Notice>), Status> {
        self.change(|registrations| {
            registrations.check(host, key)?;
            let of_all = registrations.holder.is_some_and(|(kind, _)| kind.is_of_all());
            let takes_all = of_all && victim == 0;
            if victim == 0 && !takes_all {
                return Err(Status::INVALID_FIELD);
            }
            let holder_key = registrations.holder.and_then(|(_, holder)| registrations.key_of(holder));
            let takes_over = takes_all || !of_all && registrations.holder.is_some() && holder_key == Some(victim);
            let is_victim = |(each, key): &(Registrant, u64)| *each != host && (takes_all || *key == victim);
            let victims: Vec<Registrant> =
                registrations.keys.iter().filter(|each| is_victim(each)).map(|(each, _)| *each).collect();
            if victims.is_empty() && !takes_over {
                return Err(Status::RESERVATION_CONFLICT);
            }
            let before = registrations.holder;
            // Base 8.1.22.7: an unregistered holder gets the same notification; Reservation Preempted is for Clear.
            let mut notices: Vec<Notice> = victims.iter().map(|victim| (*victim, REGISTRATION_PREEMPTED)).collect();
            registrations.keys.retain(|(each, _)| !victims.contains(each));
            if takes_over {
                registrations.holder = Some((kind, host));
                // Remaining registrants are notified if the type of the reservation changed.
                if before.is_some_and(|(before, _)| before != kind) {
                    notices.extend(registrations.others(host, RESERVATION_RELEASED));
                }
            }
            registrations.bump();
            Ok((victims, notices))
        })
    }

    /// Releases a reservation that the host holds; any other stays.
    pub(crate) fn release(&self, host: Registrant, key: u64, kind: Kind) -> Result<Vec<Notice>, Status> {
        self.change(|registrations| {
            registrations.check(host, key)?;
            match registrations.holder {
                Some((held, _)) if registrations.holds(host) && held != kind => Err(Status::INVALID_FIELD),
                Some(_) if registrations.holds(host) => Ok(registrations.release(host)),
                _ => Ok(Vec::new()),
            }
        })
    }

    /// Unregisters all hosts, and ends the reservation.
    pub(crate) fn clear(&self, host: Registrant, key: u64) -> Result<Vec<Notice>, Status> {
        self.change(|registrations| {
            registrations.check(host, key)?;
            let notices = registrations.others(host, RESERVATION_PREEMPTED);
            (registrations.keys, registrations.holder) = (Vec::new(), None);
            registrations.bump();
            Ok(notices)
        })
    }

    /// A host without an identifier has left for good: it cannot reconnect.
    pub(crate) fn forget(&self, host: Registrant) -> Vec<Notice> {
        self.change(
            |registrations| if registrations.key_of(host).is_some() { registrations.remove(host) } else { Vec::new() },
        )
    }
}

impl Registrations {
    /// Adds a registrant. Without room, another registrant is removed.
    fn add(&mut self, host: Registrant, key: u64, is_here: impl Fn(Registrant) -> bool) {
        if self.keys.len() == MOST_REGISTRANTS {
            let alone = self.holder.filter(|(kind, _)| !kind.is_of_all()).map(|(_, holder)| holder);
            let leaves = |(host, _): &(Registrant, u64)| alone != Some(*host) && !is_here(*host);
            let at = self.keys.iter().position(leaves).expect("there are fewer controllers than registrants");
            self.keys.remove(at);
        }
        self.keys.push((host, key));
    }
}
