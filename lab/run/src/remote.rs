//! A remote drive, served again: an NVMe/TCP initiator behind controllers of this process, so that every
//! transport serves it. It keeps no data here and adds no model time.
//!
//! Its NQN and the identifiers of its namespace differ from the remote drive's: a host that sees both paths to the data treats
//! them as two drives. They derive from the seed, its name and its target, and stay the same over restarts.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::rc::Rc;

use nandscape_drive::{CommandRef, Drive, DriveInfo, Io, Names, Offers};
use nandscape_host_driver::Remote;
use nandscape_host_driver::nvme_tcp::{AdminQueue, ConnectError, Connected, Identity, NvmeTcp, Target};
use nandscape_sim::{Seed, Sim, Span};
use nandscape_transport_reactor::{Connect, Export, Fronted, Order, Source, WallClock};
use nandscape_wire_nvme::identify;

use crate::forwarded::Forwarded;
use crate::tap::{Tail, Tap};

/// Why a remote drive cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// Its server does not answer.
    #[error("{0}")]
    OutOfReach(String),
    /// Its server refuses, or the drive is of another kind.
    #[error("{0}")]
    Unusable(String),
}

impl From<RemoteError> for String {
    fn from(error: RemoteError) -> String {
        error.to_string()
    }
}

/// A remote drive that is to be served.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RemoteSpec {
    /// The name that clients use.
    pub name: String,
    /// Where it is.
    pub target: Target,
    /// Seed of the subsystem's NQN.
    pub seed: u64,
}

impl RemoteSpec {
    /// Connects to it. Blocks for some seconds at most for each answer of the target.
    ///
    /// # Errors
    /// That it cannot be reached, or served, with its URL.
    pub fn connect(&self, sim: &Sim) -> Result<RemoteExport, RemoteError> {
        self.serve(sim, Rc::new(Far::connect(&self.target)?))
    }

    /// The same over a connection that exists, without blocking.
    ///
    /// # Errors
    /// That it cannot be served, with its URL.
    pub fn over(&self, sim: &Sim, connected: Connected) -> Result<RemoteExport, RemoteError> {
        self.serve(sim, Rc::new(Far::over(&self.target, Ok(connected))?))
    }

    /// The same over one that is connected to.
    pub(crate) fn serve(&self, sim: &Sim, far: Rc<Far>) -> Result<RemoteExport, RemoteError> {
        let identity = far.drive.identity().clone();
        let tap = Tap::over_remote(sim, far.clone(), Rc::new(Tail::default()));
        let front = Forwarded::new(sim, tap.clone(), offers(&identity), self.names(&identity));
        let front = front.map_err(|problem| RemoteError::Unusable(format!("{}: {problem}", self.target)))?;
        Ok(RemoteExport { far, tap, identity, front })
    }

    /// The names of the served subsystem: those of the remote drive, with a separate NQN.
    fn names(&self, identity: &Identity) -> Names {
        let seed = Seed::new(self.seed).child("remote").child(&self.target.to_string()).child(&self.name);
        Names {
            nqn: format!("nqn.2026-11.org.nandscape:remote-{:016x}", seed.value()),
            serial: identity.serial.clone(),
            model: identity.model.clone(),
            firmware: identity.firmware.clone(),
        }
    }
}

/// The commands that the remote drive takes and that may be forwarded.
pub(crate) fn offers(identity: &Identity) -> Offers {
    let has = |bit: u16| identity.optional_commands & bit != 0;
    Offers {
        compare: has(identify::ONCS_COMPARE),
        deallocate: has(identify::ONCS_DSM),
        write_zeroes: has(identify::ONCS_WRITE_ZEROES),
        verify: has(identify::ONCS_VERIFY),
        write_uncorrectable: has(identify::ONCS_WRITE_UNCORRECTABLE),
        // Its limits of a Copy may be lower than those of the controllers here.
        copy: false,
        dlfeat: identity.deallocated,
        attributes: identity.attributes,
        hints: identity.hints,
        deadlines: identity.deadlines,
    }
}

/// A remote drive behind controllers of this process.
pub struct RemoteExport {
    far: Rc<Far>,
    /// What hosts in this process and the front submit to.
    tap: Rc<Tap>,
    identity: Identity,
    front: Forwarded,
}

impl RemoteExport {
    /// Who the remote drive is.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The commands that it takes.
    pub fn offers(&self) -> Offers {
        self.front.offers()
    }

    /// The remote drive itself, for a host in this process.
    pub fn drive(&self) -> Rc<dyn Drive> {
        self.tap.clone()
    }

    /// Its admin queue. A command that waits for an answer when the connection breaks fails.
    pub fn admin(&self) -> Rc<dyn Drive> {
        Rc::new(FarAdmin::of(&self.far))
    }

    /// The connection to it.
    pub fn connection(&self) -> &Rc<NvmeTcp> {
        &self.far.drive
    }

    /// Disconnects it for good: its commands fail, and the log has the reason.
    pub fn close(&self, reason: &str) {
        self.far.drive.close(reason);
        // The loop looks for its news.
        self.far.unsent.set(true);
    }

    /// Calls `act` each time that the connection is lost.
    pub fn on_loss(&self, act: impl Fn() + 'static) {
        self.far.on_loss.replace(Some(Box::new(act)));
    }

    /// Calls `act` each time that commands begin to fail: the drive is offline for longer than its patience, or is rejected.
    pub fn on_end(&self, act: impl Fn() + 'static) {
        self.far.on_end.replace(Some(Box::new(act)));
    }
}

impl Fronted for RemoteExport {
    fn front(&self) -> &dyn Connect {
        &self.front
    }
}

impl Export for RemoteExport {
    fn counters(&self) -> BTreeMap<&'static str, f64> {
        self.far.counters()
    }

    fn order(&self, _: &Order) -> Result<(), String> {
        Err(format!("the drive is {}: give orders where it is served", self.far.url))
    }

    fn sources(&self) -> Vec<Rc<dyn Source>> {
        vec![self.far.clone()]
    }
}

/// See [`Far::on_return`].
type OnReturn = dyn Fn() -> Option<&'static str>;

/// A drive behind NVMe/TCP, as commands and the loop of a server see it.
pub(crate) struct Far {
    url: String,
    drive: Rc<NvmeTcp>,
    /// A command was submitted since the last poll.
    unsent: Cell<bool>,
    /// How often the connection was lost.
    losses: Cell<u64>,
    /// The connection is lost, and the loss is reported.
    lost: Cell<bool>,
    /// Commands fail, and the failure is reported.
    given_up: Cell<bool>,
    /// The drive is rejected, and the rejection is reported.
    refused: Cell<bool>,
    /// Is called when the connection is lost.
    on_loss: RefCell<Option<Box<dyn Fn()>>>,
    /// Is called when commands begin to fail.
    on_end: RefCell<Option<Box<dyn Fn()>>>,
    /// Is called when there is a connection again. Returns a warning for its user.
    on_return: RefCell<Option<Box<OnReturn>>>,
}

impl Far {
    /// Connects. Blocks for some seconds at most for each answer of the target.
    pub(crate) fn connect(target: &Target) -> Result<Far, RemoteError> {
        Far::over(target, Connected::to(target.clone()))
    }

    /// The drive of a connection.
    fn over(target: &Target, connected: Result<Connected, ConnectError>) -> Result<Far, RemoteError> {
        let (clock, url) = (WallClock::start(), target.to_string());
        let drive = connected.and_then(|connected| NvmeTcp::over(connected, Box::new(move || clock.now())));
        let drive = Rc::new(drive.map_err(|error| {
            let problem = format!("{url}: {error}");
            match error {
                ConnectError::Io(_) => RemoteError::OutOfReach(problem),
                _ => RemoteError::Unusable(problem),
            }
        })?);
        Ok(Far {
            url,
            drive,
            unsent: Cell::new(false),
            losses: Cell::new(0),
            lost: Cell::new(false),
            given_up: Cell::new(false),
            refused: Cell::new(false),
            on_loss: RefCell::default(),
            on_end: RefCell::default(),
            on_return: RefCell::default(),
        })
    }

    /// Calls `act` after each reconnect. The report of the reconnect has the warning that it returns.
    pub(crate) fn on_return(&self, act: impl Fn() -> Option<&'static str> + 'static) {
        self.on_return.replace(Some(Box::new(act)));
    }

    /// Where it is.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The connection.
    pub(crate) fn connection(&self) -> &Rc<NvmeTcp> {
        &self.drive
    }

    /// How the connection is.
    pub(crate) fn counters(&self) -> BTreeMap<&'static str, f64> {
        BTreeMap::from([
            ("remote_connected", f64::from(u8::from(!self.lost.get()))),
            ("remote_connections_lost_total", self.losses.get() as f64),
        ])
    }
}

/// The admin queue of such a drive.
pub(crate) struct FarAdmin {
    far: Rc<Far>,
    queue: AdminQueue,
}

impl FarAdmin {
    pub(crate) fn of(far: &Rc<Far>) -> FarAdmin {
        FarAdmin { far: far.clone(), queue: AdminQueue::of(&far.drive) }
    }
}

impl Drive for FarAdmin {
    fn info(&self) -> DriveInfo {
        self.far.info()
    }

    fn submit(&self, io: Io) {
        self.far.unsent.set(true);
        self.queue.submit(io);
    }
}

impl Drive for Far {
    fn info(&self) -> DriveInfo {
        self.drive.info()
    }

    fn submit(&self, io: Io) {
        self.unsent.set(true);
        self.drive.submit(io);
    }

    fn cancel(&self, command: CommandRef) -> bool {
        self.unsent.set(true);
        self.drive.cancel(command)
    }
}

impl Source for Far {
    fn descriptor(&self) -> BorrowedFd<'_> {
        self.drive.socket()
    }

    fn has_unsent(&self) -> bool {
        self.unsent.get()
    }

    fn poll(&self) -> bool {
        self.unsent.set(false);
        // A drive that was given up keeps trying to reconnect, and its commands fail meanwhile.
        self.drive.poll().unwrap_or(false)
    }

    fn outstanding(&self) -> usize {
        self.drive.outstanding()
    }

    fn news(&self) -> Option<String> {
        let (refusal, is_lost) = (self.drive.refusal(), self.drive.is_lost());
        let is_new = self.refused.replace(refusal.is_some()) != refusal.is_some();
        if let Some(refusal) = refusal {
            self.lost.set(is_lost);
            self.on_end.borrow().iter().filter(|_| is_new).for_each(|act| act());
            return is_new.then(|| format!("{} is not used any more: {refusal}", self.url));
        }
        if is_lost == self.lost.get() {
            let has_given_up = self.drive.has_given_up();
            let is_new = self.given_up.replace(has_given_up) != has_given_up && has_given_up;
            let reason = self.drive.problem().filter(|_| is_new)?;
            self.on_end.borrow().iter().for_each(|act| act());
            return Some(format!("{} is not connected to yet: {reason}; its commands fail until it is", self.url));
        }
        self.losses.set(self.losses.get() + u64::from(is_lost));
        self.lost.set(is_lost);
        Some(match self.drive.problem() {
            Some(reason) => {
                self.on_loss.borrow().iter().for_each(|act| act());
                format!("the connection to {} is lost: {reason}; reconnecting", self.url)
            }
            None => {
                let warning = self.on_return.borrow().as_ref().and_then(|act| act());
                let warning = warning.map_or_else(String::new, |warning| format!("; {warning}"));
                format!("connected to {} again{warning}", self.url)
            }
        })
    }

    fn limit_patience(&self, patience: Span) {
        self.drive.limit_patience(patience);
        // The drive checks its limits when it is polled.
        self.unsent.set(true);
    }
}
