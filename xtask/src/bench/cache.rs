//! Servers with memcached's protocol under a real client, pymemcache: the policies over four served drives, and memcached with extstore.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde_json::{Value, json};

use super::servers::Folder;
use super::subject::Subject;
use super::suite::{Figure, Measured};
use super::summary::median;
use super::target::{Target, Transport, cpu_of};
use crate::clock::Moment;
use crate::run::{output, root, words};
use crate::{python, say};

/// Turns of a run.
const TURNS: usize = 3;
/// Time in which a server has to accept clients.
const PATIENCE: Duration = Duration::from_secs(30);
/// Policies of the engine, the paper's last.
const POLICIES: [&str; 3] = ["mixed", "epochs", "gc_control"];
/// The served drives: small, so that they collect garbage within seconds.
const DRIVES: [&str; 8] =
    ["--drive", "default", "--set", "capacity=128MiB", "--set", "lba_size=4KiB", "--set", "buffer.mode=capacitor"];
/// Items, their bytes and gets; then the other client: MB/s, bytes of a value, keys, and values before the measurement, which write the
/// logs one and a half times.
const TAIL: [&str; 8] = ["6000", "4096", "20000", "--put", "24", "65536", "1000", "6000"];
/// The same for the rivals: five times the memory that they have.
const EXTSTORE: [&str; 3] = ["80000", "4096", "40000"];
/// Drives without delays that matter: both servers have their data in files of the host's cache.
const FAST: [&str; 12] = [
    "--set",
    "capacity=1GiB",
    "--set",
    "timing.read=1us",
    "--set",
    "timing.program=1us",
    "--set",
    "timing.erase=1us",
    "--set",
    "controller.firmware_time=0us",
    "--set",
    "link.latency=0us",
];

/// A server on a unix socket, killed when dropped.
struct Cache {
    child: Child,
    socket: PathBuf,
}

impl Drop for Cache {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Cache {
    /// Starts a server that listens at `socket`; `None` where it is not installed.
    fn start(mut command: Command, socket: PathBuf) -> anyhow::Result<Option<Cache>> {
        // One that was killed leaves its socket.
        let _ = std::fs::remove_file(&socket);
        let shown = words(&command);
        let child = match command.stdout(Stdio::null()).stderr(Stdio::null()).spawn() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            child => child.with_context(|| format!("cannot run: {shown}"))?,
        };
        let mut cache = Cache { child, socket };
        let begun = Moment::now();
        while UnixStream::connect(&cache.socket).is_err() {
            if let Some(status) = cache.child.try_wait()? {
                bail!("ended with {status}: {shown}");
            }
            if begun.passed() > PATIENCE {
                bail!("accepts no clients after {} s: {shown}", PATIENCE.as_secs());
            }
            std::thread::yield_now();
        }
        Ok(Some(cache))
    }

    fn nandscape(program: &Path, folder: &Folder, words: &[&str]) -> anyhow::Result<Cache> {
        let socket = folder.path("ours.sock");
        let mut command = Command::new(program);
        command.args(["memcached", "--listen", &format!("unix:{}", socket.display())]).args(words);
        Cache::start(command, socket)?.context("the program has gone")
    }

    /// Runs the clients. The report gains the server's CPU time in the meantime.
    fn load(&self, python: &Path, words: &[&str]) -> anyhow::Result<Value> {
        let before = self.cpu_s()?;
        let mut command = Command::new(python);
        command.arg(root().join("python/bench/cache.py")).arg(&self.socket).args(words);
        let text = output(&mut command)?;
        let mut report: Value = serde_json::from_str(&text).with_context(|| format!("no figures: {text}"))?;
        report["server_cpu_s"] = (self.cpu_s()? - before).into();
        Ok(report)
    }

    fn cpu_s(&self) -> anyhow::Result<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        cpu_of(&stat).context("a process has its times")
    }
}

/// The tail of gets under each policy, over four drives of `nandscape serve` processes behind NVMe/TCP, while another client stores.
pub(crate) fn tail(subject: &Subject) -> Measured {
    let (folder, python) = (Folder::new()?, python::interpreter()?);
    let mut turns: Vec<Vec<Value>> = Vec::new();
    for _ in 0..TURNS {
        let mut turn = Vec::new();
        for policy in POLICIES {
            let served = ["1", "2", "3", "4"].map(|seed| {
                let words = [&DRIVES[..], &["--seed", seed]].concat();
                Target::serve(Command::new(subject.program()), &words, Transport::NvmeTcp)
            });
            let served = served.into_iter().collect::<anyhow::Result<Vec<Target>>>()?;
            let mut words = vec!["--policy", policy, "--memory", "16MiB", "--dirty", "4MiB"];
            served.iter().for_each(|drive| words.extend(["--drive", &drive.url]));
            turn.push(Cache::nandscape(subject.program(), &folder, &words)?.load(&python, &TAIL)?);
        }
        turns.push(turn);
    }
    let figures = tails(&turns).context("a figure is missing")?;
    Ok(Some((figures, json!({"policies": POLICIES, "turns": turns}))))
}

/// The engine on two mirrored drives in files, and memcached with extstore on a file, each with 64 MiB of memory for 320 MB of items.
pub(crate) fn extstore(subject: &Subject) -> Measured {
    let (folder, python) = (Folder::new()?, python::interpreter()?);
    let (store, file) = (folder.path("store"), folder.path("extstore"));
    let (store, socket) = (store.display().to_string(), folder.path("extstore.sock"));
    let mut turns: Vec<Vec<Value>> = Vec::new();
    for _ in 0..TURNS {
        let mut command = Command::new("memcached");
        command.args(["-u", "root", "-U", "0", "-m", "64", "-t", "1", "-s"]).arg(&socket);
        command.arg("-o").arg(format!("ext_path={}:1G,ext_item_size=512", file.display()));
        let Some(rival) = Cache::start(command, socket.clone())? else {
            say::line("memcached, which cargo xtask tools installs, is missing; skipped");
            return Ok(None);
        };
        let of_rival = rival.load(&python, &EXTSTORE)?;
        drop(rival);
        let ours =
            [&["--drives", "2", "--policy", "mixed", "--memory", "64MiB", "--store", &store], &FAST[..]].concat();
        let of_ours = Cache::nandscape(subject.program(), &folder, &ours)?.load(&python, &EXTSTORE)?;
        std::fs::remove_dir_all(&store)?;
        turns.push(vec![of_ours, of_rival]);
    }
    let figures = rivals(&turns).context("a figure is missing")?;
    Ok(Some((figures, json!({"servers": ["nandscape", "memcached with extstore"], "turns": turns}))))
}

/// A number of all turns.
fn all(turns: &[Vec<Value>], server: usize, name: &str) -> Option<Vec<f64>> {
    turns.iter().map(|turn| turn[server].pointer(name)?.as_f64()).collect()
}

/// The median over turns of one number over another.
fn ratio(turns: &[Vec<Value>], (one, other): (usize, usize), name: &str) -> Option<f64> {
    let (one, other) = (all(turns, one, name)?, all(turns, other, name)?);
    Some(median(&one.iter().zip(&other).map(|(one, other)| one / other).collect::<Vec<f64>>()))
}

fn tails(turns: &[Vec<Value>]) -> Option<Vec<Figure>> {
    let figure = |name, value, aim| Figure { name, value, aim, more_is_better: false };
    let mut figures = Vec::new();
    let names = [
        ("mixed, p99, us", "mixed, p99.9, us"),
        ("epochs, p99, us", "epochs, p99.9, us"),
        ("gc_control, p99, us", "gc_control, p99.9, us"),
    ];
    for (policy, (p99, p999)) in names.into_iter().enumerate() {
        figures.push(figure(p99, median(&all(turns, policy, "/get_us/p99")?), ""));
        figures.push(figure(p999, median(&all(turns, policy, "/get_us/p99.9")?), ""));
    }
    figures.push(figure("gc_control / mixed, p99", ratio(turns, (2, 0), "/get_us/p99")?, "below 1"));
    figures.push(figure("gc_control / mixed, p99.9", ratio(turns, (2, 0), "/get_us/p99.9")?, "below 1"));
    figures.push(figure("no item, gc_control, p99.9, us", median(&all(turns, 2, "/absent_us/p99.9")?), ""));
    Some(figures)
}

fn rivals(turns: &[Vec<Value>]) -> Option<Vec<Figure>> {
    let figure = |name, value, more_is_better| Figure { name, value, aim: "", more_is_better };
    let hits = |server| Some(median(&all(turns, server, "/hits")?) / median(&all(turns, server, "/gets")?));
    Some(vec![
        figure("get p50, us", median(&all(turns, 0, "/get_us/p50")?), false),
        figure("get p50 / extstore's", ratio(turns, (0, 1), "/get_us/p50")?, false),
        figure("get p99 / extstore's", ratio(turns, (0, 1), "/get_us/p99")?, false),
        figure("time of the sets / extstore's", ratio(turns, (0, 1), "/fill_s")?, false),
        figure("CPU of the server / extstore's", ratio(turns, (0, 1), "/server_cpu_s")?, false),
        figure("hit ratio", hits(0)?, true),
        figure("extstore's hit ratio", hits(1)?, true),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(us: f64) -> Value {
        let quantiles = json!({"p50": us, "p99": 2.0 * us, "p99.9": 3.0 * us});
        json!({"gets": 10, "hits": 5, "fill_s": us, "server_cpu_s": us, "get_us": quantiles, "absent_us": quantiles})
    }

    #[test]
    fn figures_are_medians_and_ratios_of_the_same_turn() {
        let turns = [vec![report(4.0), report(2.0), report(1.0)], vec![report(9.0), report(2.0), report(3.0)]];
        let of = |figures: &[Figure], name: &str| figures.iter().find(|figure| figure.name == name).unwrap().value;
        let figures = tails(&turns).unwrap();
        assert_eq!(
            (of(&figures, "mixed, p99, us"), of(&figures, "gc_control / mixed, p99")),
            (13.0, 0.29166666666666663)
        );
        let figures = rivals(&turns).unwrap();
        assert_eq!((of(&figures, "get p50 / extstore's"), of(&figures, "hit ratio")), (3.25, 0.5));
        assert!(
            tails(&[vec![json!({}), json!({}), json!({})]]).is_none()
                && rivals(&[vec![json!({}), json!({})]]).is_none()
        );
    }
}
