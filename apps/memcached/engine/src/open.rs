//! Opening: an empty store on empty drives, or the store that the drives have.
//!
//! Each drive records the store, its own number, and which drives were lost when it was last recorded. A drive that is missing is done
//! without if its twin is there, or with parity all others; one that is empty, or was lost and has returned, is rebuilt from them while the
//! store is served.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_apps_store::Host;
use nandscape_sim::Span;
use nandscape_sim::signal::Signal;

use crate::config::Config;
use crate::drives::{Given, Member};
use crate::engine::Engine;
use crate::error::{EngineError, Event, OpenError};
use crate::lock::Lock;
use crate::log::Log;
use crate::membership::{Part, lost, shape};
use crate::placement::{Layout, Placement};
use crate::policy::{Need, Policy};
use crate::room::Room;
use crate::shape::{Known, MOST_DRIVES, Super};
use crate::small::{Small, buckets};
use crate::state::State;

/// More versions than changes can wait for their drives.
const VERSIONS_UNSEEN: u64 = 1 << 32;
/// The least alignment of chunks, in bytes.
pub(crate) const LEAST_BLOCK: usize = 4_096;

impl Engine {
    /// Opens the store of these drives, or makes one on empty ones, and begins to serve. `None` is a drive that is missing.
    ///
    /// # Errors
    /// When the drives are not those of one store and not empty, none of a pair has its items, or a drive fails.
    pub async fn open(
        host: &Host,
        drives: Vec<Option<Given>>,
        policy: Box<dyn Policy>,
        config: Config,
    ) -> Result<Rc<Engine>, OpenError> {
        let (count, placement) = (drives.len(), config.placement);
        if count > MOST_DRIVES || !placement.fits(count, policy.replicas()) {
            return Err(if placement == Placement::Parity {
                OpenError::Parity(count)
            } else {
                OpenError::Count(count)
            });
        }
        if placement == Placement::Parity && policy.needs() == Need::Zones {
            return Err(OpenError::ZonedParity);
        }
        let layout = Layout::new(placement, count, policy.replicas());
        let replicas = layout.width;
        let mut members = Vec::new();
        for (number, given) in drives.into_iter().enumerate() {
            let wanted = (policy.needs(), Span::from_ms(config.patience_ms));
            members.push(Rc::new(Member::new(host, number, given, wanted).await?));
        }
        let unit = |member: &Rc<Member>| {
            member.disk().map_or(0, |disk| disk.info.unit_bytes.max(disk.info.lba_bytes) as usize)
        };
        let block = members.iter().map(unit).max().unwrap_or(0).max(LEAST_BLOCK);
        let room = Room::of(&members)?;
        let (shape, parts, is_even) = shape(&members, (&room, block), &config, layout).await?;
        let slots = room.slots(shape.segment);
        let log = |_| Log::new(shape.slots as u32, layout).with_together(slots.together);
        let logs = (0..count / replicas).map(log).collect();
        let config = Config { dirty: config.dirty.min(config.memory / 2), ..config };
        let mut state = State::new(logs, config.memory, config.caches);
        state.small = Small::new(buckets_of(&shape, layout, count / replicas), config.small as usize);
        let engine = Rc::new(Engine {
            host: host.clone(),
            config,
            policy,
            layout,
            members: RefCell::new(members.into()),
            state: RefCell::new(state),
            segment: shape.segment,
            slots,
            id: shape.id,
            shape: Cell::new(shape),
            recording: Lock::new(host.sim()),
            replacements: RefCell::default(),
            replacing: Cell::new(0),
            rebuilds: RefCell::default(),
            past_bytes: Cell::new((0, 0)),
            events: RefCell::default(),
            reported: RefCell::default(),
            block,
            changed: Signal::new(host.sim()),
            waiters: Cell::new(0),
            failed: RefCell::new(None),
            is_closing: Cell::new(false),
            is_closed: Cell::new(false),
            turn: Cell::new(0),
            is_freeing: Cell::new(false),
        });
        let is_recorded = is_even && lost(&parts) == 0 && shape.lost == 0 && !engine.config.records_opening;
        if !is_recorded {
            engine.begin_round(lost(&parts));
            let rebuilt = (0..count).filter(|drive| parts[*drive] == Part::Rebuilt);
            rebuilt.for_each(|drive| engine.begin_life(drive, Known::default()));
            engine.record_all(&parts, Part::Rebuilt).await?;
        }
        for pair in 0..count / replicas {
            engine.recover(pair, &parts[pair * replicas..][..replicas]).await?;
        }
        engine.check_table()?;
        engine.lose_missing(&parts);
        if !is_recorded {
            engine.record_all(&parts, Part::Whole).await?;
        }
        engine.begin_rebuilds(&parts);
        {
            let mut state = engine.state.borrow_mut();
            // Versions that clients have seen and no drive has are not given again.
            let is_new = state.logs.iter().all(|log| log.next == 0) && state.version == 1;
            state.version += if is_new { 0 } else { VERSIONS_UNSEEN };
        }
        host.sim().spawn(engine.clone().run());
        Ok(engine)
    }

    /// The table of buckets may take half of the index's memory.
    fn check_table(&self) -> Result<(), OpenError> {
        let (table, Config { memory, dirty, .. }) = (self.state.borrow().small.table_bytes(), self.config);
        match table > (memory - dirty) / 2 {
            true => {
                // Valid whether `dirty` stays or grows with the memory.
                let least = (2 * u128::from(table) * u128::from(memory)).div_ceil(u128::from(memory - dirty).max(1));
                Err(OpenError::SmallMemory { table, memory, least: least as u64 })
            }
            false => Ok(()),
        }
    }

    /// Nothing waits for drives that are missing.
    fn lose_missing(&self, parts: &[Part]) {
        for drive in (0..parts.len()).filter(|drive| parts[*drive] == Part::Missing) {
            self.state.borrow_mut().lose(drive / self.replicas(), drive % self.replicas());
            self.event(Event::Missing { drive, twin: self.twin(drive) });
        }
    }

    /// Has some drives record which are missing or lack segments: those that lack some before anything of theirs changes, the others before
    /// anything is served.
    async fn record_all(&self, parts: &[Part], of: Part) -> Result<(), EngineError> {
        for drive in (0..parts.len()).filter(|drive| parts[*drive] == of) {
            self.record(&self.member(drive)).await?;
        }
        Ok(())
    }
}

/// The buckets of a store, as many in each log. They depend on the store alone: keys keep theirs.
fn buckets_of(shape: &Super, layout: Layout, logs: usize) -> u32 {
    let of_log = buckets(shape.slots * shape.segment * layout.columns() as u64);
    u32::try_from(of_log.saturating_mul(logs as u64)).unwrap_or(u32::MAX / logs as u32 * logs as u32)
}
