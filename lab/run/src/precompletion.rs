//! Notices ahead of completions, as the host of a run asks for them: a queue for them, and the bit in each of its reads and
//! writes. And the accuracy of the notices, and of the host's knowledge whether a write fits into the write buffer (Shin 4.3).
//! Each notice goes to the receiver of its command's completion.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use nandscape_device_controller::{Component, Precompletion};
use nandscape_drive::breakdown::cause;
use nandscape_drive::io::Sink;
use nandscape_drive::{
    Announcements, CommandRef, Completion, Controller, Drive, DriveInfo, HostMem, Io, Issuer, QueueDrive, QueueId,
    Stage, Token,
};
use nandscape_host_path::{BufferAccount, NoticeFigures};
use nandscape_sim::slots::{Key, Slots};
use nandscape_sim::{Sim, Span};
use nandscape_wire_nvme::vendor::{Hints, NOTICE, NOTICES, Notices};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};
use serde::Serialize;
use zerocopy::IntoBytes;

/// Entries of the queue of notices: no run has more commands in work than that at a time, and notices are taken at once.
const ENTRIES: u32 = 4_096;

/// How right notices were in the measured phase.
#[derive(Clone, Debug, Serialize)]
pub struct PrecompletionReport {
    /// How long before the end of a read its notice was due.
    pub window_us: f64,
    /// Reads that asked for a notice.
    pub reads: u64,
    /// Those of 8 KiB and more, which are not predicted.
    pub large: u64,
    /// Those that needed no read of a single page: served from memory, or spread over several pages.
    pub unissued: u64,
    /// Notices within a microsecond of their time.
    pub in_time: u64,
    /// Notices before that.
    pub early: u64,
    /// Notices after that.
    pub late: u64,
    /// Reads of a page that ended without a notice.
    pub missing: u64,
    /// Mean of the errors of predictions, from the issue to a chip to the end; null without any.
    pub error_mean_us: Option<f64>,
    /// The 99th percentile of the same.
    pub error_p99_us: Option<f64>,
    /// The largest.
    pub error_max_us: Option<f64>,
    /// From the issue until the page is in the controller.
    pub flash: ComponentReport,
    /// From there to the host.
    pub transfer: ComponentReport,
    /// Writes for which the host knew whether they would find room in the write buffer.
    pub buffer: BufferReport,
}

/// Times of a component.
#[derive(Clone, Debug, Serialize)]
pub struct ComponentReport {
    /// Their mean.
    pub mean_us: Option<f64>,
    /// Their standard deviation.
    pub deviation_us: Option<f64>,
    /// The root of the mean of squared errors of predictions.
    pub error_us: Option<f64>,
}

/// Writes by what the host expected of them and what became of them.
#[derive(Copy, Clone, Default, PartialEq, Eq, Debug, Serialize)]
pub struct BufferReport {
    /// Expected to find room, and did.
    pub hits: u64,
    /// Expected to find room, and waited.
    pub missed: u64,
    /// Expected to wait, and found room.
    pub unexpected_hits: u64,
    /// Expected to wait, and did.
    pub waits: u64,
}

/// How a host with `host.completion=precompletion` used the notices in the measured phase.
#[derive(Clone, Debug, Serialize)]
pub struct WokenReport {
    /// The window that the host had set last; null where it is the drive's.
    pub window_us: Option<f64>,
    /// Reads that waited for a notice.
    pub reads: u64,
    /// Those whose thread was polling when the completion came.
    pub ready: u64,
    /// Those whose thread got its processor after the completion.
    pub late: u64,
    /// Those whose completion came without a notice, or before the handler of the notice: an interrupt.
    pub missing: u64,
    /// Those whose completion came after the thread had given up polling: an interrupt.
    pub gave_up: u64,
    /// Mean time from a notice until its thread had its processor; null without any.
    pub delay_mean_us: Option<f64>,
    /// The 90th percentile of the same.
    pub delay_p90_us: Option<f64>,
    /// Writes that were expected to find room in the write buffer, and polled for.
    pub polled_writes: u64,
    /// Those that took longer than that.
    pub polled_writes_waited: u64,
}

impl WokenReport {
    pub(crate) fn of(window: Option<Span>, figures: &NoticeFigures) -> WokenReport {
        let delay = &figures.delay;
        let known = |figure: f64| (delay.count() > 0).then_some(figure);
        WokenReport {
            window_us: window.map(Span::as_us),
            reads: figures.reads,
            ready: figures.ready,
            late: figures.late,
            missing: figures.missing,
            gave_up: figures.gave_up,
            delay_mean_us: known(delay.mean_ns() / 1e3),
            delay_p90_us: known(delay.quantile(0.9).as_us()),
            polled_writes: figures.hits,
            polled_writes_waited: figures.hits_waited,
        }
    }
}

impl PrecompletionReport {
    pub(crate) fn of(window: Span, figures: &Precompletion, buffer: BufferReport) -> PrecompletionReport {
        let error = &figures.error;
        let known = |figure: f64| (error.count() > 0).then_some(figure);
        let component = |of: &Component| ComponentReport {
            mean_us: of.mean_us(),
            deviation_us: of.deviation_us(),
            error_us: of.error_us(),
        };
        PrecompletionReport {
            window_us: window.as_us(),
            reads: figures.asked,
            large: figures.large,
            unissued: figures.unissued,
            in_time: figures.in_time,
            early: figures.early,
            late: figures.late,
            missing: figures.missing,
            error_mean_us: known(error.mean_ns() / 1e3),
            error_p99_us: known(error.quantile(0.99).as_us()),
            error_max_us: known(error.max().as_us()),
            flash: component(&figures.flash),
            transfer: component(&figures.transfer),
            buffer,
        }
    }

    /// A share of the reads of a page.
    pub fn share(&self, of: u64) -> f64 {
        let all = self.in_time + self.early + self.late + self.missing;
        if all == 0 { 0.0 } else { of as f64 / all as f64 }
    }
}

/// A host that asks a drive for notices.
pub struct Asking {
    sim: Sim,
    controller: Rc<dyn Controller>,
    announcements: Announcements,
    window: Cell<Span>,
    account: BufferAccount,
    buffer: Cell<BufferReport>,
}

/// Why a host cannot wait by notices.
pub(crate) const NEEDS_NOTICES: &str = "host.completion: precompletion needs a drive that announces the ends of reads; \
                                        --set controller.precompletion.window=16us makes one";
/// Why a drive has no queue of notices, before the status.
pub(crate) const NO_ROOM: &str = "the drive has no room for the queue of notices";

/// Has a controller announce reads in a queue this long ahead; zero is its own window.
///
/// # Errors
/// The status with which it refuses.
pub(crate) async fn give_window(
    issuer: &Issuer,
    admin: &dyn Drive,
    queue: QueueId,
    window: Span,
) -> Result<(), Status> {
    let value = Notices::new(queue.0, u32::try_from(window.ns()).unwrap_or(u32::MAX));
    let command = SubmissionEntry::set_features(NOTICES, 0);
    match issuer.execute(admin, command, HostMem::from_bytes(value.as_bytes())).await.status {
        status if status.is_success() => Ok(()),
        status => Err(status),
    }
}

impl Asking {
    /// Creates pair `id` of a controller for notices.
    ///
    /// # Errors
    /// The controller's reason to refuse.
    pub(crate) fn new(
        sim: &Sim,
        controller: Rc<dyn Controller>,
        (id, most): (QueueId, u32),
        window: Span,
    ) -> Result<Rc<Asking>, String> {
        let announcements = Announcements::new(controller.clone(), id, ENTRIES.min(most));
        let announcements =
            announcements.map_err(|status| format!("{NO_ROOM}: {status}; raise controller.queue_pairs"))?;
        let (window, account, buffer) = (Cell::new(window), BufferAccount::default(), Cell::default());
        Ok(Rc::new(Asking { sim: sim.clone(), controller, announcements, window, account, buffer }))
    }

    /// Has the controller announce reads there.
    ///
    /// # Errors
    /// The controller's reason to refuse.
    pub(crate) async fn begin(&self, issuer: &Issuer, admin: &dyn Drive) -> Result<(), String> {
        let given = give_window(issuer, admin, self.announcements.id(), self.window.get()).await;
        given.map_err(|status| format!("controller.precompletion.window: the drive refuses notices: {status}"))
    }

    /// The window in force, or about to be.
    pub fn window(&self) -> Span {
        self.window.get()
    }

    /// The host wants another window.
    pub fn set_window(self: &Rc<Asking>, window: Span) {
        self.window.set(window);
        let asking = self.clone();
        self.sim.spawn(async move {
            // While another command changes the window, that one takes the newest.
            let admin = QueueDrive::new(&asking.sim, asking.controller.clone(), QueueId::ADMIN, 2);
            let Ok(admin) = admin else { return };
            let issuer = Issuer::new(&asking.sim);
            let mut given = None;
            while given != Some(asking.window.get()) {
                given = Some(asking.window.get());
                if asking.begin(&issuer, &*admin).await.is_err() {
                    return;
                }
            }
        });
    }

    /// A connection whose reads and writes ask.
    pub fn over(self: &Rc<Asking>, below: Rc<QueueDrive>) -> Rc<dyn Drive> {
        self.announcements.add(&below);
        let unit_bytes = below.info().unit_bytes.max(1);
        Rc::new_cyclic(|me| Asker {
            me: me.clone(),
            host: self.clone(),
            below,
            unit_bytes,
            passing: RefCell::default(),
        })
    }

    /// The measured phase begins.
    pub(crate) fn count_anew(&self) {
        self.buffer.take();
    }

    /// What the host expected of the write buffer.
    pub(crate) fn buffer(&self) -> BufferReport {
        self.buffer.get()
    }

    fn ended(&self, write: Option<Write>, done: &Completion) {
        let units = write.map_or(0, |write| write.units);
        self.account.completed(units, Some(Hints(done.dw1).buffer_free().into()));
        let Some(Write { expects_room, .. }) = write else { return };
        let Some(expects_room) = expects_room.filter(|_| done.status.is_success()) else { return };
        // Waits for room are in the queue stage. Other writes and collections cause them.
        let has_waited = done.breakdown.stage(Stage::Queue) > done.breakdown.waited(Stage::Queue, cause::POWER);
        let mut buffer = self.buffer.get();
        *match (expects_room, has_waited) {
            (true, false) => &mut buffer.hits,
            (true, true) => &mut buffer.missed,
            (false, false) => &mut buffer.unexpected_hits,
            (false, true) => &mut buffer.waits,
        } += 1;
        self.buffer.set(buffer);
    }
}

/// See [`Asking::over`].
struct Asker {
    me: Weak<Asker>,
    host: Rc<Asking>,
    below: Rc<QueueDrive>,
    unit_bytes: u32,
    passing: RefCell<Slots<Passing>>,
}

/// A command on its way.
struct Passing {
    token: Token,
    write: Option<Write>,
}

/// A write on its way.
#[derive(Copy, Clone)]
struct Write {
    units: u32,
    /// Whether it will find room; `None` before the first completion.
    expects_room: Option<bool>,
}

impl Asker {
    fn write(&self, entry: &SubmissionEntry) -> Write {
        let lba_bytes = u64::from(self.below.info().lba_bytes);
        let (first, blocks) = (entry.slba(), u64::from(entry.blocks_in_a_row()));
        let (unit, from) = (u64::from(self.unit_bytes), first * lba_bytes);
        let units = (((first + blocks) * lba_bytes).div_ceil(unit) - from / unit) as u32;
        Write { units, expects_room: self.host.account.submitted(units) }
    }
}

impl Drive for Asker {
    fn info(&self) -> DriveInfo {
        self.below.info()
    }

    fn submit(&self, io: Io) {
        let Io { mut command, mem, token } = io;
        let opcode = IoOpcode(command.opcode);
        if !matches!(opcode, IoOpcode::READ | IoOpcode::WRITE) {
            return self.below.submit(Io { command, mem, token });
        }
        let write = (opcode == IoOpcode::WRITE).then(|| self.write(&command));
        command.cdw2 = (command.cdw2.get() | NOTICE).into();
        let key = self.passing.borrow_mut().insert(Passing { token, write });
        let sink: Rc<dyn Sink> = self.me.upgrade().expect("a drive in use is alive");
        self.below.submit(Io { command, mem, token: Token::new(sink, key.to_bits()) });
    }

    fn cancel(&self, command: CommandRef) -> bool {
        let key = self.passing.borrow().find(|passing| passing.token.is_of(command));
        let me: Rc<dyn Sink> = self.me.upgrade().expect("a drive in use is alive");
        let command = key.map_or(command, |key| CommandRef::new(&me, key.to_bits()));
        self.below.cancel(command)
    }
}

impl Sink for Asker {
    fn complete(&self, tag: u64, completion: Completion) {
        let passing = self.passing.borrow_mut().remove(Key::from_bits(tag));
        if let Some(Passing { token, write }) = passing {
            self.host.ended(write, &completion);
            token.complete(completion);
        }
    }

    fn announced(&self, tag: u64, remaining: Span) {
        let announcer = self.passing.borrow().get(Key::from_bits(tag)).map(|passing| passing.token.announcer());
        if let Some(announce) = announcer {
            announce(remaining);
        }
    }

    fn is_stopped(&self) -> bool {
        self.host.sim.is_stopped()
    }
}
