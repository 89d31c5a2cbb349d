//! A shingled disk (SMR): tracks overlap, so that a band of them can be written from its beginning only. Writes go to a media cache, a
//! region of tracks that do not overlap; the disk cleans a band later, which reads the band and what the cache has of it, and writes the
//! band anew. Commands wait meanwhile.
//!
//! | file | what |
//! |---|---|
//! | `spec` | sizes and times |
//! | `log` | the media cache: a log of writes, and where each sector's newest copy is |
//! | `drive` | the drive: commands one at a time, and cleaning |
//!
//! The mapping of bands is static, cleaning begins when the disk has been idle for some time, and a band under way is finished first, as
//! Aghayev and Desnoyers found in drives with a persistent cache on disk (Skylight, FAST 2015).
//!
//! Left out: writes that go to bands directly when they are sequential, cleaning that yields to commands within a band, and what a power
//! cut leaves of a band.

mod drive;
mod log;
mod spec;

pub use drive::{Cleanings, Shingled};
pub use spec::ShingledSpec;
