//! Why an engine does not open, or does not serve.

use std::fmt;

use nandscape_apps_store::StoreError;
use nandscape_sim::Span;
use nandscape_wire_nvme::Status;

use crate::placement::PARITY_DRIVES;
use crate::shape::Format;

/// Why an engine does not serve any more.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EngineError {
    /// A drive failed.
    #[error("drive d{drive}: {error}")]
    Drive {
        /// Its number.
        drive: usize,
        /// What happened.
        error: StoreError,
    },
    /// A drive was lost before.
    #[error("drive d{drive}: lost")]
    Lost {
        /// Its number.
        drive: usize,
    },
    /// A drive does not collect as it is ordered.
    #[error("drive d{drive}: {error}")]
    Control {
        /// Its number.
        drive: usize,
        /// What happened.
        error: nandscape_host_control::Error,
    },
    /// A drive takes blocks in the order of its zones only.
    #[error(
        "drive d{drive}: it has zones, and the policy writes blocks in any order; the policy zoned, or a drive without zones, is valid"
    )]
    HasZones {
        /// Its number.
        drive: usize,
    },
    /// A drive does not end its internal work.
    #[error("drive d{drive}: not ready for reads, and no block freed for {} s; a drive that is in service is valid", .waited.ns() / 1_000_000_000)]
    Busy {
        /// Its number.
        drive: usize,
        /// How long the engine has waited for it.
        waited: Span,
    },
}

impl EngineError {
    /// Whether the drive serves, and its data is damaged.
    pub(crate) fn is_damage(&self) -> bool {
        matches!(self, EngineError::Drive { error: StoreError::Drive(Status::UNRECOVERED_READ_ERROR), .. })
    }

    /// The number of the drive that is the reason.
    pub fn drive(&self) -> usize {
        match self {
            EngineError::Drive { drive, .. }
            | EngineError::Lost { drive }
            | EngineError::Control { drive, .. }
            | EngineError::HasZones { drive }
            | EngineError::Busy { drive, .. } => *drive,
        }
    }
}

/// What happens to an engine that continues, for whoever operates it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A drive is missing; its twin has all items.
    Missing {
        /// Its number.
        drive: usize,
        /// The other drive of its pair; `None` where the others have parity.
        twin: Option<usize>,
    },
    /// A drive has failed; its twin has all items, and the drive is not used any more.
    Failed {
        /// Why, and which.
        error: EngineError,
        /// The other drive of its pair; `None` where the others have parity.
        twin: Option<usize>,
    },
    /// Another drive has taken the place of a lost one, and gets its items.
    Replaced {
        /// Its number.
        drive: usize,
        /// The other drive of its pair; `None` where the others have parity.
        twin: Option<usize>,
    },
    /// A drive was empty, or older than its twin, and has all items now.
    Rebuilt {
        /// Its number.
        drive: usize,
        /// The other drive of its pair; `None` where the others have parity.
        twin: Option<usize>,
    },
    /// A part of the log cannot be read from any replica.
    Damaged {
        /// The drives that are to have it.
        drives: Vec<usize>,
        /// Where it begins on them, in bytes.
        at: u64,
        /// Items that were dropped: a newer version could be in that part.
        dropped: u64,
    },
    /// No drive returns an item, or those of a bucket: they are dropped. Of each segment the first time is an event; [`Stats::unreadable`] counts
    /// all.
    ///
    /// [`Stats::unreadable`]: crate::Stats::unreadable
    Unreadable {
        /// The drives that were read.
        drives: Vec<usize>,
        /// Where the items begin on them, in bytes.
        at: u64,
        /// Items that were dropped.
        dropped: u64,
    },
}

/// Drives in a sentence.
fn numbers(drives: &[usize]) -> String {
    let drives: Vec<String> = drives.iter().map(|drive| format!("d{drive}")).collect();
    drives.join(" and ")
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Missing { drive, twin: Some(twin) } => {
                write!(f, "drive d{drive} is missing: drive d{twin} serves its items without a mirror")
            }
            Event::Missing { drive, twin: None } => {
                write!(f, "drive d{drive} is missing: the others serve its items without parity")
            }
            Event::Failed { error, twin: Some(twin) } => {
                write!(f, "{error}: it is out of use, and drive d{twin} serves its items without a mirror")
            }
            Event::Failed { error, twin: None } => {
                write!(f, "{error}: it is out of use, and the others serve its items without parity")
            }
            Event::Replaced { drive, twin: Some(twin) } => {
                write!(f, "drive d{drive} is replaced, and is being rebuilt from drive d{twin}")
            }
            Event::Replaced { drive, twin: None } => {
                write!(f, "drive d{drive} is replaced, and is being rebuilt from the others")
            }
            Event::Rebuilt { drive, twin: Some(twin) } => write!(f, "drive d{drive} was rebuilt from drive d{twin}"),
            Event::Rebuilt { drive, twin: None } => write!(f, "drive d{drive} was rebuilt from the others"),
            Event::Damaged { drives, at, dropped } => {
                let drives = numbers(drives);
                write!(f, "byte {at} of drive {drives} is damaged: {dropped} older items, which a newer version ")?;
                f.write_str("there may have replaced, were dropped")
            }
            Event::Unreadable { drives, at, dropped } => {
                let items = if *dropped == 1 { "1 item" } else { &format!("{dropped} items") };
                write!(f, "byte {at} of drive {} is unreadable: {items} dropped; engine_unreadable ", numbers(drives))?;
                f.write_str("counts further ones of this segment")
            }
        }
    }
}

/// Why an engine does not open.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OpenError {
    /// The number of drives.
    #[error("{0} drives: the engine has pairs of an even and an odd drive; 2, 4, 6 and so on are valid")]
    Count(usize),
    /// The number of drives, or the policy, of a store with parity.
    #[error("{0} drives with parity: {least} to {most}, and a policy other than raid0, are valid", least = PARITY_DRIVES[0], most = PARITY_DRIVES[1])]
    Parity(usize),
    /// The placement of a store on zones.
    #[error(
        "parity on drives with zones: a row that a crash leaves unfinished could not be written again; the placement copies, or another policy, is valid"
    )]
    ZonedParity,
    /// The policy of blocks in place.
    #[error(
        "policy {0}: it chooses where data is written, and blocks in place have fixed places; mixed, epochs, gc_control, raid0, rails and predictable_latency are valid"
    )]
    InPlace(&'static str),
    /// Bytes of a block in place.
    #[error("blocks of {block} bytes: multiples of {unit} that fit into each drive are valid")]
    Block {
        /// Bytes of a block.
        block: u64,
        /// Bytes of the largest unit in which a drive maps data.
        unit: u64,
    },
    /// Bytes that may wait for blocks in place.
    #[error("{dirty} bytes may wait for their drives: {most}, an eighth of all blocks, or less are valid")]
    Dirty {
        /// Bytes that may wait.
        dirty: u64,
        /// The most.
        most: u64,
    },
    /// A drive has other zones than the engine needs.
    #[error("drive d{drive}: {what}")]
    Zones {
        /// Its number.
        drive: usize,
        /// What it has, and what would be valid.
        what: String,
    },
    /// A drive is too small.
    #[error("drive d{drive} has {bytes} bytes; {least} or more are valid")]
    Small {
        /// Its number.
        drive: usize,
        /// Its bytes.
        bytes: u64,
        /// The least.
        least: u64,
    },
    /// A drive keeps no data.
    #[error("drive d{0} keeps no data; a drive with a store is valid")]
    KeepsNothing(usize),
    /// A drive has something else.
    #[error(
        "drive d{0} has data, and no part of this store; an empty drive, or the store's own in its order, is valid"
    )]
    Foreign(usize),
    /// A drive has a store of another format.
    #[error(
        "drive d{drive} has a store of format {format}, and this program reads format {own}; the program that wrote the store, or an empty drive, is valid",
        own = Format::OWN
    )]
    Format {
        /// Its number.
        drive: usize,
        /// The format.
        format: Format,
    },
    /// A drive is missing, and there is no store on the others.
    #[error("drive d{0} is missing, and the others have no store; a new store takes all of its drives")]
    Incomplete(usize),
    /// No drive with all items of a pair is there.
    #[error(
        "drive d{drive} {what}, and drive d{twin} is not there to replace it; drive d{twin} of this store is valid"
    )]
    Gone {
        /// Its number.
        drive: usize,
        /// What is wrong with it.
        what: &'static str,
        /// The other drive of its pair.
        twin: usize,
    },
    /// Two drives of a store with parity are not there.
    #[error(
        "drive d{drive} {what}, and drive d{other} is not there, either; at most one drive less than all is valid with parity"
    )]
    TooFew {
        /// A drive.
        drive: usize,
        /// What is wrong with it.
        what: &'static str,
        /// Another one.
        other: usize,
    },
    /// A drive of a store without mirrors is not there.
    #[error("drive d{drive} {what}, and the store has one replica of each item; the drive with its items is valid")]
    Alone {
        /// Its number.
        drive: usize,
        /// What is wrong with it.
        what: &'static str,
    },
    /// Both drives of a pair were used without the other.
    #[error(
        "drive d{drive} and drive d{other} have each been used without the other, and differ; one of the two is valid"
    )]
    Split {
        /// A drive.
        drive: usize,
        /// The other one.
        other: usize,
    },
    /// A drive of the store was replaced many times since.
    #[error(
        "drive d{0} has been replaced so often that its record does not show any more whether it was used without the others; an empty drive, or none, is valid in its place"
    )]
    Forgotten(usize),
    /// The store was made otherwise.
    #[error("drive d{drive}: the store has {what}")]
    Other {
        /// The drive.
        drive: usize,
        /// What it has.
        what: String,
    },
    /// The store has another placement, or another number of replicas.
    #[error("the store has {has}; {valid} is valid")]
    Copies {
        /// What it has.
        has: &'static str,
        /// What would be valid.
        valid: &'static str,
    },
    /// The memory has no room for the table of buckets.
    #[error(
        "{memory} bytes of memory: the buckets of small items take {table} of them, wherever their items are; {least} or more are valid"
    )]
    SmallMemory {
        /// Bytes of the table.
        table: u64,
        /// Bytes of memory.
        memory: u64,
        /// The least.
        least: u64,
    },
    /// It failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
}
