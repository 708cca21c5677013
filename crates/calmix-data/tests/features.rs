//! The cache of features: what it lacks, what it keeps, and what it does about damage.

mod carried;

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use calmix_core::rng::Seed;
use calmix_data::augment::{Augment, Scratch};
use calmix_data::error::DataError;
use calmix_data::features::{
    FORMAT, FeatureCache, FeatureIdentity, FeatureView, MissingPage, ViewPixels, by_page, from_f16, to_f16,
};
use calmix_data::loader::{ImageSource, ViewKey, Views};
use calmix_formats::error::FormatProblem;
use calmix_formats::image::Image;
use calmix_testkit::python::interpreter;
use calmix_testkit::tier;

const BYTES: usize = 6;

fn identity(weights: &str) -> FeatureIdentity {
    FeatureIdentity {
        format: FORMAT,
        dataset: "abc".into(),
        views: "{}".into(),
        backbone: weights.into(),
        runtime: "some 1.0".into(),
        width: BYTES as u32 / 2,
    }
}

/// The vector of a sample in a view: a function of both, as a backbone's are.
fn vector(id: u64, view: FeatureView) -> [u8; BYTES] {
    let view = match view {
        FeatureView::Clean => 0,
        FeatureView::Weak(n) => 10 + n,
        FeatureView::Strong(n) => 20 + n,
    };
    let [a, b, c, d, ..] = id.to_le_bytes();
    [a, b, c, d, view, 7]
}

fn vectors(need: &MissingPage) -> Vec<u8> {
    need.ids.iter().flat_map(|&id| need.views.iter().flat_map(move |&view| vector(id, view))).collect()
}

fn open(parent: &Path) -> FeatureCache {
    FeatureCache::open(parent, &identity("a")).unwrap()
}

fn fill(cache: &mut FeatureCache, ids: impl IntoIterator<Item = u64>, views: &[FeatureView]) -> usize {
    let needs = cache.missing(ids, views);
    for need in &needs {
        cache.write(need, &vectors(need)).unwrap();
    }
    needs.len()
}

fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    let mut files: Vec<_> =
        entries.map(|entry| (entry.file_name().into(), fs::read(entry.path()).unwrap())).collect();
    files.sort();
    files
}

fn is_page(name: &Path) -> bool {
    name.to_string_lossy().starts_with("page-")
}

/// The first page of a cache.
fn a_page(cache: &FeatureCache) -> (PathBuf, Vec<u8>) {
    files(cache.folder()).into_iter().find(|(name, _)| is_page(name)).unwrap()
}

#[test]
fn cache_requests_only_missing_features() {
    let temp = tempfile::tempdir().unwrap();
    let views = FeatureView::list(2, 1);
    let mut cache = open(temp.path());
    // 600 samples are three pages of at most 256.
    assert_eq!(fill(&mut cache, 0..600, &[FeatureView::Clean]), 3);
    assert_eq!(fill(&mut cache, 0..600, &[FeatureView::Clean]), 0);
    let needs = cache.missing(590..610, &views);
    let lacking: Vec<_> = needs.iter().map(|need| (need.ids.len(), need.views.len())).collect();
    assert_eq!(lacking, [(10, 4), (10, 3)]);
    fill(&mut cache, 590..610, &views);
    let mut again = open(temp.path());
    let ids: Vec<u64> = (590..612).collect();
    let (found, bytes) = again.read(&ids, &views).unwrap();
    assert_eq!(found, ids[..20]);
    let need = MissingPage { ids: found, views };
    assert_eq!(bytes, vectors(&need));
}

#[test]
fn another_backbone_dataset_or_view_is_another_cache() {
    let temp = tempfile::tempdir().unwrap();
    let mut cache = open(temp.path());
    fill(&mut cache, 0..10, &[FeatureView::Clean]);
    let others = [
        identity("b"),
        FeatureIdentity { dataset: "xyz".into(), ..identity("a") },
        FeatureIdentity { views: "{1}".into(), ..identity("a") },
        FeatureIdentity { width: 4, ..identity("a") },
        FeatureIdentity { runtime: "some 1.1".into(), ..identity("a") },
    ];
    for other in others {
        let cache = FeatureCache::open(temp.path(), &other).unwrap();
        assert_eq!(cache.missing(0..10, &[FeatureView::Clean]).len(), 1, "{other:?}");
    }
}

#[test]
fn cache_of_another_runtime_is_named_once() {
    let temp = tempfile::tempdir().unwrap();
    let of = |weights: &str, runtime: &str| FeatureIdentity {
        runtime: runtime.into(),
        ..identity(&format!("{{\"weights\":\"{weights}\"}}"))
    };
    let open = |identity: &FeatureIdentity| FeatureCache::open(temp.path(), identity).unwrap();
    let first = open(&of("a", "some 1.0"));
    assert_eq!(first.of_other_runtime(), None);
    assert_eq!(open(&of("b", "some 1.1")).of_other_runtime(), None, "other weights");
    let other_views = FeatureIdentity { views: "{1}".into(), ..of("a", "some 1.1") };
    assert_eq!(open(&other_views).of_other_runtime(), None, "other views");
    let newer = of("a", "some 1.1");
    assert_eq!(open(&newer).of_other_runtime(), Some(first.folder()));
    assert_eq!(open(&newer).of_other_runtime(), None, "it is not new any more");
    // What another process left there is passed over.
    let sibling = temp.path().join("0000000000000000");
    fs::create_dir(&sibling).unwrap();
    fs::write(sibling.join("cache.json"), vec![b'['; 1 << 20]).unwrap();
    assert!(open(&of("a", "some 1.2")).of_other_runtime().is_some());
}

/// A cache that an earlier version filled by libtorch has no runtime in its identity, and a precision.
#[test]
fn cache_of_an_earlier_version_is_one_of_another_runtime() {
    let temp = tempfile::tempdir().unwrap();
    let old = temp.path().join("0123456789abcdef");
    fs::create_dir(&old).unwrap();
    let text = r#"{"format":2,"dataset":"abc","views":"{}","backbone":"{\"precision\":\"bf16\",\"weights\":\"a\"}",
        "width":3}"#;
    fs::write(old.join("cache.json"), text).unwrap();
    let cache = FeatureCache::open(temp.path(), &identity(r#"{"weights":"a"}"#)).unwrap();
    assert_eq!(cache.of_other_runtime(), Some(old.as_path()));
}

#[test]
fn numbers_are_rounded_to_the_nearest_f16() {
    let numbers = [0.0, 1.0, -2.5, 1.000_1, 1.000_6, 65_504.0, 2.0_f32.powi(-24), 1e-8, f32::INFINITY];
    let rounded = [0.0, 1.0, -2.5, 1.0, 1.000_976_6, 65_504.0, 2.0_f32.powi(-24), 0.0, f32::INFINITY];
    assert_eq!(from_f16(&to_f16(&numbers)), rounded);
    let bits: Vec<u8> =
        (0..=u16::MAX).filter(|bits| bits & 0x7FFF <= 0x7C00).flat_map(u16::to_le_bytes).collect();
    assert_eq!(to_f16(&from_f16(&bits)), bits, "every f16 stays itself");
}

#[test]
fn cache_pages_do_not_depend_on_the_process() {
    let wanted = tempfile::tempdir().unwrap();
    let views = FeatureView::list(1, 1);
    let mut cache = open(wanted.path());
    fill(&mut cache, 0..2_000, &views);
    let wanted = files(cache.folder());
    for processes in [2, 4] {
        let temp = tempfile::tempdir().unwrap();
        let open = || open(temp.path());
        // All of them look before any of them writes.
        let mut crew: Vec<_> = (0..processes).map(|_| open()).collect();
        let needs = crew[0].missing(0..2_000, &views);
        for (n, need) in needs.iter().enumerate().rev() {
            crew[n % processes].write(need, &vectors(need)).unwrap();
        }
        // Two that make the same page do no harm.
        crew[0].write(&needs[1], &vectors(&needs[1])).unwrap();
        assert_eq!(files(open().folder()), wanted);
    }
}

#[test]
fn damaged_cache_pages_are_recomputed() {
    let temp = tempfile::tempdir().unwrap();
    let mut cache = open(temp.path());
    fill(&mut cache, 0..600, &[FeatureView::Clean]);
    let folder = cache.folder().to_owned();
    let wanted = files(&folder);
    let pages: Vec<_> = wanted.iter().filter(|(name, _)| is_page(name)).collect();
    let harm: [fn(&mut Vec<u8>); 5] = [
        |bytes| bytes.truncate(30),
        |bytes| bytes.push(0),
        |bytes| bytes[12] ^= 1,
        |bytes| bytes[2_600] ^= 4,
        Vec::clear,
    ];
    for harm in harm {
        let (name, bytes) = pages[1];
        let mut damaged = bytes.clone();
        harm(&mut damaged);
        fs::write(folder.join(name), damaged).unwrap();
        let mut cache = open(temp.path());
        let ids: Vec<u64> = (0..600).collect();
        let (found, _) = cache.read(&ids, &[FeatureView::Clean]).unwrap();
        assert!(found.len() < 600 && cache.damaged() == 1, "{}", found.len());
        fill(&mut cache, ids.iter().copied(), &[FeatureView::Clean]);
        let (found, bytes) = cache.read(&ids, &[FeatureView::Clean]).unwrap();
        assert_eq!((found.len(), bytes.len()), (600, 600 * BYTES));
        assert_eq!(files(&folder), wanted);
    }
}

/// A page with a flipped bit in any byte counts as damaged, or holds the same vectors: a space of the header means nothing.
#[test]
fn every_flipped_byte_is_refused_or_harmless() {
    let temp = tempfile::tempdir().unwrap();
    let views = FeatureView::list(1, 1);
    let mut cache = open(temp.path());
    fill(&mut cache, 0..5, &views);
    let (name, bytes) = a_page(&cache);
    let ids: Vec<u64> = (0..5).collect();
    let wanted = cache.read(&ids, &views).unwrap();
    let mut refused = 0;
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        fs::write(cache.folder().join(&name), damaged).unwrap();
        let mut damaged = open(temp.path());
        let found = damaged.read(&ids, &views).unwrap();
        assert!(found == wanted || (found.0.is_empty() && damaged.damaged() == 1), "byte {at}");
        refused += u64::from(damaged.damaged() == 1);
    }
    // All but a few of the header.
    assert!(refused > bytes.len() as u64 - 50, "{refused} of {}", bytes.len());
}

/// A page decides what a run learns, so pages of other users are not trusted. Only root can create files of another user.
#[test]
fn cache_ignores_pages_of_another_user() {
    let temp = tempfile::tempdir().unwrap();
    let views = FeatureView::list(1, 0);
    let open = || open(temp.path());
    let mut cache = open();
    fill(&mut cache, 0..5, &views);
    let (name, _) = a_page(&cache);
    let shared = cache.folder().to_owned();
    if chown(shared.join(&name), Some(1001), Some(1001)).is_err() {
        return tier::skipped("not root");
    }
    let mut again = open();
    assert_eq!((again.foreign(), again.damaged()), (Some(&*shared), 0));
    assert_eq!(fill(&mut again, 0..5, &views), 1);
    assert_eq!(open().foreign(), None, "it was replaced");
    // A folder of another user is left alone, and this user gets one beside it.
    chown(&shared, Some(1001), Some(1001)).unwrap();
    let before = files(&shared);
    let mut own = open();
    assert_eq!(own.foreign(), Some(&*shared));
    assert_ne!(own.folder(), shared);
    assert_eq!(fill(&mut own, 0..5, &views), 1);
    assert_eq!(fill(&mut open(), 0..5, &views), 0);
    assert_eq!(files(&shared), before);
    // No other user can create that folder in advance.
    chown(own.folder(), Some(1001), Some(1001)).unwrap();
    FeatureCache::open(temp.path(), &identity("a")).unwrap_err();
}

/// Pages that cannot be written are held in memory, and are read like written ones.
#[test]
fn held_pages_are_read_like_written_ones() {
    let temp = tempfile::tempdir().unwrap();
    let views = FeatureView::list(1, 0);
    let parent = temp.path().join("file");
    fs::write(&parent, "not a folder").unwrap();
    FeatureCache::open(&parent, &identity("a")).unwrap_err();
    let mut cache = FeatureCache::in_memory(&parent, &identity("a"));
    for need in cache.missing(250..260, &views) {
        cache.write(&need, &vectors(&need)).unwrap_err();
        cache.hold(&need, vectors(&need)).unwrap();
        cache.hold(&need, vec![0; 3]).unwrap_err();
    }
    assert!(cache.missing(250..260, &views).is_empty());
    let ids: Vec<u64> = (250..260).collect();
    let (found, bytes) = cache.read(&ids, &views).unwrap();
    assert_eq!((&found, cache.damaged()), (&ids, 0));
    assert_eq!(bytes, vectors(&MissingPage { ids, views }));
}

const READ_BACK: &str = "\
import sys
import numpy
from safetensors import safe_open
from safetensors.numpy import load_file

page = load_file(sys.argv[1])
assert sorted(page) == ['ids', 'vectors', 'views'], list(page)
ids, views, vectors = page['ids'], page['views'], page['vectors']
assert ids.dtype == numpy.uint64 and views.dtype == numpy.uint8 and vectors.dtype == numpy.float16
assert ids.tolist() == [7, 9, 30], ids
assert views.tolist() == [[0, 0], [1, 0], [1, 1], [2, 0]], views
# The first number of a vector is the id, the second the number of the view, the third a half.
expected = numpy.array([[[i, v, 0.5] for v in range(4)] for i in ids.tolist()], dtype=numpy.float16)
assert (vectors == expected).all(), vectors
with safe_open(sys.argv[1], 'np') as file:
    print(file.metadata()['blake3'])
";

/// `safetensors.numpy` reads a page, and finds its hash.
#[test]
fn numpy_reads_a_page() {
    let temp = tempfile::tempdir().unwrap();
    let need = MissingPage { ids: vec![7, 9, 30], views: FeatureView::list(2, 1) };
    let numbers = need.ids.iter().flat_map(|&id| (0..4_u8).flat_map(move |n| [id as f32, f32::from(n), 0.5]));
    let vectors = to_f16(&numbers.collect::<Vec<_>>());
    let mut cache = open(temp.path());
    cache.write(&need, &vectors).unwrap();
    let page = cache.folder().join(a_page(&cache).0);
    let output = Command::new(interpreter("safetensors", "CALMIX_SAFETENSORS_PYTHON"))
        .args(["-B", "-c", READ_BACK])
        .arg(page)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let hash = String::from_utf8(output.stdout).unwrap();
    assert_eq!(hash.trim(), blake3::hash(&vectors).to_hex().as_str());
}

#[test]
fn files_beside_the_pages_are_checked() {
    let temp = tempfile::tempdir().unwrap();
    let cache = open(temp.path());
    assert_eq!(cache.kept("x.projection", 100), None);
    cache.store_checked("x.projection", b"numbers").unwrap();
    assert_eq!(cache.kept("x.projection", 100).as_deref(), Some(&b"numbers"[..]));
    assert_eq!(cache.kept("x.projection", 6), None);
    fs::write(cache.folder().join("x.projection"), b"numberz\0\0\0\0").unwrap();
    assert_eq!(cache.kept("x.projection", 100), None);
    fs::write(cache.folder().join("x.projection"), b"n").unwrap();
    assert_eq!(cache.kept("x.projection", 100), None);
}

/// For readers of the folder: calmix needs nothing of it but its name.
#[test]
fn cache_describes_what_it_is_of() {
    let temp = tempfile::tempdir().unwrap();
    let open = || open(temp.path());
    let path = open().folder().join("cache.json");
    let read = |path: &Path| serde_json::from_slice::<FeatureIdentity>(&fs::read(path).unwrap());
    assert_eq!(read(&path).unwrap(), identity("a"));
    let unchanged = fs::metadata(&path).unwrap().ino();
    open();
    assert_eq!(fs::metadata(&path).unwrap().ino(), unchanged);
    fs::write(&path, "damaged").unwrap();
    open();
    assert_eq!(read(&path).unwrap(), identity("a"));
}

/// One image, of any id but 4.
struct OneImage;

impl ImageSource for OneImage {
    fn image(&self, id: u64) -> Result<Image, DataError> {
        if id == 4 {
            return Err(DataError::new("4.png", FormatProblem::Format("damaged".into())));
        }
        Ok(Image::new(8, 8, (0..192).map(|n| (n * 37 + id) as u8).collect()).unwrap())
    }

    fn label(&self, _: u64) -> Result<Option<u32>, DataError> {
        Ok(Some(1))
    }
}

#[test]
fn backbone_gets_the_views_in_order() {
    let augment = Augment::usb(8);
    let pixels = |views: Vec<FeatureView>| ViewPixels {
        source: Arc::new(OneImage),
        augment: Arc::new(augment.clone()),
        views,
    };
    let views = FeatureView::list(2, 2);
    let all = pixels(views.clone());
    let each = augment.bytes();
    assert_eq!(all.bytes(), 5 * each);
    assert_eq!(all.label(3).unwrap(), None, "a backbone needs no label");
    let mut row = vec![0; all.bytes()];
    all.evaluation(3, &mut Scratch::default(), &mut row).unwrap();
    for (view, part) in views.into_iter().zip(row.chunks(each)) {
        let mut alone = vec![0; each];
        pixels(vec![view]).evaluation(3, &mut Scratch::default(), &mut alone).unwrap();
        assert_eq!(alone, part, "{view:?}");
    }
    let parts: std::collections::BTreeSet<_> = row.chunks(each).collect();
    assert_eq!(parts.len(), 5, "each view is another");
    let mut again = vec![0; all.bytes()];
    // The views of a cache are those of all epochs and seeds.
    let key = ViewKey { seed: Seed(9), epoch: 7, id: 3 };
    all.training(key, &mut Scratch::default(), &mut again, None).unwrap();
    assert_eq!(again, row);
    let error = all.evaluation(4, &mut Scratch::default(), &mut row).unwrap_err();
    assert!(matches!(error, DataError::Sample { id: 4, .. }), "{error}");
}

/// A file of the right length is not enough.
#[test]
fn kept_file_is_compared_byte_by_byte() {
    let temp = tempfile::tempdir().unwrap();
    let cache = open(temp.path());
    // More than a piece that is compared at once.
    let backbone: Vec<u8> = (0..600_000).map(|n| (n % 251) as u8).collect();
    let path = cache.keep("backbone", &backbone).unwrap();
    let unchanged = fs::metadata(&path).unwrap().modified().unwrap();
    cache.keep("backbone", &backbone).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), unchanged);
    let mut flipped = backbone.clone();
    flipped[550_000] ^= 1;
    for other in [flipped, [&backbone[..], &[1]].concat(), backbone[..599_999].to_vec(), Vec::new()] {
        fs::write(&path, other).unwrap();
        cache.keep("backbone", &backbone).unwrap();
        assert_eq!(fs::read(&path).unwrap(), backbone);
    }
}

/// A page ends where the next one begins, whoever makes it and whatever is there already.
#[test]
fn a_page_holds_its_own_samples() {
    let page = |ids: &[u64]| MissingPage { ids: ids.to_vec(), views: vec![FeatureView::Clean] };
    assert!(page(&[3]).holds(255) && !page(&[3]).holds(256) && !page(&[256]).holds(255));
    assert!(page(&[]).holds(7_000));
    assert_eq!([page(&[255]).number(), page(&[256]).number()], [0, 1]);
    let pages: Vec<_> = by_page(&[3, 255, 256, 600]).collect();
    assert_eq!(pages, [&[3, 255][..], &[256], &[600]]);
}

#[test]
fn samples_of_several_pages_are_not_kept_as_one() {
    let temp = tempfile::tempdir().unwrap();
    let mut cache = open(temp.path());
    for ids in [&[8, 7][..], &[7, 7], &[255, 256]] {
        let need = MissingPage { ids: ids.to_vec(), views: vec![FeatureView::Clean] };
        let written = cache.write(&need, &vectors(&need));
        for refused in [written, cache.hold(&need, vectors(&need))] {
            let refused = refused.unwrap_err().to_string();
            assert!(refused.contains("not ascending, or not those of one page"), "{ids:?}: {refused}");
        }
    }
    assert!(!files(cache.folder()).iter().any(|(name, _)| is_page(name)));
}
