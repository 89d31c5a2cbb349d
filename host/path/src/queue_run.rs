//! Queue runs of the path of SCSI: a request that found no free tag is issued by a thread of the processor whose softirq freed one.

use std::rc::Rc;

use nandscape_host_machine::{Affinity, Context, Role, ThreadSpec};

use crate::path::Path;

impl Path {
    /// Begins the threads that the settings ask for.
    pub(crate) fn begin_threads(self: &Rc<Path>) {
        self.config.poll_thread.iter().for_each(|interval| self.begin_poll_thread(*interval));
        (0..self.queue_runs.len()).for_each(|cpu| self.begin_queue_run(cpu));
    }

    fn begin_queue_run(self: &Rc<Path>, cpu: usize) {
        let spec = ThreadSpec { affinity: Affinity::one(cpu), role: Role::Kernel, ..ThreadSpec::default() };
        let thread = self.machine.thread(spec).expect("the processor exists");
        let path = self.clone();
        self.sim.spawn(async move {
            loop {
                while let Some(port) = path.ports.iter().position(|port| port.can_issue()) {
                    path.issue(&thread, port).await;
                }
                path.queue_runs[cpu].wait(&thread).await;
            }
        });
    }

    /// A tag was given back on the processor of a context: requests that wait are issued there.
    pub(crate) fn run_queue(&self, port: Option<usize>, context: Option<&Context>) {
        let Some(port) = port.filter(|port| self.ports[*port].has_requests()) else { return };
        match (self.queue_runs.is_empty(), context) {
            (true, _) => self.issue_at_once(port),
            (false, Some(context)) => _ = self.queue_runs[context.cpu()].notify_from(context),
            (false, None) => _ = self.queue_runs[0].notify(),
        }
    }
}
