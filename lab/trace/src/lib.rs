//! Block traces: read in eleven text formats and from recordings of live drives, put in order, described, written, and replayed on drives.
//!
//! | file | what |
//! |---|---|
//! | `trace` | a trace: opened, checked in a first pass, and read in order any number of times |
//! | `window` | a part of a trace's time |
//! | `record`, `devices` | a request, and the disks that requests name |
//! | `format`, `formats` | the formats, with their capabilities, and one file each |
//! | `recorded` | recordings of live drives |
//! | `fields` | numbers and fields of a line |
//! | `detect` | detection of a trace's format |
//! | `fast` | whether a guess of the format makes a trace impossibly fast or slow |
//! | `input`, `lines`, `reader` | from a file, compressed or not, to lines and requests |
//! | `look_ahead`, `runs` | sorting of requests, slightly or arbitrarily out of order |
//! | `spread` | spreading requests over their second |
//! | `totals` | totals of a trace |
//! | `fit`, `replay` | requests fitted to a drive, and as a workload |
//! | `info` | a trace described |
//! | `convert` | a trace written in another format |
//! | `written` | the same to a file, compressed or not |
//! | `error` | errors |
//!
//! Memory does not grow with the length of a trace, except where `info` counts the pages touched. Left out: other
//! binary formats, traces of files and of keys.

mod convert;
mod detect;
mod devices;
mod error;
mod fast;
mod fields;
mod fit;
mod format;
mod formats;
mod info;
mod input;
mod lines;
mod look_ahead;
mod reader;
mod record;
mod recorded;
mod replay;
mod runs;
mod spread;
mod totals;
mod trace;
mod window;
mod written;

pub use convert::{ConvertError, convert};
pub use devices::{Device, Devices};
pub use error::{Malformed, TraceError};
pub use fit::Address;
pub use format::{Action, Format, UnknownFormat};
pub use info::{Disk, Info, Spread, Stream, describe};
pub use reader::Selection;
pub use record::Record;
pub use replay::{Pace, Replay};
pub use totals::{Count, DeviceTotals, Totals};
pub use trace::{Options, Records, Trace};
pub use window::Window;
pub use written::{WriteError, convert_to_file};
