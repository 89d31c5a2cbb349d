//! An array: the members, their state, and the drives through which jobs use it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use nandscape_drive::{CommandRef, Completion, Drive, DriveInfo, Io, Issuer};
use nandscape_sim::signal::Signal;
use nandscape_sim::{Seed, Sim, Span, Time};
use nandscape_wire_nvme::Status;

use crate::config::Config;
use crate::flight::Sent;
use crate::front::Front;
use crate::geometry::Geometry;
use crate::journal::Journal;
use crate::level::{Level, Shape};
use crate::locks::StripeLocks;
use crate::member::Member;
use crate::news::Listener;
use crate::rebuild::ScrubReport;
use crate::stats::Stats;
use crate::tail::{Base, TailPolicy, Technique};
use crate::windows::Schedule;

/// A queue pair to each drive, members and spares, in their order.
pub(crate) type Paths = Rc<[Rc<dyn Drive>]>;

/// Why drives cannot be an array, or an array cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct ArrayError(pub String);

/// The repairs when an array that was not closed in order was opened.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Recovered {
    /// Regions that were being written, whose stripes were made consistent.
    pub regions: usize,
    /// Writes that were in the journal as a whole, and were carried out.
    pub writes: usize,
}

/// A command of a job.
pub(crate) struct Job {
    pub(crate) io: Option<Io>,
    pub(crate) begun: Time,
    pub(crate) paths: Paths,
    /// A member's answer to a read that was passed on to it, if that was not success.
    pub(crate) answer: Option<(Sent, Completion)>,
}

/// The state that all users of an array share.
pub(crate) struct Core {
    pub(crate) sim: Sim,
    pub(crate) config: Config,
    pub(crate) shape: Shape,
    pub(crate) level: Rc<dyn Level>,
    pub(crate) geometry: Geometry,
    pub(crate) info: DriveInfo,
    pub(crate) issuer: Issuer,
    pub(crate) locks: StripeLocks,
    pub(crate) tail: Rc<dyn TailPolicy>,
    pub(crate) base: Base,
    pub(crate) stats: RefCell<Stats>,
    /// The array's own queue pairs: for writes of all jobs, and for the array's own reads.
    pub(crate) paths: Paths,
    /// Queue pairs for reads of hosts that have none.
    pub(crate) read_paths: Paths,
    pub(crate) admins: Vec<Option<Rc<dyn Drive>>>,
    /// The namespace of each drive.
    pub(crate) nsids: Vec<u32>,
    /// The drive of each member.
    pub(crate) drive_of: RefCell<Vec<usize>>,
    /// Drives that are not in use.
    pub(crate) spares: RefCell<Vec<usize>>,
    /// Members that have failed, a bit each.
    pub(crate) failed: Cell<u32>,
    /// The member that is being rebuilt, and the first stripe that it does not have.
    pub(crate) rebuilding: Cell<Option<(usize, u64)>>,
    /// The drive that has all stripes of the member that is being rebuilt, while that is being recorded.
    pub(crate) rebuilt: Cell<Option<Sent>>,
    /// Host commands under way: a rebuild gives way to them.
    pub(crate) in_work: Cell<u64>,
    /// More members than the level tolerates have failed.
    pub(crate) is_lost: Cell<bool>,
    /// The records by which it survives crashes, if any.
    pub(crate) journal: Option<Journal>,
    /// The result of the last scrub.
    pub(crate) scrubbed: Cell<ScrubReport>,
    pub(crate) is_scrubbing: Cell<bool>,
    /// Stripes are being made consistent.
    pub(crate) is_resyncing: Cell<bool>,
    /// More such stripes have appeared meanwhile.
    pub(crate) resyncs_again: Cell<bool>,
    /// Drives that were left out when the array was opened, with the error of reading their records or journal.
    pub(crate) unread: RefCell<Vec<(usize, Status)>>,
    /// The generation of the last record that each drive has taken; 0 if it has none.
    pub(crate) taken: Vec<Arc<AtomicU64>>,
    /// Drives without which the array had continued, by their records.
    pub(crate) older: RefCell<Vec<usize>>,
    /// Changes of the members that are not recorded on them yet.
    pub(crate) unrecorded: Cell<u32>,
    pub(crate) recorded: Signal,
    /// Stripes of which more sub-I/Os were busy than can be reconstructed.
    pub(crate) overruns: Cell<u64>,
    /// The next stripe reads from copies in turn.
    pub(crate) turn: Cell<u64>,
    /// Is notified of events of the members.
    pub(crate) listeners: RefCell<Vec<Listener>>,
    /// The members' windows in force.
    pub(crate) schedule: Cell<Option<Schedule>>,
    /// The repairs at the opening.
    pub(crate) recovered: Cell<Recovered>,
    /// Windows are no longer set.
    pub(crate) windows_ended: Cell<bool>,
}

/// An array, which is a drive. [`Array::over`] gives further jobs separate drives.
pub struct Array {
    core: Rc<Core>,
    front: Rc<Front>,
}

/// An array through other queue pairs.
pub struct Connection {
    array: Rc<Array>,
    paths: Paths,
}

impl Array {
    /// An array of members that hold zeros, so its parity is right without a read or write. It has no records on its
    /// members: it ends with the program, and a crash leaves the write hole open. [`Array::create`] makes one with
    /// records. Members beyond those of the level are spares.
    ///
    /// # Errors
    /// Why these drives cannot be such an array, and what would be valid.
    pub fn new(sim: &Sim, shape: Shape, config: Config, members: Vec<Member>) -> Result<Rc<Array>, ArrayError> {
        Array::with_journal(sim, shape, config, members, None)
    }

    pub(crate) fn with_journal(
        sim: &Sim,
        shape: Shape,
        config: Config,
        members: Vec<Member>,
        journal: Option<Journal>,
    ) -> Result<Rc<Array>, ArrayError> {
        let core = Rc::new(Core::new(sim, shape, config, members, journal)?);
        core.start_windows();
        let front = Front::new(&core);
        Ok(Rc::new(Array { core, front }))
    }

    /// The array, with other queue pairs for its reads: those of the same drives, members and spares in their order.
    pub fn over(self: &Rc<Self>, drives: Vec<Rc<dyn Drive>>) -> Rc<Connection> {
        Rc::new(Connection { array: self.clone(), paths: drives.into() })
    }

    /// The counters so far.
    pub fn stats(&self) -> Stats {
        self.core.stats.borrow().clone()
    }

    /// The level and its members.
    pub fn shape(&self) -> Shape {
        self.core.shape
    }

    /// Sizes.
    pub fn geometry(&self) -> Geometry {
        self.core.geometry
    }

    /// The settings.
    pub fn config(&self) -> &Config {
        &self.core.config
    }

    /// Members that have failed or are not rebuilt.
    pub fn missing(&self) -> Vec<usize> {
        let missing = self.core.missing_anywhere();
        (0..self.core.level.members()).filter(|member| missing & 1 << member != 0).collect()
    }

    /// The drive of each member, by its number among those the array was made of.
    pub fn drives(&self) -> Vec<usize> {
        self.core.drive_of.borrow().clone()
    }

    /// The present member number of a drive, given by its number among those the array was made of; `None` for a
    /// spare or a failed drive.
    pub fn member_of(&self, drive: usize) -> Option<usize> {
        let (core, failed) = (&self.core, self.core.failed.get());
        let member = core.drive_of.borrow().iter().position(|of| *of == drive);
        member.filter(|member| failed & 1 << member == 0)
    }

    /// Drives that were left out when the array was opened, by their numbers then: their records could not be read,
    /// with this status. They do not become spares by themselves, since they may hold a member's data;
    /// [`Array::add_spare`] makes a spare of one.
    pub fn unread(&self) -> Vec<(usize, Status)> {
        self.core.unread.borrow().clone()
    }

    /// Drives without which the array had continued when it was opened, by their numbers among those it was opened
    /// with. They were missing, or were restored to an earlier state. They are spares, because their content is not
    /// trusted.
    pub fn older(&self) -> Vec<usize> {
        self.core.older.borrow().clone()
    }

    /// The spares, by their numbers.
    pub fn spares(&self) -> Vec<usize> {
        self.core.spares.borrow().clone()
    }

    /// The repairs when the array was opened, because it had not been closed in order.
    pub fn recovered(&self) -> Recovered {
        self.core.recovered.get()
    }

    /// Whether more members have failed than the level tolerates: reads of their data, and all writes fail.
    pub fn is_lost(&self) -> bool {
        self.core.is_lost.get()
    }

    /// Whether no command of a host is under way, and nothing is rebuilt, scrubbed or made consistent.
    pub fn is_at_rest(&self) -> bool {
        let core = &self.core;
        let is_busy = core.is_scrubbing.get() || core.is_resyncing.get() || core.rebuilding.get().is_some();
        core.in_work.get() == 0 && !is_busy
    }

    pub(crate) fn core(&self) -> &Rc<Core> {
        &self.core
    }

    /// The members' windows in force, if they have any.
    pub fn schedule(&self) -> Option<Schedule> {
        self.core.schedule.get()
    }

    /// The length of the members' windows in force, if they have any.
    pub fn window(&self) -> Option<Span> {
        self.core.schedule.get().map(|schedule| schedule.length)
    }

    /// The place of each member in the order of turns; `None` if the members have no windows. Where ranges have
    /// separate windows, it is that of the first range; a member has each further range one window earlier.
    pub fn turns(&self) -> Option<Vec<usize>> {
        let core = &self.core;
        core.has_windows().then(|| (0..core.level.members()).map(|member| core.turn_of(member)).collect())
    }
}

impl Drive for Array {
    fn info(&self) -> DriveInfo {
        self.core.info
    }

    fn submit(&self, io: Io) {
        self.front.submit(io, &self.core.read_paths);
    }

    fn cancel(&self, command: CommandRef) -> bool {
        self.front.cancel(command)
    }
}

impl Drive for Connection {
    fn info(&self) -> DriveInfo {
        self.array.core.info
    }

    fn submit(&self, io: Io) {
        self.array.front.submit(io, &self.paths);
    }

    fn cancel(&self, command: CommandRef) -> bool {
        self.array.front.cancel(command)
    }
}

impl Connection {
    /// The array.
    pub fn array(&self) -> &Rc<Array> {
        &self.array
    }
}

impl Core {
    fn new(
        sim: &Sim,
        shape: Shape,
        config: Config,
        members: Vec<Member>,
        journal: Option<Journal>,
    ) -> Result<Core, ArrayError> {
        if config.technique == Technique::Rails {
            let problem = "array.technique: rails is two drives that change roles, and no array; Rails::new makes it";
            return Err(ArrayError(problem.to_owned()));
        }
        let level = shape.level();
        let (info, geometry) = fit(shape, &*level, &config, &members, journal.as_ref())?;
        let count = level.members();
        let (tail, seed) = (config.technique, Seed::new(config.seed).child("array"));
        Ok(Core {
            sim: sim.clone(),
            shape,
            geometry,
            info,
            issuer: Issuer::new(sim),
            locks: StripeLocks::new(sim),
            tail: tail.policy(config.timeout, seed),
            base: Base,
            stats: RefCell::new(Stats::new(count)),
            paths: members.iter().map(|member| member.io.clone()).collect(),
            read_paths: members.iter().map(|member| member.reads.as_ref().unwrap_or(&member.io).clone()).collect(),
            nsids: members.iter().map(|member| member.io.info().nsid).collect(),
            admins: members.iter().map(|member| member.admin.clone()).collect(),
            drive_of: RefCell::new((0..count).collect()),
            spares: RefCell::new((count..members.len()).collect()),
            failed: Cell::new(0),
            rebuilding: Cell::new(None),
            rebuilt: Cell::new(None),
            in_work: Cell::new(0),
            is_lost: Cell::new(false),
            journal,
            scrubbed: Cell::default(),
            is_scrubbing: Cell::new(false),
            is_resyncing: Cell::new(false),
            resyncs_again: Cell::new(false),
            unread: RefCell::default(),
            taken: members.iter().map(|_| Arc::default()).collect(),
            older: RefCell::default(),
            unrecorded: Cell::new(0),
            recorded: Signal::new(sim),
            overruns: Cell::new(0),
            turn: Cell::new(0),
            listeners: RefCell::default(),
            schedule: Cell::new(None),
            recovered: Cell::default(),
            windows_ended: Cell::new(false),
            level,
            config,
        })
    }

    /// The drive of a member, by one job's queue pairs.
    pub(crate) fn drive<'a>(&self, paths: &'a Paths, member: usize) -> &'a dyn Drive {
        &*paths[self.drive_of.borrow()[member]]
    }

    /// The members that do not have a stripe, a bit each.
    #[inline]
    pub(crate) fn missing(&self, stripe: u64) -> u32 {
        match self.rebuilding.get() {
            Some((member, next)) if stripe >= next => self.failed.get() | 1 << member,
            _ => self.failed.get(),
        }
    }

    /// The members that do not have all of their stripes, a bit each.
    #[inline]
    pub(crate) fn missing_anywhere(&self) -> u32 {
        self.rebuilding.get().map_or(0, |(member, _)| 1 << member) | self.failed.get()
    }

    /// The members whose data is incomplete, a bit each. A member that was rebuilt, but is not recorded as whole yet,
    /// is not among them.
    pub(crate) fn incomplete(&self) -> u32 {
        match self.rebuilding.get() {
            Some((member, _)) if self.rebuilt.get() == Some(self.sent(member)) => self.failed.get(),
            _ => self.missing_anywhere(),
        }
    }
}

/// The description of an array of these drives.
fn fit(
    shape: Shape,
    level: &dyn Level,
    config: &Config,
    members: &[Member],
    journal: Option<&Journal>,
) -> Result<(DriveInfo, Geometry), ArrayError> {
    let bad = |problem: String| Err(ArrayError(format!("array {shape}: {problem}")));
    if members.len() < level.members() {
        return bad(format!("it needs {} drives, and there are {}", level.members(), members.len()));
    }
    let infos: Vec<DriveInfo> = members.iter().map(|member| member.io.info()).collect();
    let first = infos[0];
    if let Some(number) = infos.iter().position(|info| info.lba_bytes != first.lba_bytes) {
        let (one, other) = (first.lba_bytes, infos[number].lba_bytes);
        return bad(format!("drives 0 and {number} have blocks of {one} and {other} bytes; all must be equal"));
    }
    if infos.iter().any(|info| info.metadata_bytes != 0) {
        return bad("its drives must have no metadata".to_owned());
    }
    if let Some(number) = infos.iter().position(|info| info.keeps_data != first.keeps_data) {
        return bad(format!("drive {number} differs from drive 0 in whether it keeps data; all must be equal"));
    }
    let unit = infos.iter().map(|info| info.unit_bytes).max().unwrap_or(1).max(first.lba_bytes);
    let most = infos.iter().map(|info| info.max_blocks).min().unwrap_or(1);
    let chunk = config.chunk;
    if chunk == 0 || !chunk.is_multiple_of(u64::from(unit)) || chunk > u64::from(most) * u64::from(first.lba_bytes) {
        let most = u64::from(most) * u64::from(first.lba_bytes);
        return bad(format!(
            "array.chunk = {chunk}: it must be a multiple of {unit} bytes, the drives' mapping unit, up to {most}, their longest transfer"
        ));
    }
    let chunk_blocks = (chunk / u64::from(first.lba_bytes)) as u32;
    let smallest = infos.iter().map(|info| info.blocks).min().unwrap_or(0);
    let blocks = journal.map_or(smallest, |journal| journal.form.first);
    let geometry = Geometry::new(level, first.lba_bytes, chunk_blocks, unit / first.lba_bytes, blocks);
    if geometry.stripes == 0 {
        return bad("its drives are smaller than a chunk".to_owned());
    }
    let max_blocks = (u64::from(most) * level.data() as u64).min(1 << 16) as u32;
    let info = DriveInfo {
        nsid: 1,
        blocks: geometry.blocks(),
        lba_bytes: first.lba_bytes,
        metadata_bytes: 0,
        max_blocks,
        unit_bytes: unit,
        volatile_cache: infos.iter().any(|info| info.volatile_cache),
        keeps_data: first.keeps_data,
    };
    Ok((info, geometry))
}
