//! The work of a turn in addition to running the model: rings, rest, and reports of failures.

use std::io::Read as _;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use nandscape_transport_reactor::PollMode;
use nandscape_transport_reactor::recording::Recorder;
use nandscape_transport_reactor::ring::{RingHost, RingSetup};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use crate::plain::serve;

fn read(slba: u64) -> SubmissionEntry {
    SubmissionEntry::blocks(IoOpcode::READ, 1, slba, 1)
}

/// A host that sleeps is woken for each completion, and when its end in the reactor has gone.
#[test]
fn completions_of_a_ring_signal_the_hosts_event_descriptor() {
    let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap();
    let wait = || {
        let limit = Timespec { tv_sec: 60, tv_nsec: 0 };
        assert_eq!(poll(&mut [PollFd::new(&event, PollFlags::IN)], Some(&limit)).unwrap(), 1, "a signal comes");
        rustix::io::read(&event, &mut [0; 8]).unwrap();
    };
    serve(PollMode::Adaptive, None, |handle| {
        let setup = RingSetup { event: Some(event.try_clone().unwrap()), ..RingSetup::of_depth(4) };
        let mut host = RingHost::connect_with(&handle, 0, setup).unwrap();
        for tag in 0..100 {
            host.submit(tag, read(tag), vec![0; 512]).unwrap();
            wait();
            assert_eq!(host.poll().expect("the signal follows the completion").tag, tag);
            assert!(rustix::io::read(&event, &mut [0; 8]).is_err(), "one signal for one completion");
        }
    });
    wait();
}

/// A host that hands over more than there is room for gets its memory back. Accepted buffers are returned even if it
/// requests nothing more.
#[test]
fn a_ring_takes_as_many_commands_as_it_has_room_for() {
    serve(PollMode::Adaptive, None, |handle| {
        let mut host = RingHost::connect(&handle, 0, 4).unwrap();
        for round in 0..200 {
            let mut taken = Vec::new();
            // Long enough for the reactor to have taken some off the ring.
            for attempt in 0..500 {
                match host.submit(attempt, read(attempt), vec![0; 512]) {
                    Ok(()) => taken.push(attempt),
                    Err(data) => assert_eq!(data.len(), 512),
                }
            }
            assert_eq!(taken, [0, 1, 2, 3], "round {round}");
            for tag in taken {
                let reply = std::iter::repeat_with(|| host.poll()).flatten().next().unwrap();
                assert_eq!((reply.tag, reply.status), (tag, Status::SUCCESS));
            }
            assert!(host.poll().is_none());
        }
    });
}

/// Turns are counted, not time: however slow the machine, a loop that has nothing to do must not turn.
#[test]
fn an_idle_reactor_rests_and_a_busy_one_does_not() {
    let turns_in_a_while = |poll| {
        let mut turns = 0;
        serve(poll, None, |handle| {
            let mut host = RingHost::connect(&handle, 0, 4).unwrap();
            host.submit(0, read(0), vec![0; 512]).unwrap();
            while host.poll().is_none() {}
            let before = handle.figures().unwrap().timing.turns;
            let (_open, nothing) = channel::<()>();
            assert_eq!(nothing.recv_timeout(Duration::from_millis(300)), Err(RecvTimeoutError::Timeout));
            turns = handle.figures().unwrap().timing.turns - before;
        });
        turns
    };
    let idle = turns_in_a_while(PollMode::Adaptive);
    assert!(idle < 2_000, "{idle} turns with nothing to do");
    let busy = turns_in_a_while(PollMode::Busy);
    assert!(busy > 2 * idle, "{busy} turns of a loop that never rests, {idle} of one that does");
}

#[test]
fn a_place_that_takes_no_recording_is_found_out_at_once() {
    for place in ["/no/such/folder/run.rec", "/"] {
        assert!(Recorder::create(Path::new(place), "a header").is_err(), "{place}");
    }
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    assert!(Recorder::on(full, Path::new("full"), "a header").is_err());
}

/// The run continues; the log reports it at once, once, and the end is a failure.
#[test]
fn a_recording_that_breaks_off_is_told_of_and_ends_no_run() {
    let (mut reader, writer) = std::io::pipe().unwrap();
    let path = format!("/proc/self/fd/{}", writer.as_raw_fd());
    let begun = thread::spawn(move || {
        let mut magic = [0; 8];
        reader.read_exact(&mut magic).unwrap();
        magic
    });
    let ended = serve(PollMode::Adaptive, Some(Path::new(&path)), |handle| {
        drop(writer);
        assert_eq!(begun.join().unwrap(), nandscape_transport_reactor::recording::MAGIC);
        let mut host = RingHost::connect(&handle, 0, 4).unwrap();
        let mut tag = 0;
        while handle.figures().unwrap().recording_problem.is_none() {
            host.submit(tag, read(tag), vec![0; 512]).unwrap();
            while host.poll().is_none() {}
            tag += 1;
        }
    });
    let error = ended.problem.expect("the recording is not whole");
    assert_eq!(ended.said, [&error as &str]);
    assert!(error.contains(&path) && error.contains("not whole"), "{error}");
}
