#![no_main]

use std::io::Cursor;

use calmix_data::source::webdataset::{self, WebdatasetOptions};
use calmix_data::source::{Check, Inspection};
use calmix_formats::tar::TarMembers;
use calmix_fuzz::{LIMITS, with_scene};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut members = TarMembers::new(Cursor::new(bytes)).expect("memory can be read");
    while let Some(Ok(member)) = members.next() {
        // Nothing is ever unpacked, and no name could do harm if it were.
        assert!(!member.name.starts_with('/') && !member.name.split('/').any(|part| part == ".."));
        let content = members.read(&member).expect("a member lies in its archive");
        assert_eq!(content.len() as u64, member.length);
    }
    with_scene!(|_| {}, |scene| {
        scene.put("train.tar", bytes);
        let inspection = Inspection { limits: LIMITS, check: Some(Check::Header), ..Inspection::default() };
        let options = WebdatasetOptions { inspection, classes: None, unlabelled: true };
        scene.check(webdataset::prepare(&scene.root(), &scene.target(), &options));
    });
});
