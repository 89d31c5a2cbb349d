//! Clients that negotiate: a bounded number at a time, each on a thread of its own. The next client waits for a place.
//!
//! Silent clients cannot keep the others out: a client that takes too long is disconnected when another waits. A client
//! whose choice of a drive was acknowledged is never disconnected here.

use std::collections::VecDeque;
use std::net::Shutdown;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nandscape_transport_reactor::socket::Stream;

/// The places of clients that negotiate.
pub(crate) struct Negotiating {
    most: usize,
    /// The time that a client has for itself even when others wait.
    grace: Duration,
    places: Mutex<Places>,
    /// A place has become free, or a client was promised a way into a drive, or the end has come.
    changed: Condvar,
}

#[derive(Default)]
struct Places {
    next: u64,
    taken: VecDeque<Place>,
    closed: bool,
}

/// A client, in the order of arrival.
struct Place {
    number: u64,
    stream: Arc<Stream>,
    since: Instant,
    /// Whether it was promised a way into a drive.
    admitted: bool,
}

impl Negotiating {
    /// Places for `most` clients.
    pub(crate) fn new(most: usize, grace: Duration) -> Negotiating {
        Negotiating { most, grace, places: Mutex::default(), changed: Condvar::new() }
    }

    /// Waits for a place and takes it; its number. The first client that has had its time makes room. `None` once there
    /// are no places any more.
    #[expect(clippy::disallowed_methods, reason = "a client's time is in real time")]
    pub(crate) fn enter(&self, stream: Arc<Stream>) -> Option<u64> {
        let mut places = self.places();
        while places.taken.len() >= self.most && !places.closed {
            let oldest = places.taken.iter().position(|place| !place.admitted);
            let left = oldest.map(|index| self.grace.saturating_sub(places.taken[index].since.elapsed()));
            match (oldest.filter(|_| left.is_some_and(|left| left.is_zero())), left) {
                (Some(late), _) => {
                    let place = places.taken.remove(late).expect("just found");
                    place.stream.shutdown(Shutdown::Both);
                }
                (None, left) => {
                    // Admitted clients leave soon by themselves.
                    let waited = self.changed.wait_timeout(places, left.unwrap_or(self.grace));
                    places = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
            }
        }
        if places.closed {
            return None;
        }
        let number = places.next;
        places.next += 1;
        places.taken.push_back(Place { number, stream, since: Instant::now(), admitted: false });
        Some(number)
    }

    /// A client's choice of a drive is about to be acknowledged. Whether it still has its place, which it then keeps.
    pub(crate) fn admit(&self, number: u64) -> bool {
        let mut places = self.places();
        let place = places.taken.iter_mut().find(|place| place.number == number);
        place.map(|place| place.admitted = true).is_some()
    }

    /// A client's negotiation has ended; whether it had kept its place until now.
    pub(crate) fn leave(&self, number: u64) -> bool {
        let mut places = self.places();
        let place = places.taken.iter().position(|place| place.number == number);
        let left = place.and_then(|place| places.taken.remove(place)).is_some();
        self.changed.notify_all();
        left
    }

    /// From now on [`Negotiating::enter`] returns `None`.
    pub(crate) fn close(&self) {
        self.places().closed = true;
        self.changed.notify_all();
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    fn stream() -> Arc<Stream> {
        Arc::new(Stream::Unix(UnixStream::pair().unwrap().0))
    }

    #[test]
    fn who_was_admitted_keeps_its_place_and_who_is_late_makes_room() {
        let negotiating = Negotiating::new(2, Duration::ZERO);
        let [first, second] = [0, 1].map(|_| negotiating.enter(stream()).unwrap());
        assert!(negotiating.admit(first));
        let third = negotiating.enter(stream()).unwrap();
        assert!(!negotiating.admit(second) && !negotiating.leave(second), "it made room");
        assert!(negotiating.admit(third) && negotiating.leave(first));
        assert!(negotiating.enter(stream()).is_some());
        negotiating.close();
        assert!(negotiating.enter(stream()).is_none());
    }

    #[test]
    fn who_comes_next_waits_until_somebody_leaves() {
        let negotiating = Negotiating::new(1, Duration::from_secs(3_600));
        let first = negotiating.enter(stream()).unwrap();
        std::thread::scope(|scope| {
            let next = scope.spawn(|| negotiating.enter(stream()));
            assert!(negotiating.leave(first));
            assert!(next.join().unwrap().is_some());
        });
    }
}
