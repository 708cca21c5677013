//! What a run does about a cache of features that is damaged or cannot be written.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use calmix_heads::HeadsError;
use calmix_heads::images::PagePart;
use calmix_heads::trainer;
use calmix_lifecycle::LifecycleError;
use calmix_lifecycle::request::RunRequest;
use calmix_run::read;
use calmix_run::result::Outcome;
use calmix_testkit::run_bytes::differing;

use super::head::heads;
use super::made::Bench;

/// The files below a cache whose name begins or ends so.
pub(crate) fn files(cache: &Path, is_wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let folders = fs::read_dir(cache).unwrap().map(|entry| entry.unwrap().path());
    let entries = folders.flat_map(|folder| fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()));
    let mut found: Vec<_> =
        entries.filter(|path| is_wanted(&path.file_name().unwrap().to_string_lossy())).collect();
    found.sort();
    found
}

pub(crate) fn is_page(name: &str) -> bool {
    name.starts_with("page-")
}

/// Puts a copy with one flipped bit in the place of a file. A copy, because a run may have a link to the file.
fn damage(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::remove_file(path).unwrap();
    fs::write(path, bytes).unwrap();
}

/// Trains a head with its features in `cache`; the run and what it warned of.
pub(crate) fn train(bench: &Bench, settings: &[String], name: &str, cache: &Path) -> (PathBuf, Vec<String>) {
    let warnings = Arc::new(Mutex::new(Vec::new()));
    let stop = AtomicBool::new(false);
    let received = Arc::clone(&warnings);
    let request = RunRequest::new(&stop).warning(move |text| received.lock().unwrap().push(text.to_owned()));
    let cache = format!("network.cache={}", cache.display());
    let settings: Vec<&str> = settings.iter().map(String::as_str).chain([cache.as_str()]).collect();
    let outcome = bench.start(request, name, &settings).unwrap();
    assert!(matches!(outcome, Outcome::Finished(_)), "{outcome:?}");
    let warnings = warnings.lock().unwrap().clone();
    (bench.folder(name), warnings)
}

#[test]
fn damaged_backbone_in_the_cache_is_replaced() {
    let (bench, settings) = heads();
    let cache = bench.folder("features");
    let (first, _) = train(&bench, &settings, "first", &cache);
    let shared = files(&cache, |name| name == "backbone.safetensors");
    assert_eq!(shared.len(), 1);
    damage(&shared[0]);
    let (second, _) = train(&bench, &settings, "second", &cache);
    assert_eq!(differing(&first, &second), Vec::<String>::new());
    // What `predict` and `evaluate` compare.
    let head = read::model_info(&second).unwrap().head.unwrap();
    let own = fs::read(second.join("backbone.safetensors")).unwrap();
    assert_eq!(blake3::hash(&own).to_hex().as_str(), head.backbone);
}

#[test]
fn damaged_page_is_made_again_before_training() {
    let (bench, settings) = heads();
    let cache = bench.folder("features");
    let (first, warnings) = train(&bench, &settings, "first", &cache);
    assert_eq!(warnings, Vec::<String>::new());
    let pages = files(&cache, is_page);
    assert!(!pages.is_empty());
    for page in &pages {
        damage(page);
    }
    let (second, warnings) = train(&bench, &settings, "second", &cache);
    assert!(warnings.len() == 1 && warnings[0].contains("damaged and are computed again"), "{warnings:?}");
    assert_eq!(differing(&first, &second), Vec::<String>::new());
}

/// Folders stand where the cache keeps the backbone, then where it keeps projections.
#[test]
fn cache_that_keeps_only_features_is_a_warning() {
    let (bench, settings) = heads();
    let (first, _) = train(&bench, &settings, "first", &bench.folder("features"));
    for (what, ending) in [("backbone", "backbone.safetensors"), ("projection", ".projection")] {
        let cache = bench.folder(&format!("without {what}"));
        train(&bench, &settings, &format!("filling {what}"), &cache);
        let blocked = files(&cache, |name| name.ends_with(ending));
        assert_eq!(blocked.len(), 1, "{what}");
        fs::remove_file(&blocked[0]).unwrap();
        fs::create_dir_all(blocked[0].join("in the way")).unwrap();
        let (run, warnings) = train(&bench, &settings, &format!("with {what}"), &cache);
        assert!(warnings.len() == 1 && warnings[0].contains("stay in memory"), "{what}: {warnings:?}");
        for file in ["model.safetensors", "backbone.safetensors", "projection.safetensors", "result.json"] {
            let [one, other] = [&run, &first].map(|run| fs::read(run.join(file)).unwrap());
            assert!(one == other, "{what}: {file}");
        }
    }
}

/// A file stands where the cache should be; then folders stand where its pages should be, so that only they cannot be
/// written. Permissions would not stop a test that runs as root.
#[test]
fn unwritable_cache_is_only_a_warning() {
    let (bench, settings) = heads();
    let (first, _) = train(&bench, &settings, "first", &bench.folder("features"));
    let occupied = bench.folder("occupied");
    fs::write(&occupied, "not a folder").unwrap();
    let blocked = bench.folder("blocked");
    train(&bench, &settings, "filling", &blocked);
    for page in files(&blocked, is_page) {
        fs::remove_file(&page).unwrap();
        fs::create_dir_all(page.join("in the way")).unwrap();
    }
    for (name, cache) in [("without", &occupied), ("with", &blocked)] {
        let (run, warnings) = train(&bench, &settings, name, cache);
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        let place = cache.display().to_string();
        assert!(warnings[0].starts_with(&place) && warnings[0].contains("stay in memory"), "{warnings:?}");
        // The recipe names another cache, and its hash is in the events and checkpoints.
        for file in ["model.safetensors", "backbone.safetensors", "projection.safetensors", "result.json"] {
            assert_eq!(
                fs::read(run.join(file)).unwrap(),
                fs::read(first.join(file)).unwrap(),
                "{name}: {file}"
            );
        }
    }
    // Who only makes features has nothing if they are not kept.
    let prepared = bench.prepared_table();
    for cache in [&occupied, &blocked] {
        let cache = format!("network.cache={}", cache.display());
        let settings: Vec<&str> = settings.iter().map(String::as_str).chain([&*prepared, &*cache]).collect();
        let stop = AtomicBool::new(false);
        let made = trainer::make_features(RunRequest::new(&stop), &bench.recipe(&settings), PagePart::ALL);
        assert!(matches!(made, Err(HeadsError::Lifecycle(LifecycleError::Data(_)))), "{made:?}");
    }
}
