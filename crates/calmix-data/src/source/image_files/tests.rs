//! Tests with storage that fails while a folder is scanned.

use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use calmix_formats::error::FormatError;
use calmix_io::transient::BackOff;
use calmix_testkit::png_file::{Pixels, png};

use super::*;
use crate::manifest::Encoding;

const EIO: i32 = 5;
const EACCES: i32 = 13;

fn grey_png(side: u32, grey: u8) -> Vec<u8> {
    png(Pixels::Grey, [side, side], |_| grey)
}

/// Scans three images and one other file, reading them with `read_bytes`.
fn scan(read_bytes: ReadBytes, pause: fn(Duration)) -> Result<Prepared, DataError> {
    let temp = tempfile::tempdir().unwrap();
    let root = temp.path().join("photos");
    fs::create_dir(&root).unwrap();
    for name in ["1.png", "2.png", "3.png"] {
        fs::write(root.join(name), grey_png(1, 7)).unwrap();
    }
    fs::write(root.join("4.png"), "GIF89a").unwrap();
    let mut builder = ManifestBuilder::new(&temp.path().join("table"), vec!["cat".into()], Encoding::File)?;
    builder.subset("train");
    let mut files = ImageFiles::open(&root, &Inspection::default(), 4)?;
    files.read_bytes = read_bytes;
    files.pause = pause;
    for name in ["1.png", "2.png", "3.png", "4.png"] {
        files.add(&mut builder, name, Some(0), None, Origin::Folder)?;
    }
    files.finish(builder)
}

fn failing(path: &Path, limits: &DecodeLimits, error: Option<i32>) -> Result<EncodedFile, FormatProblem> {
    match error.filter(|_| path.ends_with("2.png")) {
        Some(number) => Err(io::Error::from_raw_os_error(number).into()),
        None => EncodedFile::read(path, limits),
    }
}

#[test]
fn shrunk_images_keep_order_under_memory_limit() {
    let temp = tempfile::tempdir().unwrap();
    let root = temp.path().join("photos");
    fs::create_dir(&root).unwrap();
    let names: Vec<String> = (0..20).map(|n| format!("{n}.png")).collect();
    for (name, grey) in names.iter().zip(0..) {
        // Every third image is small enough not to be shrunk.
        fs::write(root.join(name), grey_png(if grey % 3 == 0 { 2 } else { 9 }, grey)).unwrap();
    }
    let inspection = Inspection { shrink: 4, threads: 3, ..Inspection::default() };
    let mut fingerprints = Vec::new();
    for pending_bytes in [1, 100, MAX_PENDING_BYTES] {
        let target = temp.path().join(pending_bytes.to_string());
        let mut builder = ManifestBuilder::new(&target, vec!["cat".into()], Encoding::File).unwrap();
        builder.subset("train");
        let mut files = ImageFiles::open(&root, &inspection, 20).unwrap();
        files.pending_bytes = pending_bytes;
        for name in &names {
            files.add(&mut builder, name, Some(0), None, Origin::Folder).unwrap();
        }
        let header = files.finish(builder).unwrap().header;
        assert_eq!((header.samples, header.shrunk.unwrap().count), (20, 13), "{pending_bytes}");
        fingerprints.push(header.fingerprint);
    }
    assert!(fingerprints.iter().all(|other| *other == fingerprints[0]), "{fingerprints:?}");
}

#[test]
fn transient_read_error_loses_no_image() {
    static LEFT: AtomicU32 = AtomicU32::new(3);
    let prepared = scan(
        |path, limits| {
            let fails = path.ends_with("2.png")
                && LEFT.try_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
            failing(path, limits, fails.then_some(EIO))
        },
        |_| {},
    )
    .unwrap();
    assert_eq!(prepared.header.samples, 3);
    assert_eq!(prepared.unreadable.len(), 1, "{:?}", prepared.unreadable);
    assert!(
        prepared.unreadable[0].path().unwrap().ends_with("4.png"),
        "what is not an image is still left out"
    );
}

#[test]
fn lasting_read_error_ends_the_scan() {
    static WAITED: AtomicU64 = AtomicU64::new(0);
    let error = scan(
        |path, limits| failing(path, limits, Some(EIO)),
        |wait| {
            WAITED.fetch_add(wait.as_millis() as u64, Ordering::SeqCst);
        },
    )
    .unwrap_err();
    assert!(error.path().unwrap().ends_with("2.png") && error.is_transient(), "{error}");
    assert!(error.to_string().contains("try again"), "{error}");
    assert_eq!(u128::from(WAITED.load(Ordering::SeqCst)), BackOff::MAX_TOTAL_WAIT.as_millis());
}

#[test]
fn missing_permission_ends_the_scan_at_once() {
    static WAITS: AtomicU32 = AtomicU32::new(0);
    let error = scan(
        |path, limits| failing(path, limits, Some(EACCES)),
        |_| {
            WAITS.fetch_add(1, Ordering::SeqCst);
        },
    )
    .unwrap_err();
    assert!(error.path().unwrap().ends_with("2.png"), "{error}");
    assert!(
        error.to_string().contains("ermission")
            && matches!(error, DataError::File(FormatError { hint: Some(_), .. })),
        "{error}"
    );
    assert_eq!(WAITS.load(Ordering::SeqCst), 0, "waiting does not grant a permission");
}
