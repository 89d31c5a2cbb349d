//! Block traces: read in eleven text formats, put in order, described, written, and replayed on drives.
//!
//! | file | what |
//! |---|---|
//! | `trace` | a trace: opened, read through once, and read in order as often as wanted |
//! | `record`, `devices` | a request, and the disks that requests name |
//! | `format`, `formats` | the formats, what each can express, and one file each |
//! | `fields` | numbers and fields of a line |
//! | `detect` | which format a trace is in |
//! | `input`, `lines`, `reader` | from a file, compressed or not, to lines and to requests |
//! | `look_ahead`, `runs` | putting requests in order, a few or any number |
//! | `spread` | spreading requests over their second |
//! | `totals` | what a trace comes to |
//! | `fit`, `replay` | requests made to fit a drive, and as a workload |
//! | `info` | a trace described |
//! | `convert` | a trace written in another format |
//! | `error` | what goes wrong |
//!
//! Memory does not grow with the length of a trace, except where `info` counts the pages it touches.
//! Left out: binary formats, traces of files and of keys.

mod convert;
mod detect;
mod devices;
mod error;
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
mod replay;
mod runs;
mod spread;
mod totals;
mod trace;

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
