//! The formats: their names and capabilities, with the reader and writer of each.

use std::fmt;
use std::str::FromStr;

use nandscape_lab_workload::Direction;

use crate::devices::{Device, Devices};
use crate::fields::Parsed;
use crate::formats::{alibaba, blkparse, disksim, fio_v2, fio_v3, fiu, mqsim, msr, replay, spc, tencent};
use crate::record::Record;
use crate::recorded;

/// A format of traces. All but recordings are text.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Format {
    /// MSR Cambridge CSV.
    Msr,
    /// Five columns, milliseconds and bytes.
    Replay,
    /// MQSim: five columns, nanoseconds and sectors.
    Mqsim,
    /// DiskSim ASCII: five columns, milliseconds and sectors.
    Disksim,
    /// Alibaba block traces.
    Alibaba,
    /// Tencent CBS.
    Tencent,
    /// FIU IODedup.
    Fiu,
    /// SPC, in the variant of the UMass repository.
    Spc,
    /// The default output of blkparse.
    Blkparse,
    /// fio's I/O log, version 2.
    FioV2,
    /// fio's I/O log, version 3.
    FioV3,
    /// A recording of live drives: read, never written, and always detected.
    Recording,
}

/// The capabilities of a format.
pub(crate) struct Facts {
    pub(crate) name: &'static str,
    /// A line of it.
    pub(crate) layout: &'static str,
    /// Its unit of time in nanoseconds.
    pub(crate) time_ns: u64,
    /// Its unit of space in bytes.
    pub(crate) unit_bytes: u64,
    pub(crate) directions: &'static [Direction],
    pub(crate) hosts: bool,
    pub(crate) disks: Disks,
}

/// How a format names disks.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Disks {
    /// By any name.
    Words,
    /// By a number.
    Numbers,
    /// By two numbers: "8,32".
    Pairs,
}

pub(crate) const READS_WRITES: &[Direction] = &[Direction::Read, Direction::Write];

/// Parses the lines of one format in order.
pub(crate) trait Parser {
    /// The request of a line; `None` for a line without one.
    fn line(&mut self, line: &[u8], devices: &mut Devices) -> Parsed;

    /// The second request of the last line, if it has two: that of a flush and of what follows the flush.
    fn second(&mut self) -> Option<Record> {
        None
    }
}

impl<F: FnMut(&[u8], &mut Devices) -> Parsed> Parser for F {
    fn line(&mut self, line: &[u8], devices: &mut Devices) -> Parsed {
        self(line, devices)
    }
}

/// A part of a trace to be written, in the format's own units.
pub(crate) enum Part<'a> {
    Head(&'a [Device]),
    Row(Row<'a>),
    End(&'a [Device]),
}

/// A request to be written, in the format's own units.
pub(crate) struct Row<'a> {
    pub(crate) at: u64,
    pub(crate) device: &'a Device,
    pub(crate) direction: Direction,
    pub(crate) offset: u64,
    pub(crate) size: u64,
    /// Whether it waits for the flush before it.
    pub(crate) after_flush: bool,
}

/// Appends a part to the text.
pub(crate) type Writer = Box<dyn FnMut(Part<'_>, &mut Vec<u8>)>;

/// The blkparse action that counts as the arrival of a request.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Action {
    /// Queued: the requests that entered the block layer, at that time.
    #[default]
    Queued,
    /// Issued: the requests that the driver got, after merging and scheduling.
    Issued,
}

impl Action {
    /// The letter.
    pub const fn letter(self) -> char {
        match self {
            Action::Queued => 'Q',
            Action::Issued => 'D',
        }
    }
}

impl Format {
    /// All formats that can be named and written.
    pub const ALL: [Format; 11] = [
        Format::Msr,
        Format::Replay,
        Format::Mqsim,
        Format::Disksim,
        Format::Alibaba,
        Format::Tencent,
        Format::Fiu,
        Format::Spc,
        Format::Blkparse,
        Format::FioV2,
        Format::FioV3,
    ];

    pub(crate) fn facts(self) -> &'static Facts {
        match self {
            Format::Msr => &msr::FACTS,
            Format::Replay => &replay::FACTS,
            Format::Mqsim => &mqsim::FACTS,
            Format::Disksim => &disksim::FACTS,
            Format::Alibaba => &alibaba::FACTS,
            Format::Tencent => &tencent::FACTS,
            Format::Fiu => &fiu::FACTS,
            Format::Spc => &spc::FACTS,
            Format::Blkparse => &blkparse::FACTS,
            Format::FioV2 => &fio_v2::FACTS,
            Format::FioV3 => &fio_v3::FACTS,
            Format::Recording => &recorded::FACTS,
        }
    }

    pub(crate) fn parser(self, action: Action) -> Box<dyn Parser> {
        match self {
            Format::Msr => Box::new(msr::parse),
            Format::Replay => Box::new(replay::parse),
            Format::Mqsim => Box::new(mqsim::parse),
            Format::Disksim => Box::new(disksim::parse),
            Format::Alibaba => Box::new(alibaba::parse),
            Format::Tencent => Box::new(tencent::parse),
            Format::Fiu => Box::new(fiu::parse),
            Format::Spc => Box::new(spc::parse),
            Format::Blkparse => Box::new(blkparse::Parser::new(action)),
            Format::FioV2 => Box::new(fio_v2::Parser::default()),
            Format::FioV3 => Box::new(fio_v3::Parser::default()),
            Format::Recording => Box::new(recorded::parse),
        }
    }

    pub(crate) fn writer(self, action: Action) -> Writer {
        match self {
            Format::Msr => Box::new(msr::write),
            Format::Replay => Box::new(replay::write),
            Format::Mqsim => Box::new(mqsim::write),
            Format::Disksim => Box::new(disksim::write),
            Format::Alibaba => Box::new(alibaba::write),
            Format::Tencent => Box::new(tencent::write),
            Format::Fiu => Box::new(fiu::write),
            Format::Spc => Box::new(spc::write),
            Format::Blkparse => blkparse::writer(action),
            Format::FioV2 => fio_v2::writer(),
            Format::FioV3 => Box::new(fio_v3::write),
            // It has no directions, so a conversion to it is rejected.
            Format::Recording => Box::new(|_, _| {}),
        }
    }

    /// The name.
    pub fn name(self) -> &'static str {
        self.facts().name
    }

    /// A line of it, in words.
    pub fn layout(self) -> &'static str {
        self.facts().layout
    }

    /// All names, for messages.
    pub fn names() -> String {
        Format::ALL.map(Format::name).join(", ")
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is not a format.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("\"{0}\" is not a format; there are {names}", names = Format::names())]
pub struct UnknownFormat(String);

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> Result<Format, UnknownFormat> {
        let found = Format::ALL.into_iter().find(|format| format.name() == text);
        found.ok_or_else(|| UnknownFormat(text.to_owned()))
    }
}
