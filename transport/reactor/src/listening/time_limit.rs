//! A client's handshake with one time limit for the whole handshake.

use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

use super::Place;
use crate::socket::Stream;

/// The time that a client has to negotiate, all in all.
#[derive(Copy, Clone, Debug)]
pub struct TimeLimit {
    patience: Duration,
    begun: Instant,
}

impl TimeLimit {
    #[expect(clippy::disallowed_methods, reason = "a client's patience is in real time")]
    /// Begins now.
    pub fn new(patience: Duration) -> TimeLimit {
        TimeLimit { patience, begun: Instant::now() }
    }

    /// The rest of the time.
    #[expect(clippy::disallowed_methods, reason = "a client's patience is in real time")]
    pub fn left(&self) -> Duration {
        self.patience.saturating_sub(self.begun.elapsed())
    }

    fn exceeded(&self) -> io::Error {
        io::Error::new(io::ErrorKind::TimedOut, format!("it took longer than {:?}", self.patience))
    }
}

/// A stream with one time limit for all reads and writes together.
pub struct TimeLimited<'a> {
    stream: &'a Stream,
    limit: TimeLimit,
    place: &'a Place,
}

impl TimeLimited<'_> {
    /// The stream of the client with this place, within a limit that has begun.
    pub fn new<'a>(stream: &'a Stream, limit: TimeLimit, place: &'a Place) -> TimeLimited<'a> {
        TimeLimited { stream, limit, place }
    }

    /// Does something within the time that is left.
    fn within_limit<T>(&mut self, mut act: impl FnMut(&Stream) -> io::Result<T>) -> io::Result<T> {
        let left = self.limit.left();
        if left.is_zero() {
            return Err(self.limit.exceeded());
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.set_write_timeout(Some(left))?;
        let exceeded = |error: io::Error| match error.kind() {
            io::ErrorKind::WouldBlock => self.limit.exceeded(),
            _ => error,
        };
        act(self.stream).map_err(exceeded)
    }
}

impl Read for TimeLimited<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self.within_limit(|mut stream| stream.read(bytes))? {
            0 if !bytes.is_empty() => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the client hung up")),
            count => {
                self.place.heard();
                Ok(count)
            }
        }
    }
}

impl Write for TimeLimited<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.within_limit(|mut stream| stream.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
