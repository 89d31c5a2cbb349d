//! The latency of a read if it is submitted now.
//!
//! | file | what |
//! |---|---|
//! | `ssd` | an account of chips and channels (MittSSD) |
//! | `chip` | the account of a chip |
//! | `times` | the times of flash operations |
//! | `noop_disk` | the next free time of a disk that serves in order of arrival (MittNoop) |
//! | `cfq_disk` | the same, and the waiting work of each process (MittCFQ) |
//! | `smr_disk` | the same, and the band that is being cleaned (MittSmr) |
//! | `line` | the account of a disk |
//! | `profile`, `calibrate` | a disk's times by distance and size; the run that measures them |

mod calibrate;
mod cfq_disk;
mod chip;
mod line;
mod noop_disk;
mod profile;
mod smr_disk;
mod ssd;
mod times;

pub use calibrate::calibrate;
pub use cfq_disk::MittCfq;
pub use chip::Order;
pub use noop_disk::MittNoop;
pub use profile::DiskProfile;
pub use smr_disk::MittSmr;
pub use ssd::{Flash, MittSsd};
pub use times::FlashTimes;
pub(crate) use times::averaged;

use nandscape_drive::flash::FlashPage;
use nandscape_sim::{Span, Time};
use smallvec::SmallVec;

use crate::request::Request;

/// The prediction for a command.
#[derive(Clone, Default, Debug)]
pub struct Prediction {
    /// From its submission to its completion.
    pub latency: Span,
    /// The part of the latency spent waiting for others.
    pub wait: Span,
    /// The pages that it senses, of a read of flash.
    pub pages: SmallVec<[FlashPage; 2]>,
}

/// Predicts, and accounts for admitted commands. The work of each call is bounded by the size of the command itself,
/// whatever the number of others (Li 3.1.4).
pub trait Predictor {
    /// How long a command will take that is submitted now.
    fn predict(&self, request: &Request, now: Time) -> Prediction;

    /// The command is let in. The result names it.
    fn accept(&self, request: &Request, prediction: &Prediction, now: Time) -> u64;

    /// Whether a chip has something to do, where chips are known.
    fn is_busy(&self, _chip: u32) -> bool {
        false
    }

    /// The command with this ticket is sent to the drive.
    fn sent(&self, _ticket: u64, _now: Time) {}

    /// The command of that name has ended.
    fn ended(&self, ticket: u64, now: Time);

    /// The command of that name was rejected while it waited.
    fn dropped(&self, ticket: u64, now: Time);
}
