//! Trace files of any bytes: they are rejected with a reason, or read, described and converted.

use std::io::{Seek as _, Write as _};

use nandscape_lab_trace::{Format, Options, Trace, convert, describe};

use crate::input::Input;

/// Reads a trace. The first byte chooses the format: 0 has it detected.
///
/// # Panics
/// When an error has no text, or a trace that was checked cannot be read.
pub fn trace(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let choice = input.byte();
    let format = usize::from(choice & 0x3f).checked_sub(1).map(|at| Format::ALL[at % Format::ALL.len()]);
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(input.rest()).and_then(|()| file.rewind()).expect("it is written");
    let options = Options { path: file.path().to_owned(), format, skip_bad: choice & 0x40 != 0, ..Options::default() };
    match Trace::open(options) {
        Ok(trace) => use_all(&trace),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn use_all(trace: &Trace) {
    let records = trace.records().expect("it was read before");
    let mut last = 0;
    for record in records {
        let record = record.expect("it was read before");
        assert!(record.at >= last, "requests are in the order of time");
        assert!((record.device as usize) < trace.devices().len());
        last = record.at;
    }
    describe(trace).expect("it was read before");
    for format in Format::ALL {
        let _ = convert(trace, format, &mut std::io::sink());
    }
}
