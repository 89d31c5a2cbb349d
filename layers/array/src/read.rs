//! The read of a stripe: sub-I/Os by the policy, until the data is present or can be reconstructed from other chunks.
//!
//! A plain read takes no lock. Reconstructed data must be from one moment. If writes came between, the stripe is read
//! again. If writes keep coming, the read waits for busy members, because a writer may wait longer. If a member is
//! missing, or its data unreadable, the stripe is locked against writers, and all chunks are read over the same blocks.

use std::rc::Rc;

use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, Completion, HostMem};
use nandscape_sim::{Span, Time};
use nandscape_wire_nvme::vendor::Hints;
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};
use smallvec::SmallVec;

use crate::array::{Core, Paths};
use crate::flight::{Flight, Sent};
use crate::geometry::{Reach, Segment, union};
use crate::level::Role;
use crate::member::Answer;
use crate::parity::recover;
use crate::serve::Ended;
use crate::tail::{Sends, Sub, SubState, TailPolicy, View};

/// Attempts without a lock. The last attempt waits for busy members instead of evading them.
const TRIES: usize = 5;

/// A member's chunk in a stripe read, with the memory that it is read into.
struct Part {
    reach: Reach,
    mem: HostMem,
    /// Whether that is the host's memory.
    is_direct: bool,
    was_busy: bool,
    was_asked: bool,
}

/// One attempt to read a stripe.
struct Attempt<'a> {
    core: &'a Rc<Core>,
    paths: &'a Paths,
    stripe: u64,
    segments: &'a [Segment],
    mem: &'a HostMem,
    attributes: u32,
    begun: Time,
    subs: SmallVec<[Sub; 8]>,
    parts: SmallVec<[Part; 8]>,
    breakdown: Breakdown,
    failure: Option<Status>,
    /// Members whose chunk could not be read.
    unreadable: SmallVec<[usize; 2]>,
}

impl Core {
    /// Reads parts of a stripe. `answer` is a member's answer to a read within a chunk, if it was sent already.
    pub(crate) async fn read_stripe(
        self: &Rc<Self>,
        paths: &Paths,
        stripe: u64,
        segments: &[Segment],
        mem: &HostMem,
        attributes: u32,
        answer: Option<(Sent, Completion)>,
    ) -> Ended {
        let begun = self.sim.now();
        let degraded = self.missing_anywhere() != 0;
        // Reconstruction of busy reads is off while a member is missing (Li 6.2): its redundancy is used up.
        let policy: &dyn TailPolicy = if degraded { &self.base } else { &*self.tail };
        let (missing, mut seen) = (self.missing(stripe), self.locks.seen(stripe));
        let chosen = answer.as_ref().map(|(sent, _)| sent.member);
        let mut first = self.attempt(paths, stripe, segments, mem, attributes, (begun, chosen));
        if let Some((sent, completion)) = answer {
            first.adopt(sent, &completion)?;
        }
        let loses = first.subs.iter().any(|sub| sub.is_wanted && sub.state == SubState::Missing);
        for tries in (0..TRIES).rev().take_while(|_| !(missing != 0 && loses)) {
            let how = if tries > 0 && !self.locks.is_torn(stripe) { policy } else { &self.base };
            match first.run(how).await? {
                Outcome::Direct => {
                    first.put_together();
                    return self.read_ended(first, false);
                }
                Outcome::Indirect
                    if self.locks.is_of_one_moment(stripe, seen, first.read()) && first.put_together() =>
                {
                    return self.read_ended(first, true);
                }
                Outcome::Indirect => self.stats.borrow_mut().rereads += 1,
            }
            // A free lock is taken at once.
            let has_lost = !first.unreadable.is_empty() || (self.missing_anywhere() != 0) != degraded;
            if has_lost || !(self.locks.is_written(stripe) || self.locks.is_torn(stripe)) {
                break;
            }
            seen = self.locks.seen(stripe);
            first = first.again();
        }
        let _guard = self.locks.shared(stripe).await;
        let mut again = first.again();
        again.widen();
        again.run(policy).await?;
        // In a torn stripe a chunk that cannot be read cannot be reconstructed either.
        let is_sound = again.is_direct() || !self.locks.is_torn(stripe);
        match is_sound && again.put_together() {
            true => self.read_ended(again, true),
            false => Err(again.failure.unwrap_or(Status::UNRECOVERED_READ_ERROR)),
        }
    }

    /// An attempt; `chosen` is the member that a read within one chunk was sent to.
    fn attempt<'a>(
        self: &'a Rc<Self>,
        paths: &'a Paths,
        stripe: u64,
        segments: &'a [Segment],
        mem: &'a HostMem,
        attributes: u32,
        (begun, chosen): (Time, Option<usize>),
    ) -> Attempt<'a> {
        let (missing, whole) = (self.missing(stripe), union(segments));
        let is_missing = |member: usize| missing & 1 << member != 0;
        let mut subs: SmallVec<[Sub; 8]> = SmallVec::new();
        let mut parts: SmallVec<[Part; 8]> = SmallVec::new();
        for member in 0..self.level.members() {
            let state = if is_missing(member) { SubState::Missing } else { SubState::Idle };
            subs.push(Sub { role: self.level.role(stripe, member), is_wanted: false, state });
            let mem = HostMem::none();
            parts.push(Part { reach: whole, mem, is_direct: false, was_busy: false, was_asked: false });
        }
        for segment in segments {
            let member = chosen.unwrap_or_else(|| self.choose_copy(stripe, segment.index, missing));
            subs[member].is_wanted = true;
            parts[member].reach = segment.span();
        }
        let (breakdown, failure) = (Breakdown::new(), None);
        let unreadable = SmallVec::new();
        Attempt {
            core: self,
            paths,
            stripe,
            segments,
            mem,
            attributes,
            begun,
            subs,
            parts,
            breakdown,
            failure,
            unreadable,
        }
    }

    /// The member from which a data chunk is read: copies in turn, among the present ones.
    pub(crate) fn choose_copy(&self, stripe: u64, index: usize, missing: u32) -> usize {
        let copies = self.level.copies();
        if copies == 1 {
            return self.level.member(stripe, index, 0);
        }
        let turn = self.turn.get();
        self.turn.set(turn.wrapping_add(1));
        let member = |offset: usize| self.level.member(stripe, index, (turn as usize + offset) % copies);
        (0..copies).map(member).find(|member| missing & 1 << member == 0).unwrap_or_else(|| member(0))
    }

    /// Counts a stripe read that has ended.
    fn read_ended(self: &Rc<Self>, attempt: Attempt<'_>, is_indirect: bool) -> Ended {
        let busy = attempt.parts.iter().filter(|part| part.was_busy).count();
        let mut stats = self.stats.borrow_mut();
        stats.stripe_reads += 1;
        stats.busy[busy] += 1;
        for (member, _) in attempt.parts.iter().enumerate().filter(|(_, part)| part.was_busy) {
            stats.members[member].busy += 1;
        }
        stats.reconstructions += u64::from(is_indirect);
        drop(stats);
        if busy > self.level.tolerates() {
            self.overruns.set(self.overruns.get() + 1);
        }
        for member in &attempt.unreadable {
            self.start_repair(attempt.stripe, *member, union(attempt.segments));
        }
        Ok(attempt.breakdown)
    }
}

enum Outcome {
    /// The wanted chunks have been read.
    Direct,
    /// It can be reconstructed.
    Indirect,
}

impl<'a> Attempt<'a> {
    /// The next attempt, which knows the findings of this one.
    fn again(self) -> Attempt<'a> {
        let Attempt { core, paths, stripe, segments, mem, attributes, begun, .. } = self;
        let mut again = core.attempt(paths, stripe, segments, mem, attributes, (begun, None));
        again.parts.iter_mut().zip(&self.parts).for_each(|(part, before)| part.was_busy = before.was_busy);
        self.unreadable.iter().for_each(|member| again.subs[*member].state = SubState::Failed);
        Attempt { unreadable: self.unreadable, breakdown: self.breakdown, ..again }
    }

    /// The members that have been read, a bit each.
    fn read(&self) -> u32 {
        let done = self.subs.iter().enumerate().filter(|(_, sub)| sub.state == SubState::Done);
        done.fold(0, |all, (member, _)| all | 1 << member)
    }
}

impl Attempt<'_> {
    /// All chunks over the same blocks, so that any of them can be reconstructed from the others.
    fn widen(&mut self) {
        let whole = union(self.segments);
        self.parts.iter_mut().for_each(|part| part.reach = whole);
    }

    /// Continues from the answer to a read sent before the attempt began.
    fn adopt(&mut self, sent: Sent, completion: &Completion) -> Result<(), Status> {
        (self.parts[sent.member].was_asked, self.parts[sent.member].is_direct) = (true, true);
        self.ended(sent, completion)
    }

    fn view(&self) -> View<'_> {
        let (data, has_parity) = (self.core.level.data(), self.core.level.checks() > 0);
        View { subs: &self.subs, data, has_parity, begun: self.begun, now: self.core.sim.now() }
    }

    fn is_direct(&self) -> bool {
        self.subs.iter().all(|sub| !sub.is_wanted || sub.state == SubState::Done)
    }

    async fn run(&mut self, policy: &dyn TailPolicy) -> Result<Outcome, Status> {
        let (core, paths) = (self.core, self.paths);
        let mut flight = Flight::new(&core.sim, &core.issuer);
        loop {
            if self.is_direct() {
                return Ok(Outcome::Direct);
            }
            if self.view().is_there() {
                return Ok(Outcome::Indirect);
            }
            let mut sends = Sends::new();
            let until = policy.next(&self.view(), &mut sends);
            self.cover_losses(&mut sends);
            let mut has_lost = false;
            for (member, attributes) in sends {
                // Its earlier drive no longer exists, and the replacement may not have the stripe yet.
                if core.missing(self.stripe) & 1 << member != 0 {
                    self.subs[member].state = SubState::Missing;
                    has_lost = true;
                } else {
                    self.send(member, attributes, policy.abandons(), &mut flight, paths);
                }
            }
            if has_lost {
                continue;
            }
            if flight.is_empty() {
                return Err(self.failure.unwrap_or(Status::UNRECOVERED_READ_ERROR));
            }
            if let Some((sent, completion)) = flight.next(until).await
                && let Err(status) = self.ended(sent, &completion)
            {
                // The others move data to the host's memory, which belongs to the host again once the command has
                // ended.
                while !flight.is_empty() {
                    flight.next(None).await;
                }
                return Err(status);
            }
        }
    }

    /// Reads the substitutes of missing or unreadable chunks, whatever the policy.
    fn cover_losses(&self, sends: &mut Sends) {
        let is_lost = |sub: &Sub| sub.is_wanted && matches!(sub.state, SubState::Missing | SubState::Failed);
        if self.subs.iter().any(is_lost) {
            self.view().complete(0, sends);
        }
    }

    fn send(&mut self, member: usize, attributes: u32, abandons: bool, flight: &mut Flight<'_>, paths: &Paths) {
        let (core, sub, reach) = (self.core, &mut self.subs[member], self.parts[member].reach);
        let own = self.segments.iter().find(|segment| sub.role == Role::Data(segment.index));
        let own = own.filter(|segment| sub.is_wanted && !abandons && segment.span() == reach);
        assert!(sub.state != SubState::Flying, "what is being read is not asked again: its memory would be another");
        let part = &mut self.parts[member];
        let is_again = std::mem::replace(&mut part.was_asked, true);
        part.is_direct = own.is_some();
        part.mem = match own {
            Some(segment) => self.mem.part(segment.at, core.geometry.bytes(segment.blocks)),
            None => core.scratch(reach.blocks),
        };
        let mut stats = core.stats.borrow_mut();
        stats.reads += 1;
        stats.members[member].reads += 1;
        stats.extra_reads += u64::from(!sub.is_wanted && !is_again);
        stats.resubmissions += u64::from(is_again);
        drop(stats);
        sub.state = SubState::Flying;
        let mem = part.mem.clone();
        let sent = core.sent(member);
        let entry = core.sub_command(IoOpcode::READ, sent, (self.stripe, reach));
        let entry = SubmissionEntry { cdw2: (attributes | self.attributes).into(), ..entry };
        flight.send(sent, &*paths[sent.drive], entry, mem);
    }

    fn ended(&mut self, sent: Sent, completion: &Completion) -> Result<(), Status> {
        let member = sent.member;
        let (sub, part) = (&mut self.subs[member], &mut self.parts[member]);
        // The sub-I/O that ended first was awaited first, so the read has waited for the last one.
        if completion.breakdown.total() <= self.core.sim.now() - self.begun {
            self.breakdown = completion.breakdown.clone();
        }
        part.was_busy |= is_busy(completion);
        sub.state = match Answer::of(completion) {
            Answer::Success => SubState::Done,
            Answer::Busy => SubState::Busy(Span::from_us(completion.dw0.into())),
            Answer::Unreadable => {
                self.unreadable.push(member);
                self.failure = Some(completion.status);
                SubState::Failed
            }
            Answer::Interrupted => return Err(completion.status),
            Answer::NotMoved if part.is_direct && self.mem.has_failed() => return Err(completion.status),
            Answer::Dead | Answer::NotMoved => {
                self.failure = Some(completion.status);
                self.core.fail_drive(sent);
                SubState::Failed
            }
        };
        if sub.state == SubState::Failed {
            self.core.stats.borrow_mut().members[member].errors += 1;
        }
        Ok(())
    }

    /// Puts the host's data into its memory, from the data read; returns whether that was possible.
    fn put_together(&self) -> bool {
        if !self.core.info.keeps_data || self.mem.is_none() {
            return true;
        }
        self.segments.iter().all(|segment| match self.part_of(segment) {
            Some(part) if part.is_direct => true,
            Some(part) => {
                self.mem.write(segment.at, &self.bytes(part, segment.span()));
                true
            }
            None => self.reconstruct(segment),
        })
    }

    /// The buffer with the data of a segment that was read.
    fn part_of(&self, segment: &Segment) -> Option<&Part> {
        let is_it = |(sub, part): &(&Sub, &Part)| {
            sub.role == Role::Data(segment.index) && sub.state == SubState::Done && part.reach.covers(segment.span())
        };
        self.subs.iter().zip(&self.parts).find(is_it).map(|(_, part)| part)
    }

    fn bytes(&self, part: &Part, reach: Reach) -> Vec<u8> {
        let bytes = |blocks| self.core.geometry.bytes(blocks);
        part.mem.part(bytes(reach.start - part.reach.start), bytes(reach.blocks)).to_vec()
    }

    fn reconstruct(&self, segment: &Segment) -> bool {
        let (level, reach) = (&*self.core.level, segment.span());
        let (data, checks) = (level.data(), level.checks());
        if checks == 0 {
            return false;
        }
        let mut chunks: Vec<Option<Vec<u8>>> = vec![None; data + checks];
        for (sub, part) in self.subs.iter().zip(&self.parts) {
            if sub.state == SubState::Done && part.reach.covers(reach) {
                let place = match sub.role {
                    Role::Data(index) => index,
                    Role::P => data,
                    Role::Q => data + 1,
                };
                chunks[place] = Some(self.bytes(part, reach));
            }
        }
        if chunks.iter().flatten().count() < data || !recover(data, &mut chunks) {
            return false;
        }
        if let Some(bytes) = &chunks[segment.index] {
            self.mem.write(segment.at, bytes);
        }
        true
    }
}

/// Whether a read found background work in its way: it was rejected for it, or has waited behind it.
pub(crate) fn is_busy(completion: &Completion) -> bool {
    match Answer::of(completion) {
        Answer::Busy => true,
        Answer::Success => completion.breakdown.waited_for(cause::GC) || Hints(completion.dw1).busy(),
        _ => false,
    }
}

impl Core {
    /// The first block of a stripe's chunk on each member.
    pub(crate) fn row(&self, stripe: u64) -> u64 {
        stripe * u64::from(self.geometry.chunk_blocks)
    }

    pub(crate) fn sub_command(&self, opcode: IoOpcode, to: Sent, (stripe, reach): (u64, Reach)) -> SubmissionEntry {
        SubmissionEntry::blocks(opcode, self.nsids[to.drive], self.row(stripe) + u64::from(reach.start), reach.blocks)
    }
}
