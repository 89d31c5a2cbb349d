//! Servers as clients reach them. A connection is established without waiting, and frames sent before that wait for
//! it. A connection that takes too long counts as down.
//!
//! Left out: names that change while clients run. They are resolved once, before.

use std::cell::Cell;
use std::rc::Rc;

use nandscape_host_network::{Inlet, Network, Outlet};
use nandscape_sim::{Sim, Span};
use nandscape_transport_reactor::connecting::{Progress, Target};
use nandscape_transport_reactor::socket::Address;

use super::sockets::{Connection, Sockets};

/// How long making a connection may take: the system's own bound for TCP is two minutes.
const MOST: Span = Span::from_s(1);
/// The pause before another connection to a unix socket whose backlog is full.
const AGAIN: Span = Span::from_ms(2);

/// See the module.
pub(super) struct Reached {
    sim: Sim,
    sockets: Rc<Sockets>,
    servers: Vec<Server>,
}

/// The address of a server.
struct Server {
    targets: Vec<Target>,
    /// The one that is tried first next time.
    next: Cell<usize>,
}

impl Reached {
    /// Servers at these addresses. A name that cannot be resolved gives no server.
    pub(super) fn new(sim: &Sim, sockets: &Rc<Sockets>, addresses: &[Address]) -> Reached {
        let server = |address: &Address| Server { targets: address.targets().unwrap_or_default(), next: Cell::new(0) };
        Reached { sim: sim.clone(), sockets: sockets.clone(), servers: addresses.iter().map(server).collect() }
    }

    /// Begins a connection to the first place of a server that does not refuse at once.
    fn begin(&self, server: &Server) -> Option<Rc<Connection>> {
        (0..server.targets.len()).find_map(|_| {
            let place = server.next.get();
            server.next.set((place + 1) % server.targets.len());
            let target = &server.targets[place];
            let stream = target.socket().ok()?;
            let progress = target.try_connect(&stream).ok()?;
            let connection = self.sockets.add(stream, progress == Progress::BacklogFull).ok()?;
            match progress {
                // The next time it is the first again.
                Progress::Made => server.next.set(place),
                Progress::UnderWay => self.watch(&connection),
                Progress::BacklogFull => self.repeat(&connection, target.clone()),
            }
            Some(connection)
        })
    }

    /// Ends a connection that is not established in time.
    fn watch(&self, connection: &Rc<Connection>) {
        let (sim, sockets, connection) = (self.sim.clone(), self.sockets.clone(), connection.clone());
        self.sim.spawn(async move {
            sim.sleep(MOST).await;
            if !connection.is_over() && !connection.stream.is_connected() {
                sockets.end(&connection, format!("it does not accept a connection within {MOST}"));
            }
        });
    }

    /// Tries again until the server's backlog has room.
    fn repeat(&self, connection: &Rc<Connection>, target: Target) {
        let (sim, sockets, connection) = (self.sim.clone(), self.sockets.clone(), connection.clone());
        let ends = sim.now() + MOST;
        self.sim.spawn(async move {
            while !connection.is_over() {
                sim.sleep(AGAIN).await;
                match target.try_connect(&connection.stream) {
                    Ok(Progress::BacklogFull) if sim.now() < ends => {}
                    Ok(Progress::BacklogFull) => {
                        sockets.end(&connection, format!("it does not accept a connection within {MOST}"));
                    }
                    Ok(_) => return sockets.joined(&connection),
                    Err(error) => sockets.end(&connection, error.to_string()),
                }
            }
        });
    }
}

/// A server that does not exist.
struct Nowhere;

impl Outlet for Nowhere {
    fn send(&self, _: Vec<u8>) {}

    fn is_up(&self) -> bool {
        false
    }

    fn close(&self, _: &str) {}
}

impl Network for Reached {
    fn connect(&self, server: usize, inlet: Rc<dyn Inlet>) -> Rc<dyn Outlet> {
        match self.begin(&self.servers[server]) {
            Some(connection) => {
                connection.inlet.replace(Some(inlet));
                self.sockets.end_of(&connection)
            }
            None => Rc::new(Nowhere),
        }
    }
}
