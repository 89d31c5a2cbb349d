//! The engine, as its users see it.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use nandscape_apps_store::Host;
use nandscape_sim::Span;
use nandscape_sim::signal::Signal;
use nandscape_wire_nvme::vendor::Attributes;

use crate::config::{Ack, Config, item_limit};
use crate::drives::Member;
use crate::error::{EngineError, Event};
use crate::item::{Access, Expect, Item, MOST_KEY, Marks, New, Refused};
use crate::lock::Lock;
use crate::placement::Layout;
use crate::policy::{Policy, Windows};
use crate::rebuild::Rebuild;
use crate::record::record_bytes;
use crate::replace::Replacement;
use crate::shape::Super;
use crate::slots::Slots;
use crate::small::Found;
use crate::state::State;
use crate::stats::Stats;

/// Between two steps in which memory is freed, others have their turn. It is longer than a step takes by far: a loop in wall time runs all
/// that is due by then before it looks at its clients, and would not see them if each step took longer than the time to the next.
const BETWEEN_STEPS: Span = Span::from_ms(2);

/// See the file.
pub struct Engine {
    pub(crate) host: Host,
    pub(crate) config: Config,
    pub(crate) policy: Box<dyn Policy>,
    pub(crate) layout: Layout,
    /// Its drives. One that was lost may be replaced between two epochs.
    pub(crate) members: RefCell<Rc<[Rc<Member>]>>,
    pub(crate) state: RefCell<State>,
    pub(crate) segment: u64,
    pub(crate) slots: Slots,
    pub(crate) id: u64,
    /// The store as its drives record it.
    pub(crate) shape: Cell<Super>,
    /// Records are written one after the other.
    pub(crate) recording: Lock,
    /// Drives that are to take the place of lost ones.
    pub(crate) replacements: RefCell<Vec<Rc<Replacement>>>,
    /// Drives whose places others are about to take, a bit each.
    pub(crate) replacing: Cell<u64>,
    /// Drives that are rebuilt.
    pub(crate) rebuilds: RefCell<BTreeMap<usize, Rebuild>>,
    /// Bytes that replaced drives have read and written.
    pub(crate) past_bytes: Cell<(u64, u64)>,
    pub(crate) events: RefCell<Vec<Event>>,
    /// Segments of pairs with items that no drive has returned, of which the operator has heard.
    pub(crate) reported: RefCell<BTreeSet<(u64, usize)>>,
    /// Bytes of a block of the drives' mapping, to which chunks are aligned.
    pub(crate) block: usize,
    /// Something that others wait for has happened.
    pub(crate) changed: Signal,
    /// Changes that wait until drives have them, or for room.
    pub(crate) waiters: Cell<u64>,
    pub(crate) failed: RefCell<Option<EngineError>>,
    pub(crate) is_closing: Cell<bool>,
    pub(crate) is_closed: Cell<bool>,
    pub(crate) turn: Cell<u64>,
    /// Whether a task frees memory.
    pub(crate) is_freeing: Cell<bool>,
}

impl Engine {
    /// The most bytes of key and value of an item.
    pub fn item_limit(&self) -> usize {
        item_limit(self.segment)
    }

    /// The policy's name.
    pub fn policy_name(&self) -> &'static str {
        self.policy.name()
    }

    /// Drives.
    pub fn drives(&self) -> usize {
        self.members.borrow().len()
    }

    /// Bytes of a segment.
    pub fn segment_bytes(&self) -> u64 {
        self.segment
    }

    /// The host that it runs on.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Its settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Puts what is under way at the drives into the event trace, as if it ended now.
    pub fn trace_open(&self) {
        self.members().iter().for_each(|member| member.trace_open());
    }

    /// Seconds since 1970.
    pub fn now_s(&self) -> u64 {
        let Config { start_s, start_ns, .. } = self.config;
        start_s + (u64::from(start_ns) + self.host.sim().now().ns()) / 1_000_000_000
    }

    /// Why it does not serve any more, if so.
    pub fn failure(&self) -> Option<EngineError> {
        self.failed.borrow().clone()
    }

    /// Counters.
    pub fn stats(&self) -> Stats {
        let (state, members) = (self.state.borrow(), self.members());
        let sum = |of: fn(&Member) -> u64| members.iter().map(|member| of(member)).sum::<u64>();
        let (past_read, past_written) = self.past_bytes.get();
        let (rebuild_bytes, rebuild_bytes_left) = self.rebuild_bytes();
        Stats {
            items: state.items().0,
            small_items: state.items().1,
            buckets: state.small.buckets(),
            live_bytes: state.logs.iter().map(|log| log.live).sum(),
            log_bytes: state.logs.iter().map(|log| log.bytes(log.slots.into(), self.segment)).sum(),
            index_bytes: state.index_bytes(),
            memory_bytes: state.memory_bytes(),
            waiting_bytes: state.waiting_bytes(),
            read_bytes: past_read + sum(|member| member.disk().map_or(0, |disk| disk.read_bytes.get())),
            written_bytes: past_written + sum(|member| member.disk().map_or(0, |disk| disk.written_bytes.get())),
            lost_drives: sum(|member| member.is_incomplete().into()),
            away_drives: sum(|member| (!member.is_gone() && member.reach.is_away()).into()),
            rebuilt_drives: self.rebuilds.borrow().len() as u64,
            rebuild_bytes,
            rebuild_bytes_left,
            reads_at_tokens: sum(Member::reads_at_token),
            window_lapses: sum(|member| member.windows().map_or(0, Windows::lapses)),
            ..state.stats
        }
    }

    /// What drives have a token now.
    pub fn tokens(&self) -> Vec<bool> {
        self.members().iter().map(|member| member.has_token()).collect()
    }

    /// What is known of the item of a key without its value, which is empty here; and the bytes of the value. It does not count as an access.
    pub async fn look(&self, key: &[u8]) -> Option<(Item, usize)> {
        self.look_as(key, Access::Ignored).await
    }

    /// The same, before this access.
    pub async fn look_as(&self, key: &[u8], access: Access) -> Option<(Item, usize)> {
        if let Found::Item(item, _) = self.load(key, (Attributes::default(), access, true)).await {
            // The load has counted the access.
            let len = item.value.len();
            return Some((Item { value: Rc::from([]), ..item }, len));
        }
        let now_s = self.now_s();
        let mut state = self.state.borrow_mut();
        let entry = state.look(key, now_s)?;
        let found = (entry.item(Rc::from([])), entry.len as usize);
        entry.count(access, now_s);
        Some(found)
    }

    /// Marks an item of a version as won, unless it has that mark. Whether it is this caller who has won.
    pub async fn win(&self, key: &[u8], version: u64) -> bool {
        self.recall(key).await;
        let (now, now_s) = (self.host.sim().now(), self.now_s());
        let mut state = self.state.borrow_mut();
        let Some(entry) = state.look(key, now_s).filter(|entry| entry.version == version) else { return false };
        let has_won = !std::mem::replace(&mut entry.marks.is_won, true);
        if entry.is_small && has_won {
            // Its copy in memory may leave.
            state.touched(key, now);
            drop(state);
            self.changed.notify();
        }
        has_won
    }

    /// Whether the value of a key's item is in memory.
    pub fn is_in_memory(&self, key: &[u8]) -> bool {
        self.state.borrow().index.get(key).is_some_and(|entry| entry.value.is_some())
    }

    /// Where a slot begins on a drive, in bytes.
    pub(crate) fn start_of(&self, slot: u32) -> u64 {
        self.slots.start(slot)
    }

    fn check(&self, key: &[u8], expect: Expect) -> Result<(), Refused> {
        let now_s = self.now_s();
        let version = self.state.borrow_mut().look(key, now_s).map(|entry| entry.version);
        match (expect, version) {
            (Expect::Absent, Some(_)) => Err(Refused::Exists),
            (Expect::Present | Expect::Version(_), None) => Err(Refused::NotFound),
            (Expect::Version(wanted), Some(version)) if wanted != version => Err(Refused::Exists),
            _ => Ok(()),
        }
    }

    fn check_serves(&self) -> Result<(), Refused> {
        self.failure().map_or(Ok(()), |error| Err(Refused::Failed(error)))
    }

    /// Puts an item; its version.
    ///
    /// # Errors
    /// When the key is not as expected, the item is too large, or the engine does not serve any more.
    pub async fn put(&self, key: &[u8], expect: Expect, new: New) -> Result<u64, Refused> {
        self.put_marked(key, expect, new, Marks::default()).await
    }

    /// The same with marks.
    ///
    /// # Errors
    /// As [`Engine::put`].
    pub async fn put_marked(&self, key: &[u8], expect: Expect, new: New, marks: Marks) -> Result<u64, Refused> {
        self.host.operation().await;
        let bytes = record_bytes(key.len(), new.value.len());
        if key.len() > MOST_KEY || key.len() + new.value.len() > self.item_limit() {
            return Err(Refused::TooLarge);
        }
        self.host.bytes(bytes).await;
        self.wait_for_room().await?;
        if expect != Expect::Any {
            self.recall(key).await;
        }
        self.check(key, expect)?;
        let now = (self.host.sim().now(), self.now_s());
        let (number, version, pair) = {
            let mut state = self.state.borrow_mut();
            let version = state.version;
            let number = state.put(key.into(), new, marks, now);
            (number, version, state.pair(key))
        };
        self.changed.notify();
        self.acknowledge(pair, number).await?;
        Ok(version)
    }

    /// Has an item gone.
    ///
    /// # Errors
    /// When the key is not as expected, or the engine does not serve any more.
    pub async fn delete(&self, key: &[u8], expect: Expect) -> Result<(), Refused> {
        self.host.operation().await;
        self.wait_for_room().await?;
        self.recall(key).await;
        let expect = if expect == Expect::Any { Expect::Present } else { expect };
        let checked = self.check(key, expect);
        let pair = self.state.borrow().pair(key);
        {
            // An item that was evicted is still on the drives until they know of it.
            let state = self.state.borrow();
            let is_certain = state.logs[pair].is_certain();
            if matches!(checked, Err(Refused::Exists)) || checked.is_err() && is_certain {
                return checked;
            }
        }
        let number = self.state.borrow_mut().delete(key, self.host.sim().now());
        self.changed.notify();
        self.acknowledge(pair, number).await?;
        checked
    }

    /// Changes when an item expires, in seconds since 1970; 0 is never. Whether there is one.
    ///
    /// # Errors
    /// When the engine does not serve any more.
    pub async fn touch(&self, key: &[u8], expiry: u64) -> Result<bool, Refused> {
        self.host.operation().await;
        self.wait_for_room().await?;
        self.recall(key).await;
        let (now, now_s) = (self.host.sim().now(), self.now_s());
        let (pair, number) = {
            let mut state = self.state.borrow_mut();
            let pair = state.pair(key);
            let Some(entry) = state.look(key, now_s) else { return Ok(false) };
            entry.expiry = expiry;
            (entry.accessed, entry.is_recent, entry.is_hot) = (now_s, true, true);
            (pair, state.touched(key, now))
        };
        self.changed.notify();
        self.acknowledge(pair, number).await?;
        Ok(true)
    }

    /// Has all items gone. Their memory is freed meanwhile, step by step: however many they were, others wait for a step at most.
    ///
    /// # Errors
    /// When the engine does not serve any more.
    pub async fn clear(self: &Rc<Self>) -> Result<(), Refused> {
        self.check_serves()?;
        self.state.borrow_mut().clear(self.host.sim().now());
        self.changed.notify();
        if !self.is_freeing.replace(true) {
            self.host.sim().spawn(self.clone().free_void());
        }
        match self.config.ack {
            Ack::Cache => Ok(()),
            _ => self.flush().await.map_err(Refused::Failed),
        }
    }

    /// Frees the memory of items that removals of all have left.
    async fn free_void(self: Rc<Self>) {
        while self.state.borrow_mut().void.free_some() {
            self.host.sim().sleep(BETWEEN_STEPS).await;
        }
        self.is_freeing.set(false);
    }

    /// Waits while as many changes wait for their drives as may.
    async fn wait_for_room(&self) -> Result<(), Refused> {
        self.wait_for_room_unless(|| false).await
    }

    /// The same, until no caller waits for the change any longer.
    pub(crate) async fn wait_for_room_unless(&self, is_void: impl Fn() -> bool) -> Result<(), Refused> {
        self.check_serves()?;
        if !self.state.borrow().is_crowded(self.config.dirty) {
            return Ok(());
        }
        self.state.borrow_mut().stats.throttled += 1;
        self.waiters.set(self.waiters.get() + 1);
        while self.state.borrow().is_crowded(self.config.dirty) && self.failure().is_none() && !is_void() {
            self.changed.changed().await;
        }
        self.waiters.set(self.waiters.get() - 1);
        self.check_serves()
    }

    /// Waits until a change counts as done.
    async fn acknowledge(&self, pair: usize, number: u64) -> Result<(), Refused> {
        let least = match self.config.ack {
            Ack::Cache => return Ok(()),
            Ack::One => self.layout.columns(),
            Ack::All => self.replicas(),
        };
        self.wait_for(pair, number, least).await.map_err(Refused::Failed)
    }

    /// Waits until `least` replicas have a change.
    async fn wait_for(&self, pair: usize, number: u64, least: usize) -> Result<(), EngineError> {
        let has = || self.state.borrow().logs[pair].has(least, number);
        self.waiters.set(self.waiters.get() + 1);
        self.changed.notify();
        while !has() && self.failure().is_none() {
            self.changed.changed().await;
        }
        self.waiters.set(self.waiters.get() - 1);
        self.failure().map_or(Ok(()), Err)
    }

    /// Waits until all replicas have all changes so far.
    ///
    /// # Errors
    /// When a drive failed.
    pub async fn flush(&self) -> Result<(), EngineError> {
        let numbers: Vec<u64> = self.state.borrow().logs.iter().map(|log| log.queued).collect();
        for (pair, number) in numbers.into_iter().enumerate() {
            self.wait_for(pair, number, self.replicas()).await?;
        }
        Ok(())
    }

    /// Flushes, and ends the engine's own work.
    ///
    /// # Errors
    /// When a drive failed.
    pub async fn close(&self) -> Result<(), EngineError> {
        let flushed = self.flush().await;
        self.is_closing.set(true);
        self.changed.notify();
        while !self.is_closed.get() {
            self.changed.changed().await;
        }
        flushed
    }
}
