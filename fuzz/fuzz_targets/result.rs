#![no_main]

use calmix_run::model_info::ModelInfo;
use calmix_run::result::RunResult;
use calmix_run::run::RunEnvironment;
use calmix_run::summary::RunSummary;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(result) = serde_json::from_slice::<RunResult>(bytes) {
        let text = serde_json::to_vec(&result).expect("a result can be written");
        let again: RunResult = serde_json::from_slice(&text).expect("a result can be read back");
        assert_eq!(serde_json::to_vec(&again).expect("again"), text);
    }
    if let Ok(info) = serde_json::from_slice::<ModelInfo>(bytes) {
        assert_eq!(info.difference(&info), None);
    }
    let _ = serde_json::from_slice::<RunSummary>(bytes);
    let _ = serde_json::from_slice::<RunEnvironment>(bytes);
});
