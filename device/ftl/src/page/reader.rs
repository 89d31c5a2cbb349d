//! Reads of whole extents. Their pages are read side by side, and each is delivered as it comes.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::Poll;

use nandscape_drive::Breakdown;
use nandscape_sim::Sim;
use nandscape_sim::executor::TaskId;
use nandscape_sim::workers::Workers;

use super::PageFtl;
use super::read::{Lookup, PageRead, PageReads};
use crate::address::Extent;
use crate::ftl::{Destination, ReadError, Reader};

/// Reads to destinations of type `D`.
pub struct PageReader<D: Destination> {
    ftl: Rc<PageFtl>,
    parts: Workers<PartJob<D>>,
}

/// A part of a read that is served beside the others.
struct PartJob<D: Destination> {
    part: Part,
    read: Rc<Gather<D>>,
}

enum Part {
    Page(PageRead),
    /// Bytes that needed no flash and are still to be delivered.
    Ready(u64),
}

/// A read whose parts are under way.
struct Gather<D: Destination> {
    sim: Sim,
    ftl: Rc<PageFtl>,
    to: D,
    task: TaskId,
    left: Cell<usize>,
    /// Where the time of the part went that ended last.
    last: RefCell<Breakdown>,
    /// The failure with the lowest sector so far.
    failed: Cell<Option<ReadError>>,
}

impl<D: Destination> PageReader<D> {
    pub(super) fn new(ftl: &Rc<PageFtl>) -> PageReader<D> {
        PageReader { ftl: ftl.clone(), parts: Workers::new(&ftl.sim, PartJob::run) }
    }

    /// Several pages, or none.
    async fn read_parts(
        &self,
        pages: PageReads,
        extent: Extent,
        to: &D,
        breakdown: &mut Breakdown,
    ) -> Result<(), ReadError> {
        let from_flash: u64 = pages.iter().map(|page| u64::from(page.host_bytes)).sum();
        let ready = extent.bytes() - from_flash;
        let ready = (ready > 0).then_some(Part::Ready(ready));
        let read = Rc::new(Gather {
            sim: self.ftl.sim.clone(),
            ftl: self.ftl.clone(),
            to: to.clone(),
            task: self.ftl.sim.current_task(),
            left: Cell::new(pages.len() + usize::from(ready.is_some())),
            last: RefCell::default(),
            failed: Cell::new(None),
        });
        for part in pages.into_iter().map(Part::Page).chain(ready) {
            self.parts.start(PartJob { part, read: read.clone() });
        }
        std::future::poll_fn(|_| if read.left.get() == 0 { Poll::Ready(()) } else { Poll::Pending }).await;
        *breakdown += &*read.last.borrow();
        read.failed.get().map_or(Ok(()), Err)
    }
}

impl<D: Destination> Reader<D> for PageReader<D> {
    async fn read<Caller>(&self, extent: Extent, to: &D, breakdown: &mut Breakdown) -> Result<(), ReadError> {
        let mut lookup = Lookup::default();
        while let Some(miss) = self.ftl.look_up(extent, to, &mut lookup)? {
            self.ftl.load_for(miss, extent, &mut lookup, breakdown).await?;
        }
        match &lookup.pages[..] {
            // The ordinary small read: all of it is in one page.
            [page] if u64::from(page.host_bytes) == extent.bytes() => {
                let counted = match self.ftl.gate.is_closed() {
                    true => Some(self.ftl.pass_gate(breakdown).await),
                    false => None,
                };
                let sensed = self.ftl.sense::<(Caller, D)>(page, breakdown).await;
                drop(counted);
                to.deliver(self.ftl.page_sensed(page, sensed, to)?, breakdown).await;
                Ok(())
            }
            _ => Box::pin(self.read_parts(lookup.pages, extent, to, breakdown)).await,
        }
    }
}

impl<D: Destination> PartJob<D> {
    /// Serves the part. The read goes on when it was the last.
    async fn run(&mut self) {
        let PartJob { part, read } = &*self;
        let mut breakdown = Breakdown::new();
        let ended = match part {
            Part::Page(page) => {
                let counted = match read.ftl.gate.is_closed() {
                    true => Some(read.ftl.pass_gate(&mut breakdown).await),
                    false => None,
                };
                let sensed = read.ftl.sense::<PartJob<D>>(page, &mut breakdown).await;
                drop(counted);
                match read.ftl.page_sensed(page, sensed, &read.to) {
                    Ok(bytes) => {
                        read.to.deliver(bytes, &mut breakdown).await;
                        Ok(())
                    }
                    Err(error) => Err(error),
                }
            }
            Part::Ready(bytes) => {
                read.to.deliver(*bytes, &mut breakdown).await;
                Ok(())
            }
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
