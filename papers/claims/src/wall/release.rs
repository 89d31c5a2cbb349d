//! Methods of delaying a completion (Li 2020, 5.2.5, 5.4.1), as small programs in the structure that the paper
//! describes: an event loop that accepts requests and delivers completions, and a pool of worker threads.
//!
//! | method | delay |
//! |---|---|
//! | put-back | workers: a request that is not due goes back to the end of the pool's queue |
//! | busy loop | workers: each spins until its request is due |
//! | timer | the event loop sets a timer for each request, and passes it to a worker when the timer expires |
//! | end-io queue | one spinning thread, with the requests sorted by due time; FEMU's and the reactor's method |
//! | busy loop in the entry path | the thread that accepts requests, one after the other; VSSIM's method |
//!
//! The event loop, or the only thread, has the drive's core; the system places the pool's threads.
//!
//! Left out: data, and the emulator around it. QEMU has an iothread's lock, guest exits and DMA on top.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::Duration;

use anyhow::ensure;
use nandscape_sim::{Histogram, Span, Time};
use nandscape_transport_reactor::WallClock;

use crate::wall::cores::{CLIENT, DRIVE, on_core, stay_on};

/// The delay of each request.
pub(crate) const DELAY: Span = Span::from_us(50);

/// See the file.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Method {
    PutBack,
    BusyLoop,
    Timer,
    EndIo,
    EntryLoop,
}

impl Method {
    /// The name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Method::EndIo => "end-io queue",
            Method::PutBack => "put-back",
            Method::BusyLoop => "busy loop",
            Method::Timer => "timer",
            Method::EntryLoop => "busy loop in the entry path",
        }
    }
}

/// Keeps `depth` requests in flight for this time. The client spins, and sends the next request as soon as it has a
/// response.
pub(crate) fn run(
    method: Method,
    depth: usize,
    clock: WallClock,
    lasting: Span,
    latency: &mut Histogram,
) -> anyhow::Result<()> {
    let (to_device, arrivals) = channel();
    let (to_client, answers) = channel();
    thread::scope(|scope| {
        let events = to_device.clone();
        scope.spawn(move || match method {
            Method::EndIo => end_io(&arrivals, &to_client, clock),
            Method::EntryLoop => entry_loop(&arrivals, &to_client, clock),
            _ => event_loop(method, depth, (&arrivals, &events), &to_client, clock),
        });
        let device = to_device.clone();
        let client = on_core(CLIENT, move || client(depth, (&device, &answers), clock, lasting, latency));
        // The device may have ended; the client has seen that.
        let _ = to_device.send(Event::Stop);
        client
    })
}

/// Events of a device.
enum Event {
    Entry(usize),
    Done(usize),
    Stop,
}

fn client(
    depth: usize,
    (device, answers): (&Sender<Event>, &Receiver<usize>),
    clock: WallClock,
    lasting: Span,
    latency: &mut Histogram,
) -> anyhow::Result<()> {
    let start = clock.now();
    let mut sent = vec![start; depth];
    for slot in 0..depth {
        device.send(Event::Entry(slot))?;
    }
    let mut in_flight = depth;
    while in_flight > 0 {
        let slot = match answers.try_recv() {
            Ok(slot) => slot,
            Err(TryRecvError::Empty) => {
                std::hint::spin_loop();
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let now = clock.now();
        ensure!(slot < depth, "a response without a request");
        latency.record(now.since(sent[slot]));
        if now.since(start) < lasting {
            sent[slot] = now;
            device.send(Event::Entry(slot))?;
        } else {
            in_flight -= 1;
        }
    }
    Ok(())
}

/// Spins; requests leave in the order in which they are due.
fn end_io(arrivals: &Receiver<Event>, client: &Sender<usize>, clock: WallClock) {
    stay_on(DRIVE);
    let mut queue = BinaryHeap::new();
    loop {
        match arrivals.try_recv() {
            Ok(Event::Entry(slot)) => queue.push(Reverse((clock.now() + DELAY, slot))),
            Ok(_) | Err(TryRecvError::Disconnected) => return,
            Err(TryRecvError::Empty) => {}
        }
        while let Some(Reverse((due, slot))) = queue.peek()
            && *due <= clock.now()
        {
            // A client that has ended does not wait.
            let _ = client.send(*slot);
            queue.pop();
        }
        std::hint::spin_loop();
    }
}

fn entry_loop(arrivals: &Receiver<Event>, client: &Sender<usize>, clock: WallClock) {
    stay_on(DRIVE);
    while let Ok(Event::Entry(slot)) = arrivals.recv() {
        spin_until(clock.now() + DELAY, clock);
        let _ = client.send(slot);
    }
}

fn spin_until(due: Time, clock: WallClock) {
    while clock.now() < due {
        std::hint::spin_loop();
    }
}

/// Requests for the workers, each with its due time.
#[derive(Default)]
struct Pool {
    queue: Mutex<(VecDeque<(Time, usize)>, bool)>,
    came: Condvar,
}

impl Pool {
    fn put(&self, due: Time, slot: usize) {
        self.queue.lock().expect("no worker panics").0.push_back((due, slot));
        self.came.notify_one();
    }

    fn close(&self) {
        self.queue.lock().expect("no worker panics").1 = true;
        self.came.notify_all();
    }

    /// Waits for a request; `None` once it is closed.
    fn take(&self) -> Option<(Time, usize)> {
        let idle = |state: &mut (VecDeque<_>, bool)| state.0.is_empty() && !state.1;
        let guard = self.queue.lock().expect("no worker panics");
        self.came.wait_while(guard, idle).expect("no worker panics").0.pop_front()
    }
}

/// Sleeps until a request arrives or a timer expires. It has as many workers as requests in flight, like QEMU's pool.
fn event_loop(
    method: Method,
    workers: usize,
    (arrivals, events): (&Receiver<Event>, &Sender<Event>),
    client: &Sender<usize>,
    clock: WallClock,
) {
    let pool = Pool::default();
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| worker(method, &pool, &events.clone(), clock));
        }
        stay_on(DRIVE);
        let mut timers: VecDeque<(Time, usize)> = VecDeque::new();
        loop {
            while timers.front().is_some_and(|(due, _)| *due <= clock.now()) {
                let Some((due, slot)) = timers.pop_front() else { break };
                pool.put(due, slot);
            }
            let event = match timers.front() {
                Some((due, _)) => arrivals.recv_timeout(Duration::from_nanos(due.since(clock.now()).ns())),
                None => arrivals.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match event {
                // All delays are equal, so timers expire in the order in which they were set.
                Ok(Event::Entry(slot)) if method == Method::Timer => timers.push_back((clock.now() + DELAY, slot)),
                Ok(Event::Entry(slot)) => pool.put(clock.now() + DELAY, slot),
                Ok(Event::Done(slot)) => {
                    let _ = client.send(slot);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Ok(Event::Stop) | Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        pool.close();
    });
}

fn worker(method: Method, pool: &Pool, events: &Sender<Event>, clock: WallClock) {
    while let Some((due, slot)) = pool.take() {
        match method {
            Method::PutBack if clock.now() < due => {
                pool.put(due, slot);
                continue;
            }
            Method::BusyLoop => spin_until(due, clock),
            _ => {}
        }
        // The event loop outlives its workers' requests.
        let _ = events.send(Event::Done(slot));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_method_loses_a_request_or_answers_early() {
        let clock = WallClock::start();
        for method in [Method::EndIo, Method::PutBack, Method::BusyLoop, Method::Timer, Method::EntryLoop] {
            for depth in [1, 5] {
                let (mut latency, name) = (Histogram::new(), method.name());
                run(method, depth, clock, Span::from_ms(2), &mut latency).unwrap();
                assert!(latency.count() >= depth as u64, "{name}: {} answers", latency.count());
                assert!(latency.quantile(0.0) >= Span::from_ns(49_900), "{name}: after {:?}", latency.quantile(0.0));
            }
        }
    }
}
