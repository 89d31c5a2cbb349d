//! The figures that are compared, with their ratios to those of the first experiment.

use serde::Serialize;
use serde_json::Value;

use super::group::Column;
use super::interval::mean_and_half_width;
use crate::format::row_name;

/// A figure of all experiments.
#[derive(Serialize)]
pub struct Figure {
    /// Its name: `read p99.9`.
    pub name: String,
    /// Its unit; empty for numbers and ratios.
    pub unit: &'static str,
    /// One for each experiment; null where it has none, such as the latency of writes without writes.
    pub cells: Vec<Option<Cell>>,
}

/// A figure of one experiment.
#[derive(Copy, Clone, PartialEq, Debug, Serialize)]
pub struct Cell {
    /// The figure, or its mean over several runs.
    pub value: f64,
    /// Half of the 95% confidence interval over several runs.
    pub half_width_95: Option<f64>,
    /// The value divided by that of the first experiment; null if that is 0 or absent.
    pub ratio: Option<f64>,
}

const PERCENTILES: [(&str, &str); 8] = [
    ("mean", "mean"),
    ("p50", "p50"),
    ("p90", "p90"),
    ("p99", "p99"),
    ("p99.9", "p99_9"),
    ("p99.99", "p99_99"),
    ("p99.9999", "p99_9999"),
    ("max", "max"),
];

/// The percentiles of each of several jobs.
const OF_JOBS: [(&str, &str); 5] =
    [("mean", "mean"), ("p50", "p50"), ("p99", "p99"), ("p99.9", "p99_9"), ("max", "max")];

/// The share of the units programmed from which padding is shown.
pub const PADDED: f64 = 0.01;

/// The name of the row of padding.
const PADDING: &str = "padding, of units programmed";

/// Failures and damage.
const TROUBLE: [(&str, &str); 6] = [
    ("requests that failed", "/errors"),
    ("blocks retired", "/damage/retired_blocks"),
    ("planes given up", "/damage/planes_out_of_use"),
    ("spare blocks left", "/damage/spare_blocks"),
    ("units lost", "/damage/lost_units"),
    ("units dropped", "/damage/dropped_units"),
];

/// Rows that appear only if they have a value other than 0.
const OF_TROUBLE: [&str; 6] = [
    "requests that failed",
    "members missing at the end",
    "stripes rebuilt",
    "chunks repaired",
    "planes given up, all drives",
    "units lost, all drives",
];

/// Those of an array, and of its drives together: `*` stands for each drive, and counts are summed, write amplification is the mean.
const ARRAY: [(&str, &str); 16] = [
    ("stripe reads", "/array/stripe_reads"),
    ("stripe reads with one busy sub-I/O", "/array/busy_sub_ios/1"),
    ("stripe reads with two busy sub-I/Os", "/array/busy_sub_ios/2"),
    ("stripe reads with three busy sub-I/Os", "/array/busy_sub_ios/3"),
    ("extra reads of the array", "/array/extra_reads"),
    ("reads sent again", "/array/resubmissions"),
    ("stripe reads reconstructed", "/array/reconstructions"),
    ("writes sent by the array", "/array/writes"),
    ("write amplification of the drives, mean", "/drives/*/report/waf"),
    ("blocks reclaimed by GC, all drives", "/drives/*/report/gc/blocks"),
    ("reads held up by GC, all drives", "/drives/*/report/gc/blocked_reads"),
    ("members missing at the end", "/array/missing"),
    ("stripes rebuilt", "/array/stripes_rebuilt"),
    ("chunks repaired", "/array/chunks_repaired"),
    ("planes given up, all drives", "/drives/*/report/damage/planes_out_of_use"),
    ("units lost, all drives", "/drives/*/report/damage/lost_units"),
];

/// All figures that any experiment has.
pub(super) fn of(columns: &[Column]) -> Vec<Figure> {
    let requests = match has_flushes(columns) {
        true => "requests a second, flushes included",
        false => "requests a second",
    };
    let mut names: Vec<(String, &str, String)> = vec![
        (requests.to_owned(), "", "/iops".to_owned()),
        ("bytes a second".to_owned(), "B/s", "/bytes_per_s".to_owned()),
    ];
    for way in ["read", "write", "trim", "flush", "fua"] {
        names
            .extend(PERCENTILES.map(|(name, field)| {
                (format!("{} {name}", row_name(way)), "us", format!("/latency_us/{way}/{field}"))
            }));
    }
    let before_jobs = names.len();
    names.push(("processor time a request".to_owned(), "us", "/cpu/request_us".to_owned()));
    for way in ["read", "write", "trim", "flush", "fua"] {
        // Over drives in a chain the host is a layer.
        for place in ["breakdown_us", "layers_us"] {
            names.push((format!("{} in the host, mean", row_name(way)), "us", format!("/{place}/{way}/host")));
        }
    }
    names.push(("longest standstill".to_owned(), "us", "/standstill_us".to_owned()));
    names.push(("arrivals a second".to_owned(), "", "/arrivals/asked_iops".to_owned()));
    names.push(("outstanding at the last arrival".to_owned(), "", "/arrivals/outstanding_end".to_owned()));
    names.push(("over-provisioning".to_owned(), "%", "/over_provisioning".to_owned()));
    names.push(("over-provisioning asked".to_owned(), "%", "/over_provisioning_asked".to_owned()));
    names.push(("write amplification".to_owned(), "", "/waf".to_owned()));
    let before_padding = names.len();
    names.push(("suspensions of programs".to_owned(), "", "/flash/program_suspensions".to_owned()));
    names.push(("suspensions of erases".to_owned(), "", "/flash/erase_suspensions".to_owned()));
    names.push(("blocks reclaimed by GC".to_owned(), "", "/gc/blocks".to_owned()));
    names.push(("reads held up by GC".to_owned(), "", "/gc/blocked_reads".to_owned()));
    names.extend(ARRAY.map(|(name, path)| (name.to_owned(), "", path.to_owned())));
    names.extend(TROUBLE.map(|(name, path)| (name.to_owned(), "", path.to_owned())));
    let figure = |(name, unit, path): (String, &'static str, String)| Figure {
        name,
        unit,
        cells: cells(columns, |report| number(report, &path)),
    };
    let mut figures: Vec<Figure> = names.into_iter().map(figure).collect();
    let padding = Figure { name: PADDING.to_owned(), unit: "%", cells: cells(columns, padding) };
    figures.insert(before_padding, padding);
    let of_jobs: Vec<Figure> = jobs(columns).iter().flat_map(|job| of_job(columns, job)).collect();
    figures.splice(before_jobs..before_jobs, of_jobs);
    let has_any = |figure: &Figure| figure.cells.iter().any(Option::is_some);
    let is_none = |figure: &Figure| {
        let mut values = figure.cells.iter().flatten().map(|cell| cell.value);
        match figure.name == PADDING {
            true => values.all(|share| share < PADDED),
            false => OF_TROUBLE.contains(&&*figure.name) && values.all(|value| value == 0.0),
        }
    };
    figures.retain(|figure| has_any(figure) && !is_none(figure));
    figures
}

/// Padding as a share of the units programmed.
fn padding(report: &Value) -> Option<f64> {
    let of = |name| number(report, &format!("/flash/{name}"));
    Some(of("units_padding")? / of("units_programmed").filter(|units| *units > 0.0)?)
}

/// Whether flushes are among the requests of any run.
fn has_flushes(columns: &[Column]) -> bool {
    let mut runs = columns.iter().flat_map(|column| &column.runs);
    runs.any(|run| number(&run.report, "/latency_us/flush/count").is_some_and(|count| count > 0.0))
}

/// The names of all jobs, where a run has several.
fn jobs(columns: &[Column]) -> Vec<String> {
    let mut jobs: Vec<String> = Vec::new();
    for run in columns.iter().flat_map(|column| &column.runs) {
        let flows = run.report["flows"].as_array().into_iter().flatten();
        for name in flows.filter_map(|flow| flow["name"].as_str()) {
            if jobs.iter().all(|known| known != name) {
                jobs.push(name.to_owned());
            }
        }
    }
    jobs
}

/// The figures of one of several jobs.
fn of_job(columns: &[Column], job: &str) -> Vec<Figure> {
    let figure = |name: &str, unit: &'static str, path: &str| Figure {
        name: format!("{job}: {name}"),
        unit,
        cells: cells(columns, |report| {
            let mut flows = report["flows"].as_array()?.iter();
            number(flows.find(|flow| flow["name"] == job)?, path)
        }),
    };
    let mut figures = vec![figure("requests a second", "", "/iops"), figure("mean", "us", "/mean_us")];
    for way in ["read", "write", "trim", "flush", "fua"] {
        figures.extend(OF_JOBS.map(|(name, field)| {
            figure(&format!("{} {name}", row_name(way)), "us", &format!("/latency_us/{way}/{field}"))
        }));
    }
    figures
}

/// A figure of a report; counts by status are summed.
fn number(report: &Value, path: &str) -> Option<f64> {
    if let Some((list, rest)) = path.split_once("/*") {
        // Not each drive has each figure: damage is that of drives with faults.
        let each: Vec<f64> = report.pointer(list)?.as_array()?.iter().filter_map(|one| number(one, rest)).collect();
        let mean_of = if rest.ends_with("/waf") { each.len() as f64 } else { 1.0 };
        return (!each.is_empty()).then(|| sum(each.into_iter()) / mean_of);
    }
    match report.pointer(path)? {
        Value::Array(list) => Some(list.len() as f64),
        Value::Object(counts) => Some(sum(counts.values().filter_map(Value::as_f64))),
        value => value.as_f64(),
    }
}

/// Of nothing it is 0, where that of the library is -0.
fn sum(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(0.0, |sum, value| sum + value)
}

fn cells(columns: &[Column], number: impl Fn(&Value) -> Option<f64>) -> Vec<Option<Cell>> {
    let values = |column: &Column| -> Vec<f64> { column.runs.iter().filter_map(|run| number(&run.report)).collect() };
    let found: Vec<Option<(f64, Option<f64>)>> =
        columns.iter().map(|column| mean_and_half_width(&values(column))).collect();
    let first = found.first().copied().flatten().map(|(value, _)| value).filter(|value| *value != 0.0);
    let cell = |(value, half_width_95): (f64, Option<f64>)| Cell {
        value,
        half_width_95,
        ratio: first.map(|first| value / first),
    };
    found.into_iter().map(|found| found.map(cell)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::compare::group::columns;
    use crate::compare::load::Run;

    fn run(seed: u64, p99: f64, padding: u64) -> Run {
        let flow = |name: &str, p99: f64| json!({"name": name, "iops": 50.0, "mean_us": 70.0, "latency_us": {"read": {"p99": p99}}});
        let report = json!({
            "profile": "p", "workload": "w", "seed": seed, "iops": 100.0, "flash": {"units_padding": padding, "units_programmed": 100},
            "latency_us": {"read": {"p99": p99}, "flush": {"count": padding}},
            "flows": [flow("log", p99 / 2.0), flow("scan", 2.0 * p99)],
        });
        Run { path: format!("{seed}.json").into(), report }
    }

    #[test]
    fn several_jobs_have_rows_below_those_of_all() {
        let figures = of(&columns(vec![run(1, 10.0, 0), run(2, 30.0, 0)]));
        let names: Vec<&str> = figures.iter().map(|figure| figure.name.as_str()).collect();
        let expected = [
            "requests a second",
            "read p99",
            "log: requests a second",
            "log: mean",
            "log: read p99",
            "scan: requests a second",
            "scan: mean",
            "scan: read p99",
        ];
        assert_eq!(names, expected);
        let values = |at: usize| figures[at].cells.iter().map(|cell| cell.unwrap().value).collect::<Vec<f64>>();
        assert_eq!((values(1), values(4), values(7)), (vec![10.0, 30.0], vec![5.0, 15.0], vec![20.0, 60.0]));
    }

    #[test]
    fn padding_is_averaged_over_seeds_before_it_is_judged() {
        let padded = |padding: [f64; 2]| {
            let mut runs = [run(1, 10.0, 0), run(2, 10.0, 0)];
            for (run, padding) in runs.iter_mut().zip(padding) {
                run.report["inputs"] = json!({"workload_lines": []});
                run.report["flash"]["units_padding"] = padding.into();
            }
            let figures = of(&columns(runs.into()));
            let row = figures.into_iter().find(|figure| figure.name == PADDING)?;
            assert_eq!(row.cells.len(), 1, "one experiment");
            Some(row.cells[0]?.value)
        };
        let mean = padded([0.5, 3.5]).expect("a row");
        assert!((mean - 0.02).abs() < 1e-9, "{mean}");
        assert_eq!(padded([0.2, 0.8]), None);
    }

    #[test]
    fn flushes_and_padding_are_shown_where_there_are_any() {
        let figures = of(&columns(vec![run(1, 10.0, 8), run(2, 10.0, 0)]));
        let names: Vec<&str> = figures.iter().map(|figure| figure.name.as_str()).collect();
        assert!(
            names.contains(&"padding, of units programmed") && names[0] == "requests a second, flushes included",
            "{names:?}"
        );
    }
}
