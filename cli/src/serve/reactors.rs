//! The threads that own the drives: starting them, and ending them in order.

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;

use anyhow::Context as _;
use nandscape_device_media::durable::StoreFile;
use nandscape_drive::DriveInfo;
use nandscape_lab_run::{LiveDrive as Live, LiveReport, LiveWatch};
use nandscape_sim::trace::chrome_json;
use nandscape_sim::{Executor, Sim};
use nandscape_transport_control::Startup;
use nandscape_transport_reactor::handle::Figures;
use nandscape_transport_reactor::recording::{Kept, Recorder};
use nandscape_transport_reactor::{Connect as _, Export, Handle, Port, Reactor, Setup};

use super::ServeArgs;
use super::notes::Notes;
use super::plan::Part;
use super::startup::Starting;
use crate::failure::Failure;
use crate::pages::{self, Page};

/// A drive that is served.
pub(super) struct LiveDrive {
    /// The name that clients know it by.
    pub(super) name: String,
    /// Its NVMe Qualified Name.
    pub(super) nqn: String,
    /// Its profile, or its URL.
    pub(super) profile: String,
    /// Its capacity and format.
    pub(super) info: DriveInfo,
    /// I/O queue pairs of each of its controllers.
    pub(super) queue_pairs: u16,
    /// The reactor that owns it.
    pub(super) handle: Handle,
    /// Its number there.
    pub(super) number: u16,
}

/// Reactors at work.
pub(super) struct Running {
    /// All drives, in the order of the command line.
    pub(super) drives: Vec<LiveDrive>,
    handles: Vec<Handle>,
    threads: Vec<JoinHandle<anyhow::Result<Ended>>>,
}

/// The results of a reactor.
struct Ended {
    figures: Figures,
    trace: Option<String>,
    reports: Vec<LiveReport>,
    /// The inconsistency of its drives, if any.
    inconsistency: Option<String>,
    /// Files that could not be written.
    closed: Vec<anyhow::Error>,
}

/// The results of all reactors besides figures.
#[derive(Default)]
pub(super) struct Ends {
    traces: Vec<String>,
    reports: Vec<LiveReport>,
    problems: Vec<anyhow::Error>,
}

impl Ends {
    /// Writes the event trace, and the reports.
    ///
    /// # Errors
    /// The first error, once everything else is written.
    pub(super) fn settle(mut self, args: &ServeArgs) -> Result<(), Failure> {
        if let Some(path) = &args.chrome_trace {
            let written = self.traces.iter().map(|trace| crate::sim::write(path, trace).context("--chrome-trace"));
            self.problems.extend(written.filter_map(Result::err));
        }
        if let Some(folder) = &args.out {
            self.reports.iter_mut().for_each(pages::note_command);
            let pages: Vec<Page<'_>> = self.reports.iter().map(Page::of).collect();
            match pages.is_empty() {
                true => crate::output::note("--out: no report, as no command of a client has completed"),
                false => self.problems.extend(pages::write(folder, &pages).err()),
            }
        }
        self.problems.into_iter().next().map_or(Ok(()), |problem| Err(Failure::Run(problem)))
    }
}

/// The part of the command line that a reactor needs on its own thread.
#[derive(Clone)]
struct Wishes {
    poll: nandscape_transport_reactor::PollMode,
    core: Option<usize>,
    record: Option<PathBuf>,
    record_data: Kept,
    trace: bool,
    reports: bool,
    check: bool,
    /// Where the state of each drive is saved at the end.
    saves: Vec<Option<PathBuf>>,
    notes: Notes,
    /// The progress of the start, for clients of the control socket.
    startup: Arc<Startup>,
}

/// Starts a thread for each part of the plan, and waits until their drives are built. `on_end` is called when one ends.
pub(super) fn start_all(
    plan: Vec<(Part, Vec<Option<StoreFile>>)>,
    args: &ServeArgs,
    (notes, startup): (&Notes, &Arc<Startup>),
    on_end: impl Fn() + Send + Clone + 'static,
) -> Result<Running, Failure> {
    let mut saves = args.saves()?.into_iter();
    let mut running = Running { drives: Vec::new(), handles: Vec::new(), threads: Vec::new() };
    for (core, (part, files)) in plan.into_iter().enumerate() {
        let wishes = Wishes {
            poll: args.poll_mode(),
            core: args.pin.then_some(core),
            record: args.record.clone(),
            record_data: args.record_data.into(),
            trace: args.chrome_trace.is_some(),
            reports: args.out.is_some(),
            check: args.check,
            saves: saves.by_ref().take(part.drives.len()).collect(),
            notes: notes.clone(),
            startup: startup.clone(),
        };
        let on_end = on_end.clone();
        let (tell, told) = channel();
        let thread = std::thread::Builder::new().name(format!("reactor {core}")).spawn(move || {
            let result = serve(&part, files, &wishes, move |served| {
                // The thread that started this one waits for it.
                let _ = tell.send(served);
            });
            on_end();
            result
        });
        running.threads.push(thread.context("cannot start a thread").map_err(Failure::Run)?);
        match told.recv() {
            Ok((handle, drives)) => {
                running.handles.push(handle);
                running.drives.extend(drives);
            }
            Err(_) => return Err(running.failure()),
        }
    }
    Ok(running)
}

impl Running {
    /// The handles of the reactors.
    pub(super) fn handles(&self) -> Vec<Handle> {
        self.handles.clone()
    }

    /// Ends all reactors in order: their figures, and how each ended.
    pub(super) fn stop(self) -> (Vec<Figures>, Ends) {
        self.handles.iter().for_each(Handle::stop);
        let (mut figures, mut ends) = (Vec::new(), Ends::default());
        for thread in self.threads {
            match thread.join() {
                Ok(Ok(Ended { figures: last, trace, reports, inconsistency, closed })) => {
                    ends.reports.extend(reports);
                    let problems = inconsistency.into_iter().chain(last.recording_problem.clone());
                    let problems = problems.chain(last.flush_problem.clone());
                    ends.problems.extend(problems.map(anyhow::Error::msg));
                    ends.problems.extend(closed);
                    ends.traces.extend(trace);
                    figures.push(last);
                }
                Ok(Err(error)) => ends.problems.push(error),
                Err(_) => ends.problems.push(anyhow::anyhow!("a reactor has panicked")),
            }
        }
        (figures, ends)
    }

    /// Why the last reactor ended before it served.
    fn failure(mut self) -> Failure {
        let last = self.threads.pop().map(JoinHandle::join);
        // Their drives are turned off in order.
        self.handles.iter().for_each(Handle::stop);
        self.threads.into_iter().for_each(|thread| drop(thread.join()));
        match last {
            Some(Ok(Err(error))) => Failure::Input(error),
            _ => Failure::Run(anyhow::anyhow!("a reactor ended before it served")),
        }
    }
}

/// Runs on a reactor's thread until it ends.
fn serve(
    part: &Part,
    files: Vec<Option<StoreFile>>,
    wishes: &Wishes,
    tell: impl FnOnce((Handle, Vec<LiveDrive>)),
) -> anyhow::Result<Ended> {
    if let Some(core) = wishes.core {
        nandscape_transport_reactor::pin_to_core(core).with_context(|| format!("--pin: core {core}"))?;
    }
    // Drives share nothing, unless one of the part has several.
    let mut timelines = Executor::apart(part.drives.len());
    let sims: Vec<Sim> = timelines.iter().map(Executor::sim).collect();
    let drives = part.build(&mut timelines, files, &Starting::new(&wishes.startup))?;
    if wishes.trace {
        sims.iter().for_each(|sim| sim.trace().switch_on());
    }
    let mut port = Port::apart(&sims, drives.iter().map(|drive| drive.clone() as Rc<dyn Export>).collect());
    if let Some(path) = &wishes.record {
        let header = serde_json::to_string(&part.recorded()).context("the header of the recording")?;
        let recorder = Recorder::create(path, &header).with_context(|| format!("--record {}", path.display()))?;
        port.record(recorder.keeping(wishes.record_data));
    }
    let watch = wishes.reports.then(|| LiveWatch::start(&sims, part.seed, &drives));
    if let Some(watch) = watch.clone() {
        port.observe(move |released| watch.released(released));
    }
    let names = part.names();
    let notes = wishes.notes.clone();
    drives.iter().flat_map(|drive| drive.notes()).for_each(|note| notes.say(&note));
    for drive in &drives {
        let (name, notes) = (drive.name().to_owned(), notes.clone());
        drive.on_member_event(move |text| notes.say(&format!("drive {name}: {text}")));
    }
    let log = Box::new(move |text: &str| notes.say(text));
    let (reactor, handle) = Reactor::new(Setup { timelines, port, names, poll: wishes.poll, log })?;
    tell((handle.clone(), described(&drives, &handle)));
    let (mut timelines, figures) = reactor.run()?;
    let reports = watch.map_or(Vec::new(), LiveWatch::finish);
    let checked = if wishes.check { drives.iter().try_for_each(|drive| drive.check()) } else { Ok(()) };
    // Before the drives shut down: a recording ends here too, and its replay has the same events.
    let trace = wishes.trace.then(|| chrome_json(sims.iter().map(Sim::trace)));
    let closed =
        drives.iter().zip(&wishes.saves).zip(&mut timelines).filter_map(|((drive, save), executor)| match save {
            Some(path) => {
                let saved = drive.save(part.seed, executor, path);
                saved.err().map(|error| anyhow::anyhow!("--save-state {}: {error}", drive.name()))
            }
            None => drive.close(executor).err().map(anyhow::Error::msg),
        });
    let closed = closed.collect();
    Ok(Ended { figures, trace, reports, inconsistency: checked.err(), closed })
}

fn described(drives: &[Rc<Live>], handle: &Handle) -> Vec<LiveDrive> {
    let describe = |(drive, number): (&Rc<Live>, u16)| {
        LiveDrive {
            name: drive.name().to_owned(),
            nqn: drive.subsystem().map_or_else(String::new, |subsystem| subsystem.names().nqn.clone()),
            profile: drive.made_from(),
            info: drive.info(),
            // Their identifiers have 16 bits.
            queue_pairs: drive.pairs().map_or(0, |pairs| pairs.all as u16),
            handle: handle.clone(),
            number,
        }
    };
    drives.iter().zip(0..).map(describe).collect()
}
