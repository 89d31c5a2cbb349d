//! The state from one start of the drive to the next power cut: its tables, and the processes that work on them.
//!
//! After a power cut, a new core is built from the content of the flash. The processes of the old core end at their next
//! step: they find that power was cut since they began ([`Stopped`]). Nothing that was in memory can therefore leak into the
//! result of recovery.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use nandscape_device_ftl_core::component::{LogHead, Record, Stopped};
use nandscape_device_ftl_core::ftl::{ReadOnly, Unwritable};
use nandscape_device_media::{Media, MediaError, PageId};
use nandscape_drive::Breakdown;
use nandscape_drive::breakdown::cause;
use nandscape_sim::credits::Credits;
use nandscape_sim::executor::TaskId;
use nandscape_sim::signal::Signal;
use nandscape_sim::workers::Workers;
use nandscape_sim::{Sim, Time};

use super::cache::WriteCache;
use super::chores::Chore;
use super::durable::KeptCache;
use super::lines::Scan;
use super::program::ProgramJob;
use super::recovery::Recovered;
use super::state::{self, State};
use super::{CheckpointConfig, OxBlockConfig, OxGcConfig};

/// The phase of a start.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// Tables are being read or made.
    Starting,
    /// In service.
    Running,
    /// In service, but nothing can be written any more.
    ReadOnly,
    /// The tables could not be read: nothing is in service.
    Failed,
}

/// The state that survives a power cut outside of flash.
pub(super) struct Shared {
    /// Free slots of the write cache.
    pub(super) free_slots: Credits,
    /// Notified when the drive is in service, or will never be.
    pub(super) ready: Signal,
    /// Why the drive cannot be written any more, whatever a restart finds.
    pub(super) read_only: Cell<Option<ReadOnly>>,
    /// The write cache in the file, where it is kept in one.
    pub(super) kept_cache: Option<KeptCache>,
    /// How garbage is collected, and when checkpoints are taken, from now on.
    pub(super) gc: Cell<OxGcConfig>,
    pub(super) checkpoint: Cell<CheckpointConfig>,
}

/// See the module.
pub(super) struct Core {
    /// Itself, for a timer.
    pub(super) weak: Weak<Core>,
    pub(super) sim: Sim,
    pub(super) media: Rc<Media>,
    pub(super) config: OxBlockConfig,
    pub(super) shared: Rc<Shared>,
    /// Power cuts before it began.
    cuts: u32,
    pub(super) phase: Cell<Phase>,
    pub(super) state: RefCell<State>,
    pub(super) flags: Flags,
    /// Records that have survived a power cut in memory.
    pub(super) kept_records: RefCell<Vec<(u64, Record)>>,
    /// The write cache as the file has kept it, until the drive is in service.
    pub(super) kept_cache: RefCell<Option<WriteCache>>,
    /// The results of the start so far, without a log.
    pub(super) scan: RefCell<Scan>,
    /// The records that the start has replayed.
    pub(super) recovered: Cell<Recovered>,
    /// A page of the log was written, or cannot be.
    pub(super) log_changed: Signal,
    /// Notified when there may be new room.
    pub(super) space: Signal,
    /// A read has released a block.
    pub(super) unpinned: Signal,
    /// A fragment of the map was loaded or written.
    pub(super) map_changed: Signal,
    /// A checkpoint has ended.
    pub(super) checkpointed: Signal,
    pub(super) programs: Workers<ProgramJob>,
    pub(super) chores: Workers<Chore>,
    /// Work in progress elsewhere that starts programs at its end: see `rest`.
    pub(super) visitors: Rc<Latch>,
}

/// The instant that a checkpoint is of.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Mark {
    /// Where the records after it begin.
    pub(super) head: LogHead,
    /// Blocks that were collected before it.
    pub(super) held: usize,
    /// How often the log's chain had broken.
    pub(super) breaks: u32,
    /// The timestamp of the last record before the head.
    pub(super) written: u64,
    /// Changes before it.
    pub(super) changes: u64,
}

/// Work under way.
#[derive(Default)]
pub(super) struct Flags {
    pub(super) log_writing: Cell<bool>,
    /// A checkpoint requests the head of the log.
    pub(super) mark_wanted: Cell<bool>,
    pub(super) mark: Cell<Option<Mark>>,
    pub(super) checkpointing: Cell<bool>,
    pub(super) checkpoint_wanted: Cell<bool>,
    /// A checkpoint is writing tables.
    pub(super) writing_tables: Cell<bool>,
    pub(super) last_checkpoint: Cell<Time>,
    /// When the timer for the next checkpoint ends, if one runs.
    pub(super) timer: Cell<Option<Time>>,
    /// Changes that the last checkpoint has.
    pub(super) covered: Cell<u64>,
    /// Channels that are being collected.
    pub(super) collecting: Cell<u32>,
    /// The channel that is checked first for collection.
    pub(super) next_channel: Cell<u32>,
    /// Complete transactions are becoming current.
    pub(super) committing: Cell<bool>,
    /// Units of the host's data that were programmed when the file got the counters last.
    pub(super) counted: Cell<u64>,
    /// Writing the table of bad blocks of a channel.
    pub(super) writing_bad: Cell<bool>,
    /// Writers of fragments that wait for a page.
    pub(super) table_pages_wanted: Cell<u32>,
}

impl Core {
    pub(super) fn new(sim: &Sim, media: &Rc<Media>, config: OxBlockConfig, shared: &Rc<Shared>) -> Rc<Core> {
        let state = State::new(media, &config, state::bad_at_start(media, &config), 0);
        Rc::new_cyclic(|weak| Core {
            weak: weak.clone(),
            sim: sim.clone(),
            media: media.clone(),
            config,
            shared: shared.clone(),
            cuts: media.power_cuts(),
            phase: Cell::new(Phase::Starting),
            state: RefCell::new(state),
            flags: Flags::default(),
            kept_records: RefCell::default(),
            kept_cache: RefCell::default(),
            scan: RefCell::default(),
            recovered: Cell::default(),
            log_changed: Signal::new(sim),
            space: Signal::new(sim),
            unpinned: Signal::new(sim),
            map_changed: Signal::new(sim),
            checkpointed: Signal::new(sim),
            programs: pool(sim, weak, async |core, job| core.program(job).await),
            chores: pool(sim, weak, async |core, chore| core.do_chore(chore).await),
            visitors: Latch::new(sim),
        })
    }

    /// Whether power has not been cut since it began.
    pub(super) fn is_alive(&self) -> bool {
        self.media.power_cuts() == self.cuts
    }

    /// Whether the host's data is served.
    pub(super) fn is_running(&self) -> bool {
        self.is_alive() && matches!(self.phase.get(), Phase::Running | Phase::ReadOnly)
    }

    /// Whether the host's data is written.
    pub(super) fn is_writing(&self) -> bool {
        self.is_alive() && self.phase.get() == Phase::Running
    }

    /// # Errors
    /// When power was cut, or the drive is out of service.
    pub(super) fn still_running(&self) -> Result<(), Stopped> {
        if self.is_alive() && self.phase.get() != Phase::Failed { Ok(()) } else { Err(Stopped) }
    }

    /// Waits for a signal.
    ///
    /// # Errors
    /// When power is cut meanwhile, or was before.
    pub(super) async fn wait(&self, signal: &Signal) -> Result<(), Stopped> {
        self.still_running()?;
        signal.changed().await;
        self.still_running()
    }

    /// Wakes all waiters whose event will no longer happen.
    pub(super) fn wake_all(&self) {
        for signal in [&self.log_changed, &self.space, &self.unpinned, &self.map_changed, &self.checkpointed] {
            signal.notify();
        }
    }

    /// Reads a page of a table or of the log.
    pub(super) async fn read_page(&self, page: PageId) -> Result<Result<(), MediaError>, Stopped> {
        let who = self.config.priority.who(cause::METADATA);
        let read = self.media.read(page, self.media.geometry().page_size(), who, &mut Breakdown::new()).await;
        self.still_running()?;
        Ok(read)
    }

    /// Nothing can be written any more.
    pub(super) fn give_up_writing(&self, why: ReadOnly) {
        if self.phase.get() == Phase::Failed || self.phase.replace(Phase::ReadOnly) == Phase::ReadOnly {
            return;
        }
        self.shared.read_only.set(self.shared.read_only.get().or(Some(why)));
        let mut state = self.state.borrow_mut();
        let mut told = state.cache.give_up_watchers();
        told.extend(state.waiting.drain(..).map(|(_, settling)| settling));
        drop(state);
        told.iter().for_each(|settling| settling.give_up(1, Unwritable::ReadOnly));
        self.shared.free_slots.give_up();
        self.wake_all();
    }
}

/// A pool of workers that do not keep the core alive.
fn pool<J: 'static>(sim: &Sim, weak: &Weak<Core>, work: impl AsyncFn(&Core, &mut J) + 'static) -> Workers<J> {
    let weak = weak.clone();
    Workers::new(sim, async move |job: &mut J| {
        if let Some(core) = weak.upgrade() {
            work(&core, job).await;
            core.job_ended();
        }
    })
}

/// Counts work under way, for a caller that waits until it has ended.
pub(super) struct Latch {
    sim: Sim,
    left: Cell<usize>,
    waiting: Cell<Option<TaskId>>,
}

impl Latch {
    pub(super) fn new(sim: &Sim) -> Rc<Latch> {
        Rc::new(Latch { sim: sim.clone(), left: Cell::new(0), waiting: Cell::new(None) })
    }

    /// Whether nothing is under way.
    pub(super) fn is_free(&self) -> bool {
        self.left.get() == 0
    }

    /// One more is under way, until what this returns is dropped.
    pub(super) fn begin(self: &Rc<Latch>) -> Held {
        self.left.set(self.left.get() + 1);
        Held(self.clone())
    }

    /// Waits until fewer than `most` are under way.
    pub(super) async fn below(&self, most: usize) {
        std::future::poll_fn(|_| match self.left.get() < most {
            true => std::task::Poll::Ready(()),
            false => {
                self.waiting.set(Some(self.sim.current_task()));
                std::task::Poll::Pending
            }
        })
        .await;
    }
}

/// Something under way.
pub(super) struct Held(Rc<Latch>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.left.set(self.0.left.get() - 1);
        if let Some(task) = self.0.waiting.take() {
            self.0.sim.wake(task);
        }
    }
}
