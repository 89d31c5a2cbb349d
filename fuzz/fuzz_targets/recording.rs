//! Fuzzes the target `recording` of lab/fuzz.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nandscape_lab_fuzz::recording(bytes));
