//! The flush workers: epochs in which drives with tokens are written.
//!
//! An epoch packs what waits, gives tokens, and ends when its drives have what was packed for them. So its length is that of its work, and
//! a change that waits for room waits for the epoch under way, and one more of at most the bytes that may wait; where drives take turns, one
//! more of each drive of a group. That holds as long as the changes that wait for room are not more than those that may wait for drives.

use std::cell::Cell;
use std::rc::Rc;

use nandscape_sim::Span;
use nandscape_sim::signal::Signal;

use crate::engine::Engine;
use crate::error::EngineError;
use crate::pack::Form;

/// How often it looks whether there is work, in an epoch that lasts for a time.
pub(crate) const LOOK: Span = Span::from_us(200);
/// How often it looks whether a change has waited long enough.
pub(crate) const TICK: Span = Span::from_ms(5);
/// A flush begins when this part of the dirty limit waits: 4 is a quarter.
pub(crate) const BATCH_SHARE: u64 = 4;

impl Engine {
    fn form(&self) -> Form {
        Form { segment: self.segment as usize, block: self.block, id: self.id, slots: self.slots }
    }

    /// Whether changes are to be packed.
    fn is_flush_due(&self) -> bool {
        let state = self.state.borrow();
        let least = (self.config.dirty / BATCH_SHARE).min(self.segment * self.layout.columns() as u64);
        let now = self.host.sim().now();
        let after = Span::from_ms(self.config.flush_after_ms);
        let is_late = |since: nandscape_sim::Time| now.since(since) >= after;
        let waits = state.logs.iter().any(|log| !log.changes.is_empty());
        let is_urgent = self.waiters.get() > 0 || self.is_closing.get() || state.bytes_to_pack() >= least;
        waits && (is_urgent || state.logs.iter().any(|log| log.oldest.is_some_and(is_late)))
    }

    fn has_work(&self) -> bool {
        let state = self.state.borrow();
        let of = |pair: usize| {
            let log = &state.logs[pair];
            log.has_chunks() || log.has_moves() || self.is_reclaim_due(&state, pair) || self.has_copies(pair)
        };
        (0..state.logs.len()).any(of)
    }

    fn has_changes(&self) -> bool {
        self.state.borrow().logs.iter().any(|log| !log.changes.is_empty())
    }

    /// Serves until the engine is closed or a drive fails.
    pub(crate) async fn run(self: Rc<Self>) {
        let (mut epoch, mut idle) = (0u64, 0);
        // Each drive has had its turn.
        let round = self.replicas().max(2);
        while self.failure().is_none() {
            // What changes from here on ends the wait below.
            let changed = self.changed.changed();
            let begun = match self.lose_ended().await {
                Ok(()) => {
                    self.begin_replacements();
                    self.join_rebuilt().await
                }
                failed => failed,
            };
            if let Err(error) = begun {
                self.failed.borrow_mut().get_or_insert(error);
                break;
            }
            if !(self.is_flush_due() || self.has_work()) || idle >= round {
                idle = 0;
                if self.is_closing.get() {
                    break;
                }
                if self.has_changes() || self.has_work() {
                    self.host.sim().sleep(TICK).await;
                } else {
                    changed.await;
                }
                continue;
            }
            epoch += 1;
            match self.clone().epoch(epoch).await {
                Ok(true) => idle = 0,
                Ok(false) => idle += 1,
                Err(error) => drop(self.failed.borrow_mut().get_or_insert(error)),
            }
            self.host.tick().await;
        }
        self.is_closed.set(true);
        self.changed.notify();
    }

    /// An epoch. Whether it did anything.
    async fn epoch(self: Rc<Self>, epoch: u64) -> Result<bool, EngineError> {
        // A drive without its twin is written in each epoch.
        let has_token = |pair: usize, replica: usize| {
            let member = self.group(pair)[replica].clone();
            let is_alone = self.policy.keeps_reads_apart() && !self.keeps_apart(pair);
            !member.is_gone() && (is_alone || self.policy.has_token(epoch, replica, self.replicas()))
        };
        let pairs = self.drives() / self.replicas();
        let packs = self.is_flush_due();
        let is_wanted = |pair: usize| {
            let state = self.state.borrow();
            let log = &state.logs[pair];
            let waits = |replica: usize| has_token(pair, replica) && !log.queues[replica].is_empty();
            let is_due = log.has_moves() || self.is_reclaim_due(&state, pair) || self.has_copies(pair);
            packs && !log.changes.is_empty() || is_due || (0..self.replicas()).any(waits)
        };
        let mut wanted: Vec<usize> = (0..pairs).filter(|pair| is_wanted(*pair)).collect();
        if wanted.is_empty() {
            return Ok(false);
        }
        if self.policy.lasts().is_some() {
            // Work for the others may come meanwhile.
            wanted = (0..pairs).collect();
        }
        let work = |pair: usize| {
            let drives: Vec<usize> = (0..self.replicas()).filter(|replica| has_token(pair, *replica)).collect();
            // One replica of all data is free for reads, or all but one drive of a row: the layout and the policy agree.
            assert!(
                !self.keeps_apart(pair) || drives.len() < 2,
                "{} drives of group {pair} have a token",
                drives.len()
            );
            self.clone().pair_epoch(pair, drives, packs)
        };
        let worked = self.side_by_side(wanted.into_iter().map(work)).await;
        self.state.borrow_mut().stats.epochs += u64::from(worked == Ok(true));
        self.changed.notify();
        worked
    }

    /// Runs works on a task each, and waits for all. Returns whether one of them did anything.
    ///
    /// # Errors
    /// The failure of the engine, which is the first of a work.
    async fn side_by_side<W>(self: &Rc<Self>, works: impl Iterator<Item = W>) -> Result<bool, EngineError>
    where
        W: Future<Output = Result<bool, EngineError>> + 'static,
    {
        let works: Vec<W> = works.collect();
        let (left, worked) = (Rc::new(Cell::new(works.len())), Rc::new(Cell::new(false)));
        let ended = Rc::new(Signal::new(self.host.sim()));
        for work in works {
            let (engine, left, worked, ended) = (self.clone(), left.clone(), worked.clone(), ended.clone());
            self.host.sim().spawn(async move {
                match work.await {
                    Ok(did) => worked.set(worked.get() || did),
                    Err(error) => drop(engine.failed.borrow_mut().get_or_insert(error)),
                }
                left.set(left.get() - 1);
                ended.notify();
            });
        }
        while left.get() > 0 {
            ended.changed().await;
        }
        self.failure().map_or(Ok(worked.get()), Err)
    }

    /// An epoch of a pair: the drives with tokens give up segments, and are written.
    async fn pair_epoch(self: Rc<Self>, pair: usize, drives: Vec<usize>, packs: bool) -> Result<bool, EngineError> {
        let apart = self.keeps_apart(pair);
        for replica in &drives {
            self.group(pair)[*replica].take_token(apart).await;
        }
        let until = self.policy.lasts().map(|span| self.host.sim().now() + span);
        let mut worked = self.write_pair(pair, &drives, packs).await;
        while let Some(until) = until.filter(|until| self.host.sim().now() < *until && worked.is_ok()) {
            let more = self.write_pair(pair, &drives, self.is_flush_due()).await;
            let is_idle = more == Ok(false);
            worked = worked.and_then(|worked| Ok(more? || worked));
            if is_idle {
                self.host.sim().sleep_until(until.min(self.host.sim().now() + LOOK)).await;
            }
        }
        drives.iter().for_each(|replica| self.group(pair)[*replica].leave_token());
        worked
    }

    async fn write_pair(self: &Rc<Self>, pair: usize, drives: &[usize], packs: bool) -> Result<bool, EngineError> {
        if drives.is_empty() {
            return Ok(false);
        }
        let reclaimed = match self.reclaim(pair, drives).await {
            Ok(reclaimed) => reclaimed,
            Err(error) => return self.lose(error).await.map(|()| true),
        };
        let has_moves = {
            let state = self.state.borrow();
            !state.logs[pair].moves.is_empty() || state.logs[pair].needs_tail()
        };
        if packs || has_moves {
            self.load_changed(pair, drives).await?;
            self.state.borrow_mut().pack(pair, self.form(), self.now_s());
        }
        let work = |replica: &usize| {
            let (engine, replica) = (self.clone(), *replica);
            async move {
                match engine.write_drive(pair, replica).await {
                    Err(error) => engine.lose(error).await.map(|()| true),
                    wrote => wrote,
                }
            }
        };
        let wrote = self.side_by_side(drives.iter().map(work)).await?;
        let copied = self.copy_next(pair).await?;
        Ok(wrote || reclaimed || copied)
    }

    /// Writes what waits for a drive now, in order, one chunk after the other: after a crash a drive has the first of them.
    async fn write_drive(&self, pair: usize, replica: usize) -> Result<bool, EngineError> {
        let member = &*self.group(pair)[replica].clone();
        let (count, bytes) = {
            let state = self.state.borrow();
            let queue = &state.logs[pair].queues[replica];
            (queue.len(), queue.iter().map(|chunk| chunk.image(replica).len() as u64).sum())
        };
        if count == 0 {
            return Ok(false);
        }
        let begun = self.host.sim().now();
        self.policy.before_writes(member, bytes).await?;
        let mut last = self.host.sim().now();
        if last > begun {
            member.show("collect", begun, bytes);
        }
        for _ in 0..count {
            let first = self.state.borrow().logs[pair].queues[replica].front().cloned();
            let Some(chunk) = first else { break };
            let image = chunk.image(replica);
            // Parity is made of all data of its row.
            let is_parity = self.layout.is_parity(chunk.segment, replica);
            self.host.bytes(if is_parity { chunk.bytes() as usize } else { image.len() }).await;
            if chunk.is_first {
                self.policy.before_segment(member, chunk.start, self.segment).await?;
            }
            member.write_by(chunk.start, image, self.policy.handle()).await?;
            self.state.borrow_mut().written(pair, replica);
            self.changed.notify();
            member.show("write", std::mem::replace(&mut last, self.host.sim().now()), image.len() as u64);
        }
        self.policy.after_writes(member).await?;
        if self.host.sim().now() > last {
            member.show("become ready", last, 0);
        }
        Ok(true)
    }
}
