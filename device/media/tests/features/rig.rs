//! Flash with features, driven operation by operation.
//!
//! SLC unless set otherwise: 40 us to sense, 800 us to program, 2 ms to erase, 10 us for a unit and 20 us for a page of
//! two units on the channel. Two channels with one die of two planes each: planes 0 and 1 share a channel and a die.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use nandscape_device_media::{
    BlockId, Cell, Crossing, Features, Holding, Media, PageId, PlaneId, Priority, Registers, Seized, Suspend,
};
use nandscape_device_rig::{TestFlash, image, plant_block};
use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, Stage};
use nandscape_sim::{Cause, Executor, Seed, Sim, Span, Time};

const BLOCKS: u32 = 4;
const PAGES: u32 = 12;

pub(crate) const READ: Cause = cause::HOST_READ;
pub(crate) const WRITE: Cause = cause::HOST_WRITE;

pub(crate) fn us(us: u64) -> Span {
    Span::from_us(us)
}

/// Programs and erases can be suspended in 5 us, and resumed in 3 us.
pub(crate) fn suspendable() -> Suspend {
    Suspend { program: Some(us(5)), erase: Some(us(5)), resume: us(3), ..Suspend::default() }
}

#[derive(Copy, Clone)]
pub(crate) enum Op {
    Read,
    /// One unit of two.
    ReadHalf,
    /// A page of the first block.
    ReadPage(u32),
    /// The next page of the plane's first block, by the number of pages programmed before.
    Program(u32),
    /// At once: pages from the first on, of this plane and planes after it.
    Together(u32, u32),
    /// The first page of this plane and the second of the next, at once.
    OutOfStep,
    Erase,
    /// At once: a block of this plane and of planes after it.
    EraseTogether(u32),
}

/// A step of a collection.
#[derive(Copy, Clone)]
pub(crate) enum Step {
    Copy { check: bool },
    Move,
    Erase,
}

#[derive(Clone)]
pub(crate) struct Flash {
    pub(crate) sim: Sim,
    media: Rc<Media>,
    priority: Priority,
    ended: Rc<RefCell<Vec<(u64, &'static str)>>>,
    logs: Rc<RefCell<Vec<(&'static str, Breakdown)>>>,
}

impl Flash {
    pub(crate) fn new(executor: &Executor, cell: Cell, registers: Registers, features: Features) -> Flash {
        let sim = executor.sim();
        let flash = TestFlash {
            channels: 2,
            planes: 2,
            blocks: BLOCKS,
            pages: PAGES,
            units_per_page: 2,
            cell,
            read: vec![us(40)],
            program: vec![us(800)],
            registers,
            features,
            seed: Seed::new(0),
            ..TestFlash::default()
        };
        let media = flash.media(&sim);
        (0..4).for_each(|plane| plant_block(&media, full_block(plane)));
        Flash { sim, media, priority: Priority::ReadsFirst, ended: Rc::default(), logs: Rc::default() }
    }

    /// Does an operation on a plane at a time, in microseconds. Its breakdown must sum to its time.
    pub(crate) fn at(&self, at: u64, name: &'static str, plane: u32, op: Op, cause: Cause) {
        let flash = self.clone();
        self.sim.spawn(async move {
            let Flash { sim, media, priority, ended, logs } = flash;
            sim.sleep_until(Time::from_ns(at * 1_000)).await;
            let (who, page) = (priority.who(cause), |plane, number| PageId(plane * BLOCKS * PAGES + number));
            let mut breakdown = Breakdown::new();
            match op {
                Op::Read => media.read(full_page(plane, 0), 8_192, who, &mut breakdown).await.unwrap(),
                Op::ReadPage(number) => media.read(full_page(plane, number), 8_192, who, &mut breakdown).await.unwrap(),
                Op::ReadHalf => media.read(full_page(plane, 0), 4_096, who, &mut breakdown).await.unwrap(),
                Op::Program(number) => media.program(page(plane, number), image(2), who, &mut breakdown).await.unwrap(),
                Op::Together(pages, planes) => {
                    let all = (plane..plane + planes).flat_map(|plane| (0..pages).map(move |number| (plane, number)));
                    let pages: Vec<PageId> = all.map(|(plane, number)| page(plane, number)).collect();
                    media
                        .program_together(&pages, &image(2 * pages.len() as u32), who, &mut breakdown, |_| ())
                        .await
                        .unwrap();
                }
                Op::OutOfStep => {
                    let pages = [page(plane, 0), page(plane + 1, 1)];
                    media.program_together(&pages, &image(4), who, &mut breakdown, |_| ()).await.unwrap();
                }
                Op::Erase => media.erase(BlockId(plane * BLOCKS + 1), who, &mut breakdown).await.unwrap(),
                Op::EraseTogether(planes) => {
                    let blocks: Vec<BlockId> =
                        (plane..plane + planes).map(|plane| BlockId(plane * BLOCKS + 1)).collect();
                    let ended = media.erase_together(&blocks, who, &mut breakdown).await;
                    ended.into_iter().for_each(Result::unwrap);
                }
            }
            assert_eq!(breakdown.total(), sim.now() - Time::from_ns(at * 1_000), "{name}");
            ended.borrow_mut().push((sim.now().ns() / 1_000, name));
            logs.borrow_mut().push((name, breakdown));
        });
    }

    /// Reads a page of a plane.
    pub(crate) async fn read(&self, plane: u32) {
        self.media.read(full_page(plane, 0), 8_192, self.priority.who(READ), &mut Breakdown::new()).await.unwrap();
    }

    /// A read that is dropped after a while, in microseconds both.
    pub(crate) fn give_up_at(&self, at: u64, after: u64, plane: u32) {
        let flash = self.clone();
        self.sim.spawn(async move {
            flash.sim.sleep_until(Time::from_ns(at * 1_000)).await;
            let (mut read, mut patience) = (Box::pin(flash.read(plane)), pin!(flash.sim.sleep(us(after))));
            poll_fn(|context| match read.as_mut().poll(context) {
                Poll::Ready(()) => Poll::Ready(()),
                Poll::Pending => patience.as_mut().poll(context),
            })
            .await;
            drop(read);
        });
    }

    /// A program of a plane's first page that is dropped after a while, in microseconds.
    pub(crate) fn give_up_program(&self, after: u64, plane: u32) {
        let flash = self.clone();
        self.sim.spawn(async move {
            let mut breakdown = Breakdown::new();
            let who = flash.priority.who(WRITE);
            let program = flash.media.program(PageId(plane * BLOCKS * PAGES), image(2), who, &mut breakdown);
            let (mut program, mut patience) = (Box::pin(program), pin!(flash.sim.sleep(us(after))));
            poll_fn(|context| match program.as_mut().poll(context) {
                Poll::Ready(_) => Poll::Ready(()),
                Poll::Pending => patience.as_mut().poll(context),
            })
            .await;
            drop(program);
        });
    }

    /// A collection of a plane that does some steps.
    pub(crate) fn collect_at(&self, at: u64, name: &'static str, plane: u32, preemptible: bool, steps: Vec<Step>) {
        let flash = self.clone();
        self.sim.spawn(async move {
            let Flash { sim, media, priority, ended, .. } = flash;
            sim.sleep_until(Time::from_ns(at * 1_000)).await;
            let mut seized = media.seize(PlaneId(plane), Holding::Plane, priority.who(cause::GC)).await;
            seized.set_preemptible(preemptible);
            collect(&mut seized, plane, &steps).await;
            drop(seized);
            ended.borrow_mut().push((sim.now().ns() / 1_000, name));
        });
    }

    pub(crate) fn run(&self, executor: &mut Executor) -> Vec<(u64, &'static str)> {
        executor.block_on(self.sim.sleep(Span::from_s(1))).unwrap();
        self.ended.take()
    }

    /// Microseconds in a stage.
    pub(crate) fn spent(&self, name: &str, stage: Stage) -> u64 {
        self.breakdown(name).stage(stage).ns() / 1_000
    }

    /// Microseconds waited in a stage behind a cause.
    pub(crate) fn waited(&self, name: &str, stage: Stage, cause: Cause) -> u64 {
        self.breakdown(name).waited(stage, cause).ns() / 1_000
    }

    /// Microseconds that each LUN's array was busy.
    pub(crate) fn busy(&self) -> Vec<u64> {
        self.media.array_usage().iter().map(|usage| usage.total().ns() / 1_000).collect()
    }

    /// How often programs and erases were suspended.
    pub(crate) fn suspensions(&self) -> (u64, u64) {
        let counts = self.media.counts();
        (counts.program_suspensions, counts.erase_suspensions)
    }

    fn breakdown(&self, name: &str) -> Breakdown {
        let logs = self.logs.borrow();
        logs.iter().find(|(other, _)| *other == name).expect("it has ended").1.clone()
    }
}

/// A page of the block of a plane that is full from the beginning.
fn full_page(plane: u32, number: u32) -> PageId {
    PageId(full_block(plane).0 * PAGES + number)
}

/// The last block of a plane.
fn full_block(plane: u32) -> BlockId {
    BlockId((plane + 1) * BLOCKS - 1)
}

async fn collect(seized: &mut Seized<'_>, plane: u32, steps: &[Step]) {
    let page = |block: u32, number| PageId((plane * BLOCKS + block) * PAGES + number);
    for (next, step) in (0..).zip(steps) {
        match *step {
            Step::Copy { check } => drop(
                seized
                    .copyback(
                        &[(full_page(plane, next), page(2, next))],
                        if check { Crossing::Page } else { Crossing::Nothing },
                    )
                    .await
                    .unwrap(),
            ),
            Step::Move => {
                seized.read(&[(full_page(plane, next), 8_192)]).await.unwrap();
                seized.program(page(2, next), image(2)).await.unwrap();
            }
            Step::Erase => seized.erase(BlockId(plane * BLOCKS + 1)).await.unwrap(),
        }
    }
}
