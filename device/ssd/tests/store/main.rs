//! Drives in files: stopped, killed and started again, they hold what their buffer mode promises.

mod host;
mod kill;
mod model;
mod notes;
mod power;
mod refused;
