//! From lines to requests: headers and comments are skipped, malformed lines counted, and disks that are not selected
//! left out.

use crate::devices::{Device, Devices};
use crate::error::{Malformed, TraceError};
use crate::fields::LineError;
use crate::format::{Action, Format, Parser};
use crate::lines::{Line, Lines};
use crate::record::Record;

/// The selected disks; all if none is named.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Selection {
    /// Disks by their names.
    pub disks: Vec<String>,
    /// Hosts by their names.
    pub hosts: Vec<String>,
}

impl Selection {
    pub(crate) fn takes(&self, device: &Device) -> bool {
        let named = |names: &[String], name: &String| names.is_empty() || names.contains(name);
        named(&self.disks, &device.disk) && named(&self.hosts, &device.host)
    }
}

/// After this many malformed lines without a well-formed one, the format is wrong.
const GIVE_UP: u64 = 1_000;

/// Reads requests in the order of the file.
pub(crate) struct Reader {
    lines: Lines,
    parser: Box<dyn Parser>,
    has_header_line: bool,
    devices: Devices,
    selection: Selection,
    /// By device, whether it is selected.
    taken: Vec<bool>,
    well_formed: bool,
    malformed: Malformed,
}

impl Reader {
    pub(crate) fn new(origin: &str, lines: Lines, format: Format, action: Action, selection: &Selection) -> Reader {
        Reader {
            lines,
            parser: format.parser(action),
            has_header_line: !matches!(format, Format::Blkparse | Format::FioV2 | Format::FioV3),
            devices: Devices::default(),
            selection: selection.clone(),
            taken: Vec::new(),
            well_formed: false,
            malformed: Malformed { origin: origin.to_owned(), format: format.name(), ..Malformed::default() },
        }
    }

    /// The next request of the selected disks.
    pub(crate) fn next(&mut self) -> Result<Option<Record>, TraceError> {
        loop {
            if let Some(record) = self.parser.second().filter(|record| self.takes(record.device)) {
                return Ok(Some(record));
            }
            let line = self.lines.next();
            let parsed = match line {
                Ok(None) => return Ok(None),
                Ok(Some(Line::Text(text))) => {
                    let first = self.malformed.lines == 0;
                    let text = if first { text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text) } else { text };
                    self.malformed.lines += 1;
                    match text.trim_ascii_start().first() {
                        None | Some(b'#') => continue,
                        Some(letter) => match self.parser.line(text, &mut self.devices) {
                            // A header of column names: requests start with a number, or are well formed.
                            Err(_) if first && self.has_header_line && is_name(*letter) => continue,
                            parsed => parsed,
                        },
                    }
                }
                Ok(Some(Line::TooLong)) => {
                    self.malformed.lines += 1;
                    Err(LineError("is longer than 64 KiB".to_owned()))
                }
                Err(error) => {
                    let (origin, line) = (self.malformed.origin.clone(), self.lines.number());
                    return Err(TraceError::Read { origin, line, error });
                }
            };
            match parsed {
                Ok(None) => self.well_formed = true,
                Ok(Some(record)) => {
                    self.well_formed = true;
                    if self.takes(record.device) {
                        return Ok(Some(record));
                    }
                }
                Err(LineError(problem)) => {
                    self.malformed.add(self.lines.number(), problem);
                    if !self.well_formed && self.malformed.count >= GIVE_UP {
                        self.malformed.given_up = true;
                        return Err(TraceError::Malformed(self.malformed.clone()));
                    }
                }
            }
        }
    }

    fn takes(&mut self, device: u32) -> bool {
        while self.taken.len() < self.devices.list().len() {
            self.taken.push(self.selection.takes(&self.devices.list()[self.taken.len()]));
        }
        self.taken[device as usize]
    }

    /// The disks seen so far, selected or not.
    pub(crate) fn devices(&self) -> &[Device] {
        self.devices.list()
    }

    /// The malformed lines so far.
    pub(crate) fn malformed(&self) -> &Malformed {
        &self.malformed
    }
}

/// Whether a line with this beginning is a header of column names.
pub(crate) fn is_name(first: u8) -> bool {
    first.is_ascii_alphabetic() || first == b'"'
}
