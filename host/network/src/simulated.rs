//! A network in simulated time: each message takes a hop's latency and its transfer time at the bandwidth of its
//! connection. Servers can be partitioned, hang, be slow, or be dead. A server can have [cards](crate::card): its connections then share the
//! bandwidth of what it sends, and messages to it cost its machine interrupts, softirqs and protocol work.
//!
//! Left out: switches, loss of single packets, the clients' machines, and the sharing of a machine's bandwidth without cards. The work of sending a
//! message is that of the server's threads.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_host_machine::Context;
use nandscape_sim::units::Rate;
use nandscape_sim::{Sim, Span, Time};

use crate::card::{Card, Received, Receiver};
use crate::wire::{Wire, on_wire};
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
    /// Its cards, which connections use in turn; none of a server on no machine.
    cards: Vec<Rc<Card>>,
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
    /// The server's, if it has one.
    card: Option<Rc<Card>>,
}

/// A message that a card of a server takes.
struct Arriving {
    link: Rc<Link>,
    frame: Cell<Vec<u8>>,
}

/// One end of a link.
struct End {
    link: Rc<Link>,
    to_server: bool,
}

impl SimulatedNetwork {
    /// A network with this number of places, none of which has a server yet.
    pub fn new(sim: &Sim, places: usize, times: Times) -> Rc<SimulatedNetwork> {
        let place =
            |_| Place { server: None, cards: Vec::new(), fault: Fault::None, links: Vec::new(), held: Vec::new() };
        Rc::new(SimulatedNetwork { sim: sim.clone(), times, servers: RefCell::new((0..places).map(place).collect()) })
    }

    /// Puts a server into a place.
    pub fn start(&self, number: usize, server: Rc<dyn Accepts>) {
        self.start_on(number, server, Vec::new());
    }

    /// Puts a server with cards into a place.
    pub fn start_on(&self, number: usize, server: Rc<dyn Accepts>, cards: Vec<Rc<Card>>) {
        let place = &mut self.servers.borrow_mut()[number];
        (place.server, place.cards) = (Some(server), cards);
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
        held.into_iter().for_each(|(link, frame)| link.arrive(frame, true));
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
        let card = {
            let place = &net.servers.borrow()[number];
            let next = place.links.len().checked_rem(place.cards.len());
            next.map(|next| place.cards[next].clone())
        };
        let link = Rc::new(Link {
            net: net.clone(),
            number,
            is_up: Cell::new(true),
            client: RefCell::new(Some(inlet)),
            server: RefCell::default(),
            wires: net.times.bandwidth.map(|rate| [Wire::new(rate), Wire::new(rate)]),
            card,
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

    /// A message has come to the machine of its receiver.
    fn arrive(self: Rc<Self>, frame: Vec<u8>, to_server: bool) {
        match self.card.clone().filter(|_| to_server) {
            None => self.deliver(frame, to_server),
            Some(card) => {
                let bytes = frame.len() as u64;
                let arriving: Rc<dyn Receiver> = Rc::new(Arriving { link: self, frame: Cell::new(frame) });
                card.take(bytes, &arriving);
            }
        }
    }

    /// When the last bit of a message, sent now, has left.
    fn put(&self, bytes: u64, to_server: bool) -> Time {
        let now = self.net.sim.now();
        match &self.card {
            Some(card) if !to_server => card.wire.put(now, on_wire(bytes)),
            _ => self.wires.as_ref().map_or(now, |wires| wires[usize::from(!to_server)].put(now, bytes)),
        }
    }

    fn send(self: &Rc<Self>, frame: Vec<u8>, to_server: bool) {
        let (net, number) = (self.net.clone(), self.number);
        let extra = if let Fault::Slow(extra) = net.fault(number) { extra } else { Span::ZERO };
        let sent = self.put(frame.len() as u64, to_server);
        let link = self.clone();
        net.sim.clone().spawn(async move {
            net.sim.sleep_until(sent + net.times.hop + extra).await;
            match net.fault(number) {
                Fault::Partition => {}
                Fault::Hang if to_server => net.servers.borrow_mut()[number].held.push((link, frame)),
                _ => link.arrive(frame, to_server),
            }
        });
    }
}

impl Receiver for Arriving {
    fn must_be_woken(&self) -> bool {
        true
    }

    fn receive(&self, _: Received, _: &Context) {
        self.link.deliver(self.frame.take(), true);
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
