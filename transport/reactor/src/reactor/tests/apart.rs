//! Drives with a timeline each: a client of one of them next to the work of another, and the recording of both.

use std::path::Path;

use nandscape_sim::trace::chrome_json;

use super::instant::{PARTS, finish, rounds, sends_always, traced};
use super::*;
use crate::recording::{Reader, Record, Recorder};
use crate::replay::{Ending, replay};

/// Two drives, of which the first works without end and is always behind.
fn models() -> (Vec<Executor>, Port) {
    let executors = Executor::apart(2);
    let sims: Vec<Sim> = executors.iter().map(Executor::sim).collect();
    let port = Port::apart(&sims, sims.iter().map(traced).collect());
    rounds(&sims[0]);
    (executors, port)
}

fn traces(executors: &[Executor]) -> String {
    let sims: Vec<Sim> = executors.iter().map(Executor::sim).collect();
    chrome_json(sims.iter().map(Sim::trace))
}

/// A run of single turns with a client of each drive; its trace.
fn served(record: Option<&Path>) -> String {
    let (timelines, mut port) = models();
    if let Some(path) = record {
        port.record(Recorder::create(path, "a test").unwrap());
    }
    let names = vec!["busy".to_owned(), "other".to_owned()];
    let setup = Setup { timelines, port, names, poll: PollMode::Busy, log: Box::new(|_| {}) };
    let (mut reactor, handle) = Reactor::new(setup).unwrap();
    let answered = [0, 1].map(|export| sends_always(&handle, export));
    reactor.clock.stop_at(Time::ZERO + Span::from_ms(1));
    let turns = 10 * PARTS;
    for turn in 1..=turns {
        reactor.clock.put_forward(Span::from_us(10));
        let clock = reactor.clock.now();
        reactor.turn();
        assert_eq!(work_of(&reactor), turn * WORK_A_TURN, "the busy drive has a share of each turn");
        let times: Vec<Time> = reactor.timelines.executors().map(|executor| executor.sim().now()).collect();
        assert!(times[0] < Time::ZERO + Span::from_us(11) && times[1] == clock, "turn {turn}: {times:?}");
        // A client's first command is sent in the first turn, and is answered in the turn after its own.
        assert_eq!(answered[1].load(Ordering::Relaxed) as u64, turn - 1, "turn {turn}");
    }
    assert!(answered[0].load(Ordering::Relaxed) as u64 >= turns - PARTS, "the busy drive's client is served, too");
    traces(&finish(reactor))
}

#[test]
fn a_client_of_one_drive_does_not_wait_for_the_work_of_another() {
    served(None);
}

#[test]
fn a_recording_of_two_timelines_replays_to_the_byte() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.rec");
    let live = served(Some(&path));
    let (mut reader, mut within) = (Reader::open(&path).unwrap(), [0_u64; 2]);
    let mut latest = [Time::ZERO; 2];
    while let Some(record) = reader.next().unwrap() {
        match record {
            Record::Turn(timeline, at) => latest[usize::from(timeline)] = at,
            Record::TurnWithin(timeline, at, _) => {
                within[usize::from(timeline)] += 1;
                latest[usize::from(timeline)] = at;
            }
            _ => {}
        }
    }
    assert!(within[0] >= 9 * (PARTS - 1) && within[1] == 0, "turns within an instant: {within:?}");
    assert!(latest[0] < latest[1], "one of the drives was behind: {latest:?}");
    let (mut executors, mut port) = models();
    let replayed = replay(&mut executors, &mut port, &mut Reader::open(&path).unwrap(), |_, _| {}).unwrap();
    assert_eq!(replayed.ending, Ending::Whole);
    let again = traces(&executors);
    assert!(live.len() > 10_000 && live == again, "the traces differ");
}

#[test]
fn a_recording_of_more_timelines_than_drives_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.rec");
    served(Some(&path));
    let executor = Executor::new();
    let mut port = Port::new(&executor.sim(), vec![traced(&executor.sim()), traced(&executor.sim())]);
    rounds(&executor.sim());
    let error = replay(&mut [executor], &mut port, &mut Reader::open(&path).unwrap(), |_, _| {}).unwrap_err();
    assert!(
        error.to_string().contains("does not fit these drives: it is of timeline 1; from 0 to 0 are valid"),
        "{error}"
    );
}

/// Such a recording is of no run: its first turn is before the drives have opened.
#[test]
fn a_turn_before_the_time_of_its_drives_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.rec");
    served(Some(&path));
    let (mut executors, mut port) = models();
    let late = Time::ZERO + Span::from_s(100);
    executors[1].advance(late, u32::MAX);
    executors[1].arrive(late);
    let error = replay(&mut executors, &mut port, &mut Reader::open(&path).unwrap(), |_, _| {}).unwrap_err();
    assert!(error.to_string().contains("is before that of its drives, 100s"), "{error}");
}
