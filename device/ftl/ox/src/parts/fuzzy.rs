//! The fuzzy checkpoint and the replay of OX-Block (OX 6.1.7), for components of P7.
//!
//! The head of the log is taken first. Later changes are in the log behind the head, so the tables can be written while
//! they change. Before the checkpoint itself is written, the log is written up to the last change that a table on flash
//! may have. The thesis lacks this step, without which a table could be ahead of the log.
//!
//! A replay applies the records of the log in order. All of them are absolute, so it does not matter that a table may have been
//! written later than the head of the log. Writes of a transaction count when its Commit is met.

use std::collections::BTreeMap;

use nandscape_device_ftl_core::component::{
    Checkpoint, Checkpointing, Key, Process, Progress, Record, Remap, ReplayEnded, Replayed, Replaying, Stopped,
};

use super::keyed_entries::KeyedEntries;

/// CHECKPOINT.
///
/// # Errors
/// When the FTL ends the process.
pub async fn fuzzy_checkpoint(entries: &mut dyn Checkpoint, ftl: &dyn Checkpointing) -> Result<(), Stopped> {
    loop {
        ftl.begin().await?;
        if ftl.write_tables().await? != Progress::Done {
            return Ok(());
        }
        ftl.put_entries(entries);
        match ftl.force_log().await? {
            Progress::Done => {}
            Progress::Again => continue,
            Progress::Over => return Ok(()),
        }
        if ftl.persist(entries.encode()).await? == Progress::Done {
            ftl.end();
        }
        return Ok(());
    }
}

/// REPLAY.
///
/// # Errors
/// When the FTL ends the process, or the flash is damaged.
pub async fn replay_in_order(ftl: &dyn Replaying) -> Result<Replayed, ReplayEnded> {
    ftl.load_tables().await?;
    let mut open = Open::default();
    while let Some(records) = ftl.next_page().await? {
        open.apply(ftl, records).await?;
    }
    open.apply(ftl, ftl.kept()?).await?;
    Ok(Replayed { committed: open.committed, aborted: open.transactions.len() as u64 })
}

/// The transactions whose end was not met yet.
#[derive(Default)]
struct Open {
    transactions: BTreeMap<u64, Vec<(u64, Remap)>>,
    committed: u64,
}

impl Open {
    async fn apply(&mut self, ftl: &dyn Replaying, records: Vec<(u64, Record)>) -> Result<(), ReplayEnded> {
        for (timestamp, record) in records {
            match record {
                Record::UserWrite(remap) if remap.transaction != 0 => {
                    ftl.reach(&remap);
                    self.transactions.entry(remap.transaction).or_default().push((timestamp, remap));
                }
                Record::Commit { transaction, records } => {
                    let open = self.transactions.remove(&transaction);
                    let whole = open.filter(|open| open.len() as u64 == records);
                    self.committed += u64::from(whole.is_some());
                    for (timestamp, remap) in whole.unwrap_or_default() {
                        ftl.redo(timestamp, Record::UserWrite(remap)).await?;
                    }
                }
                other => ftl.redo(timestamp, other).await?,
            }
        }
        Ok(())
    }
}

/// Writes the tables before the head of the log is taken, and what has changed meanwhile after it. The log behind the
/// head is shorter, and so is a replay. Fragments that change meanwhile are written twice.
#[derive(Default, Debug)]
pub struct FlushedFirst(KeyedEntries);

impl Checkpoint for FlushedFirst {
    fn set(&mut self, key: Key, value: Vec<u8>) {
        self.0.set(key, value);
    }

    fn get(&self, key: Key) -> Option<&[u8]> {
        self.0.get(key)
    }

    fn encode(&self) -> Vec<u8> {
        self.0.encode()
    }

    fn recover(&mut self, bytes: &[u8]) -> bool {
        self.0.recover(bytes)
    }

    fn checkpoint<'a>(&'a mut self, ftl: &'a dyn Checkpointing) -> Process<'a> {
        Box::pin(async move {
            match ftl.write_tables().await? {
                Progress::Done => fuzzy_checkpoint(&mut self.0, ftl).await,
                Progress::Again | Progress::Over => Ok(()),
            }
        })
    }

    fn replay<'a>(&'a self, ftl: &'a dyn Replaying) -> Process<'a, Replayed, ReplayEnded> {
        Box::pin(replay_in_order(ftl))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::task::{Context, Poll, Waker};

    use super::*;

    /// A drive that notes the steps of a checkpoint, whose log breaks a number of times.
    #[derive(Default)]
    struct Steps {
        taken: RefCell<String>,
        breaks: Cell<u32>,
        is_over: bool,
    }

    impl Steps {
        fn step(&self, name: char, ends: Progress) -> Process<'_, Progress> {
            self.taken.borrow_mut().push(name);
            Box::pin(async move { Ok(ends) })
        }
    }

    impl Checkpointing for Steps {
        fn begin(&self) -> Process<'_> {
            self.taken.borrow_mut().push('h');
            Box::pin(async { Ok(()) })
        }

        fn write_tables(&self) -> Process<'_, Progress> {
            self.step('t', if self.is_over { Progress::Over } else { Progress::Done })
        }

        fn put_entries(&self, into: &mut dyn Checkpoint) {
            into.set(Key(1), vec![7]);
        }

        fn force_log(&self) -> Process<'_, Progress> {
            let left = self.breaks.get();
            self.breaks.set(left.saturating_sub(1));
            self.step('l', if left > 0 { Progress::Again } else { Progress::Done })
        }

        fn persist(&self, bytes: Vec<u8>) -> Process<'_, Progress> {
            assert!(!bytes.is_empty());
            self.step('c', Progress::Done)
        }

        fn end(&self) {
            self.taken.borrow_mut().push('e');
        }
    }

    fn steps(mut component: impl Checkpoint, ftl: &Steps) -> String {
        let mut taken = component.checkpoint(ftl);
        assert_eq!(taken.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(Ok(())));
        drop(taken);
        ftl.taken.take()
    }

    #[test]
    fn a_checkpoint_is_fenced_and_begins_again_when_the_chain_breaks() {
        let broken = || Steps { breaks: Cell::new(1), ..Steps::default() };
        assert_eq!(steps(KeyedEntries::default(), &Steps::default()), "htlce");
        assert_eq!(steps(KeyedEntries::default(), &broken()), "htlhtlce");
        assert_eq!(steps(FlushedFirst::default(), &Steps::default()), "thtlce");
        assert_eq!(steps(FlushedFirst::default(), &broken()), "thtlhtlce");
        let over = || Steps { is_over: true, ..Steps::default() };
        assert_eq!(steps(KeyedEntries::default(), &over()), "ht");
        assert_eq!(steps(FlushedFirst::default(), &over()), "t");
    }
}
