//! Servers of one drive that `nandscape bench` reaches by a URL, and the load.

use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde_json::Value;

use super::servers::Folder;
use crate::clock::Moment;
use crate::run;

/// Time in which a rival has to accept connections.
const PATIENCE: Duration = Duration::from_secs(30);
/// The load of one measurement.
const READS: [&str; 5] = ["--rw", "randread", "--bs", "4k", "--json"];
/// Clock ticks a second of `/proc`'s CPU times: the same on all of Linux (USER_HZ).
const TICKS: f64 = 100.0;

/// How the host reaches it.
#[derive(Copy, Clone)]
pub(super) enum Transport<'a> {
    /// A port of the loopback that the system chooses.
    NvmeTcp,
    /// A socket in a folder.
    VfioUser(&'a Folder),
}

/// A server, killed when dropped, and how to reach it.
pub(super) struct Target {
    child: Child,
    pub(super) url: String,
}

impl Drop for Target {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Target {
    /// Serves a full drive without delays, by a command that takes the arguments of `nandscape`.
    pub(super) fn start(command: Command, transport: Transport<'_>, poll: &str) -> anyhow::Result<Target> {
        let drive = ["--drive", "default", "--set", "capacity=256MiB", "--precondition", "full"];
        Target::serve(command, &[&drive[..], &["--no-delay", "--poll", poll]].concat(), transport)
    }

    /// Serves with these options.
    pub(super) fn serve(mut command: Command, words: &[&str], transport: Transport<'_>) -> anyhow::Result<Target> {
        command.arg("serve").args(words);
        // The server prints a line with its address when it serves.
        let address = match transport {
            Transport::NvmeTcp => {
                command.args(["--nvme-tcp", "127.0.0.1:0"]);
                "nvme-tcp://".to_owned()
            }
            Transport::VfioUser(folder) => {
                let socket = folder.path("function");
                // One that was killed leaves its socket.
                let _ = std::fs::remove_file(&socket);
                command.arg("--vfio-user").arg(&socket);
                socket.display().to_string()
            }
        };
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let words = run::words(&command);
        let mut child = command.spawn().with_context(|| format!("cannot run: {words}"))?;
        let stderr = child.stderr.take().context("its messages were asked for")?;
        let mut target = Target { child, url: String::new() };
        let mut lines = BufReader::new(stderr).lines();
        while let Some(line) = lines.next().transpose()? {
            if let Some(at) = line.find(&address) {
                target.url = match transport {
                    Transport::NvmeTcp => line[at..].to_owned(),
                    Transport::VfioUser(_) => format!("vfio-user://{address}"),
                };
                // Later output is read and dropped, so that the server never waits for a reader.
                std::thread::spawn(move || lines.for_each(drop));
                return Ok(target);
            }
        }
        bail!("serves nothing: {words}")
    }

    /// Starts the rival, and waits until it accepts connections.
    pub(super) fn rival(words: &str, url: &str) -> anyhow::Result<Target> {
        let address = url.strip_prefix("nvme-tcp://").and_then(|rest| Some(rest.split_once('/')?.0));
        let address = address.with_context(|| format!("{url}: no nvme-tcp://HOST:PORT/NQN"))?;
        // The shell becomes the rival, so that killing it kills the rival.
        let mut command = Command::new("sh");
        command.args(["-c", &format!("exec {words}")]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().context("cannot run sh")?;
        let mut target = Target { child, url: url.to_owned() };
        let begun = Moment::now();
        while TcpStream::connect(address).is_err() {
            if let Some(status) = target.child.try_wait()? {
                bail!("the rival ended with {status}: {words}");
            }
            if begun.passed() > PATIENCE {
                bail!("{address} accepts no connections after {} s: {words}", PATIENCE.as_secs());
            }
            std::thread::yield_now();
        }
        Ok(target)
    }

    /// Ends it in order.
    pub(super) fn end(mut self) -> anyhow::Result<()> {
        run::output(Command::new("kill").args(["-TERM", &self.child.id().to_string()]))?;
        let status = self.child.wait()?;
        anyhow::ensure!(status.success(), "the target ended with {status}");
        Ok(())
    }

    /// CPU time so far in seconds, of all its threads.
    pub(super) fn cpu_s(&self) -> anyhow::Result<f64> {
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
pub(super) fn load(mut command: Command, url: &str, depth: &str, words: &[&str]) -> anyhow::Result<Value> {
    command.args(["bench", "--iodepth", depth, "--to", url]).args(READS).args(words);
    let text = run::output(&mut command)?;
    serde_json::from_str(&text).with_context(|| format!("no figures: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_times_stand_behind_a_name_that_may_hold_anything() {
        let stat = "4711 (a ) 9 b) S 1 2 3 4 5 6 7 8 9 10 250 150 0 0 20 0 4 0";
        assert_eq!(cpu_of(stat), Some(4.0));
        assert_eq!(cpu_of("4711 (a"), None);
    }
}
