//! Those who negotiate: so many at a time. When there is no room for the next, who has taken longest makes it: silent
//! clients cannot keep the others out.

use std::collections::VecDeque;
use std::net::Shutdown;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nandscape_transport_reactor::socket::Stream;

/// Sockets of those who negotiate, in the order in which they came.
pub(crate) struct Negotiating {
    most: usize,
    places: Mutex<Places>,
}

#[derive(Default)]
struct Places {
    next: u64,
    streams: VecDeque<(u64, Arc<Stream>)>,
}

impl Negotiating {
    /// Room for `most`.
    pub(crate) fn new(most: usize) -> Negotiating {
        Negotiating { most, places: Mutex::default() }
    }

    /// One begins; its number. If there is no room, the first of the others is hung up on.
    pub(crate) fn enter(&self, stream: Arc<Stream>) -> u64 {
        let mut places = self.places();
        if places.streams.len() >= self.most
            && let Some((_, oldest)) = places.streams.pop_front()
        {
            oldest.shutdown(Shutdown::Both);
        }
        let number = places.next;
        places.next += 1;
        places.streams.push_back((number, stream));
        number
    }

    /// One has come to an end; whether it had not been hung up on to make room.
    pub(crate) fn leave(&self, number: u64) -> bool {
        let mut places = self.places();
        let place = places.streams.iter().position(|(one, _)| *one == number);
        place.and_then(|place| places.streams.remove(place)).is_some()
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
