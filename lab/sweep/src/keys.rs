//! Keys that set the same thing under two names.

/// Whether two keys exclude each other: they are the same, or both end the run, or both set its initial state.
pub(crate) fn rivals(one: &str, other: &str) -> bool {
    role(one) == role(other)
}

/// What a key sets: rivals set the same.
pub(crate) fn role(key: &str) -> String {
    let plain = plain(key);
    match plain.as_str() {
        "io_count" | "runtime" => "the end of a run".to_owned(),
        "precondition" | "from_state" => "the start of a run".to_owned(),
        _ => plain,
    }
}

/// A key as files have it. Words of workloads may be written as options are.
fn plain(key: &str) -> String {
    match key.replace('-', "_").as_str() {
        "fault" => "faults".to_owned(),
        plain => plain.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_a_key_and_ends_of_a_run_are_rivals() {
        for (one, other) in [
            ("rate_iops", "rate-iops"),
            ("fault", "faults"),
            ("io_count", "runtime"),
            ("a.b", "a.b"),
            ("from-state", "precondition"),
        ] {
            assert!(rivals(one, other) && rivals(other, one), "{one} {other}");
        }
        for (one, other) in [("iodepth", "job.reads.iodepth"), ("io_count", "warmup_count"), ("runtime", "rw")] {
            assert!(!rivals(one, other), "{one} {other}");
        }
    }
}
