//! Samples, and files made for a test.

use std::path::PathBuf;

use nandscape_lab_trace::{Format, Options, Record, Trace, TraceError};
use nandscape_lab_workload::Direction;

/// The samples with their formats.
pub(crate) const SAMPLES: [(Format, &str); 11] = [
    (Format::Msr, "msr.csv"),
    (Format::Replay, "replay.trace"),
    (Format::Mqsim, "mqsim.trace"),
    (Format::Disksim, "disksim.trace"),
    (Format::Alibaba, "alibaba.csv"),
    (Format::Tencent, "tencent.csv"),
    (Format::Fiu, "fiu.trace"),
    (Format::Spc, "spc.trace"),
    (Format::Blkparse, "blkparse.txt"),
    (Format::FioV2, "fio-v2.log"),
    (Format::FioV3, "fio-v3.log"),
];

/// The path of a sample.
pub(crate) fn sample(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "samples", name].iter().collect()
}

/// A request as tests expect it: nanoseconds from the first, disk, direction, offset, bytes.
pub(crate) type Seen = (u64, String, Direction, u64, u64);

/// All requests of a trace.
pub(crate) fn requests(trace: &Trace) -> Vec<Seen> {
    let seen = |record: Record| {
        let device = &trace.devices()[record.device as usize];
        (record.at, device.name(), record.direction, record.offset, record.bytes)
    };
    trace.records().expect("it is there").map(|record| seen(record.expect("it can be read"))).collect()
}

/// A file with this content, and its folder, which deletes it when dropped.
pub(crate) fn file(content: impl AsRef<[u8]>) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("t.trace");
    std::fs::write(&path, content).expect("a file");
    (folder, path)
}

/// Opens a file with default options.
pub(crate) fn open(path: impl Into<PathBuf>) -> Result<Trace, TraceError> {
    Trace::open(Options { path: path.into(), ..Options::default() })
}

/// Opens a text in a format.
pub(crate) fn read(content: impl AsRef<[u8]>, format: Option<Format>, skip_bad: bool) -> Result<Vec<Seen>, TraceError> {
    let (_folder, path) = file(content);
    let trace = Trace::open(Options { path, format, skip_bad, ..Options::default() })?;
    Ok(requests(&trace))
}

/// The error for a text.
pub(crate) fn problem(content: impl AsRef<[u8]>, format: Option<Format>) -> String {
    match read(content, format, false) {
        Ok(requests) => panic!("is read: {requests:?}"),
        Err(error) => error.to_string(),
    }
}
