//! Fuzzes the target `command_sets` of lab/fuzz.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nandscape_lab_fuzz::command_sets(bytes));
