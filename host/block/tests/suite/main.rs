//! The block layer over drives of the model.

mod accuracy;
mod conformance;
mod deadlines;
mod disks;
mod hostile;
mod rig;
