//! Files of vectors that are refused, with a sentence that names the file and the place.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use calmix_data::error::DataError;
use calmix_data::vectors::{VectorOptions, VectorSource};

use crate::same::golden;

/// Opens a file and reads all its rows; returns how many there are.
fn read(path: &Path) -> Result<u64, DataError> {
    let source = VectorSource::open(path, &VectorOptions::default())?;
    let mut rows = 0;
    for block in source.blocks(0, 16) {
        rows += (block?.vectors.len() / (source.width() * source.views())) as u64;
    }
    assert_eq!(rows, source.rows());
    Ok(rows)
}

/// The refusal of a file with these bytes.
fn refusal(name: &str, bytes: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    let error = read(&path).expect_err(name).to_string();
    assert!(error.contains(name), "{error}");
    error
}

#[test]
fn truncated_files_are_refused() {
    for name in ["f2.npy", "stored.npz", "deflated.npz", "bf16.safetensors", "snappy.parquet", "zstd.parquet"]
    {
        let bytes = fs::read(golden(name)).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        fs::write(&path, &bytes).unwrap();
        assert_eq!(read(&path).unwrap(), 50, "{name}");
        let file = File::options().write(true).open(&path).unwrap();
        for end in (0..bytes.len()).rev() {
            file.set_len(end as u64).unwrap();
            assert!(read(&path).is_err(), "{name} cut at {end}");
        }
    }
}

#[test]
fn flipped_bits_never_panic() {
    let names = [
        "f2.npy",
        "stored.npz",
        "deflated.npz",
        "bf16.safetensors",
        "snappy.parquet",
        "zstd.parquet",
        "nested.parquet",
        "lightly.csv",
    ];
    for name in names {
        let bytes = fs::read(golden(name)).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        fs::write(&path, &bytes).unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        for (at, &byte) in bytes.iter().enumerate() {
            file.write_all_at(&[byte ^ 1 << ((at * 5 + 3) % 8)], at as u64).unwrap();
            // Another number, or an error; never many more rows than the file had.
            assert!(read(&path).map_or(true, |rows| rows <= 400), "{name} at {at}");
            file.write_all_at(&[byte], at as u64).unwrap();
        }
    }
}

#[test]
fn pickles_are_refused_with_the_lines_that_convert_them() {
    let start = b"\x80\x04\x95\x10\0\0\0\0\0\0\0";
    for (name, load) in [
        ("v.pkl", "pickle.load(open(\"v.pkl\", \"rb\"))"),
        ("v.pt", "torch.load(\"v.pt\""),
        ("v.joblib", "joblib.load(\"v.joblib\")"),
        ("v.bin", "pickle.load(open(\"v.bin\", \"rb\"))"),
    ] {
        let error = refusal(name, start);
        assert!(error.contains(load) && error.contains("numpy.save(\"vectors.npy\""), "{error}");
    }
}

#[test]
fn numbers_that_are_not_finite_are_refused_with_their_row() {
    let error = refusal("v.csv", b"e_0,e_1\n1,2\n3,nan\n");
    assert!(error.contains("row 1: the number in column 1 is NaN"), "{error}");
    let mut bytes = fs::read(golden("f4.npy")).unwrap();
    let at = bytes.len() - 4;
    bytes[at..].copy_from_slice(&f32::INFINITY.to_le_bytes());
    assert!(refusal("v.npy", &bytes).contains("row 49: the number in column 7 is inf"));
    let mut bytes = fs::read(golden("f8.npy")).unwrap();
    let at = bytes.len() - 8;
    // Finite as f64, and too large for f32.
    bytes[at..].copy_from_slice(&1e300_f64.to_le_bytes());
    assert!(refusal("v.npy", &bytes).contains("row 49"));
}

#[test]
fn tables_without_vectors_are_refused() {
    for (name, bytes, expected) in [
        ("v.csv", &b"a,b\n1,2\n"[..], "PREFIX_0, PREFIX_1"),
        ("v.csv", b"a_0,a_1\n", "no vectors"),
        ("v.csv", b"a_0,a_1\n1\n", "line 2"),
        ("v.csv", b"a_0,a_1\n1,x\n", "line 2, row 0: number 1 is \"x\""),
        ("v.csv", b"a_0,a_2\n1,2\n", "PREFIX_0"),
        ("v.csv", b"a0,a1,b0,b1\n1,2,3,4\n", "--vector-column"),
        ("v.csv", b"a_0;a_1\n1;2\n", "separated by ';'"),
        ("v.csv", b"", "empty"),
        ("v.txt", b"hello", ".npy, .npz, .parquet, .safetensors and .csv"),
        ("v.npz", b"PK\x05\x06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", "no arrays with vectors"),
    ] {
        let error = refusal(name, bytes);
        assert!(error.contains(expected), "{error}");
    }
    let empty = tempfile::tempdir().unwrap();
    let error = read(empty.path()).unwrap_err().to_string();
    assert!(error.contains("clip-retrieval"), "{error}");
}
