//! The threads of the clients.
//!
//! A client that fails ends all: the sockets of the others are shut down, so that none waits for its server any more.

use std::net::Shutdown;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use nandscape_drive::{Phase, Progress};
use nandscape_transport_reactor::WallClock;
use nandscape_transport_reactor::socket::Stream;

use super::connection::{Connection, Reply};
use super::tally::Tally;
use super::{WallError, WallSpec};

/// Between two looks at the progress.
const TICK: Duration = Duration::from_millis(100);

/// See the file.
pub(super) struct Crew<'a> {
    connections: Vec<Connection>,
    end: End,
    server: String,
    progress: &'a dyn Progress,
}

/// The end of all clients.
pub(super) struct End {
    has_come: AtomicBool,
    problem: Mutex<Option<WallError>>,
    streams: Vec<Arc<Stream>>,
}

impl End {
    /// Whether clients end now.
    pub(super) fn has_come(&self) -> bool {
        self.has_come.load(Ordering::Relaxed)
    }

    /// Ends all clients. The first problem counts: those after it follow from it.
    fn because(&self, problem: WallError) {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(problem);
        self.has_come.store(true, Ordering::Relaxed);
        self.streams.iter().for_each(|stream| stream.shutdown(Shutdown::Both));
    }
}

/// A count that clients take from until it is used up.
pub(super) struct Share {
    all: u64,
    taken: AtomicU64,
}

impl Share {
    pub(super) fn of(all: u64) -> Share {
        Share { all, taken: AtomicU64::new(0) }
    }

    /// The number of the next one, if there is one.
    pub(super) fn next(&self) -> Option<u64> {
        let number = self.taken.fetch_add(1, Ordering::Relaxed);
        (number < self.all).then_some(number)
    }

    /// Whether all are taken.
    pub(super) fn is_used_up(&self) -> bool {
        self.taken.load(Ordering::Relaxed) >= self.all
    }

    /// From 0 to 1.
    pub(super) fn done(&self) -> f64 {
        (self.taken.load(Ordering::Relaxed) as f64 / self.all.max(1) as f64).min(1.0)
    }
}

/// A client at its thread.
pub(super) struct Client<'a> {
    /// Its number, from 0.
    pub(super) number: u64,
    pub(super) connection: &'a mut Connection,
    pub(super) tally: Tally,
    pub(super) end: &'a End,
}

impl<'a> Crew<'a> {
    /// Connects the clients.
    pub(super) fn connect(
        spec: &WallSpec<'_>,
        clients: u64,
        clock: WallClock,
        progress: &'a dyn Progress,
    ) -> Result<Crew<'a>, WallError> {
        let open = |_| Connection::open(spec.server, spec.patience, clock);
        let connections = (0..clients).map(open).collect::<Result<Vec<_>, _>>()?;
        let streams = connections.iter().map(Connection::stream).collect();
        let end = End { has_come: AtomicBool::new(false), problem: Mutex::new(None), streams };
        Ok(Crew { connections, end, server: spec.server.to_string(), progress })
    }

    /// Has all clients work until each has ended, and returns what they have met.
    pub(super) fn work(
        &mut self,
        phase: Phase,
        done: impl Fn() -> f64,
        client: impl Fn(&mut Client<'_>) -> Result<(), WallError> + Sync,
    ) -> Result<Tally, WallError> {
        let (end, client, mut all) = (&self.end, &client, Tally::new());
        thread::scope(|scope| {
            let (running, ended) = channel::<()>();
            let mut threads = Vec::new();
            for (number, connection) in self.connections.iter_mut().enumerate() {
                let running = running.clone();
                let life = move || {
                    // Its end is noticed when this is dropped.
                    let _running = running;
                    let mut one = Client { number: number as u64, connection, tally: Tally::new(), end };
                    if let Err(problem) = client(&mut one).and_then(|()| one.connection.check_quiet()) {
                        end.because(problem);
                    }
                    one.tally
                };
                match thread::Builder::new().name("client".to_owned()).spawn_scoped(scope, life) {
                    Ok(thread) => threads.push(thread),
                    Err(error) => {
                        end.because(WallError::Thread(error));
                        break;
                    }
                }
            }
            drop(running);
            while ended.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                self.progress.at(phase, done());
            }
            for thread in threads {
                match thread.join() {
                    Ok(tally) => all.merge(&tally),
                    Err(panicked) => std::panic::resume_unwind(panicked),
                }
            }
        });
        match self.end.problem.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(problem) => Err(problem),
            None => Ok(all),
        }
    }

    /// Puts items before the measurement: those with the numbers from 0, as commands with their keys.
    pub(super) fn put(
        &mut self,
        items: u64,
        bytes: u64,
        request: impl Fn(u64) -> (String, Vec<u8>) + Sync,
    ) -> Result<(), WallError> {
        let (share, server) = (Share::of(items), self.server.clone());
        let put = |client: &mut Client<'_>| {
            while let Some(number) = share.next().filter(|_| !client.end.has_come()) {
                let (key, request) = request(number);
                let problem = match client.connection.change(&key, &request)? {
                    Reply::Done => continue,
                    Reply::Failed(words) => words,
                    Reply::NotDone | Reply::Missing => "NOT_STORED".to_owned(),
                };
                return Err(WallError::NotStored { server: server.clone(), key, bytes, problem });
            }
            Ok(())
        };
        self.work(Phase::Preconditioning, || share.done(), put).map(drop)
    }
}
