//! Clients that negotiate: a bounded number at a time, each on a thread of its own. The next client waits until there is
//! room.
//!
//! Silent clients cannot keep the others out: a client that takes too long is disconnected when another waits. A client
//! whose choice of a drive was acknowledged is never disconnected here.

use std::collections::VecDeque;
use std::net::Shutdown;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::socket::Stream;

/// The negotiations under way.
pub struct Negotiating {
    most: usize,
    /// The time that a client has even when others wait.
    grace: Duration,
    negotiations: Mutex<Negotiations>,
    /// A negotiation has ended or was admitted, or the listener ends.
    changed: Condvar,
}

#[derive(Default)]
struct Negotiations {
    next: u64,
    under_way: VecDeque<Negotiation>,
    closed: bool,
}

/// The negotiation of one client.
struct Negotiation {
    number: u64,
    stream: Arc<Stream>,
    since: Instant,
    /// Whether its choice of a drive is acknowledged.
    admitted: bool,
}

impl Negotiating {
    /// Room for `most` negotiations at a time.
    pub fn new(most: usize, grace: Duration) -> Negotiating {
        Negotiating { most, grace, negotiations: Mutex::default(), changed: Condvar::new() }
    }

    /// Waits until there is room and begins a negotiation; its number. The first client that has had its time is
    /// disconnected to make room. `None` after [`Negotiating::close`].
    #[expect(clippy::disallowed_methods, reason = "a client's time is in real time")]
    pub fn enter(&self, stream: Arc<Stream>) -> Option<u64> {
        let mut negotiations = self.negotiations();
        while negotiations.under_way.len() >= self.most && !negotiations.closed {
            let oldest = negotiations.under_way.iter().position(|negotiation| !negotiation.admitted);
            let left = oldest.map(|index| self.grace.saturating_sub(negotiations.under_way[index].since.elapsed()));
            match (oldest.filter(|_| left.is_some_and(|left| left.is_zero())), left) {
                (Some(late), _) => {
                    let negotiation = negotiations.under_way.remove(late).expect("just found");
                    negotiation.stream.shutdown(Shutdown::Both);
                }
                (None, left) => {
                    // Admitted clients leave soon by themselves.
                    let waited = self.changed.wait_timeout(negotiations, left.unwrap_or(self.grace));
                    negotiations = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
            }
        }
        if negotiations.closed {
            return None;
        }
        let number = negotiations.next;
        negotiations.next += 1;
        negotiations.under_way.push_back(Negotiation { number, stream, since: Instant::now(), admitted: false });
        Some(number)
    }

    /// A client's choice of a drive is about to be acknowledged. Whether it is still connected, and from now on stays so.
    pub fn admit(&self, number: u64) -> bool {
        let mut negotiations = self.negotiations();
        let negotiation = negotiations.under_way.iter_mut().find(|negotiation| negotiation.number == number);
        negotiation.map(|negotiation| negotiation.admitted = true).is_some()
    }

    /// A client's negotiation has ended; whether it was still connected.
    pub fn leave(&self, number: u64) -> bool {
        let mut negotiations = self.negotiations();
        let negotiation = negotiations.under_way.iter().position(|negotiation| negotiation.number == number);
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
    use std::os::unix::net::UnixStream;

    use super::*;

    fn stream() -> Arc<Stream> {
        Arc::new(Stream::Unix(UnixStream::pair().unwrap().0))
    }

    #[test]
    fn an_admitted_client_stays_and_a_late_one_makes_room() {
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
    fn the_next_client_waits_until_one_leaves() {
        let negotiating = Negotiating::new(1, Duration::from_secs(3_600));
        let first = negotiating.enter(stream()).unwrap();
        std::thread::scope(|scope| {
            let next = scope.spawn(|| negotiating.enter(stream()));
            assert!(negotiating.leave(first));
            assert!(next.join().unwrap().is_some());
        });
    }
}
