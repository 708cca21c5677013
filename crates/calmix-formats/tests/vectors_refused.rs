//! Files of vectors that are refused, with a sentence that names the file and the place.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use calmix_formats::error::FormatError;
use calmix_formats::vectors::{VectorOptions, VectorSource};
use calmix_testkit::npy_file;

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/vectors").join(name)
}

/// Opens a file and reads all its rows; returns how many there are.
fn read(path: &Path) -> Result<u64, FormatError> {
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
    // The crate `parquet` panics on some of them, which the reader makes errors; its backtraces would take a minute.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let failures = std::panic::catch_unwind(flipped_files_with_too_many_rows);
    std::panic::set_hook(hook);
    assert_eq!(failures.unwrap(), [""; 0]);
}

/// Flips a bit of every fourth byte of each file, and returns where more rows than the file can have were read.
fn flipped_files_with_too_many_rows() -> Vec<String> {
    let mut failures = Vec::new();
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
        for (at, &byte) in bytes.iter().enumerate().step_by(4) {
            file.write_all_at(&[byte ^ 1 << ((at * 5 + 3) % 8)], at as u64).unwrap();
            // Another number, or an error; never many more rows than the file had.
            if read(&path).is_ok_and(|rows| rows > 400) {
                failures.push(format!("{name} at {at}"));
            }
            file.write_all_at(&[byte], at as u64).unwrap();
        }
    }
    failures
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
fn vectors_that_are_too_long_are_refused_with_their_row() {
    let error = refusal("v.csv", b"e_0,e_1\n1,2\n3.4e38,-3.4e38\n");
    assert!(
        error.contains("row 1: the length of its vector is 4.8e38, expected at most 1.7e38; remove"),
        "{error}"
    );
    let mut bytes = fs::read(golden("f4.npy")).unwrap();
    let at = bytes.len() - 8;
    bytes[at..at + 4].copy_from_slice(&f32::MAX.to_le_bytes());
    bytes[at + 4..].copy_from_slice(&f32::MIN.to_le_bytes());
    assert!(refusal("v.npy", &bytes).contains("row 49: the length of its vector"));
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

/// An `.npy` as `numpy.save` writes it.
fn npy(descr: &str, fortran: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n");
    [&npy_file::with_header(&header), data].concat()
}

/// A zip archive of one stored member, with the size that its directory says.
fn zipped(name: &str, data: &[u8], size: u32) -> Vec<u8> {
    let mut crc = flate2::Crc::new();
    crc.update(data);
    let packed = u32::try_from(data.len()).unwrap();
    let sizes = [crc.sum().to_le_bytes(), packed.to_le_bytes(), size.to_le_bytes()].concat();
    let name_length = u16::try_from(name.len()).unwrap().to_le_bytes();
    let local = [
        b"PK\x03\x04\x14\0\0\0\0\0\0\0\0\0".as_slice(),
        &sizes,
        &name_length,
        &[0, 0],
        name.as_bytes(),
        data,
    ];
    let local = local.concat();
    let central = [
        b"PK\x01\x02\x14\0\x14\0\0\0\0\0\0\0\0\0".as_slice(),
        &sizes,
        &name_length,
        &[0; 16],
        name.as_bytes(),
    ];
    let central = central.concat();
    let place = [
        u32::try_from(central.len()).unwrap().to_le_bytes(),
        u32::try_from(local.len()).unwrap().to_le_bytes(),
    ];
    [&local, &central, b"PK\x05\x06\0\0\0\0\x01\0\x01\0".as_slice(), &place.concat(), &[0, 0]].concat()
}

#[test]
fn arrays_of_other_kinds_are_refused() {
    let four = [0; 16];
    for (bytes, expected) in [
        (npy("<f4", "True", "(2, 2)", &four), "np.ascontiguousarray"),
        (npy("|O", "False", "(2, 2)", &four), "allow_pickle=True"),
        (npy("<i4", "False", "(2, 2)", &four), "astype('float32')"),
        (npy(">f4", "False", "(2, 2)", &four), "astype('float32')"),
        (npy("<f4", "False", "(4,)", &four), "1 dimensions"),
        (npy("<f4", "False", "(0, 4)", &[]), "no vectors"),
        (npy("<f4", "False", "(2, 3)", &four), "its header says 2 × 3 items of 4 bytes"),
        (npy("<f4", "False", "(1, 99999999999)", &four), "its header says"),
    ] {
        let error = refusal("v.npy", &bytes);
        assert!(error.contains(expected), "{error}");
    }
    let views = npy("<f4", "False", "(1, 2, 2)", &four);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("v.npy");
    fs::write(&path, views).unwrap();
    let source = VectorSource::open(&path, &VectorOptions::default()).unwrap();
    assert_eq!((source.rows(), source.views(), source.width()), (1, 2, 2));
}

#[test]
fn archives_that_say_more_than_they_hold_are_refused() {
    let array = npy("<f4", "False", "(2, 2)", &[0; 16]);
    let size = u32::try_from(array.len()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("v.npz");
    fs::write(&path, zipped("x.npy", &array, size)).unwrap();
    assert_eq!(read(&path).unwrap(), 2);
    // The array is longer than its bytes, as its own header and the directory agree.
    let long = npy("<f4", "False", "(4, 2)", &[0; 16]);
    for (bytes, expected) in [
        (zipped("x.npy", &array, size + 4), "array x: "),
        (zipped("x.npy", &long, size + 16), "the file ends before its last row"),
        (zipped("x.npy", &array, u32::MAX), "probably an attack"),
        (zipped("archive/data.pkl", b"\x80\x02", 2), "numpy.save"),
    ] {
        let error = refusal("v.npz", &bytes);
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn rows_of_other_lengths_are_refused_with_their_row() {
    let error = read(&golden("ragged.parquet")).unwrap_err().to_string();
    assert!(
        error.contains("ragged.parquet, row 2: the vector has 1 × 1 numbers, the first one 1 × 2"),
        "{error}"
    );
    let error = read(&golden("missing.parquet")).unwrap_err().to_string();
    assert!(error.contains("missing.parquet, row 1: the vector is missing"), "{error}");
}

#[test]
fn parts_of_other_sizes_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let vectors = folder.path().join("img_emb");
    let metadata = folder.path().join("metadata");
    fs::create_dir_all(&vectors).unwrap();
    fs::write(vectors.join("img_emb_0.npy"), npy("<f4", "False", "(2, 2)", &[0; 16])).unwrap();
    fs::write(vectors.join("img_emb_1.npy"), npy("<f4", "False", "(1, 4)", &[0; 16])).unwrap();
    let error = read(folder.path()).unwrap_err().to_string();
    assert!(error.contains("img_emb_1.npy: its vectors have 1 × 4 numbers"), "{error}");
    fs::remove_file(vectors.join("img_emb_1.npy")).unwrap();
    assert_eq!(read(folder.path()).unwrap(), 2);
    fs::create_dir_all(&metadata).unwrap();
    assert!(read(folder.path()).unwrap_err().to_string().contains("0 files of metadata for 1"));
    fs::copy(golden("clip/metadata/metadata_2.parquet"), metadata.join("metadata_0.parquet")).unwrap();
    let error = read(folder.path()).unwrap_err().to_string();
    assert!(error.contains("img_emb_0.npy: 2 vectors, but its metadata have 20 rows"), "{error}");
}
