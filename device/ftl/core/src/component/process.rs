//! Processes: functions of components that wait for flash. A component gets a context with its permitted operations,
//! and the FTL runs the process to its end. The FTL defines the invariants, whatever a component does: its contexts
//! check their arguments.

use std::future::Future;
use std::pin::Pin;

/// Power was cut, or the drive has gone out of service. A process ends with it at once: its state is void.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Stopped;

/// A process of a component.
pub type Process<'a, T = (), E = Stopped> = Pin<Box<dyn Future<Output = Result<T, E>> + 'a>>;
