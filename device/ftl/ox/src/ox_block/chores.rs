//! Background work next to the host's commands, each a separate task.

use nandscape_device_ftl_core::address::{Lpn, SlotId};
use nandscape_device_ftl_core::component::Stopped;
use nandscape_device_media::{BlockId, PageImage, PlaneId, UnitId};

use super::core::{Core, Held};
use super::pages::Kind;
use super::state::Mover;

/// A task.
pub(super) enum Chore {
    /// The start of the drive.
    Start,
    /// Writes the log while pages of it are due.
    Log,
    /// Takes checkpoints while they are wanted.
    Checkpoint,
    /// Writes a fragment of the map.
    Fragment { index: u32, _held: Held },
    /// Writes a fragment of another table.
    Table { kind: Kind, index: u32, bytes: Option<Vec<u8>>, _held: Held },
    /// Reads the sectors that a slot lacks.
    Fill(SlotId),
    /// Collects a channel.
    Collect(u32),
    /// Collects a line.
    CollectLine(u32),
    /// Writes the list at the end of a block.
    Tail(BlockId),
    /// Moves units.
    Move { units: Move, _held: Held },
    /// Erases a block, or retires it.
    Release(BlockId),
    /// Writes tables of bad blocks.
    BadTables,
    /// Scans the blocks of a plane after a power cut.
    Probe { plane: PlaneId, _held: Held },
}

/// Units that are moved to a page.
pub(super) struct Move {
    pub(super) units: Vec<(Lpn, UnitId)>,
    pub(super) image: PageImage,
    pub(super) channel: u32,
}

impl Core {
    /// Does a chore. A chore stopped by a power cut has nothing to clean up: its state is void.
    pub(super) async fn do_chore(&self, chore: &mut Chore) {
        let _: Result<(), Stopped> = match chore {
            Chore::Start => self.first_start().await,
            Chore::Log => self.write_log().await,
            Chore::Checkpoint => Box::pin(self.take_checkpoints()).await,
            Chore::Fragment { index, .. } => self.write_fragment(*index, Mover::Checkpoint).await,
            Chore::Table { kind, index, bytes, .. } => self.write_table(*kind, *index, bytes.take()).await,
            Chore::Fill(slot) => self.fill(*slot).await,
            Chore::Collect(channel) => Box::pin(self.collect(*channel)).await,
            Chore::CollectLine(line) => Box::pin(self.collect_line(*line)).await,
            Chore::Tail(block) => self.write_tail(*block).await,
            Chore::Move { units, .. } => self.move_batch(units).await,
            Chore::Release(block) => self.release(*block).await,
            Chore::BadTables => self.write_bad_tables().await,
            Chore::Probe { plane, .. } => self.probe_plane(*plane).await,
        };
    }
}
