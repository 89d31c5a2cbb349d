//! Runners measure points. [`Threads`] uses the cores of this machine; a cluster's client implements [`Runner`] by sending
//! [`Inputs`] away and receiving the text of [`Stored`].

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use crate::point::Inputs;
use crate::stored::Stored;

/// What a runner tells while it works.
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
    /// Measures all `tasks`, and tells each event to `heard` on the calling thread. When `heard` breaks, nothing more is told,
    /// and the call returns without waiting for points under way.
    ///
    /// # Errors
    /// When the runner itself cannot go on.
    fn run(&mut self, tasks: Vec<Inputs>, heard: &mut dyn FnMut(Event) -> ControlFlow<()>) -> Result<(), String>;
}

/// The cores of this machine.
#[derive(Debug)]
pub struct Threads {
    jobs: usize,
    tell: Sender<Event>,
    told: Receiver<Event>,
}

/// Ends a run of [`Threads`] from another thread.
#[derive(Clone, Debug)]
pub struct Stopper(Sender<Event>);

impl Stopper {
    /// Ends the run. Points under way are not kept.
    pub fn stop(&self) {
        // A run that has ended needs no stop.
        let _ = self.0.send(Event::Stop);
    }
}

impl Threads {
    /// Up to `jobs` points at a time.
    pub fn new(jobs: usize) -> Threads {
        let (tell, told) = channel();
        Threads { jobs: jobs.max(1), tell, told }
    }

    /// What ends its runs.
    pub fn stopper(&self) -> Stopper {
        Stopper(self.tell.clone())
    }
}

/// The points that threads take from.
struct Shared {
    tasks: Vec<Inputs>,
    next: AtomicUsize,
    stop: AtomicBool,
}

impl Runner for Threads {
    fn run(&mut self, tasks: Vec<Inputs>, heard: &mut dyn FnMut(Event) -> ControlFlow<()>) -> Result<(), String> {
        let mut left = tasks.len();
        let shared = Arc::new(Shared { next: AtomicUsize::new(0), stop: AtomicBool::new(false), tasks });
        for number in 0..self.jobs.min(left) {
            let (shared, tell) = (shared.clone(), self.tell.clone());
            let thread = thread::Builder::new().name(format!("point-{number}"));
            thread.spawn(move || work(&shared, &tell)).map_err(|error| format!("cannot start a thread: {error}"))?;
        }
        while left > 0 {
            let event = self.told.recv().expect("this runner holds a sender itself");
            left -= usize::from(matches!(event, Event::Done { .. }));
            if heard(event).is_break() {
                shared.stop.store(true, Ordering::Relaxed);
                return Ok(());
            }
        }
        Ok(())
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

fn work(shared: &Shared, tell: &Sender<Event>) {
    while !shared.stop.load(Ordering::Relaxed) {
        let task = shared.next.fetch_add(1, Ordering::Relaxed);
        let Some(inputs) = shared.tasks.get(task) else { return };
        POINT.set(Some(inputs.in_words()));
        let sender = tell.clone();
        // Nobody listens to a run that was ended.
        let progress = move |share| drop(sender.send(Event::Share { task, share }));
        // A program that is built to end at a panic ends here.
        let measured = catch_unwind(AssertUnwindSafe(|| inputs.measure(progress)));
        let result = measured
            .unwrap_or_else(|_| Err("the simulator stopped at a fault of its own, please report it".to_owned()));
        if tell.send(Event::Done { task, result: Box::new(result) }).is_err() {
            return;
        }
    }
}
