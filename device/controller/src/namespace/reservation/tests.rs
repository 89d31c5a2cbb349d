//! Types, keys, release, preemption and bounds of reservations, without a host.

use nandscape_wire_nvme::Status;
use nandscape_wire_nvme::reservation::{REGISTRATION_PREEMPTED, RESERVATION_PREEMPTED, RESERVATION_RELEASED};

use super::actions::MOST_REGISTRANTS;
use super::{Access, Kind, Registrant, Reservations};

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

/// No host has a controller.
fn gone(_: Registrant) -> bool {
    false
}

/// A and B are registered with keys 1 and 2, and A has acquired.
fn held(kind: Kind) -> Reservations {
    let all = Reservations::default();
    all.register(A, 1, gone).unwrap();
    all.register(B, 2, gone).unwrap();
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
    assert_eq!(all.register(A, 9, gone), conflict);
    assert_eq!(all.register(A, 1, gone), Ok(()), "again, with the same key");
    assert_eq!(all.acquire(B, 2, Kind::WriteExclusive), conflict);
    assert_eq!(all.acquire(A, 9, Kind::WriteExclusive), conflict);
    assert_eq!(all.acquire(A, 1, Kind::ExclusiveAccess), conflict, "of another type");
    assert_eq!(all.acquire(A, 1, Kind::WriteExclusive), Ok(()));
    assert_eq!(all.acquire(C, 0, Kind::WriteExclusive), conflict, "not registered");
    assert_eq!(all.replace(B, Some(9), 5, gone), conflict);
    assert_eq!(all.replace(C, Some(0), 5, gone), conflict, "not registered");
    assert_eq!(all.replace(B, None, 5, gone), Ok(()));
    assert_eq!(all.unregister(B, Some(2)).map(drop), conflict);
    assert_eq!(all.unregister(B, Some(5)), Ok(vec![]));
    assert_eq!(all.unregister(B, None).map(drop), conflict);
    assert_eq!(all.release(A, 1, Kind::ExclusiveAccess), Err(Status::INVALID_FIELD));
    assert_eq!(all.report().generation, 5);
    assert_eq!(all.replace(B, None, 6, gone), Ok(()), "it need not be registered");
    assert_eq!(all.report().registrants[1], (B, 6, false));
}

/// Hosts without a controller make room, except for the only holder of the reservation.
#[test]
fn registrants_are_bounded_and_none_is_refused() {
    for (kind, holder_stays) in [(Kind::WriteExclusive, true), (Kind::WriteExclusiveAll, false)] {
        let all = Reservations::default();
        let host = |number: usize| Registrant::Host((number as u128).to_le_bytes());
        (0..MOST_REGISTRANTS).for_each(|number| all.register(host(number), 1, gone).unwrap());
        all.acquire(host(0), 1, kind).unwrap();
        let is_here = |each| each == host(1);
        assert_eq!(all.register(host(3), 1, is_here), Ok(()), "one that is registered");
        assert_eq!(all.register(host(MOST_REGISTRANTS), 1, is_here), Ok(()));
        let report = all.report();
        let is_there = |number| report.registrants.iter().any(|(each, ..)| *each == host(number));
        assert_eq!(report.registrants.len(), MOST_REGISTRANTS);
        let there = [0, 1, 2, MOST_REGISTRANTS].map(is_there);
        assert_eq!((there, all.is_held()), ([holder_stays, true, !holder_stays, true], true), "{kind:?}");
    }
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
    assert_eq!(taken, (vec![A], vec![(A, REGISTRATION_PREEMPTED)]));
    let report = all.report();
    assert_eq!((report.kind, report.registrants), (2, vec![(B, 2, true)]));
    // A remaining registrant is notified of another type, whatever the type was.
    let all = held(Kind::WriteExclusive);
    all.register(C, 3, gone).unwrap();
    let taken = all.preempt(B, 2, 1, Kind::ExclusiveAccess).unwrap();
    assert_eq!(taken, (vec![A], vec![(A, REGISTRATION_PREEMPTED), (C, RESERVATION_RELEASED)]));
    // A registrant that is not the holder loses only its registration.
    assert_eq!(all.preempt(B, 2, 3, Kind::WriteExclusive).unwrap(), (vec![C], vec![(C, REGISTRATION_PREEMPTED)]));
    assert_eq!(all.report().kind, 2);
    // Key 0 stands for all registrants, if all hold it.
    let all = held(Kind::WriteExclusiveAll);
    all.register(C, 3, gone).unwrap();
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
    // A reservation of all registrants stays when the host that acquired it is gone.
    let shared = held(Kind::ExclusiveAccessAll);
    shared.set_persists(true);
    shared.unregister(A, None).unwrap();
    let again = Reservations::of_note(&shared.note());
    assert_eq!((again.is_held(), again.check_access(B, Access::Write)), (true, Ok(())));
    all.set_persists(false);
    all.power_lost();
    assert_eq!((all.is_held(), all.report().registrants), (false, vec![]));
}
