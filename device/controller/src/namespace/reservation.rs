//! Reservations of a namespace (Base 8.1.22): which hosts are registered with which key, and which of them holds the
//! reservation. A host registers once for all of its controllers.
//!
//! Left out: the commands, and how hosts are notified; both are the controllers' business.

use std::cell::{Cell, RefCell};

use nandscape_wire_nvme::reservation::{REGISTRATION_PREEMPTED, RESERVATION_PREEMPTED, RESERVATION_RELEASED};
use nandscape_wire_nvme::{IoOpcode, Status};

use super::note::{ReservationsNote, host_of};

/// A host, as reservations know it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Registrant {
    /// One that has an identifier.
    Host([u8; 16]),
    /// One without an identifier is another host on each controller.
    Controller(u16),
}

/// What a reservation allows to whom (Reservation Type).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    WriteExclusive = 1,
    ExclusiveAccess = 2,
    WriteExclusiveRegistrants = 3,
    ExclusiveAccessRegistrants = 4,
    WriteExclusiveAll = 5,
    ExclusiveAccessAll = 6,
}

impl Kind {
    pub(crate) fn of(value: u8) -> Option<Kind> {
        use Kind::*;
        let all = [
            WriteExclusive,
            ExclusiveAccess,
            WriteExclusiveRegistrants,
            ExclusiveAccessRegistrants,
            WriteExclusiveAll,
            ExclusiveAccessAll,
        ];
        all.into_iter().find(|kind| *kind as u8 == value)
    }

    /// Whether all registrants hold it.
    fn is_of_all(self) -> bool {
        matches!(self, Kind::WriteExclusiveAll | Kind::ExclusiveAccessAll)
    }

    /// Whether only its holder may write.
    fn is_of_one(self) -> bool {
        matches!(self, Kind::WriteExclusive | Kind::ExclusiveAccess)
    }

    /// Whether reads are restricted as writes are.
    fn restricts_reads(self) -> bool {
        matches!(self, Kind::ExclusiveAccess | Kind::ExclusiveAccessRegistrants | Kind::ExclusiveAccessAll)
    }
}

/// What a command does to a namespace, as reservations see it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    Read,
    Write,
}

impl Access {
    /// That of an I/O command.
    pub(crate) fn of(opcode: u8) -> Access {
        match IoOpcode(opcode) {
            IoOpcode::READ | IoOpcode::COMPARE | IoOpcode::VERIFY => Access::Read,
            _ => Access::Write,
        }
    }
}

/// Hosts that can be registered at a time. Registrations outlast connections, so that without a limit their number has none.
const MOST_REGISTRANTS: usize = 256;

/// A host to be notified, and of what.
pub(crate) type Notice = (Registrant, u8);

/// See the file.
#[derive(Default)]
pub(crate) struct Reservations {
    /// A reservation is held.
    is_held: Cell<bool>,
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    generation: u32,
    keys: Vec<(Registrant, u64)>,
    /// The type, and who acquired it.
    holder: Option<(Kind, Registrant)>,
    persists: bool,
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

impl State {
    fn key_of(&self, host: Registrant) -> Option<u64> {
        self.keys.iter().find(|(each, _)| *each == host).map(|(_, key)| *key)
    }

    /// A registrant whose key is right.
    fn check(&self, host: Registrant, key: u64) -> Result<(), Status> {
        if self.key_of(host) == Some(key) { Ok(()) } else { Err(Status::RESERVATION_CONFLICT) }
    }

    fn holds(&self, host: Registrant) -> bool {
        match self.holder {
            Some((kind, _)) if kind.is_of_all() => self.key_of(host).is_some(),
            Some((_, holder)) => holder == host,
            None => false,
        }
    }

    fn bump(&mut self) {
        self.generation = self.generation.wrapping_add(1);
    }

    /// Ends the reservation; the registrants that are told, other than `by`.
    fn release(&mut self, by: Registrant) -> Vec<Notice> {
        match self.holder.take() {
            Some((kind, _)) if !kind.is_of_one() => self.others(by, RESERVATION_RELEASED),
            _ => Vec::new(),
        }
    }

    fn others(&self, than: Registrant, kind: u8) -> Vec<Notice> {
        self.keys.iter().filter(|(host, _)| *host != than).map(|(host, _)| (*host, kind)).collect()
    }

    /// Removes a registrant, and with it the reservation that it holds alone.
    fn remove(&mut self, host: Registrant) -> Vec<Notice> {
        self.keys.retain(|(each, _)| *each != host);
        match self.holder {
            Some((kind, _)) if kind.is_of_all() && !self.keys.is_empty() => Vec::new(),
            Some((kind, holder)) if kind.is_of_all() || holder == host => self.release(host),
            _ => Vec::new(),
        }
    }
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
        let state = self.state.borrow();
        let Some((kind, _)) = state.holder else { return Ok(()) };
        let is_registrant = state.key_of(host).is_some() && !kind.is_of_one();
        let is_open = access == Access::Read && !kind.restricts_reads();
        match is_open || is_registrant || state.holds(host) {
            true => Ok(()),
            false => Err(Status::RESERVATION_CONFLICT),
        }
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.borrow_mut();
        let result = change(&mut state);
        self.is_held.set(state.holder.is_some());
        result
    }

    /// Registers a host.
    pub(crate) fn register(&self, host: Registrant, key: u64) -> Result<(), Status> {
        self.change(|state| {
            match state.key_of(host) {
                Some(registered) if registered != key => return Err(Status::RESERVATION_CONFLICT),
                Some(_) => {}
                // No status is given for it but that of a controller without the means.
                None if state.keys.len() == MOST_REGISTRANTS => return Err(Status::INTERNAL_ERROR),
                None => state.keys.push((host, key)),
            }
            state.bump();
            Ok(())
        })
    }

    /// Unregisters a host. Without a key it need not be right.
    pub(crate) fn unregister(&self, host: Registrant, key: Option<u64>) -> Result<Vec<Notice>, Status> {
        self.change(|state| {
            let registered = state.key_of(host).ok_or(Status::RESERVATION_CONFLICT)?;
            state.check(host, key.unwrap_or(registered))?;
            state.bump();
            Ok(state.remove(host))
        })
    }

    /// Replaces the key of a host. Without a key the old one need not be right.
    pub(crate) fn replace(&self, host: Registrant, key: Option<u64>, new: u64) -> Result<(), Status> {
        self.change(|state| {
            let registered = state.key_of(host).ok_or(Status::RESERVATION_CONFLICT)?;
            state.check(host, key.unwrap_or(registered))?;
            state.keys.iter_mut().filter(|(each, _)| *each == host).for_each(|(_, key)| *key = new);
            state.bump();
            Ok(())
        })
    }

    /// Acquires a reservation.
    pub(crate) fn acquire(&self, host: Registrant, key: u64, kind: Kind) -> Result<(), Status> {
        self.change(|state| {
            state.check(host, key)?;
            match state.holder {
                Some((held, _)) if held != kind || !state.holds(host) => Err(Status::RESERVATION_CONFLICT),
                Some(_) => Ok(()),
                None => {
                    state.holder = Some((kind, host));
                    Ok(())
                }
            }
        })
    }

    /// Unregisters the hosts whose key is `victim`, and takes the reservation over where they hold it. Who was
    /// unregistered, and who is notified.
    pub(crate) fn preempt(
        &self,
        host: Registrant,
        key: u64,
        victim: u64,
        kind: Kind,
    ) -> Result<(Vec<Registrant>, Vec<Notice>), Status> {
        self.change(|state| {
            state.check(host, key)?;
            let of_all = state.holder.is_some_and(|(kind, _)| kind.is_of_all());
            let takes_all = of_all && victim == 0;
            if victim == 0 && !takes_all {
                return Err(Status::INVALID_FIELD);
            }
            let holder_key = state.holder.and_then(|(_, holder)| state.key_of(holder));
            let takes_over = takes_all || !of_all && state.holder.is_some() && holder_key == Some(victim);
            let is_victim = |(each, key): &(Registrant, u64)| *each != host && (takes_all || *key == victim);
            let victims: Vec<Registrant> =
                state.keys.iter().filter(|each| is_victim(each)).map(|(each, _)| *each).collect();
            if victims.is_empty() && !takes_over {
                return Err(Status::RESERVATION_CONFLICT);
            }
            let before = state.holder;
            let mut notices: Vec<Notice> = Vec::new();
            for victim in &victims {
                let held = !of_all && before.is_some_and(|(_, holder)| holder == *victim);
                notices.push((*victim, if held { RESERVATION_PREEMPTED } else { REGISTRATION_PREEMPTED }));
            }
            state.keys.retain(|(each, _)| !victims.contains(each));
            if takes_over {
                state.holder = Some((kind, host));
                // Those who are left learn of it if they shared the reservation before, and it is another now.
                if before.is_some_and(|(before, _)| !before.is_of_one() && before != kind) {
                    notices.extend(state.others(host, RESERVATION_RELEASED));
                }
            }
            state.bump();
            Ok((victims, notices))
        })
    }

    /// Releases a reservation that the host holds; any other stays.
    pub(crate) fn release(&self, host: Registrant, key: u64, kind: Kind) -> Result<Vec<Notice>, Status> {
        self.change(|state| {
            state.check(host, key)?;
            match state.holder {
                Some((held, _)) if state.holds(host) && held != kind => Err(Status::INVALID_FIELD),
                Some(_) if state.holds(host) => Ok(state.release(host)),
                _ => Ok(Vec::new()),
            }
        })
    }

    /// Unregisters all hosts, and ends the reservation.
    pub(crate) fn clear(&self, host: Registrant, key: u64) -> Result<Vec<Notice>, Status> {
        self.change(|state| {
            state.check(host, key)?;
            let notices = state.others(host, RESERVATION_PREEMPTED);
            (state.keys, state.holder) = (Vec::new(), None);
            state.bump();
            Ok(notices)
        })
    }

    /// A host has left for good that has no identifier to come back with.
    pub(crate) fn forget(&self, host: Registrant) -> Vec<Notice> {
        self.change(|state| if state.key_of(host).is_some() { state.remove(host) } else { Vec::new() })
    }

    /// Whether registrations and the reservation outlast a loss of power.
    pub(crate) fn persists(&self) -> bool {
        self.state.borrow().persists
    }

    pub(crate) fn set_persists(&self, persists: bool) {
        self.state.borrow_mut().persists = persists;
    }

    /// What outlasts a loss of power.
    pub(super) fn note(&self) -> ReservationsNote {
        let state = self.state.borrow();
        if !state.persists {
            return ReservationsNote::default();
        }
        let keys = state.keys.iter().filter_map(|(host, key)| Some((host_of(*host)?, *key)));
        let holder = state.holder.and_then(|(kind, host)| Some((kind as u8, host_of(host)?)));
        ReservationsNote { persists: true, generation: state.generation, keys: keys.collect(), holder }
    }

    /// As they were noted.
    pub(super) fn of_note(note: &ReservationsNote) -> Reservations {
        let all = Reservations::default();
        all.change(|state| {
            (state.persists, state.generation) = (note.persists, note.generation);
            state.keys = note.keys.iter().map(|(host, key)| (Registrant::Host(*host), *key)).collect();
            let holder = note.holder.and_then(|(kind, host)| Some((Kind::of(kind)?, Registrant::Host(host))));
            state.holder = holder.filter(|(_, host)| state.key_of(*host).is_some());
        });
        all
    }

    /// Power was lost.
    pub(crate) fn power_lost(&self) {
        self.change(|state| {
            if !state.persists {
                (state.keys, state.holder) = (Vec::new(), None);
            }
        });
    }

    pub(crate) fn report(&self) -> Report {
        let state = self.state.borrow();
        Report {
            generation: state.generation,
            kind: state.holder.map_or(0, |(kind, _)| kind as u8),
            persists: state.persists,
            registrants: state.keys.iter().map(|(host, key)| (*host, *key, state.holds(*host))).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Registrant = Registrant::Host([1; 16]);
    const B: Registrant = Registrant::Host([2; 16]);
    const C: Registrant = Registrant::Controller(3);
    const KINDS: [Kind; 6] = [
        Kind::WriteExclusive,
        Kind::ExclusiveAccess,
        Kind::WriteExclusiveRegistrants,
        Kind::ExclusiveAccessRegistrants,
        Kind::WriteExclusiveAll,
        Kind::ExclusiveAccessAll,
    ];

    /// A and B are registered with keys 1 and 2, and A has acquired.
    fn held(kind: Kind) -> Reservations {
        let all = Reservations::default();
        all.register(A, 1).unwrap();
        all.register(B, 2).unwrap();
        all.acquire(A, 1, kind).unwrap();
        all
    }

    /// The figure of the specification: a holder, a registrant, another host, each reading and writing.
    #[test]
    fn each_type_allows_what_the_specification_says() {
        let expected = ["++ +- +-", "++ -- --", "++ ++ +-", "++ ++ --", "++ ++ +-", "++ ++ --"];
        for (kind, expected) in KINDS.into_iter().zip(expected) {
            assert_eq!(Kind::of(kind as u8), Some(kind));
            let all = held(kind);
            let may = |host| {
                let sign = |access| if all.check_access(host, access).is_ok() { '+' } else { '-' };
                [sign(Access::Read), sign(Access::Write)].iter().collect::<String>()
            };
            assert_eq!([A, B, C].map(may).join(" "), expected, "{kind:?}");
        }
        assert!(Kind::of(0).is_none() && Kind::of(7).is_none());
    }

    #[test]
    fn keys_are_checked() {
        let all = held(Kind::WriteExclusive);
        let conflict = Err(Status::RESERVATION_CONFLICT);
        assert_eq!(all.register(A, 9), conflict);
        assert_eq!(all.register(A, 1), Ok(()), "again, with the same key");
        assert_eq!(all.acquire(B, 2, Kind::WriteExclusive), conflict);
        assert_eq!(all.acquire(A, 9, Kind::WriteExclusive), conflict);
        assert_eq!(all.acquire(A, 1, Kind::ExclusiveAccess), conflict, "of another type");
        assert_eq!(all.acquire(A, 1, Kind::WriteExclusive), Ok(()));
        assert_eq!(all.acquire(C, 0, Kind::WriteExclusive), conflict, "not registered");
        assert_eq!(all.replace(B, Some(9), 5), conflict);
        assert_eq!(all.replace(B, None, 5), Ok(()));
        assert_eq!(all.unregister(B, Some(2)).map(drop), conflict);
        assert_eq!(all.unregister(B, Some(5)), Ok(vec![]));
        assert_eq!(all.unregister(B, None).map(drop), conflict);
        assert_eq!(all.release(A, 1, Kind::ExclusiveAccess), Err(Status::INVALID_FIELD));
        assert_eq!(all.report().generation, 5);
    }

    #[test]
    fn registrants_are_bounded() {
        let all = Reservations::default();
        let host = |number: usize| Registrant::Host((number as u128).to_le_bytes());
        (0..MOST_REGISTRANTS).for_each(|number| all.register(host(number), 1).unwrap());
        assert_eq!(all.register(host(MOST_REGISTRANTS), 1), Err(Status::INTERNAL_ERROR));
        assert_eq!(all.register(host(3), 1), Ok(()), "one that is registered");
        all.unregister(host(0), None).unwrap();
        assert_eq!(all.register(host(MOST_REGISTRANTS), 1), Ok(()));
    }

    #[test]
    fn a_reservation_ends_with_its_holder() {
        for kind in KINDS {
            let all = held(kind);
            let notices = all.unregister(A, Some(1)).unwrap();
            let (of_all, of_one) = (kind.is_of_all(), kind.is_of_one());
            assert_eq!(all.is_held(), of_all, "{kind:?}");
            let told = if of_one || of_all { vec![] } else { vec![(B, RESERVATION_RELEASED)] };
            assert_eq!(notices, told, "{kind:?}");
            all.unregister(B, Some(2)).unwrap();
            assert!(!all.is_held());
            let all = held(kind);
            let told = if of_one { vec![] } else { vec![(B, RESERVATION_RELEASED)] };
            assert_eq!(all.release(A, 1, kind), Ok(told));
            assert_eq!((all.is_held(), all.report().registrants.len()), (false, 2));
            assert_eq!(all.release(A, 1, kind), Ok(vec![]), "there is none to release");
        }
    }

    #[test]
    fn preemption_takes_over() {
        let all = held(Kind::WriteExclusive);
        assert_eq!(all.preempt(B, 2, 0, Kind::ExclusiveAccess).map(drop), Err(Status::INVALID_FIELD));
        assert_eq!(all.preempt(B, 2, 7, Kind::ExclusiveAccess).map(drop), Err(Status::RESERVATION_CONFLICT));
        let taken = all.preempt(B, 2, 1, Kind::ExclusiveAccess).unwrap();
        assert_eq!(taken, (vec![A], vec![(A, RESERVATION_PREEMPTED)]));
        let report = all.report();
        assert_eq!((report.kind, report.registrants), (2, vec![(B, 2, true)]));
        // One that does not hold it loses its registration only.
        all.register(C, 3).unwrap();
        assert_eq!(all.preempt(B, 2, 3, Kind::WriteExclusive).unwrap(), (vec![C], vec![(C, REGISTRATION_PREEMPTED)]));
        assert_eq!(all.report().kind, 2);
        // Key 0 stands for all, where all hold it.
        let all = held(Kind::WriteExclusiveAll);
        all.register(C, 3).unwrap();
        let (victims, notices) = all.preempt(B, 2, 0, Kind::WriteExclusive).unwrap();
        assert_eq!((victims, notices.len(), all.report().registrants), (vec![A, C], 2, vec![(B, 2, true)]));
        // A holder that preempts its own key changes the type.
        let all = held(Kind::WriteExclusiveRegistrants);
        let (victims, notices) = all.preempt(A, 1, 1, Kind::WriteExclusive).unwrap();
        assert_eq!((victims, notices, all.report().kind), (vec![], vec![(B, RESERVATION_RELEASED)], 1));
        let notices = all.clear(B, 2).unwrap();
        assert_eq!((notices, all.is_held()), (vec![(A, RESERVATION_PREEMPTED)], false));
    }

    #[test]
    fn power_ends_what_does_not_persist() {
        let all = held(Kind::WriteExclusive);
        all.set_persists(true);
        all.power_lost();
        assert!(all.is_held());
        let again = Reservations::of_note(&all.note());
        assert_eq!((again.report().registrants, again.is_held()), (all.report().registrants, true));
        all.set_persists(false);
        all.power_lost();
        assert_eq!((all.is_held(), all.report().registrants), (false, vec![]));
    }
}
