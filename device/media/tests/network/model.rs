//! The same script through the model: a task for each customer.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use nandscape_device_media::{BlockId, Crossing, Geometry, Holding, Media, OpCounts, PageId, PlaneId, Priority};
use nandscape_device_rig::{TestFlash, image, plant_block};
use nandscape_drive::Breakdown;
use nandscape_drive::breakdown::cause;
use nandscape_sim::units::Rate;
use nandscape_sim::{Executor, Sim, Span, Time};

use crate::reference::Outcome;
use crate::script::{Network, Op, Script, UNIT, Work};

/// Longer than any script takes.
pub(crate) const LONG: Time = Time::from_ns(1 << 50);

pub(crate) fn media(sim: &Sim, network: &Network) -> Rc<Media> {
    let spans = |times: &[u64]| times.iter().copied().map(Span::from_ns).collect();
    let flash = TestFlash {
        channels: network.channels,
        dies: network.dies_per_channel,
        planes: network.planes_per_die,
        blocks: network.blocks_per_plane(),
        pages: network.pages_per_block,
        units_per_page: network.units_per_page,
        cell: network.cell,
        read: spans(&network.read),
        program: spans(&network.program),
        erase: Span::from_ns(network.erase),
        bus: Rate::new(UNIT.into(), Span::from_ns(network.unit_transfer)),
        registers: network.registers,
        partial_transfer: network.partial_transfer,
        ..TestFlash::default()
    };
    let media = flash.media(sim);
    let full = |plane| media.geometry().block_of(source(media.geometry(), plane, 0));
    (0..network.planes()).for_each(|plane| plant_block(&media, full(plane)));
    media
}

/// A page of the block of a plane that is full from the beginning.
pub(crate) fn source(geometry: &Geometry, plane: u32, page: u32) -> PageId {
    geometry.page_at(BlockId((plane + 1) * geometry.blocks_per_plane() - 2), page)
}

/// One customer: its blocks, and the drive it uses.
pub(crate) struct Customer {
    pub(crate) sim: Sim,
    pub(crate) media: Rc<Media>,
    pub(crate) priority: Priority,
    pub(crate) number: u32,
}

impl Customer {
    /// Does one operation. Checks that the times it reports sum to those it took.
    pub(crate) async fn serve(&self, op: &Op) {
        let geometry = self.media.geometry();
        let first = op.plane * geometry.blocks_per_plane();
        let own = BlockId(first + 2 * self.number);
        let collected = BlockId(own.0 + 1);
        let erased = BlockId(first + geometry.blocks_per_plane() - 1);
        let (begun, mut breakdown) = (self.sim.now(), Breakdown::new());
        let who = |cause| self.priority.who(cause);
        match &op.work {
            Work::Read { page, units } => {
                let page = source(geometry, op.plane, *page);
                self.media.read(page, units * UNIT, who(cause::HOST_READ), &mut breakdown).await.unwrap();
            }
            Work::Program { page } => {
                let page = geometry.page_at(own, *page);
                self.media
                    .program(page, image(geometry.units_per_page()), who(cause::HOST_WRITE), &mut breakdown)
                    .await
                    .unwrap();
            }
            Work::Erase => self.media.erase(erased, who(cause::GC), &mut breakdown).await.unwrap(),
            Work::Collect { copies, moves, holds_channel } => {
                let scheme = if *holds_channel { Holding::Channel } else { Holding::Plane };
                self.collect(PlaneId(op.plane), scheme, collected, erased, copies, moves).await;
                return;
            }
        }
        assert_eq!(breakdown.total(), self.sim.now() - begun, "{op:?}: the stages do not sum to the latency");
    }

    async fn collect(
        &self,
        plane: PlaneId,
        scheme: Holding,
        into: BlockId,
        erased: BlockId,
        copies: &[(u32, u32)],
        moves: &[(u32, u32)],
    ) {
        let geometry = self.media.geometry();
        let (page, from) = (|page| geometry.page_at(into, page), |page| source(geometry, plane.0, page));
        let mut seized = self.media.seize(plane, scheme, self.priority.who(cause::GC)).await;
        if !copies.is_empty() {
            seized
                .copyback(
                    &copies.iter().map(|&(source, to)| (from(source), page(to))).collect::<Vec<_>>(),
                    Crossing::Nothing,
                )
                .await
                .unwrap();
        }
        let whole = geometry.page_size();
        seized.read(&moves.iter().map(|&(source, _)| (from(source), whole)).collect::<Vec<_>>()).await.unwrap();
        for &(_, to) in moves {
            seized.program(page(to), image(geometry.units_per_page())).await.unwrap();
        }
        seized.erase(erased).await.unwrap();
    }
}

/// Polls `work`, and abandons it when `patience` is over.
pub(crate) async fn within(sim: &Sim, patience: Span, work: impl Future<Output = ()>) {
    let (mut work, mut patience) = (Box::pin(work), pin!(sim.sleep(patience)));
    poll_fn(|context| match work.as_mut().poll(context) {
        Poll::Ready(()) => Poll::Ready(()),
        Poll::Pending => patience.as_mut().poll(context),
    })
    .await;
    drop(work);
}

/// Runs a script. Operations marked in `withdrawn` are dropped when their patience is over.
pub(crate) fn run(
    mut executor: Executor,
    network: &Network,
    script: &Script,
    withdrawn: &[Vec<bool>],
) -> (Outcome, OpCounts) {
    let sim = executor.sim();
    let media = media(&sim, network);
    let ended = Rc::new(RefCell::new(vec![Vec::new(); script.len()]));
    let priority = if network.reads_first { Priority::ReadsFirst } else { Priority::Fifo };
    for (number, (ops, withdrawn)) in (0..).zip(script.iter().zip(withdrawn)) {
        let (ops, withdrawn, ended) = (ops.clone(), withdrawn.clone(), ended.clone());
        let customer = Customer { sim: sim.clone(), media: media.clone(), priority, number };
        sim.spawn(async move {
            for (op, withdrawn) in ops.iter().zip(withdrawn) {
                customer.sim.sleep(Span::from_ns(op.think)).await;
                match op.patience.filter(|_| withdrawn) {
                    Some(patience) => within(&customer.sim, Span::from_ns(patience), customer.serve(op)).await,
                    None => customer.serve(op).await,
                }
                ended.borrow_mut()[customer.number as usize].push(customer.sim.now().ns());
            }
        });
    }
    executor.block_on(sim.sleep_until(LONG)).expect("the clock runs");
    let arrays = media.array_usage().iter().map(|usage| usage.total().ns()).collect();
    let channels = media.channel_usage().iter().map(|usage| usage.total().ns()).collect();
    (Outcome { ended: ended.take(), arrays, channels }, media.counts())
}
