//! The NVM subsystem of an emulated drive: controllers, each a queue engine, over one command set.
//!
//! The way of a command: a doorbell makes [`NvmeController`] fetch entries, queue by queue as its arbiter says. Admin
//! commands are served by `admin`, others by the [`CommandSet`], which turns the raw entry into a typed command, once, and
//! does it. The completion is posted to the completion queue.
//!
//! | folder | what |
//! |---|---|
//! | `subsystem` | what the controllers of a drive share |
//! | `engine` | a controller: queues, fetching, completing; registers, reset, deletion of queues |
//! | `arbiter` | whose turn it is: one trait, one file an answer |
//! | `admin` | identify, features, logs, events, abort |
//! | `command_set` | what the engine asks of a command set; `nvm` is the NVM command set over an FTL, `sets` over several, `forward` over any drive; `zns` is the Zoned Namespace command set, `open_channel` the vector commands on chunks, `runs` sorted runs of LSM-trees |
//! | `namespace` | namespaces: where they lie, what identifies them, who has them attached |
//! | `front` | a subsystem whatever its command set is, as drives are assembled with |
//! | `notices` | notices ahead of completions, and who predicts when they are due |
//! | `link` | the host link |
//! | `work` | the work of the controller's processors |
//! | `config` | what can be set |
//! | `refusal` | a command that is refused, and the field at fault |
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
pub use command_set::forward::{Forward, Offers};
pub use command_set::nvm::Nvm;
pub use command_set::open_channel::OpenChannel;
pub use command_set::runs::Runs;
pub use command_set::sets::{NvmSet, NvmSets};
pub use command_set::zns::Zns;
pub use command_set::{
    Administration, Command, CommandSet, Culprit, DirectSet, Failure, Fused, Later, Reply, SetInfo, Storage, Windows,
};
pub use config::{BufferMode, ControllerConfig, Duplex, LinkConfig, ProcessorsConfig};
pub use engine::{NvmeController, Stop};
pub use front::{Front, FrontConfig, front_of, front_of_page};
pub use link::Link;
pub use namespace::{MAX_NAMESPACES, Namespace};
pub use notices::{Component, Precompletion, Recent, TOLERANCE, Tracker};
pub use subsystem::{LatencyFigures, NvmSubsystem};
pub use work::Work;
