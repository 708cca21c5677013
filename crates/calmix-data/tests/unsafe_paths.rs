//! Archives, lists and folders whose paths lead outside: refused with an error, and nothing outside is touched.

use std::time::{Duration, Instant};

use calmix_data::error::DataError;
use calmix_data::manifest::Prepared;
use calmix_data::source::{labels_csv, webdataset, webvision};
use calmix_testkit::tier;

use crate::scene::Scene;

/// A tenth of a second is what a refusal may take; tests run unoptimised, many at a time, on slow machines.
const MAX_REFUSAL_TIME: Duration = Duration::from_secs(1);

fn shards(scene: &Scene) -> Result<Prepared, DataError> {
    webdataset::prepare(&scene.root(), &scene.target(), &webdataset::WebdatasetOptions::default())
}

fn list(scene: &Scene) -> Result<Prepared, DataError> {
    labels_csv::prepare(&scene.root(), &scene.target(), &labels_csv::LabelsCsvOptions::default())
}

/// What is said of a shard that has a trick between two sound samples, and that nothing came to be but the shard.
fn said(scene: &Scene, trick: &[Vec<u8>]) -> String {
    let image = scene.bytes_of("x");
    let sound =
        |key: &str| [member(&format!("{key}.png"), b'0', &image), member(&format!("{key}.cls"), b'0', b"0")];
    let bytes = [sound("0").as_slice(), trick, &sound("1"), &[vec![0; 1_024]]].concat().concat();
    scene.file("train.tar", &bytes);
    let start = Instant::now();
    let sentence = scene.refusal(shards(scene));
    assert!(start.elapsed() < MAX_REFUSAL_TIME, "{sentence}: {:?}", start.elapsed());
    let names = |path: &std::path::Path| {
        let entries =
            std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        entries.collect::<Vec<_>>()
    };
    assert_eq!(
        (names(scene.outside()), names(&scene.root())),
        (vec!["root".into()], vec!["train.tar".into()])
    );
    sentence
}

/// A header and its bytes.
fn member(name: &str, kind: u8, bytes: &[u8]) -> Vec<u8> {
    let mut block = [0; 512];
    block[..name.len()].copy_from_slice(name.as_bytes());
    block[124..135].copy_from_slice(format!("{:011o}", bytes.len()).as_bytes());
    block[148..157].copy_from_slice(&[b' ', b' ', b' ', b' ', b' ', b' ', b' ', b' ', kind]);
    block[257..265].copy_from_slice(b"ustar\x0000");
    if matches!(kind, b'1' | b'2') {
        block[157..168].copy_from_slice(b"/etc/passwd");
    }
    let sum: u32 = block.iter().map(|&byte| u32::from(byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let mut member = [&block, bytes].concat();
    member.resize(member.len().next_multiple_of(512), 0);
    member
}

/// A member whose name stands in a header of its own, as GNU and PAX write long ones.
fn named(name: &str, pax: bool) -> [Vec<u8>; 2] {
    let header = if pax {
        let record = |length: usize| format!("{length} path={name}\n");
        let length = (name.len()..name.len() + 20).find(|&length| record(length).len() == length).unwrap();
        member("PaxHeader", b'x', record(length).as_bytes())
    } else {
        member("././@LongLink", b'L', format!("{name}\0").as_bytes())
    };
    [header, member("short", b'0', b"x")]
}

#[test]
fn names_in_archives_that_lead_out() {
    let scene = Scene::new();
    let long = format!("{}.png", "n".repeat(4_096));
    for (name, problem) in [
        ("../../outside.png", "leads out of the folder"),
        ("a/../../outside.png", "leads out of the folder"),
        ("/tmp/outside.png", "is absolute"),
        ("C:\\outside.png", "contains a backslash where / is meant"),
        ("C:/outside.png", "begins with a drive"),
        ("..\\outside.png", "contains a backslash where / is meant"),
        (long.as_str(), "is longer than 4,096 bytes"),
    ] {
        let problem = format!("{problem}; create it again with regular files only");
        for trick in [named(name, false), named(name, true)] {
            let sentence = said(&scene, &trick);
            assert!(sentence.starts_with("train.tar, byte ") && sentence.ends_with(&problem), "{sentence}");
        }
        if name.len() <= 100 {
            let sentence = said(&scene, &[member(name, b'0', b"x")]);
            assert!(sentence.starts_with("train.tar, byte ") && sentence.ends_with(&problem), "{sentence}");
        }
    }
    // GNU's long names and fields end at the first NUL, so that one is never part of a name; PAX counts.
    let sentence = said(&scene, &named("a\0b.png", true));
    assert!(sentence.contains("a malformed PAX header"), "{sentence}");
}

#[test]
fn tar_members_that_are_not_files() {
    let scene = Scene::new();
    for (kind, problem) in [
        (b'1', "a link"),
        (b'2', "a link"),
        (b'3', "a device or pipe"),
        (b'4', "a device or pipe"),
        (b'6', "a device or pipe"),
        (b'S', "a sparse member"),
        (b'V', "a member of the unknown kind 'V'"),
    ] {
        let sentence = said(&scene, &[member("2.png", kind, b"")]);
        assert!(sentence.starts_with("train.tar, byte "), "{sentence}");
        assert!(sentence.contains(&format!(": {problem}; ")), "{sentence}");
    }
}

#[cfg(unix)]
#[test]
fn lists_and_shards_that_are_links_out() {
    use std::os::unix::fs::symlink;

    let out = "a link that leads out of the dataset folder; replace the link with a copy of its target";
    let scene = Scene::new();
    std::fs::write(scene.outside().join("secret"), "file,label\na.png,secret\n").unwrap();
    symlink("../secret", scene.root().join("labels.csv")).unwrap();
    scene.image("a.png");
    assert_eq!(scene.refusal(list(&scene)), format!("labels.csv: {out}"));
    symlink("../secret", scene.root().join("0.tar")).unwrap();
    assert_eq!(scene.refusal(shards(&scene)), format!("0.tar: {out}"));
    std::fs::create_dir(scene.root().join("info")).unwrap();
    symlink("../../secret", scene.root().join("info/synsets.txt")).unwrap();
    let inspection = calmix_data::source::Inspection::default();
    let sentence = scene.refusal(webvision::prepare(&scene.root(), &scene.target(), &inspection));
    assert_eq!(sentence, format!("info/synsets.txt: {out}"));
}

#[cfg(unix)]
#[test]
fn pipes_are_not_waited_for() {
    let scene = Scene::new();
    let pipe = |name: &str| {
        let made = std::process::Command::new("mkfifo").arg(scene.root().join(name)).status();
        made.is_ok_and(|made| made.success())
    };
    if !pipe("labels.csv") || !pipe("0.tar") {
        return tier::skipped("there is no mkfifo");
    }
    assert_eq!(scene.refusal(list(&scene)), "labels.csv: not a regular file");
    assert_eq!(scene.refusal(shards(&scene)), "0.tar: not a regular file");
}
