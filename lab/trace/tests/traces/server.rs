//! An excerpt of an MSR Cambridge server's trace that the papers use: 10,000 requests, 40% reads, 86 s, 14 GiB of
//! addresses. It is not part of the project; the test passes if the file is absent.

use std::path::Path;

use nandscape_lab_trace::{Format, describe};

use crate::files::open;

#[test]
fn the_cut_of_a_server_is_what_is_said_of_it() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces/msr-40-60.trace");
    if !path.exists() {
        return;
    }
    let trace = open(path).unwrap();
    assert_eq!((trace.format(), trace.late(), trace.notes()), (Format::Replay, 0, Vec::new()));
    let info = describe(&trace).unwrap();
    // Counted with awk: 4,054 reads, the last time, the largest end address.
    assert_eq!((info.all.requests, info.by["read"].requests), (10_000, 4_054));
    assert_eq!((info.duration_s, info.span_bytes >> 20), (85.915_075, 14_857_567_744 >> 20));
}
