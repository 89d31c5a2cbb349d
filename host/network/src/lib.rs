//! Messages between clients and servers. The same clients and servers run over a network in simulated time and over sockets.
//!
//! | file | what |
//! |---|---|
//! | `lib` | the interface of clients and servers to a network |
//! | `simulated` | a network in simulated time, with faults; servers can have cards |
//! | `links` | links between two machines of the simulator, whose messages are sizes |
//! | `card` | the cards of a machine: interrupts, softirqs and protocols |
//! | `wire` | wires, and the packets of messages |
//!
//! Left out: sockets. They are in the crate that runs a server or a client in wall time.
#![forbid(unsafe_code)]

pub mod card;
pub mod links;
pub mod simulated;
pub mod wire;

use std::rc::Rc;

/// One end's way to the other end.
pub trait Outlet {
    /// Sends a frame without waiting. On a connection that is down it does nothing.
    fn send(&self, frame: Vec<u8>);

    /// Whether the connection is up, as far as this end knows.
    fn is_up(&self) -> bool;

    /// Closes the connection: the other end has broken the protocol.
    fn close(&self, reason: &str);
}

/// Receives frames from the other end.
pub trait Inlet {
    /// Receives a whole frame: its length and version are valid.
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
    /// Connects to a server, by its number. Frames may be sent at once. If the server does not exist, `inlet` is
    /// notified.
    fn connect(&self, server: usize, inlet: Rc<dyn Inlet>) -> Rc<dyn Outlet>;
}
