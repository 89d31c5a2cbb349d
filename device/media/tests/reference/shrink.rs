//! Makes a case on which simulator and model differ as small as it gets: fewer customers, fewer operations, fewer
//! options, as long as they differ.

use std::collections::BTreeMap;

use crate::compare::Case;
use crate::drive::{Drive, Page};
use crate::script::{Op, Part, Work};

/// Options that can be off whatever the script does.
const OFF: [fn(&mut Drive); 16] = [
    |drive| drive.command = 0,
    |drive| drive.cache_read = true,
    |drive| drive.cache_program = true,
    |drive| drive.ecc_time = 0,
    |drive| drive.engines = 0,
    |drive| drive.pipelined = false,
    |drive| drive.retry_shares.clear(),
    |drive| drive.retry_time = 0,
    |drive| drive.suspend_program = None,
    |drive| drive.suspend_erase = None,
    |drive| drive.resume = 0,
    |drive| drive.min_run = 0,
    |drive| drive.limit = 0,
    |drive| drive.copyback_ecc = false,
    |drive| drive.partial_transfer = true,
    |drive| drive.bus = (4_096, 100),
];

/// The smallest case found by leaving things out one after the other.
pub(crate) fn shrink(mut case: Case, differ: impl Fn(&Case) -> bool) -> Case {
    while let Some(smaller) = smaller(&case).into_iter().find(|smaller| differ(smaller)) {
        case = smaller;
    }
    case
}

/// Everything that can be left out, the largest first.
fn smaller(case: &Case) -> Vec<Case> {
    let mut all = Vec::new();
    let mut with = |change: &dyn Fn(&mut Case)| {
        let mut smaller = case.clone();
        change(&mut smaller);
        if smaller != *case && smaller.script.iter_mut().all(|ops| renumber(&smaller.drive, ops)) {
            all.push(smaller);
        }
    };
    for customer in 0..case.script.len() {
        with(&|case| case.script[customer].clear());
        let length = case.script[customer].len();
        with(&|case| case.script[customer].truncate(length / 2));
        for at in (0..length).rev() {
            with(&|case| leave_out(&mut case.script[customer], at));
            let Work::Collect { parts, .. } = &case.script[customer][at].work else { continue };
            for part in 0..parts.len() {
                with(&|case| {
                    let Work::Collect { parts, .. } = &mut case.script[customer][at].work else { return };
                    parts.remove(part);
                });
            }
        }
    }
    OFF.iter().for_each(|off| with(&|case| off(&mut case.drive)));
    all
}

/// An operation after one that is left out comes later by the think time of the latter.
fn leave_out(ops: &mut Vec<Op>, at: usize) {
    let think = ops.remove(at).think;
    if let Some(next) = ops.get_mut(at) {
        next.think += think;
    }
}

/// Blocks are filled in order: gives pages new numbers after something was left out. Returns whether that is possible.
fn renumber(drive: &Drive, ops: &mut [Op]) -> bool {
    let mut blocks = BTreeMap::new();
    ops.iter_mut().all(|op| match &mut op.work {
        Work::Read { page, erases, .. } => read(&mut blocks, *page, erases),
        Work::Program { pages } => program(drive, &mut blocks, pages.iter_mut()),
        Work::Erase { plane, block } => erase(&mut blocks, *plane, *block),
        Work::Collect { parts, .. } => parts.iter_mut().all(|part| match part {
            Part::Copy { pages } => pages.iter_mut().all(|(_, to)| program(drive, &mut blocks, [to].into_iter())),
            Part::Read { page, erases, .. } => read(&mut blocks, *page, erases),
            Part::Program { pages } => program(drive, &mut blocks, pages.iter_mut()),
            Part::Erase { plane, block } => erase(&mut blocks, *plane, *block),
        }),
    })
}

/// By plane and block: the next page, and how often it was erased.
type Blocks = BTreeMap<(u32, u32), (u32, u32)>;

fn read(blocks: &mut Blocks, page: Page, erases: &mut u32) -> bool {
    *erases = blocks.entry((page.plane, page.block)).or_default().1;
    true
}

fn erase(blocks: &mut Blocks, plane: u32, block: u32) -> bool {
    let (next, erases) = blocks.entry((plane, block)).or_default();
    (*next, *erases) = (0, *erases + 1);
    true
}

/// Pages of several planes keep the same numbers.
fn program<'a>(drive: &Drive, blocks: &mut Blocks, pages: impl Iterator<Item = &'a mut Page>) -> bool {
    let mut first = BTreeMap::new();
    for page in pages {
        let (next, _) = blocks.entry((page.plane, page.block)).or_default();
        first.entry(page.plane).or_insert(*next);
        page.number = *next;
        *next += 1;
        if *next > drive.pages_per_block {
            return false;
        }
    }
    let mut numbers = first.into_values();
    let one = numbers.next();
    numbers.all(|number| Some(number) == one)
}
