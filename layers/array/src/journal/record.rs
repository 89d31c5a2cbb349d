//! The record of members. It is written on all remaining members before a write is acknowledged that a missing member
//! lacks. A member that reconnects later is missing in the others' record, and is not trusted.

use std::rc::Rc;
use std::sync::atomic::Ordering;

use nandscape_drive::{Drive, HostMem};
use nandscape_sim::Span;
use nandscape_wire_nvme::io::FUA;
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};

use super::Journal;
use super::form::{self, Record};
use crate::array::Core;
use crate::flight::Flight;
use crate::level::Kind;
use crate::member::Answer;

/// The time between tries to record members whose power is cut.
pub(crate) const RETRY: Span = Span::from_ms(1);

/// The member that a spare is, in its record.
pub(super) const SPARE: usize = u16::MAX as usize;

/// A level's number.
pub(super) fn number(kind: Kind) -> u16 {
    match kind {
        Kind::Raid0 => 0,
        Kind::Raid1 => 1,
        Kind::Raid5 => 5,
        Kind::Raid6 => 6,
        Kind::Raid10 => 10,
    }
}

/// A write of some bytes that lasts once it has ended.
fn durable(drive: &dyn Drive, slba: u64, bytes: usize) -> SubmissionEntry {
    let info = drive.info();
    let mut entry = SubmissionEntry::blocks(IoOpcode::WRITE, info.nsid, slba, bytes as u32 / info.lba_bytes);
    if info.volatile_cache {
        entry.cdw12 = (entry.cdw12.get() | FUA).into();
    }
    entry
}

impl Core {
    /// Members that are to have the array's records: also one that is being rebuilt.
    fn recorded_members(&self) -> Vec<usize> {
        (0..self.level.members()).filter(|member| self.failed.get() & 1 << member == 0).collect()
    }

    /// Writes bytes at a place of some members, durably; returns whether no power cut occurred. A member that rejects
    /// them for another reason has failed.
    pub(super) async fn write_records(self: &Rc<Self>, slba: u64, writes: Vec<(usize, Vec<u8>)>) -> bool {
        let mut is_there = true;
        let mut flight = Flight::new(&self.sim, &self.issuer);
        for (member, bytes) in writes {
            let drive = self.drive(&self.paths, member);
            self.stats.borrow_mut().journal_writes += 1;
            flight.send(self.sent(member), drive, durable(drive, slba, bytes.len()), HostMem::from_bytes(&bytes));
        }
        while !flight.is_empty() {
            let Some((sent, ended)) = flight.next(None).await else { continue };
            match Answer::of(&ended) {
                Answer::Success => {}
                Answer::Interrupted => is_there = false,
                _ => self.fail_drive(sent),
            }
        }
        is_there
    }

    /// Members have taken a record.
    fn have_taken(&self, members: &[usize], generation: u64) {
        for member in members.iter().filter(|member| self.failed.get() & 1 << **member == 0) {
            self.taken[self.sent(*member).drive].store(generation, Ordering::Relaxed);
        }
    }

    /// A member's record, or that of a spare.
    fn record_of(&self, journal: &Journal, member: usize, generation: u64) -> Vec<u8> {
        let record = Record {
            magic: form::magic(),
            version: 1.into(),
            level: number(self.shape.kind).into(),
            members: (self.level.members() as u16).into(),
            member: (member as u16).into(),
            uuid: journal.uuid,
            generation: generation.into(),
            chunk: self.config.chunk.into(),
            missing: self.incomplete().into(),
            crc: 0.into(),
        };
        form::sealed(&record, journal.form.page_bytes())
    }

    /// Writes the record of members anew.
    pub(crate) async fn record_state(self: &Rc<Self>) {
        let Some(journal) = &self.journal else { return };
        journal
            .recorded
            .ask(async || {
                // Nothing more is acknowledged then. Members that reconnect must find the array as it was before it was
                // lost.
                if self.is_lost.get() {
                    return;
                }
                let generation = journal.generation.fetch_add(1, Ordering::Relaxed) + 1;
                let record = |member: usize| (member, self.record_of(journal, member, generation));
                // Drives return soon after a power cut, and no write is acknowledged before the record is written.
                // Meanwhile members may have failed and been replaced.
                loop {
                    let members = self.recorded_members();
                    let writes = members.iter().copied().map(record).collect();
                    if self.write_records(journal.form.record(generation), writes).await {
                        return self.have_taken(&members, generation);
                    }
                    self.sim.sleep(RETRY).await;
                    if self.is_lost.get() {
                        return;
                    }
                }
            })
            .await;
    }

    /// Records on spares that they belong to this array, which may then write over them. A spare that fails this
    /// write is no longer one.
    pub(super) async fn record_spares(&self) {
        let Some(journal) = &self.journal else { return };
        let generation = journal.generation.load(Ordering::Relaxed);
        let bytes = self.record_of(journal, SPARE, generation);
        let spares = self.spares.take();
        for spare in spares {
            let drive = &*self.paths[spare];
            let entry = durable(drive, journal.form.record(generation), bytes.len());
            if self.issuer.execute(drive, entry, HostMem::from_bytes(&bytes)).await.status.is_success() {
                self.taken[spare].store(generation, Ordering::Relaxed);
                self.spares.borrow_mut().push(spare);
            }
        }
    }

    /// Records an opening. Members that a crash kept from the last record are trusted, so a drive restored to its state
    /// before this must be two records behind. Members that lack the last record get it first: a crash that keeps them
    /// from the next one as well leaves them one behind.
    pub(super) async fn record_opening(self: &Rc<Self>, behind: &[usize]) {
        let Some(journal) = &self.journal else { return };
        let generation = journal.generation.load(Ordering::Relaxed);
        let is_there = |member: &&usize| self.failed.get() & 1 << **member == 0;
        let writes = || {
            behind
                .iter()
                .filter(is_there)
                .map(|member| (*member, self.record_of(journal, *member, generation)))
                .collect()
        };
        while !self.write_records(journal.form.record(generation), writes()).await {
            self.sim.sleep(RETRY).await;
        }
        self.record_state().await;
        self.record_state().await;
    }

    /// The members have changed: starts the record of this. Later acknowledgements wait for it:
    /// [`Core::until_recorded`].
    pub(crate) fn start_recording(self: &Rc<Self>) {
        if self.journal.is_some() {
            let core = self.clone();
            self.unrecorded.set(self.unrecorded.get() + 1);
            self.sim.spawn(async move {
                core.record_state().await;
                core.unrecorded.set(core.unrecorded.get() - 1);
                core.recorded.notify();
            });
        }
    }

    /// Waits until the members that are missing are recorded as such.
    pub(crate) async fn until_recorded(&self) {
        while self.unrecorded.get() > 0 {
            self.recorded.changed().await;
        }
    }
}
