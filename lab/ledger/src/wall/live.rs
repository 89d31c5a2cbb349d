//! A drive in real time, on a thread of its own, with data in every block.

use std::rc::Rc;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;

use anyhow::anyhow;
use nandscape_device_ssd::Profile;
use nandscape_lab_run::{DriveSpec, LiveDrives, Precondition};
use nandscape_sim::{Executor, Span};
use nandscape_transport_reactor::{Export, Handle, PollMode, Port, Reactor, Setup};

use crate::wall::cores::{DRIVE, stay_on};

/// A running reactor and its handle. It ends when dropped.
pub(crate) struct Live {
    handle: Handle,
    thread: Option<JoinHandle<anyhow::Result<()>>>,
}

/// A drive whose commands each take `delay`, independently of other commands: FEMU's "+50 us", T_endio = T_entry +
/// delay. It is set as firmware time, which commands spend in parallel; flash and link take none.
pub(crate) fn fixed_delay(name: &str, delay: Span) -> anyhow::Result<DriveSpec> {
    let mut profile = Profile::load("femu-blackbox")?;
    let time = format!("controller.firmware_time={}ns", delay.ns());
    for change in ["capacity=64MiB", "timing.read=0us", "timing.program=0us", "timing.erase=0us", &time] {
        profile.set(change)?;
    }
    Ok(DriveSpec {
        name: name.to_owned(),
        number: 0,
        profile_name: profile.name.clone(),
        profile: profile.resolve()?.to_toml(),
        keeps_data: true,
        precondition: Precondition::None,
    })
}

impl Live {
    /// Starts a reactor with these drives.
    pub(crate) fn start(drives: Vec<DriveSpec>, seed: u64) -> anyhow::Result<Live> {
        let (tell, told) = channel();
        let live = LiveDrives { version: env!("CARGO_PKG_VERSION").to_owned(), seed, drives };
        let thread = std::thread::Builder::new().name("reactor".to_owned()).spawn(move || {
            stay_on(DRIVE);
            let executor = Executor::new();
            let sim = executor.sim();
            let exports = live.build(&sim, &())?;
            let port = Port::new(&sim, exports.into_iter().map(|export| export as Rc<dyn Export>).collect());
            let names = live.drives.into_iter().map(|spec| spec.name).collect();
            let setup = Setup { executor, port, names, poll: PollMode::Adaptive, log: Box::new(|_| {}) };
            let (reactor, handle) = Reactor::new(setup)?;
            // The thread that started this one waits for it.
            let _ = tell.send(handle);
            reactor.run()?;
            Ok(())
        })?;
        match told.recv() {
            Ok(handle) => Ok(Live { handle, thread: Some(thread) }),
            Err(_) => match thread.join() {
                Ok(Err(error)) => Err(error),
                _ => Err(anyhow!("the reactor ended before it served")),
            },
        }
    }

    /// The handle of the reactor.
    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.handle.stop();
        if let Some(thread) = self.thread.take() {
            // Its clients have seen the error.
            let _ = thread.join();
        }
    }
}
