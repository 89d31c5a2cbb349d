//! `nandscape trace info`.

use std::path::PathBuf;

use clap::Args;
use nandscape_lab_report::format::{bytes, count};
use nandscape_lab_trace::{Info, Spread, Stream, describe};
use nandscape_lab_workload::Direction;

use super::select::SelectWords;
use crate::failure::Failure;
use crate::output;
use crate::table::table;

/// Describe a trace: mix, sizes, rates, gaps, footprint, sequentiality, disks.
#[derive(Args)]
#[command(after_help = "\
Examples:
  nandscape trace info server.csv.gz
  nandscape trace info volumes.csv --disk 419 --window 0s..3600s --json
  zcat many.gz | nandscape trace info - --format mqsim

Exit status: 0 when described, 1 when the work fails, as on a full disk; 2 for bad usage or input that is no trace.")]
pub(crate) struct InfoArgs {
    /// The trace, compressed or not; - for standard input
    file: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    select: SelectWords,
}

/// Reads it and prints its description.
pub(crate) fn run(args: &InfoArgs) -> Result<(), Failure> {
    let trace = super::open(args.select.of(&args.file))?;
    trace.notes().iter().for_each(|note| output::note(note));
    let info = describe(&trace).map_err(super::failed)?;
    match args.json {
        true => output::result(&serde_json::to_string_pretty(&info).map_err(Failure::run)?),
        false => output::result(&render(&info)),
    }
}

fn render(info: &Info) -> String {
    let names: Vec<String> = info
        .busiest_disks
        .iter()
        .take(8)
        .map(|disk| if disk.host.is_empty() { disk.disk.clone() } else { format!("{}.{}", disk.host, disk.disk) })
        .collect();
    let more = if info.disks as usize > names.len() { ", ..." } else { "" };
    let head = format!(
        "{}: {}, {} requests, {} in {:.3} s\n{} {}: {}{more}; addresses to {}\n",
        info.trace,
        info.format,
        count(info.all.requests),
        bytes(info.all.bytes as f64),
        info.duration_s,
        count(info.disks),
        if info.disks == 1 { "disk" } else { "disks" },
        names.join(", "),
        binary(info.span_bytes),
    );
    format!("{head}\n{}", figures(info))
}

/// One row per figure, one column per direction.
fn figures(info: &Info) -> String {
    let ways = Direction::ALL.iter().filter_map(|way| info.by.get_key_value(way.name()));
    let streams: Vec<_> = [("all", &info.all)].into_iter().chain(ways.map(|(way, it)| (*way, it))).collect();
    let header: Vec<&str> = [""].into_iter().chain(streams.iter().map(|(way, _)| *way)).collect();
    let mut rows = table(&header);
    let mut row = |name: &str, figure: &dyn Fn(&Stream) -> String| {
        let cells = streams.iter().map(|(_, stream)| figure(stream));
        rows.add_row([name.to_owned()].into_iter().chain(cells));
    };
    row("requests", &|it| count(it.requests));
    row("share", &|it| format!("{:.1}%", it.share * 100.0));
    row("bytes", &|it| bytes(it.bytes as f64));
    row("rate, mean, 1/s", &|it| it.rate_mean.map_or("-".to_owned(), number));
    row("rate, busiest second, 1/s", &|it| count(it.rate_peak));
    row("bytes, busiest second", &|it| bytes(it.bytes_peak as f64));
    let size = |it: &Stream, of: &dyn Fn(&Spread) -> f64| {
        it.size_bytes.as_ref().map_or("-".to_owned(), |size| binary(of(size).round() as u64))
    };
    row("size, mean", &|it| size(it, &|size| size.mean));
    row("size, p50", &|it| size(it, &|size| size.p50));
    row("size, p99", &|it| size(it, &|size| size.p99));
    row("size, max", &|it| size(it, &|size| size.max));
    let gap =
        |it: &Stream, of: &dyn Fn(&Spread) -> f64| it.gap_us.as_ref().map_or("-".to_owned(), |gap| number(of(gap)));
    row("gap, mean, us", &|it| gap(it, &|gap| gap.mean));
    row("gap, p50, us", &|it| gap(it, &|gap| gap.p50));
    row("gap, p99, us", &|it| gap(it, &|gap| gap.p99));
    row("gap, max, us", &|it| gap(it, &|gap| gap.max));
    row("gap, deviation over mean", &|it| it.gap_variation.map_or("-".to_owned(), number));
    row("footprint, pages of 4 KiB", &|it| binary(it.footprint_bytes));
    row("sequential", &|it| format!("{:.1}%", it.sequential * 100.0));
    for place in 0..3 {
        row(if place == 0 { "most frequent sizes" } else { "" }, &|it| match it.frequent_sizes.get(place) {
            Some((size, times)) => format!("{} {:.1}%", binary(*size), *times as f64 / it.requests as f64 * 100.0),
            None => String::new(),
        });
    }
    rows.trim_fmt() + "\n"
}

fn number(figure: f64) -> String {
    match figure {
        0.0 => "0".to_owned(),
        large if large >= 1_000.0 => count(large.round() as u64),
        medium if medium >= 10.0 => format!("{medium:.1}"),
        small => format!("{small:.3}"),
    }
}

/// Sizes and addresses, in powers of 1024.
fn binary(bytes: u64) -> String {
    let units = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    match units.iter().find(|(_, shift)| bytes >= 1 << shift) {
        Some((unit, shift)) if bytes.is_multiple_of(1 << shift) => format!("{} {unit}", bytes >> shift),
        Some((unit, shift)) => format!("{:.2} {unit}", bytes as f64 / (1u64 << shift) as f64),
        None => format!("{bytes} B"),
    }
}
