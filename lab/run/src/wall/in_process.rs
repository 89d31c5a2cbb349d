//! A drive of this process: the model behind a live drive, on its own thread.

use std::os::fd::OwnedFd;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;

use nandscape_sim::Executor;
use nandscape_transport_reactor::ring::RingHost;
use nandscape_transport_reactor::{Handle, PollMode, Port, Reactor, Setup};
use rustix::event::{EventfdFlags, eventfd};

use super::ring::RingDrive;
use crate::live::{LiveDrive, LiveDrives};
use crate::watched::{LiveReport, LiveWatch};

/// See the module. Dropping it ends the drive.
pub struct InProcess {
    name: String,
    handle: Handle,
    thread: Option<JoinHandle<Result<Option<LiveReport>, String>>>,
}

impl InProcess {
    /// Makes the first of `drives` and starts its thread; `with_report` if [`InProcess::finish`] is to have one. Blocks until the
    /// drive is ready.
    ///
    /// # Errors
    /// Why the drive cannot be made.
    pub fn start(drives: LiveDrives, poll: PollMode, with_report: bool) -> Result<InProcess, String> {
        let name = drives.drives.first().map_or_else(String::new, |drive| drive.name.clone());
        let (tell, ready) = channel();
        let own_name = name.clone();
        let life = move || -> Result<Option<LiveReport>, String> {
            let mut executor = Executor::new();
            let sim = executor.sim();
            let exports = drives.build(&mut executor, &()).map_err(|error| error.to_string())?;
            let mut port = Port::new(&sim, exports.iter().map(LiveDrive::export).collect());
            let watch = with_report.then(|| {
                let watched = exports
                    .iter()
                    .map(|drive| drive.model.clone())
                    .zip(drives.drives.iter().cloned())
                    .map(Some)
                    .collect();
                LiveWatch::start(&sim, drives.seed, watched)
            });
            if let Some(watch) = watch.clone() {
                port.observe(move |released| watch.released(released));
            }
            let setup = Setup { executor, port, names: vec![own_name], poll, log: Box::new(|_| ()) };
            let (reactor, handle) = Reactor::new(setup).map_err(|error| error.to_string())?;
            // The thread that started this one waits for it.
            let _ = tell.send(handle);
            reactor.run().map(drop).map_err(|error| error.to_string())?;
            Ok(watch.and_then(|watch| watch.finish().pop()))
        };
        let thread =
            std::thread::Builder::new().name("drive".to_owned()).spawn(life).map_err(|error| error.to_string())?;
        match ready.recv() {
            Ok(handle) => Ok(InProcess { name, handle, thread: Some(thread) }),
            Err(_) => Err(thread
                .join()
                .map_or_else(|_| "its thread has panicked".to_owned(), |end| end.err().unwrap_or_default())),
        }
    }

    /// Connects to a namespace; `None` is the first. `interrupts` if completions are to signal an event descriptor.
    pub(super) fn connect(&self, depth: u32, nsid: Option<u32>, interrupts: bool) -> Result<RingDrive, String> {
        if let Some(nsid) = nsid
            && let Err(refused) = self.handle.info(0, Some(nsid))
        {
            return Err(refused.to_string());
        }
        let event = interrupts.then(|| eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)).transpose();
        let event = event.map_err(|error| std::io::Error::from(error).to_string())?;
        let signalled = event.as_ref().map(OwnedFd::try_clone).transpose().map_err(|error| error.to_string())?;
        let ring = RingHost::connect_signalled(&self.handle, 0, nsid, depth as usize, signalled);
        let ring = ring.map_err(|status| {
            format!("the drive has no room for another queue pair: {status}; raise controller.queue_pairs, or run fewer jobs")
        })?;
        Ok(RingDrive::new(self.name.clone(), ring, event))
    }
}

impl InProcess {
    /// Ends the drive: its report, if one was wanted and a command has completed.
    ///
    /// # Errors
    /// Why the drive has ended by itself.
    pub fn finish(mut self) -> Result<Option<LiveReport>, String> {
        self.handle.stop();
        let ended = self.thread.take().map(JoinHandle::join);
        ended.map_or(Ok(None), |ended| ended.unwrap_or_else(|_| Err("its thread has panicked".to_owned())))
    }

    /// Ends the drive, and does not wait for the commands that it has in work: they may take long, and are of no use.
    pub fn abandon(mut self) {
        self.thread = None;
    }
}

impl Drop for InProcess {
    fn drop(&mut self) {
        self.handle.stop();
        // The reason for its end does not change the measurements.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
