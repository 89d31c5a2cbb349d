//! The reactor in real time, and what it recorded replayed in virtual time: the same events at the same times.
//!
//! The drive here is a plain one of this file: one server, a service time by address. The whole SSD is put to the same
//! test where it can be named.
#![cfg(target_os = "linux")]

use std::cell::RefCell;
use std::collections::VecDeque;
use std::path::Path;
use std::rc::Rc;
use std::thread;

use nandscape_drive::{Completion, Drive, DriveInfo, Io};
use nandscape_sim::signal::Signal;
use nandscape_sim::trace::Event;
use nandscape_sim::{Executor, Sim, Span};
use nandscape_transport_reactor::recording::{Reader, Recorder, RecordingError};
use nandscape_transport_reactor::replay::{Ending, replay};
use nandscape_transport_reactor::ring::RingHost;
use nandscape_transport_reactor::{Export, Handle, PollMode, Port, Reactor, Setup};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

/// Serves one command at a time, in order; a command takes 1 us and as many as its address modulo 40.
struct Server {
    queue: RefCell<VecDeque<Io>>,
    came: Signal,
}

impl Server {
    fn start(sim: &Sim) -> Rc<Server> {
        let server = Rc::new(Server { queue: RefCell::default(), came: Signal::new(sim) });
        let (sim, me) = (sim.clone(), server.clone());
        let track = sim.trace().track("server".to_owned());
        sim.clone().spawn(async move {
            loop {
                let next = me.queue.borrow_mut().pop_front();
                let Some(io) = next else {
                    me.came.changed().await;
                    continue;
                };
                let (start, slba) = (sim.now(), io.command.slba());
                sim.sleep(Span::from_us(1 + slba % 40)).await;
                sim.trace_event(|end| Event { track, name: "serve", start, end, detail: slba });
                if !io.mem.is_none() {
                    io.mem.write(0, &slba.to_le_bytes());
                }
                io.token.complete(Completion::of(Status::SUCCESS));
            }
        });
        server
    }
}

/// A way into the server.
struct Way(Rc<Server>);

impl Drive for Way {
    fn info(&self) -> DriveInfo {
        DriveInfo {
            nsid: 1,
            blocks: 1 << 20,
            lba_bytes: 512,
            max_blocks: 256,
            unit_bytes: 4_096,
            volatile_cache: false,
            keeps_data: true,
        }
    }

    fn submit(&self, io: Io) {
        self.0.queue.borrow_mut().push_back(io);
        self.0.came.notify();
    }
}

struct Only(Rc<Server>);

impl Export for Only {
    fn info(&self) -> DriveInfo {
        Way(self.0.clone()).info()
    }

    fn connect(&self) -> Result<Rc<dyn Drive>, Status> {
        Ok(Rc::new(Way(self.0.clone())))
    }
}

fn build() -> (Executor, Port) {
    let executor = Executor::new();
    let sim = executor.sim();
    sim.trace().switch_on();
    let server = Server::start(&sim);
    let port = Port::new(&sim, vec![Rc::new(Only(server))]);
    (executor, port)
}

/// Serves until stopped; the trace.
fn serve(poll: PollMode, record: Option<&Path>, work: impl FnOnce(Handle) + Send) -> String {
    let (tell, told) = std::sync::mpsc::channel();
    thread::scope(|scope| {
        let reactor = scope.spawn(move || {
            let (executor, mut port) = build();
            if let Some(path) = record {
                port.record(Recorder::create(path, "a test").unwrap());
            }
            let log = Box::new(|_: &str| {});
            let setup = Setup { executor, port, names: vec!["only".to_owned()], poll, log };
            let (reactor, handle) = Reactor::new(setup).unwrap();
            tell.send(handle).unwrap();
            let (executor, figures) = reactor.run().unwrap();
            assert_eq!((figures.outstanding, figures.clients), (0, 0));
            executor.sim().trace().to_chrome_json()
        });
        let handle: Handle = told.recv().unwrap();
        work(handle.clone());
        handle.stop();
        reactor.join().unwrap()
    })
}

/// Keeps `depth` reads outstanding until `count` are done, then leaves with what is outstanding.
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

fn replayed(path: &Path) -> (String, Ending, usize) {
    let (mut executor, mut port) = build();
    let mut reader = Reader::open(path).unwrap();
    assert_eq!(reader.header(), "a test");
    let mut count = 0;
    let ending = replay(&mut executor, &mut port, &mut reader, |_| count += 1).unwrap();
    (executor.sim().trace().to_chrome_json(), ending, count)
}

#[test]
fn a_recorded_run_replays_to_the_byte() {
    let folder = tempfile::tempdir().unwrap();
    for (number, poll) in [PollMode::Adaptive, PollMode::Busy].into_iter().enumerate() {
        let path = folder.path().join(format!("{number}.rec"));
        let live = serve(poll, Some(&path), |handle| {
            // Several clients one after another, each of which leaves in the middle, and one idle beside them.
            let _idle = RingHost::connect(&handle, 0, 4).unwrap();
            for (seed, depth) in [(1, 1), (2, 8), (3, 3)] {
                client(&handle, seed, depth, 60);
            }
        });
        let (again, ending, released) = replayed(&path);
        assert!(released >= 180, "{released} commands were replayed");
        assert_eq!(ending, Ending::Whole);
        assert!(live.len() > 5_000 && live == again, "{poll:?}: the traces differ");
    }
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
            replay(&mut executor, &mut port, &mut reader, |_| {})
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
