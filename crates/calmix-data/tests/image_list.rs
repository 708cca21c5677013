//! Lists of images to predict, shared out to several processes by whole files.

use std::ffi::OsString;
use std::fs;
use std::io::Cursor;
use std::os::unix::fs::symlink;
use std::path::Path;

use calmix_data::image_list::{FileShard, ImageList, ListedImage};

const SHARDS: u64 = 5;

/// A folder with what a list can meet: images, folders, links, a broken tar, a file that is not an image.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for name in ["a", "a/b", "a/b/c", "like.png"] {
        fs::create_dir(path(name)).unwrap();
        for n in 0..9 {
            fs::write(path(name).join(format!("{n}.png")), b"").unwrap();
        }
    }
    fs::write(path("broken.tar"), b"not a tar").unwrap();
    fs::write(path("a/notes.txt"), b"text").unwrap();
    symlink("/", path("a/out")).unwrap();
    symlink("b", path("a/folder")).unwrap();
    folder
}

fn paths(images: impl Iterator<Item = ListedImage>) -> Vec<OsString> {
    images.map(|image| image.path).collect()
}

/// Checks that each path of a list is in one shard, in the order of the list.
fn check(list: impl Fn() -> ImageList) {
    let whole = paths(list());
    let mut found = Vec::new();
    for index in 0..SHARDS {
        let own = paths(list().only(FileShard { index, count: SHARDS }));
        let mut rest = whole.iter();
        assert!(own.iter().all(|path| rest.any(|other| other == path)), "another order: {own:?}");
        found.extend(own);
    }
    let mut expected = whole.clone();
    expected.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, expected);
}

#[test]
fn shards_of_a_list_are_the_whole() {
    let folder = folder();
    let root = folder.path();
    assert_eq!(paths(ImageList::of_paths(vec![root.to_owned()])).len(), 36 + 3);
    check(|| ImageList::of_paths(vec![root.to_owned()]));
    check(|| ImageList::of_paths(vec![root.join("a/b"), root.join("missing"), root.join("broken.tar")]));
    // A folder with the name of a file, in a list with lines that lead nowhere.
    let lines = |root: &Path| {
        let names = ["like.png", "a", "missing.png", "missing", "a/0.png", "a/1.png", "a/notes.txt"];
        names.map(|name| format!("{}\n", root.join(name).display())).concat()
    };
    assert_eq!(paths(ImageList::of_lines(Box::new(Cursor::new(lines(root))))).len(), 9 + 29 + 5);
    check(|| ImageList::of_lines(Box::new(Cursor::new(lines(root)))));
    // A list whose rest cannot be read.
    let long = format!("{}\n{}", root.join("a/0.png").display(), "x".repeat(100_000));
    check(|| ImageList::of_lines(Box::new(Cursor::new(long.clone()))));
}

/// A file of another shard is passed by its name: not even its first bytes are read, by which an image is recognised.
#[cfg(target_os = "linux")]
#[test]
fn files_of_other_shards_are_not_read() {
    let folder = tempfile::tempdir().unwrap();
    for n in 0..500 {
        fs::write(folder.path().join(n.to_string()), b"\x89PNG\r\n\x1a\nabcdefgh").unwrap();
    }
    let reads = || {
        let counts = fs::read_to_string("/proc/self/io").unwrap();
        let count = counts.lines().find_map(|line| line.strip_prefix("syscr: ")).unwrap();
        count.parse::<u64>().unwrap()
    };
    let before = reads();
    let list = ImageList::of_paths(vec![folder.path().to_owned()]);
    let own = list.only(FileShard { index: 7, count: 100 }).count() as u64;
    let read = reads() - before;
    assert!(own > 0 && own < 20, "{own}");
    assert!(read < 100, "{read} reads for {own} images");
}
