//! The durable memory of a controller and its FTL: a journal, a snapshot of tables, the slots of a write buffer, counters, and
//! notes. It stands for the state that real controllers keep in capacitor-backed memory and in a small separate flash.
//! In the model it takes no time.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;

use super::ages::Ages;
use super::disk::Disk;
use super::journal::{ENTRY, Journal};
use super::notes::Notes;
use super::scan::{Found, scan};
use super::slots::{FoundSlot, SlotRecord, Slots};
use super::snapshot::{CHUNK, Draft, Snapshot};
use super::store_file::StoreFile;
use super::superblock::{Owner, StoreSpec, StoreUse};
use crate::fault::MediaError;
use crate::geometry::{BlockId, Geometry};

/// See the file.
pub struct DurableMemory {
    file: RefCell<StoreFile>,
    spec: StoreSpec,
    /// The use of the file before it was opened.
    before: StoreUse,
    disk: Rc<Disk>,
    epoch: Rc<Cell<u32>>,
    journal: Journal,
    slots: Slots,
    notes: Notes,
    counters: Notes,
    /// The ages of data, where the flash ages, or did so at an earlier start.
    ages: Option<Ages>,
    snapshot: RefCell<Option<Snapshot>>,
    /// Missing header copies of snapshots.
    missing: RefCell<Vec<(u64, Vec<u8>)>>,
    /// A snapshot that is being written, and the entries that were carried over to it.
    draft: RefCell<Option<(Draft, u64)>>,
}

impl DurableMemory {
    /// Opens the memory in a file, and reads its blocks. `ages` is whether the flash ages.
    pub(crate) fn open(file: StoreFile, geometry: &Geometry, ages: bool) -> io::Result<(DurableMemory, Found)> {
        let (spec, before) = (file.spec().clone(), file.before());
        let disk = Rc::new(file.disk(geometry));
        let mut missing = Vec::new();
        let snapshot = Snapshot::open(&disk, (geometry.blocks(), payload(&spec)), before.in_use, &mut missing)?;
        // The life of a new drive is written before its file is in use.
        let may_be_torn = before.in_use || file.is_new();
        let found = scan(&disk, geometry, snapshot.as_ref(), may_be_torn)?;
        let (closed, from) = snapshot.as_ref().map_or((0, 0), |snapshot| (snapshot.epoch, snapshot.journal_from));
        // An unfinished snapshot has also closed an epoch.
        let epoch = found.blocks.iter().map(|block| block.epoch).fold(closed, u32::max) + 1;
        let has_ages = disk.layout.has_ages() && (ages || Ages::are_in(&disk)?);
        let ages = has_ages.then(|| Ages::open(&disk, geometry.blocks(), may_be_torn)).transpose()?;
        let notes = |regions, name| Notes::open(&disk, regions, name, before.in_use);
        let memory = DurableMemory {
            file: RefCell::new(file),
            before,
            journal: Journal::open(&disk, before.starts + 1, from)?,
            slots: Slots::open(&disk, spec.slots, before.in_use)?,
            notes: notes(disk.layout.notes, "the controller's notes")?,
            counters: notes(disk.layout.counters, "the counters")?,
            ages,
            snapshot: RefCell::new(snapshot),
            missing: RefCell::new(missing),
            draft: RefCell::default(),
            spec,
            disk,
            epoch: Rc::new(Cell::new(epoch)),
        };
        Ok((memory, found))
    }

    /// Makes both copies of everything equal, before the drive uses the file.
    ///
    /// # Errors
    /// [`MediaError::Store`].
    pub(crate) fn mend(&self) -> Result<(), MediaError> {
        self.missing.take().iter().try_for_each(|(at, head)| self.disk.write(*at, head))?;
        self.journal.mend()?;
        self.notes.mend()?;
        self.counters.mend()?;
        self.ages.as_ref().map_or(Ok(()), Ages::mend)
    }

    /// The damage found so far, a sentence each. Damage to one copy loses nothing.
    pub fn damage(&self) -> Vec<String> {
        self.disk.damage()
    }

    /// Reads all chunks of the snapshot, and notes the first that is damaged.
    pub fn check_snapshot(&self) {
        let snapshot = self.snapshot.borrow();
        let mut chunk = vec![0; CHUNK as usize];
        let damaged = snapshot
            .iter()
            .flat_map(|snapshot| snapshot.written().map(move |at| (snapshot, at)))
            .find_map(|(snapshot, at)| snapshot.read(&self.disk, at, &mut chunk).err());
        damaged.into_iter().for_each(|error| self.disk.note_damage(error.to_string()));
    }

    /// The content of the file.
    pub fn spec(&self) -> &StoreSpec {
        &self.spec
    }

    /// The use of the file before it was opened.
    pub fn before(&self) -> StoreUse {
        self.before
    }

    /// Why nothing can be written any more, if so.
    pub fn failure(&self) -> Option<String> {
        self.disk.failure().map(str::to_owned)
    }

    /// Whether nothing can be written any more.
    #[inline]
    pub fn has_failed(&self) -> bool {
        self.disk.failure().is_some()
    }

    pub(crate) fn disk(&self) -> &Rc<Disk> {
        &self.disk
    }

    pub(crate) fn epoch(&self) -> &Rc<Cell<u32>> {
        &self.epoch
    }

    /// Makes everything written so far safe from a loss of the host's power, if required.
    ///
    /// # Errors
    /// [`MediaError::Store`].
    pub fn sync(&self) -> Result<(), MediaError> {
        self.disk.sync()
    }

    // ------------------------------------------------------------ journal

    /// Appends an entry to the journal.
    ///
    /// # Errors
    /// [`MediaError::Store`].
    pub fn append(&self, entry: &[u8; JOURNAL_ENTRY]) -> Result<(), MediaError> {
        self.journal.append(entry)
    }

    /// Appends several entries to the journal at once. A kill may leave only the first of them.
    ///
    /// # Errors
    /// [`MediaError::Store`].
    pub fn append_all(&self, entries: &[[u8; JOURNAL_ENTRY]]) -> Result<(), MediaError> {
        self.journal.append_all(entries)
    }

    /// All entries since the snapshot, in order.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn entries(&self, each: impl FnMut(&[u8; JOURNAL_ENTRY])) -> io::Result<()> {
        self.journal.read(each)
    }

    /// Entries since the snapshot.
    pub fn journal_len(&self) -> u64 {
        self.journal.len()
    }

    /// Whether the journal is so long that a snapshot is due.
    pub fn is_snapshot_due(&self) -> bool {
        self.journal.is_long()
    }

    // ------------------------------------------------------------ slots

    /// Writes a slot. If it `is_alone`, it counts at once; otherwise when [`DurableMemory::commit_slots`] names its number or
    /// a higher one.
    ///
    /// # Errors
    /// [`MediaError::Store`].
    pub fn save_slot(&self, record: &SlotRecord, data: Option<&[u8]>, is_alone: bool) -> Result<(), MediaError> {
        self.slots.save(record, data, is_alone)
    }

    /// Makes all slots written so far count.
    ///
    /// # Errors
    /// [`MediaError::Store`].
    pub fn commit_slots(&self, sequence: u64) -> Result<(), MediaError> {
        self.slots.commit(sequence)
    }

    /// The last committed number.
    pub fn committed_slots(&self) -> u64 {
        self.slots.committed()
    }

    /// Makes a slot void.
    ///
    /// # Errors
    /// [`MediaError::Store`].
    pub fn clear_slot(&self, slot: u32) -> Result<(), MediaError> {
        self.slots.clear(slot)
    }

    /// Makes all slots void, and removes their data.
    ///
    /// # Errors
    /// [`MediaError::Store`].
    pub fn wipe_slots(&self) -> Result<(), MediaError> {
        self.slots.wipe()
    }

    /// The slots that count, with their data if it is whole.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn slots(&self) -> io::Result<Vec<FoundSlot>> {
        self.slots.restore()
    }

    // ------------------------------------------------------------ notes

    /// Replaces the controller's notes, of at most 1 MiB.
    ///
    /// # Errors
    /// [`MediaError::Store`].
    pub fn set_notes(&self, notes: &[u8]) -> Result<(), MediaError> {
        self.notes.write(notes)?;
        self.disk.sync()
    }

    /// The controller's notes.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn notes(&self) -> io::Result<Option<Vec<u8>>> {
        self.notes.read()
    }

    /// Replaces the FTL's counters, of at most 4,000 bytes.
    ///
    /// # Errors
    /// [`MediaError::Store`].
    pub fn set_counters(&self, counters: &[u8]) -> Result<(), MediaError> {
        self.counters.write(counters)
    }

    /// The FTL's counters.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn counters(&self) -> io::Result<Option<Vec<u8>>> {
        self.counters.read()
    }

    /// The ages of data, if the flash ages or aged at an earlier start, and the format of the file has them.
    pub(crate) fn ages(&self) -> Option<&Ages> {
        self.ages.as_ref()
    }

    // ------------------------------------------------------------ snapshots

    /// Begins a snapshot of the programmed pages of blocks and of the FTL's tables, and the next epoch. The journal continues
    /// with the entries that are `carried` over. An earlier snapshot that did not end is abandoned.
    pub(crate) fn begin_snapshot(
        &self,
        blocks: (Vec<u32>, Vec<u32>),
        carried: &[[u8; JOURNAL_ENTRY]],
    ) -> Result<(), MediaError> {
        let (epoch, from) = (self.epoch.get(), self.journal.next());
        self.draft.take();
        self.epoch.set(epoch + 1);
        self.journal.append_all(carried)?;
        let before = self.snapshot.borrow();
        let draft = Draft::begin(before.as_ref(), (epoch, from), blocks, payload(&self.spec));
        self.draft.replace(Some((draft, carried.len() as u64)));
        Ok(())
    }

    /// Writes a chunk of the snapshot that was begun, from the present tables.
    ///
    /// # Errors
    /// [`MediaError::Store`], also where none was begun.
    pub fn put_chunk(&self, at: u64, chunk: &[u8]) -> Result<(), MediaError> {
        let mut draft = self.draft.borrow_mut();
        let (draft, _) = draft.as_mut().ok_or(MediaError::Store)?;
        draft.put(&self.disk, self.snapshot.borrow().as_ref(), at, chunk)
    }

    /// Makes the begun snapshot count.
    ///
    /// # Errors
    /// [`MediaError::Store`], also where none was begun.
    pub fn end_snapshot(&self) -> Result<(), MediaError> {
        let (draft, carried) = self.draft.take().ok_or(MediaError::Store)?;
        let snapshot = draft.end(&self.disk)?;
        let from = snapshot.journal_from;
        self.snapshot.replace(Some(snapshot));
        self.journal.cut(from, carried)
    }

    /// Bytes of the chunks of a snapshot.
    pub fn snapshot_bytes(&self) -> u64 {
        payload(&self.spec)
    }

    /// Reads a chunk of the FTL's part of the latest snapshot; `false` if it is all zeros, or without a snapshot.
    ///
    /// # Errors
    /// When it cannot be read, or is damaged.
    pub fn read_snapshot(&self, at: u64, chunk: &mut [u8]) -> io::Result<bool> {
        self.snapshot.borrow().as_ref().map_or(Ok(false), |snapshot| snapshot.read(&self.disk, at, chunk))
    }

    /// Whether a snapshot exists.
    pub fn has_snapshot(&self) -> bool {
        self.snapshot.borrow().is_some()
    }

    /// The epoch that the snapshot has closed; 0 without one.
    pub fn snapshot_epoch(&self) -> u32 {
        self.snapshot.borrow().as_ref().map_or(0, |snapshot| snapshot.epoch)
    }

    /// Chunks of the snapshot that hold anything, and all of them.
    pub fn snapshot_chunks(&self) -> (u64, u64) {
        self.snapshot.borrow().as_ref().map_or((0, 0), Snapshot::chunks)
    }

    /// The erases and the programmed pages of a block as of the snapshot.
    pub fn at_snapshot(&self, block: BlockId) -> (u32, u32) {
        let at = |snapshot: &Snapshot| (snapshot.erases[block.0 as usize], snapshot.programmed[block.0 as usize]);
        self.snapshot.borrow().as_ref().map_or((0, 0), at)
    }

    // ------------------------------------------------------------ the file

    /// Marks the file as in use.
    ///
    /// # Errors
    /// [`MediaError::Store`].
    pub(crate) fn begin_use(&self) -> Result<(), MediaError> {
        self.file.borrow_mut().begin_use(&self.disk)
    }

    /// Marks the begin or the end of filling the file with a state. A file in which filling did not end is rejected.
    ///
    /// # Errors
    /// [`MediaError::Store`].
    pub fn set_filling(&self, is_filling: bool) -> Result<(), MediaError> {
        self.file.borrow_mut().set_filling(&self.disk, is_filling)
    }

    /// The drive is a member from now on.
    ///
    /// # Errors
    /// [`MediaError::Store`].
    pub fn join(&self, owner: Owner) -> Result<(), MediaError> {
        self.file.borrow_mut().join(owner, &self.disk)
    }

    /// Ends the use of the file: the next start finds its present state.
    ///
    /// # Errors
    /// [`MediaError::Store`].
    pub(crate) fn end_use(&self) -> Result<(), MediaError> {
        self.disk.check_whole()?;
        self.file.borrow_mut().end_use(&self.disk)
    }

    /// Length of the file in bytes.
    pub fn file_len(&self) -> u64 {
        self.file.borrow().backing().len().unwrap_or_default()
    }
}

const JOURNAL_ENTRY: usize = ENTRY;

fn payload(spec: &StoreSpec) -> u64 {
    spec.snapshot_bytes.next_multiple_of(CHUNK)
}
