#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| http3::fuzz_targets::connection(bytes));
