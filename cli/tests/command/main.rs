//! The command line as a user meets it: the tests run the program, and check its output and exit status.
//!
//! | file | what |
//! |---|---|
//! | `program` | runs it |
//! | `help` | its help |
//! | `bad_drive`, `bad_workload`, `bad_usage` | invalid input, with the messages |
//! | `report` | the fields of `--json`, their types, and what must hold between them |
//! | `meaning` | what each flag does |
//! | `pressure` | notes of a run: overload, standstills, its state at the start, its inputs |
//! | `faults` | planned faults |
//! | `partitioning` | tenants with their own dies |
//! | `arrays` | arrays of drives |
//! | `assign` | classes and tenants by rule |
//! | `layers` | layers of a host over drives, in any order |
//! | `aging` | a life before the run, and flash that ages |
//! | `fox` | uFLIP-OC on open-channel drives |
//! | `lsm` | loads of db_bench on an LSM-tree, over a generic FTL and over the FTL for LSM-trees |
//! | `engine` | readers and writers on the engine over several drives, and its server |
//! | `ycsb` | YCSB on a log-structured store, conventional and offloaded |
//! | `mitt` | failing fast beyond drives |
//! | `zones` | resets and finishes of drives with zones |
//! | `traces`, `bad_traces` | traces described, converted and replayed, and invalid traces |
//! | `pages`, `browser` | the files of `--out`, and the pages among them as a browser shows them |
//! | `questions` | percentiles, the highest rate under a bound, fio's job files, requests one by one, several jobs |
//! | `states` | preconditioning under a load, and states in files |
//! | `sweep` | sweeps: points, interruptions, pages, the guide on suspension |
//! | `interrupt` | runs that the user ends |
//! | `shell` | completion of the command line, and manual pages |
//! | `block` | the host's block layer over a drive |
//! | `members` | layers and faults below the storage engine and the store's servers |
//! | `compare`, `demo` | comparison of runs, and the tour |
//! | `catalogue` | every built-in drive and workload, in every state |
//! | `lab` | claims listed, run, kept and reported |

mod aging;
mod arrays;
mod assign;
mod bad_drive;
mod bad_traces;
mod bad_usage;
mod bad_workload;
mod block;
mod browser;
mod catalogue;
mod compare;
mod demo;
mod engine;
mod engine_runs;
mod explain;
mod faults;
mod fox;
mod help;
mod hosts;
mod interrupt;
mod lab;
mod layers;
mod lsm;
mod meaning;
mod members;
mod mitt;
mod pages;
mod partitioning;
mod pressure;
mod program;
mod questions;
mod report;
mod shell;
mod states;
mod sweep;
mod traces;
mod ycsb;
mod zones;
