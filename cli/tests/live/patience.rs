//! Waiting, with an end: a test that hangs fails and names what it waited for.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// The longest run of a program: a multiple of any program's time.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);
/// The longest wait for all else.
const MOMENT: Duration = Duration::from_secs(60);

/// Looks in a row, before a pause comes between looks.
const LOOKS: u32 = 200;
/// The pause. A look may be a question to a server, and some wait for half a minute: without pauses both would take a processor each.
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };

/// Waits until something holds.
#[expect(clippy::disallowed_methods, reason = "what never comes is told from what is slow by nothing but time")]
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    let mut looks = 0;
    while !holds() {
        assert!(begun.elapsed() < MOMENT, "waited in vain for {} s: {what}", MOMENT.as_secs());
        looks += 1;
        if looks < LOOKS {
            std::thread::yield_now();
        } else {
            poll(&mut [], Some(&PAUSE)).unwrap();
        }
    }
}

/// Waits until a process has ended.
pub(crate) fn wait(child: &mut Child, what: &str) -> ExitStatus {
    // A process whose end was seen before has no number any more.
    if let Some(status) = child.try_wait().unwrap() {
        return status;
    }
    let process = pidfd_open(Pid::from_child(child), PidfdFlags::empty()).unwrap();
    let limit = Timespec { tv_sec: PATIENCE.as_secs() as i64, tv_nsec: 0 };
    if poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&limit)).unwrap() == 0 {
        let threads = threads(child.id());
        child.kill().unwrap();
        child.wait().unwrap();
        panic!("{what} does not end within {} s. Its threads:\n{threads}", PATIENCE.as_secs());
    }
    child.wait().unwrap()
}

/// What the threads of a process are at, a line each: name, state and processor time (proc_pid_stat(5)), the function of the kernel in
/// which it waits, and its system call with the arguments.
fn threads(process: u32) -> String {
    let read = |path: &Path, file: &str| std::fs::read_to_string(path.join(file)).unwrap_or_default();
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let line = |task: std::fs::DirEntry| {
        let path = task.path();
        let stat = read(&path, "stat");
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let field = |number: usize| fields.get(number).copied().unwrap_or("?");
        let [name, place, call] = ["comm", "wchan", "syscall"].map(|file| read(&path, file).trim().to_owned());
        format!("  {name}: {}, {} and {} ticks, {place}, {call}\n", field(0), field(11), field(12))
    };
    tasks.map(line).collect()
}

/// Runs a program to its end.
///
/// # Errors
/// When it cannot be started.
pub(crate) fn output(command: &mut Command) -> std::io::Result<Output> {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    Ok(end(child, &format!("{command:?}")))
}

/// Waits until a process has ended. Returns its output.
pub(crate) fn end(mut child: Child, what: &str) -> Output {
    let (out, err) = (read(child.stdout.take()), read(child.stderr.take()));
    let status = wait(&mut child, what);
    Output { status, stdout: out.join().unwrap(), stderr: err.join().unwrap() }
}

/// Reads all of a pipe on a thread.
pub(crate) fn read(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    let mut pipe = pipe.expect("it was asked for");
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).unwrap();
        bytes
    })
}
