//! Namespaces: each is a part of the sectors of an FTL, with a format and identifiers. Size, place and format of a namespace
//! never change; a format command creates another namespace with the same number.
//!
//! | file | what |
//! |---|---|
//! | `table` | the namespaces of a subsystem, by number |
//! | `attached` | those that one controller has attached |
//! | `format` | LBA formats, metadata and protection information |
//! | `reservation` | reservations: which hosts may read and write |
//! | `write_protection` | whether it may be written |
//! | `space` | which sectors are free |
//! | `layout` | its place in the sectors of the FTL |
//! | `note` | namespaces as they are noted in durable memory |
//! | `identifiers` | NGUID, EUI64 and UUID |
//!
//! Left out: its data structures in Identify, which belong to the command set.

mod attached;
mod format;
mod identifiers;
mod layout;
mod note;
mod reservation;
mod space;
mod table;
mod write_protection;

pub(crate) use attached::Attached;
pub(crate) use format::{Format, LbaFormat, PROTECTION_BYTES, Protection, ProtectionType, lba_formats};
pub(crate) use identifiers::Identifiers;
pub(crate) use layout::Layout;
pub(crate) use note::NamespacesNote;
pub(crate) use reservation::{Access, Kind, Notice, Registrant, Report, Reservations};
pub use table::MAX_NAMESPACES;
pub(crate) use table::{Common, GRANULE_BOUNDARY, Namespaces, NewNamespace};
pub(crate) use write_protection::WriteProtection;

use std::cell::Cell;
use std::rc::Rc;

use nandscape_device_ftl_core::Extent;
use nandscape_device_ftl_core::address::SECTOR;
use nandscape_wire_nvme::{Status, SubmissionEntry};

/// A namespace.
pub struct Namespace {
    pub(crate) nsid: u32,
    /// Its size in logical blocks.
    pub(crate) blocks: u64,
    /// Bytes of a logical block's data.
    pub(crate) lba_bytes: u32,
    pub(crate) format: Format,
    /// Its blocks are contiguous, without metadata or pieces: its commands take the short path.
    pub(crate) is_plain: bool,
    /// The most logical blocks that one command may move.
    pub(crate) max_blocks: u32,
    /// Whether data written is kept.
    pub(crate) keeps_data: bool,
    /// Whether several controllers may have it attached.
    pub(crate) is_shared: bool,
    pub(crate) identifiers: Identifiers,
    /// The NVM Set that it is in, counted from zero: its FTL.
    pub(crate) set: usize,
    pub(crate) layout: Layout,
    /// Shared with the namespace that replaces it after a format.
    pub(crate) reservations: Rc<Reservations>,
    /// Shared likewise.
    write_protection: Rc<Cell<WriteProtection>>,
    /// Whether commands need a check. The only field that most commands read.
    is_guarded: Cell<bool>,
    is_formatting: Cell<bool>,
    /// The status of all commands during a sanitize operation or after its failure.
    sanitizing: Cell<Option<Status>>,
    /// No further command begins, and a change waits for the end of each.
    is_leaving: Cell<bool>,
    /// Commands that hold it only to wait for other commands.
    waiting: Cell<usize>,
}

impl Namespace {
    /// A namespace of `blocks` blocks of a format, `max_blocks` of which a command may move.
    fn new(
        nsid: u32,
        (blocks, format, max_blocks): (u64, Format, u32),
        keeps_data: bool,
        is_shared: bool,
        identifiers: Identifiers,
        (set, layout): (usize, Layout),
        reservations: Rc<Reservations>,
    ) -> Namespace {
        let namespace = Namespace {
            nsid,
            blocks,
            lba_bytes: format.lba().data,
            format,
            is_plain: !layout.is_fragmented() && format.lba().metadata == 0 && !format.has_pieces,
            max_blocks,
            keeps_data,
            is_shared,
            identifiers,
            set,
            layout,
            reservations,
            write_protection: Rc::default(),
            is_guarded: Cell::new(false),
            is_formatting: Cell::new(false),
            sanitizing: Cell::new(None),
            is_leaving: Cell::new(false),
            waiting: Cell::new(0),
        };
        namespace.update_guard();
        namespace
    }

    /// Whether commands need a check.
    #[inline]
    pub(crate) fn is_guarded(&self) -> bool {
        self.is_guarded.get()
    }

    /// Checks that commands of any host are served.
    ///
    /// # Errors
    /// The status with which a command is to end.
    pub(crate) fn check_state(&self) -> Result<(), Status> {
        match self.sanitizing.get() {
            Some(status) => Err(status),
            None if self.is_formatting.get() => Err(Status::FORMAT_IN_PROGRESS),
            None => Ok(()),
        }
    }

    /// Marks the begin or the end of a format.
    pub(crate) fn set_formatting(&self, is_formatting: bool) {
        self.is_formatting.set(is_formatting);
        self.update_guard();
    }

    /// Sets the status with which commands end during a sanitize operation or after its failure; `None` serves them again.
    pub(crate) fn set_sanitizing(&self, status: Option<Status>) {
        self.sanitizing.set(status);
        self.update_guard();
    }

    /// The status with which commands end because of a sanitize operation, if any.
    pub(crate) fn sanitizing(&self) -> Option<Status> {
        self.sanitizing.get()
    }

    /// Updates the guard after a change of the checks.
    pub(crate) fn update_guard(&self) {
        let is_changing = self.is_formatting.get() || self.sanitizing.get().is_some();
        self.is_guarded.set(is_changing || self.is_write_protected() || self.reservations.is_held());
    }

    /// Its write protection.
    pub(crate) fn write_protection(&self) -> WriteProtection {
        self.write_protection.get()
    }

    /// Whether no host may write it.
    pub(crate) fn is_write_protected(&self) -> bool {
        self.write_protection.get() != WriteProtection::None
    }

    /// Sets the write protection, for all namespaces that share it.
    pub(crate) fn set_write_protection(&self, state: WriteProtection) {
        self.write_protection.set(state);
        self.update_guard();
    }

    /// Takes over the write protection of the namespace that this one replaces.
    fn share_write_protection(&mut self, of: &Namespace) {
        self.write_protection = of.write_protection.clone();
        self.update_guard();
    }

    /// Checks that it may be changed: written, formatted, sanitized, deleted.
    ///
    /// # Errors
    /// Namespace is Write Protected.
    pub(crate) fn check_write_protection(&self) -> Result<(), Status> {
        match self.write_protection.get() {
            WriteProtection::None => Ok(()),
            _ => Err(Status::NAMESPACE_WRITE_PROTECTED.final_()),
        }
    }

    /// Checks an I/O command against the write protection.
    ///
    /// # Errors
    /// Namespace is Write Protected.
    pub(crate) fn check_write(&self, entry: &SubmissionEntry) -> Result<(), Status> {
        if write_protection::is_refused(entry) { self.check_write_protection() } else { Ok(()) }
    }

    /// A command holds it only to wait for the end of the others, or has waited.
    pub(crate) fn set_waiting(&self, waits: bool) {
        self.waiting.set(if waits { self.waiting.get() + 1 } else { self.waiting.get() - 1 });
    }

    /// Commands that hold it only to wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.get()
    }

    /// Whether a change waits for the end of its commands.
    #[inline]
    pub(crate) fn is_leaving(&self) -> bool {
        self.is_leaving.get()
    }

    pub(crate) fn set_leaving(&self) {
        self.is_leaving.set(true);
    }

    /// Sectors of a logical block.
    #[inline]
    pub(crate) fn lba_sectors(&self) -> u64 {
        u64::from(self.lba_bytes / SECTOR)
    }

    /// Bytes of flash set aside for it.
    pub(crate) fn capacity(&self) -> u64 {
        self.layout.sectors() * u64::from(SECTOR)
    }

    /// The sectors of the FTL that hold logical blocks; `None` if they are in several runs. The blocks must exist.
    #[inline]
    pub(crate) fn extent_of(&self, slba: u64, blocks: u32) -> Option<Extent> {
        let sectors = self.lba_sectors();
        self.layout.place(slba * sectors, blocks * sectors as u32)
    }

    /// The number of contiguous blocks from `slba` on.
    pub(crate) fn blocks_in_run(&self, slba: u64) -> u64 {
        let sectors = self.lba_sectors();
        self.layout.left_in_run(slba * sectors) / sectors
    }

    /// The logical block that a sector of the FTL belongs to, which is one of this namespace.
    pub(crate) fn lba_of(&self, sector: u64) -> u64 {
        self.layout.offset_of(sector) / self.lba_sectors()
    }
}
