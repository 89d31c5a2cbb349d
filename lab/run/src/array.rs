//! Arrays over the drives of an experiment that has its own rig. As a layer of a [`Simulation`](crate::Simulation) they are in
//! [`chain`](crate::chain).

use std::rc::Rc;

use nandscape_device_ssd::Resolved;
use nandscape_drive::Drive;
use nandscape_layers_array::{Array, Config, ENTRIES, LAYER, Member, Rails, Shape};
use nandscape_sim::Span;

use crate::rig::Rig;
use crate::simulation::RunError;

/// The most entries of queue pairs for writes.
const WRITE_ENTRIES: u32 = 512;

/// Entries of queue pairs for writes: half of the commands that the drive takes at a time. Writes to a drive that collects wait in it;
/// with more of them no read would be fetched, and none could fail fast.
pub(crate) fn write_entries(profile: &Resolved) -> u32 {
    (profile.command_slots() / 2).clamp(2, WRITE_ENTRIES)
}

/// An array over all drives of a rig, through its own queue pairs: a drive for experiments, with [`Array::stats`].
///
/// # Errors
/// Why these drives cannot be such an array.
pub fn array_on(rig: &Rig, shape: Shape, config: Config) -> Result<Rc<Array>, RunError> {
    array_over(rig, 1, true, (shape, config))
}

/// The same on a namespace of the drives, without their admin queues: two arrays may be on two namespaces.
///
/// # Errors
/// Why these drives cannot be such an array, or have no such namespace.
pub fn array_on_namespace(rig: &Rig, nsid: u32, shape: Shape, config: Config) -> Result<Rc<Array>, RunError> {
    array_over(rig, nsid, false, (shape, config))
}

/// The same on any namespace, with the drives' admin queues or without.
fn array_over(rig: &Rig, nsid: u32, with_admin: bool, (shape, config): (Shape, Config)) -> Result<Rc<Array>, RunError> {
    let members = (0..rig.ssds().count()).map(|number| Member::on(&rig.node((number, nsid), None), with_admin));
    let members = members.collect::<Result<Vec<_>, String>>().map_err(RunError::Workload)?;
    Array::new(rig.sim(), shape, config, members).map_err(|error| RunError::Workload(error.to_string()))
}

/// Flash on Rails over the two drives of a rig, which change roles every `swap`.
///
/// # Errors
/// Why these drives cannot be that.
pub fn rails_on(rig: &Rig, swap: Span) -> Result<Rc<Rails>, RunError> {
    let paths = [rig.connect(0, ENTRIES)? as Rc<dyn Drive>, rig.connect(1, ENTRIES)?];
    Rails::new(rig.sim(), LAYER, swap, paths).map_err(|error| RunError::Workload(error.to_string()))
}
