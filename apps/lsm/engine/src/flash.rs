//! Runs on a drive that knows them (`ftl.kind = "lsm"`): the drive keeps their places and their list. The host
//! recovers only the list.
//!
//! Left out: concurrent appends, because appends to a run are sequential.

use std::cell::Cell;
use std::rc::Rc;

use nandscape_apps_store::{AGAIN, Disk, Host, Range, StoreError};
use nandscape_drive::{Completion, Drive, HostMem, Issuer};
use nandscape_sim::signal::Signal;
use nandscape_wire_nvme::identify::{Controller, cns};
use nandscape_wire_nvme::runs::{self, Descriptor, Head, MOST_EDITS, action, state};
use nandscape_wire_nvme::vendor::{Capabilities, HAS_RUNS, RUN_COMMIT, RUN_OPEN, RUN_REPORT};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};
use zerocopy::{FromBytes, IntoBytes};

use crate::error::OpenError;
use crate::storage::{BLOCK, Edit, RunInfo, Storage, StorageStats};

/// See the file.
pub struct RunStorage {
    disk: Disk,
    head: Head,
    found: Vec<RunInfo>,
    is_busy: Cell<bool>,
    changed: Signal,
    commits: Cell<u64>,
    edit_bytes: Cell<u64>,
}

impl RunStorage {
    /// The runs of a drive. Runs that a crash left incomplete are dropped.
    ///
    /// # Errors
    /// When the drive does not support runs, keeps no data, or fails.
    pub async fn open(host: &Host, drive: Rc<dyn Drive>) -> Result<RunStorage, OpenError> {
        let (mut storage, descriptors) = RunStorage::find(host, drive).await?;
        let (new, there): (Vec<_>, Vec<_>) = descriptors.into_iter().partition(|run| run.state == state::NEW);
        storage.drop_all(&new).await?;
        let info = |run: Descriptor| RunInfo {
            id: run.run.get(),
            level: run.level,
            order: run.order.get(),
            blocks: run.blocks.get(),
        };
        storage.found = there.into_iter().map(info).collect();
        Ok(storage)
    }

    /// Whether a drive, given by its admin queue, supports runs.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn is_known(host: &Host, admin: &dyn Drive) -> Result<bool, OpenError> {
        let mem = HostMem::zeroed(size_of::<Controller>());
        let identify = SubmissionEntry::identify(cns::CONTROLLER, 0);
        match Issuer::new(host.sim()).execute(admin, identify, mem.clone()).await.status.meaning() {
            Status::SUCCESS => {}
            status => return Err(StoreError::Drive(status).into()),
        }
        let controller = Controller::read_from_bytes(&mem.to_vec()).expect("memory of its size");
        let table = Capabilities::of(&controller.vendor);
        Ok(table.is_some_and(|table| table.functions.get() & HAS_RUNS != 0))
    }

    /// Drops all runs of a drive.
    ///
    /// # Errors
    /// As of [`RunStorage::open`].
    pub async fn clear(host: &Host, drive: Rc<dyn Drive>) -> Result<(), OpenError> {
        let (storage, descriptors) = RunStorage::find(host, drive).await?;
        Ok(storage.drop_all(&descriptors).await?)
    }

    async fn drop_all(&self, runs: &[Descriptor]) -> Result<(), StoreError> {
        for some in runs.chunks(MOST_EDITS) {
            self.commit(&some.iter().map(|run| Edit::Drop(run.run.get())).collect::<Vec<_>>()).await?;
        }
        Ok(())
    }

    /// A drive, and the runs that it has.
    async fn find(host: &Host, drive: Rc<dyn Drive>) -> Result<(RunStorage, Vec<Descriptor>), OpenError> {
        let disk = Disk::new(host, drive);
        if !disk.info.keeps_data {
            return Err(OpenError::NoData);
        }
        if disk.info.lba_bytes as usize != BLOCK {
            return Err(OpenError::NoRuns);
        }
        let mut storage = RunStorage {
            disk,
            head: Head::default(),
            found: Vec::new(),
            is_busy: Cell::new(false),
            changed: Signal::new(host.sim()),
            commits: Cell::new(0),
            edit_bytes: Cell::new(0),
        };
        let descriptors = storage.report().await?;
        Ok((storage, descriptors))
    }

    /// All runs, part by part.
    async fn report(&mut self) -> Result<Vec<Descriptor>, OpenError> {
        let most = (self.disk.info.max_blocks as usize).min(16) * BLOCK;
        let (mut all, mut from) = (Vec::new(), 0);
        loop {
            let mem = HostMem::zeroed(most);
            let mut entry = SubmissionEntry { opcode: RUN_REPORT.0, ..SubmissionEntry::default() };
            entry.nsid = self.disk.info.nsid.into();
            entry.cdw10 = (most as u32 / 4 - 1).into();
            entry.cdw11 = u32::into(from);
            match self.disk.execute(vec![(entry, mem.clone())]).await {
                Ok(()) => {}
                Err(Status::INVALID_OPCODE) => return Err(OpenError::NoRuns),
                Err(status) => return Err(StoreError::Drive(status).into()),
            }
            let bytes = mem.to_vec();
            let corrupt = || StoreError::Corrupt("the drive's report of runs is none".into());
            let (head, rest) = Head::read_from_prefix(&bytes).map_err(|_| corrupt())?;
            self.head = head;
            let there = rest.chunks_exact(size_of::<Descriptor>()).take(head.runs.get() as usize);
            let part: Vec<Descriptor> = there.filter_map(|bytes| Descriptor::read_from_bytes(bytes).ok()).collect();
            let is_all = part.len() == head.runs.get() as usize;
            from = part.last().map_or(0, |run| run.run.get() + 1);
            all.extend(part);
            if is_all {
                return Ok(all);
            }
        }
    }

    fn range(&self, run: u32, first: u32, blocks: u32) -> Range {
        Range { slba: u64::from(run) * u64::from(self.head.span.get()) + u64::from(first), blocks: blocks.into() }
    }

    /// Submits a command and waits for its result.
    async fn one(&self, entry: SubmissionEntry, mem: HostMem) -> Completion {
        let disk = &self.disk;
        disk.commands.set(disk.commands.get() + 1);
        disk.host.commands(1).await;
        disk.issuer.execute(&*disk.drive, entry, mem).await
    }

    /// Edits of one command.
    async fn commit_some(&self, edits: &[Edit]) -> Result<(), StoreError> {
        self.give(&edits.iter().map(form).collect::<Vec<_>>(), async || self.was_made(edits).await).await
    }

    /// Submits edits until they are made. After a power cut `was_made` returns whether they are.
    async fn give(
        &self,
        edits: &[runs::Edit],
        was_made: impl AsyncFn() -> Result<bool, StoreError>,
    ) -> Result<(), StoreError> {
        let mem = HostMem::from_bytes(edits.as_bytes());
        let mut entry = SubmissionEntry { opcode: RUN_COMMIT.0, ..SubmissionEntry::default() };
        entry.nsid = self.disk.info.nsid.into();
        entry.cdw10 = (edits.len() as u32 - 1).into();
        self.edit_bytes.set(self.edit_bytes.get() + edits.as_bytes().len() as u64);
        loop {
            match self.one(entry, mem.clone()).await.status.meaning() {
                Status::SUCCESS => return Ok(()),
                // Nor does a broken connection show it.
                Status::ABORTED_POWER_LOSS | Status::HOST_PATHING_ERROR => {
                    self.disk.host.sim().sleep(AGAIN).await;
                    if was_made().await? {
                        return Ok(());
                    }
                }
                status => return Err(StoreError::Drive(status)),
            }
        }
    }

    /// Whether edits were made by a command that a power cut has ended: one of them shows it. The place of a dropped
    /// run may already have another run, so the check uses a run that stays, if one exists.
    async fn was_made(&self, edits: &[Edit]) -> Result<bool, StoreError> {
        let stays = edits.iter().find(|edit| !matches!(edit, Edit::Drop(_)));
        let Some(last) = stays.or(edits.last()) else { return Ok(true) };
        let (Edit::Publish(run) | Edit::Seal(run) | Edit::Relevel(run, _) | Edit::Drop(run)) = *last;
        let mem = HostMem::zeroed(BLOCK);
        let mut entry = SubmissionEntry { opcode: RUN_REPORT.0, ..SubmissionEntry::default() };
        entry.nsid = self.disk.info.nsid.into();
        entry.cdw10 = (BLOCK as u32 / 4 - 1).into();
        entry.cdw11 = run.into();
        self.disk.execute(vec![(entry, mem.clone())]).await.map_err(StoreError::Drive)?;
        let bytes = mem.to_vec();
        let there = bytes.get(size_of::<Head>()..).and_then(|bytes| Descriptor::read_from_prefix(bytes).ok());
        let there = there.map(|(run, _)| run).filter(|there| there.run.get() == run && bytes[..4] != [0; 4]);
        Ok(match *last {
            Edit::Drop(_) => there.is_none(),
            Edit::Seal(_) => there.is_some_and(|run| run.state == state::SEALED),
            Edit::Publish(_) => there.is_some_and(|run| run.state == state::PUBLISHED),
            Edit::Relevel(_, level) => there.is_some_and(|run| run.level == level),
        })
    }
}

fn form(edit: &Edit) -> runs::Edit {
    let (run, action, level) = match *edit {
        Edit::Publish(run) => (run, action::PUBLISH, 0),
        Edit::Seal(run) => (run, action::SEAL, 0),
        Edit::Relevel(run, level) => (run, action::RELEVEL, level),
        Edit::Drop(run) => (run, action::DROP, 0),
    };
    runs::Edit { run: run.into(), action, level, ..runs::Edit::default() }
}

impl Storage for RunStorage {
    fn max_blocks(&self) -> u32 {
        self.head.most.get()
    }

    fn grain(&self) -> u32 {
        self.head.grain.get()
    }

    fn capacity(&self) -> u64 {
        self.head.capacity.get()
    }

    fn found(&self) -> Vec<RunInfo> {
        self.found.clone()
    }

    async fn create(&self, level: u8, _: u32) -> Result<u32, StoreError> {
        let mut entry = SubmissionEntry { opcode: RUN_OPEN.0, ..SubmissionEntry::default() };
        entry.nsid = self.disk.info.nsid.into();
        entry.cdw10 = u32::from(level).into();
        loop {
            let Completion { status, dw0, .. } = self.one(entry, HostMem::none()).await;
            match status.meaning() {
                Status::SUCCESS => return Ok(dw0),
                // A run that was begun anyway is dropped at the next opening.
                Status::ABORTED_POWER_LOSS | Status::HOST_PATHING_ERROR => self.disk.host.sim().sleep(AGAIN).await,
                Status::CAPACITY_EXCEEDED => return Err(StoreError::Full),
                status => return Err(StoreError::Drive(status)),
            }
        }
    }

    async fn append(&self, run: u32, at: u32, bytes: Vec<u8>) -> Result<(), StoreError> {
        let disk = &self.disk;
        disk.host.bytes(bytes.len()).await;
        let mem = HostMem::from_bytes(&bytes);
        let (blocks, most) = ((bytes.len() / BLOCK) as u32, disk.info.max_blocks.min(0x1_0000));
        for first in (0..blocks).step_by(most as usize) {
            let now = most.min(blocks - first);
            let range = self.range(run, at + first, now);
            let entry = SubmissionEntry::blocks(IoOpcode::WRITE, disk.info.nsid, range.slba, now);
            let part = mem.part(first as usize * BLOCK, now as usize * BLOCK);
            // One that a power cut has ended is repeated, whether it was done or not.
            disk.execute(vec![(entry, part)]).await.map_err(|status| match status {
                Status::CAPACITY_EXCEEDED => StoreError::Full,
                status => StoreError::Drive(status),
            })?;
            disk.written_bytes.set(disk.written_bytes.get() + now as u64 * BLOCK as u64);
        }
        Ok(())
    }

    async fn finish(&self, run: u32) -> Result<(), StoreError> {
        let edit = runs::Edit { run: run.into(), action: action::CLOSE, ..runs::Edit::default() };
        // Once more does no harm.
        self.give(&[edit], async || Ok(false)).await
    }

    async fn read(&self, run: u32, first: u32, blocks: u32) -> Result<Vec<u8>, StoreError> {
        let bytes = self.disk.read(&[self.range(run, first, blocks)]).await?.concat();
        self.disk.host.bytes(bytes.len()).await;
        Ok(bytes)
    }

    async fn commit(&self, edits: &[Edit]) -> Result<(), StoreError> {
        if edits.is_empty() {
            return Ok(());
        }
        if edits.len() > MOST_EDITS {
            let problem = format!("{} edits at once; the drive takes {MOST_EDITS}", edits.len());
            return Err(StoreError::Corrupt(problem));
        }
        while self.is_busy.replace(true) {
            self.changed.changed().await;
        }
        let made = self.commit_some(edits).await;
        self.is_busy.set(false);
        self.changed.notify();
        self.commits.set(self.commits.get() + 1);
        made
    }

    fn stats(&self) -> StorageStats {
        StorageStats {
            commands: self.disk.commands.get(),
            read_bytes: self.disk.read_bytes.get(),
            written_bytes: self.disk.written_bytes.get(),
            manifest_bytes: self.edit_bytes.get(),
            commits: self.commits.get(),
            memory: 0,
        }
    }
}
