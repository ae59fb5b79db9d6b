#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| qpack::fuzz_targets::section(bytes));
