//! Whether the drives' data fits this machine's memory.

use nandscape_sim::units::Bytes;

/// Memory that is available to programs, as Linux estimates it: `MemAvailable` of proc_meminfo(5).
fn available() -> Option<u64> {
    parse(&std::fs::read_to_string("/proc/meminfo").ok()?)
}

fn parse(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

/// A warning if drives of `capacity` bytes in all can outgrow the machine's memory.
pub(super) fn tell_if_too_large(capacity: u64) {
    if let Some(text) = available().and_then(|available| warning(capacity, available)) {
        crate::output::note(&text);
    }
}

fn warning(capacity: u64, available: u64) -> Option<String> {
    (capacity > available).then(|| {
        format!(
            "the drives hold up to {} in memory, and this machine has {} left: when it is full, the system kills the \
             server. Give a smaller capacity, as in --set capacity={}, or --store none",
            Bytes(capacity),
            Bytes(available >> 20 << 20),
            Bytes((available / 4).next_power_of_two())
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drives_larger_than_memory_are_told_with_figures() {
        assert_eq!(parse("MemTotal:  99 kB\nMemAvailable:   1024 kB\n"), Some(1 << 20));
        assert_eq!(parse("MemTotal:  99 kB\n"), None);
        let text = warning(300 << 30, 20 << 30).unwrap();
        assert!(
            text.contains("up to 300GiB") && text.contains("has 20GiB left") && text.contains("capacity=8GiB"),
            "{text}"
        );
        assert_eq!(warning(10 << 30, 20 << 30), None);
    }
}
