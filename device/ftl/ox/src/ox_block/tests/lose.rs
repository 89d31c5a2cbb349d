//! Losses of flash after a power cut, in addition to torn operations, and the requirements after each.
//!
//! | loss | what must hold |
//! |---|---|
//! | one copy of every fixed place, where the other is whole | all that holds without a loss |
//! | both copies of the table of bad blocks of one channel | all that holds without a loss |
//! | both copies of the checkpoint | the drive is out of service, and reports it |
//! | a page of the log that is not the last | the same, or all that holds without a loss, where the page was not needed |

use nandscape_device_media::{BlockId, PageId};
use nandscape_sim::Rng;

use super::rig::Rig;
use crate::ox_block::pages::{self, Kind};
use crate::parts::{FixedPage, LogPage, Reassembly};

/// A loss.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Lose {
    Nothing,
    /// The first copy of every fixed place whose second is whole.
    First,
    /// The second copy of every fixed place whose first is whole.
    Second,
    /// Both copies of the first channel's table of bad blocks.
    Table,
    /// Both copies of the checkpoint.
    Checkpoint,
    /// A page of the log.
    Log,
}

const NAMES: [(&str, Lose); 5] = [
    ("first", Lose::First),
    ("second", Lose::Second),
    ("table", Lose::Table),
    ("checkpoint", Lose::Checkpoint),
    ("log", Lose::Log),
];

impl Lose {
    pub(super) fn name(self) -> &'static str {
        NAMES.iter().find(|(_, lose)| *lose == self).map_or("nothing", |(name, _)| name)
    }

    pub(super) fn named(name: &str) -> Option<Lose> {
        NAMES.iter().find(|(known, _)| *known == name).map(|(_, lose)| *lose)
    }

    /// Whether the drive may be out of service afterwards.
    pub(super) fn may_refuse(self) -> bool {
        matches!(self, Lose::Checkpoint | Lose::Log)
    }

    /// Whether it must be.
    pub(super) fn must_refuse(self) -> bool {
        self == Lose::Checkpoint
    }

    /// Loses it. Returns whether anything was lost.
    pub(super) fn happen(self, rig: &Rig, rng: &mut Rng) -> bool {
        let copies = rig.copies();
        let checkpoint = copies.len() - 1;
        let doomed: Vec<BlockId> = match self {
            Lose::Nothing => Vec::new(),
            Lose::First => copies.iter().filter(|pair| is_whole(rig, pair[1])).map(|pair| pair[0]).collect(),
            Lose::Second => copies.iter().filter(|pair| is_whole(rig, pair[0])).map(|pair| pair[1]).collect(),
            Lose::Table => copies[0].to_vec(),
            Lose::Checkpoint => copies[checkpoint].to_vec(),
            Lose::Log => return lose_log_page(rig, rng),
        };
        doomed.iter().for_each(|block| rig.media.plant_erase(*block));
        !doomed.is_empty()
    }
}

/// Whether a copy of a fixed place has a whole version.
fn is_whole(rig: &Rig, block: BlockId) -> bool {
    let geometry = rig.media.geometry();
    let pages = (0..rig.media.pages_programmed(block)).map(|page| geometry.page_at(block, page));
    let pages: Vec<Option<FixedPage>> = pages.map(|page| fixed_page(rig, page)).collect();
    let kinds = pages.iter().flatten().map(FixedPage::kind);
    kinds.take(1).any(|kind| {
        let mut reassembly = Reassembly::new(kind);
        pages.iter().for_each(|page| reassembly.push(page.clone()));
        reassembly.best().is_some()
    })
}

fn fixed_page(rig: &Rig, page: PageId) -> Option<FixedPage> {
    let (kind, _, bytes) = pages::contents(&rig.media, page).filter(|_| rig.media.is_readable(page))?;
    if kind == Kind::Fixed { FixedPage::decode(&bytes) } else { None }
}

/// Loses one of the pages of the chain, except the last.
fn lose_log_page(rig: &Rig, rng: &mut Rng) -> bool {
    let geometry = rig.media.geometry();
    let (epoch, numbers) = rig.chain();
    let number_of = |page: &PageId| {
        let (kind, _, bytes) = pages::contents(&rig.media, *page).filter(|_| rig.media.is_readable(*page))?;
        let found = LogPage::decode(&bytes).filter(|_| kind == Kind::Log)?;
        (found.epoch == epoch && numbers.contains(&found.number)).then_some(found.number)
    };
    let all = (0..geometry.blocks())
        .map(BlockId)
        .flat_map(|block| (0..rig.media.pages_programmed(block)).map(move |page| geometry.page_at(block, page)));
    let mut chain: Vec<(u64, PageId)> = all.filter_map(|page| Some((number_of(&page)?, page))).collect();
    chain.sort_unstable();
    // The page after it shows that a page is missing.
    chain.pop();
    if chain.is_empty() {
        return false;
    }
    let (_, page) = chain[rng.below(chain.len() as u64) as usize];
    rig.media.plant_unreadable(page);
    true
}
