//! A fault rule: the fault, and the operations, scope and time that it applies to.

use std::ops::{Range, RangeInclusive};

use nandscape_sim::{Span, Time};

use super::torn::Torn;
use crate::geometry::{BlockId, Geometry, PageId};

/// The kind of a fault.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Strike {
    /// Inverts bits without an error.
    Corrupt,
    /// More errors than can be corrected.
    Uncorrectable,
    /// The array takes `by` longer.
    Slow {
        /// How much longer.
        by: Span,
    },
    /// The program or erase fails.
    Fail,
    /// The LUN is busy until the controller gives up.
    Stuck {
        /// The time until it gives up, from the operation's start on the array.
        timeout: Span,
    },
    /// The part stops answering.
    Dead {
        /// How long the controller waits for an answer, each time.
        timeout: Span,
    },
    /// Power is cut for a while.
    PowerCut {
        /// The shortest time off; power stays off until the operations under way have ended.
        off: Span,
        /// The remains of the operations under way.
        torn: Torn,
    },
}

/// An operation of the flash.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Operation {
    /// A page is read.
    Read,
    /// One or several pages are programmed with one command.
    Program,
    /// A block is erased.
    Erase,
}

impl Operation {
    /// All operations, by their names in rules.
    pub const ALL: [(&str, Operation); 3] =
        [("read", Operation::Read), ("program", Operation::Program), ("erase", Operation::Erase)];
}

/// Where a fault strikes: `None` is anywhere.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Scope {
    /// Channels.
    pub channel: Option<RangeInclusive<u32>>,
    /// Dies, counted on their channel.
    pub die: Option<RangeInclusive<u32>>,
    /// Planes, counted in their die.
    pub plane: Option<RangeInclusive<u32>>,
    /// Blocks, counted in their plane.
    pub block: Option<RangeInclusive<u32>>,
    /// Pages, counted in their block.
    pub page: Option<RangeInclusive<u32>>,
    /// Logical blocks: pages that hold data of one of them. For reads only.
    pub lba: Option<RangeInclusive<u64>>,
}

/// When a fault strikes, among the operations of its kind in its scope.
#[derive(Clone, PartialEq, Debug)]
pub struct When {
    /// Only on the n-th, counted from 1.
    pub nth: Option<u64>,
    /// Only on every n-th.
    pub every: Option<u64>,
    /// Maximum of strikes.
    pub count: Option<u64>,
    /// From this drive time on.
    pub from: Time,
    /// Until just before this drive time.
    pub until: Time,
    /// With this probability, from 0 to 1.
    pub probability: Option<f64>,
}

impl Default for When {
    fn default() -> When {
        When { nth: None, every: None, count: None, from: Time::from_ns(0), until: Time::MAX, probability: None }
    }
}

/// A fault.
#[derive(Clone, PartialEq, Debug)]
pub struct Rule {
    /// The fault.
    pub strike: Strike,
    /// The operations that it strikes; `None` is all that it can.
    pub operation: Option<Operation>,
    /// Where.
    pub scope: Scope,
    /// When.
    pub when: When,
}

impl Strike {
    /// Its name in rules.
    pub fn name(self) -> &'static str {
        match self {
            Strike::Corrupt => "corrupt",
            Strike::Uncorrectable => "uncorrectable",
            Strike::Slow { .. } => "slow",
            Strike::Fail => "fail",
            Strike::Stuck { .. } => "stuck",
            Strike::Dead { .. } => "dead",
            Strike::PowerCut { .. } => "power_cut",
        }
    }

    /// Whether it can strike an operation.
    pub fn can_strike(self, operation: Operation) -> bool {
        match self {
            Strike::Corrupt => operation != Operation::Erase,
            Strike::Uncorrectable => operation == Operation::Read,
            Strike::Fail => operation != Operation::Read,
            Strike::Slow { .. } | Strike::Stuck { .. } | Strike::Dead { .. } | Strike::PowerCut { .. } => true,
        }
    }
}

impl Rule {
    /// Whether the rule applies to an operation.
    pub(super) fn is_about(&self, operation: Operation) -> bool {
        self.operation.is_none_or(|only| only == operation) && self.strike.can_strike(operation)
    }

    /// Checks that a drive of this geometry and of `lbas` logical blocks has the scope of the rule.
    ///
    /// # Errors
    /// The part that the drive lacks, and the valid parts, in one sentence.
    pub fn check(&self, geometry: &Geometry, lbas: u64) -> Result<(), String> {
        let counts = geometry.counts();
        let places = [
            ("channel", &self.scope.channel, counts.channels),
            ("die", &self.scope.die, counts.dies_per_channel),
            ("plane", &self.scope.plane, counts.planes_per_die),
            ("block", &self.scope.block, counts.blocks_per_plane),
            ("page", &self.scope.page, counts.pages_per_block),
        ];
        for (name, numbers, count) in places {
            if let Some(numbers) = numbers
                && *numbers.end() >= count
            {
                let all = if count == 1 { format!(", as the drive has one {name}") } else { String::new() };
                return Err(format!("{name} {} is not there; from 0 to {} is valid{all}", numbers.end(), count - 1));
            }
        }
        match &self.scope.lba {
            Some(range) if *range.end() >= lbas => {
                Err(format!("lba {} is not there; from 0 to {} is valid", range.end(), lbas - 1))
            }
            _ => Ok(()),
        }
    }
}

/// Flash, in the numbering of the rules of its drive.
pub(crate) struct Place<'a> {
    /// The geometry of this flash.
    pub(crate) geometry: &'a Geometry,
    /// The number of each channel in the drive.
    pub(crate) channels: &'a [u32],
    /// The number of each die in its channel.
    pub(crate) dies: &'a [u32],
    /// The bytes of the drive's address space that it holds.
    pub(crate) bytes: Range<u64>,
}

impl Place<'_> {
    /// The units that hold some of a range of the drive's bytes, as the flash counts them; `None` when the flash holds none.
    pub(super) fn units_of(&self, first: u64, last: u64) -> Option<RangeInclusive<u64>> {
        let unit = u64::from(self.geometry.unit_size());
        let (first, last) = (first.max(self.bytes.start), last.min(self.bytes.end - 1));
        let unit_of = |byte: u64| (byte - self.bytes.start) / unit;
        (first <= last).then(|| unit_of(first)..=unit_of(last))
    }
}

impl Scope {
    /// Whether a page is in the scope, by its address.
    pub(super) fn has_page(&self, place: &Place<'_>, page: PageId) -> bool {
        let geometry = place.geometry;
        has(&self.page, geometry.page_in_block(page)) && self.has_block(place, geometry.block_of(page))
    }

    /// Whether a block, or one of its pages, is in the scope.
    pub(super) fn has_block(&self, place: &Place<'_>, block: BlockId) -> bool {
        let geometry = place.geometry;
        let plane = geometry.plane_of(block);
        let (channel, die, inside) = geometry.place(plane);
        let (channel, die) = (place.channels[channel as usize], place.dies[die as usize]);
        let number = block.0 - plane.0 * geometry.blocks_per_plane();
        has(&self.block, number) && has(&self.channel, channel) && has(&self.die, die) && has(&self.plane, inside)
    }
}

fn has(numbers: &Option<RangeInclusive<u32>>, number: u32) -> bool {
    numbers.as_ref().is_none_or(|numbers| numbers.contains(&number))
}
