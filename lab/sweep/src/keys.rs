//! Keys that set the same thing under two names.

/// Whether two keys cannot both hold: they are the same, or a run ends by one of them, or begins in one of them.
pub(crate) fn rivals(one: &str, other: &str) -> bool {
    let is_end = |key: &str| ["io_count", "runtime"].contains(&key);
    let is_start = |key: &str| ["precondition", "from_state"].contains(&key);
    let (one, other) = (plain(one), plain(other));
    one == other || is_end(&one) && is_end(&other) || is_start(&one) && is_start(&other)
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
