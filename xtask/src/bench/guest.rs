//! Random reads of 4 KiB by fio in a Linux guest under stock QEMU, which emulates its processors (TCG): of the drive over
//! vfio-user without delays, and, in the same guest and in turn, of QEMU's own NVMe drive on `null-co`.

use std::process::Command;

use anyhow::Context as _;
use serde_json::{Value, json};

use super::subject::Subject;
use super::suite::{Figure, Measured};
use super::summary::median;
use crate::run;

/// Runs in the guest, and prints a line `DRIVE DEPTH IOPS` for each measurement. The field of fio's terse format is
/// documented in fio(1), "TERSE OUTPUT": the IOPS of reads are the eighth.
const SCRIPT: &str = r"
drive() { for d in /sys/class/nvme/nvme*; do grep -q $1 $d/model && echo /dev/${d##*/}n1; done; }
for turn in 1 2 3; do
  for depth in 1 32; do
    for model in Nandscape QEMU; do
      iops=$(fio --minimal --name=reads --filename=$(drive $model) --readonly --rw=randread --bs=4k --ioengine=libaio \
        --direct=1 --iodepth=$depth --time_based --ramp_time=1 --runtime=4 | cut -d';' -f8) || exit 1
      echo $model $depth $iops
    done
  done
done";

/// Depth 1 and depth 32.
pub(crate) fn reads(subject: &Subject) -> Measured {
    let mut command = Command::new(subject.program());
    command.args(["guest", "--set", "capacity=256MiB", "--null-drive", "256MiB", "--run", SCRIPT]);
    command.args(["--", "--no-delay", "--precondition", "full"]);
    let text = run::output(&mut command)?;
    let lines: Option<Vec<Line>> = text.lines().map(Line::parse).collect();
    let lines = lines.with_context(|| format!("the guest printed something else than figures: {text}"))?;
    let figures = figures(&lines).with_context(|| format!("a measurement is missing: {text}"))?;
    let raw: Vec<Value> = lines.iter().map(|line| json!([line.model, line.depth, line.iops])).collect();
    Ok(Some((figures, json!({"script": SCRIPT, "iops": raw}))))
}

/// A measurement.
struct Line {
    model: String,
    depth: u32,
    iops: f64,
}

impl Line {
    fn parse(line: &str) -> Option<Line> {
        let mut words = line.split_whitespace();
        let (model, depth, iops) = (words.next()?.to_owned(), words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some(Line { model, depth, iops })
    }
}

fn figures(lines: &[Line]) -> Option<Vec<Figure>> {
    let mut figures = Vec::new();
    for (depth, ours, theirs, ratio) in [
        (1, "IOPS, one at a time", "QEMU's, one at a time", "IOPS / QEMU's, one at a time"),
        (32, "IOPS, 32 at a time", "QEMU's, 32 at a time", "IOPS / QEMU's, 32 at a time"),
    ] {
        let of = |model: &str| -> Vec<f64> {
            lines.iter().filter(|line| line.model == model && line.depth == depth).map(|line| line.iops).collect()
        };
        let (mine, qemu) = (of("Nandscape"), of("QEMU"));
        if mine.is_empty() || mine.len() != qemu.len() {
            return None;
        }
        let ratios: Vec<f64> = mine.iter().zip(&qemu).map(|(mine, qemu)| mine / qemu).collect();
        figures.push(Figure { name: ours, value: median(&mine), aim: "", more_is_better: true });
        figures.push(Figure { name: theirs, value: median(&qemu), aim: "", more_is_better: true });
        figures.push(Figure { name: ratio, value: median(&ratios), aim: "at least 1", more_is_better: true });
    }
    Some(figures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_neighbours() {
        let text = "Nandscape 1 10\nQEMU 1 20\nNandscape 32 90\nQEMU 32 30\nNandscape 1 40\nQEMU 1 40\n";
        let lines: Vec<Line> = text.lines().filter_map(Line::parse).collect();
        let values: Vec<f64> = figures(&lines).unwrap().iter().map(|figure| figure.value).collect();
        assert_eq!(values, [25.0, 30.0, 0.75, 90.0, 30.0, 3.0]);
        assert!(figures(&lines[..2]).is_none() && Line::parse("fio: no such file").is_none());
    }
}
