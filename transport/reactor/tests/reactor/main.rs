//! The reactor in real time, through rings and plain clients.
//!
//! | file | what |
//! |---|---|
//! | `plain` | a plain drive behind a reactor |
//! | `two_clocks` | what was recorded, replayed: the same events at the same times |
//! | `turns` | rings, figures, rest, and recordings that cannot be written |
#![cfg(target_os = "linux")]

mod plain;
mod turns;
mod two_clocks;
