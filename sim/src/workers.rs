//! A pool of tasks that do one kind of job, started as they are needed and kept for the next one.
//!
//! A job costs no allocation once the pool has grown to the number of jobs in flight: the future of the work lives
//! inside its worker's. Jobs start in the order of [`Workers::start`].

use std::cell::RefCell;
use std::rc::Rc;

use crate::executor::Sim;
use crate::mailbox::Mailbox;
use crate::time::Span;

/// Does jobs of type `J`, any number at a time.
pub struct Workers<J: 'static> {
    pool: Rc<Pool<J>>,
    hire: Box<dyn Fn(Rc<Mailbox<J>>)>,
}

struct Pool<J> {
    sim: Sim,
    idle: RefCell<Vec<Rc<Mailbox<J>>>>,
}

impl<J: 'static> Workers<J> {
    /// A pool that does each job by awaiting `work(&mut job)`. The job stays in the worker's own future: moving it into
    /// another one costs as much as a short job.
    pub fn new(sim: &Sim, work: impl AsyncFn(&mut J) + 'static) -> Workers<J> {
        let pool = Rc::new(Pool { sim: sim.clone(), idle: RefCell::default() });
        let (work, weak) = (Rc::new(work), Rc::downgrade(&pool));
        let hire = move |mailbox: Rc<Mailbox<J>>| {
            let (work, weak) = (work.clone(), weak.clone());
            let Some(pool) = weak.upgrade() else { return };
            pool.sim.spawn(async move {
                loop {
                    let mut job = mailbox.receive().await;
                    work(&mut job).await;
                    drop(job);
                    let Some(pool) = weak.upgrade() else { return };
                    pool.idle.borrow_mut().push(mailbox.clone());
                }
            });
        };
        Workers { pool, hire: Box::new(hire) }
    }

    /// Starts a job; it is first polled after the tasks that are ready now.
    #[inline]
    pub fn start(&self, job: J) {
        self.worker().send(job);
    }

    /// Starts a job after `delay`; cheaper than a job that begins by waiting.
    #[inline]
    pub fn start_after(&self, delay: Span, job: J) {
        match delay.is_zero() {
            true => self.start(job),
            false => self.worker().send_after(delay, job),
        }
    }

    #[inline]
    fn worker(&self) -> Rc<Mailbox<J>> {
        let idle = self.pool.idle.borrow_mut().pop();
        idle.unwrap_or_else(|| {
            let mailbox = Rc::new(Mailbox::new(&self.pool.sim));
            (self.hire)(mailbox.clone());
            mailbox
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executor::Executor;

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
                sim.sleep(Span::from_ns(50)).await;
                workers.start(5);
                workers.start_after(Span::from_ns(7), 1);
                sim.sleep(Span::from_ns(50)).await;
            })
            .unwrap();
        assert_eq!(*done.borrow(), [(10, 10), (22, 15), (30, 30), (55, 5), (58, 1)]);
        assert_eq!(workers.pool.idle.borrow().len(), 3);
    }
}
