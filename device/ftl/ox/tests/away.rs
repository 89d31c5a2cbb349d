//! Components outside the drive: a map larger than memory on a host, whose fragments are in flash that is reached only by
//! commands. The media model is not used: a component receives data that was read, and names data to be read or written.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;

use nandscape_device_ftl_core::address::Lpn;
use nandscape_device_ftl_core::component::{CachedMapping, Entry, Eviction, FragmentMiss, Mapping};
use nandscape_device_ftl_ox::parts::{FragmentTable, MapPart, PagedMap, Part};
use nandscape_device_media::{PageId, UnitId};
use nandscape_sim::{Executor, Seed, Sim, Span};

const UNITS: u32 = 4_000;
const PAGE: u32 = 512;

/// The flash interface of a host.
trait Flash {
    fn read(&self, page: PageId) -> impl Future<Output = Vec<u8>>;
    fn append(&self, bytes: Vec<u8>) -> impl Future<Output = PageId>;
}

/// Flash behind a link: each command takes its time.
struct FarFlash {
    sim: Sim,
    pages: RefCell<BTreeMap<u32, Vec<u8>>>,
    reads: Cell<u32>,
}

impl Flash for FarFlash {
    async fn read(&self, page: PageId) -> Vec<u8> {
        self.sim.sleep(Span::from_us(70)).await;
        self.reads.set(self.reads.get() + 1);
        self.pages.borrow()[&page.0].clone()
    }

    async fn append(&self, bytes: Vec<u8>) -> PageId {
        self.sim.sleep(Span::from_us(600)).await;
        let mut pages = self.pages.borrow_mut();
        let page = pages.len() as u32;
        pages.insert(page, bytes);
        PageId(page)
    }
}

/// Loads the missing parts of a map.
async fn load(map: &RefCell<MapPart>, flash: &impl Flash, miss: FragmentMiss) {
    make_room(map, flash, miss.index).await;
    let bytes = flash.read(miss.page).await;
    map.borrow_mut().loaded(miss, &bytes);
}

async fn upsert(map: &RefCell<MapPart>, flash: &impl Flash, lpn: Lpn, to: Entry) -> Entry {
    loop {
        let done = map.borrow_mut().upsert(lpn, to);
        match done {
            Ok(old) => return old,
            Err(miss) => load(map, flash, miss).await,
        }
    }
}

#[test]
fn a_map_on_a_host_finds_its_fragments_behind_a_link() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let flash = FarFlash { sim: sim.clone(), pages: RefCell::default(), reads: Cell::new(0) };
    let paged = PagedMap::new(UNITS, PAGE, 2, u64::from(6 * PAGE), FragmentTable::boxed);
    let map = RefCell::new(Part::BuiltIn(paged));
    let mut model = BTreeMap::new();
    let ended = executor.block_on(async {
        let mut rng = Seed::new(7).rng();
        for number in 0..6_000 {
            // Fragments that were never written enter memory without a load; room is still made for them.
            let lpn = Lpn(rng.below(UNITS.into()) as u32);
            let index = map.borrow().fragment_of(lpn);
            if !map.borrow().is_cached(index) && map.borrow().small().get(index).is_none() {
                make_room(&map, &flash, index).await;
            }
            let old = upsert(&map, &flash, lpn, Entry::new(Some(UnitId(number)), 0)).await;
            assert_eq!(old.unit(), model.insert(lpn.0, UnitId(number)), "{lpn:?}");
        }
    });
    assert!(ended.is_ok() && sim.now().ns() > 0);
    let written = flash.pages.borrow().len();
    assert!(flash.reads.get() > 1_000 && written > 1_000, "{} reads, {written} pages written", flash.reads.get());
    assert!(map.borrow().cache_memory() <= (6 + 2) * PAGE as usize);
}

/// Writes the fragments that must leave memory for a fragment.
async fn make_room(map: &RefCell<MapPart>, flash: &impl Flash, index: u32) {
    loop {
        let eviction = map.borrow_mut().evict(index);
        let Eviction::Write(oldest) = eviction else { return };
        let bytes = map.borrow_mut().begin_write(oldest).expect("what is to be written was changed");
        let page = flash.append(bytes).await;
        map.borrow_mut().small_mut().update(oldest, Some(page));
        map.borrow_mut().end_write(oldest);
    }
}
