//! The cache of the Hub's Python client: alone, and before a download.

use std::fs;
use std::os::unix::fs::symlink;

use super::hub_server::{COMMIT, Hosted, Hub, Server};
use super::{Scene, encoder};

const OFFLINE: (&str, &str) = ("HF_HUB_OFFLINE", "1");

/// Writes the cache as the Python client does: blobs by their hashes, and a snapshot of links.
fn write_cache(scene: &Scene, cache: &str, hosted: &Hosted) {
    let folder = scene.path(cache).join("models--owner--name");
    let snapshot = folder.join("snapshots").join(COMMIT);
    for place in ["blobs", "refs"] {
        fs::create_dir_all(folder.join(place)).unwrap();
    }
    fs::write(folder.join("refs/main"), COMMIT).unwrap();
    for (path, file) in &hosted.files {
        let blob = folder.join("blobs").join(file.hash());
        fs::write(&blob, &file.bytes).unwrap();
        let link = snapshot.join(path);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(blob, link).unwrap();
    }
}

#[test]
fn offline_model_comes_from_the_cache() {
    let server = Server::start(|_, _| {});
    for (cache, variables) in
        [("hf/hub", vec![OFFLINE]), ("cache", vec![("HF_HUB_OFFLINE", "yes"), ("HF_HUB_CACHE", "cache")])]
    {
        let scene = Scene::new();
        write_cache(&scene, cache, &encoder());
        scene.get_from(&server.url, &[], &variables).succeeds();
        let model = encoder().files["onnx/model.onnx"].bytes.clone();
        assert_eq!(fs::read(scene.path("weights/name/model.onnx")).unwrap(), model);
        let is_link = fs::symlink_metadata(scene.path("weights/name/model.onnx")).unwrap().is_symlink();
        assert!(!is_link, "the weights need the cache");
        let again = scene.get_from(&server.url, &[], &variables).succeeds().stdout;
        assert!(again.contains(&format!("at commit {COMMIT}")) && again.contains("was there"), "{again}");
    }
    assert!(server.received().is_empty(), "{:?}", server.received());
}

#[test]
fn offline_without_cache_says_what_to_do() {
    let scene = Scene::new();
    let server = Server::start(|_, _| {});
    scene.get_from(&server.url, &[], &[OFFLINE]).fails(
        2,
        &[
            "HF_HUB_OFFLINE is set",
            "models--owner--name has no files of revision main",
            "calmix weights add FILE",
        ],
    );
    assert!(server.received().is_empty() && scene.names().is_empty());
}

#[test]
fn damaged_cache_is_refused_offline_and_replaced_online() {
    let scene = Scene::new();
    let hosted = encoder();
    write_cache(&scene, "hf/hub", &hosted);
    let model = &hosted.files["onnx/model.onnx"];
    let blob = scene.path("hf/hub/models--owner--name/blobs").join(model.hash());
    fs::write(blob, vec![7; model.bytes.len()]).unwrap();
    let server = Server::start(|_, _| {});
    scene.get_from(&server.url, &[], &[OFFLINE]).fails(1, &["onnx/model.onnx", "is damaged"]);
    assert!(!scene.path("weights/name").exists());
    let bytes = model.bytes.clone();
    let hub = Hub::start(hosted);
    scene.get(&hub, &[]).succeeds();
    assert_eq!(fs::read(scene.path("weights/name/model.onnx")).unwrap(), bytes);
}

#[test]
fn file_of_the_cache_is_not_downloaded_again() {
    let scene = Scene::new();
    write_cache(&scene, "hf/hub", &encoder());
    let hub = Hub::start(encoder());
    scene.get(&hub, &[]).succeeds();
    assert_eq!(hub.server.received().len(), 1, "{:?}", hub.server.received());
    assert!(hub.storage.received().is_empty());
}
