#![no_main]

use calmix_run::pretrained::config::PretrainedConfig;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let beside = PretrainedConfig::parse(bytes);
    let inside = PretrainedConfig::embedded(bytes);
    for config in beside.into_iter().chain(inside.into_iter().flatten()) {
        assert!(config.size.is_none_or(|size| (1..=16_384).contains(&size)));
        assert!(config.std.is_none_or(|std| std.iter().all(|number| (1.0 / number).is_finite())));
        assert!(config.mean.is_none_or(|mean| mean.iter().all(|number| number.is_finite())));
    }
});
