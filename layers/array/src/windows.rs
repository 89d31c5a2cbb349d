//! Windows of the members: the times of each member's own work (Li 3.2.3, 3.2.4, 6.2).
//!
//! | mode | the length |
//! |---|---|
//! | static | the shortest of the drives' recommendations for an array of this width, or the user's setting |
//! | dynamic | begins at half a second, grows by 10 ms every 50 ms, and is halved when a stripe has more busy sub-I/Os than can be reconstructed |
//!
//! Members take turns, position i being that of member i; with technique `harmonia` all have the same position. The
//! schedule is in the drives' clocks: the array reads the Timestamp of each drive, and gives each the same instant as
//! its epoch. When the length changes, the epoch changes with it, so that the current turn continues. A schedule of
//! another length from the same epoch would give the turn to another member while the first still collects.
//!
//! Drives keep their windows until they are changed or the drives are restarted: the array ends the windows at its own
//! end, and gives a member that was offline its windows again.
//!
//! Left out: members without an admin queue, which are not changed; windows of an array that was killed, until the next
//! one begins.

use std::rc::{Rc, Weak};

use nandscape_drive::{Drive, HostMem};
use nandscape_sim::{Sim, Span, Time};
use nandscape_wire_nvme::SubmissionEntry;
use nandscape_wire_nvme::vendor::{MAGIC, WINDOWS, Windows};
use zerocopy::{FromBytes, IntoBytes};

use crate::array::{Array, Core};
use crate::config::WindowMode;
use crate::tail::Technique;

/// The initial dynamic length.
const FIRST: Span = Span::from_ms(500);
/// How often it is adapted.
const PERIOD: Span = Span::from_ms(50);
/// Its increment.
const STEP: Span = Span::from_ms(10);
/// It is not halved below this: a drive could not do anything in it.
const LEAST: Span = Span::from_ms(1);
/// How often the time of a drive is read, until it is read within a millisecond.
const TRIES: u32 = 200;
/// NVMe's feature Timestamp.
const TIMESTAMP: u8 = 0x0e;

/// Windows of equal length, one after the other.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Schedule {
    /// The start of the first of them, past or fictitious.
    pub since: Time,
    /// How long each is.
    pub length: Span,
}

impl Array {
    /// Notifies the array that a drive was unreachable and has reconnected. Its power may have been cut, so data in a
    /// volatile cache may be lost: stripes of marked regions are made consistent, as after a power cut during a
    /// command. The drive may also have lost its windows.
    pub fn drive_was_away(&self, drive: usize) {
        let core = self.core();
        if core.info.volatile_cache {
            core.was_interrupted();
        }
        if let Some(member) = self.member_of(drive) {
            core.start_windows_of(member);
        }
    }

    /// Ends the windows that drives keep, of this array or of an earlier one that was killed. Otherwise later hosts
    /// would find drives that postpone their own work. `drives` are those that answer.
    pub async fn end_windows(&self, drives: &[usize]) {
        let core = self.core();
        core.windows_ended.set(true);
        for drive in drives {
            core.end_windows_of(*drive).await;
        }
    }
}

impl Core {
    /// Whether members have windows that the array sets.
    pub(crate) fn has_windows(&self) -> bool {
        matches!(self.config.window_mode(), WindowMode::Static | WindowMode::Dynamic)
    }

    /// Sets the members' windows, and adapts them while the array exists.
    pub(crate) fn start_windows(self: &Rc<Self>) {
        if self.has_windows() {
            self.sim.spawn(run(Rc::downgrade(self), self.config.window_mode()));
        }
    }

    /// A drive is in the place of a member, anew or again: it gets the member's windows.
    pub(crate) fn start_windows_of(self: &Rc<Self>, member: usize) {
        let Some(schedule) = self.schedule.get() else { return };
        let core = self.clone();
        self.sim.spawn(async move {
            core.set_windows_of(member, schedule).await;
        });
    }

    /// The place of a member in the order of turns.
    pub(crate) fn turn_of(&self, member: usize) -> usize {
        if self.config.technique == Technique::Harmonia { 0 } else { member }
    }

    /// Sets windows of one length on all members; zero is the length that they recommend, the shortest of all. Members
    /// without windows stay without.
    async fn set_windows(&self, length: Span) {
        let since = self.keeps_turn(length);
        let members: Vec<usize> =
            (0..self.level.members()).filter(|member| self.failed.get() & 1 << member == 0).collect();
        let mut shortest: Option<u64> = None;
        for member in &members {
            let in_force = self.set_windows_of(*member, Schedule { since, length }).await;
            shortest = shortest.into_iter().chain(in_force).min();
        }
        let Some(shortest) = shortest else { return };
        let schedule = Schedule { since, length: Span::from_ns(shortest) };
        // Drives that recommend different lengths would not take turns.
        if length.is_zero() {
            for member in &members {
                self.set_windows_of(*member, schedule).await;
            }
        }
        self.schedule.set(Some(schedule));
        self.stats.borrow_mut().window_changes += 1;
    }

    /// The start for windows of a new length such that the present member keeps its turn, at the same progress.
    fn keeps_turn(&self, length: Span) -> Time {
        let Some(Schedule { since, length: before }) = self.schedule.get() else { return Time::ZERO };
        if before.is_zero() || length.is_zero() {
            return since;
        }
        epoch_that_keeps_turn(self.sim.now(), (since, before), length, self.level.members() as u64)
    }

    /// Sets the windows of one member; returns the length in force, if it has windows.
    async fn set_windows_of(&self, member: usize, Schedule { since, length }: Schedule) -> Option<u64> {
        let admin = self.admins[self.drive_of.borrow()[member]].clone()?;
        let epoch_us = self.epoch_us(&*admin).await? + since.ns() / 1_000;
        let position = self.turn_of(member);
        let width = self.level.members();
        let windows = Windows {
            ranges: self.config.ranges.into(),
            ..Windows::new(width as u16, position as u16, length.ns(), epoch_us)
        };
        if self.windows_ended.get() {
            return None;
        }
        let set = SubmissionEntry::set_features(WINDOWS, 0);
        let ended = self.issuer.execute(&*admin, set, HostMem::from_bytes(windows.as_bytes())).await;
        if !ended.status.is_success() {
            return None;
        }
        Some(self.windows_of(&*admin).await?.length.get())
    }

    /// The windows of a drive as it reports them, if it has any.
    async fn windows_of(&self, admin: &dyn Drive) -> Option<Windows> {
        let mem = HostMem::zeroed(size_of::<Windows>());
        let get = SubmissionEntry::get_features(WINDOWS);
        let ended = self.issuer.execute(admin, get, mem.clone()).await;
        let windows = Windows::read_from_bytes(&mem.to_vec()).ok()?;
        (ended.status.is_success() && windows.magic == MAGIC).then_some(windows)
    }

    /// A drive without windows does not get the feature, which may be another one there.
    async fn end_windows_of(&self, drive: usize) {
        let Some(admin) = self.admins[drive].clone() else { return };
        if self.windows_of(&*admin).await.is_some_and(|windows| windows.width.get() > 0) {
            let set = SubmissionEntry::set_features(WINDOWS, 0);
            // The next array resets a drive that fails here.
            self.issuer.execute(&*admin, set, HostMem::from_bytes(Windows::none().as_bytes())).await;
        }
    }

    /// The simulation's instant zero in the clock of a drive: its Timestamp now, minus the elapsed time. Both are
    /// truncated to milliseconds, so a command that spans two milliseconds is repeated: otherwise members would
    /// differ by one. If every command does, members differ by the duration of the commands.
    async fn epoch_us(&self, admin: &dyn Drive) -> Option<u64> {
        let ms_now = || self.sim.now().since(Time::ZERO).ns() / 1_000_000;
        for tries in (0..TRIES).rev() {
            let mem = HostMem::zeroed(8);
            let entry = SubmissionEntry::get_features(TIMESTAMP);
            let asked = ms_now();
            let ended = self.issuer.execute(admin, entry, mem.clone()).await;
            if !ended.status.is_success() {
                return None;
            }
            if ms_now() == asked || tries == 0 {
                let bytes: [u8; 8] = mem.to_vec().try_into().ok()?;
                let ms = u64::from_le_bytes(bytes) & 0xffff_ffff_ffff;
                return Some(ms.saturating_sub(asked) * 1_000);
            }
            self.sim.sleep(Span::from_us(10)).await;
        }
        None
    }
}

/// Sets windows first, and adapts dynamic ones.
async fn run(core: Weak<Core>, mode: WindowMode) {
    let Some(first) = core.upgrade() else { return };
    let given = first.config.window;
    let length = if mode == WindowMode::Dynamic && given.is_zero() { FIRST } else { given };
    first.set_windows(length).await;
    if mode == WindowMode::Dynamic {
        let sim = first.sim.clone();
        let overruns = first.overruns.get();
        drop(first);
        adapt(&sim, core, length, overruns).await;
    }
}

/// Adapts the length while the array exists.
async fn adapt(sim: &Sim, core: Weak<Core>, mut length: Span, mut overruns: u64) {
    loop {
        sim.sleep(PERIOD).await;
        let Some(core) = core.upgrade() else { return };
        let seen = core.overruns.get();
        length = adapted(length, seen != overruns);
        overruns = seen;
        core.set_windows(length).await;
    }
}

/// The next length, after a period in which a stripe had too many busy sub-I/Os or not (Li 3.2.4).
fn adapted(length: Span, has_overrun: bool) -> Span {
    match has_overrun {
        true => Span::from_ns((length.ns() / 2).max(LEAST.ns())),
        false => length + STEP,
    }
}

/// The epoch of windows of `length` with which the turn of `now` continues, after windows of another length since an
/// epoch.
fn epoch_that_keeps_turn(now: Time, (since, before): (Time, Span), length: Span, members: u64) -> Time {
    let passed = now.since(since).ns();
    let turn = passed / before.ns() % members;
    let had = (passed % before.ns()).min(length.ns() - 1);
    Time::from_ns(now.ns().saturating_sub(turn * length.ns() + had))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_length_grows_by_ten_milliseconds_and_is_halved() {
        let after = |overruns: &[bool]| overruns.iter().fold(FIRST, |length, overrun| adapted(length, *overrun));
        assert_eq!(after(&[false, false, false]), Span::from_ms(530));
        assert_eq!(after(&[false, false, true, false]), Span::from_ms(270));
        assert_eq!(after(&[true; 20]), LEAST);
    }

    proptest! {
        #[test]
        fn the_turn_goes_on_when_the_length_changes(
            now in 10_000_000_000u64..20_000_000_000, before in 1_000_000u64..600_000_000, length in 1_000_000u64..600_000_000,
            members in 2u64..8,
        ) {
            let (now, before, length) = (Time::from_ns(now), Span::from_ns(before), Span::from_ns(length));
            let turn = |since: Time, length: Span| now.since(since).ns() / length.ns() % members;
            let since = Time::from_ns(1_000);
            let epoch = epoch_that_keeps_turn(now, (since, before), length, members);
            prop_assert!(epoch <= now);
            prop_assert_eq!(turn(epoch, length), turn(since, before));
            let had = |since: Time, length: Span| now.since(since).ns() % length.ns();
            prop_assert_eq!(had(epoch, length), had(since, before).min(length.ns() - 1));
        }
    }
}
