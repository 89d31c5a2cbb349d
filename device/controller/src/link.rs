//! The host link: each direction first come, first served, in whole transfers or packet by packet; full duplex, or both
//! directions sharing one bandwidth. Where the controller's processors copy the data, their work is a part of the crossing.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, Stage};
use nandscape_sim::account::Totals;
use nandscape_sim::processors::Turn;
use nandscape_sim::resource::Occupy;
use nandscape_sim::units::Remembering;
use nandscape_sim::{Cause, Class, Processors, Resource, Sim, Span, Time, Who};

use crate::config::{Duplex, LinkConfig};
use crate::work::note;

/// The host link.
pub struct Link {
    sim: Sim,
    config: LinkConfig,
    rate: Remembering,
    /// The processors that copy the data, and their time for 1 KiB, if copying takes time.
    copying: Option<(Rc<Processors>, Span)>,
    /// Whether data crosses in one transfer, and no processor copies it.
    is_whole: bool,
    to_host: Resource,
    to_device: Resource,
}

impl Link {
    pub(crate) fn new(sim: &Sim, config: LinkConfig, copying: Option<(Rc<Processors>, Span)>) -> Link {
        let rate = Remembering::new(config.bandwidth);
        let is_whole = config.packet.is_none() && copying.is_none();
        let (to_host, to_device) = (Resource::new(sim), Resource::new(sim));
        Link { sim: sim.clone(), config, rate, copying, is_whole, to_host, to_device }
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
        let way = match self.is_whole {
            true => Way::Whole(lane.keep_busy(self.rate.time_for(bytes), who)),
            false => self.in_steps(lane, bytes, who),
        };
        Crossing { sim: &self.sim, begun: self.sim.now(), way, breakdown }
    }

    #[cold]
    fn in_steps<'a>(&'a self, lane: &'a Resource, bytes: u64, who: Who) -> Way<'a> {
        match self.config.packet {
            Some(packet) if self.copying.is_none() => {
                Way::Packets(Box::pin(self.send_packets(lane, bytes, packet.into(), who)))
            }
            _ => Way::Copied(Box::pin(self.send_copied(lane, bytes, who))),
        }
    }

    /// Moves data that processors copy: before sending, or after receiving.
    async fn send_copied(&self, lane: &Resource, bytes: u64, who: Who) -> Copied {
        let copying = self.copying.as_ref().map(|(processors, kib)| {
            let work = Span::from_ns(kib.ns() * bytes / 1_024);
            async move { (processors.work(work, who.cause).await, work) }
        });
        let cross = self.send_packets(lane, bytes, self.config.packet.map_or(bytes.max(1), u64::from), who);
        match who.cause {
            cause::HOST_READ => {
                let copied = copying?.await;
                cross.await;
                Some(copied)
            }
            _ => {
                cross.await;
                Some(copying?.await)
            }
        }
    }

    async fn send_packets(&self, lane: &Resource, bytes: u64, packet: u64, who: Who) {
        let (mut sent, mut spent) = (0, Span::ZERO);
        loop {
            // Packet times are rounded so that they sum to the time of the whole.
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
    /// The same, with the work of processors.
    Copied(Pin<Box<dyn Future<Output = Copied> + 'a>>),
}

/// The work of processors on data: its turn and its duration; `None` without such work.
type Copied = Option<(Turn, Span)>;

impl Future for Crossing<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let crossed = match &mut self.way {
            Way::Whole(transfer) => Pin::new(transfer).poll(context),
            Way::Packets(packets) => packets.as_mut().poll(context),
            Way::Copied(copied) => {
                let copied = std::task::ready!(copied.as_mut().poll(context));
                self.note_copied(copied);
                return Poll::Ready(());
            }
        };
        if crossed.is_ready() {
            let spent = self.sim.now() - self.begun;
            self.breakdown.spend(Stage::Link, spent);
        }
        crossed
    }
}

impl Crossing<'_, '_> {
    /// Adds the time of a crossing with the work of processors in it.
    #[cold]
    fn note_copied(&mut self, copied: Copied) {
        let mut spent = self.sim.now() - self.begun;
        if let Some((turn, work)) = copied {
            spent -= turn.wait + work;
            note(turn, work, self.breakdown);
        }
        self.breakdown.spend(Stage::Link, spent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_sim::Executor;
    use nandscape_sim::units::Rate;
    use std::cell::RefCell;

    /// The ends of transfers that begin at the same instant: (bytes, whether from the host), in that order, at 7 bytes per 8
    /// ns.
    fn ends(duplex: Duplex, packet: Option<u32>, transfers: &[(u64, bool)]) -> Vec<u64> {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let bandwidth = Rate::new(7, Span::from_ns(8));
        let link = Rc::new(Link::new(&sim, LinkConfig { bandwidth, duplex, packet, latency: Span::ZERO }, None));
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
        // Packet by packet, in turn: the last packet of the first transfer is next to last.
        assert_eq!(ends(Duplex::Half, Some(70), &transfers), [1_520, 1_600]);
    }

    /// A small transfer behind a large one waits for one packet of it. In total, both take as long as without packets.
    #[test]
    fn packets_let_the_small_pass() {
        let transfers = [(7_000, false), (70, false)];
        assert_eq!(ends(Duplex::Full, None, &transfers), [8_000, 8_080]);
        assert_eq!(ends(Duplex::Full, Some(700), &transfers), [8_080, 880]);
        assert_eq!(ends(Duplex::Full, Some(1), &[(13, false)]), ends(Duplex::Full, None, &[(13, false)]));
    }
}
