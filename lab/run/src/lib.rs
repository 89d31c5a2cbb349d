//! Simulated runs: a drive is built from a profile, brought into a state, put under a workload, and reported on; or several
//! drives, with layers of a host over them.
//!
//! | file | what |
//! |---|---|
//! | `build` | building a drive from a profile, in a state |
//! | `rig` | drives by name on one executor, for any host |
//! | `saved` | states of drives, saved to files and taken from them; preconditioning under a load |
//! | `simulation` | a workload on drives, with layers of the host over them; a lone drive is the empty chain |
//! | `stand` | what a run stands on: drives, layers, and the way of its jobs to the top |
//! | `finished` | what a run leaves: the report of a lone drive, or those of layers and drives |
//! | `chain` | layers of a host over drives: arrays, block layers, page caches, in any order |
//! | `array` | arrays of experiments |
//! | `array_members` | whether drives can be their members |
//! | `block` | the host's block layer over the drive of a run |
//! | `cpu` | the host in whose threads a run's jobs work, and its processors |
//! | `tap` | the commands of one of several drives, recorded |
//! | `watched_group` | the same of drives that clients reach as one |
//! | `tower` | drives with layers over them, for engines of applications: states, reports, recordings |
//! | `members` | drives with the same layers over each member of an application |
//! | `host_ftl` | an FTL on the host of an open-channel drive |
//! | `host_report` | the workload's view of several drives |
//! | `live`, `replay` | the model behind a live drive, and the replay of a recording |
//! | `live_drive` | a served drive: layers over models, a remote drive, or an array with records |
//! | `inside` | the dies, channels and blocks of a live drive, for a page that shows them |
//! | `forwarded` | controllers before a drive that is no model by itself |
//! | `remote` | a drive of another machine, served as one's own (Linux) |
//! | `alone` | a program as the only user of such drives (Linux) |
//! | `served_array` | an array of drives, served as one (Linux) |
//! | `snapshot` | a drive's counters at one time |
//! | `outages` | power cuts, and what they cost |
//! | `watched` | the figures of a served drive, as a run has them |
//! | `part` | the figures of each of several FTLs |
//! | `placement` | the figures of each handle by which hosts place data |
//! | `precompletion` | notices ahead of completions, as the host of a run asks for them |
//! | `upkeep` | tables in flash, log, checkpoints and recoveries |
//! | `aging` | what aging has done |
//! | `damage` | planned faults, and the damage they have done |
//! | `record` | latency, throughput, the drive and its dies over time, on request |
//! | `latency` | latencies by direction, with percentiles that a user chooses |
//! | `percentile` | percentiles that a user chooses, and figures of a distribution by name |
//! | `search` | the highest rate at which a latency stays below a bound |
//! | `program` | which program measured |
//! | `pressure` | how load and drive kept up with each other |
//! | `state` | the state a drive begins in, in words |
//! | `inputs` | what a run was made from |
//! | `flow` | the figures of each of several jobs, and fairness |
//! | `results` | a folder of results, for one run at a time |
//! | `whole` | those of several drives as one object |
//! | `report` | its figures, as the contract of `--json` has them |
//! | `host` | the cost of the run on this machine |
//! | `wall` | a workload on a drive behind a socket or a ring, at the wall clock (Linux) |
//!
//! Everything in a report but its `host` part depends on the inputs and the seed only.

mod aging;
#[cfg(target_os = "linux")]
mod alone;
mod array;
mod array_members;
mod block;
mod build;
pub mod chain;
mod cpu;
mod damage;
mod finished;
mod flow;
mod forwarded;
mod host;
pub mod host_ftl;
mod host_report;
mod inputs;
mod inside;
mod latency;
mod live;
mod live_drive;
mod members;
mod outages;
mod part;
mod percentile;
mod placement;
mod precompletion;
mod pressure;
mod program;
pub mod record;
#[cfg(target_os = "linux")]
mod remote;
mod replay;
mod report;
pub mod results;
mod rig;
mod saved;
pub mod search;
#[cfg(target_os = "linux")]
mod served_array;
mod simulation;
mod snapshot;
mod stand;
mod state;
mod tap;
mod tower;
mod upkeep;
#[cfg(target_os = "linux")]
pub mod wall;
mod watched;
mod watched_group;
mod whole;

pub use aging::{AgingReport, RberBin};
#[cfg(target_os = "linux")]
pub use alone::{Claimed, Connection, Connections, Records, UNMARKED, User};
pub use array::{array_on, array_on_namespace, rails_on};
pub use array_members::{name_of_drive, takes_windows, written_in_order};
pub use block::layer as block_layer;
pub use build::{DriveError, build_drive};
pub use chain::{ArrayLayer, Chain, LayerWords};
pub use cpu::{CpuReport, NetworkReport};
pub use damage::{Damage, Fault};
pub use finished::{ChainFinished, Figures, Finished, notes_of_each};
pub use flow::{DeadlineReport, FlowReport};
pub use host::process_cpu;
pub use host_report::{DRIVE, HostReport};
pub use inputs::Inputs;
pub use live::{BuildError, DriveSpec, LiveDrives, Rules, SsdExport, offers_of_model};
pub use live_drive::{LiveDrive, LiveSpec, LowestSpec};
pub use members::{MemberDrive, MemberFaults, MemberLayers, Members, MembersReport};
pub use nandscape_drive::{Latency, Offers, Phase, Precondition, Progress};
#[cfg(target_os = "linux")]
pub use nandscape_host_driver::nvme_tcp::Target;
pub use nandscape_layers_array::{ArrayReport, MemberFailure, MemberReport, RailsReport, Rebuild};
pub use nandscape_layers_block::{BlockReport, counters as block_counters};
pub use outages::{FaultCost, Outages};
pub use part::PartReport;
pub use percentile::{Percentile, PercentileError, Quantity};
pub use placement::{HandleFigures, PlacementFigures};
pub use precompletion::{Asking, BufferReport, ComponentReport, PrecompletionReport, WokenReport};
pub use pressure::Arrivals;
pub use program::Program;
pub use record::{Details, HostDetails};
pub use remote::{RemoteError, RemoteExport, RemoteSpec};
pub use replay::{Lag, Replay, ReplayError, ReplayReport, Replayed, ReplayedDrive, ReplayedGroup, WhatIf};
pub use report::{Flash, Gc, Host, Report};
pub use rig::{DriveFinished, Rig, RigDrive, Wanted};
pub use saved::{Begin, FromState, HeldLayers, History, Settled, Start, StateError, StateFile, check_can_write};
#[cfg(target_os = "linux")]
pub use served_array::{ArrayExport, ArraySpec};
pub use simulation::{Observer, RunError, Simulation};
pub use tower::{Below, DriveFigures, EngineLoad, Needs, Ran, Recording, Top, TowerError};
pub use upkeep::{Recoveries, Upkeep};
pub use watched::{LiveDriveReport, LiveReport, LiveWatch};
pub use watched_group::GroupFinished;
