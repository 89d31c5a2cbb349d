//! Turns that end within an instant of the model, where much is due at one time, and their recordings.

use std::path::Path;

use nandscape_sim::trace::{Event, Track};

use super::*;
use crate::recording::{Reader, Record, Recorder};
use crate::replay::{Ending, replay};

/// Parts of long commands that are due at one instant.
pub(super) const PARTS: u64 = 8;

/// Takes no time for a command, and traces it.
struct Traced(Sim, Track);

impl Service for Traced {
    fn begin(&self, io: &Io) -> Span {
        trace(&self.0, self.1, "command", io.command.slba());
        Span::ZERO
    }
}

fn trace(sim: &Sim, track: Track, name: &'static str, detail: u64) {
    sim.trace_event(|end| Event { track, name, start: end, end, detail });
}

struct TracedExport(Rc<FakeDrive<Traced>>);

impl Connect for TracedExport {
    fn info(&self) -> DriveInfo {
        self.0.info()
    }

    fn connect(&self) -> Result<Rc<dyn Drive>, Status> {
        Ok(self.0.connect())
    }
}

impl Export for TracedExport {}

/// A drive whose commands are traced.
pub(super) fn traced(sim: &Sim) -> Rc<dyn Export> {
    sim.trace().switch_on();
    let track = sim.trace().track("all".to_owned());
    let info = DriveInfo { blocks: 1 << 40, ..INFO };
    Rc::new(TracedExport(FakeDrive::new(sim, info, Servers::Unlimited, Traced(sim.clone(), track))))
}

/// Work of a drive of which all parts of a round are due at one instant, every microsecond.
pub(super) fn rounds(sim: &Sim) {
    let track = sim.trace().track("parts".to_owned());
    for number in 0..PARTS {
        let inner = sim.clone();
        sim.spawn(async move {
            loop {
                inner.sleep(Span::from_us(1)).await;
                inner.note_work(WORK_A_TURN);
                trace(&inner, track, "part", number);
            }
        });
    }
}

fn model() -> (Executor, Port) {
    let executor = Executor::new();
    let sim = executor.sim();
    let port = Port::new(&sim, vec![traced(&sim)]);
    rounds(&sim);
    (executor, port)
}

/// Sends a command to a drive each turn.
pub(super) fn sends_always(handle: &Handle, export: u16) -> Arc<AtomicUsize> {
    add_to(handle, export, |answered| {
        let mut tag = 0;
        let receive = move |intake: &mut Intake<'_>| {
            tag += 1;
            intake.submit(tag, SubmissionEntry::blocks(IoOpcode::READ, 1, tag, 1), HostMem::none());
            Ok(true)
        };
        let complete = move |_| {
            answered.fetch_add(1, Ordering::Relaxed);
        };
        Double { receive: Box::new(receive), complete: Box::new(complete), ..Double::default() }
    })
}

/// Ends the recording where the timelines are: one that is behind is within an instant.
pub(super) fn finish(mut reactor: Reactor) -> Vec<Executor> {
    // The arrivals of the last turn have their consequences, as after the last flush.
    reactor.catch_up();
    let is_within = |executor: &Executor| executor.next_due().is_some_and(|due| due <= executor.sim().now());
    assert!(reactor.timelines.executors().any(is_within), "no timeline ends within an instant");
    let Reactor { timelines, mut port, .. } = reactor;
    port.end_recording().unwrap();
    timelines.into_executors()
}

/// A recorded run of single turns; its trace.
fn recorded(path: &Path) -> String {
    let (executor, mut port) = model();
    port.record(Recorder::create(path, "a test").unwrap());
    let (mut reactor, handle) = reactor_of(executor, port);
    let answered = sends_always(&handle, 0);
    reactor.clock.stop_at(Time::ZERO + Span::from_ms(1));
    for turn in 1..=10 * PARTS {
        reactor.turn();
        assert_eq!(work_of(&reactor), turn * WORK_A_TURN, "turn {turn}: others wait for one part at most");
    }
    assert!(answered.load(Ordering::Relaxed) as u64 >= 9 * PARTS, "commands are served between parts");
    finish(reactor)[0].sim().trace().to_chrome_json()
}

#[test]
fn a_turn_ends_within_an_instant_and_its_recording_replays_to_the_byte() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.rec");
    let live = recorded(&path);
    let (mut reader, mut within) = (Reader::open(&path).unwrap(), 0);
    while let Some(record) = reader.next().unwrap() {
        within += u64::from(matches!(record, Record::TurnWithin(..)));
    }
    assert!(within >= 9 * (PARTS - 1), "{within} turns began within an instant");
    let (mut executor, mut port) = model();
    let replayed =
        replay(std::slice::from_mut(&mut executor), &mut port, &mut Reader::open(&path).unwrap(), |_, _| {}).unwrap();
    assert_eq!(replayed.ending, Ending::Whole);
    let again = executor.sim().trace().to_chrome_json();
    assert!(live.len() > 5_000 && live == again, "the traces differ");
}

#[test]
fn a_recording_that_does_not_fit_the_drives_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.rec");
    recorded(&path);
    // Other drives, with nothing to do at these instants.
    let mut executor = Executor::new();
    let drive = FakeDrive::new(&executor.sim(), INFO, Servers::Unlimited, Delays);
    let mut port = Port::new(&executor.sim(), vec![Rc::new(DelaysExport(drive))]);
    let error = replay(std::slice::from_mut(&mut executor), &mut port, &mut Reader::open(&path).unwrap(), |_, _| {})
        .unwrap_err();
    assert!(error.to_string().contains("less to do at this time than those of the recorded run"), "{error}");
}
