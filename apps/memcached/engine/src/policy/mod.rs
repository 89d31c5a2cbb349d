//! When which drive may be written, collect garbage, and be read: one policy a file.
//!
//! A drive with a token does heavy I/O; the engine reads only at drives without one, if the policy keeps reads apart.

use std::future::Future;
use std::pin::Pin;

use nandscape_sim::Span;

use crate::drives::Member;
use crate::error::EngineError;

mod epochs;
mod gc_control;
mod mixed;
mod rails;

pub use epochs::Epochs;
pub use gc_control::GcControl;
pub use mixed::Mixed;
pub use rails::{PERIOD, Rails};

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

    /// Whether drive `drive` has a token in epoch `epoch`.
    fn has_token(&self, epoch: u64, drive: usize) -> bool;

    /// Whether a drive with a token is not read.
    fn keeps_reads_apart(&self) -> bool;

    /// Whether the drives take orders for their garbage collection.
    fn needs_control(&self) -> bool {
        false
    }

    /// How long an epoch lasts; `None` is until its work has ended.
    fn lasts(&self) -> Option<Span> {
        None
    }

    /// Before a drive with a token is written; `bytes` will be written.
    fn before_writes<'a>(&'a self, member: &'a Member, bytes: u64) -> Work<'a>;

    /// After its writes, while it still has its token.
    fn after_writes<'a>(&'a self, member: &'a Member) -> Work<'a>;
}

/// The policies by name.
pub const POLICIES: [&str; 5] = ["mixed", "epochs", "gc_control", "raid0", "rails"];

/// A policy by its name.
pub fn policy(name: &str) -> Option<Box<dyn Policy>> {
    match name {
        "mixed" => Some(Box::new(Mixed::MIRRORED)),
        "raid0" => Some(Box::new(Mixed::STRIPED)),
        "rails" => Some(Box::new(Rails { period: PERIOD })),
        "epochs" => Some(Box::new(Epochs)),
        "gc_control" => Some(Box::new(GcControl)),
        _ => None,
    }
}

fn nothing<'a>() -> Work<'a> {
    Box::pin(async { Ok(()) })
}
