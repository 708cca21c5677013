#![no_main]

use std::path::Path;

use calmix_run::checkpoint::{Fault, Manifest};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let path = Path::new("MANIFEST");
    check(bytes, path);
    // With the matching hash; without it, no input would pass the check of the hash.
    let line = bytes.split(|&byte| byte == b'\n').next().unwrap_or_default();
    check(&[line, b"\n", blake3::hash(line).to_hex().as_bytes(), b"\n"].concat(), path);
});

fn check(bytes: &[u8], path: &Path) {
    match Manifest::from_bytes(bytes, path, 4) {
        Ok((manifest, hash)) => {
            assert_eq!((manifest.step, hash.len()), (4, 64));
            let plain = |name: &str| !name.contains(['/', '\\', '\0']) && !name.starts_with('.');
            assert!(manifest.files.iter().all(|file| plain(&file.name)), "a file out of its folder");
        }
        Err(Fault::Damaged(error)) => assert!(error.path == path && !error.to_string().is_empty()),
        Err(Fault::OtherFormat { .. }) => {}
        Err(Fault::Unreadable(error)) => panic!("an outage in memory: {error}"),
    }
}
