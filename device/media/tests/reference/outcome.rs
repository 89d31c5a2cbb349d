//! The outcome of a script: the ends of operations and their breakdowns.

/// The breakdown of an operation, in nanoseconds, with the names of the page.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Stages {
    pub(crate) queue: u64,
    pub(crate) die_wait: u64,
    pub(crate) array: u64,
    pub(crate) channel_wait: u64,
    pub(crate) transfer: u64,
    pub(crate) ecc: u64,
}

impl Stages {
    pub(crate) fn total(&self) -> u64 {
        self.queue + self.die_wait + self.array + self.channel_wait + self.transfer + self.ecc
    }
}

/// The outcome of an operation.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Served {
    pub(crate) asked: u64,
    /// When all data were in the register: of programs only.
    pub(crate) loaded: Option<u64>,
    pub(crate) ended: u64,
    /// None for collections: no caller sees how they spend their time.
    pub(crate) stages: Option<Stages>,
}

/// The outcome of a script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Outcome {
    /// Of each operation of each customer. Operations that wait forever are missing.
    pub(crate) served: Vec<Vec<Served>>,
    /// Busy time of the array of each LUN.
    pub(crate) arrays: Vec<u64>,
    /// Busy time of each channel, time held included.
    pub(crate) channels: Vec<u64>,
}

/// The stage to which the time until an event belongs.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    Queue,
    DieWait,
    Array,
    ChannelWait,
    Transfer,
    Ecc,
}
