//! The cost of a client with large reads to a client with small ones: our server, and nbdkit's memory plugin, in turn.
//!
//! The small client reads 4 KiB at a time, 1,000 times a second. Both servers have the same load in the same session;
//! every figure is next to the rival's, since other work on the machine makes both late.

use anyhow::Context as _;
use serde_json::{Value, json};

use super::servers::{Folder, Server};
use super::subject::Subject;
use super::suite::{Figure, Measured};
use super::summary::median;
use crate::say;

/// Turns of a run.
const TURNS: usize = 3;
/// The small client, in fio's words.
const SMALL: [&str; 7] =
    ["--rw=randread", "--bs=4k", "--iodepth=1", "--rate_iops=1000", "--time_based", "--runtime=3", "--ramp_time=0.5"];
/// The large client runs a little longer.
const LARGE: [&str; 3] = ["--rw=read", "--time_based", "--runtime=4"];

pub(crate) fn reads_of_1m(subject: &Subject) -> Measured {
    beside(subject, &["--bs=1m", "--iodepth=8"])
}

pub(crate) fn reads_of_32m(subject: &Subject) -> Measured {
    beside(subject, &["--bs=32m", "--iodepth=2"])
}

fn beside(subject: &Subject, large: &[&str]) -> Measured {
    let folder = Folder::new()?;
    let ours = Server::nandscape(&folder, subject.program(), "nandscape", &["--no-delay"])?;
    let Some(nbdkit) = Server::nbdkit(&folder)? else {
        say::line("nbdkit is not there: left out");
        return Ok(None);
    };
    let large = [&LARGE[..], large].concat();
    let mut turns = Vec::new();
    for _ in 0..TURNS {
        let mut turn = Vec::new();
        for server in [&ours, &nbdkit] {
            // What was never written is read without flash, and from nbdkit without memory.
            if turns.is_empty() && server.fio(&["--rw=write", "--bs=1m"])?.is_none() {
                say::line("fio is not there: left out");
                return Ok(None);
            }
            let both = std::thread::scope(|scope| {
                let large = scope.spawn(|| server.fio(&large));
                let small = server.fio(&SMALL)?;
                let large = large.join().expect("it does not panic")?;
                anyhow::Ok(small.zip(large))
            });
            turn.push(both?.context("fio has gone")?);
        }
        turns.push(turn);
    }
    let figures = figures(&turns).context("fio reports no latency")?;
    let turns: Vec<Value> = turns
        .iter()
        .map(|turn| turn.iter().map(|(small, large)| json!({"small": small, "large": large})).collect())
        .collect();
    Ok(Some((figures, json!({"servers": ["nandscape", "nbdkit memory"], "turns": turns}))))
}

/// Reports of the small and of the large client.
type Both = (Value, Value);

fn figures(turns: &[Vec<Both>]) -> Option<Vec<Figure>> {
    let all = |server: usize, figure: fn(&Both) -> Option<f64>| {
        turns.iter().map(|turn| figure(&turn[server])).collect::<Option<Vec<f64>>>()
    };
    let p99_us = |(small, _): &Both| Some(small.pointer("/clat_ns/percentile/99.000000")?.as_f64()? / 1e3);
    let mean_us = |(small, _): &Both| Some(small.pointer("/clat_ns/mean")?.as_f64()? / 1e3);
    let rate = |(small, _): &Both| small.pointer("/iops")?.as_f64();
    let large_mb_s = |(_, large): &Both| Some(large.pointer("/bw_bytes")?.as_f64()? / 1e6);
    let ratio = |figure| {
        let (ours, theirs) = (all(0, figure)?, all(1, figure)?);
        Some(median(&ours.iter().zip(&theirs).map(|(ours, theirs)| ours / theirs).collect::<Vec<f64>>()))
    };
    let figure = |name, value, aim, more_is_better| Figure { name, value, aim, more_is_better };
    Some(vec![
        figure("small p99, us", median(&all(0, p99_us)?), "", false),
        figure("small p99 / nbdkit's", ratio(p99_us)?, "at most 2", false),
        figure("small mean / nbdkit's", ratio(mean_us)?, "at most 2", false),
        figure("small IOPS / nbdkit's", ratio(rate)?, "1", true),
        figure("large, MB/s", median(&all(0, large_mb_s)?), "", true),
        figure("large / nbdkit's", ratio(large_mb_s)?, "", true),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_stand_beside_those_of_the_same_turn() {
        let both = |p99: f64, rate: f64| {
            let small = json!({"clat_ns": {"mean": 1e3, "percentile": {"99.000000": p99 * 1e3}}, "iops": rate});
            (small, json!({"bw_bytes": 2e9}))
        };
        let turns = [vec![both(4.0, 1_000.0), both(2.0, 500.0)], vec![both(9.0, 1_000.0), both(3.0, 1_000.0)]];
        let values: Vec<f64> = figures(&turns).unwrap().iter().map(|figure| figure.value).collect();
        assert_eq!(values[1..], [2.5, 1.0, 1.5, 2_000.0, 1.0]);
        assert!(figures(&[vec![(json!({}), json!({})), both(1.0, 1.0)]]).is_none());
    }
}
