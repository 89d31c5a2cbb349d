//! The reactor in real time, and its recording replayed in simulated time: the same events at the same times.
//!
//! A crate that can use the whole SSD runs the same test on it.

use std::cell::Cell;
use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::thread;

use nandscape_drive::HostMem;
use nandscape_transport_reactor::client::{Gone, Intake};
use nandscape_transport_reactor::recording::{Reader, RecordingError};
use nandscape_transport_reactor::replay::{Ending, replay};
use nandscape_transport_reactor::ring::RingHost;
use nandscape_transport_reactor::{Client, Handle, Interest, Order, PollMode, Released};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

use crate::plain::{build, replayed, serve};

/// Keeps `depth` reads outstanding until `count` are done, then leaves with the rest outstanding.
fn client(handle: &Handle, seed: u64, depth: usize, count: usize) {
    let mut host = RingHost::connect(handle, 0, depth).unwrap();
    let mut rng = nandscape_sim::Seed::new(seed).rng();
    let mut spare: Vec<Vec<u8>> = (0..depth).map(|_| vec![0; 512]).collect();
    let mut done = 0;
    while done < count {
        while let Some(data) = spare.pop() {
            let slba = rng.below(1_000);
            host.submit(slba, SubmissionEntry::blocks(IoOpcode::READ, 1, slba, 1), data).unwrap();
        }
        match host.poll() {
            Some(reply) => {
                assert_eq!((reply.status, &reply.data[..8]), (Status::SUCCESS, &reply.tag.to_le_bytes()[..]));
                spare.push(reply.data);
                done += 1;
            }
            None => thread::yield_now(),
        }
    }
}

#[test]
fn a_recorded_run_replays_to_the_byte() {
    let folder = tempfile::tempdir().unwrap();
    for (number, poll) in [PollMode::Adaptive, PollMode::Busy].into_iter().enumerate() {
        let path = folder.path().join(format!("{number}.rec"));
        let live = serve(poll, Some(&path), |handle| {
            // Several clients one after another, each of which leaves in the middle, and one idle next to them.
            let _idle = RingHost::connect(&handle, 0, 4).unwrap();
            for (seed, depth) in [(1, 1), (2, 8), (3, 3)] {
                client(&handle, seed, depth, 60);
            }
        });
        let live = live.trace;
        let (again, ending, released) = replayed(&path);
        assert!(released >= 180, "{released} commands were replayed");
        assert_eq!(ending, Ending::Whole);
        assert!(live.len() > 5_000 && live == again, "{poll:?}: the traces differ");
    }
}

#[test]
fn orders_come_at_the_same_times_in_the_replay() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.rec");
    let live = serve(PollMode::Adaptive, Some(&path), |handle| {
        let mut host = RingHost::connect(&handle, 0, 8).unwrap();
        let read = |host: &mut RingHost, slba| {
            host.submit(slba, SubmissionEntry::blocks(IoOpcode::READ, 1, slba, 1), vec![0; 512]).unwrap();
        };
        let orders = ["100us", "7us", "1ms", "late"].map(|text| Order::AddFault(text.to_owned()));
        for order in orders.into_iter().chain([Order::ClearFaults]) {
            // In the middle of work.
            (0..4).for_each(|slba| read(&mut host, slba));
            let refused = order == Order::AddFault("late".to_owned());
            assert_eq!(handle.order(0, order).is_err(), refused);
            (4..8).for_each(|slba| read(&mut host, slba));
            let mut left = 8;
            while left > 0 {
                left -= usize::from(host.poll().is_some());
                thread::yield_now();
            }
        }
        assert_eq!(handle.order(1, Order::ClearFaults), Err("there is no such drive".to_owned()));
    });
    let (again, ending, released) = replayed(&path);
    assert!(ending == Ending::Whole && released >= 40);
    let durations = live.trace.split("\"dur\":").skip(1).map(|rest| rest.split([',', '}']).next().unwrap());
    let longest = durations.map(|us| us.parse::<f64>().unwrap()).fold(0.0, f64::max);
    assert!((1_001.0..=1_040.0).contains(&longest), "a command was slowed by 1 ms, and none by more: {longest}");
    assert!(live.trace == again, "the traces differ");
}

#[test]
fn who_orders_of_a_reactor_that_has_ended_is_told() {
    let mut left = None;
    serve(PollMode::Adaptive, None, |handle| left = Some(handle));
    assert_eq!(left.unwrap().order(0, Order::ClearFaults), Err("the drives have ended".to_owned()));
}

#[test]
fn a_torn_recording_replays_as_far_as_it_goes_and_a_damaged_one_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("whole.rec");
    serve(PollMode::Adaptive, Some(&path), |handle| client(&handle, 5, 4, 50));
    let whole = std::fs::read(&path).unwrap();
    let all = replayed(&path).2;
    let torn = folder.path().join("torn.rec");
    for len in (whole.len() / 2..whole.len()).step_by(97) {
        std::fs::write(&torn, &whole[..len]).unwrap();
        let (_, ending, count) = replayed(&torn);
        assert!(ending == Ending::BrokenOff && count <= all, "{len} of {} bytes", whole.len());
    }
    for at in (20..whole.len()).step_by(whole.len() / 50) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x10;
        std::fs::write(&torn, &damaged).unwrap();
        let error = Reader::open(&torn).and_then(|mut reader| {
            let (mut executor, mut port) = build();
            replay(std::slice::from_mut(&mut executor), &mut port, &mut reader, |_, _| {})
                .map(|replayed| replayed.ending)
        });
        match error {
            Err(RecordingError::Damaged { .. }) | Ok(Ending::BrokenOff) => {}
            other => panic!("a flipped bit at {at} gave {other:?}"),
        }
    }
}

#[test]
fn nothing_is_recorded_of_an_empty_run_but_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("empty.rec");
    serve(PollMode::Adaptive, Some(&path), |_| {});
    // The flush that ends every run is an arrival too.
    assert_eq!(replayed(&path).1, Ending::Whole);
}

/// Requests three blocks each turn and takes `takes` completions; then its connection breaks.
struct Breaks {
    asked: u64,
    takes: Rc<Cell<u64>>,
}

impl Client for Breaks {
    fn socket(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn interest(&self) -> Interest {
        Interest::default()
    }

    fn receive_arrivals(&mut self, intake: &mut Intake<'_>) -> Result<bool, Gone> {
        for _ in 0..3 {
            self.asked += 1;
            intake.submit(
                self.asked,
                SubmissionEntry::blocks(IoOpcode::READ, 1, self.asked % 5, 1),
                HostMem::zeroed(512),
            );
        }
        Ok(true)
    }

    fn complete(&mut self, _released: Released) {
        self.takes.set(self.takes.get().saturating_sub(1));
    }

    fn flush(&mut self) -> Result<(), Gone> {
        if self.takes.get() == 0 { Err(Gone::because("broken pipe")) } else { Ok(()) }
    }

    fn is_flushed(&self) -> bool {
        true
    }
}

/// That is detected while the model runs, between two events. The recording must hold when the model could detect it.
#[test]
fn a_client_found_gone_when_it_is_answered_goes_at_the_same_time_in_the_replay() {
    let folder = tempfile::tempdir().unwrap();
    for takes in 1..40 {
        let path = folder.path().join("run.rec");
        let live = serve(PollMode::Busy, Some(&path), |handle| {
            let make = move |_, _| Box::new(Breaks { asked: 0, takes: Rc::new(Cell::new(takes)) }) as Box<dyn Client>;
            let _idle = RingHost::connect(&handle, 0, 4).unwrap();
            handle.connect(0, Box::new(make));
            while handle.figures().unwrap().exports[0].reads.latency.count() < takes {}
            client(&handle, takes, 2, 20);
        });
        assert_eq!(live.said, ["client 1: broken pipe"]);
        let (again, ending, _) = replayed(&path);
        assert!(ending == Ending::Whole && live.trace == again, "{takes} completions taken: the traces differ");
    }
}
