//! Drives with zones, by their commands: against a model of the specification, and against measured times.

mod campaign;
mod figures;
mod identify;
mod interference;
mod model;
mod order;
mod random;
mod rig;
mod saved;
mod several;
mod statuses;
