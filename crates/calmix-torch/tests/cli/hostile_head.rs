//! Runs of a head from an untrusted source: what is below the head, the features in the folder, and keys of the recipe
//! that name places.

use std::fs;
use std::path::{Path, PathBuf};

use calmix_testkit::tier;

use super::hostile_scene::{KINDS, Reader, Scene};
use super::library::Library;

/// What a head has in its folder besides what every run has, and a name that files of weights have beside them.
fn places(scene: &Scene) -> Vec<String> {
    let cache = only_in(&scene.workspace.path("honest/features"), |_| true);
    let page = only_in(&cache, |name| name.starts_with("page-"));
    let below = |path: &Path| {
        let path = path.strip_prefix(scene.workspace.path("honest")).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let kept = [
        "backbone.safetensors",
        "projection.safetensors",
        "reference.safetensors",
        "config.json",
        "features",
    ]
    .map(String::from);
    let cached = [&cache, &page, &cache.join("cache.json"), &cache.join("backbone.safetensors")];
    kept.into_iter().chain(cached.map(|path| below(path))).collect()
}

/// The first of what a folder has.
fn only_in(folder: &Path, is_wanted: impl Fn(&str) -> bool) -> PathBuf {
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| is_wanted(path.file_name().unwrap().to_str().unwrap()));
    paths.sort();
    paths.remove(0)
}

/// The library is called on every place with every kind. A process is started for one kind in each place, and with
/// `CALMIX_EXHAUSTIVE=1` for every kind.
#[test]
fn head_follows_no_link_and_waits_for_no_pipe() {
    let scene = Scene::of_head();
    let mut processes = Reader::new(&scene, None);
    let mut library = Reader::new(&scene, Some(Library::start()));
    for (n, place) in places(&scene).iter().enumerate() {
        for (k, kind) in KINDS.iter().enumerate() {
            let what = format!("{place}: {kind}");
            let damage = |run: &Path| scene.put(run, place, kind);
            let _ = library.endures(&what, damage);
            if tier::is_exhaustive() || n % KINDS.len() == k {
                let _ = processes.endures(&what, damage);
            }
        }
    }
}

/// Sets a key of the recipe.
fn set(run: &Path, key: &str, value: &str) {
    let text = fs::read_to_string(run.join("recipe.toml")).unwrap();
    let line = text.lines().find(|line| line.starts_with(&format!("{key} = "))).unwrap();
    let changed = text.replace(line, &format!("{key} = {}", serde_json::json!(value)));
    fs::write(run.join("recipe.toml"), changed).unwrap();
}

#[test]
fn recipe_of_a_run_does_not_say_where_features_go() {
    let scene = Scene::of_head();
    let mut processes = Reader::new(&scene, None);
    let outside = scene.workspace.path("outside");
    let absolute = outside.to_str().unwrap();
    let below = format!("{absolute}/made/by/calmix");
    for cache in [absolute, "outside", "hostile/../outside", &below] {
        let said = processes.endures(cache, |run| {
            set(run, "cache", cache);
            fs::remove_dir_all(run.join("features")).unwrap();
        });
        let resumed = said.last().unwrap();
        assert!(
            resumed.contains("hostile/features") && resumed.contains("--set network.cache="),
            "{resumed}"
        );
        assert!(!said.iter().any(|said| said.contains("error: ")), "{said:?}");
        assert!(scene.workspace.path("hostile/features").is_dir());
    }
    // The user's own word counts.
    let run = scene.copy();
    Scene::unfinish(&run);
    set(&run, "cache", absolute);
    let named = scene.workspace.run(&["resume", "hostile", "--set", "network.cache=named"]).with_code(0);
    assert!(!named.stderr.contains("hostile/features"), "{}", named.stderr);
    assert_eq!(scene.workspace.names("named").len(), 1);
}

#[test]
fn evaluating_a_head_writes_nothing() {
    let scene = Scene::of_head();
    let run = scene.copy();
    let honest = scene.workspace.run(&["evaluate", "hostile", "--json"]).with_code(0);
    for cache in ["", "elsewhere"] {
        set(&run, "cache", cache);
        let _ = fs::remove_dir_all(run.join("features"));
        let before = scene.workspace.names("hostile");
        let again = scene.workspace.run(&["evaluate", "hostile", "--json"]).with_code(0);
        assert_eq!(again.stdout, honest.stdout);
        assert_eq!(scene.workspace.names("hostile"), before);
        assert!(!scene.workspace.path("elsewhere").exists());
    }
}

#[test]
fn private_files_are_not_quoted() {
    let scene = Scene::of_head();
    let mut processes = Reader::new(&scene, None);
    let private = scene.workspace.path("outside/private.json");
    fs::write(&private, r#"{"architecture": "hunter2", "model_args": {"stride": "hunter2"}}"#).unwrap();
    for name in ["config.json", "backbone.safetensors", "projection.safetensors", "features"] {
        let said = processes.endures(name, |run| {
            let _ = fs::remove_dir_all(run.join(name));
            let _ = fs::remove_file(run.join(name));
            std::os::unix::fs::symlink(&private, run.join(name)).unwrap();
        });
        assert!(!said.iter().any(|said| said.contains("hunter2")), "{name}: {said:?}");
        let is_refused = |said: &str| said.contains("a symbolic link") && said.contains(name);
        // Of what is below the head, `predict` and `evaluate` say the same.
        if name.ends_with(".safetensors") {
            assert!(is_refused(&said[1]) && is_refused(&said[3]) && is_refused(&said[4]), "{name}: {said:?}");
        }
    }
    // Weights that the recipe names, where the run has no copy of them yet.
    let weights = scene.workspace.path("outside/weights.safetensors");
    fs::copy(scene.workspace.path("honest/backbone.safetensors"), &weights).unwrap();
    fs::rename(&private, scene.workspace.path("outside/config.json")).unwrap();
    let said = processes.endures("weights elsewhere", |run| {
        fs::remove_file(run.join("backbone.safetensors")).unwrap();
        set(run, "weights", weights.to_str().unwrap());
    });
    assert!(!said.iter().any(|said| said.contains("hunter2")), "{said:?}");
}
