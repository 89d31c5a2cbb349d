//! Runs tests within a time limit. Tests that hang are ended, with all processes of their group, and the error names their
//! program and the tests that had begun: continuous integration would end the run without a word.
//!
//! | file | what |
//! |---|---|
//! | `mod` | running, and ending what hangs |
//! | `progress` | which program runs, and which tests take long, from the lines of cargo and of libtest |
//!
//! Left out: processes that left the group, such as guests; those who start them end them.

mod progress;

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
use progress::Progress;

/// The longest time that output may follow the end of a program: from processes that it left behind.
const AFTERMATH: Duration = Duration::from_secs(1);

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

/// Runs a step with its output on the terminal. From its first test program on, it may take `limit`.
///
/// # Errors
/// When it fails, or takes longer.
pub(crate) fn step_within(limit: Duration, mut command: Command) -> anyhow::Result<()> {
    let words = run::words(&command);
    say::line(&format!("\n==> {words}"));
    let begun = Moment::now();
    let (group, events) = start(&mut command).with_context(|| format!("cannot run: {words}"))?;
    let status = watch(&events, limit, &mut Progress::default()).inspect_err(|_| end(group))?;
    let took = begun.passed().as_secs_f64();
    if !status.success() {
        bail!("failed after {took:.1} s ({status}): {words}");
    }
    say::line(&format!("    passed in {took:.1} s"));
    Ok(())
}

/// Starts a program in a group of its own, and threads that tell what happens.
fn start(command: &mut Command) -> anyhow::Result<(Pid, Receiver<Event>)> {
    // One pipe for both: cargo's lines come in order with those of the tests.
    let (output, writer) = std::io::pipe()?;
    let (tell, events) = channel();
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer).process_group(0);
    let child = command.spawn()?;
    // The writing ends are closed here, so that the output ends with the program.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let group = Pid::from_raw(child.id().try_into()?);
    let (tells_lines, tells_end) = (tell.clone(), tell.clone());
    std::thread::spawn(move || read(output, &tells_lines));
    std::thread::spawn(move || wait(child, &tells_end));
    std::thread::spawn(move || signals.forever().try_for_each(|signal| tell.send(Event::Interrupted(signal))));
    Ok((group, events))
}

fn read(output: PipeReader, tell: &Sender<Event>) {
    let mut output = BufReader::new(output);
    loop {
        let mut line = Vec::new();
        if matches!(output.read_until(b'\n', &mut line), Ok(0) | Err(_)) || tell.send(Event::Line(line)).is_err() {
            break;
        }
    }
    let _ = tell.send(Event::Silent);
}

fn wait(mut child: Child, tell: &Sender<Event>) {
    let _ = tell.send(Event::Ended(child.wait()));
}

/// Prints the output until the program has ended.
fn watch(events: &Receiver<Event>, limit: Duration, progress: &mut Progress) -> anyhow::Result<ExitStatus> {
    let (mut tests_begun, mut ended, mut is_silent) = (None::<Moment>, None::<(ExitStatus, Moment)>, false);
    loop {
        let left = match (&ended, &tests_begun) {
            (Some((status, _)), _) if is_silent => return Ok(*status),
            (Some((_, at)), _) => AFTERMATH.saturating_sub(at.passed()),
            (None, Some(begun)) => limit.saturating_sub(begun.passed()),
            (None, None) => Duration::MAX,
        };
        let event = if left == Duration::MAX {
            events.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            events.recv_timeout(left)
        };
        match event {
            Ok(Event::Line(line)) => {
                say::output(&line);
                progress.line(&String::from_utf8_lossy(&line));
                if progress.has_begun() {
                    tests_begun.get_or_insert_with(Moment::now);
                }
            }
            Ok(Event::Silent) => is_silent = true,
            Ok(Event::Ended(status)) => ended = Some((status?, Moment::now())),
            Ok(Event::Interrupted(signal)) => bail!("ended by {}", ExitStatus::from_raw(signal)),
            Err(_) => match ended {
                Some((status, _)) => return Ok(status),
                None => bail!("{}", progress.told(limit)),
            },
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
    fn what_passes_or_fails_in_time_does_so() {
        let hour = Duration::from_secs(3_600);
        step_within(hour, shell("echo '     Running x (y)'; echo 'test a ... ok' >&2")).unwrap();
        let error = step_within(hour, shell("exit 3")).unwrap_err().to_string();
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
        let error = step_within(Duration::from_millis(500), shell(&script)).unwrap_err().to_string();
        assert!(error.contains("tests/slow.rs (target/slow-1)") && error.contains("a::b"), "{error}");
        let sleeping = Pid::from_raw(std::fs::read_to_string(pid).unwrap().trim().parse().unwrap());
        // It ends soon: a signal that cannot be refused is on its way, and its new parent takes its status.
        let gone = (0..1_000_000).any(|_| {
            std::thread::yield_now();
            let stat = std::fs::read_to_string(format!("/proc/{sleeping}/stat")).unwrap_or_default();
            stat.is_empty() || stat.contains(") Z ")
        });
        assert!(gone, "process {sleeping} goes on");
    }
}
