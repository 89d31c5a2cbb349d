//! A model of an SSD, from NAND cell to NVMe command, that runs in simulated time: the same input and seed give the same
//! figures on any machine, and every command reports the time of each stage and the cause of each wait.
//!
//! This crate is the public interface: its items are stable within a minor version. The crates behind it may change at
//! any time.
//!
//! | module | what |
//! |---|---|
//! | [`ssd`] | profiles, and drives made from them |
//! | [`ftl`] | components of an FTL: the traits, the built-in ones, and how to register your own |
//! | [`policy`] | policies of the page-mapping FTL: the traits, the built-in ones, and how to bring your own |
//! | [`workload`] | loads: fio-style jobs, loads from characteristics, filebench and YCSB |
//! | [`trace`] | block traces: read, described, converted, and replayed as workloads |
//! | [`run`] | a drive under a workload, and the report |
//! | [`sweep`] | many runs over chosen parameters and seeds, kept point by point |
//! | [`drive`] | one command in, one completion out: the interface at which drives are stacked |
//! | [`mod@array`] | arrays of drives: levels, techniques against tails, journals, rebuilds |
//! | [`layer`] | layers of a host over drives: arrays, block layers, page caches, FTLs of open-channel drives, and chains of them |
//! | [`host`] | libraries of hosts over a drive: transactions, host-controlled garbage collection, open-channel drives |
//! | [`fox`] | uFLIP-OC on open-channel drives, and custom engines |
//! | [`nvme`] | commands, completions and statuses as bytes |
//! | [`sim`] | the executor and its clock, time, resources, randomness, histograms |
//!
//! # A first simulation
//! A drive from a profile, a workload, the 99th percentile of its reads:
//!
//! ```
//! use std::rc::Rc;
//!
//! use nandscape::run::{Precondition, Simulation, StoreKind};
//! use nandscape::ssd::Profile;
//! use nandscape::workload::{JobSpec, Limit, Workload};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut profile = Profile::load("default")?;
//! profile.set("capacity=1GiB")?;
//! profile.set("ftl.gc.scheme=channel")?;
//!
//! let job = JobSpec { rw: "randrw".parse()?, rwmixread: 70.0, iodepth: 8, ..JobSpec::default() };
//! let workload = Workload { limit: Limit::Requests(20_000), ..Workload::of(job) };
//! let simulation = Simulation::on(profile.resolve()?, Precondition::Steady, workload, 1);
//! let report = simulation.run(Rc::new(()))?.into_drive().report;
//!
//! let p99 = report.latency_us["read"].p99.expect("there were reads");
//! println!("p99 of reads: {p99:.1} us; write amplification {:.2}", report.waf.expect("there were writes"));
//! # assert!(p99 > 50.0 && report.requests == 20_000);
//! # Ok(())
//! # }
//! ```
//!
//! # Issuing commands yourself
//! Model code is an `async fn` on the executor. A drive that keeps data, written and read back, command by command:
//!
//! ```
//! use nandscape::drive::{HostMem, Issuer, QueueDrive, QueueId};
//! use nandscape::nvme::{IoOpcode, Status, SubmissionEntry};
//! use nandscape::sim::{Executor, Seed};
//! use nandscape::ssd::{Profile, Ssd, StoreKind};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut profile = Profile::load("femu-blackbox")?;
//! profile.set("capacity=64MiB")?;
//! let mut executor = Executor::new();
//! let sim = executor.sim();
//! let ssd = Ssd::new(&sim, &profile.resolve()?, StoreKind::Ram, Seed::new(1))?;
//! let drive = QueueDrive::new(&sim, ssd.controller(), QueueId(1), 64).map_err(|status| status.to_string())?;
//!
//! let issuer = Issuer::new(&sim);
//! let (data, back) = (HostMem::from_bytes(&[7; 4096]), HostMem::zeroed(4096));
//! let read = executor.block_on(async {
//!     let write = SubmissionEntry::blocks(IoOpcode::WRITE, 1, 0, 8);
//!     assert_eq!(issuer.execute(&*drive, write, data.clone()).await.status, Status::SUCCESS);
//!     issuer.execute(&*drive, SubmissionEntry::blocks(IoOpcode::READ, 1, 0, 8), back.clone()).await
//! })?;
//!
//! assert_eq!(back.to_vec(), data.to_vec());
//! // This profile has 40 us of array time and nothing else.
//! assert_eq!(read.breakdown.total().ns(), 40_000);
//! # Ok(())
//! # }
//! ```
//!
//! # Transactions
//! On a drive with OX-Block, writes to several places are one transaction: after a power cut at any time, either all of them
//! are on the drive, or none. Here two accounts hold 100 together, always:
//!
//! ```
//! use std::rc::Rc;
//!
//! use nandscape::drive::{Drive, HostMem, Issuer, QueueDrive, QueueId};
//! use nandscape::host::Transaction;
//! use nandscape::nvme::{IoOpcode, Status, SubmissionEntry};
//! use nandscape::sim::{Executor, Seed, Span};
//! use nandscape::ssd::{Profile, Ssd, StoreKind};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut profile = Profile::load("default")?;
//! for change in ["capacity=64MiB", "ftl.kind=ox_block", "buffer.mode=volatile"] {
//!     profile.set(change)?;
//! }
//! let mut executor = Executor::new();
//! let (sim, issuer) = (executor.sim(), Issuer::new(&executor.sim()));
//! let ssd = Rc::new(Ssd::new(&sim, &profile.resolve()?, StoreKind::Ram, Seed::new(1))?);
//! let drive = QueueDrive::new(&sim, ssd.controller(), QueueId(1), 64).map_err(|status| status.to_string())?;
//!
//! let read = async |slba| loop {
//!     let block = HostMem::zeroed(512);
//!     let ended = issuer.execute(&*drive, SubmissionEntry::blocks(IoOpcode::READ, 1, slba, 1), block.clone()).await;
//!     if ended.status == Status::SUCCESS {
//!         break u32::from(block.to_vec()[0]);
//!     }
//! };
//! executor.block_on(async {
//!     for amount in 1..=10u8 {
//!         let mut transfer = Transaction::new(&drive.info());
//!         transfer.write(0, &[100 - amount; 512]).expect("it fits");
//!         transfer.write(40_000, &[amount; 512]).expect("it fits");
//!         transfer.force();
//!         // Power fails during some of the commits.
//!         let (clock, flash) = (sim.clone(), ssd.clone());
//!         sim.spawn(async move {
//!             clock.sleep(Span::from_us(400 * u64::from(amount))).await;
//!             flash.media().cut_power(Span::from_us(10));
//!         });
//!         let committed = transfer.commit(&issuer, &*drive).await;
//!         let sum = read(0).await + read(40_000).await;
//!         assert!(sum == 100 || sum == 0 && committed.is_err(), "{sum} after {committed:?}");
//!     }
//! })?;
//! # Ok(())
//! # }
//! ```
//!
//! Left out: the internals of the controller, the FTLs and the flash, in the crates behind this one.

/// Time, the executor and its clock, resources, randomness, measurement.
pub mod sim {
    pub use nandscape_sim::{Executor, Histogram, Resource, Rng, Seed, Sim, Span, Stalled, Time};
}

/// NVMe as bytes: commands, completions, statuses.
pub mod nvme {
    pub use nandscape_wire_nvme::io::DsmRange;
    pub use nandscape_wire_nvme::{AdminOpcode, CompletionEntry, IoOpcode, NSID_ALL, Status, SubmissionEntry};
}

/// The interface between a drive and the layers above it.
pub mod drive {
    pub use nandscape_drive::breakdown::cause;
    pub use nandscape_drive::io::Sink;
    pub use nandscape_drive::{
        Breakdown, CommandRef, Completion, Controller, Drive, DriveInfo, HostMem, Io, Issuer, QueueDrive, QueueId,
        Stage, Token,
    };
}

/// What a host does over a drive.
pub mod host {
    /// Pages of a log-structured store on drives that know them (OX-ELEOS).
    pub mod eleos {
        pub use nandscape_host_eleos::{
            Buffer, Error, Limits, Misfit, Page, PieceBuffer, PieceLimits, PieceMisfit, format_for_pieces, read,
            read_pieces,
        };
    }
    /// A log-structured store with a Bw-tree over it (LLAMA).
    pub mod llama {
        pub use nandscape_apps_llama_engine::{
            AnyStore, BwTree, ChainConfig, ChainStore, Change, Config, Costs, EleosStore, Error, Host, Kind, LogConfig,
            LogStore, MAX_KEY, OpenError, PageStats, PageStore, Piece, Record, Shape, StoreError, TreeStats,
        };
    }
    /// A key-value store of sorted runs in levels (an LSM-tree).
    pub mod lsm {
        pub use nandscape_apps_lsm_engine::{
            AnyStorage, BLOCK, BlockConfig, BlockStorage, Change, Config, Costs, Edit, Error, Host, LOG, LevelConfig,
            Lsm, MAX_KEY, MAX_RECORD, OpenError, RunInfo, RunStorage, Stats, Storage, StorageStats, StoreError,
        };
    }
    /// Garbage collection of a drive at its host's command (the SSD control API).
    pub mod control {
        pub use nandscape_host_control::{
            Control, Error, Placement, PredictableLatency, Ready, Run, Space, Window, WindowTimes,
        };
    }
    /// Open-channel drives.
    pub mod open_channel {
        pub use nandscape_host_open_channel::{
            ChunkInfo, DieFifo, DieLoad, DieOrder, DieUse, Error, Geometry, Means, OneWrite, OpenChannel, PageAddress,
            Place,
        };
    }
    pub use nandscape_host_transaction::{CommitError, Limits, Misfit, Transaction};
}

/// uFLIP-OC on open-channel drives: micro-benchmarks, engines, and engines of one's own.
pub mod fox {
    pub use nandscape_papers_fox::{
        BadPlan, Band, Benchmark, Cell, Choice, Command, Engine, Engines, Kind, Latency, Mix, Node, Opened, Outcome,
        Plan, Report, RunError, Sample, Unit, Wanted, WearPlan, WearPoint, WearReport, pages_of, render, render_wear,
        run, scale, simulated, wear,
    };

    /// Tables of outcomes as CSV.
    pub mod tables {
        pub use nandscape_papers_fox::tables::{latencies, latencies_head, runs, units, wear};
    }
}

/// Profiles, and drives made from them.
pub mod ssd {
    pub use nandscape_device_ftl_core::{Plant, PlantReport};
    pub use nandscape_device_media::StoreKind;
    pub use nandscape_device_media::fault::{FaultPlan, Rule, RuleCount, RuleError};
    pub use nandscape_device_ssd::{BUILTIN, KeyDoc, Profile, ProfileError, Resolved, Sizing, Ssd, key_docs};
}

/// Components of an FTL, by name.
pub mod ftl {
    pub use nandscape_device_ftl_core::address::Lpn;
    pub use nandscape_device_ftl_core::component::{
        BadBlocks, BlockInfo, BlockMetadata, BlockState, CacheFill, CachedMapping, CachedWrites, ChainedLog, Channels,
        Checkpoint, Checkpointing, EndedProgram, Eviction, FragmentMiss, Fragments, GarbageCollection, InLine, Key,
        LineProvisioning, Log, LogHead, LogPosition, LogStart, Mapping, Miss, NextBlock, NoteRecord, Outgoing,
        POINTERS, Process, Progress, Provisioning, RecycledUnit, Recycling, ReplayEnded, Replayed, Replaying, Room,
        Stopped, StoredBlocks, Stream, StreamRule, Submission, WriteCaching,
    };
    pub use nandscape_device_ftl_core::policy::Candidate;
    pub use nandscape_device_ftl_ox::registry::{Choice, Needs, Set};
    pub use nandscape_device_media::{BlockId, Geometry, PageId, PlaneId, UnitId};

    /// The built-in components.
    pub mod parts {
        pub use nandscape_device_ftl_core::component::{Entry, Moved, Record, Remap, page_from_raw, page_to_raw};
        pub use nandscape_device_ftl_core::parts::{
            BadBlockTable, BlockTable, COLLECTOR_RESERVE, FreeOrder, PlaneLists,
        };
        pub use nandscape_device_ftl_ox::parts::{
            BadBlockList, BlocksPart, ByAddress, ByMerit, ChannelTable, ChunkTable, Eager, FIXED, FixedPage,
            FixedRecord, FlushedFirst, FragmentTable, HalfFull, JournalEntry, KeptRecords, KeyedEntries, Line,
            LineOrder, LineUse, Lines, LogBuffer, LogPage, LogPart, MapPart, NoLog, Oldest, PagedMap, Part,
            ProvisioningPart, Reassembly, StreamLine, Superblocks, fuzzy_checkpoint, numbers_of_bytes,
            numbers_to_bytes, records_per_page, replay_in_order, submit_in_order, to_entries,
        };
        pub use nandscape_device_ftl_page::flat_map::FlatMap;
    }

    /// Components by name, and how a program registers its own.
    pub mod registry {
        pub use nandscape_device_ftl_ox::registry::{
            BUILT_IN, Choice, Component, Components, MakeBadBlocks, MakeBlocks, MakeCheckpoint, MakeFragments,
            MakeGarbageCollection, MakeLog, MakeMap, MakeProvisioning, MakeWriteCaching, Needs, Set, Taken, Unknown,
            components, register,
        };
    }
}

/// Policies of the page-mapping FTL: the traits, the built-in ones, and how a program adds its own
/// ([`Resolved::with_policies`](ssd::Resolved::with_policies)).
pub mod policy {
    pub use nandscape_device_ftl_core::policy::{
        AdmissionPolicy, All, AllocationPolicy, BufferFill, BufferPolicy, ByRange, Candidate, CostBenefit, FailFast,
        FlushCandidate, FlushPolicy, GcScheme, GcTolerant, Greedy, InOrder, InTurn, NearLimit, OnePerGroup,
        OwnerSource, PatrolOrder, PendingRead, PlaneSet, ReadPolicy, Reconstruct, RefreshPolicy, Rotating,
        ScrubCandidate, ScrubPolicy, Stripe, StripeOrder, StripeWearPolicy, Striped, Suspects, Thresholds, TurnPolicy,
        Verdict, VictimPolicy,
    };
    pub use nandscape_device_ssd::{MakePolicy, OwnPolicies};
}

/// Arrays of drives.
pub mod array {
    pub use nandscape_layers_array::tail::{Sends, Sub, SubState, TailPolicy, View};
    pub use nandscape_layers_array::{
        Array, ArrayError, Config, ConfigError, Connection, JournalMode, Kind, LAYER, Member, MemberStats, News, Rails,
        Recovered, Schedule, ScrubReport, Shape, Stats, Technique, WindowMode,
    };
}

/// Layers of a host over drives, and chains of them.
pub mod layer {
    pub use nandscape_drive::layer::{Layer, LayerNode, LayerReport, Rest, Shown, full_key, only};
    pub use nandscape_drive::node::{Node, Refused, Role, Use, view};
    pub use nandscape_drive::{Offers, Opening};
    pub use nandscape_lab_run::chain::{
        AhciLayer, AhciReport, Chain, FtlLayer, FtlReport, Instance, Kind, LayerSettings, LayerWords, Named, Opened,
        Section, kinds, offers, open,
    };
    pub use nandscape_lab_run::offers_of_model;
    pub use nandscape_layers_array::{ArrayLayer, ArrayReport};
    pub use nandscape_layers_block::{BlockOver, BlockReport};
    pub use nandscape_layers_cache::{CacheLayer, CacheReport};

    /// A host's block layer with deadlines (MittOS).
    pub mod block {
        pub use nandscape_host_block::{
            Accuracy, BlockLayer, Busy, Config, ConfigError, LAYER, PredictorKind, Request,
        };
    }
    /// An AHCI controller over several drives.
    pub mod ahci {
        pub use nandscape_device_ahci::{Ahci, Config, ConfigError, Counters, Port};
    }
    /// A page cache over a drive.
    pub mod cache {
        pub use nandscape_layers_cache::{
            Cache, CacheError, Config, ConfigError, Counters, LAYER, PAGE, ReplacementKind,
        };
    }
}

/// Loads.
pub mod workload {
    pub use nandscape_lab_workload::{
        BUILTIN, BlockSizes, Burst, Bursts, Characteristics, Choice, Client, Direction, Distribution, FileId,
        FileSystem, FileSystemOptions, Filebench, Flushes, JobSpec, Limit, LoadKind, LoadSpec, Meter, Mix, PageCache,
        Pattern, Personality, Phase, Rate, RateProcess, RecordTable, Request, RequestSource, RequestStream, Share,
        SizeSpec, Source, SourceError, Think, TimedRequest, Unmetered, Workload, WorkloadError, Ycsb, load,
    };
}

/// Block traces: read, described, converted, and replayed as workloads.
pub mod trace {
    pub use nandscape_lab_trace::{
        Action, Address, ConvertError, Device, Format, Info, Malformed, Options, Pace, Record, Records, Replay,
        Selection, Totals, Trace, TraceError, convert, describe,
    };
}

/// A drive under a workload, and its report.
pub mod run {
    pub use nandscape_device_media::StoreKind;
    pub use nandscape_drive::layer::{Layer, LayerNode};
    pub use nandscape_drive::{Latency, Phase, Precondition, Progress};
    pub use nandscape_lab_run::chain::{Chain, Named};
    pub use nandscape_lab_run::{
        Arrivals, Asking, ChainFinished, Damage, DriveFinished, Fault, Figures, Finished, Gc, Host, HostReport, Inputs,
        Report, Rig, RigDrive, RunError, Simulation, Wanted,
    };
}

/// Many runs over chosen parameters and seeds.
pub mod sweep {
    pub use nandscape_lab_sweep::{
        Axis, Begun, Choice, Drive, Event, Figure, Folder, FromState, Inputs, Kind, LayerInputs, Load, Outcome, Plan,
        Planned, Process, Runner, Session, State, Stopper, Stored, Sweep, SweepError, Threads, TraceKeys, Unit, Value,
        Watch, WorkloadFrom, check_name, figure, job_of, names, open_trace, point_of_thread, this_program,
    };
}
