//! Options of flash beyond reading, programming and erasing page by page, against timelines worked out by hand from
//! docs/techniques/nand-timing.md.

mod command;
mod correction;
mod interleaving;
mod multi_plane;
mod polls;
mod rig;
mod suspension;
mod together;
