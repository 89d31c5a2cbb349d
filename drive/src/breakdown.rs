//! Where a command's time went. The stages sum to its latency, to the nanosecond.

use std::ops::AddAssign;

use nandscape_sim::{Cause, Span, Wait};

/// A stage of a command's life inside the drive.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Stage {
    /// In the submission queue, for the controller, for room in the write buffer.
    Queue,
    /// Firmware work on the command.
    Firmware,
    /// For the plane or die.
    DieWait,
    /// The flash array: sensing, programming, erasing.
    Array,
    /// For the channel, or for the register that the channel has yet to empty.
    ChannelWait,
    /// Data on the channel.
    Transfer,
    /// Error correction.
    Ecc,
    /// The host link, waiting for it included.
    Link,
}

impl Stage {
    /// All stages, in the order of a read.
    pub const ALL: [Stage; 8] = [
        Stage::Queue,
        Stage::Firmware,
        Stage::DieWait,
        Stage::Array,
        Stage::ChannelWait,
        Stage::Transfer,
        Stage::Ecc,
        Stage::Link,
    ];
    /// The stages that are waits, and are told apart by cause.
    pub const WAITS: [Stage; 3] = [Stage::Queue, Stage::DieWait, Stage::ChannelWait];

    /// The name in tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Stage::Queue => "queue",
            Stage::Firmware => "firmware",
            Stage::DieWait => "die_wait",
            Stage::Array => "array",
            Stage::ChannelWait => "channel_wait",
            Stage::Transfer => "transfer",
            Stage::Ecc => "ecc",
            Stage::Link => "link",
        }
    }

    const fn wait_index(self) -> Option<usize> {
        match self {
            Stage::Queue => Some(0),
            Stage::DieWait => Some(1),
            Stage::ChannelWait => Some(2),
            _ => None,
        }
    }
}

/// On whose behalf something inside a drive is busy.
pub mod cause {
    use nandscape_sim::Cause;

    /// A read, compare or verify of the host.
    pub const HOST_READ: Cause = Cause::new(0);
    /// A write of the host, and what it takes to get it to flash.
    pub const HOST_WRITE: Cause = Cause::new(1);
    /// Garbage collection.
    pub const GC: Cause = Cause::new(2);
    /// Wear levelling.
    pub const WEAR: Cause = Cause::new(3);
    /// Mapping tables, logs, checkpoints.
    pub const METADATA: Cause = Cause::new(4);

    /// How many there are.
    pub const COUNT: usize = 5;
    /// All, with their names in tables and JSON.
    pub const ALL: [(Cause, &str); COUNT] =
        [(HOST_READ, "host_read"), (HOST_WRITE, "host_write"), (GC, "gc"), (WEAR, "wear"), (METADATA, "metadata")];
}

/// Time by stage, and for the stages that are waits, by cause.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Breakdown {
    stages: [Span; Stage::ALL.len()],
    waits: [[Span; cause::COUNT]; Stage::WAITS.len()],
}

impl Breakdown {
    /// No time yet.
    pub fn new() -> Breakdown {
        Breakdown::default()
    }

    /// Adds time in a stage that is not a wait.
    #[inline]
    pub fn spend(&mut self, stage: Stage, span: Span) {
        debug_assert!(stage.wait_index().is_none(), "{stage:?} is a wait and needs a cause");
        self.stages[stage as usize] += span;
    }

    /// Adds a wait.
    #[inline]
    pub fn wait(&mut self, stage: Stage, wait: &Wait) {
        if *wait == Wait::ZERO {
            return;
        }
        for (cause, _) in cause::ALL {
            self.wait_behind(stage, cause, wait.by(cause));
        }
    }

    /// Adds a wait behind a single cause.
    #[inline]
    pub fn wait_behind(&mut self, stage: Stage, cause: Cause, span: Span) {
        let index = stage.wait_index().expect("only waits have a cause");
        self.stages[stage as usize] += span;
        self.waits[index][cause.index()] += span;
    }

    /// Time spent in a stage.
    pub fn stage(&self, stage: Stage) -> Span {
        self.stages[stage as usize]
    }

    /// Time waited in a stage behind a cause; zero for stages that are not waits.
    pub fn waited(&self, stage: Stage, cause: Cause) -> Span {
        stage.wait_index().map_or(Span::ZERO, |index| self.waits[index][cause.index()])
    }

    /// Whether any wait was behind `cause`.
    pub fn waited_for(&self, cause: Cause) -> bool {
        self.waits.iter().any(|by| !by[cause.index()].is_zero())
    }

    /// All time.
    pub fn total(&self) -> Span {
        self.stages.iter().copied().sum()
    }
}

impl AddAssign<&Breakdown> for Breakdown {
    fn add_assign(&mut self, other: &Breakdown) {
        self.stages.iter_mut().zip(other.stages).for_each(|(mine, theirs)| *mine += theirs);
        let waits = self.waits.iter_mut().flatten().zip(other.waits.iter().flatten());
        waits.for_each(|(mine, theirs)| *mine += *theirs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_sum_and_waits_keep_their_causes() {
        let mut one = Breakdown::new();
        one.spend(Stage::Array, Span::from_us(40));
        one.wait_behind(Stage::DieWait, cause::GC, Span::from_us(7));
        let mut both = one.clone();
        both += &one;
        assert_eq!(both.total(), Span::from_us(94));
        assert_eq!(both.waited(Stage::DieWait, cause::GC), Span::from_us(14));
        assert!(both.waited_for(cause::GC) && !both.waited_for(cause::WEAR));
    }
}
