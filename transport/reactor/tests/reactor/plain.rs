//! A plain drive behind a reactor on a thread: one server, a service time by address. Waiting commands of a client that
//! disconnects are dropped, so the event trace shows when it left.

use std::cell::Cell;
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::thread;

use nandscape_drive::testing::{FakeDrive, INFO, Servers, Service};
use nandscape_drive::{Drive, DriveInfo, Io};
use nandscape_sim::trace::{Event, Track};
use nandscape_sim::{Executor, Sim, Span, Time};
use nandscape_transport_reactor::recording::{Reader, Recorder};
use nandscape_transport_reactor::replay::{Ending, replay};
use nandscape_transport_reactor::{Connect, Export, Handle, Order, PollMode, Port, Reactor, Setup};
use nandscape_wire_nvme::Status;

/// A command takes 1 us and as many as its address modulo 40.
struct Plain {
    sim: Sim,
    track: Track,
    /// The time that each command takes longer.
    slow: Cell<Span>,
}

impl Service for Plain {
    fn begin(&self, io: &Io) -> Span {
        Span::from_us(1 + io.command.slba() % 40) + self.slow.get()
    }

    fn end(&self, io: &Io, start: Time) -> Status {
        let slba = io.command.slba();
        self.sim.trace_event(|end| Event { track: self.track, name: "serve", start, end, detail: slba });
        if !io.mem.is_none() {
            io.mem.write(0, &slba.to_le_bytes());
        }
        Status::SUCCESS
    }
}

struct Only(Rc<FakeDrive<Plain>>);

impl Connect for Only {
    fn info(&self) -> DriveInfo {
        self.0.info()
    }

    fn connect(&self) -> Result<Rc<dyn Drive>, Status> {
        Ok(self.0.connect())
    }
}

impl Export for Only {
    fn order(&self, order: &Order) -> Result<(), String> {
        let slow = match order {
            Order::AddFault(text) => text.parse().map_err(|_| format!("{text:?} is not a time such as \"40us\""))?,
            Order::ClearFaults => Span::ZERO,
            Order::Set(_) => return Err("it has no settings".to_owned()),
        };
        self.0.service().slow.set(slow);
        Ok(())
    }
}

/// The drive, with its events traced.
pub(crate) fn build() -> (Executor, Port) {
    let executor = Executor::new();
    let sim = executor.sim();
    sim.trace().switch_on();
    let service =
        Plain { sim: sim.clone(), track: sim.trace().track("server".to_owned()), slow: Cell::new(Span::ZERO) };
    let info = DriveInfo { blocks: 1 << 20, keeps_data: true, ..INFO };
    let drive = FakeDrive::new(&sim, info, Servers::One, service);
    let port = Port::new(&sim, vec![Rc::new(Only(drive))]);
    (executor, port)
}

/// The remains of a reactor.
pub(crate) struct Served {
    /// Every event of the drive.
    pub(crate) trace: String,
    /// Its log lines of clients, and its recording.
    pub(crate) said: Vec<String>,
    /// What became of its recording, unless it is whole.
    pub(crate) problem: Option<String>,
}

/// Serves while `work` is done, then ends in order.
pub(crate) fn serve(poll: PollMode, record: Option<&Path>, work: impl FnOnce(Handle) + Send) -> Served {
    let (tell, told) = std::sync::mpsc::channel();
    let said = Arc::new(Mutex::new(Vec::new()));
    let says = said.clone();
    let (trace, problem) = thread::scope(|scope| {
        let reactor = scope.spawn(move || {
            let (executor, mut port) = build();
            if let Some(path) = record {
                port.record(Recorder::on(std::fs::File::create(path).unwrap(), path, "a test").unwrap());
            }
            let log = Box::new(move |line: &str| says.lock().unwrap().push(line.to_owned()));
            let setup = Setup { timelines: vec![executor], port, names: vec!["only".to_owned()], poll, log };
            let (reactor, handle) = Reactor::new(setup).unwrap();
            tell.send(handle).unwrap();
            let (timelines, figures) = reactor.run().unwrap();
            assert_eq!((figures.outstanding, figures.clients), (0, 0));
            (timelines[0].sim().trace().to_chrome_json(), figures.recording_problem)
        });
        let handle: Handle = told.recv().unwrap();
        work(handle.clone());
        handle.stop();
        reactor.join().unwrap()
    });
    let said = said.lock().unwrap().clone();
    Served { trace, said, problem }
}

/// The trace of a recording, how it ended, and how many commands completed.
pub(crate) fn replayed(path: &Path) -> (String, Ending, usize) {
    let (mut executor, mut port) = build();
    let mut reader = Reader::open(path).unwrap();
    assert_eq!(reader.header(), "a test");
    let mut count = 0;
    let replayed = replay(std::slice::from_mut(&mut executor), &mut port, &mut reader, |_, _| count += 1).unwrap();
    (executor.sim().trace().to_chrome_json(), replayed.ending, count)
}
