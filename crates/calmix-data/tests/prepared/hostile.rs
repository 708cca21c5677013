//! Untrusted manifests: refused with an error, never a panic, never memory by an unchecked length.

use std::fs;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use super::tiny::Tiny;

/// Reads whatever opens; errors are fine, panics are not.
fn exercise(tiny: &Tiny) -> bool {
    let Ok(dataset) = tiny.try_open() else { return false };
    for id in (0..8).chain([u64::MAX / 24, u64::MAX]) {
        let _ = dataset.image(id);
    }
    let _ = dataset.part(0);
    dataset.verify().is_ok()
}

fn tiny() -> Tiny {
    let train = [(1, Some(0)), (2, Some(1)), (3, None)];
    Tiny::new(&["cat", "dog"], &[("train", &train), ("test", &[(4, Some(0))])])
}

#[test]
fn a_manifest_cut_at_any_byte_is_refused() {
    let tiny = tiny();
    for name in ["manifest.json", "samples.bin", "parts.bin", "names.bin"] {
        let whole = fs::read(tiny.file(name)).unwrap();
        for length in 0..whole.len() {
            fs::write(tiny.file(name), &whole[..length]).unwrap();
            assert!(tiny.try_open().is_err(), "{name} cut to {length} bytes");
        }
        let longer = [whole.as_slice(), b"x"].concat();
        fs::write(tiny.file(name), longer).unwrap();
        assert!(tiny.try_open().is_err(), "{name} with a byte too many");
        fs::write(tiny.file(name), whole).unwrap();
    }
    assert!(exercise(&tiny), "untouched, it opens");
}

#[test]
fn changed_byte_of_a_table_is_refused() {
    let tiny = tiny();
    for name in ["samples.bin", "parts.bin", "names.bin"] {
        let whole = fs::read(tiny.file(name)).unwrap();
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            fs::write(tiny.file(name), changed).unwrap();
            let error = tiny.refusal();
            assert!(error.contains(name) && error.contains("prepare the dataset again"), "{at}: {error}");
        }
        fs::write(tiny.file(name), whole).unwrap();
    }
    // All labels turned round: every record by itself is a sound one.
    let mut table = fs::read(tiny.file("samples.bin")).unwrap();
    for record in table.chunks_mut(24).filter(|record| record[20] < 2) {
        record[20] ^= 1;
    }
    fs::write(tiny.file("samples.bin"), table).unwrap();
    assert!(tiny.try_open().is_err());
}

/// A table whose hash would take minutes to find out that it holds nothing.
#[test]
fn sparse_table_is_refused_unread() {
    let tiny = tiny();
    let mut header = tiny.header();
    let more = 10_000_000_000_u64;
    header["samples"] = json!(4 + more);
    header["subsets"][1]["count"] = json!(1 + more);
    tiny.write_header(&header);
    let samples = fs::File::options().write(true).open(tiny.file("samples.bin")).unwrap();
    samples.set_len(24 * (4 + more)).unwrap();
    let error = tiny.refusal();
    assert!(error.contains("samples.bin: a sparse file: 240000000096 bytes, nearly all of them"), "{error}");
}

#[test]
fn table_of_first_format_is_refused() {
    let tiny = tiny();
    let mut header = tiny.header();
    header["version"] = json!(1);
    header.as_object_mut().unwrap().remove("tables");
    tiny.write_header(&header);
    let error = tiny.refusal();
    let sentence = "manifest.json: another version of calmix wrote it in format 1; this version reads format 2; \
                    prepare the dataset again";
    assert!(error.ends_with(sentence), "{error}");
}

#[test]
fn headers_that_contradict_themselves_are_refused() {
    let tiny = tiny();
    let header = tiny.header();
    let huge = json!([u64::MAX, 1_u64 << 60, -1, 1.5, null, "4", 0]);
    let raw = |width: u32, height: u32| json!({"raw": {"width": width, "height": height, "layout": "grey"}});
    let mut changes = vec![
        ("/version", json!(3)),
        ("/tables", json!(null)),
        ("/tables/samples", json!("")),
        ("/tables/shrunk", json!("")),
        ("/unknown", json!(1)),
        ("/classes", json!(["cat", "cat"])),
        ("/classes", json!(["cat", ""])),
        // Plausible names that do not match the fingerprint.
        ("/classes", json!(["cat", "cow"])),
        ("/subsets/0/name", json!("extra")),
        ("/tables/content", json!("0".repeat(64))),
        ("/subsets", json!([])),
        ("/subsets/0/first", json!(1)),
        ("/subsets/1/first", json!(2)),
        ("/subsets/1/name", json!("train")),
        ("/subsets/0/extra", json!(1)),
        ("/encoding", raw(0, 1)),
        ("/encoding", raw(u32::MAX, u32::MAX)),
        ("/encoding", raw(1 << 16, 1 << 15)),
        ("/encoding", json!("pickle")),
        ("/encoding", json!({"raw": {"width": 1, "height": 1, "layout": "grey", "depth": 8}})),
        ("/fingerprint", json!("")),
        ("/fingerprint", json!("é".repeat(32))),
        ("/fingerprint", json!("G".repeat(64))),
    ];
    for place in ["/samples", "/parts", "/subsets/0/count", "/subsets/1/count", "/subsets/1/first"] {
        changes.extend(huge.as_array().unwrap().iter().map(|value| (place, value.clone())));
    }
    for (place, value) in changes {
        let mut changed = header.clone();
        let (parent, key) = place.rsplit_once('/').unwrap();
        match (changed.pointer_mut(parent).unwrap(), key.parse::<usize>()) {
            (Value::Array(values), Ok(at)) => values[at] = value.clone(),
            (parent, _) => parent[key] = value.clone(),
        }
        tiny.write_header(&changed);
        assert!(tiny.try_open().is_err(), "{place} = {value}");
    }
    let twice = header.to_string().replacen('{', "{\"version\":2,", 1);
    fs::write(tiny.file("manifest.json"), twice).unwrap();
    assert!(tiny.try_open().is_err(), "a key that comes twice");
    fs::write(tiny.file("manifest.json"), "[".repeat(100_000)).unwrap();
    assert!(tiny.try_open().is_err(), "a tower of brackets");
}

#[test]
fn paths_that_could_leave_the_root_are_refused_when_the_dataset_is_opened() {
    let outside = ["/abcd", "../ab", "ab/..", "C:abc", "a\\..x", "ab\0cd", "ab//c", "./abc"];
    for name in outside {
        let tiny = Tiny::with_counts(&["a"], &[1]);
        assert_eq!(fs::read(tiny.file("names.bin")).unwrap().len(), name.len());
        fs::write(tiny.file("names.bin"), name).unwrap();
        tiny.rehash();
        let error = tiny.refusal();
        assert!(error.contains("part 0: the path"), "{error}");
    }
    let tiny = Tiny::with_counts(&["a"], &[1]);
    fs::write(tiny.file("names.bin"), [0xff; 5]).unwrap();
    tiny.rehash();
    assert!(tiny.try_open().is_err(), "not UTF-8");
}

#[test]
fn records_beyond_their_tables_are_named() {
    // Byte of the first record → what the error must contain.
    let cases = [(8, "part is 255"), (12, "255 bytes"), (20, "label is 255"), (0, "but the file has")];
    for (at, expected) in cases {
        let tiny = tiny();
        tiny.change_samples(|table| table[at] = 0xff);
        let error = tiny.open().image(0).unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains("sample 0"), "{error}");
    }
    let tiny = tiny();
    tiny.change_samples(|table| table[..8].fill(0xff));
    assert!(tiny.open().image(0).is_err(), "offset + length overflows");
}

#[test]
fn no_mutation_panics() {
    let tiny = tiny();
    let paths = ["manifest.json", "samples.bin", "parts.bin", "names.bin"].map(|name| tiny.file(name));
    let edit = (any::<prop::sample::Index>(), any::<u8>());
    let cases = (0..paths.len(), proptest::collection::vec(edit, 1..4));
    let mut runner = TestRunner::new(ProptestConfig::with_cases(1000));
    let result = runner.run(&cases, |(file, edits)| {
        let header = fs::read(&paths[0]).unwrap();
        let before = fs::read(&paths[file]).unwrap();
        let mut bytes = before.clone();
        for (at, value) in edits {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        fs::write(&paths[file], &bytes).unwrap();
        // Hashes made right again, so that damage reaches what stands behind them.
        if file > 0 {
            tiny.rehash();
        }
        let well = exercise(&tiny);
        fs::write(&paths[file], &before).unwrap();
        fs::write(&paths[0], &header).unwrap();
        // JSON may differ in space alone; a byte of the tables is never without meaning.
        prop_assert!(!well || file == 0 || bytes == before);
        Ok(())
    });
    result.unwrap();
}
