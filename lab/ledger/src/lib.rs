//! The ledger of the source papers' claims: one experiment per claim, judged by fixed rules. A figure that misses is
//! reported as missed, and why.
//!
//! | file | what |
//! |---|---|
//! | `claim` | an entry of the ledger: a published result, and the criterion for reproducing it |
//! | `experiment` | the form of every experiment: parameters and their sources, choices, points, judgement |
//! | `ledger` | all entries, and experiments by their names |
//! | `machine` | the machine of real-time figures |
//! | `figures` | the results of a point |
//! | `verdict` | verdicts, and a file for each rule they follow |
//! | `results` | the folder of results, which are not measured again |
//! | `pool` | work on several threads |
//! | `session` | a run of experiments |
//! | `durations` | the processor time that claims take |
//! | `vary` | a claim with each of its costs at half and at twice its value |
//! | `outcome` | the outcome of a claim, also as JSON |
//! | `score` | the count of verdicts by paper |
//! | `recorded` | the verdicts of the page of claims |
//! | `show` | outcomes as text, Markdown and HTML |
//!
//! An experiment in simulated time gives the same bytes on any machine, with any number of threads, in one go or resumed.
//! Experiments in real time need Linux and two cores, and depend on the machine.
//!
pub mod claim;
pub mod durations;
pub mod experiment;
pub mod figures;
mod ledger;
pub mod machine;
pub mod outcome;
mod pool;
pub mod recorded;
pub mod results;
pub mod score;
pub mod session;
pub mod show;
pub mod vary;
pub mod verdict;

pub use durations::Durations;
pub use experiment::Effort;
pub use ledger::Ledger;
pub use outcome::Outcome;
pub use recorded::Recorded;
pub use results::Folder;
pub use score::Score;
pub use session::{Session, Watch};
pub use vary::Sensitivity;
pub use verdict::Verdict;
