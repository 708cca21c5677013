#![no_main]

use std::sync::Once;

use calmix_data::source::parquet_images::{ParquetOptions, prepare};
use calmix_data::source::{Check, Inspection};
use calmix_formats::labels::columns::LabelColumns;
use calmix_fuzz::{LIMITS, with_scene};
use libfuzzer_sys::fuzz_target;

static QUIET: Once = Once::new();

fuzz_target!(|bytes: &[u8]| {
    // The crate `parquet` panics on damaged files, which the reader makes errors. libFuzzer's hook would abort before that;
    // a panic that reaches the target still does.
    QUIET.call_once(|| std::panic::set_hook(Box::new(|_| {})));
    with_scene!(|_| {}, |scene| {
        scene.put("train.parquet", bytes);
        let inspection = Inspection { limits: LIMITS, check: Some(Check::Full), ..Inspection::default() };
        let options = ParquetOptions { inspection, columns: LabelColumns::default() };
        scene.check(prepare(&scene.root(), &scene.target(), &options));
    });
});
