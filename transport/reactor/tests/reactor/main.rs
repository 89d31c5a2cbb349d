//! The reactor in real time, through rings and plain clients.
//!
//! | file | what |
//! |---|---|
//! | `allocations` | a command allocates nothing |
//! | `in_process` | a server in the loop of its drive |
//! | `notices` | notices of ends over rings |
//! | `plain` | a plain drive behind a reactor |
//! | `two_clocks` | a recording, replayed: the same events at the same times |
//! | `turns` | rings, figures, rest, and recordings that cannot be written |
#![cfg(target_os = "linux")]

mod allocations;
mod in_process;
mod notices;
#[path = "../null/mod.rs"]
mod null;
mod plain;
mod turns;
mod two_clocks;
