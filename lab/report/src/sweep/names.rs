//! Figures of a sweep for people: their names, their units, and numbers.

use nandscape_lab_sweep::job_of;

use crate::format::{bytes, percent, rounded, us};

/// The unit of a figure.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Counts {
    Microseconds,
    BytesPerSecond,
    Seconds,
    Share,
    Number,
}

/// By the name: it carries its unit.
pub(super) fn counts(name: &str) -> Counts {
    let (_, name) = job_of(name).unwrap_or(("", name));
    let mut parts = name.split('.');
    let first = parts.next().unwrap_or_default();
    let is_count = matches!(name.rsplit('.').next(), Some("count"));
    match first {
        _ if name == "array.busy_share" => Counts::Share,
        _ if is_count => Counts::Number,
        _ if first.ends_with("_us") => Counts::Microseconds,
        _ if name.starts_with("cpu.request_us") => Counts::Microseconds,
        _ if matches!(name, "cpu.busy" | "cpu.load") => Counts::Share,
        "bytes_per_s" => Counts::BytesPerSecond,
        _ if first.ends_with("_s") => Counts::Seconds,
        "busy" | "over_provisioning" | "over_provisioning_asked" => Counts::Share,
        _ => Counts::Number,
    }
}

/// A figure's name in words: `read p99.9`.
pub(super) fn words(name: &str) -> String {
    let percentile = |part: &str| match part.strip_prefix('p').filter(|digits| digits.starts_with(char::is_numeric)) {
        Some(digits) => format!("p{}", digits.replace('_', ".")),
        None => part.replace('_', " "),
    };
    if let Some((job, figure)) = job_of(name) {
        return format!("{job}: {}", words(figure));
    }
    let parts: Vec<&str> = name.split('.').collect();
    match parts[..] {
        ["mean_us"] => "mean".to_owned(),
        ["flash", "units_padding"] => "units of padding".to_owned(),
        ["flash", "program_suspensions"] => "suspensions of programs".to_owned(),
        ["flash", "erase_suspensions"] => "suspensions of erases".to_owned(),
        ["iops"] => "requests a second".to_owned(),
        ["bytes_per_s"] => "throughput".to_owned(),
        ["waf"] => "write amplification".to_owned(),
        ["drives", "waf"] => "write amplification of the drives".to_owned(),
        ["array", "busy_share"] => "stripe reads that met a busy drive".to_owned(),
        ["cpu", "request_us"] => "processor time a request".to_owned(),
        ["cpu", "request_us_by", kind] => format!("{kind} time a request"),
        ["cpu", "busy"] => "processors busy".to_owned(),
        ["latency_us", way, figure] => format!("{way} {}", percentile(figure)),
        ["breakdown_us", way, ref stages @ ..] => format!("{way} time in {}", stages.join(" ").replace('_', " ")),
        _ => {
            let last = parts.len() - 1;
            let parts = parts.iter().enumerate().map(|(at, part)| {
                let part = if at == 0 { part.trim_end_matches("_us") } else { part };
                if at == last { percentile(part) } else { part.replace('_', " ") }
            });
            parts.collect::<Vec<_>>().join(" ")
        }
    }
}

/// A figure's name and unit.
pub(super) fn with_unit(name: &str) -> String {
    match counts(name) {
        Counts::Microseconds => format!("{}, us", words(name)),
        Counts::Seconds => format!("{}, s", words(name)),
        _ => words(name),
    }
}

/// A number of a figure.
pub(super) fn number(name: &str, value: f64) -> String {
    match counts(name) {
        Counts::Microseconds => us(value),
        Counts::BytesPerSecond => format!("{}/s", bytes(value)),
        Counts::Share => percent(value),
        Counts::Seconds | Counts::Number if value.abs() >= 1_000.0 => rounded(value),
        Counts::Seconds | Counts::Number => {
            let digits = if value.abs() >= 10.0 { 1 } else { 4 };
            let text = format!("{value:.digits$}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
    }
}

/// The precision of a percentile, as a share of it: percentiles are the ends of the bins of histograms.
const RESOLUTION: f64 = 0.001;

/// A mean with half of its interval. Percentiles of several runs may be of one bin: their interval is no shorter than the bin.
pub(super) fn with_interval(name: &str, mean: f64, half: Option<f64>) -> String {
    let bin = if is_percentile(name) { RESOLUTION * mean } else { 0.0 };
    match half {
        Some(half) if half < bin => format!("{} ± <{}", number(name, mean), number(name, bin)),
        Some(half) => format!("{} ± {}", number(name, mean), number(name, half)),
        None => number(name, mean),
    }
}

/// Whether a figure is a percentile of latencies, `latency_us.read.p99_9`.
fn is_percentile(name: &str) -> bool {
    let (_, name) = job_of(name).unwrap_or(("", name));
    let last = name.rsplit('.').next().and_then(|last| last.strip_prefix('p'));
    name.starts_with("latency") && last.is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words_and_numbers_have_their_units() {
        assert_eq!(with_unit("latency_us.read.p99_9"), "read p99.9, us");
        assert_eq!(with_unit("breakdown_us.read.die_wait_by.gc"), "read time in die wait by gc, us");
        assert_eq!(with_unit("cpu.request_us"), "processor time a request, us");
        assert_eq!(with_unit("cpu.busy"), "processors busy");
        assert_eq!(with_unit("standstill_us"), "standstill, us");
        assert_eq!((with_unit("waf"), with_unit("gc.blocks")), ("write amplification".into(), "gc blocks".into()));
        assert_eq!(with_unit("flows.log.latency_us.write.p99"), "log: write p99, us");
        assert_eq!(
            (with_unit("flows.log.iops"), with_unit("flows.log.mean_us")),
            ("log: requests a second".into(), "log: mean, us".into())
        );
        assert_eq!(with_unit("flash.units_padding"), "units of padding");
        assert_eq!(with_interval("flows.log.latency_us.read.p99", 312.6, Some(0.0)), "312.6 ± <0.31");
        assert_eq!(number("latency_us.read.p99", 1_234.56), "1234.6");
        assert_eq!(number("latency_us.read.count", 1_234.0), "1,234");
        assert_eq!(number("bytes_per_s", 2.5e9), "2.50 GB/s");
        assert_eq!((number("over_provisioning", 0.07), number("waf", 2.5)), ("7.0%".into(), "2.5".into()));
        assert_eq!(with_interval("iops", 170_299.5, Some(12.25)), "170,300 ± 12.2");
        assert_eq!(with_interval("iops", 312.6, Some(0.0)), "312.6 ± 0", "a mean is exact");
        assert_eq!(
            with_interval("latency_us.read.p99_9", 312.6, Some(0.0)),
            "312.6 ± <0.31",
            "one bin of the histogram"
        );
        assert_eq!(with_interval("latency_us.read.p50", 312.6, Some(4.0)), "312.6 ± 4.00");
    }
}
