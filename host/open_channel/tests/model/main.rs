//! Open-channel drives, through the library of their hosts, against a model of the specification.

mod campaign;
mod figures;
mod order;
mod rig;
mod statuses;
mod table;
mod write_back;
