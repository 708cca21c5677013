//! `calmix push` to a real MLflow server, where one can be started (`CALMIX_MLFLOW_PYTHON` names an interpreter with
//! `mlflow==3.17.2`).

use std::ffi::OsString;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use calmix_testkit::tier;
use calmix_testkit::workspace::mlflow::{Metrics, in_lines, push};
use serde_json::Value;

use crate::program::new_workspace;

struct Server {
    python: OsString,
    url: String,
    process: Child,
}

impl Server {
    fn start(python: OsString, folder: &Path) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        fs::create_dir(folder).unwrap();
        let mut command = Command::new(&python);
        command.args([
            "-m",
            "mlflow",
            "server",
            "--backend-store-uri",
            "sqlite:///mlflow.db",
            "--workers",
            "1",
        ]);
        command.args(["--host", "127.0.0.1", "--port", &port.to_string()]).current_dir(folder);
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(begun.elapsed() < Duration::from_mins(2), "the server does not start");
            sleep(Duration::from_millis(200));
        }
        Self { python, url: format!("http://127.0.0.1:{port}"), process }
    }

    fn read_back(&self) -> Vec<Value> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/push/read_mlflow.py");
        let output = Command::new(&self.python).arg(script).arg(&self.url).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Its worker is a process of its own, and ends with it on SIGTERM.
        let _ = Command::new("kill").arg(self.process.id().to_string()).status();
        let _ = self.process.wait();
    }
}

fn metrics_of(run: &Value) -> Metrics {
    let point = |point: &Value| (point[0].as_u64().unwrap(), point[1].as_f64().map(|number| number as f32));
    let metrics = run["metrics"].as_object().unwrap().iter();
    metrics
        .map(|(key, points)| (key.clone(), points.as_array().unwrap().iter().map(point).collect()))
        .collect()
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-r").arg(from).arg(to).status().unwrap();
    assert!(copied.success());
}

/// Pushed while it trains, killed in the middle of pushes, pushed after its end and from another folder: one run on the
/// server, every number of the events once, also those that are not finite.
#[test]
#[allow(clippy::print_stderr)] // How many kills and points counted.
fn every_number_arrives_once() {
    let Some(python) = std::env::var_os("CALMIX_MLFLOW_PYTHON") else {
        return tier::skipped("CALMIX_MLFLOW_PYTHON is not set");
    };
    let workspace = new_workspace().with_garments();
    let server = Server::start(python, &workspace.path("server"));
    let push = |run: &str, more: &[&str]| {
        let mut command = push(&workspace, &[run, "--mlflow", &server.url]);
        command.args(more).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    let mut training = workspace.training(150, &["--run-dir", "first", "--quiet"]);
    let mut training = training.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    while !workspace.path("first/recipe.toml").exists() {
        assert!(begun.elapsed() < Duration::from_mins(2));
        sleep(Duration::from_millis(5));
    }
    let following = push("first", &["--follow"]).spawn().unwrap();
    let mut landed = 0;
    for number in 0..20 {
        let mut child = push("first", &[]).spawn().unwrap();
        sleep(Duration::from_millis(40 * (1 + number % 10)));
        landed += u32::from(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
    }
    eprintln!("{landed} of 20 kills landed");
    assert!(training.wait().unwrap().success());
    let followed = following.wait_with_output().unwrap();
    assert!(followed.status.success(), "{}", String::from_utf8_lossy(&followed.stderr));
    workspace.end(push("first", &[])).with_code(0);
    copy(&workspace.path("first"), &workspace.path("elsewhere"));
    workspace.end(push("elsewhere", &[])).with_code(0).prints(&["0 points sent to run "]);

    // Another run, with a gradient that overflowed.
    workspace.end(workspace.training(4, &["--run-dir", "second", "--seed", "2", "--quiet"])).with_code(0);
    let events = workspace.path("second/events.jsonl");
    let text = fs::read_to_string(&events).unwrap();
    let begin = text.find("\"gradient_norm\":").unwrap() + "\"gradient_norm\":".len();
    let end = begin + text[begin..].find(',').unwrap();
    fs::write(&events, format!("{}null{}", &text[..begin], &text[end..])).unwrap();
    workspace.end(push("second", &[])).with_code(0);

    let runs = server.read_back();
    assert_eq!(runs.len(), 2, "{runs:?}");
    for (run, name) in runs.iter().zip(["first", "second"]) {
        assert_eq!((&run["name"], &run["status"]), (&name.into(), &"FINISHED".into()));
        assert_eq!(
            (&run["params"]["method.base"], &run["params"]["train.batch"]),
            (&"fixmatch".into(), &"4".into())
        );
        assert_eq!(metrics_of(run), in_lines(&workspace.path(name)));
    }
    let points = |run: &Value| metrics_of(run).values().map(Vec::len).sum::<usize>();
    eprintln!("{} points", points(&runs[0]));
    assert!(points(&runs[0]) > 1_000);
    assert_eq!(metrics_of(&runs[1])["train/gradient_norm"][0], (1, None));
}
