#![no_main]

use calmix_formats::error::FormatError;
use calmix_formats::mat::{MatFile, MatType};
use calmix_fuzz::with_scene;
use libfuzzer_sys::fuzz_target;

/// A variable may hold a thousand times the bytes of its file; reading all of them finds nothing new.
const MAX_VALUES: u64 = 1 << 14;

fuzz_target!(|bytes: &[u8]| {
    with_scene!(|_| {}, |scene| {
        let path = scene.put("train_32x32.mat", bytes);
        for name in ["X", "y"] {
            if let Err(error) = read(&path, name) {
                assert!(error.path == path && error.to_string().len() > path.as_os_str().len() + 2);
            }
        }
    });
});

fn read(path: &std::path::Path, name: &str) -> Result<(), FormatError> {
    let file = MatFile::open(path)?;
    let Some(mut variable) = file.variable(name)? else { return Ok(()) };
    assert_eq!(variable.values(), variable.dims().iter().product::<u64>());
    if variable.values() > MAX_VALUES {
        return Ok(());
    }
    if variable.mat_type() == MatType::U8 {
        variable.bytes(&mut vec![0; variable.values() as usize])?;
    } else {
        for _ in 0..variable.values() {
            variable.number()?;
        }
    }
    variable.finish()
}
