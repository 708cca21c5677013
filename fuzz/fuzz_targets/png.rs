#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| calmix_fuzz::image(bytes));
