//! Power is cut to all members and the host at random points, with members that die before it, together with it, or
//! reconnect stale. Acknowledged data is present; every block is whole and of one of the writes that it may be of;
//! parity fits the data.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use nandscape_device_ssd::Ssd;
use nandscape_drive::{Completion, Drive, DriveInfo, HostMem, Io, Issuer};
use nandscape_host_array::{Array, Config, Member};
use nandscape_sim::{Executor, Rng, Seed, Sim, Span};
use nandscape_wire_nvme::io::{DSM_DEALLOCATE, DsmRange, FUA};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};
use zerocopy::IntoBytes;

use crate::rig::{config, queue, seed, shape, ssd};

/// A host's way to a drive: when the host crashes, nothing passes any more, in either direction.
pub(crate) struct Fuse {
    below: Rc<dyn Drive>,
    /// Another queue pair of the drive; of one that was added later, the same.
    reads: Rc<dyn Drive>,
    pub(crate) is_blown: Cell<bool>,
    is_dead: Rc<Cell<bool>>,
    held: RefCell<Vec<Io>>,
}

impl Drive for Fuse {
    fn info(&self) -> DriveInfo {
        self.below.info()
    }

    fn submit(&self, io: Io) {
        self.pass(&self.below, io);
    }
}

impl Fuse {
    fn pass(&self, below: &Rc<dyn Drive>, io: Io) {
        if self.is_blown.get() {
            self.held.borrow_mut().push(io);
        } else if self.is_dead.get() {
            io.token.complete(Completion::of(Status::INTERNAL_ERROR));
        } else {
            below.submit(io);
        }
    }
}

/// The queue pair for reads behind the same fuse.
struct Reads(Rc<Fuse>);

impl Drive for Reads {
    fn info(&self) -> DriveInfo {
        self.0.info()
    }

    fn submit(&self, io: Io) {
        self.0.pass(&self.0.reads, io);
    }
}

const LANES: u64 = 5;
const APART: u64 = 400;

/// The possible contents of blocks, and the load.
pub(crate) struct Load {
    /// The share of commands that deallocate.
    pub(crate) ranges: f64,
    possible: RefCell<BTreeMap<u64, BTreeSet<u64>>>,
    rng: RefCell<Rng>,
    next: Cell<u64>,
    acknowledged: Cell<u64>,
    /// The lanes end with the write that they are at.
    is_over: Cell<bool>,
    lanes: Cell<u64>,
}

impl Load {
    /// Writes in a lane, one after the other, until the host crashes.
    async fn run(self: Rc<Self>, array: Rc<Array>, issuer: Rc<Issuer>, lane: u64, is_volatile: bool) {
        self.lanes.set(self.lanes.get() + 1);
        while !self.is_over.get() {
            let (slba, blocks, is_zero, is_range) = {
                let mut rng = self.rng.borrow_mut();
                let most = if rng.chance(0.5) { 12 } else { 90 };
                (lane * APART + rng.below(APART - 90), 1 + rng.below(most), rng.chance(0.1), rng.chance(self.ranges))
            };
            if is_range {
                self.deallocate(&array, &issuer, slba, blocks).await;
                continue;
            }
            self.next.set(self.next.get() + 1);
            let number = if is_zero { 0 } else { self.next.get() };
            for block in slba..slba + blocks {
                self.possible.borrow_mut().entry(block).or_insert_with(|| BTreeSet::from([0])).insert(number);
            }
            let opcode = if is_zero { IoOpcode::WRITE_ZEROES } else { IoOpcode::WRITE };
            let mut entry = SubmissionEntry::blocks(opcode, 1, slba, blocks as u32);
            if is_volatile {
                entry.cdw12 = (entry.cdw12.get() | FUA).into();
            }
            let data: Vec<u8> = (0..blocks * 64).flat_map(|_| number.to_le_bytes()).collect();
            let mem = if is_zero { HostMem::none() } else { HostMem::from_bytes(&data) };
            let ended = issuer.execute(&*array, entry, mem).await;
            if ended.status.is_success() {
                self.acknowledged.set(self.acknowledged.get() + 1);
                let mut possible = self.possible.borrow_mut();
                (slba..slba + blocks).for_each(|block| drop(possible.insert(block, BTreeSet::from([number]))));
            }
        }
        self.lanes.set(self.lanes.get() - 1);
    }

    /// In a range, some blocks become zeros and the others stay, or become what they were before a crash.
    async fn deallocate(&self, array: &Rc<Array>, issuer: &Issuer, slba: u64, blocks: u64) {
        for block in slba..slba + blocks {
            self.possible.borrow_mut().entry(block).or_default().insert(0);
        }
        let range = DsmRange { context_attributes: 0.into(), blocks: (blocks as u32).into(), slba: slba.into() };
        let mut entry = SubmissionEntry::io(IoOpcode::DATASET_MANAGEMENT, 1);
        entry.cdw11 = DSM_DEALLOCATE.into();
        issuer.execute(&**array, entry, HostMem::from_bytes(range.as_bytes())).await;
    }

    pub(crate) async fn check(&self, array: &Rc<Array>, issuer: &Issuer, what: &str) {
        assert_eq!(self.check_some(array, issuer, 80, what).await, 0, "{what}: blocks cannot be read");
    }

    /// The same of an array that may have lost the data that it reports as lost: unreadable blocks are counted.
    async fn check_some(&self, array: &Rc<Array>, issuer: &Issuer, step: u64, what: &str) -> u64 {
        let mut lost = 0;
        for slba in (0..LANES * APART).step_by(step as usize) {
            let mem = HostMem::zeroed(step as usize * 512);
            let entry = SubmissionEntry::blocks(IoOpcode::READ, 1, slba, step as u32);
            let ended = issuer.execute(&**array, entry, mem.clone()).await;
            if ended.status.meaning() == Status::UNRECOVERED_READ_ERROR {
                lost += step;
                continue;
            }
            assert_eq!(ended.status, Status::SUCCESS, "{what}: block {slba}");
            for (block, bytes) in (slba..).zip(mem.to_vec().chunks_exact(512)) {
                let number = u64::from_le_bytes(bytes[..8].try_into().unwrap());
                assert!(
                    bytes.chunks_exact(8).all(|word| word == number.to_le_bytes()),
                    "{what}: block {block} is torn"
                );
                let mut possible = self.possible.borrow_mut();
                let of = possible.entry(block).or_insert_with(|| BTreeSet::from([0]));
                assert!(of.contains(&number), "{what}: block {block} holds {number}, not one of {of:?}");
                *of = BTreeSet::from([number]);
            }
        }
        lost
    }
}

/// What happens to member 1.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    Well,
    /// It dies some time before the crash, and is present again afterwards, stale.
    DiesBefore,
    /// It dies some time before the crash, and does not reconnect at first.
    StaysAway,
    /// It is lost together with the crash.
    LostWithIt,
}

pub(crate) struct Case<'a> {
    pub(crate) sim: Sim,
    word: &'a str,
    pub(crate) settings: Vec<String>,
    pub(crate) ssds: Vec<Rc<Ssd>>,
    pub(crate) below: Vec<Rc<dyn Drive>>,
    reads: Vec<Rc<dyn Drive>>,
    dead: Rc<Cell<bool>>,
    is_volatile: bool,
}

impl<'a> Case<'a> {
    /// An array of this level and journal over drives with this write buffer, and a load.
    pub(crate) fn new(
        (word, journal, mode): (&'a str, &str, &str),
        seed: u64,
        stream: &str,
    ) -> (Executor, Case<'a>, Rc<Load>) {
        let executor = Executor::new();
        let sim = executor.sim();
        let buffer = format!("buffer.mode={mode}");
        let drive = |number: usize| ssd(&sim, &[&buffer], seed * 100 + number as u64);
        let ssds: Vec<Rc<Ssd>> = (0..shape(word).members).map(drive).collect();
        let [below, reads] = [1, 2].map(|id| ssds.iter().map(|ssd| queue(&sim, ssd, id)).collect());
        let fixed = ["array.chunk=8KiB", "array.technique=tea2", "array.rebuild_rate=0"].map(str::to_owned);
        let settings = fixed.into_iter().chain([format!("array.journal={journal}")]).collect();
        let case =
            Case { sim, word, settings, ssds, below, reads, dead: Rc::default(), is_volatile: mode == "volatile" };
        let load = Load {
            ranges: 0.0,
            possible: RefCell::default(),
            rng: RefCell::new(Seed::new(seed).child(stream).rng()),
            next: Cell::new(0),
            acknowledged: Cell::new(0),
            is_over: Cell::new(false),
            lanes: Cell::new(0),
        };
        (executor, case, Rc::new(load))
    }

    pub(crate) fn config(&self) -> Config {
        config(&self.settings.iter().map(String::as_str).collect::<Vec<_>>())
    }

    pub(crate) fn fuses(&self, without: Option<usize>) -> Vec<Rc<Fuse>> {
        let alive = Rc::new(Cell::new(false));
        let fuse = |(number, below): (usize, &Rc<dyn Drive>)| {
            let is_dead = if number == 1 { self.dead.clone() } else { alive.clone() };
            let reads = self.reads.get(number).unwrap_or(below).clone();
            Rc::new(Fuse { below: below.clone(), reads, is_blown: Cell::new(false), is_dead, held: RefCell::default() })
        };
        let all = self.below.iter().enumerate().filter(|(number, _)| Some(*number) != without);
        all.map(fuse).collect()
    }

    pub(crate) fn members(fuses: &[Rc<Fuse>]) -> Vec<Member> {
        let member =
            |fuse: &Rc<Fuse>| Member { io: fuse.clone(), reads: Some(Rc::new(Reads(fuse.clone()))), admin: None };
        fuses.iter().map(member).collect()
    }

    pub(crate) async fn crash(&self, load: &Rc<Load>, array: Rc<Array>, fuses: Vec<Rc<Fuse>>, fate: Fate, what: &str) {
        let issuer = Rc::new(Issuer::new(&self.sim));
        for lane in 0..LANES {
            self.sim.spawn(load.clone().run(array.clone(), issuer.clone(), lane, self.is_volatile));
        }
        let before = load.acknowledged.get();
        let (early, late) = {
            let mut rng = load.rng.borrow_mut();
            (Span::from_us(4_000 + rng.below(8_000)), Span::from_us(rng.below(15_000)))
        };
        self.sim.sleep(early).await;
        if matches!(fate, Fate::DiesBefore | Fate::StaysAway) {
            self.dead.set(true);
            // The transition itself is a separate fault, which is over soon.
            self.sim.sleep(Span::from_ms(60)).await;
        }
        self.sim.sleep(late).await;
        // During a scrub the first write may take longer. A write that never ends is reported below.
        for _ in 0..2_000 {
            if load.acknowledged.get() == before {
                self.sim.sleep(Span::from_us(500)).await;
            }
        }
        fuses.iter().for_each(|fuse| fuse.is_blown.set(true));
        self.ssds.iter().for_each(|ssd| ssd.media().cut_power(Span::from_us(50)));
        assert!(load.acknowledged.get() > before, "{what}: nothing was written");
        self.sim.sleep(Span::from_ms(200)).await;
        self.dead.set(false);
    }

    pub(crate) async fn reopened(&self, without: Option<usize>, what: &str) -> (Rc<Array>, Vec<Rc<Fuse>>) {
        let fuses = self.fuses(without);
        let array = Array::open(&self.sim, self.config(), Case::members(&fuses)).await;
        (array.unwrap_or_else(|error| panic!("{what}: {error}")), fuses)
    }
}

/// Several crashes of one array, each with the same fate of member 1.
fn crashes(word: &str, journal: &str, mode: &str, fate: Fate, seed: u64) {
    let what = format!("{word}, journal {journal}, {mode}, {fate:?}, seed {seed}");
    let (mut executor, case, load) = Case::new((word, journal, mode), seed, "crash");
    executor
        .block_on(async {
            let mut fuses = case.fuses(None);
            let made = Array::create(&case.sim, shape(case.word), case.config(), Case::members(&fuses)).await;
            let mut array = made.unwrap();
            let issuer = Issuer::new(&case.sim);
            for round in 0..3 {
                let what = format!("{what}, crash {round}");
                case.crash(&load, array, fuses, fate, &what).await;
                if matches!(fate, Fate::StaysAway | Fate::LostWithIt) {
                    let (opened, _) = case.reopened(Some(1), &what).await;
                    assert_eq!(opened.missing(), [1], "{what}");
                    load.check(&opened, &issuer, &what).await;
                }
                (array, fuses) = case.reopened(None, &what).await;
                assert_eq!(array.rebuilding().is_some(), fate != Fate::Well, "{what}: a stale member is rebuilt");
                load.check(&array, &issuer, &what).await;
                while array.rebuilding().is_some() {
                    case.sim.sleep(Span::from_ms(1)).await;
                }
                assert!(array.missing().is_empty(), "{what}");
                load.check(&array, &issuer, &what).await;
                let scrubbed = array.scrub().await;
                assert_eq!((scrubbed.mismatches, scrubbed.unreadable), (0, 0), "{what}");
            }
        })
        .unwrap();
    case.ssds.iter().for_each(|ssd| ssd.check().unwrap());
}

/// Power is cut to all members some times while the host and its array live on.
fn cuts(word: &str, journal: &str, mode: &str, fate: Fate, seed: u64) {
    let what = format!("{word}, journal {journal}, {mode}, {fate:?}, the host lives, seed {seed}");
    let (mut executor, case, load) = Case::new((word, journal, mode), seed, "cuts");
    let (sim, is_volatile) = (case.sim.clone(), case.is_volatile);
    executor
        .block_on(async {
            let members = Case::members(&case.fuses(None));
            let array = Array::create(&sim, shape(case.word), case.config(), members).await.unwrap();
            let issuer = Rc::new(Issuer::new(&sim));
            for lane in 0..LANES {
                sim.spawn(load.clone().run(array.clone(), issuer.clone(), lane, is_volatile));
            }
            case.dead.set(fate == Fate::DiesBefore);
            for _ in 0..4 {
                let pause = 2_000 + load.rng.borrow_mut().below(20_000);
                sim.sleep(Span::from_us(pause)).await;
                case.ssds.iter().for_each(|ssd| ssd.media().cut_power(Span::from_us(50)));
                sim.sleep(Span::from_ms(80)).await;
            }
            load.is_over.set(true);
            while load.lanes.get() > 0 {
                sim.sleep(Span::from_ms(1)).await;
            }
            assert!(load.acknowledged.get() > 0, "{what}: nothing was written");
            assert_eq!(array.missing().is_empty(), fate == Fate::Well, "{what}");
            // Half-written stripes are made consistent during the commands of hosts; until then, copies may differ.
            sim.sleep(Span::from_s(5)).await;
            load.check(&array, &issuer, &what).await;
            if fate == Fate::Well {
                let scrubbed = array.scrub().await;
                assert_eq!((scrubbed.mismatches, scrubbed.unreadable), (0, 0), "{what}");
                load.check(&array, &issuer, &what).await;
            }
        })
        .unwrap();
}

#[test]
fn nothing_acknowledged_is_lost_when_the_host_outlives_a_power_cut() {
    for seed in seed()..seed() + 4 {
        for word in ["raid5:4", "raid6:5", "raid1:2"] {
            for (journal, mode) in [("intent", "capacitor"), ("intent", "volatile"), ("data", "volatile")] {
                cuts(word, journal, mode, Fate::Well, seed);
                cuts(word, journal, mode, Fate::DiesBefore, seed);
            }
        }
    }
}

#[test]
fn nothing_acknowledged_is_lost_when_power_is_cut_to_all() {
    for word in ["raid5:4", "raid6:5", "raid1:2", "raid10:4"] {
        for (journal, mode) in [("intent", "capacitor"), ("intent", "volatile"), ("data", "volatile")] {
            crashes(word, journal, mode, Fate::Well, seed());
        }
    }
    for seed in seed() + 1..seed() + 5 {
        crashes("raid5:4", "intent", "volatile", Fate::Well, seed);
        crashes("raid5:3", "data", "capacitor", Fate::Well, seed);
    }
}

#[test]
fn writes_with_a_member_missing_have_no_hole() {
    for fate in [Fate::DiesBefore, Fate::StaysAway] {
        for word in ["raid5:4", "raid6:5", "raid1:2", "raid10:4"] {
            crashes(word, "intent", "capacitor", fate, seed());
            crashes(word, "intent", "volatile", fate, seed() + 1);
        }
    }
}

#[test]
fn with_a_journal_of_data_a_member_may_be_lost_together_with_the_crash() {
    for word in ["raid5:4", "raid6:5", "raid10:4"] {
        for seed in seed()..seed() + 3 {
            crashes(word, "data", "volatile", Fate::LostWithIt, seed);
        }
    }
}

#[test]
fn with_marks_alone_such_an_array_opens_only_by_force() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let ssds: Vec<Rc<Ssd>> = (0..4).map(|number| ssd(&sim, &[], number)).collect();
    let below: Vec<Rc<dyn Drive>> = ssds.iter().map(|ssd| queue(&sim, ssd, 1)).collect();
    let members = || below.iter().map(|io| Member { io: io.clone(), reads: None, admin: None }).collect::<Vec<_>>();
    executor
        .block_on(async {
            let array = Array::create(&sim, shape("raid5:4"), config(&[]), members()).await.unwrap();
            let issuer = Issuer::new(&sim);
            let entry = SubmissionEntry::blocks(IoOpcode::WRITE, 1, 0, 8);
            assert!(issuer.execute(&*array, entry, HostMem::from_bytes(&[7; 4_096])).await.status.is_success());
            drop(array);
            let three = || members().into_iter().skip(1).collect::<Vec<_>>();
            let refused = Array::open(&sim, config(&[]), three()).await.err().map(|error| error.to_string());
            assert!(refused.as_ref().is_some_and(|error| error.contains("array.force")), "{refused:?}");
            let forced = Array::open(&sim, config(&["array.force=true"]), three()).await.unwrap();
            assert_eq!((forced.missing(), forced.recovered().regions), (vec![0], 1));
            let two = members().into_iter().skip(2).collect();
            let refused =
                Array::open(&sim, config(&["array.force=true"]), two).await.err().map(|error| error.to_string());
            assert!(
                refused
                    .as_ref()
                    .is_some_and(|error| error.contains("members 0, 1 are missing, and it tolerates the loss of 1")),
                "{refused:?}"
            );
            let refused =
                Array::open(&sim, config(&["array.chunk=16KiB"]), members()).await.err().map(|error| error.to_string());
            assert!(
                refused.as_ref().is_some_and(|error| error.contains("array.chunk=4096, which is valid")),
                "{refused:?}"
            );
            let foreign = ssd(&sim, &[], 9);
            let foreign = vec![Member { io: queue(&sim, &foreign, 1), reads: None, admin: None }];
            let refused = Array::open(&sim, config(&[]), foreign).await.err().map(|error| error.to_string());
            assert!(refused.as_ref().is_some_and(|error| error.contains("no drive has the record")), "{refused:?}");
        })
        .unwrap();
}

#[test]
fn marks_cost_little_where_writes_come_back_and_journalled_data_doubles_writes() {
    let cost = |journal: &str| {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let ssds: Vec<Rc<Ssd>> = (0..4).map(|number| ssd(&sim, &[], number)).collect();
        let members = ssds.iter().map(|ssd| Member { io: queue(&sim, ssd, 1), reads: None, admin: None }).collect();
        let journal = format!("array.journal={journal}");
        executor
            .block_on(async {
                let array = Array::create(&sim, shape("raid5:4"), config(&[&journal]), members).await.unwrap();
                let (issuer, begun) = (Issuer::new(&sim), array.stats());
                for number in 0..400u64 {
                    let entry = SubmissionEntry::blocks(IoOpcode::WRITE, 1, number % 40 * 8, 8);
                    let ended = issuer.execute(&*array, entry, HostMem::zeroed(4_096)).await;
                    assert!(ended.status.is_success());
                }
                let stats = array.stats().since(&begun);
                (stats.writes, stats.journal_writes)
            })
            .unwrap()
    };
    // Forty chunks lie in 14 stripes: one bitmap for each, on four members.
    assert_eq!(cost("none"), (800, 0));
    assert_eq!(cost("intent"), (800, 14 * 4));
    assert_eq!(cost("data"), (800, 800));
}

/// Power is cut to all members under a load, and one dies before their stripes are consistent again. Lost content is an
/// error, and never wrong data, also when a spare replaces the member, after more writes, and after a restart.
fn dies_after_cut(word: &str, journal: &str, mode: &str, seed: u64) -> u64 {
    let what = format!("{word}, journal {journal}, {mode}, dies after the cut, seed {seed}");
    let (mut executor, case, load) = Case::new((word, journal, mode), seed, "dies after cut");
    let (sim, is_volatile) = (case.sim.clone(), case.is_volatile);
    let spare = queue(&sim, &ssd(&sim, &[&format!("buffer.mode={mode}")], seed * 100 + 99), 1);
    let lost = executor.block_on(async {
        let fuses = case.fuses(None);
        let array = Array::create(&sim, shape(case.word), case.config(), Case::members(&fuses)).await.unwrap();
        let issuer = Rc::new(Issuer::new(&sim));
        let begin = || {
            load.is_over.set(false);
            for lane in 0..LANES {
                sim.spawn(load.clone().run(array.clone(), issuer.clone(), lane, is_volatile));
            }
        };
        let end = async || {
            load.is_over.set(true);
            while load.lanes.get() > 0 {
                sim.sleep(Span::from_ms(1)).await;
            }
        };
        begin();
        let below = |most: u64| load.rng.borrow_mut().below(most);
        let early = below(12_000);
        let pause = below(3_000);
        sim.sleep(Span::from_us(4_000 + early)).await;
        load.is_over.set(true);
        case.ssds.iter().for_each(|ssd| ssd.media().cut_power(Span::from_us(50)));
        sim.sleep(Span::from_us(pause)).await;
        case.dead.set(true);
        array.fail_member(1);
        end().await;
        assert_eq!(array.missing(), [1], "{what}");
        let degraded = load.check_some(&array, &issuer, 1, &what).await;
        // More writes, also to stripes that have lost something.
        begin();
        sim.sleep(Span::from_ms(20)).await;
        end().await;
        let more = load.check_some(&array, &issuer, 1, &what).await;
        assert!(load.acknowledged.get() > 0 && more <= degraded + 1, "{what}: {degraded}, then {more} blocks are lost");
        array.shut_down().await;
        fuses.iter().for_each(|fuse| fuse.is_blown.set(true));
        // A drive replaces the one that is gone.
        let mut members = Case::members(&case.fuses(Some(1)));
        members.push(Member { io: spare.clone(), reads: None, admin: None });
        let again = Array::open(&sim, case.config(), members).await.unwrap_or_else(|error| panic!("{what}: {error}"));
        for _ in 0..2_000 {
            if again.rebuilding().is_some() {
                sim.sleep(Span::from_ms(1)).await;
            }
        }
        assert!(again.missing().is_empty() && again.rebuilding().is_none(), "{what}");
        let rebuilt = load.check_some(&again, &issuer, 1, &what).await;
        assert!(rebuilt <= more, "{what}: {more}, then {rebuilt} blocks are lost");
        assert_eq!(again.scrub().await.mismatches, 0, "{what}");
        assert_eq!(load.check_some(&again, &issuer, 1, &what).await, rebuilt, "{what}");
        degraded
    });
    lost.unwrap()
}

#[test]
fn what_a_power_cut_and_a_death_have_lost_is_an_error() {
    let mut lost = 0;
    for seed in seed()..seed() + 12 {
        for word in ["raid5:3", "raid5:4", "raid6:5", "raid1:2"] {
            for (journal, mode) in [("intent", "capacitor"), ("intent", "volatile"), ("data", "volatile")] {
                lost += dies_after_cut(word, journal, mode, seed);
            }
        }
    }
    assert!(lost > 0, "no run has lost anything: the test does not test it");
}

/// After a crash the array opens, is left alone, and ends in order: then it opens without a member, as no region is marked any more.
#[test]
fn marks_of_a_crash_are_cleared_when_it_is_made_good() {
    for word in ["raid5:4", "raid6:5"] {
        let (mut executor, case, load) = Case::new((word, "intent", "capacitor"), seed(), "marks");
        executor
            .block_on(async {
                let fuses = case.fuses(None);
                let array = Array::create(&case.sim, shape(word), case.config(), Case::members(&fuses)).await.unwrap();
                case.crash(&load, array, fuses, Fate::Well, word).await;
                let (again, fuses) = case.reopened(None, word).await;
                again.shut_down().await;
                fuses.iter().for_each(|fuse| fuse.is_blown.set(true));
                let (without, _) = case.reopened(Some(1), word).await;
                assert_eq!(without.missing(), [1], "{word}");
                load.check(&without, &Issuer::new(&case.sim), word).await;
            })
            .unwrap();
    }
}
