//! Another drive takes the place of a lost one while the store is served, and is rebuilt.
//!
//! The new drive is empty, or was this drive of this store, unless it was used without the others since. First it records that it lacks items: until it is rebuilt it is never used alone. Then
//! its slots are cleared. It joins between two epochs, once the others have all that was packed, and gets what is packed from then on.
//!
//! On drives with zones the log begins another zone then, as after a crash: the new drive gets old segments and new chunks at the same time.

use std::cell::Cell;
use std::rc::Rc;

use nandscape_sim::Span;

use crate::drives::{Given, Member};
use crate::engine::Engine;
use crate::error::{EngineError, Event, OpenError};
use crate::membership::{check_lives, found_on};
use crate::room::Room;
use crate::shape::{Super, is_left};

/// Why a drive does not take the place of another one.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReplaceError {
    /// There is no such drive.
    #[error("the store has no drive d{drive}; d0 to d{last} are valid")]
    Unknown {
        /// The number.
        drive: usize,
        /// The number of the last drive.
        last: usize,
    },
    /// The drive is in use.
    #[error("drive d{0} is in use; a drive that is missing, has failed or takes no writes is valid")]
    InUse(usize),
    /// The drive takes no writes, and its group cannot do without the items on it.
    #[error("drive d{0} takes no writes, and no other drive has its items; a drive whose items others have is valid")]
    Needed(usize),
    /// Another one takes its place already.
    #[error("drive d{0} is being replaced by another drive already")]
    Begun(usize),
    /// The new drive does not fit.
    #[error("the new drive d{drive} {what}")]
    Unfit {
        /// Its number.
        drive: usize,
        /// What it is, and what would be valid.
        what: String,
    },
    /// The store is closed.
    #[error("the store is being closed; a replacement at the next start is valid")]
    Closed,
    /// The new drive cannot be used, or the store has failed.
    #[error(transparent)]
    Open(#[from] OpenError),
}

impl From<EngineError> for ReplaceError {
    fn from(error: EngineError) -> ReplaceError {
        ReplaceError::Open(error.into())
    }
}

/// A drive that is to take the place of a lost one.
pub(crate) struct Replacement {
    member: Rc<Member>,
    has_begun: Cell<bool>,
}

/// A place is being replaced until this is dropped.
struct Claimed<'a>(&'a Engine, usize);

impl Drop for Claimed<'_> {
    fn drop(&mut self) {
        self.0.replacing.set(self.0.replacing.get() & !(1 << self.1));
    }
}

impl Engine {
    /// Checks that another drive may take the place of one.
    ///
    /// # Errors
    /// Why not.
    pub fn check_replaceable(&self, drive: usize) -> Result<(), ReplaceError> {
        let last = self.drives() - 1;
        if drive > last {
            return Err(ReplaceError::Unknown { drive, last });
        }
        self.check_open()?;
        if !self.member(drive).is_gone() {
            return Err(ReplaceError::InUse(drive));
        }
        match self.replacing.get() >> drive & 1 {
            0 => Ok(()),
            _ => Err(ReplaceError::Begun(drive)),
        }
    }

    /// Checks that the store has not failed, and is not closed.
    pub(crate) fn check_open(&self) -> Result<(), ReplaceError> {
        if let Some(error) = self.failure() {
            return Err(error.into());
        }
        match self.is_closing.get() || self.is_closed.get() {
            true => Err(ReplaceError::Closed),
            false => Ok(()),
        }
    }

    /// Has another drive take the place of a lost one. Returns once its rebuild has begun.
    ///
    /// # Errors
    /// When the drive is in use, or the new one cannot take its place. Then the drives of the store are as before. A new drive that failed late may
    /// have the store's record and no items: it can take the place later.
    pub async fn replace(&self, drive: usize, given: Given) -> Result<(), ReplaceError> {
        self.check_replaceable(drive)?;
        self.replacing.set(self.replacing.get() | 1 << drive);
        let _claimed = Claimed(self, drive);
        let wanted = (self.policy.needs(), Span::from_ms(self.config.patience_ms));
        let member = Rc::new(Member::new(&self.host, drive, Some(given), wanted).await?);
        self.check_fits(&member)?;
        let found = found_on(&member).await?;
        if found.is_none() && member.has_written_zones() {
            return Err(OpenError::Foreign(drive).into());
        }
        if let Some(found) = found {
            found.check_is(drive, &self.shape.get())?;
            self.check_was_not_alone(found)?;
            member.recorded.is_found(found.generation);
        }
        self.check_open()?;
        self.begin_life(drive, found.map(|found| found.own()).unwrap_or_default());
        self.record(&member).await?;
        match member.zoned() {
            Some(_) => member.reset_all().await?,
            None => self.wipe_slots(&member, 0..self.shape.get().slots as u32).await?,
        }
        let replacement = Rc::new(Replacement { member, has_begun: Cell::new(false) });
        self.replacements.borrow_mut().push(replacement.clone());
        self.changed.notify();
        while !replacement.has_begun.get() && self.failure().is_none() && !self.is_closed.get() {
            self.changed.changed().await;
        }
        match (replacement.has_begun.get(), self.failure()) {
            (true, _) => Ok(()),
            (false, Some(error)) => Err(error.into()),
            (false, None) => Err(ReplaceError::Closed),
        }
    }

    /// Checks that a drive of the store was not used without the drives in use.
    fn check_was_not_alone(&self, found: Super) -> Result<(), OpenError> {
        let (drive, shape) = (found.number as usize, self.shape.get());
        let members = self.members();
        let whole = members.iter().filter(|member| !member.is_incomplete() && member.number() != drive);
        let mut all: Vec<Super> = whole.map(|member| shape.taken_by(member.number())).collect();
        let other = all.first().map_or(drive, |one| one.number as usize);
        all.push(found);
        check_lives(&all)?;
        if let Err(other) = is_left(found.number, &all) {
            return Err(OpenError::Split { drive, other });
        }
        // A drive that was being rebuilt is never used alone.
        match found.generation > shape.generation && !found.lacks(found.number) {
            true => Err(OpenError::Split { drive, other }),
            false => Ok(()),
        }
    }

    /// Checks that a drive has room for the segments and blocks of the store.
    fn check_fits(&self, member: &Rc<Member>) -> Result<(), ReplaceError> {
        let (drive, shape) = (member.number(), self.shape.get());
        let info = member.in_use()?.info;
        if !info.keeps_data {
            return Err(OpenError::KeepsNothing(drive).into());
        }
        let least = self.start_of(shape.slots as u32);
        if info.bytes() < least {
            let what = format!("has {} bytes; {least} or more are valid", info.bytes());
            return Err(ReplaceError::Unfit { drive, what });
        }
        // Their zones are equal.
        let other = self.members().iter().find(|other| !other.is_gone()).cloned();
        Room::of(&other.into_iter().chain([member.clone()]).collect::<Vec<_>>())?;
        let unit = info.unit_bytes.max(info.lba_bytes) as usize;
        if unit == 0 || !self.block.is_multiple_of(unit) {
            let what =
                format!("has blocks of {unit} bytes; blocks of which {} bytes are a multiple are valid", self.block);
            return Err(ReplaceError::Unfit { drive, what });
        }
        Ok(())
    }

    /// Drives that wait take their places, where the others have all that was packed. No drive has a token.
    pub(crate) fn begin_replacements(&self) {
        let is_settled =
            |one: &Rc<Replacement>| self.state.borrow().logs[one.member.number() / self.replicas()].is_settled();
        let waiting = self.replacements.take();
        let (begun, waiting) = waiting.into_iter().partition::<Vec<_>, _>(is_settled);
        self.replacements.replace(waiting);
        for Replacement { member, has_begun } in begun.iter().map(|one| &**one) {
            let drive = member.number();
            let mut members = self.members().to_vec();
            let before = std::mem::replace(&mut members[drive], member.clone());
            let (read, written) = self.past_bytes.get();
            if let Some(disk) = before.disk() {
                self.past_bytes.set((read + disk.read_bytes.get(), written + disk.written_bytes.get()));
            }
            self.members.replace(members.into());
            self.begin_rebuild(drive);
            self.state.borrow_mut().logs[drive / self.replicas()].leave_zone();
            has_begun.set(true);
            self.event(Event::Replaced { drive, twin: self.twin(drive) });
            self.changed.notify();
        }
    }
}
