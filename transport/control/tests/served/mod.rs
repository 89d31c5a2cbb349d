//! Reactors over drives with known behaviour: a command takes 10 us, commands beyond the end fail, and commands farther
//! beyond fail as unreadable data does.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::mpsc::channel;
use std::thread;

use nandscape_drive::testing::{FakeDrive, INFO, Servers, Service};
use nandscape_drive::{Drive, DriveInfo, Io};
use nandscape_sim::{Executor, Sim, Span, Time};
use nandscape_transport_reactor::ring::RingHost;
use nandscape_transport_reactor::{Connect, Export, FaultCount, Handle, Order, PollMode, Port, Reactor, Setup};
use nandscape_wire_nvme::io::FUA;
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

/// Blocks of a drive.
const BLOCKS: u64 = 1_000;
/// Bytes of a block.
pub(crate) const BLOCK: usize = 512;

/// Takes 10 us for anything.
struct TenMicroseconds;

impl Service for TenMicroseconds {
    fn begin(&self, _: &Io) -> Span {
        Span::from_us(10)
    }

    fn end(&self, io: &Io, _: Time) -> Status {
        match io.command.slba() {
            _ if io.command.opcode == IoOpcode::FLUSH.0 => Status::SUCCESS,
            slba if slba < BLOCKS => Status::SUCCESS,
            BLOCKS => Status::LBA_OUT_OF_RANGE,
            _ => Status::UNRECOVERED_READ_ERROR,
        }
    }
}

fn drive(sim: &Sim) -> Rc<FakeDrive<TenMicroseconds>> {
    FakeDrive::new(sim, DriveInfo { blocks: BLOCKS, ..INFO }, Servers::Unlimited, TenMicroseconds)
}

/// Takes rules that begin with "fail", and a setting named "speed".
struct Counting(Rc<FakeDrive<TenMicroseconds>>, RefCell<Vec<String>>, RefCell<String>);

impl Connect for Counting {
    fn info(&self) -> DriveInfo {
        self.0.info()
    }

    fn connect(&self) -> Result<Rc<dyn Drive>, Status> {
        Ok(self.0.connect())
    }
}

impl Export for Counting {
    fn counters(&self) -> BTreeMap<&'static str, f64> {
        BTreeMap::from([("free_blocks", 7.0), ("programmed_bytes_total", 8_192.0)])
    }

    fn order(&self, order: &Order) -> Result<(), String> {
        match order {
            Order::AddFault(rule) if rule.starts_with("fail") => self.1.borrow_mut().push(rule.clone()),
            Order::AddFault(rule) => return Err(format!("{rule:?}: only failures are valid")),
            Order::ClearFaults => self.1.borrow_mut().clear(),
            Order::Set(setting) if setting.starts_with("speed=") => *self.2.borrow_mut() = setting[6..].to_owned(),
            Order::Set(setting) => return Err(format!("{setting:?}: only speed can be set")),
        }
        Ok(())
    }

    fn faults(&self) -> Vec<FaultCount> {
        self.1.borrow().iter().map(|rule| FaultCount { rule: rule.clone(), matched: 8, struck: 3 }).collect()
    }

    fn settings(&self) -> Vec<(String, String)> {
        vec![("speed".to_owned(), self.2.borrow().clone())]
    }
}

/// Runs a reactor for each list of drives while `work` is done with the ways to them.
pub(crate) fn serve(reactors: &[&[&str]], work: impl FnOnce(Vec<Handle>)) {
    thread::scope(|scope| {
        let start = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            let (tell, told) = channel();
            scope.spawn(move || {
                let executor = Executor::new();
                let sim = executor.sim();
                let exports = names
                    .iter()
                    .map(|_| Rc::new(Counting(drive(&sim), RefCell::default(), RefCell::default())) as Rc<dyn Export>)
                    .collect();
                let port = Port::new(&sim, exports);
                let setup =
                    Setup { timelines: vec![executor], port, names, poll: PollMode::Adaptive, log: Box::new(|_| {}) };
                let (reactor, handle) = Reactor::new(setup).unwrap();
                tell.send(handle).unwrap();
                reactor.run().unwrap();
            });
            told.recv().unwrap()
        };
        let handles: Vec<Handle> = reactors.iter().map(|names| start(names)).collect();
        let ends = Ends(handles.clone());
        work(handles);
        drop(ends);
    });
}

/// Stops the reactors, even if the work has panicked.
struct Ends(Vec<Handle>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.iter().for_each(Handle::stop);
    }
}

/// Issues commands to a drive one after another: `reads` reads of two blocks, `writes` writes of one, `flushes` flushes,
/// and a read that fails.
pub(crate) fn load(handle: &Handle, export: u16, reads: usize, writes: usize, flushes: usize) {
    let mut host = RingHost::connect(handle, export, 4).unwrap();
    let read = SubmissionEntry::blocks(IoOpcode::READ, 1, 4, 2);
    let write = SubmissionEntry::blocks(IoOpcode::WRITE, 1, 8, 1);
    let commands = std::iter::repeat_n((read, 2), reads)
        .chain(std::iter::repeat_n((write, 1), writes))
        .chain(std::iter::repeat_n((SubmissionEntry::io(IoOpcode::FLUSH, 1), 0), flushes))
        .chain([(SubmissionEntry::blocks(IoOpcode::READ, 1, BLOCKS, 1), 1)]);
    run(&mut host, commands);
}

/// Does a write of a block with Force Unit Access.
#[allow(dead_code, reason = "not every test that includes this has use for it")]
pub(crate) fn force_a_write(handle: &Handle, export: u16) {
    let mut host = RingHost::connect(handle, export, 4).unwrap();
    let write = SubmissionEntry::blocks(IoOpcode::WRITE, 1, 8, 1);
    run(&mut host, [(SubmissionEntry { cdw12: (write.cdw12.get() | FUA).into(), ..write }, 1)]);
}

/// Does a read that fails as data does that cannot be read back.
#[allow(dead_code, reason = "not every test that includes this has use for it")]
pub(crate) fn read_the_unreadable(handle: &Handle, export: u16) {
    let mut host = RingHost::connect(handle, export, 4).unwrap();
    run(&mut host, [(SubmissionEntry::blocks(IoOpcode::READ, 1, BLOCKS + 1, 1), 1)]);
}

fn run(host: &mut RingHost, commands: impl IntoIterator<Item = (SubmissionEntry, usize)>) {
    for (tag, (command, blocks)) in commands.into_iter().enumerate() {
        host.submit(tag as u64, command, vec![0; blocks * BLOCK]).unwrap();
        while host.poll().is_none() {
            thread::yield_now();
        }
    }
}
