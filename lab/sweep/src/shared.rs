//! The points that threads take from, ordered so that points with the same initial state are consecutive.
//!
//! The thread that takes the first point of a shared initial state makes that state, and saves it to a file. Meanwhile other
//! threads take points of other states. The file is removed when the last of its points is done, so that there are not many more such
//! files than threads. If a state cannot be saved, each point makes it again.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard};

use crate::point::Inputs;

/// What the state of a point is to be taken from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    /// The point brings it about itself.
    Itself,
    /// The point makes it for others, too, and saves it to this file.
    Make(PathBuf),
    /// It is in this file.
    File(PathBuf),
}

/// See the file.
pub(crate) struct Tasks {
    inputs: Vec<Inputs>,
    /// The file of the state of each point that shares it.
    files: Vec<Option<PathBuf>>,
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    /// Points that were not taken, the next one last.
    waiting: Vec<usize>,
    /// Points that are not done, by the file of their state.
    left: BTreeMap<PathBuf, usize>,
    /// States that are being made, are in files, or cannot be shared.
    states: BTreeMap<PathBuf, Made>,
    is_stopped: bool,
}

#[derive(Copy, Clone, PartialEq, Eq)]
enum Made {
    UnderWay,
    There,
    Failed,
}

impl Tasks {
    /// Points, with the folder of shared states, if any may be shared.
    pub(crate) fn new(inputs: Vec<Inputs>, folder: Option<&Path>) -> Tasks {
        let files: Vec<Option<PathBuf>> = match folder {
            None => vec![None; inputs.len()],
            Some(folder) => shared_files(&inputs, folder),
        };
        let mut left: BTreeMap<PathBuf, usize> = BTreeMap::new();
        let mut first: BTreeMap<&Path, usize> = BTreeMap::new();
        for (task, file) in files.iter().enumerate() {
            if let Some(file) = file {
                *left.entry(file.clone()).or_default() += 1;
                first.entry(file).or_insert(task);
            }
        }
        let mut waiting: Vec<usize> = (0..inputs.len()).collect();
        waiting.sort_by_key(|task| files[*task].as_deref().map_or(*task, |file| first[file]));
        waiting.reverse();
        let queue = Mutex::new(Queue { waiting, left, ..Queue::default() });
        Tasks { inputs, files, queue, changed: Condvar::new() }
    }

    /// The inputs of a point.
    pub(crate) fn inputs(&self, task: usize) -> &Inputs {
        &self.inputs[task]
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().expect("no thread panics while it holds the queue")
    }

    /// No point is taken any more.
    pub(crate) fn stop(&self) {
        self.queue().is_stopped = true;
        self.changed.notify_all();
    }

    /// The next point, and where its state comes from. Waits if the states of all that are left are being made.
    pub(crate) fn take(&self) -> Option<(usize, Source)> {
        let mut queue = self.queue();
        loop {
            if queue.is_stopped || queue.waiting.is_empty() {
                return None;
            }
            let state = |task: usize| self.files[task].as_ref().and_then(|file| queue.states.get(file)).copied();
            let next = queue.waiting.iter().rposition(|task| state(*task) != Some(Made::UnderWay));
            let Some(at) = next else {
                queue = self.changed.wait(queue).expect("no thread panics while it holds the queue");
                continue;
            };
            let task = queue.waiting.remove(at);
            let source = match (&self.files[task], self.files[task].as_ref().and_then(|file| queue.states.get(file))) {
                (None, _) | (_, Some(Made::Failed)) => Source::Itself,
                (Some(file), None) => {
                    queue.states.insert(file.clone(), Made::UnderWay);
                    Source::Make(file.clone())
                }
                (Some(file), Some(_)) => Source::File(file.clone()),
            };
            return Some((task, source));
        }
    }

    /// The state that a point had to make is in its file, or cannot be shared.
    pub(crate) fn made(&self, file: &Path, is_there: bool) {
        let made = if is_there { Made::There } else { Made::Failed };
        self.queue().states.insert(file.to_owned(), made);
        self.changed.notify_all();
    }

    /// A point is done. The last one of a state removes its file.
    pub(crate) fn done(&self, task: usize) {
        let Some(file) = &self.files[task] else { return };
        let left = {
            let mut queue = self.queue();
            let left = queue.left.get_mut(file).expect("it was counted");
            *left -= 1;
            *left
        };
        if left == 0 {
            // A file that cannot be removed does no harm.
            let _ = fs::remove_file(file);
        }
    }
}

/// The file of each point's state: shared by several points, or left by an interrupted run.
fn shared_files(inputs: &[Inputs], folder: &Path) -> Vec<Option<PathBuf>> {
    let states: Vec<Option<String>> = inputs.iter().map(Inputs::state_digest).collect();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    states.iter().flatten().for_each(|state| *counts.entry(state).or_default() += 1);
    let file = |state: &String| {
        let file = folder.join(format!("{state}.state"));
        (counts[&**state] > 1 || file.exists()).then_some(file)
    };
    states.iter().map(|state| state.as_ref().and_then(file)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Axis, Sweep};
    use crate::value::Value;

    /// Points of two seeds and two depths: a state for each seed, seeds fastest.
    fn tasks(folder: &Path) -> Tasks {
        let mut sweep = Sweep::new("s");
        for (key, value) in [("rw", "randread"), ("capacity", "64MiB"), ("precondition", "steady")] {
            sweep.set(key, Value::parse(value));
        }
        sweep.vary(Axis::of_key("iodepth", Value::list("1,2")));
        sweep.seeds = vec![1, 2];
        let points = sweep.plan().unwrap().points;
        Tasks::new(points.into_iter().map(|point| point.inputs.unwrap()).collect(), Some(folder))
    }

    #[test]
    fn points_of_a_state_follow_each_other_and_the_last_removes_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let tasks = tasks(folder.path());
        let (first, source) = tasks.take().unwrap();
        let Source::Make(file) = source else { panic!("{source:?}") };
        fs::write(&file, "").unwrap();
        // Meanwhile a point of the other state.
        let (other, source) = tasks.take().unwrap();
        let Source::Make(others) = source else { panic!("{source:?}") };
        assert_eq!((first, other), (0, 1));
        tasks.made(&file, true);
        assert_eq!(tasks.take(), Some((2, Source::File(file.clone()))));
        tasks.made(&others, false);
        assert_eq!(tasks.take(), Some((3, Source::Itself)));
        tasks.done(0);
        assert!(file.exists());
        tasks.done(2);
        assert!(!file.exists() && tasks.take().is_none());
    }

    #[test]
    fn a_thread_that_waits_for_a_state_goes_on_when_it_is_there_or_the_run_is_stopped() {
        let folder = tempfile::tempdir().unwrap();
        for is_stopped in [false, true] {
            let tasks = tasks(folder.path());
            let files = [tasks.take().unwrap(), tasks.take().unwrap()].map(|(_, source)| match source {
                Source::Make(file) => file,
                other => panic!("{other:?}"),
            });
            std::thread::scope(|scope| {
                let waits = scope.spawn(|| tasks.take());
                if is_stopped {
                    tasks.stop()
                } else {
                    tasks.made(&files[1], true)
                }
                let expected = (!is_stopped).then(|| (3, Source::File(files[1].clone())));
                assert_eq!(waits.join().unwrap(), expected);
            });
        }
    }
}
