//! What a run and a cache say about the runtime that computed their features, and what does not depend on it.

use std::fs;

use calmix_recipe::precision::Precision;
use calmix_run::read;
use calmix_testkit::run_bytes::differing;
use serde_json::Value;

use super::feature_cache::{files, is_page, train};
use super::head::heads;
use super::made::Bench;

#[test]
fn run_names_runtime_and_version() {
    let bench = Bench::new();
    let run = bench.train("run", &[]);
    let head = read::model_info(&run).unwrap().head.unwrap();
    assert!(head.runtime.starts_with("onnxruntime 1."), "{}", head.runtime);
    assert_eq!(head.precision, Precision::F32);
    assert_eq!(read::environment(&run).unwrap().engine, head.runtime);
}

#[test]
fn bits_of_a_run_do_not_depend_on_threads() {
    let bench = Bench::new();
    let one = bench.train("one", &[]);
    for threads in [2, 4] {
        let other = bench.train(&format!("of {threads}"), &[&format!("train.threads={threads}")]);
        // Only what names the number of threads, or the hash of the recipe that does.
        let differing = differing(&one, &other);
        for file in &differing {
            assert!(["recipe.toml", "summary.json", "events.jsonl"].contains(&&**file), "{differing:?}");
        }
    }
}

/// The cache of an earlier version, which computed features by libtorch.
#[test]
fn cache_of_another_runtime_is_computed_again() {
    let (bench, settings) = heads();
    let cache = bench.folder("features");
    let (first, warnings) = train(&bench, &settings, "first", &cache);
    assert_eq!(warnings, Vec::<String>::new());
    let [identity] = files(&cache, |name| name == "cache.json").try_into().unwrap();
    let mut text: Value = serde_json::from_slice(&fs::read(&identity).unwrap()).unwrap();
    assert!(text["runtime"].as_str().unwrap().starts_with("onnxruntime "), "{text}");
    text.as_object_mut().unwrap().remove("runtime");
    let backbone = text["backbone"].as_str().unwrap().replacen('{', "{\"precision\":\"bf16\",", 1);
    text["backbone"] = backbone.into();
    fs::write(&identity, text.to_string()).unwrap();
    let old = cache.join("0123456789abcdef");
    fs::rename(identity.parent().unwrap(), &old).unwrap();

    let (second, warnings) = train(&bench, &settings, "second", &cache);
    let [warning] = warnings.as_slice() else { panic!("{warnings:?}") };
    assert!(warning.starts_with(&old.display().to_string()), "{warning}");
    assert!(
        warning.contains("not computed by onnxruntime") && warning.contains("computed again"),
        "{warning}"
    );
    assert_eq!(differing(&first, &second), Vec::<String>::new());
    assert_eq!(
        files(&cache, is_page).len(),
        2 * fs::read_dir(&old)
            .unwrap()
            .filter(|entry| { is_page(&entry.as_ref().unwrap().file_name().to_string_lossy()) })
            .count()
    );
    // It is said once.
    let (_, warnings) = train(&bench, &settings, "third", &cache);
    assert_eq!(warnings, Vec::<String>::new());
}
