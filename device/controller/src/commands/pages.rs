//! Fetching the pages of one command from flash, all at a time. A command's time is that of its last page.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_device_ftl::ftl::Fetches;
use nandscape_device_ftl::{Extent, Fetch, Ftl};
use nandscape_device_media::MediaError;
use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, HostMem};
use nandscape_sim::executor::TaskId;
use nandscape_wire_nvme::Status;

use crate::controller::{Failed, NvmeController};

/// A part of a command that is fetched beside the others.
pub(crate) struct PageJob<F: Ftl> {
    part: Part,
    command: Rc<Gather<F>>,
}

enum Part {
    Page(Fetch),
    /// Bytes that needed no flash and have the link still to cross.
    Ready(u64),
}

/// A command whose parts are under way.
struct Gather<F: Ftl> {
    controller: Rc<NvmeController<F>>,
    task: TaskId,
    left: Cell<usize>,
    mem: HostMem,
    to_host: bool,
    /// Where the time of the part that ended last went.
    last: RefCell<Breakdown>,
    /// What the first of the parts that failed ended with, in the order of sectors.
    failed: Cell<Option<Failed>>,
}

impl<F: Ftl> NvmeController<F> {
    /// One page: die, array, channel, transfer; then the link.
    pub(crate) async fn fetch_page(
        &self,
        fetch: Fetch,
        mem: &HostMem,
        to_host: bool,
        log: &mut Breakdown,
    ) -> Result<(), Failed> {
        let who = self.config.priority.who(cause::HOST_READ);
        if let Err(error) = self.media.read(fetch.page, fetch.flash_bytes, who, log).await {
            let sector = Some(fetch.sector);
            self.ftl.not_fetched(fetch, error);
            return Err(Failed { status: status_of(error), sector });
        }
        let bytes = u64::from(fetch.host_bytes);
        self.ftl.fetched(fetch, mem);
        if to_host {
            self.link.send(bytes, log).await;
        }
        Ok(())
    }

    /// Several pages, or none; with `to_host`, everything of the extent crosses the link.
    pub(crate) async fn fetch_pages(
        &self,
        fetches: Fetches,
        extent: Extent,
        mem: &HostMem,
        to_host: bool,
        log: &mut Breakdown,
    ) -> Result<(), Failed> {
        let from_flash: u64 = fetches.iter().map(|fetch| u64::from(fetch.host_bytes)).sum();
        let ready = if to_host { extent.bytes() - from_flash } else { 0 };
        let parts = fetches.into_iter().map(Part::Page).chain((ready > 0).then_some(Part::Ready(ready)));
        let parts: Vec<Part> = parts.collect();
        let command = Rc::new(Gather {
            controller: self.handle(),
            task: self.sim.current_task(),
            left: Cell::new(parts.len()),
            mem: mem.clone(),
            to_host,
            last: RefCell::default(),
            failed: Cell::new(None),
        });
        for part in parts {
            self.page_reads.start(PageJob { part, command: command.clone() });
        }
        std::future::poll_fn(|_| match command.left.get() {
            0 => std::task::Poll::Ready(()),
            _ => std::task::Poll::Pending,
        })
        .await;
        *log += &*command.last.borrow();
        command.failed.get().map_or(Ok(()), Err)
    }
}

/// What a command ends with whose page could not be read (NVM 3.1.2.3).
fn status_of(error: MediaError) -> Status {
    match error {
        MediaError::Uncorrectable | MediaError::Failed | MediaError::NoAnswer | MediaError::Misuse(_) => {
            Status::UNRECOVERED_READ_ERROR
        }
        MediaError::PowerLost => Status::ABORTED_POWER_LOSS,
    }
}

impl<F: Ftl> PageJob<F> {
    /// Fetches the part; the command goes on when it was the last.
    pub(crate) async fn run(self) {
        let PageJob { part, command } = self;
        let mut log = Breakdown::new();
        let controller = &command.controller;
        let ended = match part {
            Part::Page(fetch) => controller.fetch_page(fetch, &command.mem, command.to_host, &mut log).await,
            Part::Ready(bytes) => {
                controller.link.send(bytes, &mut log).await;
                Ok(())
            }
        };
        let failed = command.failed.get().into_iter().chain(ended.err());
        command.failed.set(failed.min_by_key(|failed| failed.sector));
        command.left.set(command.left.get() - 1);
        if command.left.get() == 0 {
            *command.last.borrow_mut() = log;
            controller.sim.wake(command.task);
        }
    }
}
