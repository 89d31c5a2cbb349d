//! Runs the server.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::patience::{self, PATIENCE};

/// A small drive with little to spare, full: collectors run as soon as a few blocks are overwritten.
pub(crate) const SMALL: [&str; 14] = [
    "--drive",
    "small=default",
    "--set",
    "capacity=64MiB",
    "--set",
    "geometry.channels=2",
    "--set",
    "geometry.dies_per_channel=4",
    "--set",
    "ftl.over_provisioning=2%",
    "--set",
    "buffer.size=1MiB",
    "--precondition",
    "full",
];

/// A server that serves.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    pub(crate) folder: tempfile::TempDir,
    /// The first line with an address that it serves.
    place: String,
    /// The other lines that do.
    places: Mutex<Receiver<String>>,
    /// Its output on standard error after it has begun to serve.
    rest: Option<JoinHandle<String>>,
}

/// How a run of the program ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Server {
    /// Serves the small drive at `n.sock` in its own folder, and checks its tables at the end.
    pub(crate) fn small(more: &[&str]) -> Server {
        let folder = tempfile::tempdir().unwrap();
        let mut args: Vec<&str> = SMALL.to_vec();
        args.extend(["--nbd", "unix:n.sock", "--check", "--json"]);
        args.extend(more);
        Server::start(folder, &args)
    }

    /// Runs the program in a folder and waits until it reports that it serves.
    pub(crate) fn start(folder: tempfile::TempDir, args: &[&str]) -> Server {
        let command = command(folder.path(), args);
        Server::of(folder, command)
    }

    /// As [`Server::start`], where the program may refuse to serve.
    pub(crate) fn try_start(folder: tempfile::TempDir, args: &[&str]) -> Result<Server, Ended> {
        let command = command(folder.path(), args);
        Server::try_of(folder, command)
    }

    /// Runs a command that starts the program.
    pub(crate) fn of(folder: tempfile::TempDir, command: Command) -> Server {
        Server::try_of(folder, command).unwrap_or_else(|ended| panic!("the server does not serve: {ended:?}"))
    }

    fn try_of(folder: tempfile::TempDir, mut command: Command) -> Result<Server, Ended> {
        command.current_dir(folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (heard, rest) = listen(&mut child);
        match heard.recv_timeout(PATIENCE) {
            Ok(place) => Ok(Server { child, folder, place, places: Mutex::new(heard), rest: Some(rest) }),
            // Mostly it has ended by itself.
            Err(_) => {
                let code = patience::wait(&mut child, "the server").code();
                Err(Ended { code, out: String::new(), err: rest.join().unwrap() })
            }
        }
    }

    /// As [`Server::start`]; memory that it frees goes back to the system, also from between other memory: the C library maps
    /// large blocks on their own for good (mallopt(3), M_MMAP_THRESHOLD).
    pub(crate) fn start_measured(folder: tempfile::TempDir, args: &[&str]) -> Server {
        let mut command = command(folder.path(), args);
        command.env("MALLOC_MMAP_THRESHOLD_", "65536");
        Server::of(folder, command)
    }

    /// As [`Server::start`], with files of at most `bytes` bytes: writes beyond fail as on a full disk.
    pub(crate) fn start_limited(folder: tempfile::TempDir, args: &[&str], bytes: u64) -> Server {
        let mut command = Command::new("prlimit");
        command.arg(format!("--fsize={bytes}")).arg(env!("CARGO_BIN_EXE_nandscape")).arg("serve").args(args);
        Server::of(folder, command)
    }

    /// The folder, for the next server. This one has ended.
    pub(crate) fn keep_folder(mut self) -> tempfile::TempDir {
        std::mem::replace(&mut self.folder, tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The drive's URI.
    pub(crate) fn uri(&self) -> String {
        format!("nbd+unix:///small?socket={}", self.path("n.sock").display())
    }

    /// The URL in the first line with an address.
    pub(crate) fn url(&self) -> &str {
        self.place.split(" at ").nth(1).expect("it says where")
    }

    /// The text after `before` in one of the next lines with an address.
    pub(crate) fn next_place(&self, before: &str) -> String {
        let places = self.places.lock().unwrap();
        loop {
            let line = places.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("it does not serve {before:?}"));
            if let Some((_, place)) = line.split_once(before) {
                return place.to_owned();
            }
        }
    }

    /// The URL of its dashboard, reported before all other addresses.
    pub(crate) fn dashboard(&self) -> String {
        self.url().to_owned()
    }

    /// The number of its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Tells it to end and waits for it.
    pub(crate) fn end(mut self) -> Ended {
        self.signal(Signal::TERM);
        self.wait()
    }

    /// The same, and its folder.
    pub(crate) fn end_keeping(mut self) -> (Ended, tempfile::TempDir) {
        self.signal(Signal::TERM);
        let ended = self.wait();
        (ended, self.keep_folder())
    }

    /// Waits until it has ended.
    pub(crate) fn wait(&mut self) -> Ended {
        let out = patience::read(self.child.stdout.take());
        let code = patience::wait(&mut self.child, "the server").code();
        let out = String::from_utf8(out.join().unwrap()).unwrap();
        let err = self.rest.take().unwrap().join().unwrap();
        assert!(!err.contains("panicked"), "{err}");
        Ended { code, out, err }
    }

    /// Tells it to end, holds that it ended well, and gives its figures.
    pub(crate) fn figures(self) -> Value {
        let ended = self.end();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        serde_json::from_str(&ended.out).expect("one JSON object")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It has ended already, mostly.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `nandscape serve`, in a folder.
pub(crate) fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nandscape"));
    command.arg("serve").args(args).current_dir(folder);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Reads standard error to its end; sends each line with an address that the server serves.
fn listen(child: &mut Child) -> (Receiver<String>, JoinHandle<String>) {
    let (tell, heard) = channel();
    let err = BufReader::new(child.stderr.take().unwrap());
    let rest = std::thread::spawn(move || {
        let mut text = String::new();
        for line in err.lines() {
            let line = line.unwrap();
            if line.contains("serving ") || line.contains("dashboard at ") {
                // The receiver may be gone.
                let _ = tell.send(line.clone());
            }
            text.push_str(&line);
            text.push('\n');
        }
        text
    });
    (heard, rest)
}

/// Runs `nandscape serve` to an end that comes by itself.
pub(crate) fn refuse(folder: &Path, args: &[&str]) -> Ended {
    run(command(folder, args))
}

/// Runs `nandscape` with any words.
pub(crate) fn nandscape(folder: &Path, args: &[&str]) -> Ended {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nandscape"));
    command.args(args).current_dir(folder);
    run(command)
}

/// Runs `nandscape sim`.
pub(crate) fn sim(folder: &Path, args: &[&str]) -> Ended {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nandscape"));
    command.arg("sim").args(args).current_dir(folder);
    run(command)
}

/// Runs a program to its end.
pub(crate) fn run(mut command: Command) -> Ended {
    let output = patience::output(&mut command).unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let ended = Ended { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) };
    assert!(!ended.err.contains("panicked"), "{ended:?}");
    ended
}

/// A number of a server's figures.
pub(crate) fn number(figures: &Value, path: &str) -> f64 {
    let found = figures.pointer(path).and_then(Value::as_f64);
    found.unwrap_or_else(|| panic!("{path} is no number in {figures:#}"))
}
