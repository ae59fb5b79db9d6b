#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| wire::fuzz_targets::packet_number(bytes));
