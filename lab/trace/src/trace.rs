//! A trace: opened, checked in a first pass, and then read in order any number of times.
//!
//! The first pass finds every malformed line before the trace is used, and computes its totals. If a small look-ahead
//! sorts it, later passes read the file again. If not, or if the trace comes from a pipe, the requests are kept in a
//! temporary file, 32 bytes each. In both cases memory does not grow with the trace.

use std::path::PathBuf;
use std::sync::Arc;

use nandscape_lab_workload::Direction;
use nandscape_sim::Span;

use crate::detect::detect;
use crate::devices::Device;
use crate::error::{Malformed, TraceError};
use crate::fast;
use crate::format::{Action, Format};
use crate::input::Origin;
use crate::lines::Lines;
use crate::look_ahead::{LookAhead, TooLate};
use crate::reader::{Reader, Selection};
use crate::record::Record;
use crate::runs::{Merged, Runs, Sorter};
use crate::spread::{self, Spread, TooMany};
use crate::totals::Totals;

/// A file and a selection of its requests.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The file; `-` for standard input.
    pub path: PathBuf,
    /// Its format; detected if not given.
    pub format: Option<Format>,
    /// The blkparse action that counts as an arrival.
    pub action: Action,
    /// The selected disks.
    pub selection: Selection,
    /// The start of the selection, counted from the first request of those disks.
    pub from: Span,
    /// The end of the selection, exclusive.
    pub until: Option<Span>,
    /// The most requests.
    pub limit: Option<u64>,
    /// Whether malformed lines are left out instead of being an error.
    pub skip_bad: bool,
}

/// A trace that has passed the first pass.
#[derive(Debug)]
pub struct Trace {
    options: Options,
    origin: Origin,
    format: Format,
    devices: Vec<Device>,
    malformed: Malformed,
    totals: Totals,
    late: u64,
    /// The sorted requests, if the file itself cannot be used.
    runs: Option<Arc<Runs>>,
}

impl Trace {
    /// Whether it is read from the file at a path.
    pub(crate) fn is_of(&self, path: &std::path::Path) -> bool {
        self.origin.is_of(path)
    }

    /// Opens a trace and checks all of it.
    ///
    /// # Errors
    /// See [`TraceError`].
    pub fn open(options: Options) -> Result<Trace, TraceError> {
        Trace::open_watched(options, &|_| {})
    }

    /// Opens a trace and checks all of it; `watch` is called now and then with the share that has been read.
    ///
    /// # Errors
    /// See [`TraceError`].
    pub fn open_watched(options: Options, watch: &dyn Fn(f64)) -> Result<Trace, TraceError> {
        let origin = Origin::new(&options.path);
        let mut lines = Lines::new(origin.open()?);
        let format = match options.format {
            Some(format) if !is_recording(&origin, &mut lines)? => format,
            _ => find_format(&origin, &mut lines)?,
        };
        let mut trace = Trace {
            format,
            devices: Vec::new(),
            malformed: Malformed::default(),
            totals: Totals::default(),
            late: 0,
            runs: None,
            origin,
            options,
        };
        let reader = trace.reader(lines);
        if !trace.origin.is_file() {
            trace.keep(reader, watch)?;
        } else if !trace.survey(Records::new(&trace, Order::of_file(reader)), watch)? {
            let lines = Lines::new(trace.origin.open()?);
            trace.keep(trace.reader(lines), watch)?;
        }
        if trace.malformed.count > 0 && !trace.options.skip_bad {
            return Err(TraceError::Malformed(trace.malformed));
        }
        trace.check_not_empty()?;
        Ok(trace)
    }

    fn reader(&self, lines: Lines) -> Reader {
        let Options { action, selection, .. } = &self.options;
        Reader::new(&self.origin.name, lines, self.format, *action, selection)
    }

    /// Reads the whole selection; `false` if it is out of order by more than the look-ahead.
    fn survey(&mut self, mut records: Records, watch: &dyn Fn(f64)) -> Result<bool, TraceError> {
        let mut totals = Totals::default();
        for (record, number) in (&mut records).zip(0..) {
            self.tell(number, watch);
            match record {
                Ok(record) => totals.add(&record),
                Err(TraceError::Changed { .. }) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        self.totals = totals;
        if let Order::File { reader, ahead, ended } = &records.order {
            self.take_over(reader, ahead.late());
            self.check_names(*ended)?;
        }
        Ok(true)
    }

    /// Keeps the requests in a temporary file, sorted.
    fn keep(&mut self, mut reader: Reader, watch: &dyn Fn(f64)) -> Result<(), TraceError> {
        let mut sorter = Sorter::new().map_err(TraceError::temporary)?;
        let mut number = 0;
        while let Some(record) = reader.next()? {
            sorter.put(record).map_err(TraceError::temporary)?;
            number += 1;
            self.tell(number, watch);
        }
        self.take_over(&reader, sorter.late());
        self.check_names(true)?;
        self.runs = Some(Arc::new(sorter.finish().map_err(TraceError::temporary)?));
        match self.merged()? {
            Some(merged) => self.survey(Records::new(self, Order::Kept(merged)), &|_| {}).map(|_| ()),
            None => Ok(()),
        }
    }

    /// Reports progress at a fixed interval of requests.
    fn tell(&self, number: u64, watch: &dyn Fn(f64)) {
        if number.is_multiple_of(1 << 16)
            && let Some(share) = self.origin.share_read()
        {
            watch(share);
        }
    }

    fn take_over(&mut self, reader: &Reader, late: u64) {
        self.devices = reader.devices().to_vec();
        self.malformed = reader.malformed().clone();
        self.late = late;
    }

    /// Checks that all selected disks and hosts exist, if the whole trace was read.
    fn check_names(&self, all_read: bool) -> Result<(), TraceError> {
        let kinds = [
            ("disk", &self.options.selection.disks, Device::disk as fn(&Device) -> &str),
            ("host", &self.options.selection.hosts, Device::host),
        ];
        for (kind, asked, name_of) in kinds {
            let Some(unknown) = asked.iter().find(|name| !self.devices.iter().any(|device| name_of(device) == *name))
            else {
                continue;
            };
            if !self.format.facts().hosts && kind == "host" {
                return Err(self.unusable(format!("has no hosts: the format {} does not name them", self.format)));
            }
            if all_read {
                let mut names: Vec<&str> = self.devices.iter().map(name_of).collect();
                names.sort_unstable();
                names.dedup();
                let more = if names.len() > 20 { ", ..." } else { "" };
                names.truncate(20);
                let problem = format!("has no {kind} {unknown}; there are {}{more}", names.join(", "));
                return Err(self.unusable(problem));
            }
        }
        Ok(())
    }

    fn check_not_empty(&self) -> Result<(), TraceError> {
        if self.totals.requests() > 0 {
            return Ok(());
        }
        let Options { selection, from, until, limit, action, .. } = &self.options;
        let narrowed = !selection.disks.is_empty() || !selection.hosts.is_empty();
        let problem = match self.format {
            _ if narrowed || !from.is_zero() || until.is_some() || *limit == Some(0) => {
                "has no request in the selection".to_owned()
            }
            Format::Blkparse => {
                let other = if *action == Action::Queued { Action::Issued } else { Action::Queued };
                format!("has no request with action {}; --action {} takes another", action.letter(), other.letter())
            }
            format => format!("has no request; a line of the format {format} is {}", format.layout()),
        };
        Err(self.unusable(problem))
    }

    fn unusable(&self, problem: String) -> TraceError {
        TraceError::unusable(&self.origin.name, problem)
    }

    fn merged(&self) -> Result<Option<Box<Merged>>, TraceError> {
        let merged = self.runs.as_ref().map(|runs| runs.merged().map(Box::new));
        merged.transpose().map_err(TraceError::temporary)
    }

    /// The selected requests in order of time. Times count from the start of the selection.
    ///
    /// # Errors
    /// When the file is gone.
    pub fn records(&self) -> Result<Records, TraceError> {
        let order = match self.merged()? {
            Some(merged) => Order::Kept(merged),
            None => Order::of_file(self.reader(Lines::new(self.origin.open()?))),
        };
        let totals = &self.totals;
        Ok(Records { left: totals.requests(), disks: Some(totals.devices.len()), ..Records::new(self, order) })
    }

    /// The file's name.
    pub fn name(&self) -> String {
        self.origin.file_name()
    }

    /// Its format, given or detected.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The disks it names, selected or not.
    pub fn devices(&self) -> &[Device] {
        &self.devices
    }

    /// Totals of the selected requests.
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// The malformed lines that were left out.
    pub fn malformed(&self) -> &Malformed {
        &self.malformed
    }

    /// Requests that followed a later one.
    pub fn late(&self) -> u64 {
        self.late
    }

    /// Notes for the user on how it was read.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.malformed.count > 0 {
            let first = self.malformed.told().into_iter().next().unwrap_or_default();
            notes.push(format!(
                "{} malformed lines of the trace are left out, the first: {first}",
                self.malformed.count
            ));
        }
        if self.late > 0 {
            notes.push(format!(
                "the trace was not in order and has been sorted: {} requests followed later ones",
                self.late
            ));
        }
        if let (after, forced) = (self.totals.after_flush, self.totals.of(Direction::Fua).requests)
            && after + forced > 0
        {
            notes.push(format!(
                "flushes before writes of the trace: {after}, each a separate request that the write waits for; writes with Force Unit \
                 Access: {forced}"
            ));
        }
        if self.origin.breaks_off() {
            notes.push("the recording breaks off; what there is of it was read".to_owned());
        }
        if self.options.format.is_none() && self.format == Format::Mqsim {
            notes.extend(fast::guessed(self.totals.requests(), self.totals.duration_ns() as f64 / 1e9));
        }
        if self.format == Format::Tencent {
            notes.push("the trace has whole seconds; the requests of a second are spread evenly over it".to_owned());
        }
        notes
    }
}

/// A recording is one whichever format is named.
fn is_recording(origin: &Origin, lines: &mut Lines) -> Result<bool, TraceError> {
    let prefix = lines.prefix().map_err(|error| TraceError::Read { origin: origin.name.clone(), line: 0, error })?;
    Ok(prefix.starts_with(crate::recorded::MARK))
}

fn find_format(origin: &Origin, lines: &mut Lines) -> Result<Format, TraceError> {
    let prefix = lines.prefix().map_err(|error| TraceError::Read { origin: origin.name.clone(), line: 0, error })?;
    detect(prefix).map_err(|problem| TraceError::unusable(&origin.name, problem))
}

/// Requests in order.
pub struct Records {
    origin: String,
    order: Order,
    spread: Option<Spread>,
    /// The time of the first request of the selected disks.
    base: Option<u64>,
    from: u64,
    until: u64,
    left: u64,
    /// After the first pass: the number of requests and disks that must follow.
    disks: Option<usize>,
}

enum Order {
    File { reader: Box<Reader>, ahead: LookAhead, ended: bool },
    Kept(Box<Merged>),
}

/// The reason why no request can be returned, in order or at all.
enum Failed {
    Late,
    Many,
    Other(TraceError),
}

impl From<TooMany> for Failed {
    fn from(_: TooMany) -> Failed {
        Failed::Many
    }
}

impl From<TooLate> for Failed {
    fn from(_: TooLate) -> Failed {
        Failed::Late
    }
}

impl Order {
    fn of_file(reader: Reader) -> Order {
        Order::File { reader: Box::new(reader), ahead: LookAhead::default(), ended: false }
    }

    fn next(&mut self) -> Result<Option<Record>, Failed> {
        match self {
            Order::Kept(merged) => merged.next().map_err(|error| Failed::Other(TraceError::temporary(error))),
            Order::File { reader, ahead, ended } => {
                while !*ended {
                    match reader.next().map_err(Failed::Other)? {
                        Some(record) => ahead.put(record)?,
                        None => *ended = true,
                    }
                    if let Some(record) = ahead.take(false) {
                        return Ok(Some(record));
                    }
                }
                Ok(ahead.take(true))
            }
        }
    }
}

impl Records {
    fn new(trace: &Trace, order: Order) -> Records {
        let Options { from, until, limit, .. } = &trace.options;
        Records {
            origin: trace.origin.name.clone(),
            order,
            spread: (trace.format == Format::Tencent).then(Spread::default),
            base: None,
            from: from.ns(),
            until: until.map_or(u64::MAX, Span::ns),
            left: limit.unwrap_or(u64::MAX),
            disks: None,
        }
    }

    fn error(&self, failed: Failed) -> TraceError {
        let origin = self.origin.clone();
        match failed {
            Failed::Late => TraceError::Changed { origin },
            Failed::Other(error) => error,
            Failed::Many => TraceError::unusable(
                &origin,
                format!("has more than {} requests of one second; is the format right?", spread::MOST),
            ),
        }
    }
}

impl Iterator for Records {
    type Item = Result<Record, TraceError>;

    /// The next request. It is an error if the file can no longer be read.
    fn next(&mut self) -> Option<Result<Record, TraceError>> {
        while self.left > 0 {
            let order = &mut self.order;
            let next = match &mut self.spread {
                Some(spread) => spread.next(|| order.next()),
                None => order.next(),
            };
            let mut record = match next {
                Ok(Some(record)) => record,
                Ok(None) => break,
                Err(failed) => {
                    self.left = 0;
                    return Some(Err(self.error(failed)));
                }
            };
            record.at -= *self.base.get_or_insert(record.at);
            if record.at >= self.until {
                break;
            }
            if self.disks.is_some_and(|disks| record.device as usize >= disks) {
                break;
            }
            if record.at >= self.from {
                record.at -= self.from;
                self.left -= 1;
                return Some(Ok(record));
            }
        }
        let missing = std::mem::take(&mut self.left) > 0 && self.disks.is_some();
        missing.then(|| Err(TraceError::Changed { origin: self.origin.clone() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::look_ahead::HELD;
    use std::io::{self, Read};

    /// Lines without end, some of them malformed and some out of order.
    struct Endless {
        number: u64,
        line: Vec<u8>,
    }

    impl Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.line.is_empty() {
                let number = self.number;
                self.number += 1;
                self.line = match number % 1_000 {
                    7 => format!("torn line {number}\n").into_bytes(),
                    _ => format!("{},W,{},4096,{}\n", number % 9, number % 77 * 512, number ^ 0xff).into_bytes(),
                };
            }
            let count = buffer.len().min(self.line.len());
            buffer[..count].copy_from_slice(&self.line[..count]);
            self.line.drain(..count);
            Ok(count)
        }
    }

    /// Memory held while an endless trace is read: the same after a million requests as after ten thousand.
    #[test]
    fn what_is_held_does_not_grow() {
        let lines = Lines::new(Box::new(Endless { number: 0, line: Vec::new() }));
        let reader = Reader::new("endless", lines, Format::Alibaba, Action::Queued, &Selection::default());
        let mut order = Order::of_file(reader);
        let mut last = 0;
        for given in 0..1_000_000u64 {
            let record = order.next().ok().flatten().expect("there are more");
            assert!(record.at >= last);
            last = record.at;
            let Order::File { reader, ahead, .. } = &order else { unreachable!("it is a file") };
            assert!(ahead.held() <= HELD && reader.devices().len() <= 9 && reader.malformed().first.len() <= 5);
            assert!(given < 10_000 || reader.malformed().count >= given / 1_000);
        }
    }
}
