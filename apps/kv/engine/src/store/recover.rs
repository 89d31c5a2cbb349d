//! Creating a store, and opening an existing one: its index is rebuilt from the records.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use nandscape_drive::{Drive, Issuer};
use nandscape_sim::Sim;
use nandscape_sim::signal::Signal;
use nandscape_wire_nvme::Status;

use super::damage::Salvage;
use super::form::{self, Superblock};
use super::index::{Index, Place};
use super::{Core, Layout, MIN_SEGMENTS, Shape, Store, StoreStats};

/// Why a store cannot be made or opened.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OpenError {
    /// The drive is too small, or a segment is too small or too large.
    #[error(
        "{blocks} blocks of {lba_bytes} bytes make {segments} segments of {segment_bytes} bytes; {MIN_SEGMENTS} and more are valid, of 64 KiB to 1 GiB"
    )]
    Size {
        /// Blocks that the store may have.
        blocks: u64,
        /// Bytes of a block.
        lba_bytes: u32,
        /// The resulting number of segments.
        segments: u64,
        /// Bytes of a segment.
        segment_bytes: u32,
    },
    /// The drive holds other data.
    #[error("there is neither a store nor nothing at logical block {slba}: make it anew, or name another place")]
    Foreign {
        /// Where.
        slba: u64,
    },
    /// The drive holds a store of another format.
    #[error("the store there has blocks of {there} bytes, and the drive has blocks of {here}")]
    Blocks {
        /// The store's.
        there: u32,
        /// The drive's.
        here: u32,
    },
    /// The drive failed.
    #[error("the drive answers {status} at logical block {slba}")]
    Drive {
        /// Where.
        slba: u64,
        /// The drive's status.
        status: Status,
    },
}

fn failed((slba, status): (u64, Status)) -> OpenError {
    OpenError::Drive { slba, status }
}

impl Store {
    /// Opens the store at this place of a drive, or creates one if the place is empty. `id` is for a new store: it
    /// must differ from that of any earlier store there.
    ///
    /// # Errors
    /// Why not.
    pub async fn open(sim: &Sim, drive: Rc<dyn Drive>, layout: Layout, id: u64) -> Result<Store, OpenError> {
        let new = shape(&layout, &*drive, None, id)?;
        let core = Core::new(sim, drive, new);
        let first = core.read(layout.extent.slba, 1).await.map_err(failed)?;
        match Superblock::of(&first) {
            Some(found) => {
                let here = core.info.lba_bytes;
                if found.lba_bytes != here {
                    return Err(OpenError::Blocks { there: found.lba_bytes, here });
                }
                let shape = shape(&layout, &*core.drive, Some(found), id)?;
                let core = Core::new(sim, core.drive.clone(), shape);
                core.recover().await?;
                Ok(core.start())
            }
            None if first.iter().all(|byte| *byte == 0) => core.make().await,
            None => Err(OpenError::Foreign { slba: layout.extent.slba }),
        }
    }

    /// Creates a store and overwrites any other contents. `id` must differ from that of any earlier store there.
    ///
    /// # Errors
    /// Why not.
    pub async fn create(sim: &Sim, drive: Rc<dyn Drive>, layout: Layout, id: u64) -> Result<Store, OpenError> {
        let shape = shape(&layout, &*drive, None, id)?;
        Core::new(sim, drive, shape).make().await
    }
}

fn shape(layout: &Layout, drive: &dyn Drive, found: Option<Superblock>, id: u64) -> Result<Shape, OpenError> {
    let Layout { extent, segment_bytes } = *layout;
    let lba_bytes = drive.info().lba_bytes;
    let segment_blocks = found.map_or(segment_bytes / lba_bytes, |found| found.segment_blocks);
    let is_size = (64 << 10..=1u64 << 30).contains(&(u64::from(segment_blocks) * u64::from(lba_bytes)));
    let segments = (extent.blocks / u64::from(segment_blocks.max(1))).saturating_sub(1).min(u32::MAX.into());
    let segments = found.map_or(segments, |found| u64::from(found.segments).min(segments));
    if !is_size || segments < u64::from(MIN_SEGMENTS) || found.is_some_and(|found| u64::from(found.segments) > segments)
    {
        return Err(OpenError::Size { blocks: extent.blocks, lba_bytes, segments, segment_bytes });
    }
    let id = found.map_or(id, |found| found.id);
    Ok(Shape { slba: extent.slba, lba_bytes, segment_blocks, segments: segments as u32, id })
}

impl Core {
    fn new(sim: &Sim, drive: Rc<dyn Drive>, shape: Shape) -> Rc<Core> {
        Rc::new(Core {
            sim: sim.clone(),
            info: drive.info(),
            drive,
            issuer: Issuer::new(sim),
            shape,
            index: RefCell::new(Index::new(shape.segments)),
            head: RefCell::new(None),
            free: RefCell::new(VecDeque::new()),
            damaged: RefCell::default(),
            sequence: Cell::new(1),
            queue: RefCell::new(VecDeque::new()),
            came: Signal::new(sim),
            is_closed: Cell::new(false),
            stats: RefCell::new(StoreStats::default()),
        })
    }

    fn start(self: Rc<Self>) -> Store {
        self.sim.spawn(self.clone().write_puts());
        Store { core: self }
    }

    async fn make(self: Rc<Self>) -> Result<Store, OpenError> {
        let Shape { slba, lba_bytes, segment_blocks, segments, id } = self.shape;
        let block = Superblock { lba_bytes, segment_blocks, segments, id }.to_block();
        self.write(slba, &block).await.map_err(|status| OpenError::Drive { slba, status })?;
        self.free.borrow_mut().extend(0..segments);
        Ok(self.start())
    }

    /// Reads every segment that was written. None of them is appended to before it is cleaned: its last record may be
    /// followed by a torn one.
    async fn recover(&self) -> Result<(), OpenError> {
        let mut written = Vec::new();
        for segment in 0..self.shape.segments {
            let lba_bytes = self.shape.lba_bytes as usize;
            match self.read(self.shape.segment_slba(segment), 1).await {
                Ok(first) if form::segment_of(&first, self.shape.id).is_none() => {
                    self.free.borrow_mut().push_back(segment);
                    continue;
                }
                // Whether it was free cannot be known. Records of an earlier use have newer ones elsewhere.
                Ok(_) | Err((_, Status::UNRECOVERED_READ_ERROR)) => {}
                Err(error) => return Err(failed(error)),
            }
            let salvage = self.salvage(segment).await.map_err(failed)?;
            if let Some(sequence) = salvage.sequence(self.shape.id, lba_bytes) {
                self.sequence.set(self.sequence.get().max(sequence + 1));
                self.recover_segment(segment, sequence, &salvage);
            }
            if salvage.lost.is_empty() {
                written.push(segment);
            }
        }
        for segment in written {
            if self.index.borrow().live_in(segment) == 0 {
                let slba = self.shape.segment_slba(segment);
                self.release(segment).await.map_err(|status| OpenError::Drive { slba, status })?;
            }
        }
        Ok(())
    }

    fn recover_segment(&self, segment: u32, sequence: u64, salvage: &Salvage) {
        let mut index = self.index.borrow_mut();
        for (block, record) in salvage.records(sequence, self.shape.lba_bytes as usize) {
            let place = Place {
                segment,
                sequence,
                block,
                blocks: self.shape.record_blocks(record.key.len(), record.value.len()),
                value_bytes: record.value.len() as u32,
                version: record.version,
            };
            index.found(record.key, place);
        }
    }
}
