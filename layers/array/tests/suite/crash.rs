//! Power is cut to all members and the host at random points. Members die before the cut, together with it, or
//! reconnect stale. Acknowledged data is present, every block holds exactly one of its possible writes, and parity
//! fits the data.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_device_ssd::Ssd;
use nandscape_drive::{Drive, HostMem, Issuer};
use nandscape_lab_crash::{Cut, Gate, Liar, Lie, Point, Possible, Subject, ensure, explore};
use nandscape_layers_array::{Array, Config, Member};
use nandscape_sim::{Executor, Rng, Seed, Sim, Span};
use nandscape_wire_nvme::io::{DSM_DEALLOCATE, DsmRange, FUA};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};
use zerocopy::IntoBytes;

use crate::rig::{config, queue, seed, shape, ssd};

const LANES: u64 = 5;
const APART: u64 = 400;

/// The possible contents of blocks, and the load.
pub(crate) struct Load {
    /// The share of commands that deallocate.
    pub(crate) ranges: f64,
    possible: Possible<u64>,
    rng: RefCell<Rng>,
    next: Cell<u64>,
    acknowledged: Cell<u64>,
    /// The lanes end with their current write.
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
            self.possible.begin(slba..slba + blocks, number);
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
                self.possible.acknowledge(slba..slba + blocks, number);
            }
        }
        self.lanes.set(self.lanes.get() - 1);
    }

    /// In a range, some blocks become zeros. The others stay, or return to a state before a crash.
    async fn deallocate(&self, array: &Rc<Array>, issuer: &Issuer, slba: u64, blocks: u64) {
        self.possible.begin(slba..slba + blocks, 0);
        let range = DsmRange { context_attributes: 0.into(), blocks: (blocks as u32).into(), slba: slba.into() };
        let mut entry = SubmissionEntry::io(IoOpcode::DATASET_MANAGEMENT, 1);
        entry.cdw11 = DSM_DEALLOCATE.into();
        issuer.execute(&**array, entry, HostMem::from_bytes(range.as_bytes())).await;
    }

    /// Reads all blocks, each of which has one of its possible numbers.
    async fn check(&self, array: &Rc<Array>, issuer: &Issuer) -> Result<(), String> {
        let lost = self.check_some(array, issuer, 80).await?;
        ensure(lost == 0, || format!("{lost} blocks cannot be read"))
    }

    /// The same of an array that may have lost the data that it reports as lost: unreadable blocks are counted.
    async fn check_some(&self, array: &Rc<Array>, issuer: &Issuer, step: u64) -> Result<u64, String> {
        let mut lost = 0;
        for slba in (0..LANES * APART).step_by(step as usize) {
            let mem = HostMem::zeroed(step as usize * 512);
            let entry = SubmissionEntry::blocks(IoOpcode::READ, 1, slba, step as u32);
            let ended = issuer.execute(&**array, entry, mem.clone()).await;
            if ended.status.meaning() == Status::UNRECOVERED_READ_ERROR {
                lost += step;
                continue;
            }
            ensure(ended.status == Status::SUCCESS, || format!("block {slba}: {}", ended.status))?;
            for (block, bytes) in (slba..).zip(mem.to_vec().chunks_exact(512)) {
                let number = u64::from_le_bytes(bytes[..8].try_into().unwrap());
                let is_whole = bytes.chunks_exact(8).all(|word| word == number.to_le_bytes());
                ensure(is_whole, || format!("block {block} is torn"))?;
                self.possible.found(&block, number).map_err(|what| format!("block {what}"))?;
            }
        }
        Ok(lost)
    }

    /// Starts the lanes.
    fn begin(self: &Rc<Self>, sim: &Sim, array: &Rc<Array>, is_volatile: bool) {
        let issuer = Rc::new(Issuer::new(sim));
        self.is_over.set(false);
        for lane in 0..LANES {
            sim.spawn(self.clone().run(array.clone(), issuer.clone(), lane, is_volatile));
        }
    }

    /// Ends the lanes of a live host.
    async fn end(&self, sim: &Sim) {
        self.is_over.set(true);
        while self.lanes.get() > 0 {
            sim.sleep(Span::from_ms(1)).await;
        }
    }
}

/// The fate of member 1.
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
    /// A mistake of each drive.
    lie: Option<Lie>,
}

/// A host: its array, and its paths to the drives.
pub(crate) struct Host {
    pub(crate) array: Rc<Array>,
    gates: Vec<(Rc<Gate>, Rc<Gate>)>,
}

impl Host {
    fn kill(&self) {
        self.gates.iter().for_each(|(gate, _)| gate.kill());
    }
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
        let case = Case {
            sim,
            word,
            settings,
            ssds,
            below,
            reads,
            dead: Rc::default(),
            is_volatile: mode == "volatile",
            lie: None,
        };
        let load = Load {
            ranges: 0.0,
            possible: Possible::default(),
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

    /// Paths of a new host to the drives, without one of them.
    fn gates(&self, without: Option<usize>) -> Vec<(Rc<Gate>, Rc<Gate>)> {
        let alive = Rc::new(Cell::new(false));
        let honest = |drive: &Rc<dyn Drive>| match self.lie {
            None => drive.clone(),
            Some(lie) => Liar::new(drive.clone(), lie),
        };
        let gate = |(number, below): (usize, &Rc<dyn Drive>)| {
            let gate = Gate::to(honest(below), if number == 1 { &self.dead } else { &alive });
            // Another queue pair of the drive; of one that was added later, the same.
            let reads = gate.second(honest(self.reads.get(number).unwrap_or(below)));
            (gate, reads)
        };
        let all = self.below.iter().enumerate().filter(|(number, _)| Some(*number) != without);
        all.map(gate).collect()
    }

    fn members(gates: &[(Rc<Gate>, Rc<Gate>)]) -> Vec<Member> {
        let member =
            |(io, reads): &(Rc<Gate>, Rc<Gate>)| Member { io: io.clone(), reads: Some(reads.clone()), admin: None };
        gates.iter().map(member).collect()
    }

    async fn create(&self) -> Result<Host, String> {
        let gates = self.gates(None);
        let made = Array::create(&self.sim, shape(self.word), self.config(), Case::members(&gates)).await;
        made.map(|array| Host { array, gates }).map_err(|error| error.to_string())
    }

    async fn open(&self, without: Option<usize>) -> Result<Host, String> {
        let gates = self.gates(without);
        let array = Array::open(&self.sim, self.config(), Case::members(&gates)).await;
        array.map(|array| Host { array, gates }).map_err(|error| error.to_string())
    }

    fn cut_power(&self) {
        self.ssds.iter().for_each(|ssd| ssd.media().cut_power(Span::from_us(50)));
    }
}

/// Several crashes of one array, each with the same fate of member 1.
pub(crate) struct Crashes<'a> {
    pub(crate) case: Case<'a>,
    pub(crate) load: Rc<Load>,
    pub(crate) fate: Fate,
    /// A scrub runs next to the load.
    pub(crate) scrubs: bool,
    /// Spares take over, so the rebuilt member is unknown.
    pub(crate) has_spares: bool,
}

impl Crashes<'_> {
    pub(crate) fn points(&self, rounds: u64) -> impl Iterator<Item = Point> {
        let (fate, load, mut left, mut second) = (self.fate, self.load.clone(), rounds, None);
        std::iter::from_fn(move || {
            if let Some(point) = second.take() {
                return Some(point);
            }
            left = left.checked_sub(1)?;
            let mut rng = load.rng.borrow_mut();
            let (early, late) = (Span::from_us(4_000 + rng.below(8_000)), Span::from_us(rng.below(15_000)));
            // Next to a scrub the first write may take longer.
            let end = |after| Point { patience: Span::from_s(1), ..Point::new(after, Cut::All, Span::from_ms(200)) };
            if !matches!(fate, Fate::DiesBefore | Fate::StaysAway) {
                return Some(end(early + late));
            }
            second = Some(end(late));
            // The transition itself is a separate fault, which is short.
            Some(Point::new(early, Cut::Member(1), Span::from_ms(60)))
        })
    }

    /// Runs it.
    pub(crate) fn run(&self, executor: &mut Executor, rounds: u64) -> Result<u64, String> {
        let ran = executor.block_on(explore(&self.case.sim, self, self.points(rounds)));
        let explored = ran.map_err(|stalled| stalled.to_string())?.map_err(|failure| failure.to_string())?;
        self.case.ssds.iter().try_for_each(|ssd| ssd.check())?;
        Ok(explored.restarts)
    }
}

impl Subject for Crashes<'_> {
    type Host = Host;

    async fn build(&self) -> Result<Host, String> {
        self.case.create().await
    }

    fn load(&self, host: &Host, _: u64) {
        if self.scrubs {
            let scrubbed = host.array.clone();
            self.case.sim.spawn(async move {
                scrubbed.scrub().await;
            });
        }
        self.load.begin(&self.case.sim, &host.array, self.case.is_volatile);
    }

    fn acknowledged(&self) -> u64 {
        self.load.acknowledged.get()
    }

    fn cut(&self, host: &Host, what: Cut) {
        if what == Cut::All {
            host.kill();
            self.case.cut_power();
        } else {
            self.case.dead.set(true);
        }
    }

    async fn restart(&self) -> Result<Host, String> {
        let issuer = Issuer::new(&self.case.sim);
        self.case.dead.set(false);
        if matches!(self.fate, Fate::StaysAway | Fate::LostWithIt) {
            let without = self.case.open(Some(1)).await?;
            let missing = without.array.missing();
            ensure(self.has_spares || missing == [1], || format!("members {missing:?} are missing"))?;
            self.load.check(&without.array, &issuer).await?;
            if self.has_spares {
                // A rebuild on the spare ends with this host.
                without.kill();
                self.case.sim.sleep(Span::from_ms(50)).await;
            }
        }
        self.case.open(None).await
    }

    async fn check(&self, host: &Host) -> Result<(), String> {
        let (array, issuer) = (&host.array, Issuer::new(&self.case.sim));
        let is_rebuilt = array.rebuilding().is_some();
        ensure(self.has_spares || is_rebuilt == (self.fate != Fate::Well), || {
            format!("a stale member is rebuilt: {is_rebuilt}")
        })?;
        self.load.check(array, &issuer).await?;
        while array.rebuilding().is_some() {
            self.case.sim.sleep(Span::from_ms(1)).await;
        }
        ensure(array.missing().is_empty(), || format!("members {:?} are missing", array.missing()))?;
        ensure(!self.has_spares || array.unread().is_empty(), || "a member is unread".to_owned())?;
        self.load.check(array, &issuer).await?;
        sound(array).await
    }
}

/// A scrub finds nothing.
async fn sound(array: &Rc<Array>) -> Result<(), String> {
    let scrubbed = array.scrub().await;
    ensure((scrubbed.mismatches, scrubbed.unreadable) == (0, 0), || format!("a scrub finds {scrubbed:?}"))
}

/// The campaign of a level, a journal and a write buffer.
fn crashes(word: &str, journal: &str, mode: &str, fate: Fate, seed: u64) {
    let what = format!("{word}, journal {journal}, {mode}, {fate:?}, seed {seed}");
    let (mut executor, case, load) = Case::new((word, journal, mode), seed, "crash");
    let subject = Crashes { case, load, fate, scrubs: false, has_spares: false };
    let restarts = subject.run(&mut executor, 3).unwrap_or_else(|failure| panic!("{what}: {failure}"));
    assert_eq!(restarts, 3, "{what}");
}

/// An array whose host outlives cuts of all members.
struct Cuts<'a> {
    case: Case<'a>,
    load: Rc<Load>,
    fate: Fate,
}

impl Subject for Cuts<'_> {
    type Host = Host;

    async fn build(&self) -> Result<Host, String> {
        self.case.create().await
    }

    fn load(&self, host: &Host, _: u64) {
        self.load.begin(&self.case.sim, &host.array, self.case.is_volatile);
        self.case.dead.set(self.fate == Fate::DiesBefore);
    }

    fn acknowledged(&self) -> u64 {
        self.load.acknowledged.get()
    }

    fn cut(&self, _: &Host, _: Cut) {
        self.case.cut_power();
    }

    async fn restart(&self) -> Result<Host, String> {
        Err("the host lives".to_owned())
    }

    async fn check(&self, host: &Host) -> Result<(), String> {
        let (array, sim) = (&host.array, &self.case.sim);
        self.load.end(sim).await;
        let missing = array.missing();
        ensure(missing.is_empty() == (self.fate == Fate::Well), || format!("members {missing:?} are missing"))?;
        // Half-written stripes are made consistent next to the commands of hosts; until then, copies may differ.
        sim.sleep(Span::from_s(5)).await;
        let issuer = Issuer::new(sim);
        self.load.check(array, &issuer).await?;
        if self.fate == Fate::Well {
            sound(array).await?;
            self.load.check(array, &issuer).await?;
        }
        Ok(())
    }
}

/// Power is cut to all members some times while the host and its array live on.
fn cuts(word: &str, journal: &str, mode: &str, fate: Fate, seed: u64) {
    let what = format!("{word}, journal {journal}, {mode}, {fate:?}, the host lives, seed {seed}");
    let (mut executor, case, load) = Case::new((word, journal, mode), seed, "cuts");
    let (sim, drawn) = (case.sim.clone(), load.clone());
    let points = (0..4).map(|_| {
        let pause = Span::from_us(2_000 + drawn.rng.borrow_mut().below(20_000));
        Point::new(pause, Cut::Drives, Span::from_ms(80))
    });
    let subject = Cuts { case, load, fate };
    let ran = executor.block_on(explore(&sim, &subject, points)).unwrap();
    let explored = ran.unwrap_or_else(|failure| panic!("{what}: {failure}"));
    assert!(explored.cuts == 4 && explored.acknowledged > 0, "{what}: {explored:?}");
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
    // Forty chunks are in 14 stripes: one bitmap for each, on four members.
    assert_eq!(cost("none"), (800, 0));
    assert_eq!(cost("intent"), (800, 14 * 4));
    assert_eq!(cost("data"), (800, 800));
}

/// An array that loses a member before its stripes are consistent again after a cut. Lost content is an error and never wrong data,
/// also when a spare replaces the member, after more writes, and after a restart.
struct DeathAfterCut<'a> {
    case: Case<'a>,
    load: Rc<Load>,
    spare: Rc<dyn Drive>,
    /// Blocks that were lost.
    lost: Cell<u64>,
}

impl Subject for DeathAfterCut<'_> {
    type Host = Host;

    async fn build(&self) -> Result<Host, String> {
        self.case.create().await
    }

    fn load(&self, host: &Host, _: u64) {
        self.load.begin(&self.case.sim, &host.array, self.case.is_volatile);
    }

    fn acknowledged(&self) -> u64 {
        self.load.acknowledged.get()
    }

    fn cut(&self, host: &Host, what: Cut) {
        if what == Cut::Drives {
            self.load.is_over.set(true);
            self.case.cut_power();
        } else {
            self.case.dead.set(true);
            host.array.fail_member(1);
        }
    }

    async fn restart(&self) -> Result<Host, String> {
        // A drive replaces the lost one.
        let gates = self.case.gates(Some(1));
        let mut members = Case::members(&gates);
        members.push(Member { io: self.spare.clone(), reads: None, admin: None });
        let array =
            Array::open(&self.case.sim, self.case.config(), members).await.map_err(|error| error.to_string())?;
        Ok(Host { array, gates })
    }

    async fn check(&self, host: &Host) -> Result<(), String> {
        let (sim, load, issuer) = (&self.case.sim, &self.load, Issuer::new(&self.case.sim));
        load.end(sim).await;
        ensure(host.array.missing() == [1], || format!("members {:?} are missing", host.array.missing()))?;
        let degraded = load.check_some(&host.array, &issuer, 1).await?;
        // More writes, also to stripes that have lost something.
        load.begin(sim, &host.array, self.case.is_volatile);
        sim.sleep(Span::from_ms(20)).await;
        load.end(sim).await;
        let more = load.check_some(&host.array, &issuer, 1).await?;
        ensure(more <= degraded + 1, || format!("{degraded}, then {more} blocks are lost"))?;
        host.array.shut_down().await;
        host.kill();
        let again = self.restart().await?.array;
        for _ in 0..2_000 {
            if again.rebuilding().is_some() {
                sim.sleep(Span::from_ms(1)).await;
            }
        }
        ensure(again.missing().is_empty() && again.rebuilding().is_none(), || "it is not rebuilt".to_owned())?;
        let rebuilt = load.check_some(&again, &issuer, 1).await?;
        ensure(rebuilt <= more, || format!("{more}, then {rebuilt} blocks are lost"))?;
        let mismatches = again.scrub().await.mismatches;
        ensure(mismatches == 0, || format!("a scrub finds {mismatches} mismatches"))?;
        let after = load.check_some(&again, &issuer, 1).await?;
        ensure(after == rebuilt, || format!("{rebuilt}, then {after} blocks are lost"))?;
        self.lost.set(degraded);
        Ok(())
    }
}

fn dies_after_cut(word: &str, journal: &str, mode: &str, seed: u64) -> u64 {
    let what = format!("{word}, journal {journal}, {mode}, dies after the cut, seed {seed}");
    let (mut executor, case, load) = Case::new((word, journal, mode), seed, "dies after cut");
    let sim = case.sim.clone();
    let spare = queue(&sim, &ssd(&sim, &[&format!("buffer.mode={mode}")], seed * 100 + 99), 1);
    let (early, pause) = {
        let mut rng = load.rng.borrow_mut();
        (Span::from_us(4_000 + rng.below(12_000)), Span::from_us(rng.below(3_000)))
    };
    let points = [Point::new(early, Cut::Drives, pause), Point::new(Span::ZERO, Cut::Member(1), Span::ZERO)];
    let subject = DeathAfterCut { case, load, spare, lost: Cell::new(0) };
    let ran = executor.block_on(explore(&sim, &subject, points)).unwrap();
    let explored = ran.unwrap_or_else(|failure| panic!("{what}: {failure}"));
    assert!(explored.acknowledged > 0, "{what}: nothing was written");
    subject.lost.get()
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

/// After a crash the array opens, idles, and ends in order. It then opens without a member, since no region is marked
/// any more.
#[test]
fn marks_of_a_crash_are_cleared_when_it_is_repaired() {
    for word in ["raid5:4", "raid6:5"] {
        let (mut executor, case, load) = Case::new((word, "intent", "capacitor"), seed(), "marks");
        let subject = Crashes { case, load, fate: Fate::Well, scrubs: false, has_spares: false };
        let case = &subject.case;
        executor
            .block_on(async {
                explore(&case.sim, &subject, subject.points(1)).await.unwrap();
                let again = case.open(None).await.unwrap();
                again.array.shut_down().await;
                again.kill();
                let without = case.open(Some(1)).await.unwrap().array;
                assert_eq!(without.missing(), [1], "{word}");
                subject.load.check(&without, &Issuer::new(&case.sim)).await.unwrap();
            })
            .unwrap();
    }
}

/// Deliberate mistakes of every member, on the first seeds of the campaigns above.
#[test]
fn members_that_lie_are_noticed() {
    for (lie, mode) in
        [(Lie::Durable, "volatile"), (Lie::Half { nth: 60 }, "capacitor"), (Lie::Dropped { nth: 60 }, "capacitor")]
    {
        let noticed = (seed()..seed() + 4).find_map(|seed| {
            let (mut executor, mut case, load) = Case::new(("raid5:4", "intent", mode), seed, "crash");
            case.lie = Some(lie);
            let subject = Crashes { case, load, fate: Fate::Well, scrubs: false, has_spares: false };
            subject.run(&mut executor, 3).err()
        });
        assert!(noticed.is_some(), "{lie:?} is not noticed");
    }
}
