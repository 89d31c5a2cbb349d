//! The cache over disks of the model.

mod accuracy;
mod conformance;
mod rejections;
mod rig;
