//! Erases: of a block, and of blocks in several planes of a die at once. ONFI calls the latter multi-plane erase: 60h
//! and an address for each plane, with D1h after each but the last, and D0h after the last.

use std::collections::BTreeMap;

use nandscape_drive::Breakdown;
use nandscape_sim::{Span, Who};
use smallvec::SmallVec;

use crate::fault::{MediaError, Operation};
use crate::geometry::BlockId;
use crate::media::Media;
use crate::power::Underway;
use crate::steps::Step;
use crate::watch::For;

/// Blocks that one command erases, of a LUN and of different planes.
pub type ErasedTogether = SmallVec<[BlockId; 4]>;

/// What slows an erase command. It takes as long as the slowest of its blocks, with its delay.
struct Slowed {
    hang: Option<Span>,
    longer: Span,
    delay: Option<Span>,
}

impl Slowed {
    fn of<'a>(erases: impl Iterator<Item = &'a Underway<'a>> + Clone) -> Slowed {
        let longer = erases.clone().map(Underway::longer).max().unwrap_or(Span::ZERO);
        let delayed = |erase: &Underway<'_>| erase.delay().map(|delay| erase.longer() + delay);
        Slowed {
            hang: erases.clone().filter_map(Underway::hang).max(),
            longer,
            delay: erases.filter_map(delayed).max().filter(|all| *all > longer).map(|all| all - longer),
        }
    }
}

impl Media {
    /// The array step of an erase, which takes `longer` in a worn block.
    pub(crate) fn erase_step(&self, block: BlockId, longer: Span) -> Step {
        let suspend = self.timing.features.suspend.erase;
        Step { name: "erase", time: self.timing.erase + longer, detail: block.0, suspend }
    }

    /// Erases a block.
    ///
    /// # Errors
    /// When the erase failed.
    pub async fn erase(&self, block: BlockId, who: Who, breakdown: &mut Breakdown) -> Result<(), MediaError> {
        let under_way = self.begin_erase(block, who)?;
        under_way.tell(breakdown);
        if self.remote.is_some() {
            let _register = self.lun(self.geometry.plane_of(block)).erase(who, breakdown).await;
            return Box::pin(self.erase_elsewhere(&under_way, block)).await;
        }
        self.erase_step_of(&[block], Slowed::of(std::iter::once(&under_way)), who, breakdown).await;
        self.end_erase(&under_way, block)
    }

    /// Erases blocks with one command, in the time of the slowest of them. Returns how each ended, in their order.
    ///
    /// # Panics
    /// If they are not a group of [`Media::erased_together`].
    pub async fn erase_together(
        &self,
        blocks: &[BlockId],
        who: Who,
        breakdown: &mut Breakdown,
    ) -> SmallVec<[Result<(), MediaError>; 4]> {
        if self.remote.is_some() || blocks.len() < 2 {
            let mut ended = SmallVec::new();
            for block in blocks {
                ended.push(self.erase(*block, who, breakdown).await);
            }
            return ended;
        }
        assert_eq!(self.erased_together(blocks).len(), 1, "{blocks:?} are of one LUN and of different planes");
        let begun: SmallVec<[_; 4]> = blocks.iter().map(|block| self.begin_erase(*block, who)).collect();
        let slowed = Slowed::of(begun.iter().flatten());
        let hang = slowed.hang;
        if begun.iter().any(Result::is_ok) {
            self.erase_step_of(blocks, slowed, who, breakdown).await;
        }
        let end = |(begun, block): (&Result<Underway<'_>, MediaError>, &BlockId)| match begun {
            // A LUN that hangs has erased none of them.
            Ok(under_way) if hang.is_some() => under_way.end().and(Err(MediaError::Failed)),
            Ok(under_way) => self.end_erase(under_way, *block),
            Err(error) => Err(*error),
        };
        begun.iter().zip(blocks).map(end).collect()
    }

    /// Blocks in groups that [`Media::erase_together`] erases at once; single blocks if planes do not work together.
    pub fn erased_together(&self, blocks: &[BlockId]) -> Vec<ErasedTogether> {
        if !self.planes_together {
            return blocks.iter().map(|block| ErasedTogether::from_slice(&[*block])).collect();
        }
        let mut groups: BTreeMap<_, ErasedTogether> = BTreeMap::new();
        let mut of_plane = BTreeMap::new();
        for block in blocks {
            let plane = self.geometry.plane_of(*block);
            let nth: &mut u32 = of_plane.entry(plane.0).or_default();
            groups.entry((*nth, self.lun_number(plane))).or_default().push(*block);
            *nth += 1;
        }
        groups.into_values().collect()
    }

    fn begin_erase(&self, block: BlockId, who: Who) -> Result<Underway<'_>, MediaError> {
        self.begin(Operation::Erase, std::iter::empty(), block, For::new(who.cause, 0))
    }

    /// The command and the array time; for a LUN that hangs, the time until its reset.
    async fn erase_step_of(&self, blocks: &[BlockId], slowed: Slowed, who: Who, breakdown: &mut Breakdown) {
        if let Some(time) = slowed.hang {
            return Box::pin(self.hang(self.geometry.page_at(blocks[0], 0), time, who, breakdown)).await;
        }
        let plane = self.geometry.plane_of(blocks[0]);
        let channel = self.geometry.channel_of(plane) as usize;
        let mut register = self.lun(plane).erase(who, breakdown).await;
        if self.has_command_cycles() {
            for _ in blocks {
                self.command(channel, who, breakdown).await;
            }
        }
        let step = self.erase_step(blocks[0], slowed.longer);
        self.array(&mut register, plane, step, breakdown).await;
        if let Some(time) = slowed.delay {
            Box::pin(self.delay(&mut register, plane, Step { time, ..step }, breakdown)).await;
        }
    }
}
