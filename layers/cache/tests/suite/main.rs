//! The cache over modelled disks.

mod accuracy;
mod conformance;
mod rejections;
mod rig;
