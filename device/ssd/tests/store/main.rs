//! Drives in files: stopped, killed and started again, they hold what their buffer mode promises.

mod aged;
mod damage;
mod host;
mod kill;
mod model;
mod notes;
mod ox_block;
mod power;
mod refused;
mod snapshots;
