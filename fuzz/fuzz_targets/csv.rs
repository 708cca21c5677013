#![no_main]

use calmix_data::source::labels_csv::{self, LabelsCsvOptions, Unlisted};
use calmix_data::source::{Check, Inspection};
use calmix_fuzz::{LIMITS, Scene, with_scene};
use libfuzzer_sys::fuzz_target;

/// An image of one pixel.
const PIXEL: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\0\0\0\0\x3a\x7e\x9b\x55\
    \0\0\0\x0aIDAT\x78\xda\x63\x60\0\0\0\x02\0\x01\xe5\x27\xde\xfc\0\0\0\0IEND\xae\x42\x60\x82";

fuzz_target!(|bytes: &[u8]| {
    with_scene!(whole, |scene| {
        scene.put("labels.csv", bytes);
        let inspection = Inspection { limits: LIMITS, check: Some(Check::Header), ..Inspection::default() };
        let options =
            LabelsCsvOptions { inspection, unlisted: Unlisted::LeaveOut, ..LabelsCsvOptions::default() };
        scene.check(labels_csv::prepare(&scene.root(), &scene.target(), &options));
    });
});

fn whole(scene: &Scene) {
    for name in ["a.png", "b.png", "sub/c.png"] {
        scene.put(name, PIXEL);
    }
}
