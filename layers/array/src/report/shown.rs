//! The figures of an array as text and as JSON.

use nandscape_drive::layer::{LayerReport, Shown};
use nandscape_sim::figures::{bytes, count, percent};
use nandscape_sim::units::Bytes;

use super::{ArrayReport, RailsReport};

impl LayerReport for ArrayReport {
    fn key(&self) -> &'static str {
        "array"
    }

    fn json(&self) -> String {
        serde_json::to_string(self).expect("plain data")
    }

    /// By level and members.
    fn called(&self) -> Option<&str> {
        Some(&self.array)
    }

    fn settings(&self) -> String {
        format!("{}, chunks of {}", self.technique, Bytes(self.chunk_bytes))
    }

    fn shown(&self) -> Vec<Shown> {
        match &self.rails {
            Some(rails) => vec![Shown::Line(roles(rails))],
            None => vec![busy(self), Shown::Line(reads(self)), Shown::Line(writes(self))],
        }
    }
}

fn roles(rails: &RailsReport) -> String {
    let (swaps, most) = (count(rails.swaps), bytes(rails.most_missed_bytes as f64));
    format!("{swaps} changes of roles; at most {most} of writes in the host's memory")
}

/// Busy sub-I/Os of a stripe read.
fn busy(array: &ArrayReport) -> Shown {
    let all = array.stripe_reads.max(1) as f64;
    let row = |(busy, reads): (usize, &u64)| vec![busy.to_string(), count(*reads), percent(*reads as f64 / all)];
    Shown::Table {
        head: vec!["busy sub-I/Os of a stripe read", "stripe reads", "share"],
        rows: array.busy_sub_ios.iter().enumerate().map(row).collect(),
    }
}

fn reads(array: &ArrayReport) -> String {
    format!(
        "{} reads sent for {} stripe reads: {} extra, {} resubmitted; {} reconstructed",
        count(array.reads),
        count(array.stripe_reads),
        count(array.extra_reads),
        count(array.resubmissions),
        count(array.reconstructions)
    )
}

fn writes(array: &ArrayReport) -> String {
    let rebuilt = match array.stripes_rebuilt {
        0 => String::new(),
        stripes => format!("; those of {} rebuilt stripes are among them", count(stripes)),
    };
    format!(
        "{} writes and {} reads sent for {} stripe writes: {} whole, {} by read-modify-write, {} by reconstruct-write, {} without parity{rebuilt}",
        count(array.writes),
        count(array.reads_for_writes),
        count(array.stripe_writes),
        count(array.full_writes),
        count(array.read_modify_writes),
        count(array.reconstruct_writes),
        count(without_parity(array))
    )
}

/// Stripe writes that wrote none: their level has none, or it is on a member that is missing, or cannot fit any more.
fn without_parity(array: &ArrayReport) -> u64 {
    let with = array.full_writes + array.read_modify_writes + array.reconstruct_writes;
    array.stripe_writes.saturating_sub(with)
}
