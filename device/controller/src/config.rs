//! Configuration of controllers: write buffer modes, link, processors, limits.

use nandscape_device_ftl_core::windows::WindowRules;
use nandscape_device_media::Priority;
use nandscape_drive::Assignments;
use nandscape_sim::Span;
use nandscape_sim::units::Rate;

use crate::arbiter::ArbiterKind;

/// When a write is complete, and what a flush does (the key `buffer.mode`).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum BufferMode {
    /// The write buffer survives a power cut: a write completes once it is buffered, and a flush returns at once.
    Capacitor,
    /// A power cut loses the write buffer: a write completes once it is buffered, and a flush waits until the whole buffer is
    /// on flash.
    Volatile,
    /// A write completes once its page is in the register of its die, and the program continues. Flush waits until everything
    /// is on flash.
    Register,
    /// A write completes once its page is programmed, without waiting for the mapping tables. Flush also waits for those.
    Programmed,
    /// A write completes once it is on flash and recoverable after a power cut.
    Through,
}

impl BufferMode {
    /// All modes, by their names in profiles.
    pub const ALL: [(&str, BufferMode); 5] = [
        ("capacitor", BufferMode::Capacitor),
        ("volatile", BufferMode::Volatile),
        ("register", BufferMode::Register),
        ("through", BufferMode::Through),
        ("programmed", BufferMode::Programmed),
    ];
}

/// Whether the two directions of the link can be used at the same time.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Duplex {
    /// Each direction has the full bandwidth.
    Full,
    /// They share it.
    Half,
}

impl Duplex {
    /// Both, by their names in profiles.
    pub const ALL: [(&str, Duplex); 2] = [("full", Duplex::Full), ("half", Duplex::Half)];
}

/// The link between host and controller.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct LinkConfig {
    /// Data rate, in each direction, or in both together.
    pub bandwidth: Rate,
    /// Whether the directions share it.
    pub duplex: Duplex,
    /// Bytes of a packet, after which other transfers get a turn; `None` sends a transfer in one piece.
    pub packet: Option<u32>,
    /// Additional latency of every command, independent of its length.
    pub latency: Span,
}

/// The processors of a controller, and the time of their work.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ProcessorsConfig {
    /// The number of processors.
    pub count: u32,
    /// Work on an I/O command.
    pub command: Span,
    /// On a mapping unit that a command reads or writes.
    pub unit: Span,
    /// On 1 KiB that crosses the link.
    pub kib: Span,
    /// On a page of a buffer or a batch of a log-structured store.
    pub page: Span,
    /// On an operation of the flash.
    pub flash: Span,
    /// On 1 KiB that is moved to the flash or from it.
    pub flash_kib: Span,
}

/// The configuration of a controller.
#[derive(Clone, PartialEq, Debug)]
pub struct ControllerConfig {
    /// Time that firmware spends on each command.
    pub firmware_time: Span,
    /// Its processors; `None` if work takes no further time.
    pub processors: Option<ProcessorsConfig>,
    /// Commands in work at a time; others wait in their queues.
    pub command_slots: u32,
    /// I/O queue pairs.
    pub max_queue_pairs: u16,
    /// Entries of a queue.
    pub max_queue_entries: u32,
    /// Bytes that one command may move, a power of two from 8 KiB on.
    pub max_transfer: u32,
    /// Bytes of a logical block: 512 or 4,096.
    pub lba_bytes: u32,
    /// When a write is complete.
    pub buffer: BufferMode,
    /// The host link.
    pub link: LinkConfig,
    /// Which queue is fetched from next, unless the host chooses.
    pub arbiter: ArbiterKind,
    /// Commands of a round of the high, medium and low priority class, 1 to 256 each, unless the host sets Arbitration.
    pub weights: [u32; 3],
    /// Class and tenant of commands that state none, unless the subsystem is given other rules.
    pub assign: Assignments,
    /// Which operations planes and channels serve first.
    pub priority: Priority,
    /// Erases that a block is rated for, which SMART's Percentage Used refers to.
    pub rated_erases: u32,
    /// The lengths of windows for the drive's background work; `None` for a drive without windows.
    pub windows: Option<WindowRules>,
    /// Whether a drive with windows offers Predictable Latency Mode.
    pub predictable_latency: bool,
    /// How long before the end of a read its notice is due, unless the host sets it; `None` for a drive without notices.
    pub notices: Option<Span>,
    /// Whether PCI hosts and those in this process see a subsystem with several controllers and shared namespaces. Hosts over
    /// messages always do: each connection has its own controller.
    pub multipath: bool,
}
