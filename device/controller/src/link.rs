//! The host link: each direction first come, first served, in whole transfers or packet by packet; full duplex, or both
//! directions sharing one bandwidth.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, Stage};
use nandscape_sim::account::Totals;
use nandscape_sim::resource::Occupy;
use nandscape_sim::units::Remembering;
use nandscape_sim::{Cause, Class, Resource, Sim, Span, Time, Who};

use crate::config::{Duplex, LinkConfig};

/// The host link.
pub struct Link {
    sim: Sim,
    config: LinkConfig,
    rate: Remembering,
    to_host: Resource,
    to_device: Resource,
}

impl Link {
    pub(crate) fn new(sim: &Sim, config: LinkConfig) -> Link {
        let rate = Remembering::new(config.bandwidth);
        Link { sim: sim.clone(), config, rate, to_host: Resource::new(sim), to_device: Resource::new(sim) }
    }

    /// Moves data to the host.
    #[inline(always)]
    pub(crate) fn send<'a, 'b>(&'a self, bytes: u64, breakdown: &'b mut Breakdown) -> Crossing<'a, 'b> {
        self.transfer(&self.to_host, bytes, cause::HOST_READ, breakdown)
    }

    /// Moves data from the host.
    #[inline(always)]
    pub(crate) fn receive<'a, 'b>(&'a self, bytes: u64, breakdown: &'b mut Breakdown) -> Crossing<'a, 'b> {
        let lane = if self.config.duplex == Duplex::Full { &self.to_device } else { &self.to_host };
        self.transfer(lane, bytes, cause::HOST_WRITE, breakdown)
    }

    /// Busy time of each direction, to the host first. With half duplex both are in the first.
    pub(crate) fn usage(&self) -> [Totals; 2] {
        [self.to_host.usage(), self.to_device.usage()]
    }

    #[inline(always)]
    fn transfer<'a, 'b>(
        &'a self,
        lane: &'a Resource,
        bytes: u64,
        cause: Cause,
        breakdown: &'b mut Breakdown,
    ) -> Crossing<'a, 'b> {
        let who = Who::new(cause, Class::new(0));
        let way = match self.config.packet {
            None => Way::Whole(lane.keep_busy(self.rate.time_for(bytes), who)),
            Some(packet) => Way::Packets(Box::pin(self.send_packets(lane, bytes, packet.into(), who))),
        };
        Crossing { sim: &self.sim, begun: self.sim.now(), way, breakdown }
    }

    async fn send_packets(&self, lane: &Resource, bytes: u64, packet: u64, who: Who) {
        let (mut sent, mut spent) = (0, Span::ZERO);
        loop {
            // Packets are rounded so that all of them take the time of the whole.
            sent = bytes.min(packet.saturating_add(sent));
            let time = self.rate.time_for(sent) - spent;
            lane.keep_busy(time, who).await;
            if sent == bytes {
                return;
            }
            spent += time;
        }
    }
}

/// Data that crosses the link. Waiting for the link counts as crossing it.
#[must_use = "a future does nothing until it is awaited"]
pub(crate) struct Crossing<'a, 'b> {
    sim: &'a Sim,
    begun: Time,
    way: Way<'a>,
    breakdown: &'b mut Breakdown,
}

enum Way<'a> {
    /// In one transfer.
    Whole(Occupy<'a>),
    /// In turn with other transfers. In a box: few links do this.
    Packets(Pin<Box<dyn Future<Output = ()> + 'a>>),
}

impl Future for Crossing<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let crossed = match &mut self.way {
            Way::Whole(transfer) => Pin::new(transfer).poll(context),
            Way::Packets(packets) => packets.as_mut().poll(context),
        };
        if crossed.is_ready() {
            let spent = self.sim.now() - self.begun;
            self.breakdown.spend(Stage::Link, spent);
        }
        crossed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_sim::Executor;
    use nandscape_sim::units::Rate;
    use std::cell::RefCell;
    use std::rc::Rc;

    /// When transfers end that begin at the same instant: (bytes, whether from the host), in that order, at 1 byte a
    /// nanosecond and a seventh.
    fn ends(duplex: Duplex, packet: Option<u32>, transfers: &[(u64, bool)]) -> Vec<u64> {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let bandwidth = Rate::new(7, Span::from_ns(8));
        let link = Rc::new(Link::new(&sim, LinkConfig { bandwidth, duplex, packet, latency: Span::ZERO }));
        let ends = Rc::new(RefCell::new(vec![0; transfers.len()]));
        for (index, &(bytes, from_host)) in transfers.iter().enumerate() {
            let (sim, link, ends) = (sim.clone(), link.clone(), ends.clone());
            executor.sim().spawn(async move {
                let mut breakdown = Breakdown::new();
                match from_host {
                    true => link.receive(bytes, &mut breakdown).await,
                    false => link.send(bytes, &mut breakdown).await,
                }
                assert_eq!(breakdown.total().ns(), sim.now().ns());
                ends.borrow_mut()[index] = sim.now().ns();
            });
        }
        executor.block_on(sim.sleep(Span::from_s(1))).unwrap();
        ends.take()
    }

    #[test]
    fn directions_are_independent_or_share() {
        let transfers = [(700, false), (700, true)];
        assert_eq!(ends(Duplex::Full, None, &transfers), [800, 800]);
        assert_eq!(ends(Duplex::Half, None, &transfers), [800, 1_600]);
        // Packet by packet, in turn: the last of the first is next to last.
        assert_eq!(ends(Duplex::Half, Some(70), &transfers), [1_520, 1_600]);
    }

    /// A small transfer behind a large one waits for a packet of it, not for all. Both take as long in all as without packets.
    #[test]
    fn packets_let_the_small_pass() {
        let transfers = [(7_000, false), (70, false)];
        assert_eq!(ends(Duplex::Full, None, &transfers), [8_000, 8_080]);
        assert_eq!(ends(Duplex::Full, Some(700), &transfers), [8_080, 880]);
        assert_eq!(ends(Duplex::Full, Some(1), &[(13, false)]), ends(Duplex::Full, None, &[(13, false)]));
    }
}
