//! NVMe/TCP on loopback without delays: random reads of 4 KiB over one connection by `nandscape bench`; client and server
//! never sleep. A rival target that runs already (SPDK's nvmf_tgt on a null bdev) is measured in turn if it is named in
//! [`RIVAL`].

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, bail};
use serde_json::{Value, json};

use super::subject::Subject;
use super::suite::{Figure, Measured};
use super::summary::median;
use crate::{run, say};

/// The environment variable that names a rival: `nvme-tcp://HOST:PORT/NQN`.
const RIVAL: &str = "NANDSCAPE_BENCH_NVME_TCP";
/// Turns of a run.
const TURNS: usize = 3;
/// The load of one measurement.
const READS: [&str; 9] = ["--rw", "randread", "--bs", "4k", "--runtime", "3s", "--warmup-count", "20000", "--json"];

pub(crate) fn qd1(subject: &Subject) -> Measured {
    measure(subject, "1")
}

pub(crate) fn qd32(subject: &Subject) -> Measured {
    measure(subject, "32")
}

/// A server, killed when dropped, and how to reach it.
struct Target {
    child: Child,
    url: String,
}

impl Drop for Target {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn start(subject: &Subject) -> anyhow::Result<Target> {
    let mut command = Command::new(subject.program());
    command.args(["serve", "--drive", "default", "--set", "capacity=256MiB", "--precondition", "full", "--no-delay"]);
    command.args(["--poll", "busy", "--nvme-tcp", "127.0.0.1:0"]).stdout(Stdio::null()).stderr(Stdio::piped());
    let words = run::words(&command);
    let mut child = command.spawn().with_context(|| format!("cannot run: {words}"))?;
    let stderr = child.stderr.take().context("its messages were asked for")?;
    let mut target = Target { child, url: String::new() };
    let mut lines = BufReader::new(stderr).lines();
    while let Some(line) = lines.next().transpose()? {
        if let Some(at) = line.find("nvme-tcp://") {
            target.url = line[at..].to_owned();
            // What it says later is read, so that it never waits for a reader.
            std::thread::spawn(move || lines.for_each(drop));
            return Ok(target);
        }
    }
    bail!("serves nothing: {words}")
}

fn measure(subject: &Subject, depth: &str) -> Measured {
    let ours = start(subject)?;
    let mut targets = vec![ours.url.clone()];
    match std::env::var(RIVAL) {
        Ok(rival) => targets.push(rival),
        Err(_) => say::line(&format!("no rival target is named in {RIVAL}: left out")),
    }
    let mut turns: Vec<Vec<Value>> = Vec::new();
    for _ in 0..TURNS {
        let one = |target: &String| {
            let mut command = Command::new(subject.program());
            command.args(["bench", "--poll", "busy", "--iodepth", depth, "--to", target]).args(READS);
            let text = run::output(&mut command)?;
            serde_json::from_str(&text).with_context(|| format!("no figures: {text}"))
        };
        turns.push(targets.iter().map(one).collect::<anyhow::Result<_>>()?);
    }
    let figures = figures(&turns, targets.len()).context("a figure is missing")?;
    let names = ["nandscape", "rival"];
    Ok(Some((figures, json!({"targets": &names[..targets.len()], "turns": turns}))))
}

fn figures(turns: &[Vec<Value>], targets: usize) -> Option<Vec<Figure>> {
    let all = |target: usize, name: &str| -> Option<Vec<f64>> {
        turns.iter().map(|turn| turn[target].pointer(name)?.as_f64()).collect()
    };
    let figure = |name, value, aim, more_is_better| Figure { name, value, aim, more_is_better };
    let mut figures = vec![
        figure("IOPS", median(&all(0, "/iops")?), "", true),
        figure("mean latency, us", median(&all(0, "/latency_us/read/mean")?), "", false),
        figure("CPU of the client, us a request", median(&cpu(turns)?), "", false),
        figure("p99 latency, us", median(&all(0, "/latency_us/read/p99")?), "", false),
    ];
    if targets > 1 {
        let ratios: Vec<f64> =
            all(0, "/iops")?.iter().zip(all(1, "/iops")?).map(|(ours, theirs)| ours / theirs).collect();
        figures.push(figure("IOPS / rival's", median(&ratios), "at least 0.8", true));
    }
    Some(figures)
}

/// CPU time of the client for a request of ours, in each turn.
fn cpu(turns: &[Vec<Value>]) -> Option<Vec<f64>> {
    let of = |turn: &Vec<Value>| Some(turn[0].pointer("/host/cpu_s")?.as_f64()? * 1e6 / turn[0]["requests"].as_f64()?);
    turns.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_neighbours() {
        let report = |iops: f64| {
            let latency = json!({"read": {"mean": 1e6 / iops, "p99": 2e6 / iops}});
            json!({"iops": iops, "requests": 1_000, "latency_us": latency, "host": {"cpu_s": 0.003}})
        };
        let turns = [vec![report(10.0), report(20.0)], vec![report(40.0), report(100.0)]];
        let values: Vec<f64> = figures(&turns, 2).unwrap().iter().map(|figure| figure.value).collect();
        assert_eq!(values[0], 25.0);
        assert_eq!((values[2], values[4]), (3.0, 0.45));
        assert_eq!(figures(&turns, 1).unwrap().len(), 4);
        assert!(figures(&[vec![json!({})]], 1).is_none());
    }
}
