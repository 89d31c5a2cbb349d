//! What keeps clients from renewing an item at the same time (memcached's doc/protocol.txt: N and R of mg, I of ms and md, x of md).
//!
//! Of the clients that find no item, one that ends soon or a stale one, the first wins: it is to renew the item. The others learn that a
//! client does, and may serve what is there. A mark of a win is in memory, and on drives if the item is written afterwards.

use std::rc::Rc;

use nandscape_wire_nvme::vendor::Attributes;

use super::changes::{Mode, Stored};
use super::meta::Meta;
use super::{Server, failed};
use crate::item::{Access, Expect, Item, Marks, New, Refused};

/// How often an item is looked for that is there and cannot be read.
const TRIES: usize = 8;

/// An item for a client that may have to renew it.
pub(super) struct Leased {
    pub(super) item: Item,
    /// Bytes of its value, which is empty here unless it is wanted.
    pub(super) len: usize,
    /// Whether it was made, because there was none.
    pub(super) is_new: bool,
    /// Whether this client is to renew it.
    has_won: bool,
}

impl Leased {
    /// What the client is to know of its renewal, as flags of an answer.
    pub(super) fn news(&self) -> &'static str {
        // An earlier winner was there before this client.
        let is_taken = self.item.marks.is_won && !self.has_won;
        match (is_taken, self.item.marks.is_stale, self.has_won) {
            (true, true, _) => " Z X",
            (true, false, _) => " Z",
            (_, true, true) => " X W",
            (_, true, false) => " X",
            (_, false, true) => " W",
            (_, false, false) => "",
        }
    }
}

impl Server {
    /// The item that a `mg` finds or makes.
    pub(super) async fn lease(&self, meta: &Meta<'_>) -> Result<Option<Leased>, String> {
        let (made, renewed) = (meta.number::<i64>(b'N')?, meta.number::<i64>(b'R')?);
        let access = if meta.has(b'u') { Access::Ignored } else { Access::Counts };
        for _ in 0..TRIES {
            let found = match meta.has(b'v') {
                true => self.engine.get_with(&meta.key, Attributes::default(), access).await.map(|item| {
                    let len = item.value.len();
                    (item, len)
                }),
                false => self.engine.look_as(&meta.key, access).await,
            };
            if let Some((mut item, len)) = found {
                let ends_soon = |renewed| item.expiry != 0 && item.expiry < self.expiry(renewed);
                let is_due = item.marks.is_stale || renewed.is_some_and(ends_soon);
                let has_won = is_due && !item.marks.is_won && self.engine.win(&meta.key, item.version).await;
                item.marks.is_won |= is_due;
                return Ok(Some(Leased { item, len, is_new: false, has_won }));
            }
            let Some(time) = made else { return Ok(None) };
            let new = New { flags: 0, expiry: self.expiry(time), value: Rc::from([]) };
            let (expiry, marks) = (new.expiry, Marks { is_stale: false, is_won: true });
            match self.engine.put_marked(&meta.key, Expect::Absent, new, marks).await {
                Ok(version) => {
                    let (value, accessed) = (Rc::from([]), self.engine.now_s());
                    let item = Item { flags: 0, expiry, version, value, accessed, is_fetched: false, marks };
                    return Ok(Some(Leased { item, len: 0, is_new: true, has_won: true }));
                }
                // Another client has made it meanwhile.
                Err(Refused::Exists) => {}
                Err(refused) => return Err(failed(&refused)),
            }
        }
        Ok(None)
    }

    /// Stores a value under a version. One that is older than that of the item is stored as stale: it ends when the item would have.
    pub(super) async fn store_stale(&self, key: &[u8], version: u64, new: New) -> Stored {
        loop {
            let Some((item, _)) = self.engine.look(key).await else { return Stored::Refused(Refused::NotFound) };
            if version >= item.version {
                return self.store(key, Mode::Set, Some(version), new).await;
            }
            self.count(|counters| counters.sets += 1);
            self.prefixes.borrow_mut().set(key);
            let stale = New { expiry: item.expiry, ..new.clone() };
            let marks = Marks { is_stale: true, ..item.marks };
            let put = self.engine.put_marked(key, Expect::Version(item.version), stale, marks).await;
            self.count_stored(&put);
            match put {
                Ok(version) => return Stored::Yes(version),
                Err(Refused::Exists | Refused::NotFound) => {}
                Err(refused) => return Stored::Refused(refused),
            }
        }
    }

    /// Marks an item as stale (I), without its value if that is wanted (x). It gets a new version, and a time if one is given with I.
    pub(super) async fn invalidate(
        &self,
        meta: &Meta<'_>,
        version: Option<u64>,
    ) -> Result<Result<(), Refused>, String> {
        let time = meta.number::<i64>(b'T')?.filter(|_| meta.has(b'I'));
        loop {
            let Some(item) = self.engine.get_with(&meta.key, Attributes::default(), Access::Ignored).await else {
                return Ok(Err(Refused::NotFound));
            };
            if version.is_some_and(|version| version != item.version) {
                return Ok(Err(Refused::Exists));
            }
            let expiry = time.map_or(item.expiry, |time| self.expiry(time));
            let new = match meta.has(b'x') {
                true => New { flags: 0, expiry, value: Rc::from([]) },
                false => New { flags: item.flags, expiry, value: item.value },
            };
            let marks = match meta.has(b'I') {
                true => Marks { is_stale: true, is_won: false },
                false => item.marks,
            };
            match self.engine.put_marked(&meta.key, Expect::Version(item.version), new, marks).await {
                Err(Refused::Exists | Refused::NotFound) => {}
                ended => return Ok(ended.map(drop)),
            }
        }
    }
}
