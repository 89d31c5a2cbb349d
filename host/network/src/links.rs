//! Links between two machines of the simulator, such as those of a server and of its clients.
//!
//! A message is protocol work of the thread that sends it, packets on a wire, and the work of the [card](crate::card) that receives them, which wakes
//! the thread of the message.
//!
//! Left out: what messages contain.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};

use nandscape_host_machine::{Context, Event, Machine, Mode};
use nandscape_sim::{Sim, Span, Time};

use crate::card::{Card, LinkConfig, Received, Receiver};
use crate::wire::{AROUND_SEGMENT, SEGMENT, packets};

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
    cards: Vec<Rc<Card>>,
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

impl Links {
    /// Links between the machine of a server and that of its clients; at least one.
    pub fn new(sim: &Sim, config: LinkConfig, server: &Machine, clients: &Machine) -> Rc<Links> {
        let end = |machine: &Machine| End { machine: machine.clone(), cards: Card::all_of(sim, config, machine) };
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
        self.ends[side as usize].cards.iter().map(|card| card.wire.carried()).sum()
    }

    /// Interrupts of a side's cards.
    pub fn interrupts(&self, side: Side) -> u64 {
        self.ends[side as usize].cards.iter().map(|card| card.interrupts()).sum()
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
        let (card, sim, last) =
            (self.ends[to.side as usize].cards[to.link].clone(), self.sim.clone(), count as usize - 1);
        self.sim.spawn(async move {
            let to: Rc<dyn Receiver> = to;
            for (number, arrived) in arrivals.into_iter().enumerate() {
                sim.sleep_until(arrived).await;
                card.arrive(&to, number == last, arrived);
            }
        });
    }
}

impl Receiver for Socket {
    fn must_be_woken(&self) -> bool {
        self.event.waiting() > 0
    }

    fn receive(&self, message: Received, softirq: &Context) {
        self.inbox.borrow_mut().push_back(message);
        self.event.notify_from(softirq);
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
    use nandscape_sim::units::Rate;

    use super::*;
    use crate::wire::on_wire;

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
        let cpus: Vec<usize> = links.ends[0].cards.iter().map(|card| card.cpu()).collect();
        assert_eq!(cpus, [1, 0], "the second core, and round the two");
    }
}
