//! NVMe/TCP on loopback without delays: random reads of 4 KiB over one connection by `nandscape bench`; client and server
//! never sleep. A rival target (SPDK's nvmf_tgt on a null bdev) is measured in turn if [`RIVAL`] names it. A target that
//! never sleeps takes a core also from the other's measurement, so each runs only while it is measured: [`START`] has the
//! rival's command.

use std::process::Command;

use anyhow::Context as _;
use serde_json::{Value, json};

use super::subject::Subject;
use super::suite::{Figure, Measured};
use super::summary::median;
use super::target::{Target, Transport, load};
use crate::say;

/// The environment variable that names a rival: `nvme-tcp://HOST:PORT/NQN`.
const RIVAL: &str = "NANDSCAPE_BENCH_NVME_TCP";
/// The environment variable with the command, in sh, that runs the rival until it is killed. Without it the rival runs
/// already.
const START: &str = "NANDSCAPE_BENCH_NVME_TCP_START";
/// Turns of a run.
const TURNS: usize = 3;
/// How long a measurement takes.
const TIMED: [&str; 6] = ["--poll", "busy", "--runtime", "3s", "--warmup-count", "20000"];

pub(crate) fn qd1(subject: &Subject) -> Measured {
    measure(subject, "1")
}

pub(crate) fn qd32(subject: &Subject) -> Measured {
    measure(subject, "32")
}

fn measure(subject: &Subject, depth: &str) -> Measured {
    let rival = std::env::var(RIVAL).ok();
    if rival.is_none() {
        say::line(&format!("no rival target is named in {RIVAL}: left out"));
    }
    let one = |target: &Target| -> anyhow::Result<Value> {
        let before = target.cpu_s()?;
        let mut report = load(Command::new(subject.program()), &target.url, depth, &TIMED)?;
        report["server_cpu_s"] = (target.cpu_s()? - before).into();
        Ok(report)
    };
    let mut turns: Vec<Vec<Value>> = Vec::new();
    for _ in 0..TURNS {
        let mut turn = vec![one(&Target::start(Command::new(subject.program()), Transport::NvmeTcp, "busy")?)?];
        if let Some(url) = &rival {
            turn.push(match std::env::var(START) {
                Ok(words) => one(&Target::rival(&words, url).with_context(|| format!("{RIVAL} and {START}"))?)?,
                Err(_) => load(Command::new(subject.program()), url, depth, &TIMED)?,
            });
        }
        turns.push(turn);
    }
    let targets = turns[0].len();
    let figures = figures(&turns, targets).context("a figure is missing")?;
    let names = ["nandscape", "rival"];
    Ok(Some((figures, json!({"targets": &names[..targets], "turns": turns}))))
}

fn figures(turns: &[Vec<Value>], targets: usize) -> Option<Vec<Figure>> {
    let all = |target: usize, name: &str| -> Option<Vec<f64>> {
        turns.iter().map(|turn| turn[target].pointer(name)?.as_f64()).collect()
    };
    let figure = |name, value, aim, more_is_better| Figure { name, value, aim, more_is_better };
    let mut figures = vec![
        figure("IOPS", median(&all(0, "/iops")?), "", true),
        figure("mean latency, us", median(&all(0, "/latency_us/read/mean")?), "", false),
        figure("p99 latency, us", median(&all(0, "/latency_us/read/p99")?), "", false),
        figure("CPU of the target, us a request", median(&cpu(turns, "/server_cpu_s")?), "", false),
        figure("CPU of the host, us a request", median(&cpu(turns, "/host/cpu_s")?), "", false),
    ];
    if targets > 1 {
        let ratios: Vec<f64> =
            all(0, "/iops")?.iter().zip(all(1, "/iops")?).map(|(ours, theirs)| ours / theirs).collect();
        figures.push(figure("rival's IOPS", median(&all(1, "/iops")?), "", true));
        figures.push(figure("IOPS / rival's", median(&ratios), "at least 0.8", true));
    }
    Some(figures)
}

/// CPU time for a request of ours, in each turn. That of the server includes the warm-up.
fn cpu(turns: &[Vec<Value>], name: &str) -> Option<Vec<f64>> {
    let of = |turn: &Vec<Value>| Some(turn[0].pointer(name)?.as_f64()? * 1e6 / turn[0]["requests"].as_f64()?);
    turns.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_neighbours() {
        let report = |iops: f64| {
            let latency = json!({"read": {"mean": 1e6 / iops, "p99": 2e6 / iops}});
            let host = json!({"cpu_s": 0.003});
            json!({"iops": iops, "requests": 1_000, "latency_us": latency, "host": host, "server_cpu_s": 0.004})
        };
        let turns = [vec![report(10.0), report(20.0)], vec![report(40.0), report(100.0)]];
        let values: Vec<f64> = figures(&turns, 2).unwrap().iter().map(|figure| figure.value).collect();
        assert_eq!((values[0], values[3], values[4]), (25.0, 4.0, 3.0));
        assert_eq!((values[5], values[6]), (60.0, 0.45));
        assert_eq!(figures(&turns, 1).unwrap().len(), 5);
        assert!(figures(&[vec![json!({})]], 1).is_none());
    }
}
