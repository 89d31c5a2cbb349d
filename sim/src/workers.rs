//! A pool of tasks that do one kind of job, started as they are needed and kept for the next one.
//!
//! A job costs no allocation once the pool has grown to the number of jobs in flight: the future of the work lives
//! inside its worker's. Jobs start in the order of [`Workers::start`], whichever worker is polled first: one may have been woken
//! for another reason before its job came.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use crate::executor::Sim;
use crate::mailbox::Mailbox;
use crate::time::Span;

/// Does jobs of type `J`, any number at a time.
pub struct Workers<J: 'static> {
    pool: Rc<Pool<J>>,
    hire: Box<dyn Fn(Rc<Pool<J>>, u32)>,
}

struct Pool<J> {
    sim: Sim,
    /// Each worker is called for a job in the queue, or gets a separate one, which begins later.
    workers: RefCell<Vec<Rc<Mailbox<J>>>>,
    /// Jobs that begin now, as many as called workers.
    queue: RefCell<VecDeque<J>>,
    /// The workers without a job, by number.
    idle: RefCell<Vec<u32>>,
    /// No more jobs will be started.
    is_closed: Cell<bool>,
}

impl<J: 'static> Workers<J> {
    /// A pool that does each job by awaiting `work(&mut job)`. The job stays in the worker's mailbox: moving it into a future
    /// costs as much as a short job.
    pub fn new(sim: &Sim, work: impl AsyncFn(&mut J) + 'static) -> Workers<J> {
        let work = Rc::new(work);
        let hire = move |pool: Rc<Pool<J>>, number: u32| {
            let mailbox = pool.workers.borrow()[number as usize].clone();
            let (sim, work) = (pool.sim.clone(), work.clone());
            sim.spawn(async move {
                while !pool.is_closed.get() {
                    let mut received = mailbox.receive().await;
                    let next = || pool.queue.borrow_mut().pop_front().expect("a job for each worker");
                    work(received.get().get_or_insert_with(next)).await;
                    drop(received);
                    pool.idle.borrow_mut().push(number);
                }
            });
        };
        let pool = Pool {
            sim: sim.clone(),
            workers: RefCell::default(),
            queue: RefCell::default(),
            idle: RefCell::default(),
            is_closed: Cell::new(false),
        };
        Workers { pool: Rc::new(pool), hire: Box::new(hire) }
    }

    /// Starts a job; it is first polled after the tasks that are ready now.
    #[inline]
    pub fn start(&self, job: J) {
        let number = self.worker();
        self.pool.queue.borrow_mut().push_back(job);
        self.pool.workers.borrow()[number as usize].call();
    }

    /// Starts a job after `delay`; cheaper than a job that begins by waiting.
    #[inline(always)]
    pub fn start_after(&self, delay: Span, job: J) {
        if delay.is_zero() {
            return self.start(job);
        }
        let number = self.worker();
        self.pool.workers.borrow()[number as usize].send_after(delay, job);
    }

    /// How many jobs have been started and not ended.
    #[inline]
    pub fn busy(&self) -> usize {
        self.pool.workers.borrow().len() - self.pool.idle.borrow().len()
    }

    /// A worker without a job.
    #[inline]
    fn worker(&self) -> u32 {
        let idle = self.pool.idle.borrow_mut().pop();
        idle.unwrap_or_else(|| self.add_worker())
    }

    #[cold]
    fn add_worker(&self) -> u32 {
        let mut workers = self.pool.workers.borrow_mut();
        let number = u32::try_from(workers.len()).expect("more than 2^32 workers");
        workers.push(Rc::new(Mailbox::new(&self.pool.sim)));
        drop(workers);
        (self.hire)(self.pool.clone(), number);
        number
    }
}

impl<J> Drop for Workers<J> {
    fn drop(&mut self) {
        self.pool.is_closed.set(true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executor::Executor;

    #[test]
    fn jobs_start_in_order_whichever_worker_is_awake() {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let (begun, tasks) = (Rc::new(RefCell::new(Vec::new())), Rc::new(RefCell::new(Vec::new())));
        let (inner, log, of) = (sim.clone(), begun.clone(), tasks.clone());
        let workers = Workers::new(&sim, async move |number: &mut u32| {
            log.borrow_mut().push(*number);
            of.borrow_mut().push(inner.current_task());
            inner.sleep(Span::from_ns(5)).await;
        });
        let ran = async {
            [1, 2].into_iter().for_each(|number| workers.start(number));
            sim.sleep(Span::from_ns(50)).await;
            // It will be the first that is polled, and is the last that gets a job.
            let first = tasks.borrow()[0];
            sim.wake(first);
            [3, 4].into_iter().for_each(|number| workers.start(number));
            sim.sleep(Span::from_ns(50)).await;
        };
        executor.block_on(ran).unwrap();
        assert_eq!(*begun.borrow(), [1, 2, 3, 4]);
    }

    #[test]
    fn jobs_overlap_and_workers_are_used_again() {
        let mut executor = Executor::with_spurious_polls();
        let sim = executor.sim();
        let done = Rc::new(RefCell::new(Vec::new()));
        let (inner, log) = (sim.clone(), done.clone());
        let workers = Workers::new(&sim, async move |ns: &mut u64| {
            inner.sleep(Span::from_ns(*ns)).await;
            log.borrow_mut().push((inner.now().ns(), *ns));
        });
        executor
            .block_on(async {
                workers.start(30);
                workers.start(10);
                workers.start_after(Span::from_ns(7), 15);
                assert_eq!(workers.busy(), 3);
                sim.sleep(Span::from_ns(50)).await;
                assert_eq!(workers.busy(), 0);
                workers.start(5);
                workers.start_after(Span::from_ns(7), 1);
                sim.sleep(Span::from_ns(50)).await;
            })
            .unwrap();
        assert_eq!(*done.borrow(), [(10, 10), (22, 15), (30, 30), (55, 5), (58, 1)]);
        assert_eq!((workers.pool.idle.borrow().len(), workers.pool.workers.borrow().len()), (3, 3));
    }

    #[test]
    fn a_job_under_way_is_dropped_with_the_executor() {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let inner = sim.clone();
        let workers = Workers::new(&sim, async move |_: &mut Rc<()>| inner.sleep(Span::from_ns(5)).await);
        let kept = Rc::new(());
        workers.start(kept.clone());
        workers.start_after(Span::from_ns(1), kept.clone());
        executor.block_on(sim.sleep(Span::from_ns(3))).unwrap();
        assert_eq!((Rc::strong_count(&kept), workers.busy()), (3, 2));
        drop(executor);
        assert_eq!(Rc::strong_count(&kept), 1);
    }
}
