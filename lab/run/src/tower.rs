//! New drives with layers of a host over them, in simulated time, for an engine of an application: it uses what is at the top.
//!
//! Left out: workloads, which a [`Simulation`](crate::Simulation) runs, and reports of the layers.

use std::rc::Rc;

use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Resolved, Ssd};
use nandscape_drive::{Drive, DriveInfo, Node, Refused, Role, Use};
use nandscape_sim::{Seed, Sim};

use crate::chain::{self, ModelNode, Named, Opened};

/// Why there is no tower.
#[derive(Debug, thiserror::Error)]
pub enum TowerError {
    /// The system gives no memory for a drive.
    #[error("the drive's memory: {0}")]
    Memory(#[from] std::io::Error),
    /// A layer cannot lie over what is below it.
    #[error("{0}")]
    Layers(String),
}

/// The work of drives. Garbage collection of runs empties zones, which count as blocks.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct DriveFigures {
    /// Bytes that the host wrote.
    pub host_bytes: u64,
    /// Bytes that were programmed.
    pub flash_bytes: u64,
    /// Of these, data of the host.
    pub data_bytes: u64,
    /// Bytes that garbage collection moved.
    pub moved_bytes: u64,
    /// Blocks that garbage collection reclaimed.
    pub gc_blocks: u64,
}

impl DriveFigures {
    /// The work of several drives so far.
    pub fn of(ssds: &[Rc<Ssd>]) -> DriveFigures {
        let mut all = DriveFigures::default();
        for ssd in ssds {
            let (stats, unit) = (ssd.ftl_stats(), u64::from(ssd.controller().info().unit_bytes));
            all.host_bytes += stats.host_bytes;
            all.flash_bytes += stats.programmed_units() * unit;
            all.data_bytes += stats.host_units * unit;
            all.moved_bytes += stats.gc_units * unit;
            all.gc_blocks += stats.gc_blocks;
        }
        all
    }

    /// What has been added since earlier figures of the same drives.
    #[must_use]
    pub fn since(&self, earlier: &DriveFigures) -> DriveFigures {
        DriveFigures {
            host_bytes: self.host_bytes - earlier.host_bytes,
            flash_bytes: self.flash_bytes - earlier.flash_bytes,
            data_bytes: self.data_bytes - earlier.data_bytes,
            moved_bytes: self.moved_bytes - earlier.moved_bytes,
            gc_blocks: self.gc_blocks - earlier.gc_blocks,
        }
    }
}

/// What lies below an engine, in addition to a profile.
#[derive(Clone, Debug, Default)]
pub struct Below {
    /// The layers, the lowest first.
    pub layers: Vec<Named>,
    /// The profile of each drive, where they differ; empty: all have the same.
    pub drives: Vec<Resolved>,
    /// Whether every event is recorded.
    pub trace: bool,
}

impl Below {
    /// Layers over drives of one profile.
    pub fn layers(layers: Vec<Named>) -> Below {
        Below { layers, ..Below::default() }
    }
}

/// See the file.
pub struct Tower {
    ssds: Vec<Rc<Ssd>>,
    opened: Opened,
}

impl Tower {
    /// As many drives as the layers need, of a profile unless each has its own, which keep data, and the layers over them.
    ///
    /// # Errors
    /// See [`TowerError`]. Several drives or layers at the top are an error: an engine uses one.
    pub async fn build(sim: &Sim, drive: &Resolved, below: &Below, seed: Seed) -> Result<Tower, TowerError> {
        let Below { layers, drives, trace } = below;
        if !layers.is_empty() {
            chain::check_over(layers, drive).map_err(TowerError::Layers)?;
        }
        let count = chain::drives_below(layers);
        if !drives.is_empty() && drives.len() != count {
            return Err(TowerError::Layers(format!(
                "there are profiles of {} drives, and the layers need {count}",
                drives.len()
            )));
        }
        let (mut ssds, mut nodes) = (Vec::new(), Vec::<(String, Rc<dyn Node>)>::new());
        for number in 0..count {
            // Without layers the drive is that of a run on a single drive.
            let seed = if count == 1 { seed.child("drive") } else { seed.child("drive").nth(number as u64) };
            let (drive, name) = (drives.get(number).unwrap_or(drive), crate::name_of_drive(number));
            let prefix = if count == 1 { String::new() } else { format!("{name} ") };
            sim.trace().set_prefix(&prefix);
            let ssd = Ssd::new(sim, drive, StoreKind::Ram, seed);
            sim.trace().set_prefix("");
            let ssd = Rc::new(ssd?);
            ssd.in_service().await;
            let node = ModelNode::new(sim, &ssd, drive);
            if chain::is_over_chunks(layers) {
                node.open_chunks().await.map_err(TowerError::Layers)?;
            }
            ssds.push(ssd);
            nodes.push((name, Rc::new(node)));
        }
        if *trace {
            sim.trace().switch_on();
        }
        let opened = chain::open(sim, layers, nodes).map_err(TowerError::Layers)?;
        match opened.tops.len() {
            1 => Ok(Tower { ssds, opened }),
            tops => Err(TowerError::Layers(format!("{tops} layers are at the top, and a store lies on one"))),
        }
    }

    /// What is at the top.
    pub fn info(&self) -> DriveInfo {
        self.opened.tops[0].info()
    }

    /// A connection to the top, with so many entries at most.
    ///
    /// # Errors
    /// When there is no queue pair left.
    pub fn connect(&self, entries: u32) -> Result<Rc<dyn Drive>, Refused> {
        self.opened.tops[0].connect(Use { role: Role::Any, entries })
    }

    /// The admin queue of the top, where it has one. An array has none.
    pub fn admin(&self) -> Option<Rc<dyn Drive>> {
        self.opened.tops[0].connect(Use { role: Role::Admin, entries: 32 }).ok()
    }

    /// The drives.
    pub fn ssds(&self) -> &[Rc<Ssd>] {
        &self.ssds
    }
}
