#![no_main]

use std::collections::BTreeSet;
use std::path::{Component, Path};

use calmix_recipe::sweep::Sweep;
use libfuzzer_sys::fuzz_target;

/// Cells of a sweep that are resolved: each takes a millisecond.
const RESOLVED: usize = 4;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    match Sweep::read(Path::new("sweep.toml"), &text) {
        Ok(sweep) => {
            let names: BTreeSet<&str> = sweep.cells.iter().map(|cell| cell.name.as_str()).collect();
            assert_eq!(names.len(), sweep.cells.len(), "two runs have one name");
            for cell in &sweep.cells {
                let mut parts = Path::new(&cell.name).components();
                let is_plain = matches!(parts.next(), Some(Component::Normal(_))) && parts.next().is_none();
                assert!(is_plain, "{:?} is not the name of a folder", cell.name);
            }
            for cell in sweep.cells.iter().take(RESOLVED) {
                if let Err(error) = cell.layers().resolve() {
                    assert!(!error.problems.is_empty() && !error.to_string().is_empty());
                }
            }
        }
        Err(error) => assert!(!error.problems.is_empty()),
    }
});
