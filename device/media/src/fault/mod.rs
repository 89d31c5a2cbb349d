//! Faults of the flash, on demand: which, where and when.
//!
//! | file | what |
//! |---|---|
//! | `rule` | one fault: its effect, operations, place and time |
//! | `parse` | a rule as a line of text, and back |
//! | `plan` | the rules of a drive: which of them strike an operation |
//! | `torn` | the remains of operations that a power cut interrupts |
//!
//! # The fault model
//!
//! An operation is a page read, a program command or a block erase, of the host or of garbage collection. A copyback is a
//! read and a program. The faults of an operation are decided when it begins:
//!
//! | fault | operations | what happens | what the controller sees |
//! |---|---|---|---|
//! | `corrupt` | read, program | one bit of each mapping unit of the page is inverted in the cells, and stays so | nothing |
//! | `uncorrectable` | read | the read takes its time and that of all retries | more errors than can be corrected |
//! | `slow` | all | the array takes longer | nothing |
//! | `fail` | program, erase | it takes its time; the page cannot be read afterwards, the block is not erased | FAIL in the status (ONFI SR\[0\]) |
//! | `stuck` | all | the LUN stays busy until the controller gives up and resets it (FFh) | the operation failed |
//! | `dead` | all | a die, a channel or a part of one stops answering, from the first operation that the rule strikes | no answer |
//! | `power_cut` | all | every operation under way is torn: pages being programmed and blocks being erased are left as [`Torn`] defines, unreadable unless the rule sets otherwise | nothing until power returns |
//!
//! A page that is copied back without error correction takes its errors along: if its read is uncorrectable, so is the
//! copy, until its block is erased.
//!
//! Several rules may strike an operation at once: their delays add, and the worst failure counts (in the order of
//! [`MediaError`]). Rules are counted and drawn in the order of operations, which is the same for the same seed.
//!
//! The FTL decides the consequences (retiring blocks, moving data), the controller the status of the command.
//!
//! An operation that waits for its die at a power cut has begun and is torn.
//!
//! Errors caused by wear, retention and disturb are in `aging`.
//!
//! Left out: faults of the controller's memory and of the host link; damage
//! that a torn or failed program does to earlier pages of its word line; pages that read differently from time to time
//! afterwards. Faults other than a power cut leave out-of-band areas unchanged.

mod parse;
mod plan;
mod rule;
mod torn;

pub use parse::RuleError;
pub use plan::{FaultPlan, Mark, RuleCount};
pub use rule::{Operation, Rule, Scope, Strike, When};
pub use torn::Torn;

pub(crate) use plan::Struck;
pub(crate) use rule::Place;

/// How an operation of the flash can fail, from the least to the worst.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug, thiserror::Error)]
pub enum MediaError {
    /// The operation broke a rule of NAND. The flash is as it was before.
    #[error("{0}")]
    Misuse(#[from] Misuse),
    /// The page has more errors than can be corrected.
    #[error("the page has more errors than can be corrected")]
    Uncorrectable,
    /// The status reports that the program or erase failed.
    #[error("the program or erase failed")]
    Failed,
    /// The LUN does not answer.
    #[error("the LUN does not answer")]
    NoAnswer,
    /// The file that holds the flash can no longer be written. The page or block is not at fault.
    #[error("the file that holds the flash cannot be written")]
    Store,
    /// Power was lost before the operation ended.
    #[error("power was lost before the operation ended")]
    PowerLost,
}

/// The rules of NAND that a caller can break. For an FTL of the drive this is a bug; an open-channel host gets an
/// error.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug, thiserror::Error)]
pub enum Misuse {
    /// A page is programmed before an earlier page of its block.
    #[error("the page is programmed before an earlier page of its block")]
    OutOfOrder,
    /// A page is programmed a second time since the erase of its block.
    #[error("the page is programmed a second time since the erase of its block")]
    ProgrammedTwice,
    /// A page is read that was not programmed since the erase of its block.
    #[error("the page was not programmed since the erase of its block")]
    NotProgrammed,
    /// Pages that one command cannot program: of several LUNs, or of different numbers on different planes.
    #[error("one command cannot program these pages: they are of several LUNs, or their numbers differ between planes")]
    NotTogether,
}
