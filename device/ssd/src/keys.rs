//! Every key of a profile, with its meaning. The documentation page is made from this file.

use nandscape_device_controller::arbiter::ArbiterKind;
use nandscape_device_controller::{BufferMode, Duplex};
use nandscape_device_ftl_core::policy::{GcScheme, OwnerSource, StripeOrder};
use nandscape_device_ftl_core::{Isolation, RangesOwn};
use nandscape_device_ftl_ox::registry::Set;
use nandscape_device_media::{Cell, Interleaving, PlaneMode, Priority, ProgramUnit, Registers};
use nandscape_drive::Assignments;
use nandscape_sim::Span;
use nandscape_sim::units::{Bytes, Rate, Ratio};

use crate::values::{
    Admission, Changes, Channels, Choice, Faults, FlushOrder, FtlKind, MediaKind, PartStore, PerPageType, ReadRule,
    ShareOrBytes, Shares, Tables, Text, Victim, Weights, ZoneSpread,
};

/// What a key means.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct KeyDoc {
    /// The section, as `ftl.gc`; empty at the top.
    pub section: &'static str,
    /// The key within it.
    pub key: &'static str,
    /// Its meaning, its values and an example.
    pub doc: &'static str,
}

/// Defines a section of optional keys that can be laid on top of another of its kind.
macro_rules! section {
    ($(#[$meta:meta])* $name:ident at $path:literal { $($(#[doc = $doc:literal])* $key:ident: $type:ty,)* }
     $(with { $($(#[doc = $subdoc:literal])* $sub:ident: $subtype:ty,)* })?) => {
        $(#[$meta])*
        #[derive(Clone, PartialEq, Debug, Default, serde::Deserialize, serde::Serialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct $name {
            $($(#[doc = $doc])* #[serde(skip_serializing_if = "Option::is_none")] pub $key: Option<$type>,)*
            $($($(#[doc = $subdoc])* #[serde(skip_serializing_if = "is_default")] pub $sub: $subtype,)*)?
        }

        impl $name {
            /// Lays `over` on top: what it gives counts.
            pub fn overlay(&mut self, over: $name) {
                $(if over.$key.is_some() { self.$key = over.$key; })*
                $($(self.$sub.overlay(over.$sub);)*)?
            }

            pub(super) fn docs(docs: &mut Vec<KeyDoc>) {
                $(docs.push(KeyDoc { section: $path, key: stringify!($key), doc: concat!($($doc, "\n",)*) });)*
                $($(<$subtype>::docs(docs);)*)?
            }
        }
    };
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

mod aging;

pub(crate) use aging::AgingKeys;

/// All keys with their meaning, in the order of a profile.
pub fn key_docs() -> Vec<KeyDoc> {
    let mut docs = Vec::new();
    ProfileKeys::docs(&mut docs);
    PartKeys::docs(&mut docs);
    docs
}

section! {
    /// A profile as written: every key may be left out.
    ProfileKeys at "" {
        /// The version of the format: 1.
        version: u32,
        /// One line on what the drive is.
        description: String,
        /// The profile this one starts from: a built-in name, or a path relative to this file.
        base: String,
        /// Bytes that a host sees: `"256GiB"`. A multiple of the mapping unit. Without it, derived from
        /// `geometry.blocks_per_plane`.
        capacity: Text<Bytes>,
        /// Bytes of a logical block: `512` or `4096`.
        lba_size: Text<Bytes>,
        /// Faults to inject, one rule a fault: `["fail program nth=1000", "uncorrectable lba=4096-4103"]`. See
        /// [faults](techniques/faults.md).
        faults: Faults,
        /// Settings that change while the drive runs, each at a drive time: `["10s ftl.ox_block.gc_slots=4"]`. The keys are those
        /// that the [control socket](transports/control.md) can set: `ftl.ox_block.checkpoint_interval`, `checkpoint_log`,
        /// `gc_slots`, `gc_threshold` and `gc_target`; of a drive with several FTLs, after the name of the part: `archive:ftl...`.
        changes: Changes,
    } with {
        /// How much flash there is.
        geometry: GeometryKeys,
        /// How long the flash takes.
        timing: TimingKeys,
        /// The names of the drive.
        identity: IdentityKeys,
        /// The host link.
        link: LinkKeys,
        /// The controller.
        controller: ControllerKeys,
        /// The write buffer.
        buffer: BufferKeys,
        /// How the flash ages, and how old it is.
        wear: AgingKeys,
        /// The flash translation layer.
        ftl: FtlKeys,
    }
}

section! {
    /// How much flash there is.
    GeometryKeys at "geometry" {
        /// Channels, 1 to 256: `8`.
        channels: u32,
        /// Dies (LUNs) on each channel, 1 to 256: `8`.
        dies_per_channel: u32,
        /// Planes of each die, 1 to 64: `2`. `timing.planes` sets whether they work independently of each other.
        planes_per_die: u32,
        /// Blocks of each plane. Derived from `capacity` when left out; given both, they must agree.
        blocks_per_plane: u32,
        /// Pages of each block, 4 to 65536: `256`. Small drives have [fewer dies](profiles.md#capacity), and the smallest have smaller blocks.
        pages_per_block: u32,
        /// Bytes of a page, a power of two from 4KiB to 256KiB: `"16KiB"`.
        page_size: Text<Bytes>,
        /// Share of blocks that are bad from the factory, below 50%: `"0.5%"`. They come on top of what is needed.
        factory_bad_blocks: Text<Ratio>,
    }
}

section! {
    /// How long the flash takes.
    TimingKeys at "timing" {
        /// Bits of a cell: `"slc"`, `"mlc"`, `"tlc"` or `"qlc"`, with 1, 2, 3 or 4 page types.
        cell: Text<Choice<Cell>>,
        /// Erases that a block is rated for: `3000`; 0 is flash that does not wear. SMART's Percentage Used refers to it; nothing
        /// fails because of it.
        /// Without it, the order of magnitude of the cell: 100000, 10000, 3000 or 1000.
        rated_erases: u32,
        /// tR, sensing a page: one time, or one for each page type from the lowest: `["50us", "60us", "70us"]`.
        read: PerPageType<Text<Span>>,
        /// tPROG, programming a page: one time, or one for each page type.
        program: PerPageType<Text<Span>>,
        /// tBERS, erasing a block: `"5ms"`.
        erase: Text<Span>,
        /// Data rate of a channel: `"1200MB/s"`, `"16KiB/60us"` or `"unlimited"`.
        bus: Text<Rate>,
        /// Page registers of a plane: `"single"` keeps the plane until a transfer has ended, `"double"` overlaps the
        /// transfer with the array's next operation.
        registers: Text<Choice<Registers>>,
        /// Whether a read moves only the mapping units asked for over the channel (`true`), or the whole page.
        partial_transfer: bool,
        /// Command and address cycles of every command, on the channel: `"200ns"`. A read has two commands, one before
        /// the array and one with the data.
        command: Text<Span>,
        /// Operations of the planes of a die at a time: `"independent"`, each works on its own; `"die"`, one operation at a
        /// time on the whole die; `"multi_plane"`, the same, and pages with the same number on several planes are read at
        /// once, and programmed by one command if they are the host's. Zones and chunks that are reset are erased on all planes at
        /// once, too.
        planes: Text<Choice<PlaneMode>>,
        /// Pages that one program command programs: `"page"`, or `"word_line"`, all pages of a TLC or QLC word line at once, for
        /// which `timing.program` is then one time, that of the whole word line.
        program_unit: Text<Choice<ProgramUnit>>,
        /// When a die, or a plane that works on its own, may program again: `"free"`, when its own program has ended; `"rows"`, when
        /// all programs of its channel have: a channel programs once on each and then waits for all. Those of a collector that holds
        /// its plane or channel take no part.
        interleaving: Text<Choice<Interleaving>>,
        /// With double registers, whether a page is sent while the array does its next operation, as the commands for
        /// cache reads have it.
        cache_read: bool,
        /// With double registers, whether a page is loaded while the array does another operation, as the commands for
        /// cache programs have it.
        cache_program: bool,
    } with {
        /// Error correction of what is read.
        ecc: EccKeys,
        /// Reading again what could not be corrected.
        read_retry: ReadRetryKeys,
        /// Interrupting programs and erases for reads of the host.
        suspend: SuspendKeys,
    }
}

section! {
    /// Error correction of what is read.
    EccKeys at "timing.ecc" {
        /// Decoding one codeword, after the transfer: `"2us"`. Zero is no error correction.
        time: Text<Span>,
        /// Bytes of a codeword, a power of two from 512 to 64KiB: `"4KiB"`.
        codeword: Text<Bytes>,
        /// Decoders of the drive, up to 256, which the channels use in turn: channel c has decoder c mod `engines`. 0 is as
        /// many as it takes.
        engines: u32,
        /// Whether codewords are decoded as they come off the channel, so that only the last one is left after the
        /// transfer (`true`), or all of them when the last has come.
        pipelined: bool,
    }
}

section! {
    /// Reading again what could not be corrected.
    ReadRetryKeys at "timing.read_retry" {
        /// Shares of the pages that need one retry, two, and so on, up to 16: `["2%", "0.1%"]`. Which pages do is drawn from the
        /// seed, and stays until their block is erased.
        probability: Shares,
        /// Time of a retry on the array in addition to sensing: `"10us"`. It moves and decodes the page again, too.
        time: Text<Span>,
    }
}

section! {
    /// Interrupting programs and erases for reads of the host. It needs `controller.priority = "reads_first"`, or
    /// `ftl.gc.preempt_on_request`.
    SuspendKeys at "timing.suspend" {
        /// From suspending a program until a read can begin: `"20us"`. Without it, programs are not suspended. Those of a
        /// collector are only with `ftl.gc.preempt` or `ftl.gc.preempt_on_request`.
        program: Text<Span>,
        /// The same of an erase.
        erase: Text<Span>,
        /// Time from the resume until the operation continues.
        resume: Text<Span>,
        /// The least that an operation runs before it is suspended, each time: what keeps many reads from holding it up for
        /// good.
        min_run: Text<Span>,
        /// At most this many suspensions of an operation; 0 is no limit.
        limit: u32,
    }
}

section! {
    /// The names of the drive. Left out, they derive from the profile's name, the seed and the drive's place in the run, and
    /// stay the same over restarts.
    IdentityKeys at "identity" {
        /// Serial number, 1 to 20 printable ASCII characters: `"NS0123456789"`. Two drives that a host connects to need
        /// different ones.
        serial: String,
        /// Model, 1 to 40 printable ASCII characters. Left out, `Nandscape` and the profile's name.
        model: String,
        /// NVMe Qualified Name of the subsystem, up to 223 bytes: `"nqn.2026-11.org.nandscape:a"`. The identifiers of
        /// namespaces derive from it.
        nqn: String,
    }
}

section! {
    /// The host link.
    LinkKeys at "link" {
        /// Data rate in each direction: `"7GB/s"` or `"unlimited"`.
        bandwidth: Text<Rate>,
        /// Whether the directions have the bandwidth each, `"full"`, or share it, `"half"`.
        duplex: Text<Choice<Duplex>>,
        /// The bytes after which a transfer gives others in its direction a turn, a power of two from 128 to 1MiB: `"4KiB"`.
        /// Without it, transfers are served whole.
        packet: Text<Bytes>,
        /// Time of every command on the link, in addition to its data: `"1us"`.
        latency: Text<Span>,
    }
}

section! {
    /// The controller.
    ControllerKeys at "controller" {
        /// Firmware work on each command: `"4us"`. It delays the command, and does not keep others waiting.
        firmware_time: Text<Span>,
        /// Commands in work at a time, 1 to 65536: `1024`. Others wait in their queues, which take turns.
        command_slots: u32,
        /// I/O queue pairs, 1 to 65534: `64`.
        queue_pairs: u32,
        /// The most entries of a queue, 2 to 65536: `4096`.
        queue_entries: u32,
        /// The most that one command moves (MDTS), a power of two from 8KiB to 32MiB: `"2MiB"`.
        max_transfer: Text<Bytes>,
        /// Which submission queue is fetched from next, unless the host chooses ([arbitration](techniques/arbitration.md)):
        /// `"round_robin"`; `"class"`, the most urgent class first; `"class_weighted"`, classes by `weights`; `"oldest"`, the command
        /// that was submitted first; `"longest"`, the queue with most entries; `"deadline"`, the command that is due first. Left
        /// out, `"round_robin"`.
        arbiter: Text<Choice<ArbiterKind>>,
        /// Commands of a round of high, medium and low priority, 1 to 256 each: `"8:4:1"`. They are the default of the Arbitration
        /// feature, for `arbiter = "class_weighted"` and for hosts that choose weighted round robin. Left out, `"1:1:1"`.
        weights: Text<Weights>,
        /// Class and tenant of commands that state none, [by connection, queue and namespace](techniques/arbitration.md#classes-and-tenants-by-rule):
        /// `"queue=2,class=15 namespace=1,tenant=7"`. Left out, there is no rule.
        assign: Text<Assignments>,
        /// The order in which planes and channels serve: `"fifo"` or `"reads_first"`.
        priority: Text<Choice<Priority>>,
        /// Whether hosts can have [Predictable Latency Mode](techniques/teafa.md), in whose deterministic window the drive
        /// does no background work. The drive then reports its one NVM Set. For one FTL of the kind `"page"`.
        predictable_latency: bool,
        /// Whether PCI hosts see a [subsystem with several controllers](nvme.md#what-a-kernel-decides-by), over which Linux puts a
        /// multipath device. Left out, `false`; `serve` reports several for a drive that has a second PCI function, or that NVMe/TCP hosts
        /// reach as well.
        multipath: bool,
    } with {
        /// The controller's processors.
        processors: ProcessorKeys,
        /// Notices ahead of completions.
        precompletion: PrecompletionKeys,
    }
}

section! {
    /// [Notices ahead of completions](techniques/precompletion.md). Without a window the drive has none. For one FTL of the kind
    /// `"page"`.
    PrecompletionKeys at "controller.precompletion" {
        /// How long before the end of a read its notice is due, unless the host sets it, 1ns to 1s: `"16us"`. The host of `sim` and of sweeps
        /// asks for notices, and the report has `precompletion`.
        window: Text<Span>,
    }
}

section! {
    /// The controller's processors. Work waits for one that is free, and is accounted by cause.
    ProcessorKeys at "controller.processors" {
        /// How many, 1 to 1024: `8`. Without it there are none, and the work below takes no time.
        count: u32,
        /// Work on an I/O command: `"5us"`. Left out, it is 22.2us, a core of eight by which a Dragon Fire Card serves 360,000
        /// commands without data a second (OX 3.5).
        command_time: Text<Span>,
        /// Work on a mapping unit that a command reads or writes, its entry of the map: `"100ns"`, an assumption, which counts when
        /// left out: a miss of the caches.
        unit_time: Text<Span>,
        /// Work on 1 KiB that crosses the link, copies to and from sockets: `"1us"`. Left out, it is 2.8us, an assumption: as much as
        /// leaves seven cores of a Dragon Fire Card busy with what its two Ethernet ports move (OX 3.5.1).
        kib_time: Text<Span>,
        /// Work on a page of a [buffer or a batch](techniques/ox-eleos.md) of a log-structured store, in addition to
        /// `unit_time`, to parse and check its entry: `"100ns"`, an assumption, which counts when left out.
        page_time: Text<Span>,
        /// Work on an operation of the flash, those of collections, logs and checkpoints too: `"2us"`. It keeps processors busy, and
        /// the operation does not wait for it. Left out, it is 22.2us, as a command: another pair of queues (OX 3.5).
        flash_time: Text<Span>,
        /// Work on 1 KiB that is moved to the flash or from it: `"250ns"`, an assumption, which counts when left out: a copy at 4 GB/s.
        flash_kib_time: Text<Span>,
    }
}

section! {
    /// The write buffer.
    BufferKeys at "buffer" {
        /// `"capacitor"`: a write completes in the buffer, which survives a power cut (power-loss protection). `"volatile"`:
        /// the same without this protection; Flush waits until the data is on flash. `"register"`: a write completes when
        /// its page is in the register of its die, which then programs it; Flush waits as with `"volatile"`. `"programmed"`, with
        /// `ftl.kind = "ox_block"`: a write completes when its page is programmed, without waiting for the log; Flush, FUA and
        /// transactions wait for the log. `"through"`: a write completes when it is on flash, with OX-Block its log too.
        mode: Text<Choice<BufferMode>>,
        /// Room for data on its way to flash: `"16MiB"`. At least two pages.
        size: Text<Bytes>,
    }
}

section! {
    /// The flash translation layer.
    FtlKeys at "ftl" {
        /// The kind of FTL: `"page"`; [`"ox_block"`](techniques/ox-block.md), which keeps its tables in flash and recovers
        /// them; [`"pblk"` and `"spdk"`](techniques/line-ftls.md), which find their tables again in their data;
        /// [`"zone"`](techniques/zns.md), zones that the host writes in order (ZNS); [`"lsm"`](techniques/lsm.md), sorted runs; or
        /// [`"open_channel"`](techniques/open-channel.md), no FTL: the host writes and erases the flash. `allocation`, `ftl.gc` and
        /// `ftl.wear` are of the first, `ftl.zone`, `ftl.lsm` and `ftl.open_channel` are of the last three, `ftl.ox_block` and `ftl.ox`
        /// are of the others.
        kind: Text<Choice<FtlKind>>,
        /// Flash beyond the capacity, as a share of the capacity: `"12%"`. The reserve that garbage collection needs
        /// comes on top.
        over_provisioning: Text<Ratio>,
        /// Bytes that are mapped together, a power of two from 4KiB to 32KiB, not above the page: `"4KiB"`.
        mapping_unit: Text<Bytes>,
        /// The order in which pages are spread over the drive, the fastest first: `"channel_die_plane"` or another order
        /// of the three.
        allocation: Text<Choice<StripeOrder>>,
        /// Firmware work on each mapping unit of a deallocation, mapped or not: `"10ns"`. Deallocations take turns; reads and
        /// writes do not wait for them.
        deallocate_time: Text<Span>,
        /// Firmware work on each block at a restart after a power cut: `"1us"`. The drive serves no command until all blocks
        /// were checked.
        restart_time: Text<Span>,
        /// The mapping after a power cut: `"saved"`, the drive keeps it in memory that needs no power; or `"rebuilt"`, it is
        /// found again in the out-of-band areas of the flash, which takes the time of reading them. Drives in a file always
        /// rebuild it.
        tables: Text<Choice<Tables>>,
        /// [Several FTLs in one drive](techniques/parts.md), each of which owns channels and is an NVM Set with a namespace: a table
        /// `[[ftl.parts]]` for each. Other keys of `ftl` hold for all parts that do not override them.
        parts: Vec<PartKeys>,
    } with {
        /// Garbage collection.
        gc: GcKeys,
        /// Windows in which the drive does its own work.
        windows: WindowKeys,
        /// What happens to reads that background work delays.
        read: ReadKeys,
        /// Stripes with parity.
        rain: RainKeys,
        /// Wear levelling.
        wear: WearKeys,
        /// OX-Block.
        ox_block: OxBlockKeys,
        /// The components of OX-Block.
        ox: OxKeys,
        /// Flexible data placement (FDP).
        fdp: FdpKeys,
        /// Streams.
        streams: StreamKeys,
        /// Zones.
        zone: ZoneKeys,
        /// Sorted runs.
        lsm: LsmKeys,
        /// Open-channel drives.
        open_channel: OpenChannelKeys,
    }
}

section! {
    /// One of several FTLs of a drive.
    PartKeys at "ftl.parts" {
        /// Its name, up to 32 bytes: `"archive"`. Left out, its kind and its first channel.
        name: String,
        /// The channels that it owns: `"0-3"` or `"0-3,6"`. Each die belongs to one part.
        channels: Text<Channels>,
        /// The dies that it owns of each of these channels: `"0-3"`. Left out, all. Parts with other dies of the same channels share
        /// these with it ([partitioning](techniques/partitioning.md)).
        dies: Text<Channels>,
        /// What the channels are made of: `"nand"`, which is as `timing` says; or `"ram"`, memory that keeps its contents without
        /// power, has no time of an array, no errors and no wear.
        media: Text<Choice<MediaKind>>,
        /// Place of its flash when the drive is in a file (`serve --store`): `"drive"`, in the file; or `"ram"`, in memory
        /// of the process, new at each start. At least one part is in the file.
        store: Text<Choice<PartStore>>,
        /// Bytes of its namespace: `"8GiB"`. Left out, its share of the drive's capacity by channels, or by dies.
        capacity: Text<Bytes>,
        /// Its own settings, by the keys of `ftl`: `ftl.kind = "ox_block"`. All parts have the same `mapping_unit`.
        ftl: Box<FtlKeys>,
        /// Times of its flash that differ from those of the drive, by the keys of `timing`: `timing.cell = "slc"`.
        timing: Box<TimingKeys>,
    }
}

section! {
    /// Garbage collection.
    GcKeys at "ftl.gc" {
        /// The part of the drive that a collection blocks for the host: `"controller"`, `"channel"`, `"plane"`; or `"none"`, where it also
        /// takes no time.
        scheme: Text<Choice<GcScheme>>,
        /// How a collection learns to which unit the data that it moves belongs: `"table"`, a table in the controller's
        /// memory, which takes no time; or `"out_of_band"`, 16 bytes of each unit, which cross the channel.
        owner: Text<Choice<OwnerSource>>,
        /// Which block is cleaned next: `"greedy"` or `"cost_benefit"`.
        victim: Text<Choice<Victim>>,
        /// Which planes may collect at the same time: `"all"`, or one after another of each die (`"one_per_die"`), channel
        /// (`"one_per_channel"`) or of the drive (`"one_per_drive"`); or `"rotating"`, one of each group of planes that stripes of
        /// `ftl.rain` lie in, as long as the others have pages for the host.
        admission: Text<Choice<Admission>>,
        /// Whether pages that are current as a whole are copied within the plane, without the channel.
        copyback: bool,
        /// Whether the controller corrects such pages on the way, for which they cross the channel once.
        copyback_ecc: bool,
        /// Whether a collection lets reads of the host in between its operations, and within its programs and erases as far
        /// as `timing.suspend` allows. It needs `scheme = "plane"` and `controller.priority = "reads_first"`.
        preempt: bool,
        /// The same for reads alone that ask for it, with the [preempt bit](techniques/teafa.md); they are served before all
        /// others, too. It needs `scheme = "plane"` and `controller.priority = "fifo"`.
        preempt_on_request: bool,
        /// Free blocks of a plane, the collector's own included, at or below which a collection admits no reads; nor
        /// does it while writes of the host wait for it.
        preempt_floor: u32,
        /// Pages moved before the host gets a turn at what was kept from it, by a collector that keeps in step with the
        /// host's writes; 0 is a whole block, without pacing.
        batch: u32,
        /// Free blocks of a plane, not counting open ones, that its collector keeps; with `batch = 0`, it begins at or below
        /// this number. 2 or more: `2`. They are not part of the over-provisioning.
        free_blocks: u32,
    }
}

section! {
    /// [Windows](techniques/teafa.md) in which the FTL `"page"` does its own work, where a host has set any: what the drive knows of
    /// itself to say how long they are to be, and what it keeps ready for them.
    WindowKeys at "ftl.windows" {
        /// Equal ranges of the capacity that may have windows at different times, 2 to 63; 0 is none. Each has an open block on
        /// every plane, and one for what is moved.
        ranges: u32,
        /// What each range has for itself: `"blocks"`, on all planes; or `"planes"`, a part of them, so that a collection of
        /// one range delays no read of another. With `"planes"`, the number of planes is a multiple of `ranges`.
        ranges_own: Text<Choice<RangesOwn>>,
        /// The share of a block that is current when it is collected: `"25%"`.
        valid: Text<Ratio>,
        /// The most that hosts write: `"1GB/s"`. Left out, what the flash programs.
        write_rate: Text<Rate>,
        /// Collections of a plane that are to end in a window: `1`.
        collections: u32,
        /// A window collects a plane up to this many free blocks beyond `ftl.gc.free_blocks`. Left out, `0`; with `ranges`
        /// or `controller.predictable_latency`, a quarter of the over-provisioned ones.
        free_blocks: u32,
        /// The same in windows that are as long as the over-provisioned space bears, and longer ones. Left out, `free_blocks` if that is given, else a
        /// quarter of the over-provisioned ones.
        free_blocks_long: u32,
    }
}

section! {
    /// Host reads that background work delays: collections, and programs of data whose writes have ended.
    ReadKeys at "ftl.read" {
        /// Reads that background work delays: `"serve"`, they wait; `"fail_fast"`, those with the
        /// [fast-fail bit](techniques/teafa.md) fail at once, and the host learns how long they would have waited; or
        /// `"reconstruct"`, with `ftl.rain`, their data comes from the other members of their stripe where that is sooner
        /// ([GC-tolerant read](techniques/ttflash.md)).
        policy: Text<Choice<ReadRule>>,
        /// With `"fail_fast"`: reads that would wait at most this long are still served: `"0us"`.
        fail_above: Text<Span>,
    }
}

section! {
    /// [Stripes with parity over planes of different channels](techniques/ttflash.md) (RAIN) of the FTL `"page"`. They need
    /// `ftl.mapping_unit` to be `geometry.page_size`, `buffer.mode = "capacitor"` and `ftl.gc.copyback = true`.
    RainKeys at "ftl.rain" {
        /// Pages of a stripe, of which one is parity: `8`. From 2 to 32, and a divisor of `geometry.channels`; 0 is no stripes. The
        /// parity comes on top of the capacity and its over-provisioning.
        width: u32,
        /// The stripe of the write buffer that is written next: `"in_order"`, the one that has waited longest; or
        /// `"gc_tolerant"`, full stripes first, and those whose planes do not collect; reads for their parity avoid a
        /// collecting plane.
        flush: Text<Choice<FlushOrder>>,
        /// The share of the write buffer in use above which stripes are written: `"80%"`. Below 1.
        flush_above: Text<Ratio>,
        /// By how many erases of a block, on average, planes of a group may differ before stripes that are written often have their
        /// members moved to other columns (horizontal shifting): `2`; 0 is never.
        shift_above: u32,
        /// By how many groups may differ before such stripes go to another group (vertical migration): `2`; 0 is never.
        migrate_above: u32,
        /// From one block that is read through the error correction to the next, among those that collections have copied into
        /// (scrubbing): `"100ms"`; `"0s"` is never.
        scrub_interval: Text<Span>,
    }
}

section! {
    /// Wear levelling.
    WearKeys at "ftl.wear" {
        /// Dynamic: the free block erased least often is written next (`true`), or the one freed longest ago.
        dynamic: bool,
        /// Static: data is moved off a block once it lags this many erases behind the most worn one of its plane;
        /// 0 is never. It takes an additional block of every plane, which comes on top of the over-provisioning.
        static_threshold: u32,
    }
}

section! {
    /// [Flexible data placement (FDP)](techniques/placement.md) of the FTL `"page"`.
    FdpKeys at "ftl.fdp" {
        /// Reclaim unit handles, by which hosts keep data apart: up to 64; 0 is no placement. Each beyond the first takes an
        /// open block of every plane, two with `isolation = "persistent"`, on top of the over-provisioning; and the write
        /// buffer needs room for a program of each.
        handles: u32,
        /// Whether data of different handles may share blocks once garbage collection has moved it: `"initial"`, it may
        /// (initially isolated); or `"persistent"`, it never does (persistently isolated), which excludes
        /// `ftl.wear.static_threshold`.
        isolation: Text<Choice<Isolation>>,
    }
}

section! {
    /// [Streams](techniques/placement.md#streams) of the FTL `"page"`, which exclude `ftl.fdp.handles`.
    StreamKeys at "ftl.streams" {
        /// Streams that can be open at a time, in addition to the data of no stream (MSL): up to 63; 0 is no Streams
        /// directive. Each takes what a further handle of `ftl.fdp.handles` takes.
        count: u32,
        /// Whether data of different streams may share blocks once garbage collection has moved it, as
        /// `ftl.fdp.isolation`.
        isolation: Text<Choice<Isolation>>,
    }
}

section! {
    /// OX-Block.
    OxBlockKeys at "ftl.ox_block" {
        /// Whether each write is a transaction: after a power cut all of it is present, or nothing. Up to the size of the
        /// write buffer.
        transactions: bool,
        /// With `buffer.mode = "programmed"`, whether a transaction completes when its Commit is durable (`true`), or when its data
        /// is on flash and its Commit in the log's memory (`false`, commit without waiting): a power cut may take it back as a whole
        /// until a Flush.
        waits_for_commit: bool,
        /// The time from one checkpoint to the next, if anything has changed: `"10s"`. From `"1us"` to an hour, `"3600s"`.
        checkpoint_interval: Text<Span>,
        /// The size of the log at which a checkpoint is taken, whatever the interval: `"16MiB"`. Without it, two blocks of the
        /// log.
        checkpoint_log: Text<Bytes>,
        /// Memory for the map, of which the rest is in flash only: `"16MiB"`.
        map_memory: Text<Bytes>,
        /// Channels that are collected at a time, as long as there is room for the host's data. Without it, half of them.
        gc_slots: u32,
        /// The share of a channel's blocks in use from which it is collected: `"70%"`; or an amount of flash in use on all
        /// channels together, `"10GiB"`, rounded to a share in steps of 0.1%.
        gc_threshold: Text<ShareOrBytes>,
        /// The share of garbage from which a block of such a channel is always collected: `"90%"`. The fuller the channel, the
        /// less it takes.
        gc_target: Text<Ratio>,
    }
}

section! {
    /// Zones.
    ZoneKeys at "ftl.zone" {
        /// The part of the drive that each zone is spread over: `"superblock"`, all of it; `"plane_group"`, one die of every
        /// channel; or `"dies"`, as many dies as `width` says. Where the planes of a die work independently, a plane counts
        /// as a die.
        mapping: Text<Choice<ZoneSpread>>,
        /// With `mapping = "dies"`, the dies of a zone: `2`. A divisor of all dies.
        width: u32,
        /// Blocks of each plane of a zone, 1 to 64: `1`. With `mapping`, it decides how much a zone holds.
        depth: u32,
        /// From the start of a zone to the start of the next, a power of two: `"2GiB"`. What a zone does not hold of it cannot be
        /// written. Without it, the next power of two after what a zone holds.
        size: Text<Bytes>,
        /// Zones that may be active (open or closed) at a time: `14`. Each may keep an incomplete program in the write buffer, which
        /// must be large enough. `0`: no limit, which Identify Namespace reports as FFFFFFFFh.
        max_active: u32,
        /// Zones that may be open at a time: `14`. Without it, or with `0`, as many as may be active.
        max_open: u32,
        /// Firmware work of a Write or Copy into a zone, in addition to `controller.firmware_time`: `"4.7us"`. One processor
        /// does this and `append_time` for all zones, a command at a time.
        write_time: Text<Span>,
        /// The same of a Zone Append: `"8.1us"`.
        append_time: Text<Span>,
        /// Firmware work of a reset, before blocks are erased: `"1.7ms"`.
        reset_time: Text<Span>,
        /// The same on each mapping unit that was written in the zone: `"40ns"`.
        reset_unit_time: Text<Span>,
        /// Whether Finish writes the zone to its end (`true`), or completes only the program that is begun.
        finish_pads: bool,
        /// Size of a zone random write area (ZRWA): `"1MiB"`. It is kept in the write buffer. `"0"`: there are none.
        zrwa_size: Text<Bytes>,
        /// The least that is committed of a random write area: `"16KiB"`. It divides `zrwa_size` and what a zone holds. Without it, a
        /// mapping unit.
        zrwa_granularity: Text<Bytes>,
        /// Zones that may have a random write area at a time: `4`. Without it, as many as may be active.
        zrwa_zones: u32,
        /// Size of zone descriptor extensions, a multiple of 64 bytes: `"64B"`. `"0"`: there are none.
        descriptor_extension: Text<Bytes>,
    }
}

section! {
    /// Sorted runs of LSM-trees. They are laid out in zones: `mapping`, `width`, `depth`, `max_active`, `max_open`, `write_time`,
    /// `reset_time` and `reset_unit_time` of `ftl.zone` are of those.
    LsmKeys at "ftl.lsm" {
        /// Places for runs: `1024`. As many runs may there be at a time, logs included.
        runs: u32,
        /// Most bytes of a run: `"64MiB"`.
        run_size: Text<Bytes>,
        /// Whether a run begins in the zone in which the last one of its level ended (`true`), or in an empty one.
        share: bool,
        /// Empty zones below which live data is moved to win others: `4`. Half of them are for that alone.
        reserve_zones: u32,
    }
}

section! {
    /// Open-channel drives.
    OpenChannelKeys at "ftl.open_channel" {
        /// Logical blocks of an open chunk, up to its write pointer, that cannot be read yet (MW_CUNITS): `16`. A multiple of what one
        /// program writes.
        mw_cunits: u32,
        /// Whether an open chunk may be reset. The specification allows it for closed ones.
        early_reset: bool,
        /// Whether a free chunk may be reset (MCCAP, multiple resets).
        multiple_resets: bool,
        /// How far the wear index of a chunk, 0 to 255, may be from the average before the drive notifies the host: `10`. `0`: it does
        /// not.
        wear_threshold: u32,
    }
}

section! {
    /// The components that an OX-Block is assembled from, by name.
    OxKeys at "ftl.ox" {
        /// P1-BAD, bad blocks: `"table"` or `"list"`. Programs can [register more](ftl-components.md) components of all kinds;
        /// `nandscape drives components` lists them.
        bad_blocks: String,
        /// P2-BLK, block metadata: `"table"`.
        blocks: String,
        /// P3-PRO, provisioning: `"lines"`, in which planes take turns with the channel the fastest, `"planes_first"`, all planes
        /// of a channel and then the next channel, or `"channel_lines"`, in which each channel renews a line of a block per plane as
        /// a whole.
        provisioning: String,
        /// P4-MPE, where fragments of the map are: `"table"`.
        persistent_mapping: String,
        /// P5-MAP, the map in memory: `"paged"`, as much of it as `ftl.ox_block.map_memory` holds; or `"whole"`, all that was
        /// loaded.
        mapping: String,
        /// P6-LOG, the log: `"chain"`.
        log: String,
        /// P7-REC, checkpoints and replay: `"keyed"`; or `"flushed_first"`, which writes the tables before and after it
        /// takes the head of the log, so that less is replayed.
        checkpoint: String,
        /// P8-GC, which block is collected next: `"most_garbage"`, `"cost_benefit"` or `"oldest"`; or `"by_address"`, the first with the
        /// units of a block moved in the order of their addresses.
        gc: String,
        /// P9-WCA, when data in the write cache is programmed: `"eager"`, as soon as it fills a page; or `"half_full"`, when half
        /// of the cache is in use.
        write_cache: String,
    }
}

impl OxKeys {
    /// The key of a set of components.
    pub fn of(&mut self, set: Set) -> &mut Option<String> {
        match set {
            Set::BadBlocks => &mut self.bad_blocks,
            Set::Blocks => &mut self.blocks,
            Set::Provisioning => &mut self.provisioning,
            Set::PersistentMapping => &mut self.persistent_mapping,
            Set::Mapping => &mut self.mapping,
            Set::Log => &mut self.log,
            Set::Checkpoint => &mut self.checkpoint,
            Set::GarbageCollection => &mut self.gc,
            Set::WriteCache => &mut self.write_cache,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_documented() {
        let docs = key_docs();
        assert!(docs.len() > 30);
        for doc in docs {
            assert!(doc.doc.trim().len() > 10, "{}.{} has no documentation", doc.section, doc.key);
        }
    }
}
