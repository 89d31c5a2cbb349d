//! A run of an engine whose commands are recorded. Its host and its drives have a clock each, in simulated time, and commands pass a
//! port, as those of clients pass that of a server: a replay has the same arrivals at the same times.
//!
//! The data of writes is not recorded. Left out: admin commands, states, and reports, which the replay has.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use nandscape_device_ssd::Resolved;
use nandscape_drive::{Drive, DriveInfo, HostMem, Io, Token};
use nandscape_sim::slots::{Key, Slots};
use nandscape_sim::{Executor, Stalled, Time};
use nandscape_transport_reactor::recording::{Kept, Recorder};
use nandscape_transport_reactor::{ConnectionId, Export, Port, Released};
use nandscape_wire_nvme::SubmissionEntry;

use super::{Below, Ran, Top, TowerError, Way};
use crate::build::Precondition;
use crate::live::{DriveSpec, LiveDrives};
use crate::live_drive::LiveDrive;

/// The port as the engine sees it: commands wait here for the clock of the drives.
pub(super) struct Outside {
    info: DriveInfo,
    sent: RefCell<Vec<(u64, SubmissionEntry, HostMem)>>,
    under_way: RefCell<Slots<Token>>,
}

impl Drive for Outside {
    fn info(&self) -> DriveInfo {
        self.info
    }

    fn submit(&self, Io { command, mem, token }: Io) {
        let tag = self.under_way.borrow_mut().insert(token).to_bits();
        self.sent.borrow_mut().push((tag, command, mem));
    }
}

/// Runs an engine on what `below` describes, and records its commands.
pub(super) fn run<T, E, F>(
    below: &Below,
    drive: &Resolved,
    (seed, path): (u64, &Path),
    body: impl FnOnce(Rc<Top>) -> F,
) -> Result<Ran<T>, E>
where
    T: 'static,
    E: From<TowerError> + 'static,
    F: Future<Output = Result<T, E>> + 'static,
{
    below.check(drive)?;
    let live = described(below, drive, seed)?;
    let mut drives = Executor::new();
    let export = built(&live, &mut drives)?;
    let ssds = export.models().map(|(_, model)| model.ssd().clone()).collect();
    let mut clocks = Clocks::new(drives, export, (&live, path))?;
    let (sim, way) = (clocks.host.sim(), Way::Port(clocks.outside.clone()));
    let top = Rc::new(Top { sim: sim.clone(), ssds, way, watch: None });
    let (ended, engine) = (Rc::new(RefCell::new(None)), body(top));
    let outcome = ended.clone();
    sim.spawn(async move {
        let output = engine.await;
        outcome.replace(Some(output));
    });
    clocks.run_until(|| ended.borrow().is_some())?;
    clocks.end(path)?;
    let outcome = ended.take().expect("the engine has ended")?;
    Ok(Ran { outcome, report: None, trace: None })
}

/// The drives as the header of a recording has them.
fn described(below: &Below, drive: &Resolved, seed: u64) -> Result<LiveDrives, TowerError> {
    let profiles = below.profiles(drive)?;
    let is_alone = profiles.len() == 1;
    let spec = |(number, profile): (usize, Resolved)| DriveSpec {
        name: if is_alone { profile.name.clone() } else { crate::name_of_drive(number) },
        number: number as u64,
        profile_name: profile.name.clone(),
        profile: profile.to_toml(),
        keeps_data: true,
        precondition: Precondition::None,
        from_state: None,
        is_shared: false,
    };
    Ok(LiveDrives {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        seed,
        drives: profiles.into_iter().enumerate().map(spec).collect(),
        layers: below.chain.clone(),
        assign: Vec::new(),
    })
}

/// What clients of drives connect to.
fn built(live: &LiveDrives, executor: &mut Executor) -> Result<Rc<LiveDrive>, TowerError> {
    let built = live.build(std::slice::from_mut(executor), &());
    let drives = built.map_err(|error| TowerError::Layers(error.to_string()))?;
    Ok(drives.into_iter().next().expect("a drive was described"))
}

/// The clock of the host and the clock of the drives, which show the same time.
struct Clocks {
    host: Executor,
    drives: Executor,
    port: Port,
    connection: ConnectionId,
    outside: Rc<Outside>,
    now: Time,
}

impl Clocks {
    fn new(
        mut drives: Executor,
        export: Rc<dyn Export>,
        (live, path): (&LiveDrives, &Path),
    ) -> Result<Clocks, TowerError> {
        let failed = |error: std::io::Error| TowerError::Record(format!("cannot write {}: {error}", path.display()));
        let header = serde_json::to_string(live).expect("plain data");
        let recorder = Recorder::create(path, &header).map_err(failed)?.keeping(Kept::Timing);
        let mut port = Port::new(&drives.sim(), vec![export]);
        port.record(recorder);
        let now = drives.sim().now();
        while !drives.advance(now, u32::MAX) {}
        drives.arrive(now);
        port.begin_turn(0, None);
        let connection = port.open(0).map_err(|status| {
            TowerError::Layers(format!(
                "the drive has no room for a queue pair: {status}; raise controller.queue_pairs"
            ))
        })?;
        let info = port.info(connection).expect("it was just opened");
        let mut host = Executor::new();
        host.arrive(now);
        let outside = Rc::new(Outside { info, sent: RefCell::default(), under_way: RefCell::default() });
        Ok(Clocks { host, drives, port, connection, outside, now })
    }

    /// Runs both until the engine has ended.
    fn run_until(&mut self, has_ended: impl Fn() -> bool) -> Result<(), TowerError> {
        loop {
            while !self.host.advance(self.now, u32::MAX) {}
            if has_ended() {
                return Ok(());
            }
            if self.submit() {
                continue;
            }
            let next = self.host.next_due().into_iter().chain(self.drives.next_due()).min();
            self.now = next.ok_or(Stalled { at: self.now })?;
            // Completions of this instant come from outside the host.
            self.host.arrive(self.now);
            self.advance_drives();
        }
    }

    /// Hands the commands of this instant to the drives. Returns whether there were any.
    fn submit(&mut self) -> bool {
        let sent = self.outside.sent.take();
        if sent.is_empty() {
            return false;
        }
        self.advance_drives();
        self.drives.arrive(self.now);
        self.port.begin_turn(0, None);
        for (tag, command, mem) in sent {
            self.port.submit(self.connection, tag, command, mem);
        }
        self.advance_drives();
        true
    }

    /// Runs what the drives have to do by now, and completes the commands that have ended.
    fn advance_drives(&mut self) {
        while !self.drives.advance(self.now, u32::MAX) {}
        let mut released = Vec::new();
        self.port.take_released(&mut released);
        for Released { tag, completion, .. } in released {
            let token = self.outside.under_way.borrow_mut().remove(Key::from_bits(tag));
            token.expect("a command completes once").complete(completion);
        }
    }

    /// Ends the recording at this time.
    fn end(mut self, path: &Path) -> Result<(), TowerError> {
        self.advance_drives();
        self.drives.arrive(self.now);
        self.port.begin_turn(0, None);
        let ended = self.port.end_recording();
        ended.map_err(|error| TowerError::Record(format!("cannot write {}: {error}", path.display())))
    }
}
