//! One store against a map, with cleaning, crashes at any time with torn writes, and a drive that is full or rejects.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use nandscape_apps_kv_engine::Cancel;
use nandscape_apps_kv_engine::store::{Extent, GetError, Layout, OpenError, PutError, Store};
use nandscape_apps_store::testing::{Disk, QueueingDrive, Times};
use nandscape_lab_crash::each;
use nandscape_sim::{Executor, Rng, Seed, Sim, Span};

const LAYOUT: Layout = Layout { extent: Extent { slba: 40, blocks: 2_048 }, segment_bytes: 64 << 10 };
const BYTES: usize = (40 + 2_048) * 512;

async fn open(sim: &Sim, drive: &Rc<QueueingDrive>) -> Result<Store, OpenError> {
    Store::open(sim, drive.clone(), LAYOUT, 7).await
}

async fn get(sim: &Sim, store: &Store, key: &[u8]) -> Result<Option<(u64, Vec<u8>)>, GetError> {
    let found = store.get(key, 0, &Cancel::never(sim)).await?;
    Ok(found.map(|found| (found.version, found.value)))
}

fn key(number: u64) -> Vec<u8> {
    format!("key {number}").repeat(1 + number as usize % 5).into_bytes()
}

fn value(number: u64, version: u64) -> Vec<u8> {
    let len = nandscape_sim::rng::mix(number ^ version << 20) % 3_500;
    (0..len).map(|place| (place ^ number ^ (version * 7)) as u8).collect()
}

/// The possible contents of each key: versions from the last acknowledged one to the last begun.
#[derive(Default)]
struct Model(RefCell<BTreeMap<u64, (u64, u64)>>);

impl Model {
    async fn put(&self, store: &Store, number: u64, version: u64) {
        self.0.borrow_mut().entry(number).or_default().1 = version;
        store.put(&key(number), version, &value(number, version)).await.unwrap();
        self.0.borrow_mut().entry(number).or_default().0 = version;
    }

    async fn check(&self, sim: &Sim, store: &Store) {
        let all = self.0.borrow().clone();
        for (number, (acknowledged, begun)) in all {
            let version = match get(sim, store, &key(number)).await.unwrap() {
                None => 0,
                Some((version, found)) => {
                    assert!(found == value(number, version), "key {number}, version {version}: another value");
                    version
                }
            };
            assert!(
                (acknowledged..=begun).contains(&version),
                "key {number}: {version}, not {acknowledged} to {begun}"
            );
            self.0.borrow_mut().insert(number, (version, version));
        }
    }
}

async fn load(store: Rc<Store>, model: Rc<Model>, mut rng: Rng, lane: u64, next: Rc<Cell<u64>>) {
    loop {
        let number = lane * 100 + rng.below(60);
        next.set(next.get() + 1);
        model.put(&store, number, next.get()).await;
    }
}

fn run_until_a_crash(disk: &Rc<Disk>, model: &Rc<Model>, seed: Seed, next: &Rc<Cell<u64>>) -> u64 {
    let mut executor = Executor::new();
    let (sim, mut rng) = (executor.sim(), seed.rng());
    let drive = QueueingDrive::new(&sim, disk, Times::FLASH);
    let run = async {
        let store = Rc::new(open(&sim, &drive).await.unwrap());
        model.check(&sim, &store).await;
        (0..4).for_each(|lane| {
            sim.spawn(load(store.clone(), model.clone(), seed.nth(lane).rng(), lane, next.clone()));
        });
        sim.sleep(Span::from_us(rng.below(600_000))).await;
        store.stats().cleaned
    };
    let cleaned = executor.block_on(run).unwrap();
    drive.tear(&mut rng);
    cleaned
}

#[test]
fn after_crashes_at_any_time_it_has_what_it_acknowledged() {
    let cleaned = Cell::new(0);
    each(25, |seed| {
        let (disk, model, next) = (Disk::new(BYTES), Rc::new(Model::default()), Rc::default());
        for crash in 0..6 {
            cleaned.set(cleaned.get() + run_until_a_crash(&disk, &model, seed.nth(crash), &next));
        }
    });
    assert!(cleaned.get() > 100, "segments were emptied between crashes: {}", cleaned.get());
}

fn with_store(bytes: usize, test: impl AsyncFnOnce(Sim, Rc<QueueingDrive>, Store)) {
    let mut executor = Executor::with_spurious_polls();
    let sim = executor.sim();
    let disk = Disk::new(bytes);
    let drive = QueueingDrive::new(&sim, &disk, Times::FLASH);
    let test = async {
        let store = open(&sim, &drive).await.unwrap();
        test(sim.clone(), drive.clone(), store).await;
    };
    executor.block_on(test).unwrap();
}

#[test]
fn a_full_store_says_so_and_takes_what_replaces_a_value() {
    with_store(BYTES, async |sim, _, store| {
        let mut count = 0;
        let full = loop {
            match store.put(format!("{count}").as_bytes(), 1, &[1; 2_000]).await {
                Ok(()) => count += 1,
                Err(error) => break error,
            }
        };
        let PutError::Full { live, limit, needed } = full else { panic!("{full}") };
        assert!(live + needed > limit && limit == store.limit_bytes() && needed == 2_048, "{full}");
        for round in 2..6 {
            for number in 0..count {
                store.put(format!("{number}").as_bytes(), round, &[round as u8; 2_000]).await.unwrap();
            }
        }
        assert!(store.stats().cleaned > 20, "{:?}", store.stats());
        for number in 0..count {
            let found = get(&sim, &store, format!("{number}").as_bytes()).await.unwrap();
            assert_eq!(found, Some((5, vec![5; 2_000])));
        }
    });
}

#[test]
fn the_highest_version_counts_and_lengths_are_bounded() {
    with_store(BYTES, async |sim, _, store| {
        for version in [3, 5, 4, 5] {
            store.put(b"k", version, &[version as u8]).await.unwrap();
        }
        assert_eq!(get(&sim, &store, b"k").await.unwrap(), Some((5, vec![5])));
        assert_eq!((store.keys(), get(&sim, &store, b"other").await.unwrap()), (1, None));
        let too_long = store.put(b"k", 9, &[0; 8_000]).await.unwrap_err();
        assert!(matches!(too_long, PutError::Length { value: 8_000, most: 4_096, .. }), "{too_long}");
        assert!(store.put(b"", 9, &[]).await.is_err() && store.put(&[1; 1_025], 9, &[]).await.is_err());
        store.put(b"empty", 1, &[]).await.unwrap();
        assert_eq!(get(&sim, &store, b"empty").await.unwrap(), Some((1, vec![])));
    });
}

#[test]
fn puts_that_come_together_are_written_together() {
    with_store(BYTES, async |sim, _, store| {
        let store = Rc::new(store);
        let done = Rc::new(Cell::new(0));
        for number in 0..40 {
            let (store, done) = (store.clone(), done.clone());
            sim.spawn(async move {
                store.put(&key(number), 1, &value(number, 1)).await.unwrap();
                done.set(done.get() + 1);
            });
        }
        while done.get() < 40 {
            sim.sleep(Span::from_us(50)).await;
        }
        let stats = store.stats();
        assert!(stats.puts == 40 && stats.batches <= 5, "{stats:?}");
    });
}

#[test]
fn a_read_with_a_deadline_is_rejected_and_one_that_waits_can_be_cancelled() {
    with_store(BYTES, async |sim, drive, store| {
        store.put(b"k", 1, b"v").await.unwrap();
        let store = Rc::new(store);
        let other = store.clone();
        sim.spawn(async move { other.put(b"noise", 1, &[0; 3_000]).await.unwrap() });
        sim.sleep(Span::from_us(1)).await;
        let never = Cancel::never(&sim);
        let begun = sim.now();
        let busy = store.get(b"k", 500, &never).await;
        assert!(matches!(busy, Err(GetError::Busy { wait_us: 501..=1_000 })), "{busy:?}");
        assert_eq!((sim.now(), store.stats().busy), (begun, 1), "at once");
        let cancel = Rc::new(Cancel::never(&sim));
        let (told, later) = (cancel.clone(), sim.clone());
        sim.spawn(async move {
            later.sleep(Span::from_us(10)).await;
            told.cancel();
        });
        assert_eq!(store.get(b"k", 0, &cancel).await, Err(GetError::Cancelled));
        assert_eq!(sim.now() - begun, Span::from_us(10));
        assert!(drive.wait() > Span::ZERO);
        assert!(store.get(b"k", 1_000, &never).await.unwrap().is_some(), "it waits within its deadline");
    });
}

/// A test's use of a store, or of the error.
type Opened<'a> = &'a dyn Fn(Result<Store, OpenError>, &Sim, &mut Executor);

#[test]
fn what_is_no_store_is_left_alone_and_a_spoilt_record_is_told() {
    let disk = Disk::new(BYTES);
    let run = |test: Opened<'_>| {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let drive = QueueingDrive::new(&sim, &disk, Times::FLASH);
        let opened = executor.block_on(open(&sim, &drive)).unwrap();
        test(opened, &sim, &mut executor);
    };
    disk.spoil(40 * 512 + 100);
    run(&|opened, _, _| assert_eq!(opened.err(), Some(OpenError::Foreign { slba: 40 })));
    disk.spoil(40 * 512 + 100);
    run(&|opened, sim, executor| {
        let store = opened.unwrap();
        executor.block_on(store.put(b"k", 1, &[7; 900])).unwrap().unwrap();
        let slba = 40 + 128 + 1;
        disk.spoil(slba * 512 + 60);
        let found = executor.block_on(get(sim, &store, b"k")).unwrap();
        assert_eq!(found, Err(GetError::Corrupt { slba: slba as u64 }));
    });
    run(&|opened, sim, executor| {
        let store = opened.unwrap();
        assert_eq!(executor.block_on(get(sim, &store, b"k")).unwrap(), Ok(None), "a record that is torn is none");
    });
    let mut executor = Executor::new();
    let sim = executor.sim();
    let drive = QueueingDrive::new(&sim, &disk, Times::FLASH);
    let small = Layout { extent: Extent { slba: 0, blocks: 700 }, ..LAYOUT };
    let opened = executor.block_on(Store::create(&sim, drive, small, 1)).unwrap();
    assert!(matches!(opened.err(), Some(OpenError::Size { segments: 4, .. })));
}

/// Blocks of segments, the first ones included, are unreadable. The store opens without their records, and puts
/// continue until each segment was cleaned several times.
#[test]
fn blocks_that_cannot_be_read_cost_their_records_and_no_others() {
    let disk = Disk::new(BYTES);
    let run = |work: &dyn Fn(Store, &Sim, &mut Executor)| {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let drive = QueueingDrive::new(&sim, &disk, Times::FLASH);
        let store = executor.block_on(open(&sim, &drive)).unwrap().expect("a store");
        work(store, &sim, &mut executor);
    };
    let key = |number: u64| format!("key {number}").into_bytes();
    let value = |number: u64| vec![number as u8; 900];
    run(&|store, _, executor| {
        for number in 0..120 {
            executor.block_on(store.put(&key(number), 1, &value(number))).unwrap().unwrap();
        }
    });
    // In the first segment a record; in the second the first block.
    disk.damage(40 + 128 + 9);
    disk.damage(40 + 256);
    run(&|store, sim, executor| {
        assert!(store.stats().unreadable == 2 && store.keys() >= 118, "{:?} {}", store.stats(), store.keys());
        for number in 0..120 {
            let found = executor.block_on(get(sim, &store, &key(number))).unwrap().unwrap();
            assert!(found.is_none_or(|found| found.1 == value(number)), "{number}");
        }
        // One that is damaged while the store is open, with a current record.
        let victim =
            (0..120).find(|number| executor.block_on(get(sim, &store, &key(*number))).unwrap().unwrap().is_some());
        disk.damage(40 + 128 + 1);
        for number in 0..2_000u64 {
            let one = 130 + number % 20;
            executor.block_on(store.put(&key(one), 2 + number, &value(one))).unwrap().unwrap();
        }
        assert!(store.stats().cleaned > 10);
        let told = executor.block_on(get(sim, &store, &key(victim.unwrap()))).unwrap();
        assert!(matches!(told, Err(GetError::Drive { .. })), "it is told and not lost without a word: {told:?}");
        for number in (0..120).filter(|number| Some(*number) != victim) {
            let found = executor.block_on(get(sim, &store, &key(number))).unwrap().unwrap();
            assert!(found.is_none_or(|found| found.1 == value(number)), "{number}");
        }
    });
}
