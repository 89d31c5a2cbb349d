//! A plain drive behind a reactor on a thread: one server, a service time by address. What a client that has gone left in
//! the queue is dropped undone, so that the drive can tell when it went.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::thread;

use nandscape_drive::{Completion, Drive, DriveInfo, Io};
use nandscape_sim::signal::Signal;
use nandscape_sim::trace::Event;
use nandscape_sim::{Executor, Sim, Span};
use nandscape_transport_reactor::recording::{Reader, Recorder};
use nandscape_transport_reactor::replay::{Ending, replay};
use nandscape_transport_reactor::{Export, Handle, Order, PollMode, Port, Reactor, Setup};
use nandscape_wire_nvme::Status;

/// Serves one command at a time, in order; a command takes 1 us and as many as its address modulo 40.
pub(crate) struct Server {
    queue: RefCell<VecDeque<(Rc<Cell<bool>>, Io)>>,
    came: Signal,
    /// Each command takes so much longer.
    slow: Cell<Span>,
}

impl Server {
    fn start(sim: &Sim) -> Rc<Server> {
        let server = Rc::new(Server { queue: RefCell::default(), came: Signal::new(sim), slow: Cell::new(Span::ZERO) });
        let (sim, me) = (sim.clone(), server.clone());
        let track = sim.trace().track("server".to_owned());
        sim.clone().spawn(async move {
            loop {
                let next = me.queue.borrow_mut().pop_front();
                let Some((gone, io)) = next else {
                    me.came.changed().await;
                    continue;
                };
                if gone.get() {
                    io.token.complete(Completion::of(Status::ABORTED_SQ_DELETION));
                    continue;
                }
                let (start, slba) = (sim.now(), io.command.slba());
                sim.sleep(Span::from_us(1 + slba % 40) + me.slow.get()).await;
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
struct Way {
    server: Rc<Server>,
    gone: Rc<Cell<bool>>,
}

impl Drop for Way {
    fn drop(&mut self) {
        self.gone.set(true);
    }
}

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
        self.server.queue.borrow_mut().push_back((self.gone.clone(), io));
        self.server.came.notify();
    }
}

struct Only(Rc<Server>);

impl Export for Only {
    fn info(&self) -> DriveInfo {
        Way { server: self.0.clone(), gone: Rc::default() }.info()
    }

    fn connect(&self) -> Result<Rc<dyn Drive>, Status> {
        Ok(Rc::new(Way { server: self.0.clone(), gone: Rc::default() }))
    }

    fn order(&self, order: &Order) -> Result<(), String> {
        let slow = match order {
            Order::AddFault(text) => text.parse().map_err(|_| format!("{text:?} is not a time such as \"40us\""))?,
            Order::ClearFaults => Span::ZERO,
        };
        self.0.slow.set(slow);
        Ok(())
    }
}

/// The drive, with its events traced.
pub(crate) fn build() -> (Executor, Port) {
    let executor = Executor::new();
    let sim = executor.sim();
    sim.trace().switch_on();
    let server = Server::start(&sim);
    let port = Port::new(&sim, vec![Rc::new(Only(server))]);
    (executor, port)
}

/// What a reactor leaves behind.
pub(crate) struct Served {
    /// Every event of the drive.
    pub(crate) trace: String,
    /// What it said of its clients and its recording.
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
                port.record(Recorder::create(path, "a test").unwrap());
            }
            let log = Box::new(move |line: &str| says.lock().unwrap().push(line.to_owned()));
            let setup = Setup { executor, port, names: vec!["only".to_owned()], poll, log };
            let (reactor, handle) = Reactor::new(setup).unwrap();
            tell.send(handle).unwrap();
            let (executor, figures) = reactor.run().unwrap();
            assert_eq!((figures.outstanding, figures.clients), (0, 0));
            (executor.sim().trace().to_chrome_json(), figures.recording_problem)
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
    let ending = replay(&mut executor, &mut port, &mut reader, |_| count += 1).unwrap();
    (executor.sim().trace().to_chrome_json(), ending, count)
}
