//! A host's page cache as a layer over each node. Over a node with [`Foresight`](nandscape_drive::Foresight), it rejects reads of missing
//! pages that would be late.

use std::any::{Any, TypeId};
use std::rc::Rc;
use std::sync::Arc;

use nandscape_drive::layer::{Layer, LayerNode, LayerReport, full_key, only};
use nandscape_drive::{Drive, DriveInfo, Node, Offers, Opening, Refused, Role, Use, foresight};

use crate::cache::Cache;
use crate::config::Config;
use crate::pages::PAGE;
use crate::report::CacheReport;

/// Entries of the queue pair of a cache.
const ENTRIES: u32 = 1_024;

/// A page cache that is to be opened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CacheLayer {
    /// Settings.
    pub config: Config,
}

impl CacheLayer {
    /// With changes of its settings.
    ///
    /// # Errors
    /// The setting that is not valid, and what would be.
    pub fn read(set: &[String]) -> Result<CacheLayer, String> {
        let mut config = Config::default();
        let set_one = |change: &String| config.set(&full_key("cache", change)).map_err(|error| error.to_string());
        set.iter().try_for_each(set_one)?;
        Ok(CacheLayer { config })
    }
}

impl Layer for CacheLayer {
    fn kind(&self) -> &'static str {
        "cache"
    }

    fn bars_flash_commands(&self) -> Option<&'static str> {
        Some("it keeps pages, and commands on chunks name blocks in lists")
    }

    fn holds(&self) -> bool {
        true
    }

    fn settings(&self) -> Vec<(&'static str, String)> {
        self.config.settings()
    }

    fn open(&self, how: &Opening<'_>, below: Vec<Rc<dyn Node>>) -> Result<Rc<dyn LayerNode>, String> {
        let (sim, name) = (how.sim, how.name);
        let below = only(below)?;
        let config = Config { layer: name, ..self.config.clone() };
        let connected = below.connect(Use { role: Role::Any, entries: ENTRIES });
        let drive = connected.map_err(|refused| refused.to_string())?;
        let memory = config.memory;
        let cache = Cache::over(sim, config, drive, foresight::of(&*below)).map_err(|error| error.to_string())?;
        put_pages(&cache, how.held)?;
        Ok(Rc::new(CacheNode { cache, below, memory }))
    }
}

/// Puts pages into a cache that another one held.
fn put_pages(cache: &Cache, mut held: &[u8]) -> Result<(), String> {
    let cut = || "its pages are cut short".to_owned();
    while !held.is_empty() {
        let (head, rest) = held.split_at_checked(HEAD).ok_or_else(cut)?;
        let page = u64::from_le_bytes(head[..8].try_into().expect("eight bytes"));
        let len = if head[8] == 0 { 0 } else { PAGE as usize };
        let (contents, rest) = rest.split_at_checked(len).ok_or_else(cut)?;
        cache.put_page(page, (len > 0).then(|| contents.into()));
        held = rest;
    }
    Ok(())
}

struct CacheNode {
    cache: Rc<Cache>,
    below: Rc<dyn Node>,
    memory: u64,
}

impl Node for CacheNode {
    fn info(&self) -> DriveInfo {
        self.cache.info()
    }

    /// All users share the pages, and the cache's own connection. Admin commands pass.
    fn connect(&self, wanted: Use) -> Result<Rc<dyn Drive>, Refused> {
        match wanted.role {
            Role::Admin => self.below.connect(wanted),
            Role::Any | Role::Reads | Role::Writes => Ok(self.cache.clone()),
        }
    }

    fn view(&self, of: TypeId) -> Option<Rc<dyn Any>> {
        foresight::view(of, &self.cache)
    }
}

/// What a cache holds: for each page its address and whether its contents follow, the first to go first.
const HEAD: usize = 9;

impl LayerNode for CacheNode {
    /// Commands that change blocks pass, and the pages of the blocks are dropped.
    fn offers(&self, below: Offers) -> Offers {
        below
    }

    fn is_at_rest(&self) -> bool {
        self.cache.is_at_rest()
    }

    fn take_held(&self) -> Result<Vec<u8>, String> {
        let mut held = Vec::new();
        for (page, contents) in self.cache.take_pages() {
            held.extend(page.to_le_bytes());
            held.push(u8::from(contents.is_some()));
            contents.iter().for_each(|contents| held.extend(&contents[..]));
        }
        Ok(held)
    }

    fn begin(&self) {
        self.cache.count_anew();
    }

    fn report(&self) -> Option<Arc<dyn LayerReport>> {
        Some(Arc::new(CacheReport::of(&self.cache, self.memory)))
    }

    fn counters(&self) -> Vec<(&'static str, f64)> {
        CacheReport::of(&self.cache, self.memory).metrics()
    }
}

#[cfg(test)]
mod tests {
    use nandscape_drive::testing::{FakeDrive, FakeNode, INFO, Servers};
    use nandscape_drive::{HostMem, Issuer};
    use nandscape_sim::{Executor, Span};
    use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};

    use super::*;

    #[test]
    fn a_cache_continues_from_what_another_one_held() {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let layer = CacheLayer::read(&["memory=64KiB".to_owned()]).expect("a valid size");
        let open = |held| {
            let drive = FakeDrive::new(&sim, INFO, Servers::Unlimited, Span::from_us(9));
            layer.open(&Opening { held, ..Opening::new(&sim, "cache") }, vec![Rc::new(FakeNode(drive))])
        };
        let read = |node: &Rc<dyn LayerNode>| {
            let (drive, issuer) = (node.connect(Use { role: Role::Any, entries: 8 }).unwrap(), Issuer::new(&sim));
            let read = SubmissionEntry::blocks(IoOpcode::READ, 1, 8, 8);
            async move { issuer.execute(&*drive, read, HostMem::none()).await.status.is_success() }
        };
        let first = open(&[]).unwrap();
        assert!(executor.block_on(read(&first)).unwrap() && first.is_at_rest());
        let held = first.take_held().unwrap();
        assert_eq!(held.len(), HEAD, "a page without contents");
        let second = open(&held).unwrap();
        assert!(executor.block_on(read(&second)).unwrap());
        for (node, hits) in [(first, 0), (second, 1)] {
            let report = node.report().unwrap();
            let cache: &CacheReport = report.as_kind().unwrap();
            assert_eq!((cache.hits, cache.misses, &*report.settings()), (hits, 1 - hits, "64KiB"));
        }
        assert_eq!(open(&held[1..]).map(drop), Err("its pages are cut short".to_owned()));
    }
}
