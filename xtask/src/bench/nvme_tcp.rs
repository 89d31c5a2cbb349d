//! NVMe/TCP on loopback without delays: random reads of 4 KiB over one connection by `nandscape bench`; client and server
//! never sleep. A rival target (SPDK's nvmf_tgt on a null bdev) is measured in turn if [`RIVAL`] names it. A target that
//! never sleeps takes a core also from the other's measurement, so each runs only while it is measured: [`START`] has the
//! rival's command.

use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde_json::{Value, json};

use super::instructions;
use super::subject::Subject;
use super::suite::{Figure, Measured};
use super::summary::median;
use crate::clock::Moment;
use crate::{run, say};

/// The environment variable that names a rival: `nvme-tcp://HOST:PORT/NQN`.
const RIVAL: &str = "NANDSCAPE_BENCH_NVME_TCP";
/// The environment variable with the command, in sh, that runs the rival until it is killed. Without it the rival runs
/// already.
const START: &str = "NANDSCAPE_BENCH_NVME_TCP_START";
/// Time in which a rival has to accept connections.
const PATIENCE: Duration = Duration::from_secs(30);
/// Turns of a run.
const TURNS: usize = 3;
/// Reads of the two runs whose instructions are counted.
const COUNTED: (u32, u32) = (10_000, 30_000);
/// The load of one measurement.
const READS: [&str; 5] = ["--rw", "randread", "--bs", "4k", "--json"];
const TIMED: [&str; 6] = ["--poll", "busy", "--runtime", "3s", "--warmup-count", "20000"];
/// Clock ticks a second of `/proc`'s CPU times: the same on all of Linux (USER_HZ).
const TICKS: f64 = 100.0;

pub(crate) fn qd1(subject: &Subject) -> Measured {
    measure(subject, "1")
}

pub(crate) fn qd32(subject: &Subject) -> Measured {
    measure(subject, "32")
}

/// Instructions of the target for a command, by callgrind, which makes it so slow that a host at full speed always has the
/// next commands ready: it neither sleeps nor looks in vain. Two runs of different lengths; the difference counts.
pub(crate) fn instructions(subject: &Subject) -> Measured {
    if !instructions::has_valgrind() {
        return Ok(None);
    }
    let count = |requests: u32| {
        let (command, file) = instructions::callgrind(subject);
        let target = Target::start(command, "adaptive")?;
        let words = ["--poll", "busy", "--warmup-count", "1000", "--io-count", &requests.to_string()];
        load(Command::new(subject.program()), &target.url, "32", &words)?;
        target.end()?;
        instructions::counts_in(&file)
    };
    let (short, long) = COUNTED;
    let stages = instructions::difference(&count(short)?, &count(long)?, long - short);
    let value = stages.values().sum();
    let figure = Figure { name: "instructions of the target, a read", value, aim: "", more_is_better: false };
    Ok(Some((vec![figure], json!({"requests": [short, long], "stages": stages}))))
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

impl Target {
    /// Serves, by a command that takes the arguments of `nandscape`.
    fn start(mut command: Command, poll: &str) -> anyhow::Result<Target> {
        command.args(["serve", "--drive", "default", "--set", "capacity=256MiB", "--precondition", "full"]);
        command.args(["--no-delay", "--poll", poll, "--nvme-tcp", "127.0.0.1:0"]);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
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

    /// Starts the rival, and waits until it accepts connections.
    fn rival(words: &str, url: &str) -> anyhow::Result<Target> {
        let address = url.strip_prefix("nvme-tcp://").and_then(|rest| Some(rest.split_once('/')?.0));
        let address = address.with_context(|| format!("{RIVAL}={url}: no nvme-tcp://HOST:PORT/NQN"))?;
        // The shell becomes the rival, so that killing it kills the rival.
        let mut command = Command::new("sh");
        command.args(["-c", &format!("exec {words}")]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().context("cannot run sh")?;
        let mut target = Target { child, url: url.to_owned() };
        let begun = Moment::now();
        while TcpStream::connect(address).is_err() {
            if let Some(status) = target.child.try_wait()? {
                bail!("{START}: ended with {status}: {words}");
            }
            if begun.passed() > PATIENCE {
                bail!("{START}: {address} accepts no connections after {} s: {words}", PATIENCE.as_secs());
            }
            std::thread::yield_now();
        }
        Ok(target)
    }

    /// Ends it in order.
    fn end(mut self) -> anyhow::Result<()> {
        run::output(Command::new("kill").args(["-TERM", &self.child.id().to_string()]))?;
        let status = self.child.wait()?;
        anyhow::ensure!(status.success(), "the target ended with {status}");
        Ok(())
    }

    /// CPU time so far in seconds, of all its threads.
    fn cpu_s(&self) -> anyhow::Result<f64> {
        let path = format!("/proc/{}/stat", self.child.id());
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        cpu_of(&text).with_context(|| format!("{path} has no CPU times"))
    }
}

/// User and system time of a line of `/proc/PID/stat`. The name before them is in brackets, and may hold anything.
pub(super) fn cpu_of(stat: &str) -> Option<f64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / TICKS)
}

/// Runs the load on a target.
fn load(mut command: Command, url: &str, depth: &str, words: &[&str]) -> anyhow::Result<Value> {
    command.args(["bench", "--iodepth", depth, "--to", url]).args(READS).args(words);
    let text = run::output(&mut command)?;
    serde_json::from_str(&text).with_context(|| format!("no figures: {text}"))
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
        let mut turn = vec![one(&Target::start(Command::new(subject.program()), "busy")?)?];
        if let Some(url) = &rival {
            turn.push(match std::env::var(START) {
                Ok(words) => one(&Target::rival(&words, url)?)?,
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

    #[test]
    fn cpu_times_stand_behind_a_name_that_may_hold_anything() {
        let stat = "4711 (a ) 9 b) S 1 2 3 4 5 6 7 8 9 10 250 150 0 0 20 0 4 0";
        assert_eq!(cpu_of(stat), Some(4.0));
        assert_eq!(cpu_of("4711 (a"), None);
    }
}
