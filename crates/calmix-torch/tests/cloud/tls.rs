//! Shards on a web server with HTTPS, with an authority of our own.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use calmix_testkit::tier;

use super::shards::{assert_same, training, workspace};

/// Serves the folder `shards`: Python's own server, which states no ETag and ignores ranges.
const SERVER: &str = "
import functools, http.server, ssl
handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory='shards')
server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain('server.pem', 'server.key')
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_port, flush=True)
server.serve_forever()
";

/// Ends with the test.
pub(crate) struct Serving(pub(crate) Child);

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(folder: &Path) -> (Serving, String) {
    let mut command = Command::new("python3");
    command.args(["-c", SERVER]).current_dir(folder).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut port = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
    (Serving(child), port.trim().to_owned())
}

fn is_missing(program: &str, argument: &str) -> bool {
    Command::new(program).arg(argument).stdout(Stdio::null()).stderr(Stdio::null()).status().is_err()
}

#[test]
fn https_server_with_own_authority() {
    if is_missing("openssl", "version") || is_missing("python3", "--version") {
        return tier::skipped("openssl or python3 is not installed");
    }
    let workspace = workspace(4);
    let make = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2";
    for arguments in [
        format!("req -x509 {make} -keyout ca.key -out ca.pem -subj /CN=authority"),
        format!(
            "req -x509 {make} -keyout server.key -out server.pem -subj /CN=server -CA ca.pem -CAkey ca.key \
             -addext basicConstraints=critical,CA:FALSE -addext subjectAltName=IP:127.0.0.1"
        ),
    ] {
        let mut command = Command::new("openssl");
        command.args(arguments.split(' ')).current_dir(workspace.folder()).stderr(Stdio::null());
        assert!(command.status().unwrap().success(), "openssl {arguments}");
    }
    let (_serving, port) = start(workspace.folder());
    let url = format!("https://127.0.0.1:{port}/{{train-{{000..003}},test-000}}.tar");
    let steps = ["--set", "train.steps=4"];
    workspace.end(training(&workspace, "shards", "disk", &steps)).with_code(0);
    let mut known = training(&workspace, &url, "https", &steps);
    known.env("SSL_CERT_FILE", workspace.path("ca.pem"));
    workspace.end(known).with_code(0);
    assert_same(&workspace.path("disk"), &workspace.path("https"));
}
