//! A thread that looks at all queues, takes what has finished, and sleeps for an interval, instead of interrupts.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use nandscape_host_machine::{Mode, Role, ThreadSpec};
use nandscape_sim::Span;

use crate::path::Path;
use crate::stages::stage;

impl Path {
    /// Begins the thread. It ends with the path.
    pub(crate) fn begin_poll_thread(self: &Rc<Path>, interval: Span) {
        let spec = ThreadSpec { role: Role::Kernel, ..ThreadSpec::default() };
        let thread = self.machine.thread(spec).expect("a thread of any processor");
        let (sim, path) = (self.sim.clone(), Rc::downgrade(self));
        self.sim.spawn(async move {
            while let Some(path) = path.upgrade() {
                for queue in 0..path.vectors.len() {
                    thread.work(path.config.costs.poll, Mode::Kernel).await;
                    for _ in 0..path.vectors[queue].waiting() {
                        if !path.take_event(&thread, queue, (None, stage::POLL)).await {
                            break;
                        }
                    }
                }
                if interval.is_zero() {
                    thread.yield_now().await;
                    let posted = poll_fn(|_| {
                        let is_posted = path.vectors.iter().any(|vector| vector.waiting() > 0);
                        path.poller.replace((!is_posted).then(|| sim.current_task()));
                        if is_posted { Poll::Ready(()) } else { Poll::Pending }
                    });
                    thread.spin_until(posted).await;
                } else {
                    drop(path);
                    thread.sleep(interval).await;
                }
            }
        });
    }
}
