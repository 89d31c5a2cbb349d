//! Flash in a file: killed at any write, on a full disk, after a loss of the host's power, and with damaged or unrelated
//! files.

mod ages;
mod damage;
mod kill;
#[cfg(unix)]
mod real_file;
mod rig;
mod snapshots;
