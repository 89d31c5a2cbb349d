//! When which drive may be written, collect garbage, and be read: one policy a file.
//!
//! A drive with a token does heavy I/O; the engine reads only at drives without one, if the policy keeps reads apart.
//!
//! `gc_control` needs a vendor's commands. `predictable_latency`, `fdp` and `zoned` are the same turns on what drives on sale offer in their
//! place.

use std::future::Future;
use std::pin::Pin;

use nandscape_apps_store::AGAIN;
use nandscape_host_control::Error;
use nandscape_sim::{Sim, Span};
use nandscape_wire_nvme::Status;

use crate::drives::Member;
use crate::error::EngineError;

mod epochs;
mod fdp;
mod gc_control;
mod mixed;
mod predictable_latency;
mod rails;
mod zoned;

pub use epochs::Epochs;
pub use fdp::Fdp;
pub use gc_control::GcControl;
pub use mixed::Mixed;
pub use predictable_latency::PredictableLatency;
pub(crate) use predictable_latency::Windows;
pub use rails::{PERIOD, Rails};
pub use zoned::Zoned;

/// The longest wait for a drive that is to end its internal work and frees no block meanwhile.
const PATIENCE: Span = Span::from_ms(10_000);

/// What a policy needs of its drives beyond reads and writes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Need {
    /// Nothing.
    Nothing,
    /// Orders for garbage collection (the control API of Shin, Table 5.1).
    Orders,
    /// Predictable Latency Mode.
    Windows,
    /// As many reclaim unit handles (Flexible Data Placement).
    Placement(u16),
    /// Zones (Zoned Namespace command set).
    Zones,
}

/// Work that a policy does at a drive.
pub type Work<'a> = Pin<Box<dyn Future<Output = Result<(), EngineError>> + 'a>>;

/// See the file.
pub trait Policy {
    /// Its name.
    fn name(&self) -> &'static str;

    /// Drives that have the same bytes: 2, or 1 for a store without mirrors.
    fn replicas(&self) -> usize {
        2
    }

    /// Whether drive `drive` of a group of `width` has a token in epoch `epoch`.
    fn has_token(&self, epoch: u64, drive: usize, width: usize) -> bool;

    /// Whether a drive with a token is not read.
    fn keeps_reads_apart(&self) -> bool;

    /// What the drives must offer.
    fn needs(&self) -> Need {
        Need::Nothing
    }

    /// How long an epoch lasts; `None` is until its work has ended.
    fn lasts(&self) -> Option<Span> {
        None
    }

    /// Before a drive with a token is written; `bytes` will be written.
    fn before_writes<'a>(&'a self, member: &'a Member, bytes: u64) -> Work<'a>;

    /// Before the first bytes of a segment are written, which takes `bytes` from `start` on. What a drive has there is of no use any more.
    fn before_segment<'a>(&'a self, _member: &'a Member, _start: u64, _bytes: u64) -> Work<'a> {
        nothing()
    }

    /// The reclaim unit handle by which the log is written, if any.
    fn handle(&self) -> Option<u16> {
        None
    }

    /// After its writes, while it still has its token.
    fn after_writes<'a>(&'a self, member: &'a Member) -> Work<'a>;
}

/// The policies by name. Those from [`ANY_DRIVE`] on need drives that have been given what they need.
pub const POLICIES: [&str; 8] =
    ["mixed", "epochs", "gc_control", "raid0", "rails", "predictable_latency", "fdp", "zoned"];
/// How many of [`POLICIES`] work on the drives of a profile as it is.
pub const ANY_DRIVE: usize = 5;

/// A policy by its name.
pub fn policy(name: &str) -> Option<Box<dyn Policy>> {
    match name {
        "mixed" => Some(Box::new(Mixed::MIRRORED)),
        "raid0" => Some(Box::new(Mixed::STRIPED)),
        "rails" => Some(Box::new(Rails { period: PERIOD })),
        "epochs" => Some(Box::new(Epochs)),
        "gc_control" => Some(Box::new(GcControl)),
        "predictable_latency" => Some(Box::new(PredictableLatency)),
        "fdp" => Some(Box::new(Fdp)),
        "zoned" => Some(Box::new(Zoned)),
        _ => None,
    }
}

fn nothing<'a>() -> Work<'a> {
    Box::pin(async { Ok(()) })
}

/// Does work again that a power cut of the drive ended, for a time.
pub(crate) async fn again<T>(
    (sim, patience): (&Sim, Span),
    work: impl AsyncFn() -> Result<T, Error>,
) -> Result<T, Error> {
    let until = sim.now() + patience;
    loop {
        match work().await {
            Err(Error::Rejected(Status::ABORTED_POWER_LOSS)) if sim.now() < until => sim.sleep(AGAIN).await,
            ended => return ended,
        }
    }
}
