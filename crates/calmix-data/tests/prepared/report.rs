//! The summary of a prepared dataset.

use calmix_data::data_warning::DataWarning;
use calmix_data::dataset::Dataset;
use calmix_data::error::DataError;
use calmix_data::manifest::{Encoding, ManifestBuilder};
use calmix_data::prepare::Report;
use calmix_data::source::SourceSpec;
use calmix_formats::error::FormatProblem;

use super::tiny::Tiny;

fn report(tiny: &Tiny) -> Report {
    Report::new(&tiny.open(), Vec::new()).unwrap()
}

#[test]
fn a_sound_dataset_has_counts_and_no_warnings() {
    let train =
        [(1, 0), (2, 0), (3, 0), (4, 0), (5, 1), (6, 1), (7, 1)].map(|(byte, label)| (byte, Some(label)));
    let tiny = Tiny::new(&["a", "b"], &[("train", &train), ("unlabelled", &[(8, None), (9, None)])]);
    let report = report(&tiny);
    assert_eq!((report.samples(), report.unlabelled()), (9, 2));
    assert_eq!(report.labelled_per_class("train"), Some((3, 4)));
    assert_eq!(report.warnings, []);
    let expected =
        "9 samples: train 7, unlabelled 2\n2 classes, labelled images per class: train 3 to 4; 2 unlabelled";
    assert_eq!(report.to_string(), format!("data: {}\n{expected}", &tiny.open().fingerprint()[..12]));
}

#[test]
fn dataset_mistakes_are_warned_of() {
    let train = [(1, Some(0)), (2, Some(0)), (3, Some(0)), (4, Some(1)), (4, Some(2)), (5, None), (5, None)];
    let test = [(2, Some(0)), (3, Some(0)), (9, Some(0))];
    let tiny = Tiny::new(&["Cat", "cat ", "dog"], &[("train", &train), ("test", &test)]);
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    let few = |subset: &str, examples: &[(&str, u64)]| DataWarning::FewImages {
        subset: subset.into(),
        classes: examples.len() as u64,
        examples: examples.iter().map(|(class, images)| ((*class).to_owned(), *images)).collect(),
    };
    assert_eq!(
        report(&tiny).warnings,
        [
            DataWarning::SimilarNames { names: vec!["Cat".into(), "cat ".into()] },
            few("train", &[("cat ", 1), ("dog", 1)]),
            DataWarning::SomeUnlabelled { subset: "train".into(), without: 2, with: 5 },
            few("test", &[("cat ", 0), ("dog", 0)]),
            DataWarning::SameInTwoSubsets {
                contents: 2,
                examples: vec![pair("train[1]", "test[0]"), pair("train[2]", "test[1]")],
            },
            DataWarning::SameUnderTwoLabels { contents: 1, examples: vec![pair("train[3]", "train[4]")] },
        ]
    );
    let unlabelled = report(&Tiny::new(&["a"], &[("train", &[(1, None), (1, None)])]));
    assert_eq!(unlabelled.warnings, [DataWarning::NoLabels, DataWarning::OneClass { name: "a".into() }]);
}

#[test]
fn the_same_checksum_is_not_the_same_content() {
    // CRC-32C is linear: a message of 5 bytes and the same message plus the polynomial share their checksum.
    let (a, b) = collision();
    assert_ne!(a, b);
    let root = tempfile::tempdir().unwrap();
    let target = root.path().join("prepared");
    let mut builder = ManifestBuilder::new(&target, vec!["x".into()], Encoding::File).unwrap();
    for (name, bytes) in [("train", a), ("test", b)] {
        std::fs::write(root.path().join(name), bytes).unwrap();
        builder.subset(name);
        let part = builder.part(name, 5).unwrap();
        builder.sample(part, 0, &bytes, None).unwrap();
    }
    builder.finish().unwrap();
    let dataset = Dataset::open(&target, root.path()).unwrap();
    assert_eq!(dataset.record(0).unwrap().checksum, dataset.record(1).unwrap().checksum);
    let report = Report::new(&dataset, Vec::new()).unwrap();
    assert_eq!(report.warnings, [DataWarning::NoLabels, DataWarning::OneClass { name: "x".into() }]);
}

/// Two different messages of five bytes with one CRC-32C: the generator, bits reflected, as a message.
fn collision() -> ([u8; 5], [u8; 5]) {
    // x³² + … of the generator 0x1EDC6F41, lowest power last, in the bit order of a reflected CRC.
    let generator = 0x1_1EDC_6F41_u64;
    let mut difference = [0_u8; 5];
    for power in 0..33 {
        if generator >> power & 1 == 1 {
            // The highest power is the first bit of the message, and bits of a byte go from its lowest.
            let bit = 39 - power;
            difference[bit / 8] |= 1 << (bit % 8);
        }
    }
    (*b"image", std::array::from_fn(|byte| b"image"[byte] ^ difference[byte]))
}

#[test]
fn unreadable_files_are_listed_and_not_all_printed() {
    let tiny = Tiny::with_counts(&["a"], &[3]);
    let broken = |n| DataError::new(format!("{n}.jpg"), FormatProblem::Format("no JPEG".into()));
    let report = Report::new(&tiny.open(), (0..22).map(broken).collect()).unwrap();
    let text = report.to_string();
    assert!(text.contains("22 files or folders were left out:"), "{text}");
    assert!(text.contains("\n  19.jpg: no JPEG\n  … and 2 more"), "{text}");
    assert!(!text.contains("20.jpg") && report.unreadable.len() == 22);
}

#[test]
fn sources_are_named_in_kebab_case_and_strictly() {
    for text in [
        r#""cifar10""#,
        r#"{"cifar100":{"labels":"fine"}}"#,
        r#"{"idx":{"classes":"fashion"}}"#,
        r#"{"svhn":{"extra":true}}"#,
        r#""stl10""#,
        r#"{"folder":{"layout":"nested","shrink":512}}"#,
        r#"{"labels-csv":{"unlisted":"leave-out","columns":{"path":null,"label":"species"},"shrink":0}}"#,
        r#"{"webdataset":{"unlabelled":true}}"#,
        r#""imagenet""#,
        r#""webvision""#,
    ] {
        let source: SourceSpec = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&source).unwrap(), text);
    }
    for text in [
        r#"{"svhn":{"extra":true,"more":1}}"#,
        r#"{"svhn":{}}"#,
        r#""Cifar10""#,
        r#"{"cifar100":{"labels":"both"}}"#,
    ] {
        assert!(serde_json::from_str::<SourceSpec>(text).is_err(), "{text}");
    }
}
