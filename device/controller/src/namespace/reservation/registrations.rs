//! The registrants of a namespace with their keys, and the holder of its reservation: checks, and the consequences of a
//! removal.

use nandscape_wire_nvme::Status;
use nandscape_wire_nvme::reservation::RESERVATION_RELEASED;

use super::{Kind, Notice, Registrant};

/// See the file.
#[derive(Default)]
pub(super) struct Registrations {
    pub(super) generation: u32,
    pub(super) keys: Vec<(Registrant, u64)>,
    /// The type, and who acquired it.
    pub(super) holder: Option<(Kind, Registrant)>,
    pub(super) persists: bool,
}

impl Registrations {
    pub(super) fn key_of(&self, host: Registrant) -> Option<u64> {
        self.keys.iter().find(|(each, _)| *each == host).map(|(_, key)| *key)
    }

    /// Checks that a host is registered with this key.
    pub(super) fn check(&self, host: Registrant, key: u64) -> Result<(), Status> {
        if self.key_of(host) == Some(key) { Ok(()) } else { Err(Status::RESERVATION_CONFLICT) }
    }

    pub(super) fn holds(&self, host: Registrant) -> bool {
        match self.holder {
            Some((kind, _)) if kind.is_of_all() => self.key_of(host).is_some(),
            Some((_, holder)) => holder == host,
            None => false,
        }
    }

    pub(super) fn bump(&mut self) {
        self.generation = self.generation.wrapping_add(1);
    }

    /// Ends the reservation. Returns the notifications of the registrants other than `by`.
    pub(super) fn release(&mut self, by: Registrant) -> Vec<Notice> {
        match self.holder.take() {
            Some((kind, _)) if !kind.is_of_one() => self.others(by, RESERVATION_RELEASED),
            _ => Vec::new(),
        }
    }

    pub(super) fn others(&self, than: Registrant, kind: u8) -> Vec<Notice> {
        self.keys.iter().filter(|(host, _)| *host != than).map(|(host, _)| (*host, kind)).collect()
    }

    /// Removes a registrant, and the reservation if no other registrant holds it.
    pub(super) fn remove(&mut self, host: Registrant) -> Vec<Notice> {
        self.keys.retain(|(each, _)| *each != host);
        match self.holder {
            Some((kind, _)) if kind.is_of_all() && !self.keys.is_empty() => Vec::new(),
            Some((kind, holder)) if kind.is_of_all() || holder == host => self.release(host),
            _ => Vec::new(),
        }
    }
}
