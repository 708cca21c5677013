//! A server that passes requests on to another one, and spoils some of the responses.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use super::http_message::{Faults, Request, listen, respond};

/// A proxy that ends with the process.
#[derive(Debug)]
pub struct FaultProxy {
    pub address: String,
    pub faults: Arc<Faults>,
}

impl FaultProxy {
    /// Passes requests on to `backend`, a host with its port.
    pub fn start(backend: &str, faults: Faults) -> Self {
        let faults = Arc::new(faults);
        let shared = Arc::clone(&faults);
        let backend = backend.to_owned();
        let address = listen(move |stream| pass_on(stream, &backend, &shared));
        Self { address, faults }
    }
}

fn pass_on(mut stream: TcpStream, backend: &str, faults: &Faults) {
    let Ok(Some(request)) = Request::read(&stream) else { return };
    let is_passed = |line: &&String| {
        let name = line.split(':').next().unwrap_or_default().to_ascii_lowercase();
        // The host stays as it is, because signatures are made over it.
        name != "connection" && name != "expect"
    };
    let mut lines: Vec<&str> = request.head.iter().filter(is_passed).map(String::as_str).collect();
    lines.extend(["Connection: close", "", ""]);
    let head = lines.join("\r\n");
    let mut answer = Vec::new();
    let Ok(mut server) = TcpStream::connect(backend) else { return };
    if server.write_all(head.as_bytes()).and_then(|()| server.write_all(&request.body)).is_err() {
        return;
    }
    let _ = server.read_to_end(&mut answer);
    let Some(end) = answer.windows(4).position(|four| four == b"\r\n\r\n") else { return };
    let (head, body) = answer.split_at(end + 4);
    respond(&mut stream, &request, &String::from_utf8_lossy(head), body, faults);
}
