//! The effect of each fault on operations and cells, by hand: times in microseconds on a flash whose every step takes a
//! round number, outcomes, and the data that can be read afterwards.

use std::cell::RefCell;
use std::rc::Rc;

use nandscape_device_media::{
    BlockId, Broken, Crossing, Features, Holding, Media, MediaError, Misuse, PageId, PageImage, PlaneId, PlaneMode,
    Priority, ReadRetry, StoreKind, UnitId,
};
use nandscape_device_rig::TestFlash;
use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, Stage};
use nandscape_sim::units::Rate;
use nandscape_sim::{Executor, Sim, Span, Who};

const PAGES: u32 = 8;
const READ: u64 = 50;
const PROGRAM: u64 = 300;
const ERASE: u64 = 2_000;
/// A page over the channel.
const TRANSFER: u64 = 10;

/// Two planes of one die with four blocks each, of pages of one unit.
fn media(sim: &Sim, planes: PlaneMode, faults: &[&str]) -> Rc<Media> {
    media_with(sim, Features { planes, ..Features::default() }, faults)
}

fn media_with(sim: &Sim, features: Features, faults: &[&str]) -> Rc<Media> {
    let flash = TestFlash {
        planes: 2,
        pages: PAGES,
        read: vec![Span::from_us(READ)],
        program: vec![Span::from_us(PROGRAM)],
        erase: Span::from_us(ERASE),
        bus: Rate::new(4_096, Span::from_us(TRANSFER)),
        features,
        store: StoreKind::Ram,
        faults: faults.iter().map(ToString::to_string).collect(),
        ..TestFlash::default()
    };
    flash.media(sim)
}

fn host() -> Who {
    Priority::Fifo.who(cause::HOST_WRITE)
}

fn image(pages: u8) -> PageImage {
    let mut image = PageImage::default();
    (1..=pages).for_each(|page| image.push(u32::from(page), Some(Rc::from(vec![page; 4_096]))));
    image
}

/// A flash on which operations are done one after the other.
struct Bench {
    sim: Sim,
    media: Rc<Media>,
    done: RefCell<Vec<(u64, Result<(), MediaError>)>>,
}

impl Bench {
    /// How long an operation took, in microseconds, and how it ended.
    async fn note(&self, operation: impl Future<Output = Result<(), MediaError>>) {
        let begun = self.sim.now();
        let ended = operation.await;
        self.done.borrow_mut().push(((self.sim.now() - begun).ns() / 1_000, ended));
    }

    async fn read(&self, page: u32) {
        self.note(self.media.read(PageId(page), 4_096, host(), &mut Breakdown::new())).await;
    }

    async fn program(&self, page: u32) {
        let mut breakdown = Breakdown::new();
        let program = self.media.program(PageId(page), image(1), host(), &mut breakdown);
        self.note(async { program.await.map_err(|broken| broken.error) }).await;
    }

    async fn erase(&self, block: u32) {
        self.note(self.media.erase(BlockId(block), host(), &mut Breakdown::new())).await;
    }
}

/// Operations on a flash with faults, and their outcome.
fn with(faults: &[&str], steps: impl AsyncFnOnce(&Bench)) -> Vec<(u64, Result<(), MediaError>)> {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let bench = Bench { media: media(&sim, PlaneMode::Independent, faults), sim, done: RefCell::default() };
    executor.block_on(steps(&bench)).unwrap();
    bench.done.take()
}

const OK: Result<(), MediaError> = Ok(());
const UNCORRECTABLE: Result<(), MediaError> = Err(MediaError::Uncorrectable);
const FAILED: Result<(), MediaError> = Err(MediaError::Failed);
const NO_ANSWER: Result<(), MediaError> = Err(MediaError::NoAnswer);
const POWER_LOST: Result<(), MediaError> = Err(MediaError::PowerLost);

const A_READ: u64 = READ + TRANSFER;
const A_PROGRAM: u64 = TRANSFER + PROGRAM;

#[test]
fn without_faults_everything_ends_well() {
    let done = with(&[], async |bench| {
        bench.program(0).await;
        bench.read(0).await;
        bench.erase(0).await;
    });
    assert_eq!(done, [(A_PROGRAM, OK), (A_READ, OK), (ERASE, OK)]);
}

#[test]
fn a_failed_program_uses_up_its_page_and_leaves_nothing_to_read() {
    let done = with(&["fail program nth=2", "fail erase nth=1"], async |bench| {
        for page in 0..3 {
            bench.program(page).await;
        }
        for page in 0..3 {
            bench.read(page).await;
        }
        // Not erased: it can still be read, and the next page is the fourth.
        bench.erase(0).await;
        bench.read(0).await;
        bench.program(3).await;
        // Erased: everything is as new.
        bench.erase(0).await;
        bench.program(0).await;
        bench.program(1).await;
        bench.read(1).await;
    });
    let programs = [(A_PROGRAM, OK), (A_PROGRAM, FAILED), (A_PROGRAM, OK)];
    let reads = [(A_READ, OK), (A_READ, UNCORRECTABLE), (A_READ, OK)];
    let rest = [(ERASE, FAILED), (A_READ, OK), (A_PROGRAM, OK)];
    let anew = [(ERASE, OK), (A_PROGRAM, OK), (A_PROGRAM, OK), (A_READ, OK)];
    assert_eq!(done, [&programs[..], &reads, &rest, &anew].concat());
}

#[test]
fn slow_takes_longer_stuck_takes_the_timeout_and_dead_answers_no_more() {
    let slow = with(&["slow by=40us"], async |bench| {
        bench.program(0).await;
        bench.read(0).await;
        bench.erase(0).await;
    });
    assert_eq!(slow, [(A_PROGRAM + 40, OK), (A_READ + 40, OK), (ERASE + 40, OK)]);
    let stuck =
        with(&["stuck timeout=700us nth=1", "stuck read timeout=800us", "stuck erase timeout=9us"], async |bench| {
            bench.program(0).await;
            bench.program(1).await;
            bench.read(1).await;
            bench.erase(0).await;
        });
    assert_eq!(stuck, [(700, FAILED), (A_PROGRAM, OK), (800, UNCORRECTABLE), (9, FAILED)]);
    let dead = with(&["dead plane=0 nth=2 timeout=5us"], async |bench| {
        bench.program(0).await;
        bench.program(1).await;
        bench.read(0).await;
        bench.erase(1).await;
        bench.program(4 * PAGES).await;
        bench.media.faults().clear();
        bench.read(0).await;
    });
    let gone = (5, NO_ANSWER);
    assert_eq!(dead, [(A_PROGRAM, OK), gone, gone, gone, (A_PROGRAM, OK), (A_READ, OK)]);
}

#[test]
fn corrupt_data_stays_corrupt_and_one_bit_of_a_unit_is_wrong() {
    with(&["corrupt read nth=1", "corrupt program nth=2"], async |bench| {
        bench.program(0).await;
        bench.program(1).await;
        let wrong =
            |unit| -> u32 { bench.media.data(UnitId(unit)).unwrap().iter().map(|byte| (byte ^ 1).count_ones()).sum() };
        assert_eq!((wrong(0), wrong(1)), (0, 1));
        bench.read(0).await;
        assert_eq!((wrong(0), wrong(1)), (1, 1));
        bench.read(0).await;
        assert_eq!((wrong(0), wrong(1)), (1, 1));
        assert!(bench.done.borrow().iter().all(|(_, ended)| ended.is_ok()));
    });
}

/// Torn operations: a program, an erase, a read; and requests without power.
#[test]
fn a_power_cut_tears_what_is_under_way() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let bench =
        Rc::new(Bench { media: media(&sim, PlaneMode::Independent, &[]), sim: sim.clone(), done: RefCell::default() });
    let cut = bench.clone();
    executor
        .block_on(async move {
            let (one, other) = (cut.clone(), cut.clone());
            for page in [0, 1, 4 * PAGES] {
                cut.program(page).await;
            }
            cut.done.take();
            // A program in plane 0 and an erase in plane 1, cut 100 us after they began.
            sim.spawn(async move { one.program(2).await });
            sim.spawn(async move { other.erase(4).await });
            sim.sleep(Span::from_us(100)).await;
            cut.media.cut_power(Span::from_us(50));
            cut.read(0).await;
            cut.program(3).await;
            let begun = sim.now();
            cut.media.power_returns().await;
            assert_eq!(sim.now() - begun, Span::from_us(ERASE - 100), "the erase has to run out");
            for page in [0, 2, 4 * PAGES] {
                cut.read(page).await;
            }
            // Page 2 is used up, page 3 was not begun.
            assert_eq!(cut.media.pages_programmed(BlockId(0)), 3);
            cut.program(3).await;
            cut.erase(4).await;
            cut.program(4 * PAGES).await;
            cut.read(4 * PAGES).await;
            assert_eq!(cut.media.power_cuts(), 1);
        })
        .unwrap();
    let at_once = [(0, POWER_LOST), (0, POWER_LOST)];
    let torn = [(A_PROGRAM, POWER_LOST), (ERASE, POWER_LOST)];
    let after = [(A_READ, OK), (A_READ, UNCORRECTABLE), (A_READ, UNCORRECTABLE), (A_PROGRAM, OK)];
    let anew = [(ERASE, OK), (A_PROGRAM, OK), (A_READ, OK)];
    assert_eq!(bench.done.take(), [&at_once[..], &torn, &after, &anew].concat());
}

/// What a cut program and a cut erase leave, by the kind of tear: whether the page and the block's page can be read,
/// how many bytes of the page's data remain, and whether its area does.
#[test]
fn a_power_cut_leaves_of_what_is_under_way_what_its_rule_says() {
    let expected = [
        ("unreadable", (UNCORRECTABLE, 0, false), UNCORRECTABLE),
        ("untouched", (NOT_PROGRAMMED, 0, false), OK),
        ("whole", (OK, 4_096, true), NOT_PROGRAMMED),
        ("area", (OK, 0, true), UNCORRECTABLE),
        ("data", (OK, 4_096, false), UNCORRECTABLE),
    ];
    for (torn, page, block) in expected {
        let (found, erased) = left_after_a_cut(torn);
        assert_eq!((found, erased), (page, block), "{torn}");
    }
    let ((read, bytes, has_area), erased) = left_after_a_cut("prefix");
    assert_eq!((read, has_area, erased), (OK, false, UNCORRECTABLE));
    assert!(bytes > 0 && bytes < 4_096 && bytes % 512 == 0, "{bytes}");
}

const NOT_PROGRAMMED: Result<(), MediaError> = Err(MediaError::Misuse(Misuse::NotProgrammed));

type Left = (Result<(), MediaError>, usize, bool);

/// Cuts power in the middle of a program of page 1 of plane 0, and of an erase in plane 1.
fn left_after_a_cut(torn: &str) -> (Left, Result<(), MediaError>) {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let rule = format!("power_cut read torn={torn}");
    let media = media(&sim, PlaneMode::Independent, &[&rule]);
    let bench = Rc::new(Bench { media, sim: sim.clone(), done: RefCell::default() });
    let (one, other, third) = (bench.clone(), bench.clone(), bench.clone());
    executor
        .block_on(async move {
            third.program(0).await;
            third.program(4 * PAGES).await;
            sim.spawn(async move { one.program(1).await });
            sim.spawn(async move { other.erase(4).await });
            sim.sleep(Span::from_us(100)).await;
            third.read(0).await;
            third.media.power_returns().await;
            third.read(1).await;
            third.read(4 * PAGES).await;
        })
        .unwrap();
    let done = bench.done.take();
    let is_there = |byte: &&u8| **byte == 1;
    let bytes = bench.media.data(UnitId(1)).map_or(0, |data| data.iter().filter(is_there).count());
    ((done[done.len() - 2].1, bytes, bench.media.tag(UnitId(1)) == 1), done[done.len() - 1].1)
}

/// Two owners of one flash, each with its own plane: a cut that one of them meets reaches both, and both continue when
/// power returns.
#[test]
fn every_owner_of_the_flash_learns_of_a_power_cut_and_of_its_end() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let media = media(&sim, PlaneMode::Independent, &["power_cut program plane=0 nth=1 off=1ms"]);
    let ended = Rc::new(RefCell::new(Vec::new()));
    let told = Rc::new(RefCell::new(Vec::new()));
    for (owner, block) in [(0, 0), (1, 4)] {
        let notes = told.clone();
        media.on_power_cut(move || notes.borrow_mut().push(owner));
        let (sim, media, ended) = (sim.clone(), media.clone(), ended.clone());
        executor.sim().spawn(async move {
            let mut outcomes = Vec::new();
            for _ in 0..2 {
                let page = PageId(block * PAGES + media.pages_programmed(BlockId(block)));
                let program = media.program(page, image(1), host(), &mut Breakdown::new()).await;
                outcomes.push(program.map_err(|broken| broken.error));
                media.power_returns().await;
                assert!(media.is_powered());
            }
            ended.borrow_mut().push((owner, outcomes, (sim.now().ns() / 1_000)));
        });
    }
    executor.block_on(sim.sleep(Span::from_s(1))).unwrap();
    assert_eq!(told.take(), [0, 1]);
    let (outcomes, at) = (vec![POWER_LOST, OK], 1_000 + A_PROGRAM);
    // They share the channel, and the second, whose first program did not begin, waited for power first.
    assert_eq!(ended.take(), [(1, outcomes.clone(), at), (0, outcomes, at + TRANSFER)]);
    assert_eq!(media.power_cuts(), 1);
}

/// The cut comes with the n-th operation, and tears that too.
#[test]
fn power_goes_at_the_operation_that_is_named() {
    let done = with(&["power_cut nth=3 off=1ms"], async |bench| {
        for page in 0..4 {
            bench.program(page).await;
        }
        bench.media.power_returns().await;
        assert_eq!(
            bench.sim.now().ns(),
            (2 * A_PROGRAM + 1_000) * 1_000,
            "off since the third began, for a millisecond"
        );
        bench.read(1).await;
        bench.read(2).await;
        bench.program(3).await;
    });
    let programs = [(A_PROGRAM, OK), (A_PROGRAM, OK), (A_PROGRAM, POWER_LOST), (0, POWER_LOST)];
    assert_eq!(done, [&programs[..], &[(A_READ, OK), (A_READ, UNCORRECTABLE), (A_PROGRAM, OK)]].concat());
}

/// A page that cannot be corrected is reported when the controller checks it on the way; otherwise it keeps its errors.
#[test]
fn a_copy_without_correction_takes_its_errors_along() {
    for check in [false, true] {
        let done = with(&["uncorrectable page=0 count=1"], async |bench| {
            bench.program(0).await;
            bench.program(1).await;
            let mut seized = bench.media.seize(PlaneId(0), Holding::Plane, host()).await;
            let moves = [(PageId(0), PageId(PAGES)), (PageId(1), PageId(PAGES + 1))];
            let unreadable =
                seized.copyback(&moves, if check { Crossing::Page } else { Crossing::Nothing }).await.unwrap();
            assert_eq!(unreadable.to_vec(), if check { vec![PageId(0)] } else { vec![] });
            drop(seized);
            bench.done.take();
            for page in [0, PAGES, PAGES + 1] {
                bench.read(page).await;
            }
        });
        assert_eq!(done, [(A_READ, OK), (A_READ, UNCORRECTABLE), (A_READ, OK)], "check: {check}");
    }
}

#[test]
fn a_collection_is_told_which_operation_came_to_nothing() {
    let faults = [
        "uncorrectable block=0 page=1",
        "fail program block=1 page=2",
        "fail erase block=2",
        "dead block=3 timeout=0us",
    ];
    with(&faults, async |bench| {
        for page in 0..3 {
            bench.program(page).await;
        }
        let mut seized = bench.media.seize(PlaneId(0), Holding::Plane, host()).await;
        let pages = [0, 1, 2].map(|page| (PageId(page), 4_096));
        assert_eq!(seized.take_tags().count(), 0, "nobody asks for them");
        seized.keep_tags();
        assert_eq!(seized.read(&pages).await.unwrap().to_vec(), [PageId(1)]);
        let owners: Vec<_> = seized.take_tags().map(|(unit, _)| bench.media.geometry().page_of(unit)).collect();
        assert!(owners.contains(&PageId(1)), "its out-of-band areas were read: {owners:?}");
        assert_eq!(seized.take_tags().count(), 0, "they were taken");
        let copies = [(0, PAGES), (2, PAGES + 1)].map(|(from, to)| (PageId(from), PageId(to)));
        assert_eq!(seized.copyback(&copies, Crossing::Page).await.unwrap().to_vec(), []);
        assert!(seized.take_tags().count() >= copies.len(), "the pages crossed the channel");
        let failed = Broken { error: MediaError::Failed, page: PageId(PAGES + 2) };
        assert_eq!(seized.copyback(&[(PageId(0), PageId(PAGES + 2))], Crossing::Nothing).await, Err(failed));
        assert_eq!(seized.erase(BlockId(2)).await, FAILED);
        let dead = Broken { error: MediaError::NoAnswer, page: PageId(3 * PAGES) };
        assert_eq!(seized.program(PageId(3 * PAGES), image(1)).await, Err(dead));
        assert_eq!(seized.read(&[(PageId(3 * PAGES), 4_096)]).await, Err(dead));
        assert_eq!(seized.erase(BlockId(3)).await, NO_ANSWER);
    });
}

/// An uncorrectable read takes the maximum of retries; a read of a page that needs none takes none.
#[test]
fn a_hopeless_read_is_retried_to_the_end() {
    let time = |faults: &[&str]| {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let retry = ReadRetry { probability: vec![0.0, 0.0, 0.0], time: Span::from_us(20) };
        let media = media_with(&sim, Features { read_retry: retry, ..Features::default() }, faults);
        executor
            .block_on(async {
                let breakdown = &mut Breakdown::new();
                media.program(PageId(0), image(1), host(), breakdown).await.unwrap();
                let begun = sim.now();
                let ended = media.read(PageId(0), 4_096, host(), breakdown).await;
                ((sim.now() - begun).ns() / 1_000, ended)
            })
            .unwrap()
    };
    assert_eq!(time(&[]), (A_READ, OK));
    assert_eq!(time(&["uncorrectable"]), (A_READ + 3 * (A_READ + 20), UNCORRECTABLE));
}

/// An inverted page is the page of the rule, not another of its command.
#[test]
fn a_program_together_corrupts_one_page() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let media = media(&sim, PlaneMode::MultiPlane, &["corrupt program plane=1"]);
    let breakdown = &mut Breakdown::new();
    let pages = [PageId(0), PageId(4 * PAGES)];
    executor.block_on(media.program_together(&pages, &image(2), host(), breakdown, |_| ())).unwrap().unwrap();
    let wrong = |unit, content: u8| -> u32 {
        media.data(UnitId(unit)).unwrap().iter().map(|byte| (byte ^ content).count_ones()).sum()
    };
    assert_eq!((wrong(0, 1), wrong(4 * PAGES, 2)), (0, 1));
}

/// Of pages that are programmed together the failed one is named; none of them is readable.
#[test]
fn a_multi_plane_program_names_the_page_that_failed() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let media = media(&sim, PlaneMode::MultiPlane, &["fail program plane=1 nth=1"]);
    let pages = [PageId(0), PageId(4 * PAGES)];
    executor
        .block_on(async {
            let breakdown = &mut Breakdown::new();
            let ended = media.program_together(&pages, &image(2), host(), breakdown, |_| ()).await;
            assert_eq!(ended, Err(Broken { error: MediaError::Failed, page: pages[1] }));
            for page in pages {
                assert_eq!(media.read(page, 4_096, host(), breakdown).await, UNCORRECTABLE);
            }
        })
        .unwrap();
}

/// Erases the first blocks of both planes at once, of which each holds a page, with power cut after a while or not.
/// Returns how each erase ended, how many pages its block then holds, and when.
fn erase_both(faults: &[&str], cut: Option<u64>) -> ([Result<(), MediaError>; 2], [u32; 2], u64) {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let media = media(&sim, PlaneMode::MultiPlane, faults);
    let blocks = [BlockId(0), BlockId(4)];
    blocks.iter().for_each(|block| media.plant_program(PageId(block.0 * PAGES), [1]));
    let cutter = media.clone();
    if let Some(after) = cut {
        let sim = sim.clone();
        sim.clone().spawn(async move {
            sim.sleep(Span::from_us(after)).await;
            cutter.cut_power(Span::from_us(1));
        });
    }
    let ended = executor.block_on(media.erase_together(&blocks, host(), &mut Breakdown::new())).unwrap();
    let at = (sim.now() - nandscape_sim::Time::ZERO).ns() / 1_000;
    ([ended[0], ended[1]], blocks.map(|block| media.pages_programmed(block)), at)
}

/// Of blocks that are erased at once each ends for itself; the slowest decides on the time. A LUN that hangs has erased none of them.
#[test]
fn a_multi_plane_erase_ends_for_each_block() {
    const FAILED: Result<(), MediaError> = Err(MediaError::Failed);
    const LOST: Result<(), MediaError> = Err(MediaError::PowerLost);
    assert_eq!(erase_both(&[], None), ([OK, OK], [0, 0], ERASE));
    assert_eq!(erase_both(&["fail erase plane=1"], None), ([OK, FAILED], [0, 1], ERASE));
    assert_eq!(erase_both(&["slow erase plane=0 by=500us"], None), ([OK, OK], [0, 0], ERASE + 500));
    let (ended, held, at) = erase_both(&["stuck erase plane=1 timeout=3ms"], None);
    assert_eq!((held, at), ([1, 1], 3_000));
    assert!(ended.iter().all(Result::is_err), "{ended:?}");
    let (ended, _, at) = erase_both(&[], Some(700));
    assert_eq!((ended, at), ([LOST, LOST], ERASE));
}

/// Reads the first pages of both planes at once, with power cut after a while or not.
fn read_both(faults: &[&str], cut: Option<u64>) -> Vec<(u64, Result<(), MediaError>)> {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let media = media(&sim, PlaneMode::MultiPlane, faults);
    [0, 4 * PAGES].iter().for_each(|page| media.plant_program(PageId(*page), [1]));
    let bench = Rc::new(Bench { media, sim: sim.clone(), done: RefCell::default() });
    for page in [0, 4 * PAGES] {
        let bench = bench.clone();
        sim.spawn(async move { bench.read(page).await });
    }
    executor
        .block_on(async {
            if let Some(after) = cut {
                sim.sleep(Span::from_us(after)).await;
                bench.media.cut_power(Span::from_us(1));
            }
            sim.sleep(Span::from_ms(2)).await;
        })
        .unwrap();
    bench.done.take()
}

/// A slow member of a multi-plane read slows all down, one that does not answer is none, and each has its own errors.
#[test]
fn faults_of_a_multi_plane_read_are_of_each_page() {
    assert_eq!(read_both(&[], None), [(A_READ, OK), (A_READ + TRANSFER, OK)]);
    for plane in ["slow read plane=0 by=40us", "slow read plane=1 by=40us"] {
        assert_eq!(read_both(&[plane], None), [(A_READ + 40, OK), (A_READ + TRANSFER + 40, OK)]);
    }
    let one = read_both(&["uncorrectable plane=0 page=0"], None);
    assert_eq!(one, [(A_READ, UNCORRECTABLE), (A_READ + TRANSFER, OK)]);
    let stuck = read_both(&["stuck read plane=0 timeout=800us"], None);
    assert_eq!(stuck, [(800, UNCORRECTABLE), (800 + A_READ, OK)]);
    // While they are sensed; while the second is sent.
    assert_eq!(read_both(&[], Some(20)), [(A_READ, POWER_LOST), (A_READ + TRANSFER, POWER_LOST)]);
    assert_eq!(read_both(&[], Some(A_READ + 1)), [(A_READ, OK), (A_READ + TRANSFER, POWER_LOST)]);
}

/// The struck operation, and a read behind it: microseconds in the array, waiting behind the former, and behind the fault.
fn waits_with(planes: PlaneMode, rule: &str, of: char) -> [(u64, u64, u64); 2] {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let media = media(&sim, planes, &[rule]);
    let behind = Rc::new(RefCell::new(Breakdown::new()));
    sim.spawn({
        let (sim, media, behind) = (sim.clone(), media.clone(), behind.clone());
        async move {
            sim.sleep(Span::from_us(1)).await;
            let mut breakdown = Breakdown::new();
            let _ = media.read(PageId(1), 4_096, host(), &mut breakdown).await;
            *behind.borrow_mut() = breakdown;
        }
    });
    let struck = executor.block_on(async {
        let mut breakdown = Breakdown::new();
        let is_ok = match of {
            'r' => media.read(PageId(0), 4_096, host(), &mut breakdown).await.is_ok(),
            'p' => media.program(PageId(0), image(1), host(), &mut breakdown).await.is_ok(),
            'e' => media.erase(BlockId(0), host(), &mut breakdown).await.is_ok(),
            _ => media.seize(PlaneId(0), Holding::Plane, host()).await.erase(BlockId(0)).await.is_ok(),
        };
        assert_eq!(is_ok || of == 'r', rule.starts_with("slow") || of == 'r', "{rule} {of}");
        sim.sleep(Span::from_ms(10)).await;
        breakdown
    });
    let us = |span: Span| span.ns() / 1_000;
    [struck.unwrap(), behind.take()].map(|of| {
        let waited = |cause| us(of.waited(Stage::DieWait, cause));
        (us(of.stage(Stage::Array)), waited(cause::HOST_WRITE), waited(cause::FAULT))
    })
}

#[test]
fn time_that_a_rule_adds_is_a_wait_behind_the_fault() {
    for planes in [PlaneMode::Independent, PlaneMode::MultiPlane] {
        let of = |rule: &str, of| waits_with(planes, rule, of);
        assert_eq!(of("slow by=1ms nth=1", 'r'), [(READ, 0, 1_000), (READ, READ + TRANSFER - 1, 1_000)]);
        assert_eq!(of("slow by=1ms nth=1", 'p'), [(PROGRAM, 0, 1_000), (READ, A_PROGRAM - 1, 1_000)]);
        assert_eq!(of("slow by=1ms nth=1", 'e'), [(ERASE, 0, 1_000), (READ, ERASE - 1, 1_000)]);
        assert_eq!(of("slow by=1ms nth=1", 'c'), [(0, 0, 0), (READ, ERASE - 1, 1_000)]);
        assert_eq!(of("stuck timeout=3ms nth=1", 'r'), [(0, 0, 3_000), (READ, 0, 2_999)]);
        assert_eq!(of("stuck timeout=3ms nth=1", 'c'), [(0, 0, 0), (READ, 0, 2_999)]);
    }
}
