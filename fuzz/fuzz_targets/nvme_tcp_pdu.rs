//! Fuzzes the target `nvme_tcp_pdu` of lab/fuzz.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nandscape_lab_fuzz::nvme_tcp_pdu(bytes));
