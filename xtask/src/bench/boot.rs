//! Guests of `nandscape guest`: the time from the command to a shell, and a server's share of a core while its hosts, a
//! guest with a PCI device and a host over NVMe/TCP, are connected and send only keep-alives.

use std::io::{BufRead as _, BufReader, Lines};
use std::net::TcpListener;
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::Context as _;
use serde_json::json;

use super::subject::Subject;
use super::suite::{Figure, Measured};
use super::target::cpu_of;
use crate::clock::Moment;
use crate::run;

/// The drive of both.
const DRIVE: [&str; 2] = ["--set", "capacity=256MiB"];
/// Boots that are timed.
const BOOTS: usize = 3;
/// A guest prints this at the measured point of its boot.
const READY: &str = "ready";
const DONE: &str = "done";
/// The drive's name over NVMe/TCP.
const NQN: &str = "nqn.2026-11.org.example:idle";

/// `nandscape guest` with a command in the guest. Dropping it ends it, and with it guest and server.
struct Guest {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Guest {
    fn start(subject: &Subject, words: &[&str]) -> anyhow::Result<Guest> {
        let mut command = Command::new(subject.program());
        command.arg("guest").args(DRIVE).args(words).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("cannot run: {}", run::words(&command)))?;
        let lines = BufReader::new(child.stdout.take().context("its output was asked for")?).lines();
        Ok(Guest { child, lines })
    }

    /// Waits until it has printed this line. The harness of guests ends one that is stuck.
    fn expect(&mut self, line: &str) -> anyhow::Result<()> {
        let said = self.lines.next().transpose()?;
        anyhow::ensure!(said.as_deref() == Some(line), "the guest was to print {line:?}, and printed {said:?}");
        Ok(())
    }

    fn end(mut self) -> anyhow::Result<()> {
        let status = self.child.wait()?;
        anyhow::ensure!(status.success(), "nandscape guest ended with {status}");
        Ok(())
    }

    /// The process of its server: the child that runs `nandscape serve`.
    fn server(&self) -> anyhow::Result<u32> {
        let path = format!("/proc/{0}/task/{0}/children", self.child.id());
        let children = std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        let serves = |process: &u32| {
            let words = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
            words.split(|byte| *byte == 0).nth(1) == Some(b"serve")
        };
        let mut children = children.split_whitespace().filter_map(|number| number.parse().ok());
        children.find(serves).with_context(|| format!("{path} has no server"))
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// From the command to the shell; the parts of the guest were fetched before.
pub(crate) fn time(subject: &Subject) -> Measured {
    run::output(Command::new(subject.program()).args(["guest", "--prepare"]))?;
    let mut times = Vec::new();
    for _ in 0..BOOTS {
        let begun = Moment::now();
        let mut guest = Guest::start(subject, &["--run", &format!("echo {READY}")])?;
        guest.expect(READY)?;
        times.push(begun.passed().as_secs_f64());
        guest.end()?;
    }
    let longest = times.iter().copied().fold(0.0, f64::max);
    let figure =
        Figure { name: "to the shell, longest of 3, s", value: longest, aim: "below 30", more_is_better: false };
    Ok(Some((vec![figure], json!({"boot_s": times}))))
}

/// Runs in the guest: a second way to the drive, then nothing for half a minute.
fn script(port: u16) -> String {
    format!(
        "nvme connect -t tcp -a 10.0.2.2 -s {port} -n {NQN} > /dev/null || exit 1
timeout 60 sh -c 'until grep -q live /sys/class/nvme/nvme1/state; do sleep 0.1; done' || exit 1
echo {READY}
sleep 30
echo {DONE}"
    )
}

/// The processor time of the server in half a minute.
pub(crate) fn idle(subject: &Subject) -> Measured {
    // Free now, and taken by the server a moment later.
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let (script, place, nqn) = (script(port), format!("127.0.0.1:{port}"), format!("identity.nqn={NQN}"));
    let words = ["--set", &nqn, "--run", &script, "--", "--no-delay", "--nvme-tcp", &place];
    let mut guest = Guest::start(subject, &words)?;
    guest.expect(READY)?;
    let (begun, before) = (Moment::now(), cpu_s(guest.server()?)?);
    guest.expect(DONE)?;
    let (took, used) = (begun.passed().as_secs_f64(), cpu_s(guest.server()?)? - before);
    guest.end()?;
    let value = 100.0 * used / took;
    let figure = Figure { name: "CPU of the server, % of a core", value, aim: "below 1", more_is_better: false };
    Ok(Some((vec![figure], json!({"cpu_s": used, "wall_s": took}))))
}

/// CPU time of a process so far, in seconds, of all its threads.
fn cpu_s(process: u32) -> anyhow::Result<f64> {
    let path = format!("/proc/{process}/stat");
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    cpu_of(&text).with_context(|| format!("{path} has no CPU times"))
}
