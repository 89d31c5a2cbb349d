//! Clients that negotiate: a bounded number at a time, each on a separate thread.
//!
//! No client keeps others out. When all places are taken, one makes room at once: a client that has sent nothing, or
//! one of an address that has more places than the newcomer's. If all have sent something and share an address, the
//! first whose time is over makes room. A client whose choice of a drive was acknowledged is never disconnected here.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Shutdown};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::socket::Stream;

/// The negotiations under way.
pub struct Negotiating {
    most: usize,
    /// The time of a client even when others wait.
    grace: Duration,
    negotiations: Mutex<Negotiations>,
    /// A negotiation has ended or was admitted, or the listener ends.
    changed: Condvar,
}

/// A client's place.
#[derive(Clone)]
pub struct Place {
    number: u64,
    heard: Arc<AtomicBool>,
}

#[derive(Default)]
struct Negotiations {
    next: u64,
    under_way: VecDeque<Negotiation>,
    closed: bool,
}

/// The negotiation of one client.
struct Negotiation {
    place: Place,
    stream: Arc<Stream>,
    /// Its address; none of a client of this machine that has none.
    peer: Option<IpAddr>,
    since: Instant,
    /// Whether its choice of a drive is acknowledged.
    admitted: bool,
}

impl Place {
    /// Bytes have arrived from the client.
    pub(super) fn heard(&self) {
        self.heard.store(true, Ordering::Relaxed);
    }
}

impl Negotiation {
    /// Whether nothing has arrived from it.
    fn is_silent(&self) -> bool {
        !self.place.heard.load(Ordering::Relaxed) && !self.stream.has_input()
    }
}

impl Negotiations {
    /// The place in the list of the client that makes room for one of address `peer`, and whether it does so at once.
    fn next_to_leave(&self, peer: Option<IpAddr>) -> Option<(usize, bool)> {
        let mut of_peer = BTreeMap::<Option<IpAddr>, usize>::new();
        self.under_way.iter().for_each(|one| *of_peer.entry(one.peer).or_default() += 1);
        let places = |one: &Negotiation| of_peer[&one.peer];
        let waiting = || self.under_way.iter().enumerate().filter(|(_, one)| !one.admitted);
        // Of equal ones, the oldest.
        let most = |(index, one): &(usize, &Negotiation)| (places(one), std::cmp::Reverse(*index));
        if let Some((silent, _)) = waiting().filter(|(_, one)| one.is_silent()).max_by_key(most) {
            return Some((silent, true));
        }
        let (index, one) = waiting().max_by_key(most)?;
        Some((index, places(one) > of_peer.get(&peer).copied().unwrap_or_default() + 1))
    }
}

impl Negotiating {
    /// Room for `most` negotiations at a time.
    pub fn new(most: usize, grace: Duration) -> Negotiating {
        Negotiating { most, grace, negotiations: Mutex::default(), changed: Condvar::new() }
    }

    /// Begins a negotiation, for which another client may have to leave; `None` after [`Negotiating::close`].
    #[expect(clippy::disallowed_methods, reason = "a client's time is in real time")]
    pub fn enter(&self, stream: Arc<Stream>) -> Option<Place> {
        let peer = stream.peer();
        let mut negotiations = self.negotiations();
        while negotiations.under_way.len() >= self.most && !negotiations.closed {
            let next = negotiations.next_to_leave(peer).map(|(index, at_once)| {
                let since = negotiations.under_way[index].since;
                (index, if at_once { Duration::ZERO } else { self.grace.saturating_sub(since.elapsed()) })
            });
            match next {
                Some((index, Duration::ZERO)) => {
                    let negotiation = negotiations.under_way.remove(index).expect("just found");
                    negotiation.stream.shutdown(Shutdown::Both);
                }
                // Admitted clients leave soon by themselves.
                _ => {
                    let time = next.map_or(self.grace, |(_, left)| left);
                    let waited = self.changed.wait_timeout(negotiations, time);
                    negotiations = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
            }
        }
        if negotiations.closed {
            return None;
        }
        let place = Place { number: negotiations.next, heard: Arc::default() };
        negotiations.next += 1;
        let negotiation = Negotiation { place: place.clone(), stream, peer, since: Instant::now(), admitted: false };
        negotiations.under_way.push_back(negotiation);
        Some(place)
    }

    /// A client's choice of a drive is about to be acknowledged. Returns whether it is still connected, and from now on
    /// stays so.
    pub fn admit(&self, place: &Place) -> bool {
        let mut negotiations = self.negotiations();
        let negotiation = negotiations.under_way.iter_mut().find(|one| one.place.number == place.number);
        negotiation.map(|negotiation| negotiation.admitted = true).is_some()
    }

    /// A client's negotiation has ended; whether it was still connected.
    pub fn leave(&self, place: &Place) -> bool {
        let mut negotiations = self.negotiations();
        let negotiation = negotiations.under_way.iter().position(|one| one.place.number == place.number);
        let left = negotiation.and_then(|negotiation| negotiations.under_way.remove(negotiation)).is_some();
        self.changed.notify_all();
        left
    }

    /// From now on [`Negotiating::enter`] returns `None`.
    pub fn close(&self) {
        self.negotiations().closed = true;
        self.changed.notify_all();
    }

    fn negotiations(&self) -> MutexGuard<'_, Negotiations> {
        self.negotiations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::net::UnixStream;

    use super::*;

    /// Longer than any test.
    const AN_HOUR: Duration = Duration::from_secs(3_600);

    /// A client that sends nothing.
    fn silent() -> Arc<Stream> {
        Arc::new(Stream::Unix(UnixStream::pair().unwrap().0))
    }

    /// A client that has sent something.
    fn talks() -> Arc<Stream> {
        let (here, mut there) = UnixStream::pair().unwrap();
        there.write_all(b"x").unwrap();
        Arc::new(Stream::Unix(here))
    }

    #[test]
    fn an_admitted_client_stays_and_a_late_one_makes_room() {
        let negotiating = Negotiating::new(2, Duration::ZERO);
        let [first, second] = [0, 1].map(|_| negotiating.enter(talks()).unwrap());
        assert!(negotiating.admit(&first));
        let third = negotiating.enter(talks()).unwrap();
        assert!(!negotiating.admit(&second) && !negotiating.leave(&second), "it made room");
        assert!(negotiating.admit(&third) && negotiating.leave(&first));
        assert!(negotiating.enter(talks()).is_some());
        negotiating.close();
        assert!(negotiating.enter(talks()).is_none());
    }

    #[test]
    fn the_next_client_waits_until_one_leaves() {
        let negotiating = Negotiating::new(1, AN_HOUR);
        let first = negotiating.enter(talks()).unwrap();
        std::thread::scope(|scope| {
            let next = scope.spawn(|| negotiating.enter(talks()));
            assert!(negotiating.leave(&first));
            assert!(next.join().unwrap().is_some());
        });
    }

    #[test]
    fn silent_clients_however_many_make_room_at_once() {
        let negotiating = Negotiating::new(4, AN_HOUR);
        let talker = negotiating.enter(talks()).unwrap();
        let heard = negotiating.enter(silent()).unwrap();
        heard.heard();
        let silents: Vec<Place> = (0..1_000).map(|_| negotiating.enter(silent()).unwrap()).collect();
        let late = negotiating.enter(talks()).unwrap();
        assert!([&talker, &heard, &late].into_iter().all(|place| negotiating.admit(place)));
        let left = silents.iter().filter(|place| negotiating.admit(place)).count();
        assert_eq!(left, 1, "the others made room for those after them");
    }

    #[test]
    fn an_address_with_many_places_makes_room_at_once_for_another() {
        let [many, one, new] = ["10.0.0.1", "10.0.0.2", "10.0.0.3"].map(|address| Some(address.parse().unwrap()));
        let mut negotiations = Negotiations::default();
        #[expect(clippy::disallowed_methods, reason = "a client's time is in real time")]
        let since = Instant::now();
        for (number, peer) in [one, many, many, many].into_iter().enumerate() {
            let place = Place { number: number as u64, heard: Arc::default() };
            negotiations.under_way.push_back(Negotiation {
                place,
                stream: talks(),
                peer,
                since,
                admitted: number == 1,
            });
        }
        assert_eq!(negotiations.next_to_leave(new), Some((2, true)), "the oldest that is not admitted");
        assert_eq!(negotiations.next_to_leave(one), Some((2, true)));
        assert_eq!(negotiations.next_to_leave(many), Some((2, false)), "its own have their time");
        negotiations.under_way.iter_mut().for_each(|one| one.admitted = true);
        assert_eq!(negotiations.next_to_leave(new), None);
    }
}
