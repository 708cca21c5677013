#![no_main]

use calmix_formats::npy;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(table) = npy::parse(bytes) {
        assert_eq!(table.values.len(), table.rows * table.columns);
    }
});
