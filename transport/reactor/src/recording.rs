//! A recording: all arrivals at a port, in order, with stamps and data.
//!
//! A file begins with [`MAGIC`], followed by chunks (see `chunks`), which contain records: kind (a byte), length of
//! the body, body. Small numbers are stored short, and commands and times as differences from recent ones (see
//! `numbers`). The first record is a header in JSON, from which the drives are rebuilt; the last one holds the end of
//! the run. A truncated file lacks it.
//!
//! | file | what |
//! |---|---|
//! | `recorder` | writes them |
//! | `reader` | reads them |
//! | `record` | a record, and its body as bytes |
//! | `numbers` | numbers and commands as bytes |
//! | `tape` | records the commands of a host in the same simulation as its drive |
//! | `requests` | the I/O commands of a recording in the order of their arrival, without a drive |

mod numbers;
mod reader;
mod record;
mod recorder;
mod requests;
mod tape;

use std::io;

pub use reader::Reader;
pub use record::{Data, Record, RunTiming, Times};
pub use recorder::Recorder;
pub use requests::{Event, Issuer, LeftOut, Request, Requests};
pub use tape::Tape;

/// Which data of commands is recorded.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum Kept {
    /// All: a replay stores the data that the run stored.
    #[default]
    All,
    /// Everything that affects the work or time of commands: all but the data of writes whose protection information
    /// is not checked.
    Timing,
}

/// The first bytes of every recording; the last but one is the version.
pub const MAGIC: [u8; 8] = *b"NSCREC8\n";
/// The place of the version in them.
const VERSION: usize = 6;
/// The largest body that is read: larger than a command with the largest transfer.
const MAX_BODY: usize = 1 << 28;

/// Why a recording cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The file cannot be read.
    #[error("{path}: {error}")]
    File {
        /// The file.
        path: String,
        /// Why.
        error: io::Error,
    },
    /// The file is not a recording.
    #[error("{path}: not a recording: it does not begin as one does")]
    NotOne {
        /// The file.
        path: String,
    },
    /// The file is a recording of another version of the program.
    #[error(
        "{path}: a recording of format {found}; this program reads format {}. Replay it with the version that wrote it",
        char::from(MAGIC[VERSION])
    )]
    OtherFormat {
        /// The file.
        path: String,
        /// Its format.
        found: char,
    },
    /// The file ends inside a record, as when its writer was killed.
    #[error("{path}: record {number}, in the chunk at byte {offset}, is torn: the file ends inside it")]
    Torn {
        /// The file.
        path: String,
        /// Records before it.
        number: u64,
        /// The beginning of its chunk.
        offset: u64,
    },
    /// A record is damaged.
    #[error("{path}: damaged at record {number}, in the chunk at byte {offset}: {problem}")]
    Damaged {
        /// The file.
        path: String,
        /// Records before it.
        number: u64,
        /// The beginning of its chunk.
        offset: u64,
        /// The problem.
        problem: String,
    },
    /// A record does not fit the drives of a replay.
    #[error("{path}: record {number} does not fit these drives: {problem}")]
    Unfit {
        /// The file.
        path: String,
        /// Records before it.
        number: u64,
        /// The problem.
        problem: String,
    },
}
