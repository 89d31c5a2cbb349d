//! The locks of the block layer and of the driver, and who takes them. All mask interrupts, as interrupts and softirqs take them, too.
//!
//! | lock | path | held for | in Linux 3.2 |
//! |---|---|---|---|
//! | of a request queue, one a port | `scsi` | the block layer's work on a request, and on its end | `queue_lock`, in `blk_queue_bio` and `blk_end_request` |
//! | of the controller, one for all ports | `scsi` | the driver's work on a command that is issued; a whole handler | the lock of `ata_host`, in `ata_scsi_queuecmd` and `ahci_interrupt` |
//! | the same | strategies | the driver's work on a command that is issued; each completion that is taken | the thesis names none; its driver was adopted from libata's |
//!
//! Left out: the lock of a queue pair that processors share (`nvme`), and the locks of file systems and of RAID.

use nandscape_host_machine::{Context, Guard, Lock, LockKind, Machine, Mode};
use nandscape_sim::Span;
use nandscape_wire_nvme::SubmissionEntry;

use crate::config::PathKind;
use crate::path::Path;
use crate::stages::stage;

/// See the file.
pub(crate) struct Locks {
    /// Those of request queues, by port; empty without request queues.
    requests: Vec<Lock>,
    controller: Lock,
}

impl Locks {
    /// The locks of a path, by its number of ports; `None` of a path without locks.
    pub(crate) fn new(machine: &Machine, path: PathKind, ports: usize) -> Option<Locks> {
        let queues = match path {
            PathKind::Nvme => return None,
            PathKind::Scsi => ports,
            PathKind::NonBlocking | PathKind::Lazy | PathKind::Cooperative => 0,
        };
        let new = || Lock::new(machine, LockKind::SpinMasked);
        Some(Locks { requests: (0..queues).map(|_| new()).collect(), controller: new() })
    }
}

/// `ended` is called as a stage ends.
impl Path {
    /// The lock of a port's request queue, if the path has such queues. A command for several ports takes that of the first.
    async fn lock_requests<'a>(
        &'a self,
        context: &'a Context,
        port: Option<usize>,
        ended: &mut impl FnMut(&'static str),
    ) -> Option<Guard<'a>> {
        let lock = self.locks.as_ref()?.requests.get(port.unwrap_or(0))?;
        let held = lock.acquire(context).await;
        ended(stage::LOCK);
        Some(held)
    }

    /// The lock of the controller, if the path has one.
    pub(crate) async fn lock_controller<'a>(
        &'a self,
        context: &'a Context,
        ended: &mut impl FnMut(&'static str),
    ) -> Option<Guard<'a>> {
        let held = self.locks.as_ref()?.controller.acquire(context).await;
        ended(stage::LOCK);
        Some(held)
    }

    /// The block layer's work on a request of a thread.
    pub(crate) async fn block_layer_in(
        &self,
        thread: &Context,
        command: &SubmissionEntry,
        mut ended: impl FnMut(&'static str),
    ) {
        let (block, midlayer) = self.config.submit_costs();
        let port = self.port_of(thread.cpu(), &mut command.clone());
        let held = self.lock_requests(thread, port, &mut ended).await;
        spend(thread, block, stage::SUBMIT, &mut ended).await;
        drop(held);
        spend(thread, midlayer, stage::SUBMIT, &mut ended).await;
    }

    /// The block layer's work on the end of an I/O.
    pub(crate) async fn block_layer_out(
        &self,
        context: &Context,
        port: Option<usize>,
        mut ended: impl FnMut(&'static str),
    ) {
        let (midlayer, block) = self.config.complete_costs();
        spend(context, midlayer, stage::COMPLETE, &mut ended).await;
        let held = self.lock_requests(context, port, &mut ended).await;
        spend(context, block, stage::COMPLETE, &mut ended).await;
        drop(held);
    }
}

/// Work of the kernel as a stage, unless it takes no time.
async fn spend(context: &Context, span: Span, stage: &'static str, ended: &mut impl FnMut(&'static str)) {
    if !span.is_zero() {
        context.work(span, Mode::Kernel).await;
        ended(stage);
    }
}
