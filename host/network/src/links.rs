//! Links between two machines of the simulator, such as those of a server and of its clients.
//!
//! A message is protocol work of the thread that sends it, packets on a wire, and an interrupt of the card that receives them. A softirq takes the
//! packets as long as there are some, does the work of the protocols for each, and wakes the thread of a message at its last one. All of that takes
//! processors of the machines.
//!
//! Left out: what messages contain, packets of acknowledgements, losses, several queues of a card, and interrupts of packets that were sent.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};

use nandscape_host_machine::{Context, Event, Machine, Mode};
use nandscape_sim::units::Rate;
use nandscape_sim::{Sim, Span, Time};

/// Bytes of data in a packet of 1,500 bytes with headers of IP and TCP with its time stamps.
const SEGMENT: u64 = 1_448;
/// Bytes of a packet beyond its data: these headers, that of Ethernet with its checksum, preamble and gap.
const AROUND_SEGMENT: u64 = 52 + 38;

/// Packets of a message.
fn packets(bytes: u64) -> u64 {
    bytes.div_ceil(SEGMENT).max(1)
}

/// Bytes of a message on the wire.
pub fn on_wire(bytes: u64) -> u64 {
    bytes + packets(bytes) * AROUND_SEGMENT
}

/// One direction of a link: messages pass it first come, first served.
pub struct Wire {
    rate: Rate,
    free: Cell<Time>,
    carried: Cell<Span>,
}

impl Wire {
    /// A wire that is free.
    pub fn new(rate: Rate) -> Wire {
        Wire { rate, free: Cell::new(Time::ZERO), carried: Cell::new(Span::ZERO) }
    }

    /// Puts bytes on it, after all that was put there before. Returns when the last one has passed.
    pub fn put(&self, now: Time, bytes: u64) -> Time {
        let span = self.rate.time_for(bytes);
        self.carried.set(self.carried.get() + span);
        self.free.set(self.free.get().max(now) + span);
        self.free.get()
    }
}

/// What links are, and what messages cost on a core of speed 1.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct LinkConfig {
    /// Links; connections use them in turn.
    pub links: usize,
    /// Of each link, in each direction.
    pub rate: Rate,
    /// From the last bit on the wire until the other card can raise an interrupt.
    pub delay: Span,
    /// The least time between two interrupts of a card.
    pub interval: Span,
    /// The protocols, for a packet that is received.
    pub packet_in: Span,
    /// Handing a received message to its thread.
    pub message_in: Span,
    /// The protocols and the copy, for a message that is sent. The card makes packets of it.
    pub message_out: Span,
    /// Waking a thread.
    pub wake: Span,
}

/// The ends of links.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Side {
    /// The machine that serves.
    Server,
    /// The machine of the clients.
    Clients,
}

/// Links between two machines, with a card for each link on each machine.
pub struct Links {
    sim: Sim,
    config: LinkConfig,
    ends: [End; 2],
    connections: Cell<usize>,
    me: Weak<Links>,
}

struct End {
    machine: Machine,
    cards: Vec<Card>,
}

struct Card {
    /// The processor of its interrupt.
    cpu: usize,
    /// What it sends.
    wire: Wire,
    /// What it has received.
    ring: RefCell<VecDeque<Packet>>,
    /// Its interrupt is due, or its softirq runs.
    is_polled: Cell<bool>,
    /// When it may raise the next interrupt.
    next: Cell<Time>,
    interrupts: Cell<u64>,
}

struct Packet {
    to: Rc<Socket>,
    is_last: bool,
    arrived: Time,
}

/// One end of a connection.
pub struct Socket {
    links: Rc<Links>,
    side: Side,
    link: usize,
    peer: RefCell<Weak<Socket>>,
    inbox: RefCell<VecDeque<Received>>,
    event: Event,
}

/// A message that was received.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Received {
    /// When the interrupt was raised, or the last packet came while the softirq ran.
    pub raised: Time,
    /// When the softirq had its thread woken.
    pub at: Time,
}

impl Links {
    /// Links between the machine of a server and that of its clients; at least one. The interrupt of the first card is on the second core, that of the
    /// next one on the core after that.
    pub fn new(sim: &Sim, config: LinkConfig, server: &Machine, clients: &Machine) -> Rc<Links> {
        let end = |machine: &Machine| {
            let card = |number: usize| Card {
                cpu: (number + 1) * machine.config().threads % machine.cpus(),
                wire: Wire::new(config.rate),
                ring: RefCell::default(),
                is_polled: Cell::new(false),
                next: Cell::new(Time::ZERO),
                interrupts: Cell::new(0),
            };
            End { machine: machine.clone(), cards: (0..config.links.max(1)).map(card).collect() }
        };
        let ends = [end(server), end(clients)];
        Rc::new_cyclic(|me| Links { sim: sim.clone(), config, ends, connections: Cell::new(0), me: me.clone() })
    }

    /// Its settings.
    pub fn config(&self) -> LinkConfig {
        self.config
    }

    /// A machine.
    pub fn machine(&self, side: Side) -> &Machine {
        &self.ends[side as usize].machine
    }

    /// The time that a side's wires were sending, of all links together.
    pub fn carried(&self, side: Side) -> Span {
        self.ends[side as usize].cards.iter().map(|card| card.wire.carried.get()).sum()
    }

    /// Interrupts of a side's cards.
    pub fn interrupts(&self, side: Side) -> u64 {
        self.ends[side as usize].cards.iter().map(|card| card.interrupts.get()).sum()
    }

    /// A connection: the socket of the server, and that of the client.
    pub fn connect(&self) -> (Rc<Socket>, Rc<Socket>) {
        let link = self.connections.get() % self.ends[0].cards.len();
        self.connections.set(self.connections.get() + 1);
        let socket = |side| {
            let links = self.me.upgrade().expect("links in use are alive");
            let (peer, inbox, event) = (RefCell::default(), RefCell::default(), Event::new(self.machine(side)));
            Rc::new(Socket { links, side, link, peer, inbox, event })
        };
        let (server, client) = (socket(Side::Server), socket(Side::Clients));
        server.peer.replace(Rc::downgrade(&client));
        client.peer.replace(Rc::downgrade(&server));
        (server, client)
    }

    fn card(&self, side: Side, link: usize) -> &Card {
        &self.ends[side as usize].cards[link]
    }

    /// Puts the packets of a message on the wire.
    fn transmit(&self, from: &Socket, bytes: u64) {
        let Some(to) = from.peer.borrow().upgrade() else { return };
        let wire = &self.card(from.side, from.link).wire;
        let (now, count) = (self.sim.now(), packets(bytes));
        let size = |number: u64| (bytes - number * SEGMENT).min(SEGMENT) + AROUND_SEGMENT;
        let arrivals: Vec<Time> = (0..count).map(|number| wire.put(now, size(number)) + self.config.delay).collect();
        let (links, last) = (to.links.clone(), count as usize - 1);
        self.sim.spawn(async move {
            for (number, arrived) in arrivals.into_iter().enumerate() {
                links.sim.sleep_until(arrived).await;
                links.arrive(Packet { to: to.clone(), is_last: number == last, arrived });
            }
        });
    }

    fn arrive(&self, packet: Packet) {
        let (side, link) = (packet.to.side, packet.to.link);
        let card = self.card(side, link);
        card.ring.borrow_mut().push_back(packet);
        if !card.is_polled.replace(true) {
            let links = self.me.upgrade().expect("links in use are alive");
            self.sim.spawn(async move { links.poll(side, link).await });
        }
    }

    /// The interrupt of a card and its softirq, which ends when no packet is left.
    async fn poll(&self, side: Side, link: usize) {
        let (card, machine) = (self.card(side, link), self.machine(side));
        let raised = card.next.get().max(self.sim.now());
        self.sim.sleep_until(raised).await;
        card.next.set(raised + self.config.interval);
        card.interrupts.set(card.interrupts.get() + 1);
        let irq = machine.interrupt(card.cpu).expect("a card is on a processor");
        irq.work(Span::ZERO, Mode::Kernel).await;
        drop(irq);
        let softirq = machine.softirq(card.cpu).expect("a card is on a processor");
        loop {
            let next = card.ring.borrow_mut().pop_front();
            let Some(Packet { to, is_last, arrived }) = next else { break };
            softirq.work(self.config.packet_in, Mode::Kernel).await;
            if !is_last {
                continue;
            }
            if to.event.waiting() > 0 {
                softirq.work(self.config.wake, Mode::Kernel).await;
            }
            to.inbox.borrow_mut().push_back(Received { raised: raised.max(arrived), at: self.sim.now() });
            to.event.notify_from(&softirq);
        }
        card.is_polled.set(false);
    }
}

impl Socket {
    /// Sends a message of `bytes` within a system call of the thread. Returns the time at which it reached the card.
    pub async fn send(&self, thread: &Context, bytes: u64) -> Time {
        if !self.links.config.message_out.is_zero() {
            thread.work(self.links.config.message_out, Mode::Kernel).await;
        }
        self.links.transmit(self, bytes);
        self.links.sim.now()
    }

    /// The next message, for which the thread gives its processor away. The work of handing it over is the caller's.
    pub async fn receive(&self, thread: &Context) -> Received {
        loop {
            let next = self.inbox.borrow_mut().pop_front();
            if let Some(received) = next {
                return received;
            }
            self.event.wait(thread).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use nandscape_host_machine::{Config, Kind, ThreadSpec};
    use nandscape_sim::Executor;

    use super::*;

    const CONFIG: LinkConfig = LinkConfig {
        links: 1,
        rate: Rate::new(100_000_000, Span::from_s(1)),
        delay: Span::from_us(3),
        interval: Span::ZERO,
        packet_in: Span::from_us(5),
        message_in: Span::from_us(7),
        message_out: Span::from_us(11),
        wake: Span::from_us(13),
    };

    fn machine(sim: &Sim) -> Machine {
        let [switch, interrupt, softirq] = [16, 17, 19].map(Span::from_us);
        Machine::new(sim, Config { switch, interrupt, softirq, ..Config::free(2) }).unwrap()
    }

    /// When messages of these bytes, sent one after the other, were received: what came of each, and when its thread had it. And the links.
    fn run(config: LinkConfig, messages: &[u64]) -> (Vec<(u64, u64, u64)>, Rc<Links>) {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let links = Links::new(&sim, config, &machine(&sim), &machine(&sim));
        let (server, client) = links.connect();
        let (sender, sizes) = (links.machine(Side::Clients).thread(ThreadSpec::default()).unwrap(), messages.to_vec());
        sim.spawn(async move {
            for bytes in sizes {
                client.send(&sender, bytes).await;
            }
            std::future::pending::<()>().await;
        });
        let receiver = links.machine(Side::Server).thread(ThreadSpec::default()).unwrap();
        let (all, of) = (messages.len(), sim.clone());
        let received = executor
            .block_on(async move {
                let mut received = Vec::new();
                for _ in 0..all {
                    let Received { raised, at } = server.receive(&receiver).await;
                    let [raised, at, had] = [raised, at, of.now()].map(|time| time.ns() / 1_000);
                    received.push((raised, at, had));
                }
                received
            })
            .unwrap();
        (received, links)
    }

    #[test]
    fn a_message_costs_both_machines_the_sum_of_its_parts() {
        // 910 bytes are 1,000 on the wire, which take 10 us.
        let (received, links) = run(CONFIG, &[910]);
        let raised = 16 + 11 + 10 + 3;
        let woken = raised + 17 + 19 + 5 + 13;
        assert_eq!(received, [(raised, woken, woken + 16)]);
        let of = |side, kind| links.machine(side).total().by(kind).ns() / 1_000;
        assert_eq!([of(Side::Clients, Kind::Kernel), of(Side::Clients, Kind::Switch)], [11, 16]);
        let server = [Kind::Interrupt, Kind::Softirq, Kind::Switch].map(|kind| of(Side::Server, kind));
        assert_eq!(server, [17, 19 + 5 + 13, 16]);
        assert_eq!((links.carried(Side::Clients), links.interrupts(Side::Server)), (Span::from_us(10), 1));
        assert_eq!((links.carried(Side::Server), links.interrupts(Side::Clients)), (Span::ZERO, 0));
    }

    #[test]
    fn a_long_message_is_whole_with_its_last_packet() {
        // Two packets of 1,538 bytes and one of 1,194: the first softirq takes all that come while it works.
        let (received, _) = run(CONFIG, &[4_000]);
        assert_eq!(on_wire(4_000), 2 * 1_538 + 1_194);
        let (first, last) = (16 + 11 + 15 + 3, 16 + 11 + 42 + 3);
        let woken = first + 17 + 19 + 3 * 5 + 13;
        assert_eq!(received, [(last, woken, woken + 16)]);
    }

    #[test]
    fn a_card_keeps_its_interval_between_interrupts() {
        let interval = Span::from_us(500);
        let (received, links) = run(LinkConfig { interval, ..CONFIG }, &[910, 910]);
        // The second message comes while the softirq of the first works, and needs no interrupt.
        assert_eq!((received.len(), links.interrupts(Side::Server)), (2, 1));
        let far = LinkConfig { interval, message_out: Span::from_us(200), ..CONFIG };
        let (received, links) = run(far, &[910, 910]);
        assert_eq!(received[1].0 - received[0].0, 500, "{received:?}");
        assert_eq!(links.interrupts(Side::Server), 2);
    }

    #[test]
    fn messages_wait_for_the_wire_and_connections_use_the_links_in_turn() {
        let slow = LinkConfig { rate: Rate::new(1_000_000, Span::from_s(1)), ..CONFIG };
        let (received, links) = run(slow, &[910, 910, 910]);
        let raised: Vec<u64> = received.iter().map(|(raised, ..)| *raised).collect();
        assert_eq!(raised, [16 + 11 + 1_000 + 3, 16 + 11 + 2_000 + 3, 16 + 11 + 3_000 + 3]);
        assert_eq!(links.carried(Side::Clients), Span::from_us(3_000));
        let executor = Executor::new();
        let sim = executor.sim();
        let links = Links::new(&sim, LinkConfig { links: 2, ..CONFIG }, &machine(&sim), &machine(&sim));
        let used: Vec<usize> = (0..3).map(|_| links.connect().0.link).collect();
        assert_eq!(used, [0, 1, 0]);
        let cpus: Vec<usize> = links.ends[0].cards.iter().map(|card| card.cpu).collect();
        assert_eq!(cpus, [1, 0], "the second core, and round the two");
    }

    #[test]
    fn bytes_on_the_wire_have_their_headers() {
        assert_eq!([0, 30, 1_448, 1_449].map(on_wire), [90, 120, 1_538, 1_629]);
    }
}
