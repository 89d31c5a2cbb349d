//! The cache over modelled disks.

mod accuracy;
mod conformance;
mod foresight;
mod rejections;
mod rig;
