//! Drives in real time, each on the thread of its reactor.

use std::rc::Rc;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;

use anyhow::anyhow;
use nandscape_device_ssd::Profile;
use nandscape_lab_run::{DriveSpec, Precondition};
use nandscape_sim::{Executor, Sim, Span};
use nandscape_transport_reactor::{Export, Handle, PollMode, Port, Reactor, Setup};

use crate::wall::cores::{DRIVE, ThreadTime, stay_on};

/// A running reactor and its handle. It ends when dropped.
pub(crate) struct Live {
    handle: Handle,
    served: Vec<Served>,
    time: ThreadTime,
    thread: Option<JoinHandle<anyhow::Result<()>>>,
}

/// A drive of a reactor, as its listeners have to know it.
#[derive(Clone)]
pub(crate) struct Served {
    /// Its name.
    pub(crate) name: String,
    /// The name of its subsystem; empty where it is none.
    pub(crate) nqn: String,
    /// I/O queue pairs of its controllers.
    pub(crate) queue_pairs: u16,
}

/// Drives, and the description of each.
type Made = (Vec<Rc<dyn Export>>, Vec<Served>);

/// A drive whose commands each take `delay`, independently of other commands: FEMU's "+50 us", T_endio = T_entry +
/// delay. It is set as firmware time, which commands spend in parallel; flash and link take none.
pub(crate) fn fixed_delay(name: &str, delay: Span) -> anyhow::Result<DriveSpec> {
    let time = format!("controller.firmware_time={}ns", delay.ns());
    drive(name, "femu-blackbox", &["timing.read=0us", "timing.program=0us", "timing.erase=0us", &time])
}

/// A drive of 64 MiB with data, unless `changes` differ.
pub(crate) fn drive(name: &str, profile: &str, changes: &[&str]) -> anyhow::Result<DriveSpec> {
    let mut profile = Profile::load(profile)?;
    profile.set("capacity=64MiB")?;
    changes.iter().try_for_each(|change| profile.set(change))?;
    Ok(DriveSpec {
        name: name.to_owned(),
        number: 0,
        profile_name: profile.name.clone(),
        profile: profile.resolve()?.to_toml(),
        keeps_data: true,
        precondition: Precondition::None,
        from_state: None,
        is_shared: false,
        own_seed: None,
    })
}

impl Live {
    /// Starts a reactor with these drives on the drive's core.
    pub(crate) fn start(drives: Vec<DriveSpec>, seed: u64) -> anyhow::Result<Live> {
        Live::start_on(DRIVE, drives, seed)
    }

    /// Starts a reactor with these drives on a core.
    pub(crate) fn start_on(core: usize, drives: Vec<DriveSpec>, seed: u64) -> anyhow::Result<Live> {
        Live::with(core, move |sim| {
            let (mut all, mut served) = (Vec::new(), Vec::new());
            for spec in drives {
                let export = spec.build(sim, seed, &())?;
                served.push(Served {
                    name: spec.name,
                    nqn: export.ssd().subsystem().names().nqn.clone(),
                    queue_pairs: export.profile().max_queue_pairs(),
                });
                all.push(Rc::new(export) as Rc<dyn Export>);
            }
            Ok((all, served))
        })
    }

    /// Starts a reactor on a core with the drives that `make` makes there.
    pub(crate) fn with(
        core: usize,
        make: impl FnOnce(&Sim) -> anyhow::Result<Made> + Send + 'static,
    ) -> anyhow::Result<Live> {
        let (tell, told) = channel();
        let thread = std::thread::Builder::new().name("reactor".to_owned()).spawn(move || {
            stay_on(core);
            let executor = Executor::new();
            let (exports, served) = make(&executor.sim())?;
            let port = Port::new(&executor.sim(), exports);
            let names = served.iter().map(|served| served.name.clone()).collect();
            let setup =
                Setup { timelines: vec![executor], port, names, poll: PollMode::Adaptive, log: Box::new(|_| {}) };
            let (reactor, handle) = Reactor::new(setup)?;
            // The thread that started this one waits for it.
            let _ = tell.send((handle, served, ThreadTime::of_this()));
            reactor.run()?;
            Ok(())
        })?;
        match told.recv() {
            Ok((handle, served, time)) => Ok(Live { handle, served, time, thread: Some(thread) }),
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

    /// Its drives.
    pub(crate) fn served(&self) -> &[Served] {
        &self.served
    }

    /// The processor time that the reactor has used so far.
    pub(crate) fn cpu(&self) -> anyhow::Result<Span> {
        self.time.now()
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
