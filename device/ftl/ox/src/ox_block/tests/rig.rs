//! An FTL on its flash, and commands to it.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::ops::Range;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use nandscape_device_ftl_core::component::ChainedLog;
use nandscape_device_ftl_core::ftl::{Inside, Milestone, Unwritable};
use nandscape_device_ftl_core::{Extent, Ftl, RandomWrites, ReadError, Reader, Unreadable};

use super::journal::Journal;
use super::kinds::Setup;
use crate::OxBlock;
use crate::ox_block::OxReader;
use crate::ox_block::core::Phase;
use nandscape_device_media::{BlockId, Media, MediaError};
use nandscape_device_rig::TestFlash;
use nandscape_drive::{Breakdown, HostMem};
use nandscape_sim::signal::Signal;
use nandscape_sim::{Seed, Sim, Wait};

/// Sectors of a unit.
pub(super) const UNIT_SECTORS: u32 = 8;

/// An FTL on its flash.
pub(super) struct Rig {
    pub(super) media: Rc<Media>,
    pub(super) ftl: Rc<OxBlock>,
    reader: OxReader<Inside>,
    keeps: bool,
    completes_at: Option<Milestone>,
    /// Power cuts so far, and a signal of each.
    cuts: Rc<(Cell<u32>, Signal)>,
    /// Epoch and pages of the log when the drive was last in service.
    chain: RefCell<(u64, Range<u64>)>,
    journal: Option<Rc<Journal>>,
    sim: Sim,
}

/// Power was cut before a command ended.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Cut;

impl Rig {
    pub(super) fn new(sim: &Sim, setup: &Setup, seed: u64, journal: Option<Rc<Journal>>) -> Rig {
        let flash = TestFlash { seed: Seed::new(seed).child("media"), ..setup.flash.clone() };
        let media = flash.media(sim);
        let cuts = Rc::new((Cell::new(0), Signal::new(sim)));
        let counted = cuts.clone();
        media.on_power_cut(move || {
            counted.0.set(counted.0.get() + 1);
            counted.1.notify();
        });
        let ftl = OxBlock::new(sim, media.clone(), setup.config);
        let chain = RefCell::new((0, 0..0));
        let Setup { keeps, completes_at, .. } = *setup;
        Rig { reader: ftl.reader(), media, ftl, keeps, completes_at, cuts, chain, journal, sim: sim.clone() }
    }

    /// A command, up to its end or the next power cut.
    pub(super) async fn until_cut<T>(&self, command: impl Future<Output = T>) -> Result<T, Cut> {
        if !self.media.is_powered() {
            return Err(Cut);
        }
        let before = self.cuts.0.get();
        let mut command = pin!(command);
        let mut cut = pin!(self.cuts.1.changed());
        std::future::poll_fn(|context| {
            if self.cuts.0.get() != before {
                return Poll::Ready(Err(Cut));
            }
            if let Poll::Ready(done) = command.as_mut().poll(context) {
                return Poll::Ready(if self.cuts.0.get() == before { Ok(done) } else { Err(Cut) });
            }
            cut.as_mut().poll(context).map(|()| Err(Cut))
        })
        .await
    }

    /// Writes an extent; with `forced`, to flash. Calls `accepted` when the drive has taken it.
    pub(super) async fn write(
        &self,
        extent: Extent,
        bytes: &[u8],
        forced: bool,
        accepted: impl FnOnce(),
    ) -> Result<(), Cut> {
        let work = async {
            let reservation = self.ftl.reserve(extent, &mut Wait::default()).await;
            assert!(self.ftl.read_only().is_none(), "the drive has become read-only");
            let mem = HostMem::from_bytes(bytes);
            accepted();
            let watch = if forced { Some(Milestone::Flash) } else { self.completes_at };
            match self.ftl.accept(extent, Some(&mem), reservation, watch) {
                Some(settling) => settling.settled().await.map(|_| ()),
                None => Ok(()),
            }
        };
        settle(self.until_cut(work).await)
    }

    /// Writes extents as one transaction; with `forced`, to flash.
    pub(super) async fn write_all(&self, extents: &[Extent], bytes: &[u8], forced: bool) -> Result<(), Cut> {
        let work = async {
            let reservation =
                self.ftl.offers().transactions.expect("it has a log").reserve(extents, &mut Wait::default()).await;
            let watch = if forced { Some(Milestone::Flash) } else { self.completes_at };
            match self.ftl.offers().transactions.expect("it has a log").accept(
                extents,
                Some(&HostMem::from_bytes(bytes)),
                reservation,
                watch,
            ) {
                Some(settling) => settling.settled().await.map(|_| ()),
                None => Ok(()),
            }
        };
        settle(self.until_cut(work).await)
    }

    /// Deallocates an extent.
    pub(super) async fn deallocate(&self, extent: Extent) -> Result<(), Cut> {
        match self.until_cut(self.ftl.deallocate(extent, &mut Breakdown::new())).await? {
            Ok(()) => Ok(()),
            Err(MediaError::PowerLost) => Err(Cut),
            Err(error) => panic!("{extent:?} cannot be deallocated: {error}"),
        }
    }

    /// Waits until all is on flash.
    pub(super) async fn flush(&self) -> Result<(), Cut> {
        match self.ftl.flush() {
            Some(settling) => settle(self.until_cut(async { settling.settled().await.map(|_| ()) }).await),
            None => Ok(()),
        }
    }

    /// Reads an extent.
    pub(super) async fn read(&self, extent: Extent) -> Result<Result<Vec<u8>, ReadError>, Cut> {
        let mem = HostMem::zeroed(extent.bytes() as usize);
        let mut breakdown = Breakdown::new();
        let to = Inside(mem.clone());
        let read = self.reader.read::<()>(extent, &to, &mut breakdown);
        match self.until_cut(read).await? {
            Err(ReadError { why: Unreadable::Media(MediaError::PowerLost), .. }) => Err(Cut),
            ended => Ok(ended.map(|()| mem.to_vec())),
        }
    }

    /// The two copies of each fixed place; that of the checkpoint is the last.
    pub(super) fn copies(&self) -> Vec<[BlockId; 2]> {
        let blocks: Vec<BlockId> = self.ftl.core().state.borrow().places.all().collect();
        blocks.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect()
    }

    /// Epoch and pages of the log's chain when the drive was last in service.
    pub(super) fn chain(&self) -> (u64, Range<u64>) {
        let core = self.ftl.core();
        if core.phase.get() == Phase::Running {
            let state = core.state.borrow();
            let number = state.log.number();
            *self.chain.borrow_mut() = (state.log.epoch(), number - state.log.pages()..number);
        }
        self.chain.borrow().clone()
    }

    /// Notes what happens, where a journal is kept.
    pub(super) fn note(&self, what: impl FnOnce() -> String) {
        if let Some(journal) = &self.journal {
            journal.note(self.sim.now(), &what());
        }
    }

    /// Waits until power returns, and the drive has recovered or power was cut once more. Returns whether it has
    /// recovered.
    pub(super) async fn try_to_recover(&self) -> bool {
        let cuts = self.media.power_cuts();
        self.media.power_returns().await;
        self.ftl.restart(self.keeps).await;
        self.media.power_cuts() == cuts
    }
}

pub(super) fn settle(ended: Result<Result<(), Unwritable>, Cut>) -> Result<(), Cut> {
    match ended? {
        Ok(()) => Ok(()),
        Err(Unwritable::PowerLost) => Err(Cut),
        Err(why @ (Unwritable::ReadOnly | Unwritable::Lost)) => panic!("{why:?}"),
    }
}

/// The sectors of some units.
pub(super) fn units(first: u32, count: u32) -> Extent {
    Extent { start: u64::from(first) * u64::from(UNIT_SECTORS), sectors: count * UNIT_SECTORS }
}
