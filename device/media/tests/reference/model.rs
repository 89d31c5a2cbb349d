//! The same script through the model: a task for each customer.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use nandscape_device_media::{
    BlockId, Crossing, Ecc, Features, Holding, Interleaving, Media, MediaError, Misuse, PageId, PageImage, PlaneId,
    PlaneMode, Priority, ProgramUnit, ReadRetry, Suspend,
};
use nandscape_device_rig::{TestFlash, image, plant_block};
use nandscape_drive::{Breakdown, Stage};
use nandscape_sim::units::Rate;
use nandscape_sim::{Executor, Resource, Seed, Sim, Span, Wait};

use crate::drive::{Drive, Page, Planes, Scheme};
use crate::outcome::{Outcome, Served, Stages};
use crate::script::{Op, Part, Script, Work};

/// Longer than any script takes.
const LONG: Span = Span::from_ns(1 << 50);

fn spans(times: &[u64]) -> Vec<Span> {
    times.iter().copied().map(Span::from_ns).collect()
}

fn features(drive: &Drive) -> Features {
    let span = Span::from_ns;
    Features {
        command: span(drive.command),
        planes: match drive.planes {
            Planes::Independent => PlaneMode::Independent,
            Planes::Die => PlaneMode::Die,
            Planes::MultiPlane => PlaneMode::MultiPlane,
        },
        program_unit: if drive.word_lines { ProgramUnit::WordLine } else { ProgramUnit::Page },
        // Its rules are in one place, which hand-made timelines check: tests/features/interleaving.rs.
        interleaving: Interleaving::Free,
        cache_read: drive.cache_read,
        cache_program: drive.cache_program,
        ecc: Ecc {
            time: span(drive.ecc_time),
            codeword: drive.codeword,
            engines: drive.engines,
            pipelined: drive.pipelined,
        },
        read_retry: ReadRetry { probability: drive.retry_shares.clone(), time: span(drive.retry_time) },
        suspend: Suspend {
            program: drive.suspend_program.map(span),
            erase: drive.suspend_erase.map(span),
            resume: span(drive.resume),
            min_run: span(drive.min_run),
            limit: (drive.limit > 0).then_some(drive.limit),
        },
    }
}

pub(crate) fn media(sim: &Sim, drive: &Drive) -> Rc<Media> {
    let flash = TestFlash {
        channels: drive.channels,
        dies: drive.dies_per_channel,
        planes: drive.planes_per_die,
        blocks: drive.blocks_per_plane(),
        pages: drive.pages_per_block,
        units_per_page: drive.units_per_page,
        cell: drive.cell,
        read: spans(&drive.read),
        // One time for all with word lines.
        program: spans(&(0..4).map(|kind| drive.program[kind.min(drive.program.len() - 1)]).collect::<Vec<_>>()),
        erase: Span::from_ns(drive.erase),
        bus: Rate::new(drive.bus.0, Span::from_ns(drive.bus.1)),
        registers: drive.registers,
        partial_transfer: drive.partial_transfer,
        features: features(drive),
        seed: Seed::new(drive.seed),
        ..TestFlash::default()
    };
    let media = flash.media(sim);
    let full = |plane| media.geometry().block_of(full_page(drive, plane, 0));
    (0..drive.total_planes()).for_each(|plane| plant_block(&media, full(plane)));
    media
}

/// A page of the block of a plane that is full from the beginning.
fn full_page(drive: &Drive, plane: u32, number: u32) -> PageId {
    page_id(drive, Page { plane, block: drive.blocks_per_plane() - 1, number })
}

/// A read of a page takes the same time whether the page is programmed or not.
fn has_been_read<T>(ended: Result<T, MediaError>) {
    match ended {
        Ok(_) | Err(MediaError::Misuse(Misuse::NotProgrammed)) => {}
        Err(error) => panic!("{error}"),
    }
}

/// One customer and the drive it uses.
struct Customer<'a> {
    sim: Sim,
    /// The gate that host operations pass, and that collections of the controller close.
    gate: Rc<Resource>,
    media: Rc<Media>,
    priority: Priority,
    drive: &'a Drive,
}

/// The number of a page in the model.
fn page_id(drive: &Drive, page: Page) -> PageId {
    PageId((page.plane * drive.blocks_per_plane() + page.block) * drive.pages_per_block + page.number)
}

/// How many retries a page needs: the simulator takes them as given.
pub(crate) fn retries(drive: &Drive) -> impl Fn(Page, u32) -> u32 {
    let (media, drive) = (media(&Executor::new().sim(), drive), drive.clone());
    move |page, erases| media.retries(page_id(&drive, page), erases)
}

impl Customer<'_> {
    fn block(&self, plane: u32, block: u32) -> BlockId {
        BlockId(plane * self.drive.blocks_per_plane() + block)
    }

    fn page(&self, page: Page) -> PageId {
        page_id(self.drive, page)
    }

    /// The programmed page that stands for the source of a copy: a copy needs no retries, so only the page number
    /// counts.
    fn source(&self, page: Page) -> PageId {
        full_page(self.drive, page.plane, page.number)
    }

    /// Pages that are programmed together, and their image.
    fn pages(&self, pages: &[Page]) -> (Vec<PageId>, PageImage) {
        (pages.iter().map(|&page| self.page(page)).collect(), image(self.drive.units_per_page * pages.len() as u32))
    }

    /// Does one operation; returns its outcome and its breakdown.
    async fn serve(&self, op: &Op) -> (Served, Breakdown) {
        let (asked, mut breakdown) = (self.sim.now().ns(), Breakdown::new());
        let mut loaded = None;
        let who = self.priority.who(op.cause);
        let is_gated = op.is_hosts() && matches!(op.work, Work::Read { .. } | Work::Program { .. });
        if is_gated && !self.gate.is_idle() {
            self.gate.occupy(Span::ZERO, who, breakdown.waits(Stage::Queue)).await;
        }
        match &op.work {
            Work::Read { page, bytes, .. } => {
                has_been_read(self.media.read(self.page(*page), *bytes, who, &mut breakdown).await)
            }
            Work::Program { pages } => {
                let note = |so_far: &Breakdown| loaded = Some(asked + so_far.total().ns());
                let (pages, image) = self.pages(pages);
                self.media.program_together(&pages, &image, who, &mut breakdown, note).await.unwrap();
            }
            Work::Erase { plane, block } => {
                self.media.erase(self.block(*plane, *block), who, &mut breakdown).await.unwrap()
            }
            Work::Collect { plane, preemptible, parts } => {
                self.collect(*plane, *preemptible, parts, op).await;
            }
        }
        let stages = (!matches!(op.work, Work::Collect { .. })).then(|| stages(&breakdown));
        (Served { asked, loaded, ended: self.sim.now().ns(), stages }, breakdown)
    }

    async fn collect(&self, plane: u32, preemptible: bool, parts: &[Part], op: &Op) {
        let who = self.priority.who(op.cause);
        let crossing = if self.drive.copyback_ecc { Crossing::Page } else { Crossing::Nothing };
        let (holding, closes_gate) = match self.drive.gc_scheme {
            Scheme::Nothing => (Holding::Nothing, false),
            Scheme::Plane => (Holding::Plane, false),
            Scheme::Channel => (Holding::Channel, false),
            Scheme::Controller => (Holding::Channel, true),
        };
        // Released last.
        let _closed = match closes_gate {
            true => Some(self.gate.take(who, &mut Wait::default()).await),
            false => None,
        };
        let mut seized = self.media.seize(PlaneId(plane), holding, who).await;
        seized.set_preemptible(preemptible);
        for part in parts {
            match part {
                Part::Copy { pages } => {
                    let pages: Vec<_> = pages.iter().map(|&(from, to)| (self.source(from), self.page(to))).collect();
                    seized.copyback(&pages, crossing).await.unwrap();
                }
                Part::Read { page, bytes, .. } => {
                    let ended = seized.read(&[(self.page(*page), *bytes)]).await;
                    has_been_read(ended.map_err(|broken| broken.error));
                }
                Part::Program { pages } => {
                    let (pages, image) = self.pages(pages);
                    seized.program_together(&pages, &image).await.unwrap();
                }
                Part::Erase { plane, block } => seized.erase(self.block(*plane, *block)).await.unwrap(),
            }
        }
    }
}

fn stages(breakdown: &Breakdown) -> Stages {
    let of = |stage| breakdown.stage(stage).ns();
    assert_eq!(of(Stage::Firmware) + of(Stage::Link), 0, "the flash has no firmware and no link");
    Stages {
        queue: of(Stage::Queue),
        die_wait: of(Stage::DieWait),
        array: of(Stage::Array),
        channel_wait: of(Stage::ChannelWait),
        transfer: of(Stage::Transfer),
        ecc: of(Stage::Ecc),
    }
}

/// Polls `work`, and abandons it when `patience` is over.
async fn within(sim: &Sim, patience: Span, work: impl Future) {
    let (mut work, mut patience) = (Box::pin(work), pin!(sim.sleep(patience)));
    poll_fn(|context| match work.as_mut().poll(context) {
        Poll::Ready(_) => Poll::Ready(()),
        Poll::Pending => patience.as_mut().poll(context),
    })
    .await;
    drop(work);
}

/// The outcome of each operation of a customer: none if it was dropped.
type Results = Vec<Vec<Option<(Served, Breakdown)>>>;

/// Runs a script on erased flash. The n-th operation of a customer is dropped after `patience(customer, n)`.
fn serve(
    executor: &mut Executor,
    media: &Rc<Media>,
    drive: &Drive,
    script: &Script,
    patience: &dyn Fn(usize, usize) -> Option<u64>,
) -> Results {
    let sim = executor.sim();
    let results = Rc::new(RefCell::new(vec![Vec::new(); script.len()]));
    let gate = Rc::new(Resource::new(&sim));
    let priority = if drive.reads_first { Priority::ReadsFirst } else { Priority::Fifo };
    for (number, ops) in script.iter().enumerate() {
        let ops: Vec<_> = (0..).map(|at| patience(number, at)).zip(ops.clone()).collect();
        let (sim, gate, media) = (sim.clone(), gate.clone(), media.clone());
        let (drive, results) = (drive.clone(), results.clone());
        sim.clone().spawn(async move {
            let customer = Customer { sim, gate, media, priority, drive: &drive };
            for (patience, op) in &ops {
                customer.sim.sleep(Span::from_ns(op.think)).await;
                let result = match patience {
                    None => Some(customer.serve(op).await),
                    Some(patience) => {
                        within(&customer.sim, Span::from_ns(*patience), customer.serve(op)).await;
                        None
                    }
                };
                results.borrow_mut()[number].push(result);
            }
        });
    }
    executor.block_on(sim.sleep(LONG)).expect("the clock runs");
    results.take()
}

/// Runs a script; returns its outcome, and the breakdown of each operation of each customer.
pub(crate) fn run(mut executor: Executor, drive: &Drive, script: &Script) -> (Outcome, Vec<Vec<Breakdown>>) {
    let media = media(&executor.sim(), drive);
    let results = serve(&mut executor, &media, drive, script, &|_, _| None);
    let mut arrays: Vec<u64> = media.array_usage().iter().map(|usage| usage.total().ns()).collect();
    arrays.resize(drive.total_planes() as usize, 0);
    let channels = media.channel_usage().iter().map(|usage| usage.total().ns()).collect();
    let (served, logs) = results.into_iter().map(|ops| ops.into_iter().flatten().unzip()).unzip();
    (Outcome { served, arrays, channels }, logs)
}

/// Runs a script whose operations may be dropped, and then another on the same drive.
pub(crate) fn run_after(
    mut executor: Executor,
    drive: &Drive,
    script: &Script,
    patience: &dyn Fn(usize, usize) -> Option<u64>,
    then: &Script,
) -> Vec<Vec<Served>> {
    let media = media(&executor.sim(), drive);
    let results = serve(&mut executor, &media, drive, script, patience);
    assert!(results.iter().zip(script).all(|(results, ops)| results.len() == ops.len()), "somebody was left behind");
    let results = serve(&mut executor, &media, drive, then, &|_, _| None);
    results.into_iter().map(|ops| ops.into_iter().flatten().map(|(served, _)| served).collect()).collect()
}
