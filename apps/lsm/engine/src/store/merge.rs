//! Merges: runs of a level and the overlapping ones of the next level become runs of the next level. One is under way
//! at a time.

use std::rc::Rc;

use nandscape_apps_store::StoreError;

use super::Shared;
use crate::levels::{Job, Levels};
use crate::run::{Builder, Cursor, Run};
use crate::storage::{BLOCK, Edit, Storage};

impl<S: Storage> Shared<S> {
    /// Begins to merge, if a level is too large and no merge is under way.
    pub(super) fn merge_if_due(self: &Rc<Self>) {
        if self.is_merging.get() || self.check().is_err() {
            return;
        }
        let Some(job) = self.levels.borrow().pick(&self.config.levels, &mut self.turn.borrow_mut()) else { return };
        self.is_merging.set(true);
        let shared = self.clone();
        self.host.sim().spawn(async move {
            let merged = if job.is_move() { shared.relevel(&job).await } else { shared.merge(&job).await };
            shared.is_merging.set(false);
            shared.ended(merged);
            shared.merge_if_due();
        });
    }

    async fn relevel(&self, job: &Job) -> Result<(), StoreError> {
        let run = &job.upper[0];
        self.put_levels(job, std::slice::from_ref(run));
        self.count(|stats| stats.moves += 1);
        self.storage.commit(&[Edit::Relevel(run.id, job.from as u8 + 1)]).await
    }

    async fn merge(&self, job: &Job) -> Result<(), StoreError> {
        let made = self.merged(job).await?;
        self.count(|stats| {
            stats.merges += 1;
            stats.merge_bytes += made.iter().map(|run| run.bytes()).sum::<u64>();
        });
        // In memory first: a reader that begins now finds the new runs, and a reader of an old run looks up again.
        self.put_levels(job, &made);
        let old = || job.upper.iter().chain(&job.lower);
        old().for_each(|run| run.is_dropped.set(true));
        let seals = made.iter().map(|run| Edit::Seal(run.id));
        let edits: Vec<Edit> = seals.chain(old().map(|run| Edit::Drop(run.id))).collect();
        self.storage.commit(&edits).await?;
        made.iter().for_each(|run| run.is_committed.set(true));
        Ok(())
    }

    fn put_levels(&self, job: &Job, made: &[Rc<Run>]) {
        let levels: Levels = self.levels.borrow().merged(job, made);
        self.levels.replace(Rc::new(levels));
        self.changed.notify();
    }

    /// The runs that result from merging others.
    async fn merged(&self, job: &Job) -> Result<Vec<Rc<Run>>, StoreError> {
        let (storage, ahead) = (&self.storage, self.config.ahead);
        let mut cursors: Vec<Cursor> = match job.from {
            0 => job.upper.iter().map(|run| Cursor::new([run.clone()], &[], ahead)).collect(),
            _ => vec![Cursor::new(job.upper.iter().cloned(), &[], ahead)],
        };
        cursors.push(Cursor::new(job.lower.iter().cloned(), &[], ahead));
        let most = ((self.config.run / BLOCK as u64) as u32).min(storage.max_blocks());
        let (mut made, mut builder): (Vec<Rc<Run>>, Option<Builder>) = (Vec::new(), None);
        loop {
            for cursor in &mut cursors {
                // No task drops a run that is being merged.
                _ = cursor.peek(storage).await?;
            }
            let least = cursors.iter().filter_map(Cursor::seen).min_by(|one, other| one.0.cmp(&other.0)).cloned();
            let Some((key, value)) = least else { break };
            for cursor in &mut cursors {
                if cursor.seen().is_some_and(|(other, _)| *other == key) {
                    cursor.take();
                }
            }
            if value.is_none() && !job.keeps_deletions {
                continue;
            }
            if let Some(full) = builder.take_if(|builder| !builder.is_empty() && builder.blocks_with(&key) > most) {
                made.push(full.finish(storage).await?);
            }
            let to = match &mut builder {
                Some(builder) => builder,
                none => {
                    let id = storage.create(job.from as u8 + 1, most).await?;
                    none.insert(Builder::new(id, self.config.bits_a_key))
                }
            };
            to.add(storage, &key, value.as_deref()).await?;
        }
        if let Some(last) = builder {
            made.push(last.finish(storage).await?);
        }
        Ok(made)
    }
}
