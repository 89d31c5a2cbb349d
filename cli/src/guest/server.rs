//! The drive of a guest: `nandscape serve` as a separate process. So it is the same drive, and its figures survive the end
//! of QEMU.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;

use anyhow::Context as _;
use nandscape_lab_guest::processes::{self, Belonging};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::Transport;
use crate::failure::Failure;
use crate::output;

/// The name of the drive.
const NAME: &str = "drive";
/// Where it listens for QEMU, in its own folder.
const SOCKET: &str = "drive.sock";

/// A server that serves. Dropping it ends it at once.
pub(super) struct Server {
    child: Child,
    _belonging: Belonging,
    folder: TempDir,
    /// The line with the server's address.
    place: String,
    /// All output after that line.
    rest: Option<JoinHandle<String>>,
}

impl Server {
    /// Starts it, and waits until it serves.
    pub(super) fn start(transport: Transport, drive: &str, set: &[String], more: &[String]) -> Result<Server, Failure> {
        let folder =
            tempfile::tempdir().context("cannot make a folder for the drive's socket").map_err(Failure::Run)?;
        let program = std::env::current_exe().context("cannot find this program").map_err(Failure::Run)?;
        let mut command = Command::new(program);
        command.args(["serve", "--drive", &format!("{NAME}={drive}")]);
        command.args(set.iter().flat_map(|change| ["--set", change]));
        match transport {
            Transport::VfioUser => command.arg("--vfio-user").arg(folder.path().join(SOCKET)),
            Transport::NvmeTcp => command.args(["--nvme-tcp", "127.0.0.1:0"]),
        };
        command.args(more).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().context("cannot start the server of the drive").map_err(Failure::Run)?;
        let belonging = Belonging::of(&child);
        let lines = BufReader::new(child.stderr.take().expect("it was asked for")).lines();
        let (tell, told) = channel();
        let rest = std::thread::spawn(move || {
            let (mut text, mut serves) = (String::new(), false);
            for line in lines.map_while(Result::ok) {
                match line.strip_prefix("note: ") {
                    _ if line.contains("serving ") => {
                        serves = true;
                        // Only the first is waited for.
                        let _ = tell.send(line.clone());
                    }
                    // Later notes would disturb the guest's terminal.
                    Some(note) if !serves => output::note(note),
                    _ => {}
                }
                text.push_str(&line);
                text.push('\n');
            }
            text
        });
        match told.recv() {
            Ok(place) => Ok(Server { child, _belonging: belonging, folder, place, rest: Some(rest) }),
            Err(_) => Err(refused(child, rest)),
        }
    }

    /// Where it listens for QEMU.
    pub(super) fn socket(&self) -> PathBuf {
        self.folder.path().join(SOCKET)
    }

    /// The line with the server's address.
    pub(super) fn place(&self) -> &str {
        &self.place
    }

    /// Ends it in order; its figures.
    pub(super) fn stop(mut self) -> Result<String, Failure> {
        // It may have ended by itself; its status shows that.
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let mut figures = String::new();
        let out = self.child.stdout.as_mut().expect("it was asked for");
        let ended = out.read_to_string(&mut figures).and_then(|_| self.child.wait());
        let status = ended.context("cannot wait for the server of the drive").map_err(Failure::Run)?;
        let said = self.rest.take().and_then(|rest| rest.join().ok()).unwrap_or_default();
        match status.success() {
            true => Ok(figures),
            false => {
                Err(Failure::Run(anyhow::anyhow!("the server of the drive ended with {status}:\n{}", said.trim_end())))
            }
        }
    }
}

/// Why it does not serve.
fn refused(mut child: Child, rest: JoinHandle<String>) -> Failure {
    let said = rest.join().unwrap_or_default();
    let error = anyhow::anyhow!("the drive is not served: {}", said.trim().trim_start_matches("error: "));
    match child.wait().ok().and_then(|status| status.code()) {
        Some(2) => Failure::Input(error),
        _ => Failure::Run(error),
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It has ended already, mostly, or was asked to end in order.
        if !processes::are_ending() {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}
