//! Tokens and writes: drives that take turns have epochs in common, and others are written whenever something waits.
//!
//! An epoch gives tokens, and ends when the writes that were queued at its start are done.

use std::rc::Rc;

use nandscape_sim::Span;

use super::{Blocks, Counts};
use crate::error::EngineError;
use crate::flush::{BATCH_SHARE, LOOK, TICK};
use crate::read::all;

/// How long a version may wait before its drives are written.
const FLUSH_AFTER: Span = Span::from_ms(100);

impl Blocks {
    /// Begins to serve: one task for all drives if they take turns, else one for each.
    pub(super) fn begin(self: &Rc<Self>) {
        let all: Vec<usize> = (0..self.members.len()).collect();
        let lanes = match self.policy.keeps_reads_apart() {
            true => vec![all],
            false => all.into_iter().map(|drive| vec![drive]).collect(),
        };
        self.working.set(lanes.len());
        for lane in lanes {
            self.host.sim().spawn(self.clone().run(lane));
        }
    }

    /// Serves until the store is closed or a drive fails.
    async fn run(self: Rc<Self>, lane: Vec<usize>) {
        let mut epoch = 0;
        while self.failure().is_none() {
            let changed = self.changed.changed();
            let waits = lane.iter().any(|drive| self.waiting.borrow().len(*drive) > 0);
            if !waits && self.is_closing.get() {
                break;
            }
            if waits && self.is_due(&lane) {
                epoch += 1;
                if let Err(error) = self.epoch(epoch, &lane).await {
                    self.failed.borrow_mut().get_or_insert(error);
                }
                self.host.tick().await;
            } else if waits {
                self.host.sim().sleep(TICK).await;
            } else {
                changed.await;
            }
        }
        self.working.set(self.working.get() - 1);
        self.changed.notify();
    }

    /// Whether drives are to be written.
    fn is_due(&self, lane: &[usize]) -> bool {
        let waiting = self.waiting.borrow();
        let is_enough = waiting.blocks() * self.config.block >= self.config.dirty / BATCH_SHARE;
        let is_late = || waiting.oldest().is_some_and(|since| self.host.sim().now().since(since) >= FLUSH_AFTER);
        // Drives that take turns follow each other.
        let follows = || lane.len() > 1 && lane.iter().any(|drive| waiting.lacks(*drive));
        is_enough || self.waiters.get() > 0 || self.is_closing.get() || follows() || is_late()
    }

    async fn epoch(self: &Rc<Self>, epoch: u64, lane: &[usize]) -> Result<(), EngineError> {
        let replicas = self.replicas();
        let is_wanted = |drive: &&usize| {
            let waits = self.policy.lasts().is_some() || self.waiting.borrow().len(**drive) > 0;
            waits && self.policy.has_token(epoch, **drive % replicas, replicas)
        };
        let drives: Vec<usize> = lane.iter().filter(is_wanted).copied().collect();
        let counts = self.stats.get();
        self.stats.set(Counts { epochs: counts.epochs + u64::from(!drives.is_empty()), ..counts });
        let ended = all(drives.into_iter().map(|drive| self.drive_epoch(drive))).await;
        self.changed.notify();
        ended.into_iter().collect()
    }

    async fn drive_epoch(&self, drive: usize) -> Result<(), EngineError> {
        let member = &self.members[drive];
        member.take_token(self.policy.keeps_reads_apart()).await;
        let until = self.policy.lasts().map(|span| self.host.sim().now() + span);
        let mut written = self.write_drive(drive).await;
        while let Some(until) = until.filter(|until| self.host.sim().now() < *until && written.is_ok()) {
            if self.waiting.borrow().len(drive) > 0 {
                written = self.write_drive(drive).await;
            } else {
                self.host.sim().sleep_until(until.min(self.host.sim().now() + LOOK)).await;
            }
        }
        member.leave_token();
        written
    }

    /// Writes what waits for a drive now, in order.
    async fn write_drive(&self, drive: usize) -> Result<(), EngineError> {
        let (member, count) = (&self.members[drive], self.waiting.borrow().len(drive));
        if count == 0 {
            return Ok(());
        }
        let (begun, bytes) = (self.host.sim().now(), count as u64 * self.config.block);
        self.policy.before_writes(member, bytes).await?;
        let mut last = self.host.sim().now();
        if last > begun {
            member.show("collect", begun, bytes);
        }
        for _ in 0..count {
            let write = self.waiting.borrow_mut().take(drive);
            // Newer versions of the rest wait behind what this epoch writes.
            let Some(write) = write else { break };
            self.host.bytes(write.bytes.len()).await;
            member.write(self.place(write.block), &write.bytes).await?;
            self.waiting.borrow_mut().written(&write);
            self.changed.notify();
            member.show("write", std::mem::replace(&mut last, self.host.sim().now()), write.bytes.len() as u64);
        }
        self.policy.after_writes(member).await?;
        if self.host.sim().now() > last {
            member.show("become ready", last, 0);
        }
        Ok(())
    }
}
