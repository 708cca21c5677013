#![no_main]

use calmix_core::preset::paper;
use calmix_core::pseudo::{Base, FlexMatch};
use calmix_core::samples::LabelledSamples;
use calmix_core::samples::Samples;
use calmix_run::tensor_files::sample_files::{
    read_labelled, read_unlabelled, write_labelled, write_unlabelled,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let method = paper(Base::FlexMatch(FlexMatch::default()));
    let fresh = Samples::new(&method, 2, [3]).micro_batches.remove(0);
    if let Ok(read) = read_unlabelled(bytes, fresh.clone()) {
        let written = write_unlabelled(&read).expect("the state of samples can be written");
        // Compared by bytes, because a margin may be NaN.
        let again = read_unlabelled(&written, fresh).expect("the state of samples can be read back");
        assert_eq!(write_unlabelled(&again).expect("again"), written);
    }
    let fresh = || LabelledSamples::new(&method, &[3, 5]).margins;
    if let Ok(read) = read_labelled(bytes, fresh()) {
        let written = write_labelled(read.as_ref()).expect("margins can be written");
        read_labelled(&written, fresh()).expect("margins can be read back");
    }
});
