//! HTTPS, with an authority of our own, where `openssl` is installed.

use std::io::BufReader;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use calmix_testkit::tier;
use calmix_testkit::workspace::mlflow::{in_lines, push};

use super::finished_run;
use super::tracking_server::TrackingServer;

fn openssl(folder: &Path, arguments: &str) -> Command {
    let mut command = Command::new("openssl");
    command.args(arguments.split(' ')).current_dir(folder).stderr(Stdio::null());
    command
}

/// Ends with the test.
struct Encrypting(Child);

impl Drop for Encrypting {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a server behind `openssl s_server`, which decrypts to its standard output and encrypts its standard input.
fn start(folder: &Path, name: &str) -> (TrackingServer, Encrypting) {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let arguments = format!("s_server -quiet -accept 127.0.0.1:{port} -cert {name}.pem -key {name}.key");
    let mut child = openssl(folder, &arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let reader = BufReader::new(child.stdout.take().unwrap());
    let writer = child.stdin.take().unwrap();
    let server = TrackingServer::without_listener(format!("https://127.0.0.1:{port}"), |_, _| false);
    let serving = server.clone();
    thread::spawn(move || serving.serve(reader, writer));
    let begun = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(begun.elapsed() < Duration::from_secs(20), "openssl does not listen");
        sleep(Duration::from_millis(50));
    }
    (server, Encrypting(child))
}

/// An authority that the user names, one that the system has, and one that is unknown.
#[test]
fn https_needs_known_authority() {
    if Command::new("openssl").arg("version").stdout(Stdio::null()).status().is_err() {
        return tier::skipped("openssl is not installed");
    }
    let workspace = finished_run();
    let folder = workspace.path("");
    let make = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2";
    for arguments in [
        format!("req -x509 {make} -keyout ca.key -out ca.pem -subj /CN=authority"),
        format!("req -x509 {make} -keyout other.key -out other.pem -subj /CN=other"),
        format!(
            "req -x509 {make} -keyout server.key -out server.pem -subj /CN=server -CA ca.pem -CAkey ca.key \
             -addext basicConstraints=critical,CA:FALSE -addext subjectAltName=IP:127.0.0.1"
        ),
    ] {
        assert!(openssl(&folder, &arguments).status().unwrap().success(), "openssl {arguments}");
    }
    let (server, _encrypting) = start(&folder, "server");
    let push_to = |url: &str, variable: &str, file: &str| {
        let mut command = push(&workspace, &["run", "--mlflow", url]);
        command.env(variable, workspace.path(file));
        workspace.end(command)
    };
    let pushed = |variable: &str, file: &str| push_to(&server.url, variable, file);
    for (variable, file) in
        [("SSL_CERT_FILE", "other.pem"), ("MLFLOW_TRACKING_SERVER_CERT_PATH", "other.pem")]
    {
        let refused = pushed(variable, file).with_code(1);
        refused.reports(&[
            "not signed by an authority",
            "try: name the PEM file",
            "MLFLOW_TRACKING_SERVER_CERT_PATH",
        ]);
    }
    for file in ["absent.pem", "ca.key"] {
        let refused = pushed("MLFLOW_TRACKING_SERVER_CERT_PATH", file).with_code(2);
        refused.reports(&["MLFLOW_TRACKING_SERVER_CERT_PATH: ", file]);
    }
    assert!(server.received().is_empty(), "{:?}", server.received());
    for variable in ["MLFLOW_TRACKING_SERVER_CERT_PATH", "SSL_CERT_FILE"] {
        pushed(variable, "ca.pem").with_code(0);
    }
    assert_eq!(server.points(), in_lines(&workspace.path("run")));
    let (own, _encrypting) = start(&folder, "other");
    let refused = push_to(&own.url, "MLFLOW_TRACKING_SERVER_CERT_PATH", "other.pem").with_code(1);
    refused.reports(&["an authority's own (CA:TRUE)", "try: make it with CA:FALSE"]);
}
