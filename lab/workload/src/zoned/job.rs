//! The tasks of a job that knows zones: each has one request outstanding. A reset before a zone's writes, or a finish after them,
//! is recorded as an operation; it adds nothing to the latency of a request.

use std::cell::RefCell;
use std::rc::Rc;

use nandscape_drive::breakdown::cause;
use nandscape_drive::{Completion, Drive, DriveInfo, HostMem, Issuer};
use nandscape_sim::{Class, Resource, Seed, Time, Wait, Who};
use nandscape_wire_nvme::io::FUA;
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};

use super::draw::Draw;
use super::place::{Lane, Places, Turn};
use super::table::{Action as ZoneAction, Table, Tables, Zone, action};
use crate::client::Over;
use crate::flushes::{FLUSH, Syncs};
use crate::record::Direction;
use crate::request::Request;
use crate::run::Runner;
use crate::spec::JobSpec;
use crate::words::Action;

/// Starts the clones of a job, each with its drive. `flow` is its place among several jobs.
///
/// # Errors
/// When the drive has no zones, or the job's requests are larger than a command.
pub(crate) async fn start(
    runner: &Rc<Runner>,
    spec: &JobSpec,
    (flow, seed): (Option<usize>, Seed),
    drives: Vec<Rc<dyn Drive>>,
    tables: &mut Tables,
) -> Result<(), String> {
    for (drive, clone) in drives.into_iter().zip(0..) {
        let table = match tables.get(&spec.namespace) {
            Some(table) => table.clone(),
            None => Table::of(&runner.sim, &*drive).await?,
        };
        tables.insert(spec.namespace, table.clone());
        let origin = Origin { clone, flow, seed: seed.child("requests").nth(clone.into()) };
        ZonedJob::start(runner, spec, &table, drive, origin)?;
    }
    Ok(())
}

/// Which job it is.
struct Origin {
    /// Its place among the clones.
    clone: u32,
    /// Its place among several jobs.
    flow: Option<usize>,
    seed: Seed,
}

struct ZonedJob {
    runner: Rc<Runner>,
    drive: Rc<dyn Drive>,
    info: DriveInfo,
    issuer: Issuer,
    table: Rc<Table>,
    spec: JobSpec,
    flow: Option<usize>,
    places: RefCell<Places>,
    draw: RefCell<Draw>,
    syncs: Syncs,
    /// The tasks that look for a place to write, one after the other.
    line: Resource,
}

/// Class and cause of tasks that stand in line; they appear in no report.
const LINE: Who = Who::new(cause::HOST_WRITE, Class::new(0));

impl ZonedJob {
    /// Starts the tasks of a job.
    ///
    /// # Errors
    /// When its requests are larger than a command of the drive.
    fn start(
        runner: &Rc<Runner>,
        spec: &JobSpec,
        table: &Rc<Table>,
        drive: Rc<dyn Drive>,
        origin: Origin,
    ) -> Result<(), String> {
        let (info, Origin { clone, flow, seed }) = (drive.info(), origin);
        let lba_bytes = u64::from(info.lba_bytes);
        spec.check_zoned_size(u64::from(info.max_blocks) * lba_bytes)?;
        let places = Places::new(spec, &table.zones.borrow(), lba_bytes, clone, seed.child("places"));
        let job = Rc::new(ZonedJob {
            runner: runner.clone(),
            issuer: Issuer::new(&runner.sim),
            table: table.clone(),
            places: RefCell::new(places),
            draw: RefCell::new(Draw::new(spec, seed.child("draws"))),
            syncs: Syncs::new(spec, &info),
            line: Resource::new(&runner.sim),
            spec: spec.clone(),
            drive,
            info,
            flow,
        });
        for _ in 0..spec.iodepth {
            runner.spawn_thread(task(job.clone()));
        }
        Ok(())
    }

    async fn next(&self) -> Result<(), Over> {
        if self.syncs.take_due() {
            return self.flush().await;
        }
        let (direction, bytes) = self.draw.borrow_mut().next();
        let blocks = bytes / u64::from(self.info.lba_bytes);
        match direction {
            Direction::Read => self.read(blocks).await,
            Direction::Trim => self.reset().await,
            Direction::Write | Direction::Flush | Direction::Fua => self.write(blocks).await,
        }
    }

    async fn read(&self, blocks: u64) -> Result<(), Over> {
        let place = self.places.borrow_mut().read(&self.table.zones.borrow(), blocks);
        match place {
            Some((at, blocks)) => self.request(Direction::Read, IoOpcode::READ, at, (at, blocks)).await.map(drop),
            None if self.spec.rw.action == Action::Mixed => self.write(blocks).await,
            None => {
                Err(self
                    .give_up("no zone has data to read: valid are rw = rw and randrw, and a drive that was written"))
            }
        }
    }

    async fn write(&self, most: u64) -> Result<(), Over> {
        let (zone, at, blocks) = self.place(most).await?;
        let start = self.table.zones.borrow()[zone].start;
        let append = self.spec.zoned.is_some_and(|zoned| zoned.append);
        let (opcode, slba) = if append { (IoOpcode::ZONE_APPEND, start) } else { (IoOpcode::WRITE, at) };
        let done = self.request(Direction::Write, opcode, slba, (at, blocks)).await?;
        let entry = &mut self.table.zones.borrow_mut()[zone];
        entry.in_flight -= 1;
        entry.ended(done);
        if done {
            entry.written += blocks;
        }
        self.table.changed.notify();
        Ok(())
    }

    /// Waits for a place to write. Only the first in line looks whether there is one: with many tasks, all looking at each change
    /// would take the square of their number.
    async fn place(&self, most: u64) -> Result<(usize, u64, u64), Over> {
        loop {
            let first = self.line.take(LINE, &mut Wait::default()).await;
            let (lane, from) = loop {
                let turn = self.places.borrow_mut().turn(&mut self.table.zones.borrow_mut(), most);
                match turn {
                    Turn::Write { zone, at, blocks } => return Ok((zone, at, blocks)),
                    Turn::MoveOn { lane, from } => break (lane, from),
                    Turn::Wait => self.table.changed.changed().await,
                }
            };
            // Others may write to other lanes meanwhile.
            drop(first);
            self.move_on(lane, from).await?;
        }
    }

    /// One command of the workload. Whether it succeeded.
    async fn request(
        &self,
        direction: Direction,
        opcode: IoOpcode,
        slba: u64,
        place: (u64, u64),
    ) -> Result<bool, Over> {
        let (at, blocks) = place;
        let lba_bytes = u64::from(self.info.lba_bytes);
        let mut entry = match direction {
            Direction::Trim => action(self.info.nsid, slba, ZoneAction::Reset),
            _ => SubmissionEntry::blocks(opcode, self.info.nsid, slba, blocks as u32),
        };
        let moves = self.info.keeps_data && direction != Direction::Trim;
        let mem = if moves { HostMem::zeroed((blocks * lba_bytes) as usize) } else { HostMem::none() };
        let measured = self.runner.admit().ok_or(Over)?;
        let submitted = self.runner.sim.now();
        let direction = self.syncs.issued(direction, submitted);
        if direction == Direction::Fua {
            entry.cdw12 = (entry.cdw12.get() | FUA).into();
        }
        let done = self.issuer.execute(&*self.drive, entry, mem).await;
        let request = Request { direction, offset: at * lba_bytes, bytes: blocks * lba_bytes };
        Ok(self.completed(&request, (submitted, measured), &done))
    }

    /// The flush that follows a write.
    async fn flush(&self) -> Result<(), Over> {
        let measured = self.runner.admit_flush().ok_or(Over)?;
        let submitted = self.runner.sim.now();
        let entry = SubmissionEntry::io(IoOpcode::FLUSH, self.info.nsid);
        let done = self.issuer.execute(&*self.drive, entry, HostMem::none()).await;
        self.completed(&FLUSH, (submitted, measured), &done);
        Ok(())
    }

    /// Records a request. Whether it succeeded.
    fn completed(&self, request: &Request, (submitted, measured): (Time, bool), done: &Completion) -> bool {
        self.runner.completed(request, submitted, measured, done);
        let is_done = done.status.is_success();
        if let Some(flow) = self.flow.filter(|_| measured && is_done) {
            self.runner.flowed(flow, request, submitted, done);
        }
        if let Some(begun) = self.syncs.ended().filter(|_| is_done) {
            self.runner.operation("commit", begun);
        }
        is_done
    }

    /// Leaves the zone of a lane, if it has one, and prepares the next for it.
    async fn move_on(&self, lane: usize, from: Option<usize>) -> Result<(), Over> {
        self.places.borrow_mut().lanes[lane] = Lane::Preparing;
        if let Some(left) = from {
            self.leave(left).await;
        }
        let Some(zone) = self.take().await? else {
            self.places.borrow_mut().lanes[lane] = Lane::Free;
            return Ok(());
        };
        let is_filled = self.places.borrow().is_filled(&self.table.zones.borrow()[zone]);
        let is_known = self.table.zones.borrow()[zone].is_known();
        let is_ready = is_known && (!is_filled || self.act(zone, ZoneAction::Reset).await);
        // A zone that cannot be reset is left again.
        self.table.zones.borrow_mut()[zone].is_held = is_ready;
        self.places.borrow_mut().lanes[lane] = if is_ready { Lane::Writing(zone) } else { Lane::Free };
        self.table.changed.notify();
        Ok(())
    }

    /// Leaves a zone, and finishes it if it is not full and the job does that.
    async fn leave(&self, zone: usize) {
        let finishes = self.spec.zoned.is_some_and(|zoned| zoned.finish);
        let is_short = |zone: &Zone| zone.is_known() && zone.next < zone.capacity;
        if finishes && is_short(&self.table.zones.borrow()[zone]) {
            self.act(zone, ZoneAction::Finish).await;
        }
        self.table.zones.borrow_mut()[zone].is_held = false;
        self.table.changed.notify();
    }

    /// Takes a zone that no other task has, if one is left. If a command to it failed, asks the drive for its state.
    async fn take(&self) -> Result<Option<usize>, Over> {
        let taken = self.places.borrow_mut().take(&mut self.table.zones.borrow_mut());
        let none = "no zone can be written any more, because commands to all of them failed";
        let taken = taken.map_err(|()| {
            self.runner.end_early(format!("job \"{}\" ended early: {none}", self.spec.name));
            Over
        })?;
        if let Some(zone) = taken.filter(|zone| !self.table.zones.borrow()[*zone].is_known()) {
            self.table.ask_again(&self.issuer, &*self.drive, zone).await;
        }
        Ok(taken)
    }

    /// Resets or finishes a zone. Whether that succeeded.
    async fn act(&self, zone: usize, which: ZoneAction) -> bool {
        let start = {
            let entry = &mut self.table.zones.borrow_mut()[zone];
            if which == ZoneAction::Reset {
                (entry.next, entry.written) = (0, 0);
            }
            entry.start
        };
        self.runner.begins_operation();
        let begun = self.runner.sim.now();
        let done = self.issuer.execute(&*self.drive, action(self.info.nsid, start, which), HostMem::none()).await;
        let is_done = done.status.is_success();
        let entry = &mut self.table.zones.borrow_mut()[zone];
        match is_done {
            true if which == ZoneAction::Finish => (entry.next, entry.written) = (entry.capacity, entry.capacity),
            true => {}
            false => self.runner.failed(done.status),
        }
        entry.ended(is_done);
        if is_done {
            self.runner.operation(which.name(), begun);
        }
        // An operation may program gigabytes: the user need not wait for the next look that requests take.
        self.runner.look_for_stop();
        is_done
    }

    /// A request that resets a zone. No task writes the zone meanwhile.
    async fn reset(&self) -> Result<(), Over> {
        let zone = loop {
            match self.take().await? {
                Some(zone) if self.table.zones.borrow()[zone].is_usable() => break zone,
                Some(lost) => self.table.zones.borrow_mut()[lost].is_held = false,
                None => self.table.changed.changed().await,
            }
        };
        let (start, capacity) = {
            let entry = &mut self.table.zones.borrow_mut()[zone];
            (entry.next, entry.written) = (0, 0);
            (entry.start, entry.capacity)
        };
        let is_done = self.request(Direction::Trim, IoOpcode::ZONE_MANAGEMENT_SEND, start, (start, capacity)).await?;
        let entry = &mut self.table.zones.borrow_mut()[zone];
        entry.ended(is_done);
        entry.is_held = false;
        self.table.changed.notify();
        Ok(())
    }

    fn give_up(&self, problem: &str) -> Over {
        self.runner.give_up(format!("job \"{}\": {problem}", self.spec.name));
        Over
    }
}

/// One request after another.
async fn task(job: Rc<ZonedJob>) -> Result<(), Over> {
    loop {
        job.next().await?;
    }
}
