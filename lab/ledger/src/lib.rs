//! The ledger of the source papers' claims: one experiment per claim, judged by fixed rules. A figure that misses is
//! reported as missed, with the reason.
//!
//! | file | what |
//! |---|---|
//! | `claim` | an entry of the ledger: a published result, and the criterion for reproducing it |
//! | `experiment` | the form of every experiment: parameters and their sources, choices, points, judgement |
//! | `experiments` | the experiments, one file each |
//! | `figures` | the results of a point |
//! | `verdict` | verdicts, and a file for each rule they follow |
//! | `ox` | the drive of the experiments on OX-Block |
//! | `open_channel` | runs of the experiments on open-channel drives |
//! | `array` | runs of the experiments on arrays of drives |
//! | `ttflash` | runs of the experiments on the drive of ttFlash |
//! | `server_trace` | a trace of a real server, beside generated loads |
//! | `mitt` | runs of the experiments on MittOS |
//! | `engine` | runs of the experiments on the storage engine over several drives |
//! | `host_path` | runs of the experiments on the host's I/O path |
//! | `notified` | runs of the experiments on precompletion |
//! | `queueing` | an analytic solution of closed queueing networks, as a reference for the model |
//! | `wall` | common code of the experiments in real time |
//! | `results` | the folder of results, which are not measured again |
//! | `pool` | work on several threads |
//! | `session` | a run of experiments |
//! | `outcome` | the outcome of a claim, also as JSON |
//! | `score` | the count of verdicts by paper |
//! | `show` | outcomes as text, Markdown and HTML |
//! | `find` | experiments by their names |
//! | `unbuilt` | entries of the ledger without an experiment |
//!
//! An experiment in simulated time gives the same bytes on any machine, with any number of threads, in one go or resumed.
//! Experiments in real time need Linux and two cores, and depend on the machine.
//!
mod array;
pub mod claim;
mod engine;
pub mod experiment;
pub mod experiments;
pub mod figures;
mod find;
mod host_path;
mod mitt;
mod notified;
mod open_channel;
pub mod outcome;
mod ox;
mod pool;
mod queueing;
pub mod results;
pub mod score;
mod server_trace;
pub mod session;
pub mod show;
mod ttflash;
mod unbuilt;
pub mod verdict;
pub mod wall;

pub use experiment::Effort;
pub use experiments::EXPERIMENTS;
pub use find::find;
pub use outcome::Outcome;
pub use results::Folder;
pub use score::Score;
pub use session::{Session, Watch};
pub use unbuilt::UNBUILT;
pub use verdict::Verdict;
