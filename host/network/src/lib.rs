//! Messages between clients and servers. The same clients and servers run over a network in simulated time and over sockets.
//!
//! | file | what |
//! |---|---|
//! | `lib` | what a client and a server need of a network |
//! | `simulated` | a network in simulated time, with faults |
//!
//! Left out: sockets. The crate that runs a server or a client at the wall clock has them.
#![forbid(unsafe_code)]

pub mod simulated;

use std::rc::Rc;

/// One end's way to the other end.
pub trait Outlet {
    /// Sends a frame; it does not wait. On a connection that is down it does nothing.
    fn send(&self, frame: Vec<u8>);

    /// Whether the connection is up, as far as this end knows.
    fn is_up(&self) -> bool;

    /// Closes the connection: the other end has broken the protocol.
    fn close(&self, reason: &str);
}

/// Hears what the other end sends.
pub trait Inlet {
    /// A frame has come, whole: its length and version are valid.
    fn received(&self, frame: &[u8]);

    /// Whether the other end waits for something.
    fn is_awaited(&self) -> bool {
        false
    }

    /// The connection is down for good.
    fn lost(&self, reason: &str);
}

/// Takes connections in.
pub trait Accepts {
    /// A client has connected: who hears it, and how it is reached.
    fn accept(&self, outlet: Rc<dyn Outlet>) -> Rc<dyn Inlet>;
}

/// Makes connections.
pub trait Network {
    /// Connects to a server, by its number. Frames may be sent at once. Where there is no server, `inlet` is told so.
    fn connect(&self, server: usize, inlet: Rc<dyn Inlet>) -> Rc<dyn Outlet>;
}
