//! Reads of items: in memory, or at drives without a token.
//!
//! With copies, the replica without a token is read. With parity, an item is on one drive; while that drive has a token or is lost, the same
//! place of all other drives is read, and their XOR is the item.

use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::task::Poll;

use nandscape_sim::Span;
use nandscape_wire_nvme::vendor::Attributes;

use crate::drives::{Member, least_busy};
use crate::engine::Engine;
use crate::error::EngineError;
use crate::item::{Access, Item};
use crate::log::Spot;
use crate::placement::xor;
use crate::record::{Kind, Record};
use crate::small::{BUCKET, Found, Source};

/// How often an item is looked for that moves while it is read.
pub(crate) const TRIES: usize = 8;

/// What the reads of an item have met so far.
#[derive(Default)]
pub(crate) struct Tries {
    /// The drive that was read last; with parity, one of those that were.
    read: Option<usize>,
    /// A drive that has not returned it.
    bad: Option<usize>,
    /// Where it was looked for last.
    pub(crate) spot: Option<Spot>,
    /// The last drive may have it, and does not answer.
    pub(crate) is_away: bool,
}

/// An item whose value is in memory, or where its record is.
type Begun = (Option<Item>, Option<Spot>);

/// Why a key has no item.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Miss {
    /// There is none.
    Absent,
    /// It has expired, and was not looked for since.
    Expired,
}

impl Engine {
    /// The item of a key.
    pub async fn get(&self, key: &[u8]) -> Option<Item> {
        self.get_as(key, Attributes::default()).await
    }

    /// The same for a tenant and with a class, which reads at drives carry. Writes are the engine's own and carry neither: a chunk has the
    /// changes of all tenants.
    pub async fn get_as(&self, key: &[u8], attributes: Attributes) -> Option<Item> {
        self.get_with(key, attributes, Access::Counts).await
    }

    /// The same; `access` is whether the item counts as asked for.
    pub async fn get_with(&self, key: &[u8], attributes: Attributes, access: Access) -> Option<Item> {
        self.get_or_miss(key, attributes, access).await.ok()
    }

    /// The item of a key, or why there is none.
    ///
    /// # Errors
    /// When there is none.
    pub async fn get_or_miss(&self, key: &[u8], attributes: Attributes, access: Access) -> Result<Item, Miss> {
        self.host.operation().await;
        self.state.borrow_mut().stats.gets += 1;
        let mut tries = Tries::default();
        for _ in 0..TRIES {
            let Some((found, spot)) = self.begin(key, access)? else {
                match self.load(key, (attributes, access, false)).await {
                    Found::Item(item, source) => {
                        self.host.bytes(BUCKET).await;
                        let stats = &mut self.state.borrow_mut().stats;
                        match source {
                            Source::Memory => stats.memory_hits += 1,
                            Source::Drive => stats.drive_hits += 1,
                        }
                        return Ok(item);
                    }
                    Found::Expired => return Err(Miss::Expired),
                    // It was put meanwhile.
                    Found::Nothing if self.state.borrow().index.contains_key(key) => continue,
                    Found::Nothing => return Err(Miss::Absent),
                }
            };
            if let Some(item) = found {
                self.state.borrow_mut().stats.memory_hits += 1;
                self.host.bytes(item.value.len()).await;
                return Ok(item);
            }
            let spot = spot.ok_or(Miss::Absent)?;
            if let Some(item) = self.read((key, attributes, access), spot, &mut tries).await {
                self.host.bytes(item.value.len()).await;
                self.state.borrow_mut().stats.drive_hits += 1;
                return Ok(item);
            }
        }
        let mut state = self.state.borrow_mut();
        state.stats.unreadable += 1;
        if !tries.is_away {
            // Its bucket may get the key: then drives are not to return this one.
            match state.small.is_used() {
                true => drop(state.delete(key, self.host.sim().now())),
                false => drop(state.remove(key)),
            }
            let pair = state.pair(key);
            tries.spot.into_iter().for_each(|spot| self.unreadable(pair, spot, 1));
        }
        Err(Miss::Absent)
    }

    /// The item of a key if its value is in memory, or where it is; `None` if the index has none.
    fn begin(&self, key: &[u8], access: Access) -> Result<Option<Begun>, Miss> {
        let now_s = self.now_s();
        let mut state = self.state.borrow_mut();
        let expired = state.stats.expired;
        let Some(entry) = state.look(key, now_s) else {
            return if state.stats.expired > expired { Err(Miss::Expired) } else { Ok(None) };
        };
        let item = entry.value.clone().map(|value| entry.item(value));
        if item.is_some() {
            entry.count(access, now_s);
        }
        Ok(Some((item, entry.spot)))
    }

    /// Reads an item from drives without a token; `None` if it is not there any more, or they have not returned it: others are to be asked,
    /// once they have no token.
    async fn read(
        &self,
        (key, attributes, access): (&[u8], Attributes, Access),
        spot: Spot,
        tries: &mut Tries,
    ) -> Option<Item> {
        let pair = self.state.borrow().pair(key);
        let bytes = self.fetch(pair, spot, attributes, tries).await?;
        let now_s = self.now_s();
        let record = Record::get(&bytes).filter(|record| record.key == key && record.kind == Kind::Put);
        let Some(record) = record else {
            let is_there = self.state.borrow_mut().look(key, now_s).is_some_and(|entry| entry.spot == Some(spot));
            if is_there {
                self.is_wrong(pair, tries).await;
            }
            return None;
        };
        let value: Rc<[u8]> = record.value.into();
        let version = record.version;
        let mut state = self.state.borrow_mut();
        if !state.keep(key, version, &value) {
            return None;
        }
        let entry = state.look(key, now_s)?;
        let item = entry.item(value);
        entry.count(access, now_s);
        Some(item)
    }

    /// A drive has returned something else: others are to be asked.
    pub(crate) async fn is_wrong(&self, pair: usize, tries: &mut Tries) {
        (tries.bad, tries.is_away) = (tries.read, false);
        self.others_have_no_token(pair, tries.bad).await;
    }

    /// The bytes at a place from drives without a token; `None` if those that were asked have not returned them.
    pub(crate) async fn fetch(
        &self,
        pair: usize,
        spot: Spot,
        attributes: Attributes,
        tries: &mut Tries,
    ) -> Option<Vec<u8>> {
        tries.spot = Some(spot);
        match self.layout.has_parity() {
            true => self.fetch_or_reconstruct(pair, spot, attributes, tries).await,
            false => self.fetch_copy(pair, spot, attributes, tries).await,
        }
    }

    /// The bytes of an item from a replica.
    async fn fetch_copy(&self, pair: usize, spot: Spot, attributes: Attributes, tries: &mut Tries) -> Option<Vec<u8>> {
        let drive = self.replica(pair, tries.bad);
        tries.read = Some(drive);
        let (member, apart) = (self.member(drive), self.keeps_apart(pair));
        // A drive without power is waited for only if the other one has not answered either.
        let must = tries.bad.is_some() || self.others(pair, drive).next().is_none();
        let read = match must {
            true => Some(member.read(self.place(spot), apart, attributes, member.patience).await),
            false => self.read_in_time(&member, self.place(spot), apart, attributes).await,
        };
        if let Some(Ok(bytes)) = read {
            return Some(bytes);
        }
        (tries.bad, tries.is_away) = (Some(drive), is_away(&read));
        self.others_have_no_token(pair, tries.bad).await;
        None
    }

    /// The bytes of an item from the drive that has it, or from all others.
    async fn fetch_or_reconstruct(
        &self,
        pair: usize,
        spot: Spot,
        attributes: Attributes,
        tries: &mut Tries,
    ) -> Option<Vec<u8>> {
        let apart = self.keeps_apart(pair);
        let home = self.group(pair)[spot.drive as usize].clone();
        let has_failed = tries.bad == Some(home.number());
        let is_other_silent = || self.others(pair, home.number()).any(|other| other.pace.is_silent());
        let is_busy = apart && home.has_token() || home.pace.is_silent();
        let avoids_home = tries.bad.is_none() && is_busy && !is_other_silent();
        let patience = if tries.bad.is_some() { home.patience } else { Span::ZERO };
        let read = if home.is_incomplete() || has_failed || avoids_home {
            tries.read = self.others(pair, home.number()).next().map(|other| other.number());
            // Only home could return it instead.
            let hedges = avoids_home && !home.is_incomplete();
            self.reconstruct(pair, spot, (apart, hedges), (attributes, patience)).await
        } else {
            tries.read = Some(home.number());
            home.token_left_if(apart).await;
            match tries.bad {
                Some(_) => Some(home.read(self.place(spot), apart, attributes, patience).await),
                None => self.read_in_time(&home, self.place(spot), apart, attributes).await,
            }
        };
        if let Some(Ok(bytes)) = read {
            return Some(bytes);
        }
        (tries.bad, tries.is_away) = (tries.read, is_away(&read));
        None
    }

    /// Makes the bytes of an item from all drives but the one that has it. `None` if one of them is silent and reads are hedged.
    async fn reconstruct(
        &self,
        pair: usize,
        spot: Spot,
        (apart, hedges): (bool, bool),
        (attributes, patience): (Attributes, Span),
    ) -> Option<Result<Vec<u8>, EngineError>> {
        let group = self.group(pair);
        let others = group.iter().enumerate().filter(|(drive, _)| *drive != spot.drive as usize);
        let others: Vec<&Rc<Member>> = others.map(|(_, one)| one).collect();
        while let Some(busy) = others.iter().find(|other| apart && other.has_token()) {
            busy.token_left_if(true).await;
        }
        // All begin at once: until they have ended, none of these drives is written.
        let reads = others.iter().map(async |other| match hedges {
            true => self.read_in_time(other, self.place(spot), apart, attributes).await,
            false => Some(other.read(self.place(spot), apart, attributes, patience).await),
        });
        let mut bytes = vec![0; spot.len() as usize];
        for piece in all(reads).await {
            match piece? {
                Ok(piece) => xor(&mut bytes, &piece),
                Err(error) => return Some(Err(error)),
            }
        }
        self.state.borrow_mut().stats.reconstructed += 1;
        self.host.bytes(bytes.len() * others.len()).await;
        Some(Ok(bytes))
    }

    /// Where the bytes of an item are on a drive.
    pub(crate) fn place(&self, spot: Spot) -> (u64, usize) {
        (self.start_of(spot.slot) + u64::from(spot.offset), spot.len() as usize)
    }

    /// The other drives of a group that are in use.
    fn others(&self, pair: usize, drive: usize) -> impl Iterator<Item = Rc<Member>> + use<> {
        let group = self.group(pair);
        let all = (0..group.len()).map(move |place| group[place].clone());
        all.filter(move |other| other.number() != drive && !other.is_incomplete())
    }

    /// Waits until each of the others has had no token, where copies are read apart.
    async fn others_have_no_token(&self, pair: usize, bad: Option<usize>) {
        let apart = self.keeps_apart(pair) && !self.layout.has_parity();
        for other in bad.into_iter().flat_map(|bad| self.others(pair, bad)) {
            other.token_left_if(apart).await;
        }
    }

    /// The drive to read: one without a token if the policy keeps reads apart, else that with fewer reads under way.
    fn replica(&self, pair: usize, bad: Option<usize>) -> usize {
        let apart = self.keeps_apart(pair);
        self.turn.set(self.turn.get() + 1);
        let group = self.group(pair);
        let turn = (self.turn.get() % self.replicas() as u64) as usize;
        least_busy(&group, apart, bad, turn).map_or(pair * self.replicas(), |one| one.number())
    }
}

/// Whether a drive may have what it has not returned.
fn is_away(read: &Option<Result<Vec<u8>, EngineError>>) -> bool {
    !matches!(read, Some(Err(error)) if error.is_damage())
}

/// Waits for all of some work, which begins at once.
pub(crate) async fn all<W: Future>(works: impl Iterator<Item = W>) -> Vec<W::Output> {
    let mut works: Vec<_> = works.map(|work| (Box::pin(work), None)).collect();
    poll_fn(|context| {
        let mut is_done = true;
        for (work, output) in works.iter_mut().filter(|(_, output)| output.is_none()) {
            match work.as_mut().poll(context) {
                Poll::Ready(done) => *output = Some(done),
                Poll::Pending => is_done = false,
            }
        }
        if is_done { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    works.into_iter().filter_map(|(_, output)| output).collect()
}
