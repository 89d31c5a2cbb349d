//! Runs programs that may hang. A program without progress is ended, with all processes of its group, and the error names
//! the tests in progress: continuous integration would end the run without a message.
//!
//! | file | what |
//! |---|---|
//! | `mod` | running, and ending what hangs |
//! | `patience` | what counts as progress, and how long a run may go without |
//! | `family` | CPU time of a run with its descendants |
//! | `progress` | which program runs, and which tests take long, from the lines of cargo and of libtest |
//!
//! Left out: processes that left the group, such as guests, which their starters end.

mod family;
mod patience;
mod progress;

use std::fmt;
use std::io::{BufRead as _, BufReader, PipeReader};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use anyhow::{Context as _, bail};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::clock::Moment;
use crate::{run, say};
use patience::Judge;
pub(crate) use patience::Patience;
use progress::Progress;

/// The longest time that output may follow the end of a program: from processes that it left behind.
const AFTERMATH: Duration = Duration::from_secs(1);

/// The interval between checks of a run without output.
const LOOK: Duration = Duration::from_secs(5);

/// What happens during a run.
enum Event {
    /// A line of its output.
    Line(Vec<u8>),
    /// The end of its output.
    Silent,
    /// The program's own end.
    Ended(std::io::Result<ExitStatus>),
    /// Somebody ends the run, by a signal.
    Interrupted(i32),
}

/// The user has ended a run by a signal.
#[derive(Debug)]
pub(crate) struct Interrupted(i32);

impl fmt::Display for Interrupted {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "ended by {}", ExitStatus::from_raw(self.0))
    }
}

impl std::error::Error for Interrupted {}

/// Runs a step with its output on the terminal, and ends it when it hangs.
///
/// # Errors
/// When it fails or hangs.
pub(crate) fn step(patience: Patience, mut command: Command) -> anyhow::Result<()> {
    let words = run::words(&command);
    say::line(&format!("\n==> {words}"));
    let begun = Moment::now();
    let status = watched(patience, &mut command, &mut say::output).with_context(|| format!("in: {words}"))?;
    let took = begun.passed().as_secs_f64();
    if !status.success() {
        bail!("failed after {took:.1} s ({status}): {words}");
    }
    say::line(&format!("    passed in {took:.1} s"));
    Ok(())
}

/// Runs a program, hands over each line of its output, and ends it when it hangs.
///
/// # Errors
/// When it cannot be run, hangs, or is interrupted.
pub(crate) fn watched(
    patience: Patience,
    command: &mut Command,
    output: &mut dyn FnMut(&[u8]),
) -> anyhow::Result<ExitStatus> {
    let (group, events) = start(command).with_context(|| format!("cannot run: {}", run::words(command)))?;
    let mut watch = Watch { group, judge: Judge::new(patience), progress: Progress::default() };
    watch.until_end(&events, output).inspect_err(|_| end(group))
}

/// Starts a program in a separate process group, and threads that report events.
fn start(command: &mut Command) -> anyhow::Result<(Pid, Receiver<Event>)> {
    // One pipe for both: cargo's lines come in order with those of the tests.
    let (output, writer) = std::io::pipe()?;
    let (sender, events) = channel();
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer).process_group(0);
    let child = command.spawn()?;
    // The writing ends are closed here, so that the output ends with the program.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let group = Pid::from_raw(child.id().try_into()?);
    let (lines, ends) = (sender.clone(), sender.clone());
    std::thread::spawn(move || read(output, &lines));
    std::thread::spawn(move || wait(child, &ends));
    std::thread::spawn(move || signals.forever().try_for_each(|signal| sender.send(Event::Interrupted(signal))));
    Ok((group, events))
}

fn read(output: PipeReader, events: &Sender<Event>) {
    let mut output = BufReader::new(output);
    loop {
        let mut line = Vec::new();
        if matches!(output.read_until(b'\n', &mut line), Ok(0) | Err(_)) || events.send(Event::Line(line)).is_err() {
            break;
        }
    }
    let _ = events.send(Event::Silent);
}

fn wait(mut child: Child, events: &Sender<Event>) {
    let _ = events.send(Event::Ended(child.wait()));
}

/// A watched run.
struct Watch {
    group: Pid,
    judge: Judge,
    progress: Progress,
}

impl Watch {
    /// Hands over the output until the program has ended.
    fn until_end(&mut self, events: &Receiver<Event>, output: &mut dyn FnMut(&[u8])) -> anyhow::Result<ExitStatus> {
        let (mut ended, mut is_silent) = (None::<(ExitStatus, Moment)>, false);
        loop {
            let left = match &ended {
                Some((status, _)) if is_silent => return Ok(*status),
                Some((_, at)) => AFTERMATH.saturating_sub(at.passed()),
                None => LOOK,
            };
            match events.recv_timeout(left) {
                Ok(Event::Line(line)) => {
                    output(&line);
                    self.progress.line(&String::from_utf8_lossy(&line));
                    self.judge.line(family::cpu_time(self.group));
                }
                Ok(Event::Silent) => is_silent = true,
                Ok(Event::Ended(status)) => ended = Some((status?, Moment::now())),
                Ok(Event::Interrupted(signal)) => return Err(Interrupted(signal).into()),
                Err(timeout) => match ended {
                    Some((status, _)) => return Ok(status),
                    None => self.look(timeout)?,
                },
            }
        }
    }

    /// Fails when the program hangs.
    fn look(&mut self, timeout: RecvTimeoutError) -> anyhow::Result<()> {
        if timeout == RecvTimeoutError::Disconnected {
            bail!("the output and the end of the program were lost");
        }
        match self.judge.hangs(family::cpu_time(self.group)) {
            Some(reason) => bail!("it hangs ({reason}) and was ended. {}", self.progress.pending()),
            None => Ok(()),
        }
    }
}

/// Ends all processes of a group.
fn end(group: Pid) {
    // Fails where they have ended meanwhile.
    let _ = killpg(group, Signal::SIGKILL);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn what_passes_or_fails_does_so() {
        step(Patience::default(), shell("echo '     Running x (y)'; echo 'test a ... ok' >&2")).unwrap();
        let error = step(Patience::default(), shell("exit 3")).unwrap_err().to_string();
        assert!(error.starts_with("failed after") && error.contains("exit status: 3"), "{error}");
    }

    #[test]
    fn what_hangs_is_ended_and_named_with_all_its_processes() {
        let folder = tempfile::tempdir().unwrap();
        let pid = folder.path().join("pid");
        let script = format!(
            "echo '     Running tests/slow.rs (target/slow-1)'; echo 'test a::b has been running for over 60 seconds'; \
             sleep 1000 & echo $! > {}; wait",
            pid.display()
        );
        let impatient = Patience { idle: Duration::from_millis(500), ..Patience::default() };
        let error = format!("{:#}", step(impatient, shell(&script)).unwrap_err());
        assert!(error.contains("it hangs") && error.contains("tests/slow.rs") && error.contains("a::b"), "{error}");
        let sleeping = Pid::from_raw(std::fs::read_to_string(pid).unwrap().trim().parse().unwrap());
        // It ends soon: a signal that cannot be caught is on its way, and its new parent takes its status.
        let gone = (0..1_000_000).any(|_| {
            std::thread::yield_now();
            let stat = std::fs::read_to_string(format!("/proc/{sleeping}/stat")).unwrap_or_default();
            stat.is_empty() || stat.contains(") Z ")
        });
        assert!(gone, "process {sleeping} goes on");
    }
}
