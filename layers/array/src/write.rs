//! The write of a stripe: with its lock held, old contents are read where parity needs them, the new parity is calculated, and
//! data and parity are written concurrently.
//!
//! | what is written | reads first |
//! |---|---|
//! | all data of the stripe, or a level without parity | nothing |
//! | a part, read-modify-write | the old data of the part and the old parity |
//! | a part, reconstruct-write | the rest of the data, if those are fewer reads |
//! | a part of a stripe with a member missing | all that remains of the stripe |

use std::rc::Rc;

use nandscape_drive::{Breakdown, HostMem};
use nandscape_wire_nvme::io::FUA;
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};
use smallvec::SmallVec;

use crate::array::{Core, Paths};
use crate::flight::{Flight, longer};
use crate::geometry::{Reach, Segment, union};
use crate::journal::{Entry, RETRY};
use crate::level::MAX_MEMBERS;
use crate::member::{Answer, is_interrupted};
use crate::parity::{add, change_q, p_of, q_of, recover};
use crate::serve::{Ended, JOURNAL, LOCK};

/// The written data.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// The data of the host.
    Data(HostMem),
    /// Zeros; the members may deallocate if `deac` is set.
    Zeros { deac: u32 },
}

impl Source {
    fn bytes(&self, segment: &Segment, bytes: usize) -> Vec<u8> {
        match self {
            Source::Data(mem) if !mem.is_none() => mem.part(segment.at, bytes).to_vec(),
            _ => vec![0; bytes],
        }
    }
}

/// A write to one member.
#[derive(Clone, Debug)]
pub(crate) struct SubWrite {
    pub(crate) member: usize,
    pub(crate) reach: Reach,
    /// The written data; `None` is zeros, by a command without data.
    pub(crate) mem: Option<HostMem>,
    /// Whether it includes a member that does not have the stripe yet.
    pub(crate) is_rebuild: bool,
}

pub(crate) type SubWrites = SmallVec<[SubWrite; 8]>;

/// The data of a stripe, and its parities, over some blocks; empty where members keep no data.
pub(crate) struct Columns {
    pub(crate) chunks: Vec<Option<Vec<u8>>>,
    pub(crate) breakdown: Breakdown,
}

impl Core {
    pub(crate) async fn write_stripe(
        self: &Rc<Self>,
        paths: &Paths,
        stripe: u64,
        segments: &[Segment],
        source: &Source,
        fua: u32,
        attributes: u32,
    ) -> Ended {
        let came = self.sim.now();
        let _guard = self.locks.exclusive(stripe).await;
        let locked = self.sim.now() - came;
        if self.is_lost.get() {
            return Err(Status::WRITE_FAULT.final_());
        }
        let is_full = self.geometry.is_full(segments);
        if !is_full {
            self.condemn_torn(stripe).await?;
        }
        let (writes, mut breakdown) = match self.level.checks() {
            0 => (self.data_writes(stripe, segments, source), Breakdown::new()),
            _ => self.with_parity(paths, stripe, segments, source, attributes).await?,
        };
        self.stats.borrow_mut().stripe_writes += 1;
        let deac = if let Source::Zeros { deac } = source { *deac } else { 0 };
        let begun = self.sim.now();
        let entry = self.protect(stripe, &writes).await?;
        let (waited, was_torn) = (self.sim.now() - begun, self.locks.is_torn(stripe));
        // The entries of the journal are in place for good before their slot is used again.
        let lasting = if matches!(entry, Entry::Journalled(_)) && self.info.volatile_cache { FUA } else { 0 };
        let mut ended = self.carry_out(paths, stripe, &writes, fua | deac | lasting, attributes).await;
        // Journal entries are written whatever happens meanwhile: otherwise stripes with a missing member could not
        // be made consistent. The drives return soon after a power cut.
        while matches!(entry, Entry::Journalled(_)) && ended.as_ref().is_err_and(|status| is_interrupted(*status)) {
            self.sim.sleep(RETRY).await;
            ended = self.carry_out(paths, stripe, &writes, fua | deac | lasting, attributes).await;
        }
        // Entries of the journal were written whole, also after an interruption, and a whole stripe does not depend on
        // earlier content.
        if (is_full || (matches!(entry, Entry::Journalled(_)) && !was_torn)) && ended.is_ok() {
            self.locks.mend(stripe);
        }
        self.unprotect(stripe, entry);
        breakdown.charge(self.config.layer, LOCK, locked);
        breakdown.charge(self.config.layer, JOURNAL, waited);
        breakdown += &ended?;
        Ok(breakdown)
    }

    /// The writes of data, to all copies.
    fn data_writes(&self, stripe: u64, segments: &[Segment], source: &Source) -> SubWrites {
        let mut writes = SubWrites::new();
        for segment in segments {
            let mem = match source {
                Source::Data(mem) => Some(mem.part(segment.at, self.geometry.bytes(segment.blocks))),
                Source::Zeros { .. } => None,
            };
            for copy in 0..self.level.copies() {
                let member = self.level.member(stripe, segment.index, copy);
                writes.push(SubWrite { member, reach: segment.span(), mem: mem.clone(), is_rebuild: false });
            }
        }
        writes
    }

    /// The writes of data and parity, after the reads that they need.
    async fn with_parity(
        self: &Rc<Self>,
        paths: &Paths,
        stripe: u64,
        segments: &[Segment],
        source: &Source,
        attributes: u32,
    ) -> Result<(SubWrites, Breakdown), Status> {
        let (mut writes, reach) = (self.data_writes(stripe, segments, source), union(segments));
        let (mut missing, data) = (self.missing(stripe), self.level.data());
        let (parities, breakdown) = if self.geometry.is_full(segments) {
            self.stats.borrow_mut().full_writes += 1;
            let new = |segment: &Segment| Some(source.bytes(segment, self.geometry.bytes(segment.blocks)));
            let chunks = if self.info.keeps_data { segments.iter().map(new).collect() } else { Vec::new() };
            let zeros = matches!(source, Source::Zeros { .. });
            let parities = if zeros { None } else { Some(self.parities(chunks, reach)) };
            (parities, Breakdown::new())
        } else if (0..self.level.checks()).all(|check| self.is_check_missing(stripe, check, missing)) {
            (Some(Vec::new()), Breakdown::new())
        } else {
            match self.partial(paths, stripe, segments, source, attributes).await {
                Ok((parities, breakdown)) => (Some(parities), breakdown),
                // Another part of the stripe is lost, so no parity can fit it. The written data is readable without
                // parity.
                Err(Status::UNRECOVERED_READ_ERROR) if self.can_do_without_parity(stripe, segments) => {
                    let checks = self.checks_there(stripe);
                    self.condemn(stripe, checks, reach).await?;
                    missing |= checks;
                    (Some(Vec::new()), Breakdown::new())
                }
                Err(status) => return Err(status),
            }
        };
        debug_assert!(writes.len() <= data);
        for check in 0..self.level.checks() {
            let Some(member) = self.level.check_member(stripe, check) else { continue };
            let bytes_of =
                |all: &Vec<Vec<u8>>| all.get(check).map_or(HostMem::none(), |bytes| HostMem::from_bytes(bytes));
            let mem = parities.as_ref().map(bytes_of);
            if missing & 1 << member == 0 {
                writes.push(SubWrite { member, reach, mem, is_rebuild: false });
            }
        }
        Ok((writes, breakdown))
    }

    /// Whether all writes go to present members.
    fn can_do_without_parity(&self, stripe: u64, segments: &[Segment]) -> bool {
        let missing = self.missing(stripe);
        segments.iter().all(|segment| self.copy_there(stripe, segment.index, missing).is_some())
    }

    fn is_check_missing(&self, stripe: u64, check: usize, missing: u32) -> bool {
        self.level.check_member(stripe, check).is_some_and(|member| missing & 1 << member != 0)
    }

    /// P and Q of data chunks over some blocks.
    fn parities(&self, chunks: Vec<Option<Vec<u8>>>, reach: Reach) -> Vec<Vec<u8>> {
        if !self.info.keeps_data {
            return Vec::new();
        }
        let bytes = self.geometry.bytes(reach.blocks);
        let parity = |check: usize| {
            let mut sum = vec![0; bytes];
            let all = chunks.iter().flatten().map(Vec::as_slice);
            if check == 0 {
                p_of(all, &mut sum)
            } else {
                q_of(all, &mut sum)
            }
            sum
        };
        (0..self.level.checks()).map(parity).collect()
    }

    /// The new parity of a stripe of which a part is written.
    async fn partial(
        self: &Rc<Self>,
        paths: &Paths,
        stripe: u64,
        segments: &[Segment],
        source: &Source,
        attributes: u32,
    ) -> Result<(Vec<Vec<u8>>, Breakdown), Status> {
        let (data, reach) = (self.level.data(), union(segments));
        let is_covered =
            |index: usize| segments.iter().any(|segment| segment.index == index && segment.span().covers(reach));
        let rest: SmallVec<[usize; 8]> = (0..data).filter(|index| !is_covered(*index)).collect();
        let modify = segments.len() + self.level.checks();
        if self.missing(stripe) == 0 && modify < rest.len() {
            let modified = self.read_modify(paths, stripe, segments, source, attributes).await?;
            if let Some(modified) = modified {
                self.stats.borrow_mut().read_modify_writes += 1;
                return Ok(modified);
            }
        }
        let Columns { mut chunks, breakdown } = self.load(paths, (stripe, reach), &rest, 0, attributes).await?;
        self.stats.borrow_mut().reconstruct_writes += 1;
        if self.info.keeps_data {
            chunks.truncate(data);
            for segment in segments {
                let bytes = source.bytes(segment, self.geometry.bytes(segment.blocks));
                let whole = self.geometry.bytes(reach.blocks);
                let chunk = chunks[segment.index].get_or_insert_with(|| vec![0; whole]);
                let at = self.geometry.bytes(segment.start - reach.start);
                chunk[at..at + bytes.len()].copy_from_slice(&bytes);
            }
        }
        Ok((self.parities(chunks, reach), breakdown))
    }

    /// The new parity from old data and old parity; `None` if any of them is unreadable.
    async fn read_modify(
        self: &Rc<Self>,
        paths: &Paths,
        stripe: u64,
        segments: &[Segment],
        source: &Source,
        attributes: u32,
    ) -> Result<Option<(Vec<Vec<u8>>, Breakdown)>, Status> {
        let reach = union(segments);
        let old = segments.iter().map(|segment| (self.level.member(stripe, segment.index, 0), segment.span()));
        let checks = (0..self.level.checks()).filter_map(|check| self.level.check_member(stripe, check));
        let reads: SmallVec<[(usize, Reach); 8]> = old.chain(checks.map(|member| (member, reach))).collect();
        let Some((found, breakdown)) = self.read_parts(paths, stripe, &reads, attributes).await? else {
            return Ok(None);
        };
        if !self.info.keeps_data {
            return Ok(Some((Vec::new(), breakdown)));
        }
        let (old, checks) = found.split_at(segments.len());
        let mut parities: Vec<Vec<u8>> = checks.iter().map(|mem| mem.to_vec()).collect();
        for (segment, old) in segments.iter().zip(old) {
            let mut change = old.to_vec();
            let new = source.bytes(segment, change.len());
            add(&mut change, &new);
            let at = self.geometry.bytes(segment.start - reach.start);
            for (check, parity) in parities.iter_mut().enumerate() {
                let part = &mut parity[at..at + change.len()];
                if check == 0 { add(part, &change) } else { change_q(part, segment.index, &change) }
            }
        }
        Ok(Some((parities, breakdown)))
    }

    /// Reads parts of members; `None` if one cannot be read.
    async fn read_parts(
        self: &Rc<Self>,
        paths: &Paths,
        stripe: u64,
        reads: &[(usize, Reach)],
        attributes: u32,
    ) -> Result<Option<(Vec<HostMem>, Breakdown)>, Status> {
        let mut flight = Flight::new(&self.sim, &self.issuer);
        let mut mems = Vec::with_capacity(reads.len());
        for (member, reach) in reads {
            let mem = self.scratch(reach.blocks);
            let sent = self.sent(*member);
            let entry = self.sub_command(IoOpcode::READ, sent, (stripe, *reach));
            let mut stats = self.stats.borrow_mut();
            stats.reads_for_writes += 1;
            stats.members[*member].reads += 1;
            drop(stats);
            let entry = SubmissionEntry { cdw2: attributes.into(), ..entry };
            flight.send(sent, &*paths[sent.drive], entry, mem.clone());
            mems.push(mem);
        }
        let (mut sum, mut is_whole) = (Breakdown::new(), true);
        while !flight.is_empty() {
            let Some((sent, ended)) = flight.next(None).await else { continue };
            match Answer::of(&ended) {
                Answer::Success => sum = longer(sum, ended.breakdown),
                Answer::Interrupted => {
                    return Err(ended.status);
                }
                Answer::Dead | Answer::NotMoved => {
                    self.stats.borrow_mut().members[sent.member].errors += 1;
                    self.fail_drive(sent);
                    is_whole = false;
                }
                Answer::Busy | Answer::Unreadable => {
                    self.stats.borrow_mut().members[sent.member].errors += 1;
                    is_whole = false;
                }
            }
        }
        Ok(is_whole.then_some((mems, sum)))
    }

    /// Data chunks over some blocks, at least those of `wanted`, from the remaining chunks without the members of
    /// `without`. The stripe is locked.
    pub(crate) async fn load(
        self: &Rc<Self>,
        paths: &Paths,
        (stripe, reach): (u64, Reach),
        wanted: &[usize],
        without: u32,
        attributes: u32,
    ) -> Result<Columns, Status> {
        let (data, checks) = (self.level.data(), self.level.checks());
        let mut excluded = without | self.missing(stripe);
        let mut sum = Breakdown::new();
        let all: Vec<usize> = (0..self.level.members()).collect();
        loop {
            let is_there = |member: &usize| excluded & 1 << *member == 0;
            let direct: Option<SmallVec<[usize; 8]>> =
                wanted.iter().map(|index| self.copy_there(stripe, *index, excluded)).collect();
            let members: SmallVec<[usize; 8]> = match &direct {
                Some(direct) => direct.clone(),
                // The parity of a torn stripe may not fit the present data.
                None if checks == 0 || self.locks.is_torn(stripe) => return Err(Status::UNRECOVERED_READ_ERROR),
                None => all.iter().copied().filter(is_there).collect(),
            };
            // As many chunks as there are of data, or the wanted chunks themselves.
            if direct.is_none() && members.len() < data {
                return Err(Status::UNRECOVERED_READ_ERROR);
            }
            let reads: SmallVec<[(usize, Reach); 8]> = members.iter().map(|member| (*member, reach)).collect();
            let mut chunks = vec![None; data + checks];
            match self.read_each(paths, stripe, &reads, attributes, &mut excluded).await? {
                None => continue,
                Some((mems, breakdown)) => {
                    sum += &breakdown;
                    if self.info.keeps_data {
                        members
                            .iter()
                            .zip(&mems)
                            .for_each(|(member, mem)| chunks[self.place_of(stripe, *member)] = Some(mem.to_vec()));
                    }
                }
            }
            let is_short = wanted.iter().any(|index| chunks[*index].is_none());
            if self.info.keeps_data && is_short && !recover(data, &mut chunks) {
                return Err(Status::UNRECOVERED_READ_ERROR);
            }
            return Ok(Columns { chunks, breakdown: sum });
        }
    }

    fn copy_there(&self, stripe: u64, index: usize, excluded: u32) -> Option<usize> {
        let members = (0..self.level.copies()).map(|copy| self.level.member(stripe, index, copy));
        members.into_iter().find(|member| excluded & 1 << member == 0)
    }

    /// Reads a part of one member; `None` if it is unreadable.
    ///
    /// # Errors
    /// A power cut interrupted it.
    pub(crate) async fn read_one(
        self: &Rc<Self>,
        paths: &Paths,
        stripe: u64,
        member: usize,
        reach: Reach,
        attributes: u32,
    ) -> Result<Option<HostMem>, Status> {
        let read = self.read_parts(paths, stripe, &[(member, reach)], attributes).await?;
        Ok(read.and_then(|(mems, _)| mems.into_iter().next()))
    }

    /// As [`Core::read_parts`]; members that cannot be read are added to `excluded`.
    async fn read_each(
        self: &Rc<Self>,
        paths: &Paths,
        stripe: u64,
        reads: &[(usize, Reach)],
        attributes: u32,
        excluded: &mut u32,
    ) -> Result<Option<(Vec<HostMem>, Breakdown)>, Status> {
        if let Some(found) = self.read_parts(paths, stripe, reads, attributes).await? {
            return Ok(Some(found));
        }
        // The failed members are found by single reads: this is rare.
        for read in reads {
            if self.read_parts(paths, stripe, std::slice::from_ref(read), attributes).await?.is_none() {
                *excluded |= 1 << read.0;
            }
        }
        *excluded |= self.missing(stripe);
        Ok(None)
    }

    /// Writes to members, except missing ones.
    pub(crate) async fn carry_out(
        self: &Rc<Self>,
        paths: &Paths,
        stripe: u64,
        writes: &[SubWrite],
        flags: u32,
        attributes: u32,
    ) -> Ended {
        let missing = self.missing(stripe);
        let mut flight = Flight::new(&self.sim, &self.issuer);
        let goes = |write: &&SubWrite| write.is_rebuild || missing & 1 << write.member == 0;
        let mut left = [0u8; MAX_MEMBERS];
        writes.iter().filter(goes).for_each(|write| left[write.member] += 1);
        self.locks.writes_begin(stripe, writes.iter().filter(goes).fold(0, |all, write| all | 1 << write.member));
        for write in writes.iter().filter(goes) {
            let opcode = if write.mem.is_some() { IoOpcode::WRITE } else { IoOpcode::WRITE_ZEROES };
            let sent = self.sent(write.member);
            let mut entry = self.sub_command(opcode, sent, (stripe, write.reach));
            // Deallocate is a bit of Write Zeroes only.
            let flags = if write.mem.is_some() { flags & FUA } else { flags };
            (entry.cdw12, entry.cdw2) = ((entry.cdw12.get() | flags).into(), attributes.into());
            let mut stats = self.stats.borrow_mut();
            stats.writes += 1;
            stats.members[write.member].writes += 1;
            drop(stats);
            let mem = write.mem.clone().unwrap_or_else(HostMem::none);
            flight.send(sent, &*paths[sent.drive], entry, mem);
        }
        let (mut sum, mut interrupted, mut unmoved) = (Breakdown::new(), None, None);
        while !flight.is_empty() {
            let Some((sent, ended)) = flight.next(None).await else { continue };
            match Answer::of(&ended) {
                Answer::Success => {
                    sum = longer(sum, ended.breakdown);
                    left[sent.member] -= 1;
                    if left[sent.member] == 0 {
                        self.locks.is_in_place(stripe, sent.member);
                    }
                }
                Answer::Interrupted => interrupted = Some(ended.status),
                Answer::NotMoved if has_failed_memory(writes, sent.member) => unmoved = Some(ended.status),
                _ => {
                    self.stats.borrow_mut().members[sent.member].errors += 1;
                    self.fail_drive(sent);
                }
            }
        }
        if interrupted.is_some() || unmoved.is_some() {
            self.locks.tear(stripe);
        }
        self.until_recorded().await;
        if let Some(status) = interrupted {
            self.was_interrupted();
            return Err(status);
        }
        match unmoved {
            Some(status) => {
                self.start_resync();
                Err(status)
            }
            None if self.is_lost.get() => Err(Status::WRITE_FAULT.final_()),
            None => Ok(sum),
        }
    }
}

/// Whether a write to a member has its data from a host's memory that cannot be reached.
fn has_failed_memory(writes: &[SubWrite], member: usize) -> bool {
    let mut to_it = writes.iter().filter(|write| write.member == member);
    to_it.any(|write| write.mem.as_ref().is_some_and(HostMem::has_failed))
}
