//! A host's page cache as a layer over each node. Directly over a block layer, it has that predict the reads of missing pages.

use std::rc::Rc;

use nandscape_device_controller::Offers;
use nandscape_drive::{Drive, DriveInfo, Node, Refused, Role, Use, node};
use nandscape_host_block::BlockLayer;
use nandscape_layers_cache::{Cache, Config, Counters, PAGE};
use serde::Serialize;

use super::{Layer, LayerNode, Opening, Part};

/// Entries of the queue pair of a cache.
const ENTRIES: u32 = 1_024;

/// See the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CacheLayer {
    /// Settings.
    pub config: Config,
}

/// What a page cache has counted in the measured phase.
#[derive(Copy, Clone, PartialEq, Debug, Serialize)]
pub struct CacheReport {
    /// Memory for pages, in bytes.
    pub memory_bytes: u64,
    /// Reads whose pages were all in memory.
    pub hits: u64,
    /// Reads that waited for the node below, or were rejected.
    pub misses: u64,
    /// Hits as a share of both; null without reads.
    pub hit_ratio: Option<f64>,
    /// Pages read from the node below.
    pub loaded_pages: u64,
    /// Pages that gave way to others.
    pub evicted_pages: u64,
    /// Reads that went to the node below unchanged, since a write to their pages was under way.
    pub passed: u64,
    /// Reads rejected because of their deadlines.
    pub rejected: u64,
}

impl Layer for CacheLayer {
    fn kind(&self) -> &'static str {
        "cache"
    }

    fn keeps_from_chunks(&self) -> Option<&'static str> {
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
        let below = below.into_iter().next().ok_or("there is nothing below it")?;
        let config = Config { layer: name, ..self.config.clone() };
        let connected = below.connect(Use { role: Role::Any, entries: ENTRIES });
        let drive = connected.map_err(|refused| refused.to_string())?;
        let layer = node::view::<BlockLayer>(&*below);
        let memory = config.memory;
        let cache = Cache::over(sim, config, drive, layer).map_err(|error| error.to_string())?;
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

    fn part(&self) -> Part {
        let Counters { hits, misses, loaded, evicted, passed } = self.cache.counters();
        let all = hits + misses;
        Part::Cache(CacheReport {
            memory_bytes: self.memory,
            hits,
            misses,
            hit_ratio: (all > 0).then(|| hits as f64 / all as f64),
            loaded_pages: loaded,
            evicted_pages: evicted,
            passed,
            rejected: self.cache.counted().rejected,
        })
    }
}
