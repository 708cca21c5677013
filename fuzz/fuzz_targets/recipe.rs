#![no_main]

use std::path::Path;

use calmix_recipe::Layers;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    match Layers::new().text(Path::new("recipe.toml"), &text).resolve() {
        Ok(resolved) => {
            let written = resolved.to_toml();
            let again = Layers::new().text(Path::new("recipe.toml"), &written).resolve();
            let again = again
                .unwrap_or_else(|error| panic!("what is stored with a run cannot be read back: {error}"));
            assert_eq!((again.hash(), again.to_toml()), (resolved.hash(), written));
        }
        Err(error) => assert!(!error.problems.is_empty() && !error.to_string().is_empty()),
    }
});
