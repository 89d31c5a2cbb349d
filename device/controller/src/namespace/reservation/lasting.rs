//! Reservations over a loss of power, if a host set Persist Through Power Loss.

use super::{Kind, Registrant, Reservations};
use crate::namespace::note::{ReservationsNote, host_of};

impl Reservations {
    /// Whether registrations and the reservation outlast a loss of power.
    pub(crate) fn persists(&self) -> bool {
        self.registrations.borrow().persists
    }

    pub(crate) fn set_persists(&self, persists: bool) {
        self.registrations.borrow_mut().persists = persists;
    }

    /// The state that outlasts a loss of power.
    pub(in crate::namespace) fn note(&self) -> ReservationsNote {
        let registrations = self.registrations.borrow();
        if !registrations.persists {
            return ReservationsNote::default();
        }
        let keys = registrations.keys.iter().filter_map(|(host, key)| Some((host_of(*host)?, *key)));
        let holder = registrations.holder.and_then(|(kind, host)| {
            // If all registrants hold it, the host that acquired it may be gone.
            let mut all = registrations.keys.iter().map(|(host, _)| *host);
            let host = if kind.is_of_all() { all.find_map(host_of) } else { host_of(host) };
            Some((kind as u8, host?))
        });
        ReservationsNote { persists: true, generation: registrations.generation, keys: keys.collect(), holder }
    }

    /// Restores noted reservations.
    pub(in crate::namespace) fn of_note(note: &ReservationsNote) -> Reservations {
        let all = Reservations::default();
        all.change(|registrations| {
            (registrations.persists, registrations.generation) = (note.persists, note.generation);
            registrations.keys = note.keys.iter().map(|(host, key)| (Registrant::Host(*host), *key)).collect();
            let holder = note.holder.and_then(|(kind, host)| Some((Kind::of(kind)?, Registrant::Host(host))));
            registrations.holder = holder.filter(|(_, host)| registrations.key_of(*host).is_some());
        });
        all
    }

    /// Power was lost.
    pub(crate) fn power_lost(&self) {
        self.change(|registrations| {
            if !registrations.persists {
                (registrations.keys, registrations.holder) = (Vec::new(), None);
            }
        });
    }
}
