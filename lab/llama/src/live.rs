//! A run at the wall clock, on a drive behind NVMe/TCP. One loop takes the time, runs the host's tasks up to it, and polls the connection.

use std::cell::RefCell;
use std::future::Future;
use std::io;
use std::rc::Rc;

use nandscape_host_driver::nvme_tcp::{AdminQueue, ConnectError, NvmeTcp, Target};
use nandscape_host_driver::{Lost, Remote};
use nandscape_host_llama::{Config, Error, Host, OpenError};
use nandscape_sim::{Executor, Seed, Span};
use nandscape_transport_reactor::WallClock;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::load::{Load, fill, measure};
use crate::outcome::Outcome;
use crate::spec::Form;

/// Why there is no outcome.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The target cannot be reached.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The connection broke.
    #[error(transparent)]
    Lost(#[from] Lost),
    /// Waiting failed.
    #[error("waiting for the connection: {0}")]
    Wait(#[from] io::Error),
    /// The tree cannot be made.
    #[error("the tree: {0}")]
    Open(#[from] OpenError),
    /// An operation failed.
    #[error("an operation: {0}")]
    Operation(#[from] Error),
}

/// Events that run before the connection is looked at again.
const EVENTS: u32 = 4_096;
/// The longest wait for the connection, and that while it waits for room to send.
const LONGEST: Span = Span::from_ms(100);
const SOON: Span = Span::from_ms(1);

/// Puts the records into the tree that is on the drive, or a new one where nothing is, and runs the operations.
///
/// # Errors
/// Why there is no outcome.
pub fn run_live(target: Target, form: Form, tree: Config, load: Load, seed: u64) -> Result<Outcome, LiveError> {
    let clock = WallClock::start();
    let drive = Rc::new(NvmeTcp::connect(target, Box::new(move || clock.now()))?);
    let mut executor = Executor::new();
    let (sim, remote) = (executor.sim(), drive.clone());
    let work = async move {
        let (host, admin) = (Host::free(&sim), AdminQueue::of(&remote));
        let tree = Rc::new(form.open(&host, remote, &admin, tree).await?);
        fill(&tree, &load).await?;
        Ok(measure(&sim, &host, &tree, load, Seed::new(seed).child("clients"), Box::new(|| ())).await?)
    };
    drive_loop(&mut executor, &clock, &drive, work)?
}

/// Runs `work` until it has ended.
fn drive_loop<T: 'static>(
    executor: &mut Executor,
    clock: &WallClock,
    drive: &NvmeTcp,
    work: impl Future<Output = T> + 'static,
) -> Result<T, LiveError> {
    let (sim, result) = (executor.sim(), Rc::new(RefCell::new(None)));
    let told = result.clone();
    sim.spawn(async move {
        let output = work.await;
        told.replace(Some(output));
    });
    loop {
        let now = clock.now().max(sim.now());
        if executor.advance(now, EVENTS) {
            executor.arrive(now);
        }
        if let Some(output) = result.take() {
            return Ok(output);
        }
        if drive.poll()? {
            continue;
        }
        let longest = if drive.wants_to_write() { SOON } else { LONGEST };
        let left = executor.next_due().map_or(longest, |due| due.since(clock.now()).min(longest));
        let wait = Timespec { tv_sec: 0, tv_nsec: left.ns() as i64 };
        match poll(&mut [PollFd::from_borrowed_fd(drive.socket(), PollFlags::IN)], Some(&wait)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(io::Error::from(error).into()),
        }
    }
}
