//! Fuzzes the target `kv_message` of lab/fuzz.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nandscape_lab_fuzz::kv_message(bytes));
