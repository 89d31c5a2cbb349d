//! The NVM subsystem of an emulated drive: controllers, each a queue engine, over one command set.
//!
//! The path of a command: a doorbell makes [`NvmeController`] fetch entries, from the queue that its arbiter chooses. `admin`
//! serves admin commands. The [`CommandSet`] serves I/O commands: it parses the raw entry once into a typed command, and
//! executes it. The engine posts the completion to the completion queue.
//!
//! | folder | what |
//! |---|---|
//! | `subsystem` | what the controllers of a drive share |
//! | `engine` | a controller: queues, fetching, completing; registers, reset, deletion of queues |
//! | `arbiter` | the choice of the next queue: one trait, one file per policy |
//! | `admin` | identify, features, logs, events, abort |
//! | `command_set` | the interface of a command set to the engine; `nvm` is the NVM command set over an FTL, `sets` over several, `forward` over any drive; `zns` is the Zoned Namespace command set, `open_channel` the vector commands on chunks, `runs` sorted runs of LSM-trees |
//! | `namespace` | namespaces: layout, identifiers, attachment |
//! | `front` | a subsystem over any command set, used to assemble drives |
//! | `notices` | notices ahead of completions, and their predictors |
//! | `link` | the host link |
//! | `work` | the work of the controller's processors |
//! | `config` | the configuration |
//! | `refusal` | rejected commands, and the field at fault |
//!
//! Left out: a read cache, firmware update.

mod admin;
pub mod arbiter;
pub mod command_set;
mod config;
mod engine;
mod front;
mod link;
mod namespace;
mod notices;
mod refusal;
mod subsystem;
mod work;

pub use admin::Settings;
pub use command_set::any::AnySet;
pub use command_set::forward::Forward;
pub use command_set::nvm::Nvm;
pub use command_set::open_channel::OpenChannel;
pub use command_set::runs::Runs;
pub use command_set::sets::{NvmSet, NvmSets};
pub use command_set::zns::Zns;
pub use command_set::{
    Administration, Command, CommandSet, Culprit, Failure, Fused, Later, Reply, SetInfo, Storage, Windows,
};
pub use config::{BufferMode, ControllerConfig, Duplex, LinkConfig, ProcessorsConfig};
pub use engine::{NvmeController, Stop};
pub use front::{Front, FrontConfig, front_of};
pub use link::Link;
pub use namespace::{MAX_NAMESPACES, Namespace};
pub use notices::{Component, Precompletion, Recent, TOLERANCE, Tracker};
pub use subsystem::{LatencyFigures, NvmSubsystem};
pub use work::Work;
