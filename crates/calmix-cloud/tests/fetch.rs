//! Shards from a web server, through all kinds of faults.
#![cfg(feature = "cloud")]
#![allow(clippy::unwrap_used)] // in the servers and the functions that the tests share

use std::fs;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use calmix_cloud::{CloudUrl, RemoteFolder};
use calmix_testkit::servers::{Fault, FaultProxy, Faults, FileServer};
use tempfile::TempDir;

/// Bytes of the shards of these tests, which differ.
const SIZE: usize = 300_000;

fn shards(count: u8) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for n in 0..count {
        let bytes: Vec<u8> = (0..SIZE + usize::from(n)).map(|at| (at as u8).wrapping_mul(n + 3)).collect();
        fs::write(folder.path().join(format!("t-{n:03}.tar")), bytes).unwrap();
    }
    folder
}

fn open(url: &str, cache: &Path, limit: usize) -> Arc<RemoteFolder> {
    let url = CloudUrl::parse(Path::new(url)).unwrap();
    RemoteFolder::open_with_cache(&url, cache.join("cache"), limit as u64).unwrap()
}

fn is_same(remote: &RemoteFolder, folder: &Path, name: &str) -> bool {
    let mut bytes = Vec::new();
    remote.fetch(name).unwrap().read_to_end(&mut bytes).unwrap();
    bytes == fs::read(folder.join(name)).unwrap()
}

#[test]
fn each_shard_is_fetched_once_and_whole() {
    let folder = shards(4);
    let server = FileServer::start(folder.path(), Faults::default());
    let url = format!("{}/t-{{000..003}}.tar", server.address);
    let remote = open(&url, folder.path(), 10 * SIZE);
    assert_eq!(remote.url().as_str(), server.address);
    let names: Vec<&str> = remote.objects().iter().map(|object| object.name.as_str()).collect();
    assert_eq!(names, ["t-000.tar", "t-001.tar", "t-002.tar", "t-003.tar"]);
    for _ in 0..3 {
        assert!(names.iter().all(|name| is_same(&remote, folder.path(), name)));
    }
    // A second process finds them in the cache.
    let again = open(&url, folder.path(), 10 * SIZE);
    assert!(names.iter().all(|name| is_same(&again, folder.path(), name)));
    let gets = server.faults.gets();
    assert!(gets.len() == 4 && gets.values().all(|&count| count == 1), "{gets:?}");
}

#[test]
fn faults_of_a_server_are_survived() {
    let folder = shards(6);
    for every in [2, 3] {
        let kinds = [Fault::Short, Fault::Status500, Fault::Reset, Fault::Late];
        let server = FileServer::start(folder.path(), Faults::new(every, &kinds));
        let remote = open(&format!("{}/t-{{000..005}}.tar", server.address), folder.path(), 10 * SIZE);
        for n in 0..6 {
            assert!(is_same(&remote, folder.path(), &format!("t-{n:03}.tar")));
        }
        assert!(server.faults.happened.load(std::sync::atomic::Ordering::Relaxed) >= 4);
        fs::remove_dir_all(folder.path().join("cache")).unwrap();
    }
}

/// Such a shard begins anew, because no request can demand the rest of the same version.
#[test]
fn faults_of_a_server_without_tags_are_survived() {
    let folder = shards(6);
    let kinds = [Fault::Short, Fault::Reset, Fault::Short, Fault::Status500];
    let server = FileServer::start_plain(folder.path(), Faults::new(2, &kinds));
    let remote = open(&format!("{}/t-{{000..005}}.tar", server.address), folder.path(), 10 * SIZE);
    for n in 0..6 {
        assert!(is_same(&remote, folder.path(), &format!("t-{n:03}.tar")));
    }
    assert!(server.faults.happened.load(std::sync::atomic::Ordering::Relaxed) >= 5);
}

#[test]
fn proxy_spoils_and_counts_responses() {
    let folder = shards(2);
    let server = FileServer::start(folder.path(), Faults::default());
    let backend = server.address.trim_start_matches("http://");
    let proxy = FaultProxy::start(backend, Faults::new(2, &[Fault::Short, Fault::Reset]));
    let remote = open(&format!("{}/t-{{000..001}}.tar", proxy.address), folder.path(), 10 * SIZE);
    assert!(is_same(&remote, folder.path(), "t-000.tar") && is_same(&remote, folder.path(), "t-001.tar"));
    assert!(proxy.faults.happened.load(std::sync::atomic::Ordering::Relaxed) >= 2);
}

#[test]
fn object_that_changed_is_refused() {
    let folder = shards(2);
    let server = FileServer::start(folder.path(), Faults::default());
    let remote = open(&format!("{}/t-{{000..001}}.tar", server.address), folder.path(), 10 * SIZE);
    fs::write(folder.path().join("t-001.tar"), vec![1; SIZE + 1]).unwrap();
    assert!(is_same(&remote, folder.path(), "t-000.tar"));
    let error = remote.fetch("t-001.tar").unwrap_err().to_string();
    assert!(error.contains("has changed") && error.contains("prepare the dataset again"), "{error}");
    // Opened anew, it is another file of the cache.
    let remote = open(&format!("{}/t-{{000..001}}.tar", server.address), folder.path(), 10 * SIZE);
    assert!(is_same(&remote, folder.path(), "t-001.tar"));
}

#[test]
fn missing_object_and_unlisted_folder_are_explained() {
    let folder = shards(1);
    let server = FileServer::start(folder.path(), Faults::default());
    let refused = |name: &str| {
        let url = CloudUrl::parse(Path::new(&format!("{}/{name}", server.address))).unwrap();
        RemoteFolder::open_with_cache(&url, folder.path().join("cache"), 1 << 20).unwrap_err().to_string()
    };
    let missing = refused("t-{000..001}.tar");
    assert!(missing.contains("t-001.tar: there is no such bucket or object"), "{missing}");
    let folder_only = refused("shards");
    assert!(folder_only.contains("does not list") && folder_only.contains("{000..099}"), "{folder_only}");
    assert!(refused("a.zip{0..1}").contains("is not a shard"));
}

#[test]
fn shards_are_fetched_before_they_are_needed() {
    let folder = shards(3);
    let server = FileServer::start(folder.path(), Faults::default());
    let remote = open(&format!("{}/t-{{000..002}}.tar", server.address), folder.path(), 10 * SIZE);
    remote.prefetch(vec!["t-000.tar".into(), "t-002.tar".into(), "t-000.tar".into()]);
    for _ in 0..200 {
        if server.faults.gets().len() == 2 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert!(is_same(&remote, folder.path(), "t-000.tar") && is_same(&remote, folder.path(), "t-002.tar"));
    let gets = server.faults.gets();
    assert!(gets.len() == 2 && gets.values().all(|&count| count == 1), "{gets:?}");
}
