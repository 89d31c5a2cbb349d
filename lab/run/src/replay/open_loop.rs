//! The requests of a recording on changed drives, each at its arrival time: an open loop. The recorded hosts
//! waited for their completions, so on another drive they would have issued at other times; a note reports this.
//!
//! Each recorded connection has its own queue pair while the drive has any left; further connections share them. Connections
//! are not closed, so that every command completes. Rules for class and tenant see the recorded clients and their queues.
//!
//! If the first request would arrive before the drives are open, all requests are later by that time: opening may take longer than in
//! the recorded run, and several drives open one after the other.

use std::collections::BTreeMap;
use std::rc::Rc;

use nandscape_drive::Assignments;
use nandscape_lab_workload::Backlog;
use nandscape_sim::{Executor, Span, Time};
use nandscape_transport_reactor::recording::{Event, RecordingError, Request, Requests};
use nandscape_transport_reactor::{ConnectionId, Export, Port, Released};

use super::fit::Fit;

/// Requests between two calls of `goes_on`.
const QUESTION: u64 = 4_096;

/// Why the requests cannot be played.
pub(super) enum Failure {
    Recording(RecordingError),
    /// In words.
    Drive(String),
}

impl From<RecordingError> for Failure {
    fn from(error: RecordingError) -> Failure {
        Failure::Recording(error)
    }
}

/// A drive to play requests on.
pub(super) struct Target {
    pub(super) name: String,
    pub(super) export: Rc<dyn Export>,
    /// The rules for class and tenant of its recorded clients, in place of those that it has for the clients of this run.
    pub(super) rules: Assignments,
}

/// See the module.
pub(super) struct Player<'a> {
    executor: &'a mut Executor,
    port: Port,
    drives: Vec<OfDrive>,
    /// By recorded connection.
    connections: BTreeMap<ConnectionId, ConnectionId>,
    time: Time,
    /// By how much the requests are later than recorded; `None` before the first.
    later: Option<Span>,
}

/// What is known of one drive.
struct OfDrive {
    name: String,
    fit: Fit,
    connections: Vec<ConnectionId>,
    sharing: u64,
    outstanding: u64,
    backlog: Option<Backlog>,
}

/// What became of one drive's requests.
pub(super) struct Played {
    pub(super) backlog: Option<Backlog>,
    pub(super) notes: Vec<String>,
}

impl<'a> Player<'a> {
    /// On these drives.
    pub(super) fn new(executor: &'a mut Executor, targets: &[Target]) -> Result<Player<'a>, Failure> {
        let sim = executor.sim();
        let exports = targets.iter().map(|target| target.export.clone()).collect();
        let of_drive = |Target { name, export, rules }: &Target| {
            let namespaces = export.namespaces();
            if let Some(info) = namespaces.iter().find(|info| info.metadata_bytes > 0) {
                return Err(Failure::Drive(format!(
                    "drive {name}: namespace {} has {} bytes of metadata a logical block, which recorded requests do not \
                     have; a what-if needs namespaces without",
                    info.nsid, info.metadata_bytes
                )));
            }
            export.subsystem().iter().for_each(|subsystem| subsystem.assign(&Assignments::default()));
            let (name, fit) = (name.clone(), Fit::new(namespaces, rules.clone()));
            Ok(OfDrive { name, fit, connections: Vec::new(), sharing: 0, outstanding: 0, backlog: None })
        };
        let drives = targets.iter().map(of_drive).collect::<Result<_, Failure>>()?;
        let (time, port) = (sim.now(), Port::new(&sim, exports));
        Ok(Player { executor, port, drives, connections: BTreeMap::new(), time, later: None })
    }

    /// Plays all requests, while `goes_on` returns true; it is called now and then. Returns whether the replay reached the end,
    /// and the outcome of each drive. `on_release` gets every completion, and the byte offset of its command.
    pub(super) fn play(
        mut self,
        requests: &mut Requests,
        mut on_release: impl FnMut(Released, u64),
        mut goes_on: impl FnMut(u64) -> bool,
    ) -> Result<(bool, Vec<Played>), Failure> {
        let (mut released, mut played, mut is_whole) = (Vec::new(), 0_u64, true);
        while let Some((at, event)) = requests.next()? {
            is_whole = !played.is_multiple_of(QUESTION) || goes_on(requests.position());
            if !is_whole {
                break;
            }
            played += 1;
            self.advance(at)?;
            self.deliver(&mut released, &mut on_release);
            match event {
                Event::Request(request) => self.submit(&request)?,
                // A drive that rejects it now might have rejected it in the recorded run.
                Event::Order { export, order } => drop(self.port.order(export, &order)),
            }
        }
        self.advance(requests.now())?;
        self.deliver(&mut released, &mut on_release);
        while self.port.outstanding() > 0 {
            let Some(due) = self.executor.next_due() else {
                let left = self.port.outstanding();
                return Err(Failure::Drive(format!("{left} requests are left in the drives, and nothing ends them")));
            };
            self.run_to(due)?;
            self.deliver(&mut released, &mut on_release);
        }
        Ok((is_whole, self.drives.into_iter().map(OfDrive::played).collect()))
    }

    /// Runs the drives up to a recorded time.
    fn advance(&mut self, recorded: Time) -> Result<(), Failure> {
        let opened = self.time;
        let later = *self.later.get_or_insert_with(|| opened.since(recorded.min(opened)));
        let at = recorded + later;
        if at > self.time {
            self.time = at;
            self.run_to(at)?;
        }
        self.executor.arrive(self.time);
        self.port.begin_turn(0, None);
        Ok(())
    }

    fn run_to(&mut self, at: Time) -> Result<(), Failure> {
        if self.executor.advance(at, u32::MAX) {
            return Ok(());
        }
        let (at, most) = (at.since(Time::ZERO), u32::MAX);
        Err(Failure::Drive(format!("the drives do not reach the time of a request, {at}, in {most} steps")))
    }

    fn deliver(&mut self, released: &mut Vec<Released>, on_release: &mut impl FnMut(Released, u64)) {
        self.port.take_released(released);
        for released in released.drain(..) {
            self.drives[usize::from(released.export)].outstanding -= 1;
            let offset = released.tag;
            on_release(released, offset);
        }
    }

    fn submit(&mut self, request: &Request) -> Result<(), Failure> {
        let Some(drive) = self.drives.get_mut(usize::from(request.export)) else { return Ok(()) };
        let Some(fitted) = drive.fit.fit(request) else { return Ok(()) };
        let connection = match self.connections.get(&request.connection) {
            Some(connection) => *connection,
            None => {
                let connection = drive.connect(&mut self.port, request.export)?;
                self.connections.insert(request.connection, connection);
                connection
            }
        };
        drive.outstanding += 1;
        drive.backlog.get_or_insert_default().arrived(self.time, drive.outstanding);
        self.port.submit(connection, fitted.offset, fitted.entry, fitted.mem);
        Ok(())
    }
}

impl OfDrive {
    /// A connection for one more client: a new one, or a shared one.
    fn connect(&mut self, port: &mut Port, export: u16) -> Result<ConnectionId, Failure> {
        match port.open(export) {
            Ok(connection) => {
                self.connections.push(connection);
                Ok(connection)
            }
            Err(status) if self.connections.is_empty() => {
                Err(Failure::Drive(format!("drive {} refuses a connection: {status}", self.name)))
            }
            Err(_) => {
                self.sharing += 1;
                Ok(self.connections[self.sharing as usize % self.connections.len()])
            }
        }
    }

    fn played(self) -> Played {
        let Fit { moved, shortened, left_out, .. } = self.fit;
        let counts = [
            (moved, "requests lay beyond the capacity of the drive and were moved into it"),
            (shortened, "requests were longer than the drive allows and were shortened"),
            (
                left_out,
                "commands other than reads, writes, deallocations and flushes, or without a valid address, were left out",
            ),
            (self.sharing, "connections had no queue pair of their own and shared one"),
        ];
        let notes = counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
        Played { backlog: self.backlog, notes: notes.collect() }
    }
}
