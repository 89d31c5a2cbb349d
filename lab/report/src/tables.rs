//! The figures of a run as tables, for CSV and Parquet files. Column names carry their unit.

use std::collections::BTreeMap;

use nandscape_lab_run::record::{Distribution, Series, SeriesOf};
use nandscape_lab_run::{ChainFinished, Details, HostDetails, Latency, Report};

/// Columns of the same length.
pub(crate) struct Table {
    pub(crate) name: &'static str,
    pub(crate) columns: Vec<(String, Column)>,
}

/// The cells of a column; `None` is empty.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Column {
    Text(Vec<String>),
    Whole(Vec<Option<u64>>),
    Real(Vec<Option<f64>>),
}

impl Table {
    /// Its rows.
    pub(crate) fn rows(&self) -> usize {
        self.columns.first().map_or(0, |(_, column)| column.len())
    }

    /// Drops its rows.
    pub(crate) fn clear(&mut self) {
        self.columns.iter_mut().for_each(|(_, column)| match column {
            Column::Text(cells) => cells.clear(),
            Column::Whole(cells) => cells.clear(),
            Column::Real(cells) => cells.clear(),
        });
    }
}

impl Column {
    pub(crate) fn len(&self) -> usize {
        match self {
            Column::Text(cells) => cells.len(),
            Column::Whole(cells) => cells.len(),
            Column::Real(cells) => cells.len(),
        }
    }

    /// A cell as text: numbers in the shortest form that reads back exactly.
    pub(crate) fn text(&self, row: usize) -> String {
        match self {
            Column::Text(cells) => cells[row].clone(),
            Column::Whole(cells) => cells[row].map_or(String::new(), |number| number.to_string()),
            Column::Real(cells) => cells[row].map_or(String::new(), |number| number.to_string()),
        }
    }
}

fn text<'a>(cells: impl IntoIterator<Item = &'a str>) -> Column {
    Column::Text(cells.into_iter().map(str::to_owned).collect())
}

fn whole(cells: impl IntoIterator<Item = u64>) -> Column {
    Column::Whole(cells.into_iter().map(Some).collect())
}

fn real(cells: impl IntoIterator<Item = f64>) -> Column {
    Column::Real(cells.into_iter().map(Some).collect())
}

fn table(name: &'static str, columns: Vec<(&str, Column)>) -> Table {
    Table { name, columns: columns.into_iter().map(|(name, column)| (name.to_owned(), column)).collect() }
}

/// All tables of a run.
pub(crate) fn of_run(report: &Report, details: &Details) -> Vec<Table> {
    vec![latency(&report.latency_us), cdf(&details.histogram), series(&details.series), drive(details)]
}

/// All tables of a run on several drives: of its requests, and a row for each drive.
pub(crate) fn of_array(finished: &ChainFinished, details: &HostDetails) -> Vec<Table> {
    vec![latency(&finished.host.latency_us), cdf(&details.histogram), series(&details.series), drives(finished)]
}

/// The percentiles of each direction.
fn latency(latency_us: &BTreeMap<&'static str, Latency>) -> Table {
    let mut rows: Vec<(&str, &str, Option<f64>, u64)> = Vec::new();
    for (way, latency) in latency_us.iter().filter(|(_, latency)| latency.count > 0) {
        rows.extend(latency.figures().map(|(name, figure)| (*way, name, figure, latency.count)));
    }
    table(
        "latency",
        vec![
            ("direction", text(rows.iter().map(|row| row.0))),
            ("figure", text(rows.iter().map(|row| row.1))),
            ("latency_us", Column::Real(rows.iter().map(|row| row.2).collect())),
            ("requests", whole(rows.iter().map(|row| row.3))),
        ],
    )
}

/// All latencies: the number of requests with each, and the cumulative share.
fn cdf(histogram: &BTreeMap<&'static str, Distribution>) -> Table {
    let (mut ways, mut latencies, mut requests, mut shares) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (way, Distribution { latency_us, requests: counts }) in histogram {
        let total: u64 = counts.iter().sum();
        let mut below = 0;
        for (latency, count) in latency_us.iter().zip(counts) {
            below += count;
            ways.push(*way);
            latencies.push(*latency);
            requests.push(*count);
            shares.push(below as f64 / total as f64);
        }
    }
    let columns = vec![
        ("direction", text(ways)),
        ("latency_us", real(latencies)),
        ("requests", whole(requests)),
        ("share_at_most", real(shares)),
    ];
    table("cdf", columns)
}

/// Latency and throughput over time, a row for each interval and direction.
fn series(series: &Series) -> Table {
    let each = || series.by.iter().flat_map(|(way, of)| (0..series.t_s.len()).map(move |at| (*way, of, at)));
    let figure =
        |figure: fn(&SeriesOf) -> &Vec<Option<f64>>| Column::Real(each().map(|(_, of, at)| figure(of)[at]).collect());
    table(
        "series",
        vec![
            ("t_s", real(each().map(|(_, _, at)| series.t_s[at]))),
            ("direction", text(each().map(|(way, _, _)| way))),
            ("requests", whole(each().map(|(_, of, at)| of.requests[at]))),
            ("iops", real(each().map(|(_, of, at)| of.iops[at]))),
            ("bytes_per_s", real(each().map(|(_, of, at)| of.bytes_per_s[at]))),
            ("mean_us", figure(|of| &of.mean_us)),
            ("p50_us", figure(|of| &of.p50_us)),
            ("p99_us", figure(|of| &of.p99_us)),
            ("p99_9_us", figure(|of| &of.p99_9_us)),
            ("max_us", figure(|of| &of.max_us)),
        ],
    )
}

/// The commands of each drive of several.
fn drives(finished: &ChainFinished) -> Table {
    let rows: Vec<(&str, &str, &Latency)> = finished
        .drives
        .iter()
        .flat_map(|drive| drive.report.latency_us.iter().map(|(way, latency)| (drive.name.as_str(), *way, latency)))
        .collect();
    let figure = |of: fn(&Latency) -> Option<f64>| Column::Real(rows.iter().map(|row| of(row.2)).collect());
    table(
        "drives",
        vec![
            ("drive", text(rows.iter().map(|row| row.0))),
            ("direction", text(rows.iter().map(|row| row.1))),
            ("commands", whole(rows.iter().map(|row| row.2.count))),
            ("mean_us", figure(|latency| latency.mean)),
            ("p50_us", figure(|latency| latency.p50)),
            ("p99_us", figure(|latency| latency.p99)),
            ("p99_9_us", figure(|latency| latency.p99_9)),
            ("max_us", figure(|latency| latency.max)),
        ],
    )
}

/// The state of the drive over time.
fn drive(details: &Details) -> Table {
    let drive = &details.drive;
    let mut columns = vec![
        ("t_s", real(drive.t_s.iter().copied())),
        ("free_blocks", whole(drive.free_blocks.iter().copied())),
        ("gc_blocks", whole(drive.gc_blocks.iter().copied())),
        ("waf", Column::Real(drive.waf.clone())),
        ("erases_min", whole(drive.erases_min.iter().map(|erases| u64::from(*erases)))),
        ("erases_mean", real(drive.erases_mean.iter().copied())),
        ("erases_max", whole(drive.erases_max.iter().map(|erases| u64::from(*erases)))),
    ];
    let names: Vec<String> = drive.busy_die.keys().map(|cause| format!("busy_die_{cause}")).collect();
    columns
        .extend(names.iter().map(String::as_str).zip(drive.busy_die.values().map(|each| Column::Real(each.clone()))));
    table("drive", columns)
}
