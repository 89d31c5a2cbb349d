//! Jobs that know zones, as fio's `zonemode=zbd`: writes and appends at write pointers, resets of zones that are used again,
//! finishes, reads below write pointers.
//!
//! | file | what |
//! |---|---|
//! | `spec` | the words of a job, and whether they fit a drive |
//! | `table` | the zones of a drive, from its report and the commands since then |
//! | `draw` | directions and sizes of requests |
//! | `place` | where the next request of a job goes |
//! | `job` | the tasks of a job |
//!
//! Left out: random write areas, zone descriptor extensions, Copy, fio's `read_beyond_wp` and `zone_reset_frequency`.

mod draw;
mod job;
mod place;
mod spec;
mod table;

pub(crate) use job::start;
pub use spec::{ZoneLimits, ZoneWords, Zoned};
pub(crate) use table::Tables;
