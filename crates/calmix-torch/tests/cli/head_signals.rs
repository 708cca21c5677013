//! Signals end the commands on images that have nothing to save: heads on frozen features, and what uses a trained model.
//! `--no-capture` prints the times.
#![allow(clippy::print_stderr)] // the times

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use calmix_testkit::workspace::Workspace;
use calmix_testkit::workspace::running::Running;

use super::fixture::Fixture;

/// The most from the signal to the end. On an idle machine it is less than 2 s; other tests may run beside this one.
const LIMIT: Duration = Duration::from_secs(10);

/// Sends a signal to a command that is in `phase`; returns its standard output and its exit code.
fn signalled(running: Running, name: &str, phase: &str) -> (String, Option<i32>) {
    let sent = Instant::now();
    running.signal(name);
    let ended = running.end();
    let took = sent.elapsed();
    eprintln!("{phase}: {:.2} s after SIG{name}", took.as_secs_f64());
    assert!(took < LIMIT, "{phase}: {took:?}");
    ended
}

/// Photos of which the backbone computes features for minutes.
fn many(workspace: &Workspace) {
    for (class, shade) in [("cat", 40), ("dog", 200)] {
        workspace.images(&format!("many/{class}"), shade, 200);
    }
}

/// A head on them.
fn training(workspace: &Workspace, more: &[&str]) -> Command {
    let settings = [
        "network.weights=tiny",
        "network.dimensions=8",
        "network.weak_views=2",
        "network.strong_views=2",
        "augment.size=160",
        "network.cache=cache",
    ];
    let mut command = workspace.command(&["train", "head-folder", "--data", "many", "--threads", "1"]);
    command.args(settings.iter().flat_map(|setting| ["--set", setting])).args(more);
    command
}

#[test]
fn computing_features_ends_at_a_signal() {
    let workspace = Fixture::Weights.copy();
    many(&workspace);
    let mut running = Running::new(training(&workspace, &["--run-dir", "run"]));
    running.until_event(|| workspace.path("cache").exists() && workspace.path("run/recipe.toml").exists());
    let (stdout, code) = signalled(running, "TERM", "train, features");
    assert_eq!(code, Some(75), "{stdout}");
    assert!(stdout.ends_with("next: calmix resume run --set network.cache=cache\n"), "{stdout}");

    let mut running = Running::new(workspace.command(&["resume", "run", "--set", "network.cache=cache"]));
    // It listens before it locks the run.
    let own = format!("process {} ", running.id());
    let lock = workspace.path("run/calmix.lock");
    running.until_event(|| fs::read_to_string(&lock).is_ok_and(|text| text.starts_with(&own)));
    let (stdout, code) = signalled(running, "INT", "resume, features");
    assert_eq!(code, Some(130), "{stdout}");
    assert!(!workspace.path("run/projection.safetensors").exists());
}

/// A model in use reads images into a table in a temporary folder, predicts them, and computes.
#[test]
fn using_a_head_ends_at_a_signal() {
    let workspace = Fixture::Head.copy();
    many(&workspace);
    let scratch = workspace.path("scratch");
    fs::create_dir(&scratch).unwrap();
    let model = fs::read(workspace.path("run/model.json")).unwrap();
    for (command, name, code) in [("evaluate", "TERM", 75), ("calibrate", "INT", 130)] {
        let mut started = workspace.command(&[command, "run", "--on", "many"]);
        started.env("TMPDIR", &scratch);
        let mut running = Running::new(started);
        let is_read = || {
            let mut folders = fs::read_dir(&scratch).unwrap();
            folders.any(|folder| folder.unwrap().path().join("prepared").exists())
        };
        running.until_event(is_read);
        let (stdout, ended) = signalled(running, name, &format!("{command} --on, predicting"));
        assert_eq!((stdout.as_str(), ended), ("", Some(code)));
        assert_eq!(fs::read_dir(&scratch).unwrap().count(), 0, "{command}");
    }
    assert!(fs::read(workspace.path("run/model.json")).unwrap() == model);
}
