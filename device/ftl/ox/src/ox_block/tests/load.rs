//! Loads drawn from a seed: writes of whole and of partial units, deallocations, flushes, forced writes, reads.
//! Concurrent commands touch no unit in common, so the possible contents of each unit stay known.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::task::Poll;

use nandscape_device_ftl_core::Extent;
use nandscape_sim::{Rng, Seed};

use super::model::{Model, decode, touched};
use super::rig::{Cut, Rig, UNIT_SECTORS, units};

/// The parameters of a load.
#[derive(Copy, Clone, Debug)]
pub(super) struct Load {
    /// Commands.
    pub(super) steps: u32,
    /// Concurrent commands.
    pub(super) depth: u32,
    /// Units that they access, from the first on.
    pub(super) span: u32,
    /// The most units of a command.
    pub(super) most: u32,
    /// Whether units are deallocated.
    pub(super) deallocates: bool,
    /// Whether every write is forced to flash before the next begins.
    pub(super) forced: bool,
}

/// Places that a command tries, where others hold some.
const TRIES: u32 = 16;

/// A load that runs.
struct Running<'a> {
    rig: &'a Rig,
    model: &'a RefCell<Model>,
    load: &'a Load,
    rng: RefCell<Rng>,
    left: Cell<u32>,
    /// What commands under way touch.
    held: RefCell<Vec<Extent>>,
}

/// Runs a load until its end or a power cut.
pub(super) async fn run(rig: &Rig, model: &RefCell<Model>, load: &Load, seed: Seed) -> Result<(), Cut> {
    let (rng, left, held) = (RefCell::new(seed.rng()), Cell::new(load.steps), RefCell::default());
    let running = Running { rig, model, load, rng, left, held };
    let mut workers: Vec<_> = (0..load.depth).map(|_| (Box::pin(running.work()), None)).collect();
    poll_fn(|context| {
        for (worker, ended) in workers.iter_mut().filter(|(_, ended)| ended.is_none()) {
            if let Poll::Ready(result) = worker.as_mut().poll(context) {
                *ended = Some(result);
            }
        }
        let results: Option<Vec<Result<(), Cut>>> = workers.iter().map(|(_, ended)| *ended).collect();
        results.map_or(Poll::Pending, |results| Poll::Ready(results.into_iter().collect()))
    })
    .await
}

impl Running<'_> {
    async fn work(&self) -> Result<(), Cut> {
        while let Some(left) = self.left.get().checked_sub(1) {
            self.left.set(left);
            let Some(extent) = self.place() else { continue };
            self.held.borrow_mut().push(extent);
            self.step(extent).await?;
            let mut held = self.held.borrow_mut();
            let index = held.iter().position(|other| *other == extent).expect("it is held");
            held.swap_remove(index);
        }
        Ok(())
    }

    /// Units that no other command touches.
    fn place(&self) -> Option<Extent> {
        let (mut rng, held) = (self.rng.borrow_mut(), self.held.borrow());
        (0..TRIES).find_map(|_| {
            let count = 1 + rng.below(u64::from(self.load.most)) as u32;
            let extent = units(rng.below(u64::from(self.load.span - count)) as u32, count);
            let is_free = |other: &Extent| other.end() <= extent.start || extent.end() <= other.start;
            held.iter().all(is_free).then_some(extent)
        })
    }

    async fn step(&self, extent: Extent) -> Result<(), Cut> {
        let Running { rig, model, load, .. } = self;
        match self.below(40) {
            0 => {
                let mark = model.borrow().mark();
                rig.flush().await?;
                model.borrow_mut().flushed(&mark);
            }
            1 | 2 if load.deallocates => {
                // It may or may not have happened when power is cut meanwhile.
                let step = model.borrow_mut().deallocate(extent);
                rig.deallocate(extent).await?;
                model.borrow_mut().ended(step);
            }
            3..6 => self.read(touched(&extent).start as u32).await?,
            6..10 => {
                let part = part(extent, &mut self.rng.borrow_mut());
                self.write(part, load.forced || self.below(4) == 0).await?;
            }
            _ => self.write(extent, load.forced || self.below(20) == 0).await?,
        }
        Ok(())
    }

    async fn read(&self, unit: u32) -> Result<(), Cut> {
        let read = self.rig.read(units(unit, 1)).await?.unwrap_or_else(|error| panic!("unit {unit}: {error:?}"));
        assert_eq!(decode(unit, &read), Some(self.model.borrow().now(unit)), "unit {unit} reads wrong");
        Ok(())
    }

    async fn write(&self, extent: Extent, forced: bool) -> Result<(), Cut> {
        let (step, bytes) = self.model.borrow_mut().write(extent);
        self.rig.write(extent, &bytes, forced, || ()).await?;
        let mut model = self.model.borrow_mut();
        model.ended(step);
        if forced {
            model.forced(extent, step);
        }
        Ok(())
    }

    fn below(&self, end: u64) -> u64 {
        self.rng.borrow_mut().below(end)
    }
}

/// Some sectors of an extent.
fn part(extent: Extent, rng: &mut Rng) -> Extent {
    let skip = rng.below(u64::from(UNIT_SECTORS));
    let left = extent.sectors - skip as u32;
    Extent { start: extent.start + skip, sectors: left - rng.below(u64::from(left.min(UNIT_SECTORS))) as u32 }
}
