//! Work on several threads, with results returned to one. Results do not depend on the number of threads.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;

/// Runs `tasks` on up to `jobs` threads, started in their order. Calls `done` for each that ends, on the calling
/// thread. When `done` breaks, no further task starts, and the results of running tasks are dropped.
pub(crate) fn run<T: Sync, R: Send>(
    jobs: usize,
    tasks: &[T],
    work: impl Fn(&T) -> R + Sync,
    mut done: impl FnMut(usize, R) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (tell, told) = channel();
    thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, tasks.len().max(1)) {
            let (tell, next, stop, work) = (tell.clone(), &next, &stop, &work);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(task) = tasks.get(number) else { return };
                    if tell.send((number, work(task))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(tell);
        for (number, result) in told {
            if done(number, result).is_break() {
                stop.store(true, Ordering::Relaxed);
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_is_done_once_however_many_threads() {
        let tasks: Vec<u64> = (0..50).collect();
        for jobs in [0, 1, 2, 7, 100] {
            let mut results = vec![0; tasks.len()];
            let end = run(
                jobs,
                &tasks,
                |task| task * task,
                |number, result| {
                    results[number] += result;
                    ControlFlow::Continue(())
                },
            );
            assert!(
                end.is_continue() && results.iter().zip(&tasks).all(|(result, task)| *result == task * task),
                "{jobs}"
            );
        }
        assert!(run(3, &[0; 0], |task| *task, |_, _| ControlFlow::Break(())).is_continue());
    }

    #[test]
    fn a_break_keeps_the_rest_from_beginning() {
        let begun = AtomicUsize::new(0);
        let mut heard = 0;
        let end = run(
            2,
            &[(); 1_000],
            |()| begun.fetch_add(1, Ordering::Relaxed),
            |_, _| {
                heard += 1;
                if heard == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            },
        );
        assert!(end.is_break() && heard == 3);
    }
}
