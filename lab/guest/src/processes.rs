//! The child processes of this one: QEMU, and servers of drives. A signal that ends this process does not end them, so this
//! process ends them first. Left out: SIGKILL, after which they remain.

use std::process::Child;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::{Pid, Signal, kill_process};

static RUNNING: Mutex<Vec<Pid>> = Mutex::new(Vec::new());
static ENDING: AtomicBool = AtomicBool::new(false);

/// A process that ends with this one. Drop this value as soon as the process has been waited for: another process may
/// get its number later.
#[derive(Debug)]
pub struct Belonging(Pid);

impl Belonging {
    /// Counts a child.
    pub fn of(child: &Child) -> Belonging {
        let pid = Pid::from_child(child);
        RUNNING.lock().expect("nothing panics with it").push(pid);
        Belonging(pid)
    }
}

impl Drop for Belonging {
    fn drop(&mut self) {
        RUNNING.lock().expect("nothing panics with it").retain(|pid| *pid != self.0);
    }
}

/// Asks all to end, by SIGTERM. Returns whether there were any: the caller's wait for them ends then.
pub fn end_all() -> bool {
    ENDING.store(true, Ordering::Relaxed);
    let running = RUNNING.lock().expect("nothing panics with it");
    for pid in running.iter() {
        // One that has just ended needs no signal.
        let _ = kill_process(*pid, Signal::TERM);
    }
    !running.is_empty()
}

/// Whether all were asked to end.
pub fn are_ending() -> bool {
    ENDING.load(Ordering::Relaxed)
}
