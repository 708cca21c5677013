//! Downloads that end early, and the calls that continue them.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::MetadataExt;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::hub_server::{Hub, Received, begin, respond};
use super::{Scene, encoder};

/// Bytes of the model that arrive before the connection is cut.
const CUT: usize = 700;

/// How long a process may take for what it does at once.
const PATIENCE: Duration = Duration::from_mins(1);

fn model() -> Vec<u8> {
    encoder().files["onnx/model.onnx"].bytes.clone()
}

fn offsets(received: &[Received]) -> Vec<usize> {
    received.iter().map(Received::offset).collect()
}

#[test]
fn cut_connection_is_resumed_by_range() {
    let scene = Scene::new();
    let attempts = AtomicUsize::new(0);
    let hub = Hub::start_with(
        encoder(),
        |_, _| false,
        move |_, stream| {
            let is_first = attempts.fetch_add(1, Ordering::Relaxed) == 0;
            if is_first {
                cut(stream);
            }
            is_first
        },
    );
    let got = scene.get(&hub, &[]).succeeds();
    assert!(got.stderr.contains("trying again"), "{got:?}");
    assert_eq!(offsets(&hub.storage.received()), [0, CUT]);
    assert_eq!(fs::read(scene.path("weights/name/model.onnx")).unwrap(), model());
}

/// Sends the begin of the model.
fn cut(stream: &mut TcpStream) {
    let model = model();
    begin(stream, 200, "", model.len());
    stream.write_all(&model[..CUT]).unwrap();
}

#[test]
fn server_without_ranges_sends_the_whole_again() {
    let scene = Scene::new();
    let attempts = AtomicUsize::new(0);
    let hub = Hub::start_with(
        encoder(),
        |_, _| false,
        move |_, stream| {
            match attempts.fetch_add(1, Ordering::Relaxed) {
                0 | 2 => cut(stream),
                1 => respond(stream, 416, "", b""),
                _ => respond(stream, 200, "", &model()),
            }
            true
        },
    );
    scene.get(&hub, &[]).succeeds();
    assert_eq!(offsets(&hub.storage.received()), [0, CUT, 0, CUT]);
    assert_eq!(fs::read(scene.path("weights/name/model.onnx")).unwrap(), model());
}

/// Sends the begin of the model, and then nothing while `release` is open.
fn hub_that_stops(release: mpsc::Receiver<()>) -> Hub {
    let release = Mutex::new(Some(release));
    Hub::start_with(
        encoder(),
        |_, _| false,
        move |_, stream| {
            let Some(release) = release.lock().unwrap().take() else { return false };
            cut(stream);
            let _ = release.recv();
            true
        },
    )
}

/// A download that ends with its test.
struct Started(Child);

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a download, and waits until it has the begin of the model.
fn started(scene: &Scene, hub: &Hub) -> Started {
    let mut command = scene.command(&hub.server.url, &["weights", "get", "owner/name"]);
    let mut started = Started(command.stderr(Stdio::piped()).spawn().unwrap());
    let part = scene.part(&encoder().files["onnx/model.onnx"].hash());
    let begun = Instant::now();
    while fs::metadata(&part).map_or(0, |found| found.len()) < CUT as u64 {
        assert!(begun.elapsed() < PATIENCE && started.0.try_wait().unwrap().is_none(), "nothing arrives");
        thread::sleep(Duration::from_millis(5));
    }
    started
}

#[test]
fn killed_download_is_continued_by_the_next_call() {
    let scene = Scene::new();
    let (hold, release) = mpsc::channel();
    let hub = hub_that_stops(release);
    let child = started(&scene, &hub);
    // Meanwhile no other process writes the same files.
    scene.get(&hub, &[]).fails(1, &["holds this lock", "wait until it is done"]);
    drop(child);
    assert_eq!(scene.names(), [".get-owner--name"]);
    scene.get(&hub, &[]).succeeds();
    drop(hold);
    assert_eq!(offsets(&hub.storage.received()), [0, CUT]);
    assert_eq!(fs::read(scene.path("weights/name/model.onnx")).unwrap(), model());
    assert_eq!(scene.names(), ["name"]);
}

#[test]
fn interrupted_download_says_how_to_continue() {
    let scene = Scene::new();
    let (hold, release) = mpsc::channel();
    let hub = hub_that_stops(release);
    let mut started = started(&scene, &hub);
    let child = &mut started.0;
    let process = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{stderr}");
    assert!(stderr.contains("interrupted; the same command continues"), "{stderr}");
    drop(hold);
    scene.get(&hub, &[]).succeeds();
    assert_eq!(offsets(&hub.storage.received()), [0, CUT]);
}

/// The login page of a network, between two halves of a download.
#[test]
fn page_in_between_costs_nothing() {
    let scene = Scene::new();
    let attempts = AtomicUsize::new(0);
    let hub = Hub::start_with(
        encoder(),
        |_, _| false,
        move |_, stream| {
            let attempt = attempts.fetch_add(1, Ordering::Relaxed);
            match attempt {
                0 => cut(stream),
                1 => respond(stream, 200, "", b"<html>Log in</html>"),
                _ => {}
            }
            attempt < 2
        },
    );
    scene.get(&hub, &[]).fails(1, &["has not the"]);
    scene.get(&hub, &[]).succeeds();
    assert_eq!(offsets(&hub.storage.received()), [0, CUT, CUT]);
}

#[test]
fn silent_server_is_asked_again() {
    let scene = Scene::new();
    let (hold, release) = mpsc::channel();
    let hub = hub_that_stops(release);
    let got = scene.get_with(&hub, &[], &[("HF_HUB_DOWNLOAD_TIMEOUT", "1")]).succeeds();
    assert!(got.stderr.contains("no answer within 1 s; trying again"), "{got:?}");
    assert_eq!(offsets(&hub.storage.received()), [0, CUT]);
    drop(hold);
}

/// What a power failure may leave.
#[test]
fn damaged_part_is_downloaded_anew() {
    let scene = Scene::new();
    let hash = encoder().files["onnx/model.onnx"].hash();
    for (name, damaged) in [("a", vec![0; CUT]), ("b", vec![0; model().len()]), ("c", vec![0; 1 << 20])] {
        let part = scene.part(&hash);
        fs::create_dir_all(part.parent().unwrap()).unwrap();
        fs::write(&part, damaged).unwrap();
        scene.get(&Hub::start(encoder()), &["--name", name]).succeeds();
        assert_eq!(fs::read(scene.path("weights").join(name).join("model.onnx")).unwrap(), model());
    }
}

/// A process that was killed when the model was nearly, or already, in its place.
#[test]
fn leftover_of_a_kill_does_no_harm() {
    let scene = Scene::new();
    let hub = Hub::start(encoder());
    scene.get(&hub, &[]).succeeds();
    let placed = scene.path("weights/name/model.onnx");
    let part = scene.part(&encoder().files["onnx/model.onnx"].hash());
    let leave = || {
        scene.write("weights/.get-owner--name/complete/model.onnx", b"old");
        scene.write("weights/.get-owner--name/complete/other", b"old");
        fs::hard_link(&placed, &part).unwrap();
    };
    leave();
    scene.get(&hub, &[]).succeeds();
    assert_eq!(scene.names(), ["name"]);
    leave();
    scene.get(&hub, &["--name", "second"]).succeeds();
    assert_eq!(scene.names(), ["name", "second"]);
    for name in ["name", "second"] {
        let folder = scene.path("weights").join(name);
        assert_eq!(fs::read(folder.join("model.onnx")).unwrap(), model());
        assert_eq!(fs::metadata(folder.join("model.onnx")).unwrap().nlink(), 1);
        assert!(!folder.join("other").exists());
    }
}

#[test]
fn busy_server_is_asked_again() {
    let scene = Scene::new();
    let attempts = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&attempts);
    let hub = Hub::start_with(
        encoder(),
        move |_, stream| {
            let status = [503, 429].get(seen.fetch_add(1, Ordering::Relaxed));
            if let Some(status) = status {
                respond(stream, *status, "", b"<html>");
            }
            status.is_some()
        },
        |_, _| false,
    );
    let got = scene.get(&hub, &[]).succeeds();
    for part in ["the server has a problem (status 503); trying again", "too many requests (status 429)"] {
        assert!(got.stderr.contains(part), "{got:?}");
    }
    let dead = Hub::start_with(
        encoder(),
        |_, stream| {
            respond(stream, 502, "", b"");
            true
        },
        |_, _| false,
    );
    let scene = Scene::new();
    scene.get(&dead, &[]).fails(1, &["error: ", "(status 502)", "try: try again later"]);
    assert_eq!(dead.server.received().len(), 5);
    assert!(scene.names().is_empty());
}

#[test]
fn connection_that_always_breaks_ends_the_command() {
    let scene = Scene::new();
    let hub = Hub::start_with(
        encoder(),
        |_, _| false,
        |_, stream| stream.shutdown(std::net::Shutdown::Both).is_ok(),
    );
    scene.get(&hub, &[]).fails(1, &["the connection broke", "the same command continues", "https_proxy"]);
    assert_eq!(hub.storage.received().len(), 5);
    // What has arrived, the configuration, stays for the next call.
    assert_eq!(scene.names(), [".get-owner--name"]);
}
