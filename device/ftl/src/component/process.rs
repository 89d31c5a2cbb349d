//! Processes: functions of components that wait for flash. A component is given a context, which has what it may do, and the FTL runs
//! the process to its end. The FTL decides what has to hold whatever a component does: its contexts check what they are given.

use std::future::Future;
use std::pin::Pin;

/// Power was cut, or the drive has gone out of service. A process ends with it at once: all that it knew is gone.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Stopped;

/// A process of a component.
pub type Process<'a, T = (), E = Stopped> = Pin<Box<dyn Future<Output = Result<T, E>> + 'a>>;
