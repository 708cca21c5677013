//! `calmix weights get` as whole commands, against a Hub in the process of the test.
#![cfg(all(feature = "https", target_os = "linux"))]

mod hub_server;
mod interrupted;
mod offline;
mod refused;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::Command;

use calmix_recipe::network::layout::Layout;
use calmix_recipe::network::weights::statistics_names;
use calmix_recipe::network::{Architecture, FirstBlock};
use calmix_testkit::foreign_model::{FLOAT, Parts, external_tensor};
use hub_server::{COMMIT, Hosted, Hub, Server, respond};
use serde_json::{Value, json};

const TOKEN: &str = "hf_hunter2";

/// A weights folder, and a home without anything of the Hub.
struct Scene {
    folder: tempfile::TempDir,
}

#[derive(Debug)]
struct Ended {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Scene {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    /// The command, without anything that the machine of the test has of the Hub or of proxies.
    fn command(&self, endpoint: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_calmix"));
        command.args(arguments).current_dir(self.folder.path());
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy().to_ascii_lowercase();
            if text.starts_with("hf_") || text.ends_with("_proxy") || text == "ssl_cert_file" {
                command.env_remove(&name);
            }
        }
        command
            .env("CALMIX_WEIGHTS", self.path("weights"))
            .env("HF_HOME", self.path("hf"))
            .env("HF_ENDPOINT", endpoint);
        command
    }

    fn get(&self, hub: &Hub, more: &[&str]) -> Ended {
        self.get_with(hub, more, &[])
    }

    fn get_with(&self, hub: &Hub, more: &[&str], variables: &[(&str, &str)]) -> Ended {
        self.get_from(&hub.server.url, more, variables)
    }

    fn get_from(&self, endpoint: &str, more: &[&str], variables: &[(&str, &str)]) -> Ended {
        let arguments = [&["weights", "get", "owner/name"], more].concat();
        let mut command = self.command(endpoint, &arguments);
        command.envs(variables.iter().copied());
        Ended::of(&mut command)
    }

    fn run(&self, arguments: &[&str]) -> Ended {
        Ended::of(&mut self.command("http://127.0.0.1:1", arguments))
    }

    /// Everything in the weights folder, hidden names included.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path("weights")).into_iter().flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// The only file of a model that has arrived in part.
    fn part(&self, hash: &str) -> PathBuf {
        self.path("weights/.get-owner--name").join(hash)
    }
}

impl Ended {
    fn of(command: &mut Command) -> Self {
        let output = command.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let ended =
            Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) };
        for shown in [&ended.stdout, &ended.stderr] {
            assert!(!shown.contains(TOKEN) && !shown.contains("secret"), "{ended:?}");
        }
        ended
    }

    #[track_caller]
    fn succeeds(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:?}");
        self
    }

    /// The command failed with this code, and standard error has all these parts.
    #[track_caller]
    fn fails(self, code: i32, parts: &[&str]) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        for part in parts {
            assert!(self.stderr.contains(part), "no {part}: {self:?}");
        }
        self
    }
}

fn config() -> &'static [u8] {
    br#"{"image_mean": [0.5, 0.5, 0.5], "image_std": [0.25, 0.25, 0.25], "size": {"shortest_edge": 8}}"#
}

/// An encoder in the layout of the Hub.
fn encoder() -> Hosted {
    Hosted::default()
        .with(".gitattributes", "*.onnx filter=lfs", false)
        .with("README.md", "a card", false)
        .with("config.json", r#"{"model_type": "dinov2"}"#, false)
        .with("preprocessor_config.json", config(), false)
        .with("onnx/model.onnx", Parts::sample().bytes(), true)
        .with("pytorch_model.bin", b"\x80\x02".to_vec(), true)
}

/// The safetensors of a network, all ones.
fn safetensors(network: &str) -> Vec<u8> {
    let network: Architecture = network.parse().unwrap();
    let layout = Layout::of_network(network, FirstBlock::default(), 0);
    let mut header = serde_json::Map::new();
    let mut data = Vec::new();
    let mut add = |name: &str, kind: &str, shape: &[usize], number: &[u8]| {
        let begin = data.len();
        for _ in 0..shape.iter().product() {
            data.extend(number);
        }
        let place = json!({ "dtype": kind, "shape": shape, "data_offsets": [begin, data.len()] });
        header.insert(name.to_owned(), place);
    };
    let one = 1.0_f32.to_le_bytes();
    for parameter in &layout.parameters {
        add(&parameter.name, "F32", &parameter.shape, &one);
    }
    for layer in &layout.statistics {
        let [mean, variance, batches] = statistics_names(&layer.name);
        add(&mean, "F32", &[layer.channels], &one);
        add(&variance, "F32", &[layer.channels], &one);
        add(&batches, "I64", &[], &1_i64.to_le_bytes());
    }
    let header = Value::Object(header).to_string();
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &data].concat()
}

#[test]
fn encoder_arrives_with_origin_and_is_listed() {
    let scene = Scene::new();
    let hosted = encoder().with("LICENSE", "free", false);
    let model = hosted.files["onnx/model.onnx"].clone();
    let hub = Hub::start(hosted);
    let got = scene.get(&hub, &[]).succeeds();
    for part in [
        &format!("name: owner/name at commit {COMMIT}, apache-2.0\n"),
        &format!("  model.onnx, {} bytes\n    sha256 {}\n", model.bytes.len(), model.hash()),
        "  preprocessor_config.json, 94 bytes\n    sha256 ",
        "/weights/name\n",
        "next: calmix train --data FOLDER --set network.weights=name",
    ] {
        let found = got.stdout.replace(',', "").contains(&part.replace(',', ""));
        assert!(found, "no {part}: {got:?}");
    }
    assert_eq!(scene.names(), ["name"]);
    let folder = scene.path("weights/name");
    assert_eq!(fs::read(folder.join("model.onnx")).unwrap(), model.bytes);
    assert_eq!(fs::read(folder.join("preprocessor_config.json")).unwrap(), config());
    assert_eq!(fs::read_to_string(folder.join("LICENSE")).unwrap(), "free");
    assert_eq!(fs::metadata(folder.join("model.onnx")).unwrap().nlink(), 1);
    let names = fs::read_dir(&folder).unwrap().count();
    assert_eq!(names, 5, "model, two configurations, licence and origin");
    let origin: Value = serde_json::from_slice(&fs::read(folder.join("origin.json")).unwrap()).unwrap();
    let expected = json!({ "path": "onnx/model.onnx", "file": "model.onnx", "bytes": model.bytes.len(),
        "sha256": model.hash() });
    assert_eq!(origin["files"][0], expected);
    assert_eq!(
        (&origin["endpoint"], &origin["repository"], &origin["revision"], &origin["commit"]),
        (&json!(hub.server.url), &json!("owner/name"), &json!("main"), &json!(COMMIT))
    );
    assert_eq!(origin["licence"], "apache-2.0");
    // No pickle was requested.
    let requested = hub.server.received();
    assert!(requested.iter().all(|request| !request.path.contains("pytorch_model")), "{requested:?}");
    let listed = scene.run(&["weights", "list"]).succeeds().stdout;
    assert!(listed.contains("name: an ONNX encoder"), "{listed}");
    scene.run(&["weights", "check", "name"]).succeeds();
}

#[test]
fn weights_of_known_network_are_used_at_once() {
    let scene = Scene::new();
    let config = r#"{"architecture": "wrn-10-1.in1k", "pretrained_cfg": {"input_size": [3, 32, 32], "license": "mit"}}"#;
    let hosted =
        encoder().with("config.json", config, false).with("model.safetensors", safetensors("wrn-10-1"), true);
    let hub = Hub::start(hosted);
    let json = scene.get(&hub, &["--name", "mine", "--json"]).succeeds();
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((&json["name"], &json["was_there"]), (&json!("mine"), &json!(false)));
    assert_eq!(json["origin"]["files"][0]["path"], "model.safetensors");
    assert_eq!(json["folder"], scene.path("weights/mine").display().to_string());
    let listed = scene.run(&["weights", "list"]).succeeds().stdout;
    assert!(listed.contains("mine: wrn-10-1, ") && listed.contains("images of 32 pixels, mit"), "{listed}");
}

#[test]
fn requested_model_brings_its_data() {
    let scene = Scene::new();
    let weights: Vec<u8> = (0..192).flat_map(|n| (n as f32 / 100.0).to_le_bytes()).collect();
    let mut parts = Parts::sample();
    let location = [("location", "model_fp16.onnx_data")];
    parts.initialisers[0] = external_tensor("conv.weight", &[4, 3, 4, 4], FLOAT, &location);
    let hosted = encoder().with("onnx/model_fp16.onnx", parts.bytes(), true).with(
        "onnx/model_fp16.onnx_data",
        weights,
        true,
    );
    let hub = Hub::start(hosted);
    scene.get(&hub, &["--file", "onnx/model_fp16.onnx"]).succeeds();
    assert!(scene.path("weights/name/model_fp16.onnx_data").exists());
    scene.run(&["weights", "check", "name"]).succeeds();
}

#[test]
fn token_stays_with_the_hub() {
    for source in ["variable", "file"] {
        let scene = Scene::new();
        let hub = Hub::start(encoder());
        let variables: &[(&str, &str)] = if source == "variable" { &[("HF_TOKEN", TOKEN)] } else { &[] };
        if source == "file" {
            scene.write("hf/token", TOKEN.as_bytes());
        }
        scene.get_with(&hub, &[], variables).succeeds();
        let expected = format!("Bearer {TOKEN}");
        let at_hub = hub.server.received();
        assert!(
            at_hub.iter().all(|request| request.header("authorization") == Some(&expected)),
            "{at_hub:?}"
        );
        let at_storage = hub.storage.received();
        assert!(!at_storage.is_empty());
        assert!(at_storage.iter().all(|request| request.header("authorization").is_none()), "{at_storage:?}");
    }
}

/// Another server must not get at the token by sending the client back either.
#[test]
fn token_is_dropped_for_good_by_a_redirect() {
    let scene = Scene::new();
    let place = std::sync::Arc::new(std::sync::OnceLock::<String>::new());
    let back = std::sync::Arc::clone(&place);
    let hub = Hub::start_with(
        encoder(),
        |request, stream| {
            let is_back = request.path == "/private";
            if is_back {
                respond(stream, 200, "", b"another model");
            }
            is_back
        },
        move |_, stream| {
            let url = back.get().unwrap();
            respond(stream, 302, &format!("Location: {url}/private\r\n"), b"");
            true
        },
    );
    place.set(hub.server.url.clone()).unwrap();
    scene.get_with(&hub, &[], &[("HF_TOKEN", TOKEN)]).fails(1, &["has not the"]);
    let received = hub.server.received();
    let private: Vec<_> = received.iter().filter(|request| request.path == "/private").collect();
    assert!(!private.is_empty(), "{received:?}");
    assert!(private.iter().all(|request| request.header("authorization").is_none()), "{private:?}");
}

/// A renamed repository.
#[test]
fn redirect_within_the_hub_keeps_the_token() {
    let scene = Scene::new();
    let hub = Hub::start_with(
        encoder(),
        |request, stream| {
            let is_old = request.path.starts_with("/api/models/owner/old/");
            if is_old {
                respond(stream, 307, "Location: /api/models/owner/name/revision/main?blobs=true\r\n", b"");
            }
            is_old
        },
        |_, _| false,
    );
    let mut command = scene.command(&hub.server.url, &["weights", "get", "owner/old"]);
    let ended = Ended::of(command.env("HF_TOKEN", TOKEN));
    // The Hub redirects the files, too; the server of the test does not.
    ended.fails(2, &["owner/old does not exist"]);
    let listing = &hub.server.received()[1];
    assert_eq!(listing.path, "/api/models/owner/name/revision/main?blobs=true");
    assert!(listing.header("authorization").is_some(), "{listing:?}");
}

#[test]
fn same_commit_changes_nothing() {
    let scene = Scene::new();
    let hub = Hub::start(encoder());
    scene.get(&hub, &[]).succeeds();
    let origin = scene.path("weights/name/origin.json");
    let before = fs::metadata(&origin).unwrap();
    let again = scene.get(&hub, &[]).succeeds().stdout;
    assert!(again.contains("was there before, nothing changed"), "{again}");
    let after = fs::metadata(&origin).unwrap();
    assert_eq!((before.ino(), before.mtime_nsec()), (after.ino(), after.mtime_nsec()));
    assert_eq!(hub.storage.received().len(), 1);
    // Under another name it is downloaded again.
    scene.get(&hub, &["--name", "second"]).succeeds();
    assert_eq!(scene.names(), ["name", "second"]);
}

#[test]
fn taken_name_is_refused_before_the_download() {
    let scene = Scene::new();
    scene.write("weights/name/model.onnx", b"mine");
    let hub = Hub::start(encoder());
    let parts = ["name is taken", "other weights", "try: choose another name with --name"];
    scene.get(&hub, &[]).fails(2, &parts);
    assert_eq!(fs::read(scene.path("weights/name/model.onnx")).unwrap(), b"mine");
    assert_eq!(hub.server.received().len(), 1, "{:?}", hub.server.received());
    scene.get(&hub, &["--name", "other"]).succeeds();
    // A later commit of the same repository.
    let later = encoder().with_field("sha", json!("f".repeat(40)));
    let refused = scene.get(&Hub::start(later), &["--name", "other"]);
    refused.fails(2, &[&format!("onnx/model.onnx of commit {COMMIT} of owner/name")]);
}

#[test]
fn redirect_without_end_is_refused() {
    let server = Server::start(|request, stream| {
        respond(stream, 302, &format!("Location: {}\r\n", request.path), b"");
    });
    Scene::new().get_from(&server.url, &[], &[]).fails(1, &["more than 5 redirects"]);
}
