//! Writes a trace in another format. Times count from the first request. A request that the format cannot express, such
//! as a flush where there are only reads and writes, is an error. Values that it expresses more coarsely are counted.

use std::io::{self, Write};

use nandscape_lab_workload::Direction;

use crate::devices::Device;
use crate::error::TraceError;
use crate::format::{Action, Disks, Format, Part, Row};
use crate::record::Record;
use crate::trace::Trace;

/// Why a trace was not converted.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    /// It could not be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The format cannot express some of its requests.
    #[error("{origin}: {count} requests are {direction}, which the format {format} cannot express; there are {others}")]
    Inexpressible {
        /// The trace.
        origin: String,
        /// Requests that cannot be expressed.
        count: u64,
        /// Their direction.
        direction: &'static str,
        /// The format.
        format: Format,
        /// Formats that can.
        others: String,
    },
    /// The result could not be written.
    #[error("cannot be written: {0}")]
    Write(#[from] io::Error),
}

/// Bytes buffered before they are written.
const CHUNK: usize = 1 << 16;

/// Writes a trace to `out`, and returns notes on the changes.
///
/// # Errors
/// See [`ConvertError`].
pub fn convert(trace: &Trace, to: Format, out: &mut dyn Write) -> Result<Vec<String>, ConvertError> {
    expressible(trace, to)?;
    let facts = to.facts();
    let (devices, renamed) = names(trace, to);
    let mut writer = to.writer(Action::Queued);
    let mut text = Vec::with_capacity(2 * CHUNK);
    let (mut rounded, mut widened) = (0u64, 0u64);
    let shown: Vec<Device> = devices.iter().flatten().cloned().collect();
    writer(Part::Head(&shown), &mut text);
    for record in trace.records()? {
        let record = record?;
        let (unit, end) = (facts.unit_bytes, record.offset + record.bytes);
        let (first, stop) = (record.offset / unit, end.div_ceil(unit));
        widened += u64::from(first * unit != record.offset || stop * unit != end);
        // Whole seconds are rounded down, as in the format; finer units are rounded to the nearest.
        let half = if facts.time_ns == 1_000_000_000 { 0 } else { facts.time_ns / 2 };
        let at = (record.at + half) / facts.time_ns;
        rounded += u64::from(at * facts.time_ns != record.at);
        let Some(device) = &devices[record.device as usize] else { continue };
        let Record { direction, after_flush, .. } = record;
        let row = Row { at, device, direction, offset: first, size: stop - first, after_flush };
        writer(Part::Row(row), &mut text);
        if text.len() >= CHUNK {
            out.write_all(&text)?;
            text.clear();
        }
    }
    writer(Part::End(&shown), &mut text);
    out.write_all(&text)?;
    out.flush()?;
    Ok(notes(trace, to, rounded, widened, renamed))
}

fn expressible(trace: &Trace, to: Format) -> Result<(), ConvertError> {
    for direction in Direction::DISTINCT {
        let count = trace.totals().of(direction).requests;
        if count > 0 && !to.facts().directions.contains(&direction) {
            let can = |format: &Format| format.facts().directions.contains(&direction);
            let others: Vec<&str> = Format::ALL.into_iter().filter(can).map(Format::name).collect();
            let plural = if direction == Direction::Flush { "flushes" } else { "trims" };
            return Err(ConvertError::Inexpressible {
                origin: trace.name(),
                count,
                direction: plural,
                format: to,
                others: others.join(", "),
            });
        }
    }
    Ok(())
}

/// The names of the disks with requests in the other format, and whether any name changed.
fn names(trace: &Trace, to: Format) -> (Vec<Option<Device>>, bool) {
    let facts = to.facts();
    let used = |number: usize| trace.totals().devices.get(number).is_some_and(|device| device.requests > 0);
    let all: Vec<Option<&Device>> =
        trace.devices().iter().enumerate().map(|(number, device)| used(number).then_some(device)).collect();
    let plain = |device: &Device| match facts.hosts {
        true => Device { host: worded(&device.host), disk: worded(&device.disk) },
        false => Device {
            host: String::new(),
            disk: worded(if facts.disks == Disks::Words { device.name() } else { device.disk.clone() }.as_str()),
        },
    };
    let mut given: Vec<Option<Device>> = all.iter().map(|device| device.map(plain)).collect();
    let fits = |device: &Device| match facts.disks {
        Disks::Words => !device.disk.is_empty(),
        Disks::Numbers => device.disk.parse::<u64>().is_ok_and(|number| number.to_string() == device.disk),
        Disks::Pairs => is_pair(&device.disk),
    };
    let distinct = {
        let mut names: Vec<(&str, &str)> =
            given.iter().flatten().map(|device| (&*device.host, &*device.disk)).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        names.len() == count
    };
    if distinct && given.iter().flatten().all(fits) {
        let same = all.iter().zip(&given).all(|(old, new)| old.map(Device::name) == new.as_ref().map(Device::name));
        let loses_host = !facts.hosts && all.iter().flatten().any(|device| !device.host.is_empty());
        return (given, !same && !loses_host);
    }
    for (number, device) in given.iter_mut().flatten().enumerate() {
        device.disk = match facts.disks {
            // Major and minor numbers of the first SCSI disks.
            Disks::Pairs => format!("8,{}", number * 16),
            _ => number.to_string(),
        };
    }
    (given, true)
}

fn is_pair(text: &str) -> bool {
    crate::formats::blkparse::is_pair(text.as_bytes())
}

/// A name without field separators.
fn worded(name: &str) -> String {
    name.replace(|c: char| c == ',' || c.is_whitespace() || c.is_control(), "_")
}

fn notes(trace: &Trace, to: Format, rounded: u64, widened: u64, renamed: bool) -> Vec<String> {
    let (facts, requests) = (to.facts(), trace.totals().requests());
    let mut notes = trace.notes();
    let (after, forced) = (trace.totals().after_flush, trace.totals().of(Direction::Fua).requests);
    if after + forced > 0 && !facts.directions.contains(&Direction::Fua) {
        notes.push(format!(
            "the format {to} has neither Force Unit Access, which {forced} writes lose, nor the order of a flush and its write, which \
             {after} lose"
        ));
    }
    if rounded > 0 {
        let unit = nandscape_sim::Span::from_ns(facts.time_ns);
        notes.push(format!("{rounded} of {requests} times are rounded to the unit of the format {to}, {unit}"));
    }
    if widened > 0 {
        notes.push(format!("{widened} of {requests} requests are widened to whole sectors of {} B", facts.unit_bytes));
    }
    if renamed {
        notes.push(format!("disks are numbered in order of appearance: the format {to} needs numbers"));
    }
    notes
}
