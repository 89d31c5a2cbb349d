//! Sleeping until an instant, to the nanosecond, or until a socket or another thread needs service, in one system
//! call.

use std::io;
use std::mem::MaybeUninit;
use std::num::NonZeroU64;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};

use nandscape_sim::Span;
use nix::sys::epoll::{Epoll, EpollEvent, EpollTimeout};
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd};
use rustix::io::Errno;

use crate::client::Interest;

/// Wakes a loop from another thread.
#[derive(Clone)]
pub(crate) struct Waker {
    shared: Arc<Shared>,
}

struct Shared {
    event: OwnedFd,
    asleep: AtomicBool,
}

impl Waker {
    /// Wakes the loop if it sleeps. The loop then sees every message sent before this call.
    pub(crate) fn wake(&self) {
        fence(Ordering::SeqCst);
        // Only read while the loop is awake: writing it would take its cache line from the loop each time.
        if self.shared.asleep.load(Ordering::Relaxed) && self.shared.asleep.swap(false, Ordering::SeqCst) {
            // It can only fail when the counter is full, after 2^64 wakes.
            let _ = rustix::io::write(&self.shared.event, &1u64.to_ne_bytes());
        }
    }
}

/// How long to wait.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Wait {
    /// Not at all.
    None,
    /// At most this long.
    For(Span),
    /// Until an event.
    Forever,
}

impl Wait {
    /// This, or `limit` if that is shorter.
    pub(crate) fn at_most(self, limit: Span) -> Wait {
        match self {
            Wait::None => Wait::None,
            Wait::For(span) => Wait::For(span.min(limit)),
            Wait::Forever => Wait::For(limit),
        }
    }
}

/// Sockets that something has happened to, by number.
#[derive(Default)]
pub(crate) struct Events {
    /// Descriptors that can be read or written, or were closed by their peer.
    pub(crate) ready: Vec<u64>,
    /// Those whose peer has closed the connection, or its sending side.
    pub(crate) hung_up: Vec<u64>,
    /// Something has happened to a [`Source`](crate::source::Source).
    pub(crate) of_sources: bool,
}

impl Events {
    /// The kernel's events of one descriptor. A wake only ends the wait.
    fn add(&mut self, number: u64, flags: u32) {
        match number {
            WAKE => {}
            SOURCE => self.of_sources = true,
            number => {
                self.ready.push(number);
                let hang_up = EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR;
                if EventFlags::from_bits_retain(flags).intersects(hang_up) {
                    self.hung_up.push(number);
                }
            }
        }
    }
}

/// Watches sockets, by a number each.
pub(crate) struct Waiter {
    epoll: Epoll,
    waker: Waker,
    events: Vec<Event>,
    /// Sockets that are watched.
    sockets: usize,
    announced: bool,
    /// The system has no epoll_pwait2(2), added in Linux 5.11: ppoll(2) then waits to the nanosecond.
    by_ppoll: bool,
}

/// The number of the waker's own event.
const WAKE: u64 = u64::MAX;
/// The number of all sources, which are served together.
const SOURCE: u64 = u64::MAX - 1;
/// Events taken at a time.
const EVENTS: usize = 64;

impl Waiter {
    pub(crate) fn new() -> io::Result<Waiter> {
        let epoll = Epoll(epoll::create(CreateFlags::CLOEXEC)?);
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        // Edge-triggered, each wake is an event, and the counter need not be read: that would be a system call for each wake.
        epoll::add(&epoll.0, &event, EventData::new_u64(WAKE), EventFlags::IN | EventFlags::ET)?;
        // By default the kernel may delay a thread's timers by 50 us.
        rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?;
        let waker = Waker { shared: Arc::new(Shared { event, asleep: AtomicBool::new(false) }) };
        Ok(Waiter { epoll, waker, events: Vec::with_capacity(EVENTS), sockets: 0, announced: false, by_ppoll: false })
    }

    pub(crate) fn waker(&self) -> Waker {
        self.waker.clone()
    }

    pub(crate) fn add(&mut self, socket: BorrowedFd<'_>, number: u64, interest: Interest) -> io::Result<()> {
        epoll::add(&self.epoll.0, socket, EventData::new_u64(number), flags(interest))?;
        self.sockets += 1;
        Ok(())
    }

    /// Watches a source while this exists.
    pub(crate) fn add_source(&mut self, descriptor: BorrowedFd<'_>) -> io::Result<()> {
        self.add(descriptor, SOURCE, Interest { read: true, write: false })
    }

    /// Whether any socket is watched.
    pub(crate) fn has_sockets(&self) -> bool {
        self.sockets > 0
    }

    pub(crate) fn change(&self, socket: BorrowedFd<'_>, number: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll.0, socket, EventData::new_u64(number), flags(interest))?)
    }

    /// Stops watching a socket.
    pub(crate) fn remove(&mut self, socket: BorrowedFd<'_>) {
        // It is not in the set where adding it failed.
        self.sockets -= usize::from(epoll::delete(&self.epoll.0, socket).is_ok());
    }

    /// From now on [`Waker::wake`] ends the next wait at once. Between this and waiting, check all input from other
    /// threads once more.
    pub(crate) fn announce_sleep(&mut self) {
        self.announced = true;
        self.waker.shared.asleep.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// Waits. Sockets that something has happened to are added to `into`.
    pub(crate) fn wait(&mut self, patience: Wait, into: &mut Events) -> io::Result<()> {
        let announced = std::mem::take(&mut self.announced);
        if patience == Wait::None && !announced && self.sockets == 0 {
            // No source of events is registered.
            std::hint::spin_loop();
            return Ok(());
        }
        let timeout = match patience {
            Wait::None => Some(Timespec { tv_sec: 0, tv_nsec: 0 }),
            Wait::For(span) => {
                let ns = span.ns();
                Some(Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 })
            }
            Wait::Forever => None,
        };
        match self.by_ppoll {
            true => self.wait_by_ppoll(timeout.as_ref(), into)?,
            false => self.wait_by_epoll(timeout.as_ref(), into)?,
        }
        if announced {
            self.waker.shared.asleep.store(false, Ordering::SeqCst);
        }
        Ok(())
    }

    fn wait_by_epoll(&mut self, timeout: Option<&Timespec>, into: &mut Events) -> io::Result<()> {
        self.events.clear();
        let spare: &mut [MaybeUninit<Event>] = self.events.spare_capacity_mut();
        match epoll::wait(&self.epoll.0, spare, timeout) {
            Ok((came, _)) => {
                for event in came.iter() {
                    // A copy: the kernel's record is packed.
                    let flags = event.flags;
                    into.add(event.data.u64(), flags.bits());
                }
                Ok(())
            }
            Err(Errno::INTR) => Ok(()),
            Err(Errno::NOSYS) => {
                self.by_ppoll = true;
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Waits with ppoll(2), and collects the events with epoll_wait(2), which is as old as epoll.
    fn wait_by_ppoll(&self, timeout: Option<&Timespec>, into: &mut Events) -> io::Result<()> {
        match rustix::event::poll(&mut [PollFd::new(&self.epoll.0, PollFlags::IN)], timeout) {
            Ok(0) | Err(Errno::INTR) => return Ok(()),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let mut events = [EpollEvent::empty(); EVENTS];
        match self.epoll.wait(&mut events, EpollTimeout::ZERO) {
            Ok(came) => {
                events[..came].iter().for_each(|event| into.add(event.data(), event.events().bits() as u32));
                Ok(())
            }
            Err(nix::Error::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Hang-ups are always watched. For a client that reads nothing they are edge-triggered: a level-triggered one would
/// end every later wait.
fn flags(interest: Interest) -> EventFlags {
    let mut flags = EventFlags::RDHUP;
    flags.set(EventFlags::IN, interest.read);
    flags.set(EventFlags::ET, !interest.read);
    flags.set(EventFlags::OUT, interest.write);
    flags
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use super::*;

    #[test]
    fn each_wake_ends_one_wait() {
        for by_ppoll in [false, true] {
            let mut waiter = Waiter::new().unwrap();
            waiter.by_ppoll = by_ppoll;
            let mut events = Events::default();
            for _ in 0..3 {
                waiter.announce_sleep();
                waiter.waker().wake();
                waiter.waker().wake();
                waiter.wait(Wait::Forever, &mut events).unwrap();
                // It ends no other wait.
                let mut left: Vec<Event> = Vec::with_capacity(EVENTS);
                let now = Timespec { tv_sec: 0, tv_nsec: 0 };
                let (came, _) = epoll::wait(&waiter.epoll.0, left.spare_capacity_mut(), Some(&now)).unwrap();
                assert!(came.is_empty());
            }
            assert!(events.ready.is_empty());
        }
    }

    #[test]
    fn a_system_without_epoll_pwait2_waits_by_ppoll() {
        let mut waiter = Waiter::new().unwrap();
        waiter.by_ppoll = true;
        let mut events = Events::default();
        waiter.wait(Wait::For(Span::from_ns(1_000)), &mut events).unwrap();
        let socket = eventfd(1, EventfdFlags::CLOEXEC).unwrap();
        waiter.add(socket.as_fd(), 7, Interest { read: true, write: false }).unwrap();
        waiter.wait(Wait::Forever, &mut events).unwrap();
        assert_eq!(events.ready, [7]);
        waiter.remove(socket.as_fd());
        waiter.announce_sleep();
        waiter.waker().wake();
        waiter.wait(Wait::Forever, &mut events).unwrap();
        assert_eq!(events.ready, [7], "a waker is no socket");
    }
}
