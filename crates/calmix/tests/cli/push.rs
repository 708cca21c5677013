//! `calmix push` to a server of our own.

#[cfg(unix)]
#[path = "push/requests.rs"]
mod requests;
#[path = "push/tls.rs"]
mod tls;
#[path = "push/tracking_server.rs"]
mod tracking_server;

use std::fs;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use calmix_testkit::workspace::Workspace;
use calmix_testkit::workspace::mlflow::push;

use self::tracking_server::{TrackingServer, respond};
use super::with_run;

/// Events of two steps, which a head on vectors has none of.
const STEPS: &str = r#"{"event":"step","step":1,"learning_rate":0.03,"loss":{"total":3.75,"labelled":2.5,"unlabelled":0.0,"mix":1.25},"gradient_norm":1.5,"utilisation":0.25,"mixes":4}
{"event":"step","step":2,"learning_rate":0.02,"loss":{"total":3.5,"labelled":2.25,"unlabelled":0.5,"mix":0.75},"gradient_norm":null,"utilisation":0.5,"mixes":4}
"#;

/// A finished run of two steps, called `run`.
fn finished_run() -> Workspace {
    let workspace = with_run();
    let events = workspace.path("run/events.jsonl");
    let others = fs::read_to_string(&events).unwrap();
    fs::write(events, format!("{STEPS}{others}")).unwrap();
    workspace
}

#[test]
fn absent_server_is_named() {
    let workspace = finished_run().with_garments();
    // A port that was free a moment ago.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    for scheme in ["http", "https"] {
        let url = format!("{scheme}://127.0.0.1:{port}");
        let refused = workspace.end(push(&workspace, &["run", "--mlflow", &url])).with_code(1);
        refused.reports(&[&format!("{url}: Connection refused"), "try: is the server running?"]);
        workspace.end(push(&workspace, &["garments", "--mlflow", &url])).with_code(2).reports(&["garments"]);
    }
}

/// Every file of `calmix export --mlflow` arrives, once; a push that was killed in the middle is completed by the next.
#[test]
fn model_is_sent_once() {
    let workspace = with_run();
    let refuses = Arc::new(AtomicBool::new(true));
    let refusing = Arc::clone(&refuses);
    let server = TrackingServer::start(move |received, writer| {
        let is_file = received.line.starts_with("PUT ") && received.line.contains("/requirements.txt");
        if is_file && refusing.load(Ordering::Relaxed) {
            respond(writer, 503, "", r#"{"message":"no space left"}"#);
            return true;
        }
        false
    });
    let push = |more: &[&str]| {
        let arguments = [&["run", "--mlflow", &server.url, "--model"], more].concat();
        workspace.end(push(&workspace, &arguments))
    };
    push(&[]).with_code(1).reports(&["MLflow refused a file of the model with status 503: no space left"]);
    assert_eq!(server.model()["info"]["status"], "LOGGED_MODEL_PENDING");
    refuses.store(false, Ordering::Relaxed);
    push(&[]).with_code(0).prints(&["model sent: models:/m-1", "mlflow models serve -m models:/m-1"]);
    assert_eq!(server.model()["info"]["status"], "LOGGED_MODEL_READY");
    push(&[]).with_code(0).prints(&["the server has this model: models:/m-1"]);
    let puts = server.received().iter().filter(|it| it.line.starts_with("PUT ")).count();
    let exported = workspace.run(&["export", "run", "--to", "exported", "--mlflow"]);
    exported.with_code(0).prints(&["serve it: mlflow models serve -m exported"]);
    let files = server.files();
    for (name, content) in &files {
        // The card has the name of the folder.
        if name != "README.md" {
            assert!(fs::read(workspace.path("exported").join(name)).unwrap() == *content, "{name}");
        }
    }
    let listed = |folder: &str| fs::read_dir(workspace.path(folder)).unwrap().count();
    assert_eq!(files.len(), listed("exported") - 1 + listed("exported/test_data_set_0"));
    assert!(puts < 2 * files.len(), "{puts}");
    // Other guarantees are another model.
    push(&["--precision", "1.5"]).with_code(2);
}
