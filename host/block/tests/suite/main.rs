//! The block layer over drives of the model.

mod accuracy;
mod conformance;
mod deadlines;
mod hostile;
mod rig;
