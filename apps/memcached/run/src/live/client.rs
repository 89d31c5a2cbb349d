//! A client at its socket: what it sends and takes without waiting.

use std::io::{ErrorKind, Read as _, Write as _};
use std::rc::Rc;

use nandscape_apps_memcached_engine::memcached::Wire;
use nandscape_transport_reactor::socket::Stream;
use rustix::event::epoll::EventFlags;

/// Bytes read from a client in a turn.
const READ: usize = 16 << 10;
/// A client that holds less is not cut off for what others hold.
pub(super) const LITTLE: usize = 32 << 10;

/// See the file.
pub(super) struct Client {
    pub(super) stream: Stream,
    pub(super) wire: Rc<Wire>,
    pub(super) interest: EventFlags,
    /// It has hung up, and is not waited for: what its socket still has is read as its commands are served.
    pub(super) is_apart: bool,
    /// When a command of it was last served, or else when it came, as [`Sockets`] count.
    pub(super) served: u64,
    /// Commands that were served until then.
    pub(super) commands: u64,
    pub(super) is_over: bool,
    /// It is cut off: what it has sent is not served.
    pub(super) is_cut: bool,
}

impl Client {
    /// Whether it is read while many values wait for room: small commands are.
    pub(super) fn is_read(&self, is_full: bool) -> bool {
        !is_full || self.wire.held() <= LITTLE
    }

    /// Reads what it may send now. Whether anything came.
    pub(super) fn receive(&mut self, is_full: bool) -> bool {
        let mut bytes = [0; READ];
        let most = self.wire.wants().min(READ);
        if most == 0 || !self.is_read(is_full) {
            return false;
        }
        match (&self.stream).read(&mut bytes[..most]) {
            Ok(0) => {
                self.wire.hang_up();
                self.is_apart = false;
                self.interest |= EventFlags::RDHUP;
                true
            }
            Ok(count) => {
                self.wire.received(&bytes[..count]);
                true
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => false,
            Err(_) => {
                self.wire.hang_up();
                self.is_over = true;
                true
            }
        }
    }

    /// Sends what its socket takes. Whether anything moved.
    pub(super) fn send(&mut self) -> bool {
        let stream = &self.stream;
        let sent = self.wire.send(|bytes| {
            loop {
                match (&mut &*stream).write(bytes) {
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(0),
                    other => return other,
                }
            }
        });
        match sent {
            Ok(sent) => sent > 0,
            Err(_) => {
                self.wire.hang_up();
                self.is_over = true;
                true
            }
        }
    }

    /// Notes at a time whether commands were served since.
    pub(super) fn note(&mut self, now: u64) {
        if self.wire.commands() > self.commands {
            (self.commands, self.served) = (self.wire.commands(), now);
        }
    }

    /// Which client is cut off first where one must be: those that wait for the server last, those that were never served first, and of these the one
    /// that was not served for longest. What it sends does not count as long as that makes no command.
    pub(super) fn rank(&self) -> (bool, bool, u64) {
        (self.wire.is_served(), self.wire.commands() > 0, self.served)
    }

    /// The same among those that hold much: a first command may be a large one.
    pub(super) fn least_recent(&self) -> (bool, u64) {
        (self.wire.is_served(), self.served)
    }

    /// Whether it has hung up and that was noticed.
    pub(super) fn has_left(&self) -> bool {
        self.interest.contains(EventFlags::RDHUP)
    }

    /// What it is to be waited for.
    pub(super) fn wanted(&self, is_full: bool) -> EventFlags {
        let mut wanted = self.interest & EventFlags::RDHUP;
        if self.wire.wants() > 0 && !self.has_left() && self.is_read(is_full) {
            wanted |= EventFlags::IN;
        }
        if self.wire.has_output() {
            wanted |= EventFlags::OUT;
        }
        wanted
    }
}
