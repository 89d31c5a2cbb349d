//! Benchmarks of drives in real time. Server and reference server run in turn within each run, several times; a ratio
//! is the median over neighbouring measurements.
//!
//! Real-time figures also depend on the machine: whenever it runs other work on a processor, every server is late. So
//! lateness is shown next to that of a loop that only reads the clock, run in turn with it.

use anyhow::Context as _;
use serde_json::{Value, json};

use super::servers::{Folder, Server};
use super::subject::Subject;
use super::suite::{Figure, Measured};
use super::summary::median;
use crate::clock::Moment;
use crate::say;

/// Turns of a run.
const TURNS: usize = 3;
/// fio's options for a turn.
const READS: [&str; 5] = ["--rw=randread", "--bs=4k", "--time_based", "--runtime=2", "--ramp_time=0.5"];
/// Both servers of `nbd-delay` never sleep, so that the difference is the delay and not a wake-up.
const AWAKE: [&str; 2] = ["--poll", "busy"];
/// Zeroes everything but the flash read.
const ONLY_READS: [&str; 10] = [
    "--set",
    "timing.read=50us",
    "--set",
    "timing.bus=unlimited",
    "--set",
    "link.latency=0us",
    "--set",
    "link.bandwidth=unlimited",
    "--set",
    "controller.firmware_time=0us",
];

pub(crate) fn nbd_qd1(subject: &Subject) -> Measured {
    against_rivals(subject, "--iodepth=1")
}

pub(crate) fn nbd_qd32(subject: &Subject) -> Measured {
    against_rivals(subject, "--iodepth=32")
}

fn mean_us(report: &Value) -> Option<f64> {
    Some(report.pointer("/lat_ns/mean")?.as_f64()? / 1e3)
}

fn iops(report: &Value) -> Option<f64> {
    report.pointer("/iops")?.as_f64()
}

/// The median over turns of one server's figure, and of its ratio to the first server's.
fn compare(turns: &[Vec<Value>], server: usize, figure: fn(&Value) -> Option<f64>) -> Option<(f64, f64)> {
    let all = |server: usize| turns.iter().map(|turn| figure(&turn[server])).collect::<Option<Vec<f64>>>();
    let (ours, theirs) = (all(0)?, all(server)?);
    let ratios: Vec<f64> = ours.iter().zip(&theirs).map(|(ours, theirs)| ours / theirs).collect();
    Some((median(&theirs), median(&ratios)))
}

fn against_rivals(subject: &Subject, depth: &str) -> Measured {
    let folder = Folder::new()?;
    let ours = Server::nandscape(&folder, subject.program(), "nandscape", &["--no-delay"])?;
    let Some(nbdkit) = Server::nbdkit(&folder)? else { return missing("nbdkit") };
    let mut servers = vec![("nandscape", ours), ("nbdkit memory", nbdkit)];
    match Server::qemu(&folder)? {
        Some(qemu) => servers.push(("qemu-storage-daemon null-co", qemu)),
        None => say::line("qemu-storage-daemon is not installed (qemu-system-common): left out"),
    }
    for (_, server) in &servers {
        if server.fio(&["--rw=write", "--bs=1m"])?.is_none() {
            return missing("fio");
        }
    }
    let words = [&READS[..], &[depth]].concat();
    let mut turns = Vec::new();
    for _ in 0..TURNS {
        let turn: anyhow::Result<Option<Vec<Value>>> = servers.iter().map(|(_, server)| server.fio(&words)).collect();
        turns.push(turn?.context("fio has gone")?);
    }
    let figures = figures(&turns, servers.len()).context("fio reports no latency")?;
    let names: Vec<&str> = servers.iter().map(|(name, _)| *name).collect();
    Ok(Some((figures, json!({"servers": names, "turns": turns}))))
}

fn figures(turns: &[Vec<Value>], servers: usize) -> Option<Vec<Figure>> {
    let (latency, rate) = (compare(turns, 0, mean_us)?.0, compare(turns, 0, iops)?.0);
    let figure = |name, value, aim, more_is_better| Figure { name, value, aim, more_is_better };
    let mut figures = vec![
        figure("mean latency, us", latency, "", false),
        figure("IOPS", rate, "", true),
        figure("latency / nbdkit's", compare(turns, 1, mean_us)?.1, "at most 1.3", false),
        figure("IOPS / nbdkit's", compare(turns, 1, iops)?.1, "at least 1", true),
    ];
    if servers > 2 {
        figures.push(figure("latency / qemu's", compare(turns, 2, mean_us)?.1, "", false));
        figures.push(figure("IOPS / qemu's", compare(turns, 2, iops)?.1, "1 aimed at", true));
    }
    Some(figures)
}

pub(crate) fn nbd_delay(subject: &Subject) -> Measured {
    let (mut turns, mut servers, mut idle) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..TURNS {
        let mut turn = Vec::new();
        for words in [&ONLY_READS[..], &["--no-delay"]] {
            let Some((report, server)) = alone(subject, words)? else { return missing("fio") };
            turn.push(report);
            servers.push(server);
        }
        turns.push(turn);
        idle.extend(idle_lateness_us(2.0));
    }
    let (with, without) = (compare(&turns, 0, mean_us), compare(&turns, 1, mean_us));
    let ((with, _), (without, _)) = with.zip(without).context("fio reports no latency")?;
    let lag = |server: &Value| server.pointer("/timing/release_lag_us/p99").and_then(Value::as_f64);
    let lags: Option<Vec<f64>> = servers.iter().step_by(2).map(lag).collect();
    let lag = median(&lags.context("the server reports no release lag")?);
    idle.sort_unstable_by(f64::total_cmp);
    let idle = idle[idle.len() * 99 / 100];
    let figure = |name, value, aim| Figure { name, value, aim, more_is_better: false };
    let figures = vec![
        figure("mean latency, us", with, ""),
        figure("without delay, us", without, ""),
        figure("more than 50 us added, us", with - without - 50.0, "at most 5"),
        figure("release lag p99, us", lag, ""),
        figure("idle loop's lateness p99, us", idle, ""),
        figure("release lag / idle loop's", lag / idle, "at most 2"),
    ];
    Ok(Some((figures, json!({"turns": turns, "idle_p99_us": idle, "servers": servers}))))
}

/// One server per measurement: two spinning servers would compete for a core. Returns fio's report and the server's.
fn alone(subject: &Subject, words: &[&str]) -> anyhow::Result<Option<(Value, Value)>> {
    let folder = Folder::new()?;
    let server = Server::nandscape(&folder, subject.program(), "nandscape", &[&AWAKE[..], words].concat())?;
    match server.fio(&[&READS[..], &["--iodepth=1"]].concat())? {
        Some(report) => Ok(Some((report, server.end()?))),
        None => Ok(None),
    }
}

/// The lateness of a loop that only reads the clock, for deadlines 50 us apart.
fn idle_lateness_us(seconds: f64) -> Vec<f64> {
    let begun = Moment::now();
    let mut late = Vec::new();
    let mut now = 0.0;
    while now < seconds {
        let deadline = now + 50e-6;
        while now < deadline {
            now = begun.passed().as_secs_f64();
        }
        late.push((now - deadline) * 1e6);
    }
    late
}

pub(crate) fn ring_64(subject: &Subject) -> Measured {
    let Some(outcome) = subject.claim("femu-scalability")? else { return missing("the command lab") };
    let value = |name: &str| {
        let figures = outcome["points"][0]["figures"].as_array()?;
        figures.iter().find(|figure| figure["name"] == name)?["value"].as_f64()
    };
    let rate = value("reads a second, 64 in flight").context("the claim gives no rate")?;
    let latency = value("mean latency, 64 in flight").context("the claim gives no latency")?;
    let figures = vec![
        Figure { name: "reads a second", value: rate, aim: "0.71 M at least", more_is_better: true },
        Figure { name: "mean latency, us", value: latency, aim: "below 90", more_is_better: false },
    ];
    Ok(Some((figures, outcome)))
}

fn missing(what: &str) -> Measured {
    say::line(&format!("{what} is not there: left out"));
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_neighbours() {
        let report = |mean: f64, iops: f64| json!({"lat_ns": {"mean": mean * 1e3}, "iops": iops});
        let turn = |ours: f64, theirs: f64| vec![report(ours, 1.0 / ours), report(theirs, 1.0 / theirs)];
        let turns = [turn(10.0, 20.0), turn(40.0, 100.0), turn(10.0, 10.0)];
        assert_eq!(compare(&turns, 1, mean_us), Some((20.0, 0.5)));
        let values: Vec<f64> = figures(&turns, 2).unwrap().iter().map(|figure| figure.value).collect();
        assert_eq!(values, [10.0, 0.1, 0.5, 2.0]);
        assert_eq!(compare(&[vec![json!({})]], 0, mean_us), None);
    }

    #[test]
    fn an_idle_loop_is_never_early() {
        assert!(idle_lateness_us(0.001).iter().all(|late| *late >= 0.0));
    }
}
