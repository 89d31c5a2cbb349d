//! The media model against a reference simulator that was written from the page "NAND timing" (docs/techniques) alone
//! and shares no code with it. Random drives, with every option of the page off or on, serve random operations. Every
//! operation must end at the same nanosecond, with the same times in every stage.
//!
//! | file | what |
//! |---|---|
//! | `drive` | a drive: a value for every key of the page |
//! | `script` | the operations on it |
//! | `steps` | the page's operations as lists of steps |
//! | `lun` | registers and queues, and the rules of admission |
//! | `simulator` | the events in their order |
//! | `service` | which operation gets what: LUNs, channels, decoders, the controller |
//! | `suspension` | the same for suspension and preemptive collections |
//! | `outcome` | the outcome of a script |
//! | `mutants` | rules that the simulator can be set to break |
//! | `timelines` | timelines worked out by hand: simulator and model against them |
//! | `model` | the same script through the model |
//! | `compare` | the comparison of simulator and model |
//! | `drops` | polls without cause, and operations dropped half way |
//! | `shrink` | shrinks a case on which they differ |
//!
//! `NANDSCAPE_TEST_SEED` sets the seed, `NANDSCAPE_TEST_CASES` the number of drives (for long runs, for example
//! 100000).

mod compare;
mod drive;
mod drops;
mod lun;
mod model;
mod mutants;
mod outcome;
mod script;
mod service;
mod shrink;
mod simulator;
mod steps;
mod suspension;
mod timelines;
