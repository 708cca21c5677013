//! A prepared dataset reads back, or an error names the sample that does not.

use std::fs;
use std::io::Write;

use calmix_data::dataset::Dataset;
use calmix_data::manifest::{Encoding, ManifestBuilder, PixelLayout};
use calmix_formats::error::FormatProblem;
use proptest::prelude::*;

use super::tiny::{PIXEL, Tiny};

fn shared_by_threads<T: Sync + Send>(_: &T) {}

#[test]
fn prepared_dataset_reads_back() {
    let train = [(7, Some(1)), (8, None), (9, Some(0))];
    let tiny = Tiny::new(&["cat", "dog"], &[("train", &train), ("test", &[(10, Some(0))])]);
    let dataset = tiny.open();
    shared_by_threads(&dataset);
    assert_eq!((dataset.len(), dataset.is_empty()), (4, false));
    assert_eq!(dataset.classes(), ["cat", "dog"]);
    assert_eq!((dataset.subset("train").unwrap(), dataset.subset("test").unwrap()), (0..3, 3..4));
    let labels: Vec<_> = (0..4).map(|id| dataset.label(id).unwrap()).collect();
    assert_eq!(labels, [Some(1), None, Some(0), Some(0)]);
    assert_eq!(dataset.image(2).unwrap().pixels(), [9, 9, 9]);
    let mut bytes = vec![1, 2, 3];
    dataset.bytes(3, &mut bytes).unwrap();
    assert_eq!(bytes, [10]);
    let part = dataset.part(1).unwrap();
    assert_eq!((part.path.as_str(), part.unpacked, part.length), ("test", false, 1));
    let records: Vec<_> = dataset.records(1..9).map(Result::unwrap).collect();
    let one_by_one: Vec<_> = (1..4).map(|id| (id, dataset.record(id).unwrap())).collect();
    assert_eq!(records, one_by_one);
    dataset.verify().unwrap();
    for error in [dataset.record(4).map(|_| ()), dataset.part(2).map(|_| ()), dataset.image(9).map(|_| ())] {
        assert!(error.is_err());
    }
    let error = dataset.subset("valid").unwrap_err().to_string();
    assert!(error.ends_with("there is no subset `valid`; the subsets are: train, test"), "{error}");
}

#[test]
fn unpacked_parts_are_read_from_the_prepared_folder_and_planes_become_pixels() {
    let root = tempfile::tempdir().unwrap();
    let encoding = Encoding::Raw { width: 2, height: 1, layout: PixelLayout::Planes };
    let target = root.path().join("prepared");
    let mut builder = ManifestBuilder::new(&target, vec!["a".into()], encoding).unwrap();
    builder.subset("train");
    let mut unpacked = builder.unpack("train.raw").unwrap();
    unpacked.write_all(&[9, 9, 1, 2, 3, 4, 5, 6]).unwrap();
    let part = unpacked.part;
    builder.finish_part(unpacked).unwrap();
    builder.sample(part, 2, &[1, 2, 3, 4, 5, 6], Some(0)).unwrap();
    builder.finish().unwrap();
    // A file of the same name below the root is another file.
    fs::write(root.path().join("train.raw"), [0; 8]).unwrap();
    let dataset = Dataset::open(&target, root.path()).unwrap();
    assert_eq!(dataset.image(0).unwrap().pixels(), [1, 3, 5, 2, 4, 6]);
}

#[test]
fn a_changed_byte_is_named_with_part_offset_and_sample() {
    let tiny = Tiny::with_counts(&["a", "b"], &[3, 3]);
    let path = tiny.root.path().join("train");
    let dataset = tiny.open();
    let mut bytes = fs::read(&path).unwrap();
    bytes[4] ^= 1;
    fs::write(&path, &bytes).unwrap();
    for error in [dataset.image(4).unwrap_err(), dataset.verify().unwrap_err()] {
        assert!(matches!(error.problem(), Some(FormatProblem::Changed(_))), "{error}");
        let sentence = error.to_string();
        assert!(sentence.contains("train, byte 4, sample 4: the content has changed: check"), "{sentence}");
        assert!(sentence.ends_with("prepare the dataset again"), "{sentence}");
    }
    assert!(dataset.image(3).is_ok());
    // Shorter than prepared: while it is open, and when it is opened.
    fs::write(&path, &bytes[..5]).unwrap();
    for error in [dataset.image(5).unwrap_err(), tiny.open().image(0).unwrap_err()] {
        assert!(matches!(error.problem(), Some(FormatProblem::Changed(_))), "{error}");
    }
    fs::remove_file(&path).unwrap();
    assert!(matches!(tiny.open().image(0).unwrap_err().problem(), Some(FormatProblem::Io(_))));
}

#[test]
fn verify_detects_changed_label_with_valid_hash() {
    let tiny = Tiny::with_counts(&["a", "b"], &[2, 2]);
    // A changed table may come with a matching hash.
    tiny.change_samples(|table| table[20] = 1);
    let dataset = tiny.open();
    assert_eq!(dataset.label(0).unwrap(), Some(1));
    let error = dataset.verify().unwrap_err();
    assert!(matches!(error.problem(), Some(FormatProblem::Changed(_))), "{error}");
}

#[test]
fn many_threads_read_more_parts_than_are_kept_open() {
    let root = tempfile::tempdir().unwrap();
    let mut builder = ManifestBuilder::new(&root.path().join("prepared"), vec!["a".into()], PIXEL).unwrap();
    builder.subset("train");
    fs::create_dir(root.path().join("many")).unwrap();
    for id in 0..200_u8 {
        let name = format!("many/{id}");
        fs::write(root.path().join(&name), [id]).unwrap();
        let part = builder.part(&name, 1).unwrap();
        builder.sample(part, 0, &[id], Some(0)).unwrap();
    }
    builder.finish().unwrap();
    let dataset = Dataset::open(&root.path().join("prepared"), root.path()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let dataset = &dataset;
            scope.spawn(move || {
                for n in 0..1000 {
                    let id = (n * (2 * thread + 1) + thread) % 200;
                    assert_eq!(dataset.image(id).unwrap().pixels(), [id as u8; 3]);
                }
            });
        }
    });
    #[cfg(target_os = "linux")]
    {
        let many = root.path().canonicalize().unwrap().join("many");
        let files = fs::read_dir("/proc/self/fd").unwrap().flatten();
        let open = files.filter(|file| fs::read_link(file.path()).is_ok_and(|link| link.starts_with(&many)));
        assert_eq!(open.count(), 64);
    }
}

#[test]
fn links_must_stay_below_the_root() {
    use std::os::unix::fs::symlink;
    let tiny = Tiny::with_counts(&["a"], &[2]);
    let part = tiny.root.path().join("train");
    fs::rename(&part, tiny.root.path().join("moved")).unwrap();
    symlink("moved", &part).unwrap();
    assert!(tiny.open().verify().is_ok());
    let outside = tempfile::tempdir().unwrap();
    fs::rename(tiny.root.path().join("moved"), outside.path().join("moved")).unwrap();
    fs::remove_file(&part).unwrap();
    symlink(outside.path().join("moved"), &part).unwrap();
    let error = tiny.open().image(0).unwrap_err().to_string();
    assert!(error.contains("a link that leads out of"), "{error}");
    // A folder instead of a file.
    fs::remove_file(&part).unwrap();
    fs::create_dir(&part).unwrap();
    assert!(tiny.open().image(0).is_err());
    // The table itself is held to the same.
    fs::rename(tiny.file("samples.bin"), outside.path().join("samples.bin")).unwrap();
    symlink(outside.path().join("samples.bin"), tiny.file("samples.bin")).unwrap();
    assert!(tiny.try_open().is_err());
}

#[test]
fn a_prepared_dataset_is_as_open_to_others_as_any_new_folder() {
    use std::os::unix::fs::PermissionsExt;
    let tiny = Tiny::with_counts(&["a"], &[1]);
    let usual = tiny.root.path().join("usual");
    fs::create_dir(&usual).unwrap();
    let mode = |path| fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(tiny.prepared()), mode(usual));
}

#[test]
fn a_builder_refuses_what_a_dataset_could_not_be_opened_with() {
    let root = tempfile::tempdir().unwrap();
    let target = root.path().join("prepared");
    let builder = |classes: &[&str]| {
        ManifestBuilder::new(&target, classes.iter().map(ToString::to_string).collect(), PIXEL).unwrap()
    };
    assert!(builder(&[]).part("../outside", 1).is_err());
    let mut without_subset = builder(&["a"]);
    without_subset.sample(0, 0, &[1], None).unwrap();
    assert!(without_subset.finish().is_err());
    let mut twice = builder(&["a"]);
    twice.subset("train");
    twice.subset("train");
    assert!(twice.finish().is_err());
    assert!(builder(&["a", "a"]).finish().is_err());
    assert!(!target.exists());
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0, "nothing is left behind");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn anything_prepared_reads_back(samples in proptest::collection::vec((any::<u8>(), proptest::option::of(0_u32..3)), 0..40), cut in 0_usize..40) {
        let (train, test) = samples.split_at(cut.min(samples.len()));
        let tiny = Tiny::new(&["a", "b", "c"], &[("train", train), ("test", test)]);
        let dataset = tiny.open();
        prop_assert!(dataset.verify().is_ok());
        for (id, (byte, label)) in samples.iter().enumerate() {
            prop_assert_eq!(dataset.label(id as u64).unwrap(), *label);
            let image = dataset.image(id as u64).unwrap();
            prop_assert_eq!(image.pixels(), &[*byte; 3]);
        }
    }
}
