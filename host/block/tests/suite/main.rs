//! The block layer over modelled drives.

mod accuracy;
mod conformance;
mod deadlines;
mod disks;
mod hostile;
mod rig;
