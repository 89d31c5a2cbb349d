//! Follows the reads of one drive that ask for a notice: issue to the chip, arrival of the page, end. It posts notices when
//! they are due. A read that ends earlier gets none.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use nandscape_device_media::ReadWatch;
use nandscape_drive::QueueId;
use nandscape_sim::executor::TaskId;
use nandscape_sim::{Sim, Span, Time};
use nandscape_wire_nvme::CompletionEntry;

use super::Port;
use super::figures::Precompletion;
use super::predictor::Recent;

/// See the file.
pub struct Tracker {
    sim: Sim,
    /// By chip.
    flash: RefCell<Vec<Recent>>,
    /// From the arrival of a page in the controller until the read ends.
    transfer: RefCell<Recent>,
    reads: RefCell<Vec<Tracked>>,
    /// Reads so far: the number of the next one.
    number: Cell<u64>,
    figures: RefCell<Precompletion>,
    me: Weak<Tracker>,
}

/// A read in progress that asks for a notice.
struct Tracked {
    number: u64,
    task: TaskId,
    queue: QueueId,
    cid: u16,
    port: Rc<Port>,
    issued: Option<Issued>,
    arrived: Option<Time>,
    announced: Option<Time>,
}

/// A read issued to a chip, and the predictions at that time.
#[derive(Copy, Clone)]
struct Issued {
    at: Time,
    chip: u32,
    flash: Option<Span>,
    transfer: Option<Span>,
}

impl Issued {
    /// The predicted remaining time; `None` if a component has no history.
    fn remaining(&self) -> Option<Span> {
        Some(self.flash? + self.transfer?)
    }
}

/// A read is followed until this is dropped.
pub(crate) struct Following<'a> {
    tracker: &'a Tracker,
    number: u64,
}

impl Tracker {
    pub(crate) fn new(sim: &Sim) -> Rc<Tracker> {
        Rc::new_cyclic(|me| Tracker {
            sim: sim.clone(),
            flash: RefCell::default(),
            transfer: RefCell::default(),
            reads: RefCell::default(),
            number: Cell::new(0),
            figures: RefCell::default(),
            me: me.clone(),
        })
    }

    /// The counts so far.
    pub(crate) fn figures(&self) -> Precompletion {
        self.figures.borrow().clone()
    }

    /// Restarts the counts. The history of components stays.
    pub(crate) fn count_anew(&self) {
        self.figures.take();
    }

    /// Counts a read that asks but is too large.
    pub(crate) fn passed_over(&self) {
        let mut figures = self.figures.borrow_mut();
        (figures.asked, figures.large) = (figures.asked + 1, figures.large + 1);
    }

    /// Follows a command of the current task, whose notice goes to `port`.
    pub(crate) fn follow(&self, (queue, cid): (QueueId, u16), port: Rc<Port>) -> Following<'_> {
        self.figures.borrow_mut().asked += 1;
        let number = self.number.replace(self.number.get() + 1);
        let task = self.sim.current_task();
        let read = Tracked { number, task, queue, cid, port, issued: None, arrived: None, announced: None };
        self.reads.borrow_mut().push(read);
        Following { tracker: self, number }
    }

    /// The read of the current task.
    fn of_task<T>(&self, look: impl FnOnce(&mut Tracked) -> T) -> Option<T> {
        let task = self.sim.current_task();
        self.reads.borrow_mut().iter_mut().find(|read| read.task == task).map(look)
    }

    /// Posts the notice of a read, if it has not ended.
    fn announce(&self, number: u64) {
        let now = self.sim.now();
        let due = self.reads.borrow().iter().find(|read| read.number == number).map(|read| {
            let ends = read.issued.and_then(|issued| Some(issued.at + issued.remaining()?)).unwrap_or(now);
            let remaining = u32::try_from(ends.since(now).ns()).unwrap_or(u32::MAX);
            let (sq_id, cid) = (read.queue.0.into(), read.cid.into());
            (read.port.clone(), CompletionEntry { dw0: remaining.into(), sq_id, cid, ..CompletionEntry::default() })
        });
        // The host may call back during the notification, so nothing is borrowed.
        if let Some((port, entry)) = due
            && (port.post)(entry)
            && let Some(read) = self.reads.borrow_mut().iter_mut().find(|read| read.number == number)
        {
            read.announced = Some(now);
        }
    }

    /// A read has ended, well or not.
    fn ended(&self, read: &Tracked, is_success: bool) {
        let (now, mut figures) = (self.sim.now(), self.figures.borrow_mut());
        let Some(issued) = read.issued else {
            figures.unissued += 1;
            return;
        };
        match read.announced {
            Some(announced) => figures.count(now - announced, read.port.window),
            None => figures.missing += 1,
        }
        if let (true, Some(arrived)) = (is_success, read.arrived) {
            self.transfer.borrow_mut().observe(now - arrived);
            figures.transfer.add(now - arrived, issued.transfer);
            if let Some(remaining) = issued.remaining() {
                figures.error.record(Span::from_ns(remaining.ns().abs_diff((now - issued.at).ns())));
            }
        }
    }
}

impl ReadWatch for Tracker {
    fn wants(&self) -> bool {
        self.of_task(|read| read.issued.is_none()).unwrap_or(false)
    }

    fn issued(&self, chip: u32) {
        let (now, flash) = (self.sim.now(), self.flash.borrow().get(chip as usize).and_then(Recent::predict));
        let issued = Issued { at: now, chip, flash, transfer: self.transfer.borrow().predict() };
        let noted = self.of_task(|read| {
            read.issued = Some(issued);
            (read.number, read.port.window)
        });
        let (Some((number, window)), Some(remaining)) = (noted, issued.remaining()) else { return };
        if remaining <= window {
            return self.announce(number);
        }
        let (sim, me, due) = (self.sim.clone(), self.me.clone(), now + (remaining - window));
        self.sim.spawn(async move {
            sim.sleep_until(due).await;
            if let Some(tracker) = me.upgrade() {
                tracker.announce(number);
            }
        });
    }

    fn arrived(&self, chip: u32) {
        let now = self.sim.now();
        let issued = self.of_task(|read| {
            read.arrived = Some(now);
            read.issued.filter(|issued| issued.chip == chip)
        });
        let Some(Some(issued)) = issued else { return };
        let time = now - issued.at;
        let mut flash = self.flash.borrow_mut();
        if flash.len() <= chip as usize {
            flash.resize(chip as usize + 1, Recent::default());
        }
        flash[chip as usize].observe(time);
        self.figures.borrow_mut().flash.add(time, issued.flash);
    }
}

impl Following<'_> {
    /// The read has ended.
    pub(crate) fn ended(self, is_success: bool) {
        if let Some(read) = self.take() {
            self.tracker.ended(&read, is_success);
        }
    }

    fn take(&self) -> Option<Tracked> {
        let mut reads = self.tracker.reads.borrow_mut();
        let at = reads.iter().position(|read| read.number == self.number)?;
        Some(reads.swap_remove(at))
    }
}

impl Drop for Following<'_> {
    fn drop(&mut self) {
        drop(self.take());
    }
}
