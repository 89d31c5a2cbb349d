//! A trace of a cache: each request is sent at its time, by the first client that is free. A get that finds nothing is followed by a put.
//!
//! The latency of a request counts from its time, so it includes how late the request was sent; that is counted, too.
//!
//! Left out: the bytes of values, which no trace has, and their check.

use std::num::NonZeroU64;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use nandscape_drive::{Phase, Progress};
use nandscape_sim::{Span, Time};

use super::connection::{Connection, Reply};
use super::crew::{Client, Crew, End};
use super::{Answered, MOST, WallError, WallSpec};
use crate::cache_trace::{Asks, CacheTrace, Request};
use crate::text;
use crate::traced::Pace;

/// How memcached's protocol says that an item is too large.
const TOO_LARGE: &str = "SERVER_ERROR object too large for cache";
/// Seconds of the longest expiry that is a span; a larger one is a time of day. No run lasts longer.
const LONGEST_S: u64 = 30 * 86_400;
/// A client that waits for the time of a request looks as often whether all are to end.
const LOOK: Span = Span::from_ms(100);

/// Runs it, on a server whose items have `limit` bytes at most.
pub(super) fn run(
    spec: &WallSpec<'_>,
    (trace, pace, connections): (&CacheTrace, Pace, u64),
    (control, limit): (&mut Connection, u64),
    progress: &dyn Progress,
) -> Result<Answered, WallError> {
    pace.check(trace).map_err(WallError::Spec)?;
    let limit = limit as usize;
    let mut crew = Crew::connect(spec, connections, control.clock(), progress)?;
    let (warm_up, _) = pace.warm_up(trace);
    let (filling, measured) = trace.requests.split_at(warm_up);
    let begun = control.now();
    play(&mut crew, (filling, Phase::Preconditioning), (pace, begun, limit))?;
    let (before, from) = (control.statistics()?, control.now());
    let tally = play(&mut crew, (measured, Phase::Running), (pace, begun, limit))?;
    let took = tally.ended.since(from);
    Ok(spec.answered(tally, None, took, [before, control.statistics()?]))
}

/// Sends requests at their times, and waits until all have ended.
fn play(
    crew: &mut Crew<'_>,
    (requests, phase): (&[Request], Phase),
    (pace, begun, limit): (Pace, Time, usize),
) -> Result<super::tally::Tally, WallError> {
    let all = requests.len().max(1) as f64;
    let arrivals = Mutex::new((pace.arrivals(requests), 0u64));
    let lock = || arrivals.lock().unwrap_or_else(PoisonError::into_inner);
    let next = || {
        let mut arrivals = lock();
        arrivals.1 += 1;
        arrivals.0.next()
    };
    crew.work(
        phase,
        || (lock().1 as f64 / all).min(1.0),
        |client| {
            // Sleep ends as close to its time as the system can; without it, 50 us later.
            let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
            while let Some((at, request)) = next().filter(|_| !client.end.has_come()) {
                let due = begun + at;
                wait(client.connection, client.end, due);
                if client.end.has_come() {
                    break;
                }
                client.tally.late.record(client.connection.now().since(due));
                let mut visit = Visit { client, pace, limit, key: key(&request) };
                visit.serve(request, due)?;
                client.tally.ended = client.connection.now();
            }
            Ok(())
        },
    )
}

/// Waits for a time.
#[expect(clippy::disallowed_methods, reason = "a request of a trace has a time of the clock on the wall")]
fn wait(connection: &Connection, end: &End, due: Time) {
    loop {
        let left = due.since(connection.now());
        if left.is_zero() || end.has_come() {
            return;
        }
        std::thread::sleep(Duration::from_nanos(left.min(LOOK).ns()));
    }
}

/// A request at its client.
struct Visit<'c, 'a> {
    client: &'c mut Client<'a>,
    pace: Pace,
    limit: usize,
    key: String,
}

impl Visit<'_, '_> {
    fn serve(&mut self, request: Request, due: Time) -> Result<(), WallError> {
        match request.asks {
            Asks::Get => {
                let is_missing = match self.get(&mut 0)? {
                    Reply::Failed(words) => {
                        self.client.tally.failed(&words, 1);
                        return Ok(());
                    }
                    reply => reply != Reply::Done,
                };
                let (now, tally) = (self.client.connection.now(), &mut self.client.tally);
                let of = if is_missing { &mut tally.misses } else { &mut tally.hits };
                of.record(now.since(due));
                if is_missing && request.value_bytes > 0 {
                    return self.put("set", request, now);
                }
                Ok(())
            }
            Asks::Set => self.put("set", request, due),
            Asks::Add => self.put("add", request, due),
            Asks::Replace => self.put("replace", request, due),
            Asks::Append => self.put("append", request, due),
            // The value is no number: the item is read, and put anew.
            Asks::Count => {
                let mut bytes = 0;
                match self.get(&mut bytes)? {
                    Reply::Done => self.put("replace", Request { value_bytes: bytes as u32, ..request }, due),
                    Reply::Failed(words) => {
                        self.client.tally.failed(&words, 1);
                        Ok(())
                    }
                    Reply::Missing | Reply::NotDone => Ok(()),
                }
            }
            Asks::Delete => self.change(&text::delete(&self.key), 0, due),
        }
    }

    /// Gets the item, and how many bytes its value has.
    fn get(&mut self, bytes: &mut usize) -> Result<Reply, WallError> {
        let found = std::cell::Cell::new(0);
        let reply = self.client.connection.get(&self.key, MOST as usize, |value| {
            found.set(value.len());
            true
        });
        *bytes = found.get();
        reply
    }

    fn put(&mut self, command: &str, request: Request, due: Time) -> Result<(), WallError> {
        let bytes = request.value_bytes as usize;
        if self.key.len() + bytes > self.limit {
            self.client.tally.too_large += 1;
            return Ok(());
        }
        let expiry_s = if request.ttl_s == 0 { 0 } else { self.pace.lives_s(&request).min(LONGEST_S) };
        let value = vec![request.key as u8; bytes];
        self.change(&text::store(command, &self.key, expiry_s, &value), self.key.len() + bytes, due)
    }

    /// Sends a change, which puts `bytes` bytes if the server makes it. Whether the key has an item decides the answer, and is no failure.
    fn change(&mut self, command: &[u8], bytes: usize, due: Time) -> Result<(), WallError> {
        let reply = self.client.connection.change(&self.key, command)?;
        let (now, tally) = (self.client.connection.now(), &mut self.client.tally);
        match reply {
            Reply::Failed(words) if words == TOO_LARGE => tally.too_large += 1,
            Reply::Failed(words) => tally.failed(&words, 1),
            reply => {
                tally.changes.record(now.since(due));
                tally.put_bytes += if reply == Reply::Done { bytes as u64 } else { 0 };
            }
        }
        Ok(())
    }
}

/// The digits of the number of a key.
const DIGITS: &[u8; 62] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// A key of the length of the trace's, if that is enough for its number.
fn key(request: &Request) -> String {
    let (mut key, mut number) = (String::new(), request.key as usize);
    loop {
        key.push(char::from(DIGITS[number % DIGITS.len()]));
        number /= DIGITS.len();
        if number == 0 {
            break;
        }
    }
    let more = usize::from(request.key_bytes).saturating_sub(key.len());
    key + &".".repeat(more)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn keys_differ_and_have_the_length_of_the_traces() {
        let of = |number, key_bytes| {
            key(&Request { at_s: 0, key: number, key_bytes, value_bytes: 0, asks: Asks::Get, ttl_s: 0 })
        };
        assert_eq!((of(0, 3), of(61, 1), of(62, 1)), ("0..".to_owned(), "Z".to_owned(), "01".to_owned()));
        assert_eq!((of(7, 250).len(), of(u32::MAX, 1).len()), (250, 6));
        let keys: BTreeSet<String> = (0..5_000).map(|number| of(number, (number % 7) as u8)).collect();
        assert_eq!(keys.len(), 5_000);
    }
}
