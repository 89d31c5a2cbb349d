//! Those who negotiate: so many at a time. When there is no room for the next, who has taken longest makes it: silent
//! clients cannot keep the others out.

use std::collections::VecDeque;
use std::net::Shutdown;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nandscape_transport_reactor::socket::Stream;

/// Sockets of those who negotiate, in the order in which they came.
pub(crate) struct Negotiating {
    most: usize,
    streams: Mutex<VecDeque<Arc<Stream>>>,
}

impl Negotiating {
    /// Room for `most`.
    pub(crate) fn new(most: usize) -> Negotiating {
        Negotiating { most, streams: Mutex::default() }
    }

    /// One begins. If there is no room, the first of the others is hung up on.
    pub(crate) fn enter(&self, stream: Arc<Stream>) {
        let mut streams = self.streams();
        if streams.len() >= self.most
            && let Some(oldest) = streams.pop_front()
        {
            oldest.shutdown(Shutdown::Both);
        }
        streams.push_back(stream);
    }

    /// One has come to an end; `None` when it was hung up on to make room.
    pub(crate) fn leave(&self, stream: Arc<Stream>) -> Option<Stream> {
        let mut streams = self.streams();
        let place = streams.iter().position(|one| Arc::ptr_eq(one, &stream))?;
        streams.remove(place);
        Arc::into_inner(stream)
    }

    fn streams(&self) -> MutexGuard<'_, VecDeque<Arc<Stream>>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
