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

use calmix_testkit::workspace::Workspace;
use calmix_testkit::workspace::mlflow::push;

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
