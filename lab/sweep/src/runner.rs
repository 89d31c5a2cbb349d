//! Runners measure points. [`Threads`] uses the cores of this machine; [`Process`](crate::Process) and other clients of clusters
//! send [`Inputs`] away and receive the text of [`Stored`].

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use nandscape_lab_run::Progress;

use crate::point::{Inputs, Share};
use crate::shared::{Source, Tasks};
use crate::stored::Stored;

/// The events of a runner.
#[derive(Debug)]
pub enum Event {
    /// A share of a point, from 0 to 1, is done.
    Share {
        /// The point's position.
        task: usize,
        /// The share.
        share: f64,
    },
    /// A point has been measured, or why not.
    Done {
        /// The point's position.
        task: usize,
        /// The result.
        result: Box<Result<Stored, String>>,
    },
    /// The user wants the run to end now.
    Stop,
}

/// Measures points in any order.
pub trait Runner {
    /// Measures all `tasks`, and calls `heard` with each event on the calling thread. When `heard` breaks, no event follows,
    /// and the call returns without waiting for points in progress.
    ///
    /// # Errors
    /// When the runner itself cannot continue.
    fn run(&mut self, tasks: Vec<Inputs>, heard: &mut dyn FnMut(Event) -> ControlFlow<()>) -> Result<(), String>;

    /// States that several points begin in may be made once and kept in this folder. The results are the same without.
    fn share_states_in(&mut self, _folder: &Path) {}
}

/// The cores of this machine.
#[derive(Debug)]
pub struct Threads {
    jobs: usize,
    /// The folder of the states that points share.
    states: Option<PathBuf>,
    tell: Sender<Event>,
    told: Receiver<Event>,
}

/// Ends a run from another thread.
#[derive(Clone)]
pub struct Stopper(Arc<dyn Fn() + Send + Sync>);

impl Stopper {
    pub(crate) fn new(stop: impl Fn() + Send + Sync + 'static) -> Stopper {
        Stopper(Arc::new(stop))
    }

    /// Ends the run. Points in progress are not kept.
    pub fn stop(&self) {
        (self.0)();
    }
}

impl Threads {
    /// Up to `jobs` points at a time.
    pub fn new(jobs: usize) -> Threads {
        let (tell, told) = channel();
        Threads { jobs: jobs.max(1), states: None, tell, told }
    }

    /// What ends its runs.
    pub fn stopper(&self) -> Stopper {
        let tell = self.tell.clone();
        // A run that has ended needs no stop.
        Stopper::new(move || drop(tell.send(Event::Stop)))
    }
}

impl Runner for Threads {
    fn run(&mut self, tasks: Vec<Inputs>, heard: &mut dyn FnMut(Event) -> ControlFlow<()>) -> Result<(), String> {
        let mut left = tasks.len();
        let shared = Arc::new(Tasks::new(tasks, self.states.as_deref()));
        for number in 0..self.jobs.min(left) {
            let (shared, tell) = (shared.clone(), self.tell.clone());
            let thread = thread::Builder::new().name(format!("point-{number}"));
            thread.spawn(move || work(&shared, &tell)).map_err(|error| format!("cannot start a thread: {error}"))?;
        }
        while left > 0 {
            let event = self.told.recv().expect("this runner holds a sender itself");
            left -= usize::from(matches!(event, Event::Done { .. }));
            if heard(event).is_break() {
                shared.stop();
                return Ok(());
            }
        }
        Ok(())
    }

    fn share_states_in(&mut self, folder: &Path) {
        self.states = Some(folder.to_owned());
    }
}

thread_local! {
    /// The point that this thread measures, in words.
    static POINT: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// The point that this thread measures, in words, for messages about a panic.
pub fn point_of_thread() -> Option<String> {
    POINT.with_borrow(Clone::clone)
}

fn work(tasks: &Tasks, tell: &Sender<Event>) {
    while let Some((task, source)) = tasks.take() {
        let inputs = tasks.inputs(task);
        POINT.set(Some(inputs.in_words()));
        let sender = tell.clone();
        // No receiver is left once the run has ended.
        let progress = move |share| drop(sender.send(Event::Share { task, share }));
        let progress: Rc<dyn Progress> = Rc::new(Share(progress));
        let file = match source {
            Source::Itself => None,
            Source::File(file) => Some(file),
            Source::Make(file) => {
                let is_there = guarded(|| inputs.make_state(&file, &progress)).is_ok();
                tasks.made(&file, is_there);
                is_there.then_some(file)
            }
        };
        let result = guarded(|| inputs.measure_from(file.as_deref(), &progress));
        tasks.done(task);
        if tell.send(Event::Done { task, result: Box::new(result) }).is_err() {
            return;
        }
    }
}

/// Does something that may panic. A program that is built to end at a panic ends here.
fn guarded<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err("the simulator stopped at an internal fault, please report it".to_owned()))
}
