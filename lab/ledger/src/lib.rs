//! The ledger of what the source papers report: an experiment a claim, measured here and judged by fixed rules. A figure that
//! misses is reported as missed, with the reason.
//!
//! | file | what |
//! |---|---|
//! | `claim` | an entry of the ledger: what a paper reports, and what a run must show |
//! | `experiment` | the form of every experiment: parameters and their sources, choices, points, judgement |
//! | `experiments` | the experiments, a file each |
//! | `figures` | what a point gives |
//! | `verdict` | verdicts, and a file for each rule they follow |
//! | `queueing` | closed queueing networks by formulas, to compare the model with |
//! | `wall` | what experiments by the wall clock share |
//! | `results` | the folder of results: what is there need not be measured again |
//! | `pool` | work on several threads |
//! | `session` | a run of experiments |
//! | `outcome` | what came of a claim, also as JSON |
//! | `show` | outcomes as text, Markdown and HTML |
//! | `find` | experiments by their names |
//!
//! An experiment in virtual time gives the same bytes on any machine, with any number of threads, in one go or resumed.
//! Experiments in real time need Linux and two cores, and are the machine's too.
//!
//! Left out: the papers' results for parts that are not there yet. A claim comes with the experiment that measures it.

pub mod claim;
pub mod experiment;
pub mod experiments;
pub mod figures;
mod find;
pub mod outcome;
mod pool;
mod queueing;
pub mod results;
pub mod session;
pub mod show;
pub mod verdict;
pub mod wall;

pub use experiment::Effort;
pub use experiments::EXPERIMENTS;
pub use find::find;
pub use outcome::Outcome;
pub use results::Folder;
pub use session::{Session, Watch};
pub use verdict::Verdict;
