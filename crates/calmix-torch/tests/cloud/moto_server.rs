//! moto, which serves S3 for tests, and plain requests to it.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use calmix_testkit::python::environment;
use calmix_testkit::tier;

use super::tls::Serving;

/// The interpreter of an environment with moto.
fn python() -> Option<PathBuf> {
    let named = std::env::var_os("CALMIX_MOTO_PYTHON").map(PathBuf::from);
    named.or_else(|| Some(environment("moto[server]")?.join("bin/python")))
}

/// A server with one bucket, `bucket`.
pub(crate) struct Moto {
    _serving: Serving,
    /// Host and port.
    pub(crate) address: String,
}

impl Moto {
    /// Starts a server; `None`, after the test was counted as skipped, without moto.
    pub(crate) fn start(folder: &Path) -> Option<Self> {
        let Some(python) = python() else {
            tier::skipped("moto is not installed: `cargo xtask setup` does it");
            return None;
        };
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new(python);
        command.args(["-m", "moto.server", "-H", "127.0.0.1", "-p", &port.to_string()]).current_dir(folder);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let moto = Self { _serving: Serving(child), address: format!("127.0.0.1:{port}") };
        let begun = Instant::now();
        while TcpStream::connect(&moto.address).is_err() {
            assert!(begun.elapsed() < Duration::from_mins(1), "moto does not listen");
            sleep(Duration::from_millis(100));
        }
        moto.request("PUT", "/bucket", b"");
        Some(moto)
    }

    /// Stores the files of a folder below a prefix.
    pub(crate) fn upload(&self, folder: &Path, prefix: &str) {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let name = entry.file_name().into_string().unwrap();
            self.request("PUT", &format!("/bucket/{prefix}/{name}"), &fs::read(entry.path()).unwrap());
        }
    }

    /// Sends a request with an empty signature, which moto does not check; returns the body of the answer.
    pub(crate) fn request(&self, method: &str, path: &str, body: &[u8]) -> Vec<u8> {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\nConnection: close\r\n\
             Authorization: AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, \
             SignedHeaders=host, Signature=0\r\n\r\n",
            self.address,
            body.len()
        );
        stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body)).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
        let head = String::from_utf8_lossy(&answer[..end]).into_owned();
        assert!(head.starts_with("HTTP/1.1 2"), "{method} {path}: {head}");
        answer.split_off(end)
    }
}

/// Sets the variables with which a command finds a server at `endpoint`.
pub(crate) fn at(endpoint: &str, mut command: Command) -> Command {
    command.env("AWS_ENDPOINT_URL", endpoint).env("AWS_REGION", "us-east-1");
    command.env("AWS_ACCESS_KEY_ID", "test").env("AWS_SECRET_ACCESS_KEY", "test");
    command
}
