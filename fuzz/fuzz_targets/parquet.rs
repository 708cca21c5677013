#![no_main]

use calmix_data::source::parquet_images::{ParquetOptions, prepare};
use calmix_data::source::{Check, Inspection};
use calmix_formats::labels::columns::LabelColumns;
use calmix_fuzz::{LIMITS, allow_caught_panics, with_scene};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    allow_caught_panics();
    with_scene!(|_| {}, |scene| {
        scene.put("train.parquet", bytes);
        let inspection = Inspection { limits: LIMITS, check: Some(Check::Full), ..Inspection::default() };
        let options = ParquetOptions { inspection, columns: LabelColumns::default() };
        scene.check(prepare(&scene.root(), &scene.target(), &options));
    });
});
