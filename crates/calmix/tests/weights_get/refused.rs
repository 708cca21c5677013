//! What the Hub refuses, and what calmix refuses of its answers.

use std::fs;
use std::io::Write;
use std::net::{TcpListener, TcpStream};

use serde_json::{Value, json};

use super::hub_server::{COMMIT, Hosted, Hub, Server, respond};
use super::{Ended, Scene, TOKEN, encoder};

/// Answers the list of files like this.
fn answering(status: u16, headers: &'static str, body: &'static str) -> Hub {
    Hub::start_with(
        encoder(),
        move |_, stream| {
            respond(stream, status, headers, body.as_bytes());
            true
        },
        |_, _| false,
    )
}

#[test]
fn refusals_of_the_hub_say_what_to_do() {
    let token: &[(&str, &str)] = &[("HF_TOKEN", TOKEN)];
    let wrong_token = "X-Error-Message: Invalid credentials in Authorization header\r\n";
    let gated = "X-Error-Code: GatedRepo\r\n";
    for (status, headers, variables, parts) in [
        (401, "", &[][..], ["owner/name does not exist, or is private", "/settings/tokens and set HF_TOKEN"]),
        (401, wrong_token, token, ["does not accept the token in HF_TOKEN", "create another at "]),
        (401, gated, &[], ["owner/name is gated", "accept them at "]),
        (403, gated, token, ["the token in HF_TOKEN has no access to it", "accept its conditions at "]),
        (403, "", token, ["does not give access to owner/name", "to see why"]),
        (404, "X-Error-Code: RepoNotFound\r\n", &[], ["owner/name does not exist", "check the name at "]),
        (404, "X-Error-Code: RepoNotFound\r\n", token, ["or the token in HF_TOKEN has no", "check the name"]),
        (404, "X-Error-Code: RevisionNotFound\r\n", &[], ["has no revision main", "/owner/name/tree/main"]),
    ] {
        let scene = Scene::new();
        let hub = answering(status, headers, "Not for you");
        let status = format!("(status {status})");
        scene.get_with(&hub, &[], variables).fails(2, &[parts[0], parts[1], &status, &hub.server.url]);
        assert_eq!(hub.server.received().len(), 1, "asked again: {headers}");
    }
}

/// The list of a gated repository is public, its files are not.
#[test]
fn gated_file_names_the_page_with_the_licence() {
    let hub = Hub::start_with(
        encoder(),
        |request, stream| {
            let is_file = request.path.contains("/resolve/");
            if is_file {
                respond(stream, 401, "X-Error-Code: GatedRepo\r\n", b"");
            }
            is_file
        },
        |_, _| false,
    );
    let page = format!("accept them at {}/owner/name, ", hub.server.url);
    Scene::new().get(&hub, &[]).fails(2, &["owner/name is gated", &page]);
}

#[test]
fn no_network_says_what_to_do() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let endpoint = format!("http://127.0.0.1:{port}");
    let parts = ["cannot connect: connection refused", "https_proxy", "`calmix weights add FILE`"];
    let scene = Scene::new();
    scene.get_from(&endpoint, &[], &[]).fails(1, &parts);
    assert!(scene.names().is_empty());
    let wrong =
        [("ftp://hub", "HF_ENDPOINT begins neither"), ("http://u:secret@h", "HF_ENDPOINT has a user")];
    for (endpoint, part) in wrong {
        scene.get_from(endpoint, &[], &[]).fails(2, &[part]);
    }
}

#[test]
fn wrong_content_is_refused_and_nothing_stays() {
    // In the storage, and in git.
    for path in ["onnx/model.onnx", "preprocessor_config.json"] {
        let scene = Scene::new();
        let listed = encoder();
        let mut hosted = listed.clone();
        let file = hosted.files.get_mut(path).unwrap();
        file.bytes[10] ^= 1;
        let is_large = file.is_large;
        let served = file.bytes.clone();
        let hash = listed.files[path].hash();
        let listing = listed.listing()["siblings"].clone();
        // The list of the right files, the content of the others.
        let hub = Hub::start_with(
            hosted.with_field("siblings", listing),
            |_, _| false,
            move |_, stream| {
                if is_large {
                    respond(stream, 200, "", &served);
                }
                is_large
            },
        );
        let parts = [path, "has the wrong content", &hash, COMMIT, "nothing was added"];
        scene.get(&hub, &[]).fails(1, &parts);
        assert!(!scene.path("weights/name").exists());
        let left = fs::metadata(scene.part(&hash)).map_or(0, |found| found.len());
        assert_eq!(left, 0, "a later call would continue it");
        // It was not taken for damage of what was there before.
        let requests = hub.server.received().into_iter().filter(|request| request.path.ends_with(path));
        assert_eq!(requests.count(), 1);
    }
}

#[test]
fn answer_of_another_length_is_refused() {
    let short: fn(&mut TcpStream) = |stream| respond(stream, 200, "", b"short");
    let endless: fn(&mut TcpStream) = |stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
        // Not really endless, for the disk's sake.
        for _ in 0..10_000 {
            if stream.write_all(&[7; 4_096]).is_err() {
                return;
            }
        }
    };
    for answer in [short, endless] {
        let scene = Scene::new();
        let hub = Hub::start_with(
            encoder(),
            |_, _| false,
            move |_, stream| {
                answer(stream);
                true
            },
        );
        scene.get(&hub, &[]).fails(1, &["onnx/model.onnx has not the", "bytes that the Hub lists"]);
        assert!(!scene.path("weights/name").exists());
        assert_eq!(hub.storage.received().len(), 1);
    }
}

#[test]
fn answers_that_are_no_list_are_refused() {
    let nested: &'static str = "[".repeat(100_000).leak();
    for body in ["<html>Log in</html>", "", "{", "null", "{\"sha\": 1}", nested, "\u{0}\u{1b}[2J"] {
        let scene = Scene::new();
        let hub = answering(200, "", body);
        let refused = scene.get(&hub, &[]).fails(1, &["is not a list of files", "HF_ENDPOINT"]);
        assert!(!refused.stderr.contains('\u{1b}'), "{refused:?}");
        assert!(scene.names().is_empty());
    }
    let garbage = Server::start(|_, stream| {
        let _ = stream.write_all(&vec![0xff; 100_000]);
    });
    Scene::new().get_from(&garbage.url, &[], &[]).fails(1, &["error: "]);
}

#[test]
fn hostile_lists_are_refused_before_the_download() {
    let file = |path: &str, size: Value| {
        json!([{ "rfilename": path, "size": size, "blobId": "b".repeat(40),
                 "lfs": { "sha256": "c".repeat(64), "size": size } }])
    };
    for (field, value, code, part) in [
        ("siblings", file("../evil", json!(1)), 1, "whose name leads out of the folder"),
        ("siblings", file("onnx/model.onnx_data/../../evil", json!(1)), 1, "leads out of the folder"),
        ("siblings", file("/etc/passwd", json!(1)), 1, "whose name is absolute"),
        ("siblings", file("a\u{1b}[2J", json!(1)), 1, "has a control character"),
        ("siblings", file("model.onnx", json!(u64::MAX)), 2, "calmix reads at most 2,147 MB"),
        ("siblings", file("model.onnx", json!(1e300)), 1, "is not a list of files"),
        ("siblings", json!([]), 2, "has no model"),
        ("sha", json!("../../../etc"), 1, "names a commit that is not 40"),
    ] {
        let scene = Scene::new();
        let hub = Hub::start(Hosted::default().with_field(field, value));
        let refused = scene.get(&hub, &[]).fails(code, &[part]);
        assert!(!refused.stderr.contains('\u{1b}'), "{refused:?}");
        assert_eq!(hub.server.received().len(), 1);
        assert!(!scene.path("weights/name").exists());
    }
}

#[test]
fn pickles_and_unknown_networks_are_refused() {
    let pickles = Hosted::default().with("pytorch_model.bin", b"\x80\x02".to_vec(), true);
    let hint = "optimum-cli export onnx --opset 17 --model owner/name";
    let hub = Hub::start(pickles);
    let only = ["only pickles (pytorch_model.bin), which can run code", hint];
    let scene = Scene::new();
    scene.get(&hub, &[]).fails(2, &only);
    assert!(scene.names().is_empty(), "{:?}", scene.names());
    Scene::new()
        .get(&hub, &["--file", "pytorch_model.bin"])
        .fails(2, &["a pickle, which can run code", hint]);
    assert!(hub.storage.received().is_empty());
    let vit = Hosted::default()
        .with("config.json", r#"{"architecture": "vit_small_patch16_224"}"#, false)
        .with("model.safetensors", b"x".to_vec(), true);
    let hub = Hub::start(vit);
    Scene::new().get(&hub, &[]).fails(2, &["does not build the network vit_small_patch16_224", hint]);
    assert!(hub.storage.received().is_empty());
}

#[test]
fn unusable_models_are_refused_and_nothing_stays() {
    let scene = Scene::new();
    let broken = encoder().with("onnx/model.onnx", b"not a model".repeat(9), true);
    scene
        .get(&Hub::start(broken), &[])
        .fails(2, &["owner/name/model.onnx: ", "try: look for name under onnx-community"]);
    assert!(scene.names().is_empty(), "{:?}", scene.names());
    let config = r#"{"architecture": "resnet50"}"#;
    let zip = encoder().with("config.json", config, false).with("model.safetensors", "PK\u{3}\u{4}", true);
    scene.get(&Hub::start(zip), &[]).fails(2, &["owner/name/model.safetensors: a pickle"]);
    let other = Hub::start(encoder().with("config.json", config, false).with(
        "model.safetensors",
        super::safetensors("wrn-10-1"),
        true,
    ));
    scene.get(&other, &[]).fails(2, &["names resnet50, but the weights do not match"]);
    assert!(scene.names().is_empty(), "{:?}", scene.names());
}

#[test]
fn names_of_repositories_are_checked_without_a_request() {
    let scene = Scene::new();
    let server = Server::start(|_, _| {});
    for wrong in ["name", "../name", "https://huggingface.co/owner/name", "owner/name@../x"] {
        let ended = Ended::of(&mut scene.command(&server.url, &["weights", "get", wrong]));
        ended.fails(2, &["error: ", "try: "]);
    }
    scene.get_from(&server.url, &["--name", "../x"], &[]).fails(2, &["cannot be the name of weights"]);
    assert!(server.received().is_empty());
}
