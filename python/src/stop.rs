//! Work on a separate thread, without the interpreter's lock. The caller's thread checks for signals meanwhile: the first Ctrl-C
//! asks the work to end with the results so far, a second one abandons it.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

/// Time between two looks for signals.
const LOOK: Duration = Duration::from_millis(20);

/// The result of some work, and the interrupt during it.
pub(crate) struct Ended<T> {
    pub(crate) value: T,
    pub(crate) interrupt: Option<PyErr>,
}

/// Runs `work`; `stop` asks it to end.
///
/// # Errors
/// The second interrupt, or that of a thread that cannot be started.
pub(crate) fn beside<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
    stop: impl Fn(),
) -> PyResult<Ended<T>> {
    let (tell, told) = channel();
    let thread = thread::Builder::new().name("nandscape".to_owned());
    // Nobody listens after a second interrupt.
    let thread = thread.spawn(move || drop(tell.send(work())))?;
    let mut told = Some(told);
    let mut interrupt = None;
    loop {
        let wait = told.take().expect("given back below");
        let (event, back) = py.detach(move || (wait.recv_timeout(LOOK), wait));
        told = Some(back);
        match event {
            Ok(value) => return Ok(Ended { value, interrupt }),
            Err(RecvTimeoutError::Disconnected) => {
                let _ = thread.join();
                return Err(crate::error::run(py, "the simulator stopped at an internal fault, please report it"));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        if let Err(signal) = py.check_signals() {
            stop();
            if interrupt.replace(signal).is_some() {
                return Err(interrupt.expect("just set"));
            }
        }
    }
}
