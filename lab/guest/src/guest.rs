//! A guest that runs commands, one after the other.
//!
//! Commands go to QEMU's standard input, and their output comes from its standard output ([`init.sh`](crate::image) has
//! the other end). The console goes to a file, whose last lines are part of every error. When this process ends, the
//! guest loses its input, and powers off.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use tempfile::TempDir;

use crate::error::{GuestError, last_lines};
use crate::kit::Kit;
use crate::machine::{CONSOLE, Machine, Mode};
use crate::processes::Belonging;
use crate::pulse::Pulse;
use crate::saved;

/// Begins the line after a command's output: with the number of the command and its exit status.
pub(crate) const MARK: &str = "\u{1e}ended";
/// The interval between checks of a silent guest.
const LOOK: Duration = Duration::from_secs(1);
/// Lines of an error.
const LAST_LINES: usize = 60;

/// A running guest. Dropping it ends it without warning, as [`Guest::kill`].
pub struct Guest {
    qemu: Child,
    _belonging: Belonging,
    /// Closed to power off.
    commands: Option<ChildStdin>,
    output: Receiver<Vec<u8>>,
    folder: TempDir,
    /// The number of the last command.
    number: u64,
    /// The output of the command in progress.
    text: Vec<u8>,
}

/// How a command ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Output {
    /// Its exit status.
    pub status: i32,
    /// Standard output and standard error, in the order in which they were written, without the last line break.
    pub text: String,
}

impl Guest {
    pub(crate) fn start(machine: &Machine, kit: &Kit) -> Result<Guest, GuestError> {
        // Where a start cannot be saved, as on a full disk, or not be continued, the guest boots.
        let saved = saved::fits(machine).then(|| kit.saved()).flatten();
        if let Some(saved) = saved {
            match Guest::loaded(machine, kit, &saved) {
                Ok(guest) => return guest.arrived(machine),
                Err(_) => kit.discard(&saved),
            }
        }
        let folder = Guest::folder()?;
        Guest::booted(machine.qemu(kit, folder.path(), Mode::Commands)?, folder)
    }

    /// Loads a saved start, until the guest answers.
    fn loaded(machine: &Machine, kit: &Kit, saved: &Path) -> Result<Guest, GuestError> {
        let folder = Guest::folder()?;
        let mut command = machine.bare(kit, folder.path(), Mode::Commands);
        command.arg("-incoming").arg(saved::channel(saved).to_string());
        let mut guest = Guest::spawn(command, folder)?;
        guest.send("true")?;
        guest.wait("the load of its saved start", &mut |_| ()).map(|_| guest)
    }

    /// Makes one that was loaded as one that has booted with these devices and files.
    fn arrived(mut self, machine: &Machine) -> Result<Guest, GuestError> {
        self.send(&saved::arrival(machine)?)?;
        let Output { status, text } = self.wait("its start", &mut |_| ())?;
        match status {
            0 => Ok(self),
            status => Err(GuestError::Command { command: "its start".to_owned(), status, output: text }),
        }
    }

    fn folder() -> Result<TempDir, GuestError> {
        tempfile::tempdir().map_err(GuestError::system("cannot make a folder for the guest"))
    }

    /// Starts one that boots.
    pub(crate) fn booted(command: Command, folder: TempDir) -> Result<Guest, GuestError> {
        let mut guest = Guest::spawn(command, folder)?;
        guest.wait("its start", &mut |_| ())?;
        Ok(guest)
    }

    fn spawn(mut command: Command, folder: TempDir) -> Result<Guest, GuestError> {
        // QEMU's own messages belong to the end of the console.
        let errors =
            fs::File::create(folder.path().join("errors")).map_err(GuestError::file("write to", folder.path()))?;
        let qemu = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(errors).spawn();
        let mut qemu = qemu.map_err(GuestError::system("cannot run QEMU"))?;
        let (commands, mut out) = (qemu.stdin.take(), qemu.stdout.take().expect("it was asked for"));
        let (send, output) = channel();
        let _belonging = Belonging::of(&qemu);
        let guest = Guest { qemu, _belonging, commands, output, folder, number: 0, text: Vec::new() };
        let read = move || {
            let mut chunk = vec![0; 1 << 16];
            while let Ok(length @ 1..) = out.read(&mut chunk) {
                if send.send(chunk[..length].to_vec()).is_err() {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("guest's output".to_owned()).spawn(read);
        thread.map_err(GuestError::system("cannot start a thread"))?;
        Ok(guest)
    }

    /// Runs a command, in sh, and returns its output.
    ///
    /// # Errors
    /// [`GuestError::Command`] when its exit status is not 0; others when the guest ends or gets stuck.
    pub fn run(&mut self, command: &str) -> Result<String, GuestError> {
        let Output { status, text } = self.attempt(command)?;
        match status {
            0 => Ok(text),
            status => Err(GuestError::Command { command: command.to_owned(), status, output: text }),
        }
    }

    /// Runs a command that may fail.
    ///
    /// # Errors
    /// When the guest ends or gets stuck.
    pub fn attempt(&mut self, command: &str) -> Result<Output, GuestError> {
        self.attempt_with(command, &mut |_| ())
    }

    /// As [`Guest::attempt`]; `line` gets each line of output when it is complete.
    ///
    /// # Errors
    /// When the guest ends or gets stuck.
    pub fn attempt_with(&mut self, command: &str, line: &mut dyn FnMut(&str)) -> Result<Output, GuestError> {
        self.send(command)?;
        self.wait(&format!("`{command}`"), line)
    }

    fn send(&mut self, command: &str) -> Result<(), GuestError> {
        self.number += 1;
        let message = format!("{} {}\n{command}", self.number, command.len());
        let commands = self.commands.as_mut();
        let sent = commands.map(|commands| commands.write_all(message.as_bytes()).and_then(|()| commands.flush()));
        match sent {
            Some(Ok(())) => Ok(()),
            Some(Err(_)) | None => Err(self.ended(&format!("`{command}`"))),
        }
    }

    /// Flushes caches, powers off, and waits for the end of QEMU.
    ///
    /// # Errors
    /// When it does not end.
    pub fn power_off(mut self) -> Result<ExitStatus, GuestError> {
        self.run("sync")?;
        self.commands = None;
        self.wait_for_end("its power-off")?;
        self.qemu.wait().map_err(GuestError::system("cannot wait for QEMU"))
    }

    /// Ends QEMU at once: the machine with its devices vanishes.
    pub fn kill(mut self) {
        self.end();
    }

    /// Output of the guest's kernel and its first process so far.
    pub fn console(&self) -> String {
        let read = |name| fs::read(self.folder.path().join(name)).unwrap_or_default();
        String::from_utf8_lossy(&[read(CONSOLE), read("errors")].concat()).into_owned()
    }

    /// QEMU's process.
    pub fn process_id(&self) -> u32 {
        self.qemu.id()
    }

    /// Waits until the last command has ended.
    fn wait(&mut self, during: &str, line: &mut dyn FnMut(&str)) -> Result<Output, GuestError> {
        let mut pulse = Pulse::of(self.qemu.id());
        let mut passed = 0;
        loop {
            if let Some(output) = self.completed(&mut passed, line) {
                return Ok(output);
            }
            if !self.receive(&mut pulse, during)? {
                return Err(self.ended(during));
            }
        }
    }

    fn wait_for_end(&mut self, during: &str) -> Result<(), GuestError> {
        let mut pulse = Pulse::of(self.qemu.id());
        while self.receive(&mut pulse, during)? {}
        Ok(())
    }

    /// Receives output, or checks the guest after a silent interval; `false` when it has ended.
    fn receive(&mut self, pulse: &mut Pulse, during: &str) -> Result<bool, GuestError> {
        match self.output.recv_timeout(LOOK) {
            Ok(chunk) => {
                self.text.extend(chunk);
                pulse.output();
                Ok(true)
            }
            Err(RecvTimeoutError::Disconnected) => Ok(false),
            Err(RecvTimeoutError::Timeout) => {
                let length = |name| fs::metadata(self.folder.path().join(name)).map_or(0, |file| file.len());
                match pulse.look(length(CONSOLE)) {
                    None => Ok(true),
                    Some(symptom) => {
                        let during = during.to_owned();
                        Err(GuestError::Stuck { during, symptom, last: self.last() })
                    }
                }
            }
        }
    }

    /// Passes on complete lines, and returns the output of the last command if it has ended. `passed` is the length passed on.
    fn completed(&mut self, passed: &mut usize, line: &mut dyn FnMut(&str)) -> Option<Output> {
        let mark = format!("{MARK} {} ", self.number);
        // The mark may come in parts.
        let from = passed.saturating_sub(mark.len());
        let end = memchr::memmem::find(&self.text[from..], mark.as_bytes()).map(|at| from + at);
        let lines_end = match end {
            Some(end) => end,
            None => memchr::memrchr(b'\n', &self.text).map_or(0, |at| at + 1),
        };
        if lines_end > *passed {
            let lines = String::from_utf8_lossy(&self.text[*passed..lines_end]).into_owned();
            lines.lines().for_each(line);
            *passed = lines_end;
        }
        let status = &self.text[end? + mark.len()..];
        let status = &status[..memchr::memchr(b'\n', status)?];
        let status = String::from_utf8_lossy(status).trim().parse().unwrap_or(-1);
        let text = String::from_utf8_lossy(&self.text[..end?]).trim_end_matches('\n').to_owned();
        self.text.clear();
        Some(Output { status, text })
    }

    fn ended(&mut self, during: &str) -> GuestError {
        self.end();
        GuestError::Ended { during: during.to_owned(), last: self.last() }
    }

    fn last(&self) -> String {
        let text = String::from_utf8_lossy(&self.text).into_owned();
        last_lines(&format!("{}{text}", self.console()), LAST_LINES)
    }

    fn end(&mut self) {
        // It may have ended by itself.
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.end();
    }
}
