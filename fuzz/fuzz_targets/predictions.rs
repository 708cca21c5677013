#![no_main]

use calmix_metrics::evaluate::evaluate;
use calmix_run::tensor_files::predictions_file;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    match predictions_file::from_bytes(bytes) {
        Ok(predictions) => {
            let rows = predictions.labels.len();
            assert_eq!(predictions.logits.len(), rows * predictions.classes.len());
            // Logits that are not numbers are an error; metrics of others are computed.
            let _ = evaluate(&predictions, None, None);
            let again = predictions_file::from_bytes(
                &predictions_file::to_bytes(&predictions).expect("predictions can be written"),
            );
            assert_eq!(again.expect("predictions can be read back").labels, predictions.labels);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
