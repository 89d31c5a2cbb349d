//! Operations that break a rule of NAND. Each fails with its own error, takes no time unless the array has to detect
//! the fault, and leaves the flash as it was.

use std::rc::Rc;

use nandscape_device_media::{
    BlockId, Broken, Crossing, Features, Holding, Media, MediaError, Misuse, PageId, PlaneId, PlaneMode, Priority,
};
use nandscape_device_rig::{TestFlash, image};
use nandscape_drive::Breakdown;
use nandscape_drive::breakdown::cause;
use nandscape_sim::units::Rate;
use nandscape_sim::{Executor, Sim, Span, Who};

const BLOCKS: u32 = 3;
const PAGES: u32 = 4;
const READ: Span = Span::from_us(50);

/// Two planes of one die, and a channel that takes no time.
fn media(sim: &Sim, planes: PlaneMode) -> Rc<Media> {
    let features = Features { planes, ..Features::default() };
    TestFlash { planes: 2, blocks: BLOCKS, pages: PAGES, bus: Rate::UNLIMITED, features, ..TestFlash::default() }
        .media(sim)
}

fn host() -> Who {
    Priority::Fifo.who(cause::HOST_WRITE)
}

/// What programming pages with one command ends with, and how long that takes.
async fn program(sim: &Sim, media: &Media, pages: &[u32]) -> (Result<(), Broken>, Span) {
    let (begun, image) = (sim.now(), image(pages.len() as u32));
    let pages: Vec<PageId> = pages.iter().copied().map(PageId).collect();
    let ended = media.program_together(&pages, &image, host(), &mut Breakdown::new(), |_| ()).await;
    (ended, sim.now() - begun)
}

/// The command fails at once, on a page.
fn fails(misuse: Misuse, page: u32) -> (Result<(), Broken>, Span) {
    (Err(Broken { error: MediaError::Misuse(misuse), page: PageId(page) }), Span::ZERO)
}

/// Runs on a flash whose pages 0 and 1 are programmed. Afterwards exactly those are, and the third can be.
fn after_two_pages(planes: PlaneMode, steps: impl AsyncFnOnce(&Sim, &Media)) {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let media = media(&sim, planes);
    let run = async {
        for page in 0..2 {
            program(&sim, &media, &[page]).await.0.unwrap();
        }
        steps(&sim, &media).await;
        assert_eq!(media.counts().programs, 2);
        assert_eq!((0..6).map(|block| media.pages_programmed(BlockId(block))).collect::<Vec<_>>(), [2, 0, 0, 0, 0, 0]);
        program(&sim, &media, &[2]).await.0.unwrap();
    };
    executor.block_on(run).unwrap();
}

#[test]
fn pages_are_programmed_in_order_and_once() {
    after_two_pages(PlaneMode::Independent, async |sim, media| {
        assert_eq!(program(sim, media, &[3]).await, fails(Misuse::OutOfOrder, 3));
        assert_eq!(program(sim, media, &[1]).await, fails(Misuse::ProgrammedTwice, 1));
        // Of two pages that one command programs, neither is used up.
        assert_eq!(program(sim, media, &[2, 2]).await, fails(Misuse::ProgrammedTwice, 2));
    });
}

#[test]
fn pages_that_do_not_go_together_are_not_programmed() {
    let plane_1 = BLOCKS * PAGES;
    for planes in [PlaneMode::Independent, PlaneMode::MultiPlane] {
        after_two_pages(planes, async |sim, media| {
            assert_eq!(program(sim, media, &[2, plane_1]).await, fails(Misuse::NotTogether, 2));
        });
    }
}

#[test]
fn a_read_beyond_what_is_programmed_takes_its_time_and_fails() {
    after_two_pages(PlaneMode::Independent, async |sim, media| {
        let begun = sim.now();
        let ended = media.read(PageId(2), 4_096, host(), &mut Breakdown::new()).await;
        assert_eq!((ended, sim.now() - begun), (Err(MediaError::Misuse(Misuse::NotProgrammed)), READ));
    });
}

#[test]
fn a_copy_needs_a_programmed_source_and_the_next_page() {
    after_two_pages(PlaneMode::Independent, async |_, media| {
        let mut seized = media.seize(PlaneId(0), Holding::Plane, host()).await;
        for check in [false, true] {
            let mut copy = async |from: u32, to: u32| {
                let moves = [(PageId(0), PageId(PAGES)), (PageId(from), PageId(to))];
                seized.copyback(&moves, if check { Crossing::Page } else { Crossing::Nothing }).await.unwrap_err()
            };
            assert_eq!(Err(copy(1, PAGES + 2).await), fails(Misuse::OutOfOrder, PAGES + 2).0);
            assert_eq!(Err(copy(2, PAGES + 1).await), fails(Misuse::NotProgrammed, 2).0);
        }
    });
}
