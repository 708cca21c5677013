#![no_main]

use calmix_core::preset::paper;
use calmix_core::pseudo::{Base, FlexMatch};
use calmix_core::samples::Samples;
use calmix_core::samples::labelled::LabelledSamples;
use calmix_run::tensor_files::sample_files::{read_labelled, read_shard, write_labelled, write_shard};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let method = paper(Base::FlexMatch(FlexMatch::default()));
    let fresh = Samples::new(&method, 2, [3]).shards.remove(0);
    if let Ok(read) = read_shard(bytes, fresh.clone()) {
        let written = write_shard(&read).expect("the state of samples can be written");
        // Compared by bytes, because a margin may be NaN.
        let again = read_shard(&written, fresh).expect("the state of samples can be read back");
        assert_eq!(write_shard(&again).expect("again"), written);
    }
    let fresh = || LabelledSamples::new(&method, &[3, 5]).margins;
    if let Ok(read) = read_labelled(bytes, fresh()) {
        let written = write_labelled(read.as_ref()).expect("margins can be written");
        read_labelled(&written, fresh()).expect("margins can be read back");
    }
});
