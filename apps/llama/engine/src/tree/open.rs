//! Creating a tree in a store that has none, and opening an existing one.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use nandscape_apps_store::{Host, StoreError};
use nandscape_sim::signal::Signal;

use super::{BwTree, Config, Core, META, ROOT, TreeStats, capacity};
use crate::cache::Cache;
use crate::codec::decode;
use crate::error::{Error, OpenError};
use crate::page::{Page, number};
use crate::pages::PageStore;

/// The key of the number of the next page, in the page of figures.
pub(super) const NEXT: &[u8] = b"next page";
/// The smallest capacity of a flush in pages, with which any one change fits.
const LEAST: usize = 12;

impl<P: PageStore> BwTree<P> {
    /// Whether a store has a tree.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn is_in(store: &P) -> Result<bool, StoreError> {
        Ok(!store.read(&[META]).await?[0].is_empty())
    }

    /// Opens the tree in a store, or creates one in an empty store.
    ///
    /// # Errors
    /// Why not.
    pub async fn open(host: &Host, store: P, config: Config) -> Result<BwTree<P>, OpenError> {
        let shape = store.shape();
        if capacity(&shape, &config) < LEAST {
            return Err(OpenError::Size(format!(
                "a memory of {} bytes and flushes of {} pages of {} bytes; {LEAST} pages and four times as much memory are the \
                 least",
                config.memory, shape.flush_pieces, shape.page_bytes
            )));
        }
        let core = Rc::new(Core::new(host, store, config));
        let there = core.store.read(&[META]).await?;
        match &there[0][..] {
            [] => core.make(),
            pieces => {
                let meta = decode(META, pieces).map_err(|error| OpenError::Foreign(error.to_string()))?;
                let next = meta.get(NEXT).map(|value| number(value)).filter(|next| *next > ROOT);
                let missing = || OpenError::Foreign(format!("page {META} has no number of pages"));
                core.next.set(next.ok_or_else(missing)?);
                core.cache.borrow_mut().install(META, meta);
                core.load(&[ROOT]).await.map_err(store_error)?;
            }
        }
        host.sim().spawn(core.clone().flush_changes());
        let tree = BwTree { core };
        tree.commit().await.map_err(store_error)?;
        Ok(tree)
    }
}

/// Reading and flushing fails for no other reason.
fn store_error(error: Error) -> OpenError {
    match error {
        Error::Store(error) => OpenError::Store(error),
        other => OpenError::Store(StoreError::Corrupt(other.to_string())),
    }
}

impl<P: PageStore> Core<P> {
    fn new(host: &Host, store: P, config: Config) -> Core<P> {
        Core {
            host: host.clone(),
            cache: RefCell::new(Cache::new(ROOT + 1, capacity(&store.shape(), &config).max(64) as u64)),
            shape: store.shape(),
            store,
            config,
            next: Cell::new(ROOT + 1),
            changes: Cell::new(0),
            durable: Cell::new(0),
            wanted: Cell::new(0),
            came: Signal::new(host.sim()),
            ended: Signal::new(host.sim()),
            failed: RefCell::new(None),
            loading: RefCell::new(BTreeMap::new()),
            is_closed: Cell::new(false),
            counts: RefCell::new(TreeStats::default()),
        }
    }

    /// An empty tree.
    fn make(&self) {
        let next: Rc<[u8]> = Rc::from(self.next.get().to_le_bytes());
        let mut cache = self.cache.borrow_mut();
        cache.create(META, Page::new(0, vec![(Rc::from(NEXT), next)], None, 0));
        cache.create(ROOT, Page::new(0, Vec::new(), None, 0));
        self.changes.set(1);
    }
}
