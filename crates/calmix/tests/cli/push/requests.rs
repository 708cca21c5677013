//! What a push sends, to whom, and how it ends, against a server in this process.

use std::io::Write;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use calmix_testkit::workspace::Workspace;
use calmix_testkit::workspace::mlflow::{in_lines, push};
use calmix_testkit::workspace::running::Running;
use serde_json::json;

use super::finished_run;
use super::tracking_server::{Received, TrackingServer, respond};

fn left_to_server(_: &Received, _: &mut dyn Write) -> bool {
    false
}

fn push_to(workspace: &Workspace, url: &str, variables: &[(&str, &str)]) -> Command {
    let mut command = push(workspace, &["run", "--mlflow", url]);
    command.envs(variables.iter().copied());
    command
}

#[test]
fn repeated_push_sends_no_point_twice() {
    let workspace = finished_run();
    let server = TrackingServer::start(left_to_server);
    let mut named = push_to(&workspace, &server.url, &[]);
    named.args(["--experiment", "a & b/ü"]);
    workspace
        .end(named)
        .with_code(0)
        .prints(&[&format!(" sent to run 5eed of {}, experiment a & b/ü", server.url)]);
    let again = workspace.end(push_to(&workspace, &format!("{}/", server.url), &[])).with_code(0);
    again.prints(&["0 points sent to run 5eed"]);
    assert_eq!(server.points(), in_lines(&workspace.path("run")));
    assert_eq!(server.status(), "FINISHED");
    let received = server.received();
    // The times are the run's, not those of the push.
    let written = |file: &str| {
        let modified = std::fs::metadata(workspace.path("run").join(file)).unwrap().modified().unwrap();
        modified.duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as u64
    };
    let sent = |call: &str, field: &str| {
        let request = received.iter().find(|request| request.line.contains(call)).unwrap();
        request.body[field].as_u64()
    };
    assert_eq!(sent("runs/create", "start_time"), Some(written("split.json")));
    assert_eq!(sent("runs/update", "end_time"), Some(written("result.json")));
    assert!(received[0].line.ends_with("?experiment_name=a%20%26%20b%2F%C3%BC HTTP/1.1"), "{received:?}");
    assert!(received.iter().all(|request| !request.headers.contains("authorization")), "{received:?}");
}

/// In every request, from the environment, and in nothing that is printed, also if the server quotes it.
#[test]
fn credentials_are_sent_and_never_shown() {
    let workspace = finished_run();
    let server = TrackingServer::start(left_to_server);
    let user = [("MLFLOW_TRACKING_USERNAME", "Aladdin"), ("MLFLOW_TRACKING_PASSWORD", "open sesame")];
    let token = [("MLFLOW_TRACKING_TOKEN", "hunter2")];
    for (variables, expected) in [
        (&user[..], "authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="),
        (&token, "authorization: Bearer hunter2"),
    ] {
        let before = server.received().len();
        workspace.end(push_to(&workspace, &server.url, variables)).with_code(0);
        let received = server.received().split_off(before);
        assert!(received.len() >= 3, "{received:?}");
        assert!(received.iter().all(|request| request.headers.contains(expected)), "{received:?}");
    }
    let quoting = TrackingServer::start(|request, writer| {
        let message = json!({ "message": format!("not let in with {}", request.headers) });
        respond(writer, 401, "", &message.to_string());
        true
    });
    for variables in [&user[..], &token] {
        let refused = workspace.end(push_to(&workspace, &quoting.url, variables)).with_code(1);
        refused.reports(&["with status 401", "***", "MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN"]);
        for secret in ["hunter2", "open sesame", "QWxhZGRpbjpvcGVuIHNlc2FtZQ"] {
            assert!(!refused.stderr.contains(secret), "{}", refused.stderr);
        }
    }
    for address in
        ["http://eve:hunter2@127.0.0.1:1", "http://eve:hun ter2@127.0.0.1:1", "mlflow+http://hunter2"]
    {
        let refused = workspace.end(push_to(&workspace, address, &[])).with_code(2);
        refused.reports(&["the address of the tracking server "]);
        assert!(!refused.stderr.contains("hun"), "{}", refused.stderr);
    }
}

#[test]
fn environment_names_the_server() {
    let workspace = finished_run();
    let server = TrackingServer::start(left_to_server);
    let mut command = push(&workspace, &["run"]);
    command.env("MLFLOW_TRACKING_URI", &server.url);
    workspace.end(command).with_code(0);
    assert_eq!(server.points(), in_lines(&workspace.path("run")));
    workspace.end(push(&workspace, &["run"])).with_code(2).reports(&["--mlflow <URL>"]);
}

/// By a path, by an address, with the method, the body and the token.
#[test]
fn redirect_within_server_is_followed() {
    let workspace = finished_run();
    let server = TrackingServer::start(|request, writer| {
        let path = request.line.split(' ').nth(1).unwrap();
        let host = request.headers.lines().find_map(|header| header.strip_prefix("host: ")).unwrap();
        if let Some(rest) = path.strip_prefix("/old/") {
            respond(writer, 302, &format!("Location: /moved/{rest}\r\n"), "moved");
        } else if let Some(rest) = path.strip_prefix("/moved/") {
            respond(writer, 308, &format!("Location: http://{host}/{rest}\r\n"), "");
        } else {
            return false;
        }
        true
    });
    let url = format!("{}/old", server.url);
    let token = [("MLFLOW_TRACKING_TOKEN", "hunter2")];
    workspace.end(push_to(&workspace, &url, &token)).with_code(0);
    assert_eq!(server.points(), in_lines(&workspace.path("run")));
    let received = server.received();
    assert!(received.iter().any(|request| request.line.starts_with("POST /moved/")), "{received:?}");
    assert!(received.iter().all(|request| request.headers.contains("Bearer hunter2")), "{received:?}");
}

#[test]
fn redirect_to_another_server_is_refused() {
    let workspace = finished_run();
    let other = TrackingServer::start(left_to_server);
    let elsewhere = other.url.clone();
    for location in [elsewhere.clone(), elsewhere.replace("127.0.0.1", "localhost")] {
        let target = location.clone();
        let server = TrackingServer::start(move |_, writer| {
            respond(writer, 307, &format!("Location: {target}/?quoted=hunter2\r\n"), "");
            true
        });
        let token = [("MLFLOW_TRACKING_TOKEN", "hunter2")];
        let refused = workspace.end(push_to(&workspace, &server.url, &token)).with_code(1);
        refused.reports(&[&format!("{}: it redirects to {location}; ", server.url), "try: if you trust"]);
        assert!(!refused.stderr.contains("hunter2"), "{}", refused.stderr);
    }
    assert!(other.received().is_empty(), "{:?}", other.received());
    let endless = TrackingServer::start(|request, writer| {
        let path = request.line.split(' ').nth(1).unwrap();
        respond(writer, 302, &format!("Location: {path}\r\n"), "");
        true
    });
    workspace.end(push_to(&workspace, &endless.url, &[])).with_code(1).reports(&["more than 5 redirects"]);
}

#[test]
fn proxy_of_environment_is_used() {
    let workspace = finished_run();
    // It opens the tunnel and is what is at its other end.
    let proxy = TrackingServer::start(|request, writer| {
        let is_proxied = request.line.starts_with("CONNECT ");
        if is_proxied {
            respond(writer, 200, "", "");
        }
        is_proxied
    });
    let own = proxy.url.replace("http://", "http://eve:hunter2@");
    let variables = [("http_proxy", own.as_str()), ("MLFLOW_TRACKING_TOKEN", "s3cret")];
    let pushed = workspace.end(push_to(&workspace, "http://tracking.invalid:5000", &variables)).with_code(0);
    pushed.reports(&["warning: the password or token is sent unencrypted"]);
    assert_eq!(proxy.points(), in_lines(&workspace.path("run")));
    let received = proxy.received();
    assert_eq!(received[0].line, "CONNECT tracking.invalid:5000 HTTP/1.1");
    assert!(received[0].headers.contains("proxy-authorization: "), "{received:?}");
    assert!(!received[0].headers.contains("s3cret"), "{received:?}");
}

/// An id goes into later requests: with a line break in it, it would be a header of ours.
#[test]
fn run_id_with_line_break_is_refused() {
    let workspace = finished_run();
    let server = TrackingServer::start(|request, writer| {
        let is_search = request.line.contains("runs/search");
        if is_search {
            let id = "x HTTP/1.1\r\nX-Injected: yes\r\nX-Rest: ";
            respond(writer, 200, "", &json!({ "runs": [{ "info": { "run_id": id } }] }).to_string());
        }
        is_search
    });
    let refused = workspace.end(push_to(&workspace, &server.url, &[])).with_code(1);
    refused.reports(&["MLflow's answer to runs/search has no valid id"]);
    let received = server.received();
    assert!(received.iter().all(|request| !request.headers.contains("injected")), "{received:?}");
}

#[test]
fn dripping_or_endless_answer_is_given_up() {
    let workspace = finished_run();
    let dripping = TrackingServer::start(|_, writer| {
        let _ = writer.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
        while writer.write_all(b" ").is_ok() {
            sleep(Duration::from_millis(200));
        }
        true
    });
    let begun = Instant::now();
    let variables = [("MLFLOW_HTTP_REQUEST_TIMEOUT", "2")];
    let refused = workspace.end(push_to(&workspace, &dripping.url, &variables)).with_code(1);
    refused.reports(&["no complete answer within 2 s", "MLFLOW_HTTP_REQUEST_TIMEOUT"]);
    assert!(begun.elapsed() < Duration::from_secs(30), "after {:?}", begun.elapsed());

    let endless = TrackingServer::start(|_, writer| {
        let _ = writer.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        while writer.write_all(&[b' '; 1 << 14]).is_ok() {}
        true
    });
    workspace.end(push_to(&workspace, &endless.url, &[])).with_code(1).reports(&["67108864"]);
    workspace.end(push_to(&workspace, &endless.url, &[("MLFLOW_HTTP_REQUEST_TIMEOUT", "0")])).with_code(2);
}

/// While it waits for an answer, and while it waits for more of a run.
#[test]
fn waiting_push_ends_at_signal() {
    let workspace = finished_run();
    let silent = TrackingServer::start(|_, _| {
        sleep(Duration::from_mins(2));
        true
    });
    for (signal, expected) in [("TERM", 75), ("INT", 130), ("HUP", 75)] {
        let before = silent.received().len();
        let running = Running::new(push_to(&workspace, &silent.url, &[]));
        let begun = Instant::now();
        while silent.received().len() == before {
            assert!(begun.elapsed() < Duration::from_mins(1), "it sends nothing");
            sleep(Duration::from_millis(20));
        }
        ends(running, signal, expected);
    }
    // Without its last event the run is not finished.
    let events = workspace.path("run/events.jsonl");
    let text = std::fs::read_to_string(&events).unwrap();
    let (rest, _) = text.trim_end().rsplit_once('\n').unwrap();
    std::fs::write(&events, format!("{rest}\n")).unwrap();
    let server = TrackingServer::start(left_to_server);
    let mut command = push_to(&workspace, &server.url, &[]);
    command.arg("--follow");
    let mut running = Running::new(command);
    running.until(" points sent");
    ends(running, "TERM", 75);
}

#[track_caller]
fn ends(running: Running, signal: &str, expected: i32) {
    let sent = Instant::now();
    running.signal(signal);
    let (stderr, code) = running.stderr();
    assert_eq!(code, Some(expected), "{signal}: {stderr}");
    assert!(stderr.contains("stopped; the same command sends the rest"), "{stderr}");
    assert!(sent.elapsed() < Duration::from_secs(5), "{signal}: after {:?}", sent.elapsed());
}
