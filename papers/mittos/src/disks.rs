//! Disks behind a block layer that predicts, and stores on them.

use std::rc::Rc;

use nandscape_apps_kv_engine::Store;
use nandscape_apps_kv_engine::store::{Extent, Layout};
use nandscape_apps_kv_run::segment_bytes;
use nandscape_drive::Drive;
use nandscape_host_block::predictor::{DiskProfile, calibrate};
use nandscape_sim::{Executor, Seed, Sim};

use crate::cluster::RunError;

/// Commands for each distance of a profile.
const SAMPLES: u32 = 200;

/// The times of a disk, measured on another of its kind before anything else runs.
pub(crate) fn profile(make: impl FnOnce(&Sim) -> Result<Rc<dyn Drive>, RunError>) -> Result<DiskProfile, RunError> {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let disk = make(&sim)?;
    let measured = executor.block_on(calibrate(&sim, &*disk, Seed::new(1).child("profile"), SAMPLES))?;
    measured.map_err(|status| RunError::Build(format!("a command of the calibration ended with {status}")))
}

/// A store on the first blocks of a drive.
pub(crate) async fn store(sim: &Sim, server: usize, drive: &Rc<dyn Drive>, bytes: u64) -> Result<Rc<Store>, RunError> {
    let info = drive.info();
    let extent = Extent { slba: 0, blocks: (bytes / u64::from(info.lba_bytes)).min(info.blocks) };
    let layout = Layout { extent, segment_bytes: segment_bytes(&extent, &info) };
    let made = Store::create(sim, drive.clone(), layout, 1 + server as u64).await;
    made.map(Rc::new).map_err(|error| RunError::Build(format!("the store of server {server}: {error}")))
}
