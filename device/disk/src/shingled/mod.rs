//! A shingled disk (SMR): tracks overlap, so a band of them can be written from its beginning only. Writes go to a
//! media cache, a region of tracks that do not overlap. The disk cleans a band later: it reads the band and the band's
//! data in the cache, and rewrites the band. Commands wait meanwhile.
//!
//! | file | what |
//! |---|---|
//! | `spec` | sizes and times |
//! | `log` | the media cache: a log of writes, and where each sector's newest copy is |
//! | `drive` | the drive: commands one at a time, and cleaning |
//!
//! The mapping of bands is static, cleaning begins when the disk has been idle for some time, and a band under way is
//! finished first. Aghayev and Desnoyers found this in drives with a persistent cache on disk (Skylight, FAST 2015).
//!
//! Left out: sequential writes that go to bands directly, cleaning that yields to commands within a band, and the
//! effect of a power cut on a band.

mod drive;
mod log;
mod spec;

pub use drive::{Cleanings, Shingled};
pub use spec::ShingledSpec;
