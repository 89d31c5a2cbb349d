//! Fuzzes the target `vfio_user` of lab/fuzz.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nandscape_lab_fuzz::vfio_user(bytes));
