//! A network in simulated time: each message takes a hop's latency and its transfer time at the bandwidth of its
//! connection. Servers can be partitioned, hang, be slow, or be dead. A message costs no machine processor time: [`links`](crate::links)
//! has machines, whose wires these are.
//!
//! Left out: switches, loss of single packets, and the sharing of one machine's bandwidth by its connections.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_sim::units::Rate;
use nandscape_sim::{Sim, Span};

use crate::links::Wire;
use crate::{Accepts, Inlet, Network, Outlet};

/// A fault on the way to a server.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum Fault {
    /// No fault.
    #[default]
    None,
    /// Messages are lost in both directions, without notice to either side.
    Partition,
    /// Messages to the server are held until this is over.
    Hang,
    /// Messages take longer by this time.
    Slow(Span),
}

/// Times of a network.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Times {
    /// One way.
    pub hop: Span,
    /// Of each connection in each direction; none is no limit.
    pub bandwidth: Option<Rate>,
}

impl Default for Times {
    /// Half of Li's 0.3 ms for a hop and back each way, at 10 Gb/s.
    fn default() -> Times {
        Times { hop: Span::from_us(150), bandwidth: "1.25GB/s".parse().ok() }
    }
}

/// See the module.
pub struct SimulatedNetwork {
    sim: Sim,
    times: Times,
    servers: RefCell<Vec<Place>>,
}

/// A server's place.
struct Place {
    server: Option<Rc<dyn Accepts>>,
    fault: Fault,
    links: Vec<Rc<Link>>,
    /// Messages that hang, with the link.
    held: Vec<(Rc<Link>, Vec<u8>)>,
}

/// A connection.
struct Link {
    net: Rc<SimulatedNetwork>,
    number: usize,
    is_up: Cell<bool>,
    client: RefCell<Option<Rc<dyn Inlet>>>,
    server: RefCell<Option<Rc<dyn Inlet>>>,
    /// The directions to the server and to the client; `None` of a network without a limit.
    wires: Option<[Wire; 2]>,
}

/// One end of a link.
struct End {
    link: Rc<Link>,
    to_server: bool,
}

impl SimulatedNetwork {
    /// A network with this number of places, none of which has a server yet.
    pub fn new(sim: &Sim, places: usize, times: Times) -> Rc<SimulatedNetwork> {
        let place = |_| Place { server: None, fault: Fault::None, links: Vec::new(), held: Vec::new() };
        Rc::new(SimulatedNetwork { sim: sim.clone(), times, servers: RefCell::new((0..places).map(place).collect()) })
    }

    /// Puts a server into a place.
    pub fn start(&self, number: usize, server: Rc<dyn Accepts>) {
        self.servers.borrow_mut()[number].server = Some(server);
    }

    /// A server is dead: its connections end, and none can be made until another is started.
    pub fn kill(&self, number: usize) {
        let mut servers = self.servers.borrow_mut();
        let place = &mut servers[number];
        place.server = None;
        place.held.clear();
        let links = std::mem::take(&mut place.links);
        drop(servers);
        links.iter().for_each(|link| link.end("the server is dead"));
    }

    /// From now on this is wrong with the way to a server.
    pub fn set_fault(&self, number: usize, fault: Fault) {
        let held = {
            let place = &mut self.servers.borrow_mut()[number];
            place.fault = fault;
            if fault == Fault::Hang { Vec::new() } else { std::mem::take(&mut place.held) }
        };
        held.into_iter().for_each(|(link, frame)| link.deliver(frame, true));
    }

    fn fault(&self, number: usize) -> Fault {
        self.servers.borrow()[number].fault
    }
}

/// The network as clients have it.
pub struct Joined(pub Rc<SimulatedNetwork>);

impl Network for Joined {
    fn connect(&self, number: usize, inlet: Rc<dyn Inlet>) -> Rc<dyn Outlet> {
        let net = &self.0;
        let link = Rc::new(Link {
            net: net.clone(),
            number,
            is_up: Cell::new(true),
            client: RefCell::new(Some(inlet)),
            server: RefCell::default(),
            wires: net.times.bandwidth.map(|rate| [Wire::new(rate), Wire::new(rate)]),
        });
        let server = net.servers.borrow()[number].server.clone();
        match server {
            Some(server) => {
                let outlet = Rc::new(End { link: link.clone(), to_server: false });
                link.server.replace(Some(server.accept(outlet)));
                net.servers.borrow_mut()[number].links.push(link.clone());
            }
            None => {
                let (refused, after) = (link.clone(), net.times.hop);
                net.sim.spawn(async move {
                    refused.net.sim.sleep(after + after).await;
                    refused.end("there is no server");
                });
            }
        }
        Rc::new(End { link, to_server: true })
    }
}

impl Link {
    fn end(&self, reason: &str) {
        self.is_up.set(false);
        let ends = [self.server.take(), self.client.take()];
        ends.iter().flatten().for_each(|inlet| inlet.lost(reason));
    }

    /// A message has arrived.
    fn deliver(&self, frame: Vec<u8>, to_server: bool) {
        let inlet = if to_server { self.server.borrow().clone() } else { self.client.borrow().clone() };
        if let Some(inlet) = inlet.filter(|_| self.is_up.get()) {
            inlet.received(&frame);
        }
    }

    fn send(self: &Rc<Self>, frame: Vec<u8>, to_server: bool) {
        let (net, number) = (self.net.clone(), self.number);
        let extra = if let Fault::Slow(extra) = net.fault(number) { extra } else { Span::ZERO };
        let (now, bytes) = (net.sim.now(), frame.len() as u64);
        let sent = self.wires.as_ref().map_or(now, |wires| wires[usize::from(!to_server)].put(now, bytes));
        let link = self.clone();
        net.sim.clone().spawn(async move {
            net.sim.sleep_until(sent + net.times.hop + extra).await;
            match net.fault(number) {
                Fault::Partition => {}
                Fault::Hang if to_server => net.servers.borrow_mut()[number].held.push((link, frame)),
                _ => link.deliver(frame, to_server),
            }
        });
    }
}

impl Outlet for End {
    fn send(&self, frame: Vec<u8>) {
        if self.is_up() {
            self.link.send(frame, self.to_server);
        }
    }

    fn is_up(&self) -> bool {
        self.link.is_up.get()
    }

    fn close(&self, reason: &str) {
        self.link.end(reason);
    }
}
