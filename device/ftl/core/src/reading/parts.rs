//! Pages of an extent that are read concurrently, each delivered as it arrives.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;
use std::task::Poll;

use nandscape_drive::Breakdown;
use nandscape_sim::Sim;
use nandscape_sim::executor::TaskId;
use nandscape_sim::workers::Workers;

use super::pages::{PageRead, PageReads};
use crate::address::Extent;
use crate::ftl::{Destination, ReadError};

/// Reads pages.
pub trait SensePage: 'static {
    /// How a page is reconstructed from other pages.
    type Round: 'static;

    /// Reads a page, and copies the requested part. Returns the bytes to deliver.
    ///
    /// # Errors
    /// The first sector that the host does not get.
    ///
    /// `Caller` is as in [`Media::read_for`](nandscape_device_media::Media::read_for).
    fn sense_page<Caller, D: Destination>(
        &self,
        read: &PageRead<Self::Round>,
        to: &D,
        breakdown: &mut Breakdown,
    ) -> impl Future<Output = Result<u64, ReadError>>;
}

/// Serves parts of reads.
pub struct Parts<S: SensePage, D: Destination> {
    sim: Sim,
    workers: Workers<PartJob<S, D>>,
}

/// A part of a read that is served concurrently with the others: a page, or bytes that needed no flash.
struct PartJob<S: SensePage, D> {
    page: Option<PageRead<S::Round>>,
    ready: u64,
    read: Rc<Gather<S, D>>,
}

/// A read with parts in progress.
struct Gather<S, D> {
    sim: Sim,
    from: Rc<S>,
    to: D,
    task: TaskId,
    left: Cell<usize>,
    /// The breakdown of the part that ended last.
    last: RefCell<Breakdown>,
    /// The failure with the lowest sector so far.
    failed: Cell<Option<ReadError>>,
}

impl<S: SensePage, D: Destination> Parts<S, D> {
    /// No read is under way.
    pub fn new(sim: &Sim) -> Parts<S, D> {
        Parts { sim: sim.clone(), workers: Workers::new(sim, PartJob::run) }
    }

    /// Reads several pages of an extent, or none; the rest of it is already in the destination's memory.
    ///
    /// # Errors
    /// The first sector that the host does not get.
    pub async fn read(
        &self,
        from: Rc<S>,
        pages: PageReads<S::Round>,
        extent: Extent,
        to: &D,
        breakdown: &mut Breakdown,
    ) -> Result<(), ReadError> {
        let from_flash: u64 = pages.iter().map(|page| u64::from(page.host_bytes)).sum();
        let ready = extent.bytes() - from_flash;
        let read = Rc::new(Gather {
            sim: self.sim.clone(),
            from,
            to: to.clone(),
            task: self.sim.current_task(),
            left: Cell::new(pages.len() + usize::from(ready > 0)),
            last: RefCell::default(),
            failed: Cell::new(None),
        });
        let ready = (ready > 0).then_some((None, ready));
        for (page, ready) in pages.into_iter().map(|page| (Some(page), 0)).chain(ready) {
            self.workers.start(PartJob { page, ready, read: read.clone() });
        }
        std::future::poll_fn(|_| if read.left.get() == 0 { Poll::Ready(()) } else { Poll::Pending }).await;
        *breakdown += &*read.last.borrow();
        read.failed.get().map_or(Ok(()), Err)
    }
}

impl<S: SensePage, D: Destination> PartJob<S, D> {
    /// Serves the part. The read continues when it was the last.
    async fn run(&mut self) {
        let PartJob { page, ready, read } = &*self;
        let mut breakdown = Breakdown::new();
        let bytes = match page {
            Some(page) => read.from.sense_page::<PartJob<S, D>, D>(page, &read.to, &mut breakdown).await,
            None => Ok(*ready),
        };
        let ended = match bytes {
            Ok(bytes) => {
                read.to.deliver(bytes, &mut breakdown).await;
                Ok(())
            }
            Err(error) => Err(error),
        };
        let failed = read.failed.get().into_iter().chain(ended.err());
        read.failed.set(failed.min_by_key(|failed| failed.sector));
        read.left.set(read.left.get() - 1);
        if read.left.get() == 0 {
            *read.last.borrow_mut() = breakdown;
            read.sim.wake(read.task);
        }
    }
}
