//! Creating a persistent array, and opening it again.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::atomic::Ordering;

use nandscape_drive::{Drive, DriveInfo, HostMem, Issuer};
use nandscape_sim::Sim;
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

use super::form::{self, Bitmap, Form, Record, SLOTS, Slot};
use super::identity::uuid_of;
use super::record::{SPARE, number};
use super::{Intent, Journal};
use crate::array::{Array, ArrayError, Core, Recovered};
use crate::config::{Config, JournalMode};
use crate::geometry::Reach;
use crate::level::{Kind, Shape};
use crate::member::Member;
use crate::write::{SubWrite, SubWrites};

/// Records are searched with chunks of up to 2 to the power of this in bytes: 32 MiB, the longest transfer of a drive.
const LARGEST_CHUNK: u32 = 25;

/// A part of a journalled write that is whole: its slot, and its data.
type Part = (Slot, Vec<u8>);

fn form_of(members: &[Member], chunk: u64) -> Result<Form, ArrayError> {
    let infos: Vec<DriveInfo> = members.iter().map(|member| member.io.info()).collect();
    let blocks = infos.iter().map(|info| info.blocks).min().unwrap_or(0);
    let lba_bytes = infos.first().map_or(512, |info| info.lba_bytes);
    let unit = infos.iter().map(|info| info.unit_bytes).max().unwrap_or(4_096) / lba_bytes;
    Form::new(blocks, lba_bytes, unit.max(1), (chunk / u64::from(lba_bytes)) as u32)
        .ok_or_else(|| ArrayError("the drives are smaller than the records of an array".to_owned()))
}

async fn read(issuer: &Issuer, drive: &dyn Drive, slba: u64, blocks: u32) -> Result<Vec<u8>, Status> {
    let info = drive.info();
    let mem = HostMem::zeroed(blocks as usize * info.lba_bytes as usize);
    let entry = SubmissionEntry::blocks(IoOpcode::READ, info.nsid, slba, blocks);
    let status = issuer.execute(drive, entry, mem.clone()).await.status;
    if status.is_success() { Ok(mem.to_vec()) } else { Err(status) }
}

impl Array {
    /// Creates an array of drives that hold zeros, with its records on them. With `array.journal = none` it has none:
    /// see [`Array::new`].
    ///
    /// # Errors
    /// Why these drives cannot be such an array, and what would be valid.
    pub async fn create(
        sim: &Sim,
        shape: Shape,
        config: Config,
        members: Vec<Member>,
    ) -> Result<Rc<Array>, ArrayError> {
        if config.journal == JournalMode::None {
            return Array::new(sim, shape, config, members);
        }
        if members.iter().any(|member| !member.io.info().keeps_data) {
            let problem = "drives that keep no data cannot keep a journal; array.journal = none is valid";
            return Err(ArrayError(format!("array {shape}: {problem}")));
        }
        let form = form_of(&members, config.chunk)?;
        let uuid = uuid_of(sim, shape, &config, &members).await;
        let journal = Journal::new(sim, config.journal, form, uuid);
        let array = Array::with_journal(sim, shape, config, members, Some(journal))?;
        array.core().record_state().await;
        array.core().check_recorded().await?;
        // From the second record on it is an array: all members then have the first record.
        array.core().record_state().await;
        array.core().record_spares().await;
        Ok(array)
    }

    /// Whether a drive has records of an array, of any size of chunks.
    pub async fn has_records(sim: &Sim, config: &Config, members: &[Member]) -> bool {
        Array::chunk_of_records(sim, config, members).await.is_some()
    }

    /// The drives without a record, by their numbers, if others have that of an array: they would become spares.
    /// Drives with unreadable records are not among them.
    pub async fn strangers(sim: &Sim, config: &Config, members: &[Member]) -> Vec<usize> {
        let Some(chunk) = Array::chunk_of_records(sim, config, members).await else { return Vec::new() };
        let (Ok(form), issuer) = (form_of(members, chunk), Issuer::new(sim)) else { return Vec::new() };
        let mut strangers = Vec::new();
        for (number, member) in members.iter().enumerate() {
            let found = Found::on(&issuer, &*member.io, &form).await;
            if found.record.is_none() && found.failure.is_none() {
                strangers.push(number);
            }
        }
        strangers
    }

    /// The chunk in bytes, from the records of any drive.
    async fn chunk_of_records(sim: &Sim, config: &Config, members: &[Member]) -> Option<u64> {
        let issuer = Issuer::new(sim);
        let sizes = (9..=LARGEST_CHUNK).map(|shift| 1 << shift);
        for chunk in std::iter::once(config.chunk).chain(sizes) {
            let Ok(form) = form_of(members, chunk) else { continue };
            for member in members.iter().filter(|member| member.io.info().keeps_data) {
                let record = Found::on(&issuer, &*member.io, &form).await.record;
                if let Some(record) = record.filter(Record::is_made) {
                    return Some(record.chunk.get());
                }
            }
        }
        None
    }

    /// Opens an array that was created on these drives, in any order. Stripes that a crash left half-written are made
    /// consistent. Drives that were missing meanwhile, or are older than the others, are not trusted and become
    /// spares, and so do drives of no array.
    ///
    /// # Errors
    /// The drives belong to no array, too few of them remain, or two of them are the same. Or members were lost
    /// together with a crash, so that half-written stripes cannot be made consistent, unless the configuration forces
    /// it.
    pub async fn open(sim: &Sim, mut config: Config, members: Vec<Member>) -> Result<Rc<Array>, ArrayError> {
        let issuer = Issuer::new(sim);
        let form = form_of(&members, config.chunk)?;
        let mut found: Vec<Found> = Vec::new();
        for member in &members {
            found.push(Found::on(&issuer, &*member.io, &form).await);
        }
        check_uuids(&found)?;
        let newest = newest_of(&found);
        let Some(newest) = newest.filter(Record::is_made) else {
            let chunk = Array::chunk_of_records(sim, &config, &members).await;
            return Err(ArrayError(no_record(newest.is_some(), chunk, &found)));
        };
        let kind = Kind::ALL.into_iter().find(|(_, kind, _)| number(*kind) == newest.level.get());
        let Some((_, kind, _)) = kind else { return Err(ArrayError("the array is of an unknown level".to_owned())) };
        let shape = Shape { kind, members: usize::from(newest.members.get()) };
        config.chunk = newest.chunk.get();
        let mut missing = newest.missing.get();
        check_distinct(&found, &newest)?;
        if !config.force {
            check_one_history(&found, shape.members)?;
        }
        let (ordered, sure) = places(&found, &newest, shape.members);
        let is_behind =
            |drive: usize| found[drive].record.is_some_and(|record| record.generation.get() < newest.generation.get());
        let behind: Vec<usize> = (0..shape.members).filter(|place| ordered[*place].is_some_and(is_behind)).collect();
        let is_placed = |drive: &usize| ordered.contains(&Some(*drive));
        let (unread, rest): (Vec<usize>, Vec<usize>) =
            (0..found.len()).filter(|drive| !is_placed(drive)).partition(|drive| found[*drive].failure.is_some());
        let known = missing;
        ordered.iter().enumerate().filter(|(_, drive)| drive.is_none()).for_each(|(place, _)| missing |= 1 << place);
        let mode = config.journal;
        let journal = Journal::new(sim, mode, form, newest.uuid);
        journal.generation.store(newest.generation.get(), Ordering::Relaxed);
        let count = members.len().max(shape.members);
        let mut all: Vec<Member> = members;
        while all.len() < count {
            // A place without a drive is never used: its member is missing.
            all.push(all[0].clone());
        }
        let array = Array::with_journal(sim, shape, config, all, Some(journal))?;
        let core = array.core();
        *core.drive_of.borrow_mut() = ordered.iter().map(|drive| drive.unwrap_or(0)).collect();
        core.spares.borrow_mut().clear();
        core.failed.set(missing);
        *core.unread.borrow_mut() = unread.iter().filter_map(|drive| Some((*drive, found[*drive].failure?))).collect();
        let older = rest.iter().filter(|drive| found[**drive].is_older(&newest));
        *core.older.borrow_mut() = older.copied().collect();
        if core.loses(missing) {
            return Err(ArrayError(format!(
                "array {shape}: {}, and it tolerates the loss of {}{}; they count again when they are brought back",
                are_missing(missing, shape.members),
                core.level.tolerates(),
                told(&found, &newest)
            )));
        }
        // The others may have continued without the members whose records are read, and only they would know. If two
        // records state that the array continued without a member, that member is treated as out since then: both
        // would have been out when it continued alone.
        let out = if sure.count_ones() > 1 { known } else { 0 };
        let hides = found.iter().any(|found| found.failure.is_some());
        if hides && !core.loses(sure | out) && !core.config.force {
            return Err(ArrayError(format!(
                "array {shape}: a drive may have later data than the others{}; array.force = true goes on without it",
                unread_in_words(&found)
            )));
        }
        core.recover(known, &behind).await?;
        core.spares.borrow_mut().extend(rest);
        core.record_spares().await;
        core.start_rebuild();
        Ok(array)
    }
}

/// The two records of members read from a drive.
struct Found {
    /// The newer of the readable ones.
    record: Option<Record>,
    /// Why one could not be read: it may have been the newer one.
    failure: Option<Status>,
}

impl Found {
    async fn on(issuer: &Issuer, drive: &dyn Drive, form: &Form) -> Found {
        let mut found = Found { record: None, failure: None };
        for generation in 0..2 {
            match read(issuer, drive, form.record(generation), form.page).await {
                Ok(bytes) => {
                    let record = form::unsealed::<Record>(&bytes);
                    found.record = found.record.into_iter().chain(record).max_by_key(|record| record.generation.get());
                }
                Err(status) => found.failure = Some(status),
            }
        }
        found
    }

    /// Whether it belongs to the array of this record, and was left behind by it: it was missing or was restored to an
    /// earlier state.
    fn is_older(&self, newest: &Record) -> bool {
        let is_spare = |record: &Record| usize::from(record.member.get()) == SPARE;
        self.record
            .is_some_and(|record| record.uuid == newest.uuid && !is_spare(&record) && !is_current(&record, newest))
    }
}

/// Whether a drive with this record was present to the end: a crash may have prevented its last record.
fn is_current(record: &Record, newest: &Record) -> bool {
    record.uuid == newest.uuid && record.generation.get() + 1 >= newest.generation.get()
}

/// A drive given twice would be rebuilt over itself, and a copy of a member's file cannot be distinguished from the
/// member.
fn check_distinct(found: &[Found], newest: &Record) -> Result<(), ArrayError> {
    let is_member = |member: u16| member < newest.members.get() && newest.missing.get() & 1 << member == 0;
    let in_use = |record: &Record| is_current(record, newest) && is_member(record.member.get());
    let mut seen: BTreeMap<(u16, u64), usize> = BTreeMap::new();
    for (drive, found) in found.iter().enumerate() {
        let Some(record) = found.record.filter(in_use) else { continue };
        let (member, generation) = (record.member.get(), record.generation.get());
        if let Some(other) = seen.insert((member, generation), drive) {
            return Err(ArrayError(format!(
                "drives {other} and {drive} both are member {member}: they are one drive, or one is a copy of the other; leave one of them out"
            )));
        }
    }
    Ok(())
}

/// If two parts of an array have each continued without the other (split brain), each holds acknowledged data that
/// the other lacks.
fn check_one_history(found: &[Found], members: usize) -> Result<(), ArrayError> {
    let all = u32::MAX >> (32 - members);
    let newest = (0..found.len()).filter_map(|drive| Some((drive, found[drive].record.filter(Record::has_gone_on)?)));
    let Some((newest, last)) = newest.max_by_key(|(_, record)| record.generation.get()) else { return Ok(()) };
    // No member in use here was in use there.
    let is_apart = |record: &Record| record.has_gone_on() && all & !record.missing.get() & !last.missing.get() == 0;
    match (0..found.len()).find(|drive| found[*drive].record.as_ref().is_some_and(is_apart)) {
        Some(other) => Err(ArrayError(format!(
            "drives {} and {} each went on without the other, and each may have data that the other lacks; leave out what is to be \
             given up, or array.force = true keeps that with the later record",
            newest.min(other),
            newest.max(other)
        ))),
        None => Ok(()),
    }
}

/// The drive of each place of an array, and a bit for each place whose drive certainly has no later record. A drive
/// without either of the last two records was replaced meanwhile.
fn places(found: &[Found], newest: &Record, members: usize) -> (Vec<Option<usize>>, u32) {
    let (mut ordered, mut sure): (Vec<Option<usize>>, u32) = (vec![None; members], 0);
    let is_current = |record: &Record| is_current(record, newest);
    let mut all: Vec<(usize, Record)> =
        found.iter().enumerate().filter_map(|(drive, found)| Some((drive, found.record.filter(is_current)?))).collect();
    all.sort_by_key(|(_, record)| std::cmp::Reverse(record.generation.get()));
    for (drive, record) in all {
        let place = usize::from(record.member.get());
        if place < members && newest.missing.get() & 1 << place == 0 && ordered[place].is_none() {
            ordered[place] = Some(drive);
            sure |= u32::from(found[drive].failure.is_none()) << place;
        }
    }
    (ordered, sure)
}

/// The newest record of any drive.
fn newest_of(found: &[Found]) -> Option<Record> {
    found.iter().filter_map(|found| found.record).max_by_key(|record| record.generation.get())
}

/// Members of a mask, in words.
fn are_missing(mask: u32, members: usize) -> String {
    let numbers: Vec<String> =
        (0..members).filter(|member| mask & 1 << member != 0).map(|member| member.to_string()).collect();
    match &*numbers {
        [one] => format!("member {one} is missing"),
        _ => format!("members {} are missing", numbers.join(", ")),
    }
}

/// The drives that are left out, in words.
fn told(found: &[Found], newest: &Record) -> String {
    let older = found.iter().enumerate().filter(|(_, found)| found.is_older(newest));
    let older = older.map(|(drive, _)| format!("; drive {drive} is as it was at an earlier time"));
    older.collect::<String>() + &unread_in_words(found)
}

/// The drives with unreadable records, in words.
fn unread_in_words(found: &[Found]) -> String {
    let failures = found.iter().enumerate().filter_map(|(drive, found)| Some((drive, found.failure?)));
    failures
        .map(|(drive, status)| format!("; the records of drive {drive} cannot be read: {}", status.name()))
        .collect()
}

fn no_record(is_begun: bool, chunk: Option<u64>, found: &[Found]) -> String {
    if is_begun {
        return "the array was being made when that was stopped, and holds nothing yet; making it anew empties the drives".to_owned();
    }
    let valid = match chunk {
        Some(chunk) => format!("one has that of an array with array.chunk={chunk}, which is valid"),
        None => "no array was made on these drives, or not with array.journal; making one anew empties them".to_owned(),
    };
    format!("no drive has the record of an array with this array.chunk: {valid}{}", unread_in_words(found))
}

/// Drives of two arrays could be mistaken for each other's, and be overwritten.
fn check_uuids(found: &[Found]) -> Result<(), ArrayError> {
    let uuid = |(drive, found): (usize, &Found)| Some((drive, found.record?.uuid));
    let mut known = found.iter().enumerate().filter_map(uuid);
    let Some((first, uuid)) = known.next() else { return Ok(()) };
    match known.find(|(_, other)| *other != uuid) {
        Some((other, _)) => Err(ArrayError(format!(
            "drives {first} and {other} are of two arrays; give those of one, and empty drives as spares"
        ))),
        None => Ok(()),
    }
}

impl Core {
    /// Whether each member has its own record, and no spare has one: a drive given twice has the record of its last
    /// place.
    async fn check_recorded(&self) -> Result<(), ArrayError> {
        let Some(journal) = &self.journal else { return Ok(()) };
        let mut found = Vec::new();
        for drive in 0..self.paths.len() {
            let place = journal.form.record(journal.generation.load(Ordering::Relaxed));
            let bytes = read(&self.issuer, &*self.paths[drive], place, journal.form.page).await;
            let record = bytes.ok().and_then(|bytes| form::unsealed::<Record>(&bytes));
            found.push(
                record.filter(|record| record.uuid == journal.uuid).map(|record| usize::from(record.member.get())),
            );
        }
        let is_other = |drive: &usize| found[*drive].is_some_and(|member| member != *drive);
        match (0..found.len()).find(is_other) {
            Some(drive) => Err(ArrayError(format!(
                "drives {drive} and {} are one drive; each needs one of its own",
                found[drive].unwrap_or(drive)
            ))),
            None => Ok(()),
        }
    }

    /// Records the opening, writes the entries of the journal, and makes marked regions consistent. `known` are the
    /// members that the record lists as missing, and `behind` those that lack the last record.
    async fn recover(self: &Rc<Self>, known: u32, behind: &[usize]) -> Result<(), ArrayError> {
        let Some(journal) = &self.journal else { return Ok(()) };
        let entries = self.read_journal(journal).await?;
        let dirty = self.marked_regions(journal).await?;
        let missing = self.failed.get();
        if self.level.checks() > 0 && missing != 0 && !dirty.is_empty() && !self.config.force {
            let what =
                if missing & !known != 0 { "was lost together with a crash" } else { "failed just before a crash" };
            return Err(ArrayError(format!(
                "array {}: a member {what}, and {} regions were being written: what it held of them cannot be trusted; \
                 array.force = true opens it all the same, and array.journal = data avoids this",
                self.shape,
                dirty.len()
            )));
        }
        // A missing member lacks all later writes: this must be recorded first.
        self.record_opening(behind).await;
        self.recovered.set(Recovered { regions: dirty.len(), writes: entries.len() });
        for parts in &entries {
            self.write_again(parts).await;
        }
        self.resync(&dirty).await;
        // Neither marks nor entries are needed any more once all of that is on the members for good.
        let paths = self.paths.clone();
        if self.info.volatile_cache && !dirty.is_empty() && self.flush(&paths, 0).await.is_err() {
            return Err(ArrayError(format!("array {}: its drives cannot be flushed", self.shape)));
        }
        if !self.end_journal(journal).await {
            return Err(ArrayError(format!("array {}: power was cut while it was opened", self.shape)));
        }
        journal.intent.replace(Intent::default());
        if !dirty.is_empty() {
            self.write_bitmap(journal).await;
        }
        Ok(())
    }

    /// The regions that are marked in the latest bitmap of any member.
    async fn marked_regions(&self, journal: &Journal) -> Result<Vec<u32>, ArrayError> {
        let (mut newest, mut was_read): (Option<Bitmap>, [bool; 2]) = (None, [false; 2]);
        for member in (0..self.level.members()).filter(|member| self.failed.get() & 1 << member == 0) {
            for number in 0..2 {
                let place = journal.form.bitmap(number);
                let bytes = read(&self.issuer, self.drive(&self.paths, member), place, journal.form.page).await;
                // All members have it.
                let Ok(bytes) = bytes else { continue };
                was_read[number as usize] = true;
                let bitmap = form::unsealed::<Bitmap>(&bytes);
                let bitmap = bitmap.filter(|bitmap| bitmap.uuid == journal.uuid);
                newest = newest.into_iter().chain(bitmap).max_by_key(|bitmap| bitmap.number.get());
            }
        }
        if was_read != [true; 2] && self.level.tolerates() > 0 {
            return Err(ArrayError(format!("array {}: no member tells which regions were being written", self.shape)));
        }
        let Some(newest) = newest else { return Ok(Vec::new()) };
        journal.bitmap_number.set(newest.number.get());
        let is_marked = |region: &u32| newest.bits[*region as usize / 8] & 1 << (region % 8) != 0;
        Ok((0..form::REGIONS as u32).filter(is_marked).collect())
    }

    /// The complete entries of the journal, in the order of their numbers. A member whose journal cannot be read is
    /// missing from now on: its content of the stripes in the journal is unknown.
    async fn read_journal(self: &Rc<Self>, journal: &Journal) -> Result<Vec<BTreeMap<usize, Part>>, ArrayError> {
        let mut entries: BTreeMap<u64, BTreeMap<usize, Part>> = BTreeMap::new();
        let (mut failed, form) = (self.failed.get(), journal.form);
        let (mut tail, mut last, mut last_write) = (0, 0, 0);
        for member in (0..self.level.members()).filter(|member| failed & 1 << member == 0) {
            for number in 0..SLOTS {
                let drive = self.drive(&self.paths, member);
                let bytes = match read(&self.issuer, drive, form.slot(number), form.page).await {
                    Ok(bytes) => bytes,
                    Err(status) => {
                        self.leave_out(member, status);
                        break;
                    }
                };
                let slot = form::unsealed::<Slot>(&bytes).filter(|slot| slot.uuid == journal.uuid);
                let Some(slot) = slot else { continue };
                tail = tail.max(slot.tail.get());
                last = last.max(slot.number.get());
                if slot.mask.get() != 0 {
                    last_write = last_write.max(slot.number.get());
                }
                let mut data = Vec::new();
                if slot.zeros.get() == 0 {
                    let place = form.slot(number) + u64::from(form.page);
                    match read(&self.issuer, drive, place, slot.blocks.get()).await {
                        Ok(read) => data = read,
                        Err(status) => {
                            self.leave_out(member, status);
                            break;
                        }
                    }
                }
                if crc32fast::hash(&data) == slot.data_crc.get() {
                    entries.entry(slot.number.get()).or_default().insert(member, (slot, data));
                }
            }
        }
        failed |= self.failed.get();
        if self.loses(failed) {
            let problem = "the journal of more members cannot be read than it tolerates the loss of";
            return Err(ArrayError(format!("array {}: {problem}", self.shape)));
        }
        {
            let mut ring = journal.ring.borrow_mut();
            (ring.next, ring.last, ring.end) = (last + 1, last_write, tail.max(1));
        }
        // Without all of its parts, no part of an entry is in place yet.
        let is_whole = |parts: &BTreeMap<usize, Part>| {
            let mask = parts.values().next().map_or(0, |(slot, _)| slot.mask.get()) & !failed;
            mask != 0 && (0..self.level.members()).all(|member| mask & 1 << member == 0 || parts.contains_key(&member))
        };
        Ok(entries.split_off(&tail).into_values().filter(is_whole).collect())
    }

    fn leave_out(&self, member: usize, status: Status) {
        // Levels without redundancy have no journal.
        if self.level.tolerates() > 0 {
            self.failed.set(self.failed.get() | 1 << member);
            self.unread.borrow_mut().push((self.sent(member).drive, status));
        }
    }

    async fn write_again(self: &Rc<Self>, parts: &BTreeMap<usize, Part>) {
        let Some(stripe) = parts.values().next().map(|(slot, _)| slot.stripe.get()) else { return };
        let write = |(member, (slot, data)): (&usize, &Part)| SubWrite {
            member: *member,
            reach: Reach { start: slot.start.get(), blocks: slot.blocks.get() },
            mem: (slot.zeros.get() == 0).then(|| HostMem::from_bytes(data)),
            is_rebuild: false,
        };
        let writes: SubWrites = parts.iter().map(write).collect();
        let paths = self.paths.clone();
        // A member that fails here is missing from now on.
        let _ = self.carry_out(&paths, stripe, &writes, nandscape_wire_nvme::io::FUA, 0).await;
    }
}
