//! Loads drawn from a seed: writes of whole and of partial units, deallocations, flushes, forced writes, reads.

use std::cell::RefCell;

use crate::Extent;
use nandscape_sim::{Rng, Seed};

use super::model::{Model, decode};
use super::rig::{Cut, Rig, UNIT_SECTORS, units};

/// What a load is made of.
#[derive(Copy, Clone, Debug)]
pub(super) struct Load {
    /// Commands.
    pub(super) steps: u32,
    /// Units that they go to, from the first on.
    pub(super) span: u32,
    /// Units of a command at the most.
    pub(super) most: u32,
    /// Whether units are deallocated.
    pub(super) deallocates: bool,
    /// Whether every write is forced to flash before the next begins.
    pub(super) forced: bool,
}

/// Runs a load until its end or a power cut.
pub(super) async fn run(rig: &Rig, model: &RefCell<Model>, load: &Load, seed: Seed) -> Result<(), Cut> {
    let mut rng = seed.rng();
    for _ in 0..load.steps {
        step(rig, model, load, &mut rng).await?;
    }
    Ok(())
}

async fn step(rig: &Rig, model: &RefCell<Model>, load: &Load, rng: &mut Rng) -> Result<(), Cut> {
    let count = 1 + rng.below(u64::from(load.most)) as u32;
    let first = rng.below(u64::from(load.span - count)) as u32;
    let extent = units(first, count);
    match rng.below(40) {
        0 => {
            let step = model.borrow().steps();
            rig.flush().await?;
            model.borrow_mut().flushed(step);
        }
        1 | 2 if load.deallocates => {
            // It may or may not have happened when power is cut meanwhile.
            model.borrow_mut().deallocate(extent);
            rig.deallocate(extent).await?;
        }
        3..6 => {
            let read = rig.read(units(first, 1)).await?.unwrap_or_else(|error| panic!("unit {first}: {error:?}"));
            assert_eq!(decode(first, &read), Some(model.borrow().now(first)), "unit {first} reads wrong");
        }
        6..10 => write(rig, model, part(extent, rng), load.forced || rng.below(4) == 0).await?,
        _ => write(rig, model, extent, load.forced || rng.below(20) == 0).await?,
    }
    Ok(())
}

/// Some sectors of an extent.
fn part(extent: Extent, rng: &mut Rng) -> Extent {
    let skip = rng.below(u64::from(UNIT_SECTORS));
    let left = extent.sectors - skip as u32;
    Extent { start: extent.start + skip, sectors: left - rng.below(u64::from(left.min(UNIT_SECTORS))) as u32 }
}

async fn write(rig: &Rig, model: &RefCell<Model>, extent: Extent, forced: bool) -> Result<(), Cut> {
    let (step, bytes) = model.borrow_mut().write(extent);
    rig.write(extent, &bytes, forced, || ()).await?;
    if forced {
        model.borrow_mut().forced(extent, step);
    }
    Ok(())
}
