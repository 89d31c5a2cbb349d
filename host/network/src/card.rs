//! Network cards of a machine of the simulator.
//!
//! A card interrupts for packets that it receives. A softirq takes the packets as long as there are some, does the work of the protocols for each, and
//! hands over a message at its last one. All of that takes processors of the machine.
//!
//! Left out: packets of acknowledgements, losses, several queues of a card, interrupts of packets that were sent, and the bandwidth of what comes in.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};

use nandscape_host_machine::{Context, Machine, Mode};
use nandscape_sim::units::Rate;
use nandscape_sim::{Sim, Span, Time};

use crate::wire::{Wire, packets};

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

/// A message that was received.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Received {
    /// When the interrupt was raised, or the last packet came while the softirq ran.
    pub raised: Time,
    /// When the softirq had its thread woken.
    pub at: Time,
}

/// Receives what a card has taken.
pub(crate) trait Receiver {
    /// Whether a thread must be woken for the next message.
    fn must_be_woken(&self) -> bool;

    /// A message is whole. `softirq` can wake threads.
    fn receive(&self, message: Received, softirq: &Context);
}

/// A packet for a receiver.
struct Packet {
    to: Rc<dyn Receiver>,
    is_last: bool,
    arrived: Time,
}

/// See the file.
pub struct Card {
    sim: Sim,
    config: LinkConfig,
    machine: Machine,
    /// The processor of its interrupt.
    cpu: usize,
    /// What it sends.
    pub(crate) wire: Wire,
    /// What it has received.
    ring: RefCell<VecDeque<Packet>>,
    /// Its interrupt is due, or its softirq runs.
    is_polled: Cell<bool>,
    /// When it may raise the next interrupt.
    next: Cell<Time>,
    interrupts: Cell<u64>,
    me: Weak<Card>,
}

impl Card {
    /// The cards of a machine: one for each link, at least one. The interrupt of the first card is on the second core, that of the next one on the core
    /// after that.
    pub fn all_of(sim: &Sim, config: LinkConfig, machine: &Machine) -> Vec<Rc<Card>> {
        let card = |number: usize| {
            Rc::new_cyclic(|me| Card {
                sim: sim.clone(),
                config,
                machine: machine.clone(),
                cpu: (number + 1) * machine.config().threads % machine.cpus(),
                wire: Wire::new(config.rate),
                ring: RefCell::default(),
                is_polled: Cell::new(false),
                next: Cell::new(Time::ZERO),
                interrupts: Cell::new(0),
                me: me.clone(),
            })
        };
        (0..config.links.max(1)).map(card).collect()
    }

    /// The processor of its interrupt.
    pub fn cpu(&self) -> usize {
        self.cpu
    }

    /// Interrupts that it has raised.
    pub fn interrupts(&self) -> u64 {
        self.interrupts.get()
    }

    /// All packets of a message have come.
    pub(crate) fn take(&self, bytes: u64, to: &Rc<dyn Receiver>) {
        let count = packets(bytes);
        (1..=count).for_each(|number| self.arrive(to, number == count, self.sim.now()));
    }

    /// A packet has come, at a time that may lie before.
    pub(crate) fn arrive(&self, to: &Rc<dyn Receiver>, is_last: bool, arrived: Time) {
        self.ring.borrow_mut().push_back(Packet { to: to.clone(), is_last, arrived });
        if !self.is_polled.replace(true) {
            let card = self.me.upgrade().expect("a card in use is alive");
            self.sim.spawn(async move { card.poll().await });
        }
    }

    /// Its interrupt and the softirq, which ends when no packet is left.
    async fn poll(&self) {
        let raised = self.next.get().max(self.sim.now());
        self.sim.sleep_until(raised).await;
        self.next.set(raised + self.config.interval);
        self.interrupts.set(self.interrupts.get() + 1);
        let irq = self.machine.interrupt(self.cpu).expect("a card is on a processor");
        irq.work(Span::ZERO, Mode::Kernel).await;
        drop(irq);
        let softirq = self.machine.softirq(self.cpu).expect("a card is on a processor");
        loop {
            let next = self.ring.borrow_mut().pop_front();
            let Some(Packet { to, is_last, arrived }) = next else { break };
            softirq.work(self.config.packet_in, Mode::Kernel).await;
            if !is_last {
                continue;
            }
            if to.must_be_woken() {
                softirq.work(self.config.wake, Mode::Kernel).await;
            }
            to.receive(Received { raised: raised.max(arrived), at: self.sim.now() }, &softirq);
        }
        self.is_polled.set(false);
    }
}
