//! The NVM command set over an FTL.
//!
//! | file | what |
//! |---|---|
//! | `command` | parses 64 bytes into a typed command, or into the status of the error |
//! | `hinted` | reads that fail fast on background work, or ask for a notice |
//! | `read`, `write`, `copy`, `deallocate`, `flush` | what each command does |
//! | `atomic` | blocks of several ranges, all or none |
//! | `lss` | buffers and batches of pages of a log-structured store |
//! | `fused` | a fused Compare and Write |
//! | `exclusive` | extents that only one command may change |
//! | `fdp` | Flexible Data Placement |
//! | `streams` | the Streams directive |
//! | `placed` | writes with a placement identifier or a stream |
//! | `scattered` | commands over scattered blocks |
//! | `memory` | controller memory for the data of commands |
//! | `turns` | turns of long work inside the drive |
//! | `metadata` | commands on blocks with metadata |
//! | `storage` | counts and power |
//! | `identify`, `health`, `drive_log` | Identify and log pages |
//!
//! Left out: reservations, which the queue engine checks first.

mod atomic;
pub(super) mod command;
pub(super) mod copy;
mod deallocate;
mod drive_log;
mod exclusive;
pub(crate) mod fdp;
mod flush;
mod fused;
mod health;
mod hinted;
mod identify;
mod lss;
mod memory;
mod metadata;
mod placed;
mod read;
mod scattered;
mod storage;
pub(crate) mod streams;
mod turns;
mod write;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_device_ftl_core::offers::Sanitization;
use nandscape_device_ftl_core::{Collections, Extent, Ftl, Interface, PlacementReport, Reader};
use nandscape_device_media::{Media, MediaError};
use nandscape_drive::Breakdown;
use nandscape_sim::{Sim, Span};
use nandscape_wire_nvme::identify::{Controller as IdentifyController, Namespace as IdentifyNamespace};
use nandscape_wire_nvme::log::{CommandsAndEffects, EnduranceGroup};
use nandscape_wire_nvme::{Status, SubmissionEntry};

use super::{Administration, Command, CommandSet, Fused, Later, Placement, Reply, SetInfo, Storage, Streams, Windows};
use crate::config::{BufferMode, ControllerConfig};
use crate::namespace::Namespace;
use crate::notices::Tracker;
use crate::subsystem::LatencyFigures;
use command::{NvmCommand, ReadOrWrite};
pub(crate) use drive_log::{FlashLog, by_cause};
use exclusive::Exclusive;
use fdp::Fdp;
pub(super) use health::Health;
use memory::Memory;
use metadata::WithMetadata;
use read::{ToController, ToHost, failure};
use turns::Turns;
use write::{FromHost, Zeros};

/// The NVM command set over an FTL.
pub struct Nvm<F: Ftl> {
    sim: Sim,
    media: Rc<Media>,
    ftl: Rc<F>,
    /// Reads for Read.
    reader: F::Reader<ToHost>,
    /// Reads whose data stays in the drive.
    inside: F::Reader<ToController>,
    /// Reads of blocks with metadata.
    with_metadata: F::Reader<WithMetadata>,
    buffer: BufferMode,
    firmware_time: Span,
    rated_erases: u32,
    /// The maximum of bytes that a command moves.
    max_transfer: u32,
    /// Whether the one NVM Set is reported.
    tells_group: bool,
    /// Whether logical blocks may have metadata.
    keeps_metadata: bool,
    counts: Cell<HostCounts>,
    /// Extents that a fused operation is working on.
    exclusive: Exclusive,
    memory: Memory,
    turns: Turns,
    /// Placement by handles, if hosts place data.
    fdp: Option<Rc<Fdp>>,
    /// Placement by streams, if the drive has them.
    streams: Option<Box<Streams>>,
    /// Pages of namespaces whose pages are chains of pieces.
    stores: lss::Stores<F>,
    /// Follows reads that ask for a notice, where the drive has notices.
    tracker: Option<Rc<Tracker>>,
    /// Erased extents whose data a power cut may restore.
    to_erase_again: RefCell<Vec<Extent>>,
}

/// Commands of the host, for the SMART log.
#[derive(Copy, Clone, Default, Debug)]
struct HostCounts {
    reads: u64,
    read_bytes: u64,
    writes: u64,
}

/// An FTL's report of its handles, if hosts name them by this interface.
fn placed_by<F: Ftl>(ftl: &F, interface: Interface) -> Option<PlacementReport> {
    ftl.offers().placement.map(|placement| placement.report()).filter(|report| report.interface == interface)
}

impl<F: Ftl> Nvm<F> {
    /// The commands of a drive over `ftl`, which uses `media`.
    pub fn new(sim: &Sim, media: Rc<Media>, ftl: Rc<F>, config: &ControllerConfig) -> Nvm<F> {
        let fdp = placed_by(&*ftl, Interface::Handles).map(|report| Rc::new(Fdp::new(sim, &report, config.lba_bytes)));
        if let (Some(fdp), Some(placement)) = (fdp.clone(), ftl.offers().placement) {
            placement.on_event(Box::new(move |event| fdp.tell(event)));
        }
        Nvm {
            sim: sim.clone(),
            media,
            reader: ftl.reader(),
            inside: ftl.reader(),
            with_metadata: ftl.reader(),
            keeps_metadata: ftl.offers().metadata.is_some(),
            fdp,
            streams: placed_by(&*ftl, Interface::Streams).map(|report| Box::new(Streams::new(&report))),
            ftl,
            buffer: config.buffer,
            firmware_time: config.firmware_time,
            rated_erases: config.rated_erases,
            max_transfer: config.max_transfer,
            tells_group: config.predictable_latency,
            counts: Cell::default(),
            exclusive: Exclusive::new(sim),
            memory: Memory::new(sim),
            turns: Turns::default(),
            stores: lss::Stores::default(),
            tracker: config.notices.map(|_| Tracker::new(sim)),
            to_erase_again: RefCell::default(),
        }
    }

    /// The FTL below.
    pub fn ftl(&self) -> &Rc<F> {
        &self.ftl
    }

    /// Withdraws metadata because another NVM Set of the drive has none: all namespaces have the same formats.
    pub(super) fn offer_no_metadata(&mut self) {
        self.keeps_metadata = false;
    }

    fn count(&self, command: &NvmCommand) {
        let mut counts = self.counts.get();
        match command {
            NvmCommand::Read { extent } => {
                counts.reads += 1;
                counts.read_bytes += extent.bytes();
            }
            NvmCommand::Write { .. } => counts.writes += 1,
            NvmCommand::Compare { extent } => {
                counts.reads += 1;
                counts.read_bytes += extent.bytes();
            }
            NvmCommand::Verify { extent } => counts.read_bytes += extent.bytes(),
            _ => {}
        }
        self.counts.set(counts);
    }

    /// Counts `commands` commands that read blocks of a namespace, their metadata left out.
    pub(in crate::command_set) fn count_read(&self, commands: u64, namespace: &Namespace, blocks: u32) {
        let mut counts = self.counts.get();
        counts.reads += commands;
        counts.read_bytes += u64::from(blocks) * u64::from(namespace.lba_bytes);
        self.counts.set(counts);
    }

    /// Counts a command that writes.
    pub(super) fn count_write(&self) {
        let counts = self.counts.get();
        self.counts.set(HostCounts { writes: counts.writes + 1, ..counts });
    }
}

impl<F: Ftl> CommandSet for Nvm<F> {
    fn info(&self) -> SetInfo {
        SetInfo {
            sectors: self.ftl.sectors(),
            unit_bytes: self.ftl.unit().bytes(),
            volatile_cache: self.has_volatile_cache(),
            keeps_data: self.media.keeps_data(),
            keeps_metadata: self.keeps_metadata,
            sanitizes: self.ftl.offers().sanitize.is_some(),
        }
    }

    #[inline]
    fn prefetch(&self, namespace: &Namespace, entry: &SubmissionEntry) {
        let sector = entry.slba().saturating_mul(namespace.lba_sectors());
        self.ftl.prefetch(sector.saturating_add(namespace.layout.start()));
    }

    fn storage(&self) -> &dyn Storage {
        self
    }

    fn serve<'a>(&'a self, command: &'a Command<'a>, breakdown: &'a mut Breakdown) -> Later<'a, Reply> {
        Box::pin(self.serve_directly(command, breakdown))
    }

    fn has_pieces(&self, namespace: &Namespace) -> bool {
        self.piece_limits(namespace).is_some()
    }

    fn identify_controller(&self, data: &mut IdentifyController) {
        self.fill_in_identify(data);
    }

    fn identify_namespace(&self, namespace: Option<&Namespace>) -> IdentifyNamespace {
        self.namespace_data(namespace)
    }

    fn effects(&self, effects: &mut CommandsAndEffects) {
        self.fill_in_effects(effects);
    }

    fn endurance_group(&self, _set: usize) -> Option<EnduranceGroup> {
        (self.fdp.is_some() || self.tells_group).then(|| self.health().group(0))
    }

    fn places(&self) -> bool {
        self.fdp.is_some()
    }

    fn placement(&self) -> Option<Placement<'_>> {
        Some(Placement { fdp: self.fdp.as_deref()?, report: self.ftl.offers().placement?.report() })
    }

    fn streams(&self) -> Option<&Streams> {
        self.streams.as_deref()
    }

    fn collections(&self, _set: usize) -> Option<&dyn Collections> {
        self.ftl.offers().collections
    }

    fn tracker(&self) -> Option<&Tracker> {
        self.tracker.as_deref()
    }

    fn fused(&self) -> Option<&dyn Fused> {
        // Without kept data, Compare is not offered.
        self.media.keeps_data().then_some(self)
    }

    fn administration(&self) -> Option<&dyn Administration> {
        Some(self)
    }

    fn windows(&self) -> Option<Windows<'_>> {
        let ftl = self.ftl.offers().windows?;
        let geometry = self.media.geometry();
        let read = self.media.timing().read.iter().map(|time| time.ns()).max().unwrap_or_default().max(1);
        let figures = LatencyFigures {
            free: ftl.free_for_host(),
            most_free: ftl.most_free_for_host(),
            forced: self.ftl.stats().forced_steps,
            reads_per_s: u64::from(geometry.planes()) * 1_000_000_000 / read,
        };
        Some(Windows { ftl, figures })
    }
}

impl<F: Ftl> Fused for Nvm<F> {
    fn serve_fused<'a>(&'a self, pair: [Command<'a>; 2], breakdown: &'a mut Breakdown) -> Later<'a, [Reply; 2]> {
        Box::pin(async move {
            if pair[0].namespace.format.has_pieces {
                return [(); 2].map(|()| Err(Status::INVALID_NAMESPACE.final_()).into());
            }
            match pair[0].namespace.format.lba().metadata {
                0 => self.compare_and_write(pair, breakdown).await,
                _ => self.compare_and_write_protected(pair, breakdown).await,
            }
        })
    }
}

impl<F: Ftl> Administration for Nvm<F> {
    fn erase<'a>(&'a self, namespace: &'a Namespace) -> Later<'a, ()> {
        Box::pin(async move {
            self.stores.forget(Some(namespace.nsid));
            self.erase_for_good(namespace).await;
        })
    }

    fn sanitize<'a>(&'a self, how: Sanitization, progress: &'a dyn Fn(u64, u64)) -> Later<'a, Result<(), Status>> {
        Box::pin(async move {
            self.stores.forget(None);
            let Some(flash) = self.ftl.offers().sanitize else { return Err(Status::SANITIZE_FAILED) };
            flash.sanitize(how, progress).await.map_err(|error| match error {
                MediaError::PowerLost => Status::ABORTED_POWER_LOSS,
                _ => Status::SANITIZE_FAILED,
            })
        })
    }
}

impl<F: Ftl> Nvm<F> {
    /// [`CommandSet::serve`], in the caller's own future.
    pub(crate) async fn serve_directly(&self, command: &Command<'_>, breakdown: &mut Breakdown) -> Reply {
        if !command.namespace.is_plain {
            return Box::pin(self.serve_special(command, breakdown)).await;
        }
        self.serve_whole::<()>(command, breakdown).await
    }
}

impl<F: Ftl> Nvm<F> {
    /// Serves a command on a namespace that is not plain.
    async fn serve_special(&self, command: &Command<'_>, breakdown: &mut Breakdown) -> Reply {
        if command.namespace.format.has_pieces {
            return self.serve_on_pieces(command, breakdown).await;
        }
        if let Some(busy) = self.fails_at_once(command) {
            return busy;
        }
        match command.namespace.format.lba().metadata {
            0 => self.serve_scattered(command, breakdown).await,
            _ => self.serve_with_metadata(command, breakdown).await,
        }
    }

    /// Serves a command with contiguous blocks. `Caller` is a type for the caller alone, as in
    /// [`Media::read_for`](nandscape_device_media::Media::read_for).
    #[inline]
    pub(crate) async fn serve_whole<Caller>(&self, command: &Command<'_>, breakdown: &mut Breakdown) -> Reply {
        let other = match ReadOrWrite::of(command.entry, command.mem, command.namespace) {
            Some(ReadOrWrite::Read(extent)) if !hinted::is_served_otherwise(command) => {
                self.count(&NvmCommand::Read { extent });
                let read = self.reader.read::<Caller>(extent, &self.to_host(command), breakdown).await;
                return read.map_err(|error| failure(command.namespace, error)).into();
            }
            Some(ReadOrWrite::Write { extent, fua }) => {
                self.count_write();
                let data = FromHost::<Caller>::of(command.mem);
                let ended = self.write(command, extent, data, fua, breakdown).await;
                return self.with_buffer_free(command, ended.into());
            }
            _ => self.serve_boxed(command, breakdown),
        };
        other.await
    }

    /// The other commands: in boxes, so that they do not enlarge every command's future, and behind one `await`, so that the
    /// compiler does not take the calls of reads and writes for rare.
    #[cold]
    fn serve_boxed<'a>(&'a self, command: &'a Command<'_>, breakdown: &'a mut Breakdown) -> Later<'a, Reply> {
        let parsed = NvmCommand::parse(command.entry, command.mem, command.namespace);
        if let Ok(parsed) = &parsed {
            self.count(parsed);
        }
        match parsed {
            Err(refusal) => Box::pin(self.serve_placement(command, refusal, breakdown)),
            Ok(NvmCommand::Read { extent }) => Box::pin(self.read_hinted(command, extent, breakdown)),
            Ok(other) => Box::pin(self.serve_rare(command, other, breakdown)),
        }
    }

    async fn serve_rare(&self, command: &Command<'_>, parsed: NvmCommand, breakdown: &mut Breakdown) -> Reply {
        match parsed {
            NvmCommand::Read { .. } | NvmCommand::Write { .. } => unreachable!("served without a box"),
            NvmCommand::Compare { extent } => self.compare(command, extent, breakdown).await.into(),
            NvmCommand::Verify { extent } => self.verify(command, extent, breakdown).await.into(),
            NvmCommand::WriteZeroes { extent, deallocate: false, fua } => {
                self.write(command, extent, Zeros, fua, breakdown).await.into()
            }
            NvmCommand::WriteZeroes { extent, deallocate: true, fua } => {
                self.deallocate_to_zeroes(command, extent, fua, breakdown).await.into()
            }
            NvmCommand::WriteUncorrectable { extent } => {
                self.write_uncorrectable(command, extent, breakdown).await.into()
            }
            NvmCommand::Copy { sources, to, bytes, fua } => {
                self.copy(command, &sources, &to, (bytes, fua), breakdown).await.into()
            }
            NvmCommand::Deallocate { extents, bytes } => {
                self.deallocate(command, &extents, bytes, breakdown).await.into()
            }
            NvmCommand::Hints { bytes } => {
                command.link.receive(bytes, breakdown).await;
                Ok::<(), Status>(()).into()
            }
            NvmCommand::Flush => self.flush_command(command, breakdown).await.into(),
            NvmCommand::AtomicWrite => self.atomic_write(command, breakdown).await.into(),
            NvmCommand::LssFlush => self.lss_flush(command, breakdown).await.into(),
            NvmCommand::BatchedRead => self.batched_read(command, breakdown).await.into(),
        }
    }
}
