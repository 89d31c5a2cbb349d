//! NBD servers on unix sockets: the program under test and reference servers, with fio as client.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde_json::Value;

use super::target::cpu_of;
use crate::clock::Moment;
use crate::run;

/// Bytes of every drive served.
const SIZE: &str = "268435456";
/// Time in which a server's socket has to appear.
const START: Duration = Duration::from_secs(30);

/// A running server. It is killed when dropped.
pub(crate) struct Server {
    child: Child,
    export: &'static str,
    socket: PathBuf,
}

/// A folder for sockets, deleted when dropped. Their paths must be short.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> anyhow::Result<Folder> {
        let folder = std::env::temp_dir().join(format!("nandscape-bench-{}", std::process::id()));
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(Folder(folder))
    }

    /// The path of a file in it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn socket(&self, name: &str) -> PathBuf {
        self.0.join(format!("{name}.sock"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // If this fails, a few sockets stay in the folder for temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Server {
    /// `nandscape serve` with these additional options.
    pub(crate) fn nandscape(folder: &Folder, program: &Path, name: &str, words: &[&str]) -> anyhow::Result<Server> {
        let socket = folder.socket(name);
        let mut command = Command::new(program);
        command.args(["serve", "--json", "--drive", "default", "--set", "capacity=256MiB", "--precondition", "full"]);
        command.args(["--set", "geometry.channels=8", "--set", "geometry.dies_per_channel=8"]);
        command.args(words).arg("--nbd").arg(format!("unix:{}", socket.display())).stdout(Stdio::piped());
        Server::start(command, "", socket)?.context("the program has gone")
    }

    /// `nandscape serve` of the default drive with these options.
    pub(crate) fn plain(folder: &Folder, program: &Path, name: &str, words: &[&str]) -> anyhow::Result<Server> {
        Server::serve(folder, program, name, &[&["--drive", "default"], words].concat())
    }

    /// `nandscape serve` with these options.
    pub(crate) fn serve(folder: &Folder, program: &Path, name: &str, words: &[&str]) -> anyhow::Result<Server> {
        let socket = folder.socket(name);
        // One that was killed leaves its socket.
        let _ = std::fs::remove_file(&socket);
        let mut command = Command::new(program);
        command.args(["serve", "--json"]).args(words);
        command.arg("--nbd").arg(format!("unix:{}", socket.display())).stdout(Stdio::piped());
        Server::start(command, "", socket)?.context("the program has gone")
    }

    /// Processor time that it has taken, in seconds.
    pub(crate) fn cpu_s(&self) -> anyhow::Result<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        cpu_of(&stat).context("a process has its times")
    }

    /// nbdkit with its memory plugin; `None` where it is not installed.
    pub(crate) fn nbdkit(folder: &Folder) -> anyhow::Result<Option<Server>> {
        let socket = folder.socket("nbdkit");
        let mut command = Command::new("nbdkit");
        command.args(["--foreground", "--unix"]).arg(&socket).args(["memory", SIZE]).stdout(Stdio::null());
        Server::start(command, "", socket)
    }

    /// QEMU's storage daemon on a device that stores nothing; `None` if it is not installed.
    pub(crate) fn qemu(folder: &Folder) -> anyhow::Result<Option<Server>> {
        let socket = folder.socket("qemu");
        let mut command = Command::new("qemu-storage-daemon");
        command.arg("--blockdev").arg(format!("driver=null-co,node-name=null,size={SIZE},read-zeroes=on"));
        command.arg("--nbd-server").arg(format!("addr.type=unix,addr.path={}", socket.display()));
        command.args(["--export", "type=nbd,id=null,node-name=null,name=null,writable=on"]).stdout(Stdio::null());
        Server::start(command, "null", socket)
    }

    fn start(mut command: Command, export: &'static str, socket: PathBuf) -> anyhow::Result<Option<Server>> {
        let words = run::words(&command);
        let child = match command.stderr(Stdio::null()).spawn() {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            child => child.with_context(|| format!("cannot run: {words}"))?,
        };
        let mut server = Server { child, export, socket };
        let begun = Moment::now();
        while !server.socket.exists() {
            if server.child.try_wait()?.is_some() || begun.passed() > START {
                bail!("serves nothing: {words}");
            }
            std::thread::yield_now();
        }
        Ok(Some(server))
    }

    /// Runs fio against it with these options. Returns its report of reads, or of writes if it only writes.
    pub(crate) fn fio(&self, words: &[&str]) -> anyhow::Result<Option<Value>> {
        let mut command = Command::new("fio");
        command.args(["--name=bench", "--ioengine=nbd", "--output-format=json", "--randrepeat=1", "--size", SIZE]);
        command.arg(format!("--uri=nbd+unix:///{}?socket={}", self.export, self.socket.display())).args(words);
        let output = match command.output() {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            output => output.context("cannot run fio")?,
        };
        let text = String::from_utf8_lossy(&output.stdout);
        // Notes come first.
        let json = text.find('{').map_or("", |start| &text[start..]);
        let report: Value = serde_json::from_str(json)
            .with_context(|| format!("fio fails: {}", String::from_utf8_lossy(&output.stderr)))?;
        let job = report.pointer("/jobs/0").context("fio reports no job")?;
        Ok(Some(if job["read"]["total_ios"] == 0 { job["write"].clone() } else { job["read"].clone() }))
    }

    /// Stops `nandscape serve` properly, to get its figures.
    pub(crate) fn end(mut self) -> anyhow::Result<Value> {
        run::output(Command::new("kill").args(["-TERM", &self.child.id().to_string()]))?;
        let mut text = String::new();
        let mut stdout = self.child.stdout.take().context("its output was not asked for")?;
        std::io::Read::read_to_string(&mut stdout, &mut text)?;
        serde_json::from_str(&text).context("the server's figures are no JSON")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
