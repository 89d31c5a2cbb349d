//! File-backed drives: stopped, killed and restarted, they keep what their buffer mode promises.

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
